"""The few literals a long log is searched for find whatever the signatures speak of."""

import pytest

from advisor.crash.patterns import catalogue
from advisor.crash.search import Searcher, searched
from advisor.crash.triggers import FAST, TRIGGERS, uncovered

from .known import SIGNATURES

ANCHORED = [pytest.param(entry, id=entry.id) for entry in SIGNATURES.signatures if entry.anchors]


@pytest.mark.parametrize("entry", ANCHORED)
def test_every_anchor_and_every_sample_holds_a_trigger(entry):
    assert uncovered(entry.anchors) == []
    assert any(trigger in entry.sample for trigger in TRIGGERS)


def test_the_search_stays_in_its_quick_range():
    assert len(catalogue(SIGNATURES).triggers) <= FAST


def test_every_trigger_stands_for_some_anchor():
    anchors = [anchor for entry in SIGNATURES.signatures for anchor in entry.anchors]
    assert [trigger for trigger in TRIGGERS if not any(trigger in anchor for anchor in anchors)] == []


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64])
def test_hits_are_the_same_wherever_the_chunks_are_cut(size):
    text = b"out of memory, KV cache, xx KV cache of memory" * 3
    whole = Searcher([b"f memory", b"KV cache"]).search(text)[1]
    pieces = iter([text[at : at + size] for at in range(0, len(text), size)])
    found = [hit for _, hits in searched(pieces, [b"f memory", b"KV cache"]) for hit in hits]
    assert sorted(set(found)) == whole


def test_what_reading_raises_in_the_second_thread_arrives():
    def chunks():
        yield from [b"x"] * 20
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(searched(chunks(), [b"abcd"]))
