"""The few literals a long log is searched for find whatever the signatures speak of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.crash.patterns import FAST, TRIGGERS, Catalogue, passes, uncovered
from tests.loops import each

from .known import SIGNATURES

ANCHORED = [pytest.param(entry, id=entry.id) for entry in SIGNATURES.signatures if entry.anchors]


@each("entry", ANCHORED)
def test_every_anchor_and_every_sample_holds_a_literal_of_the_search(entry):
    literals = [*TRIGGERS, *uncovered(entry.anchors)]
    assert all(any(literal in text for literal in literals) for text in [*entry.anchors, entry.sample])


def test_two_quick_passes_are_enough():
    assert len(passes(Catalogue(SIGNATURES).triggers)) <= 2


def test_every_trigger_stands_for_some_anchor():
    anchors = [anchor for entry in SIGNATURES.signatures for anchor in entry.anchors]
    assert [trigger for trigger in TRIGGERS if not any(trigger in anchor for anchor in anchors)] == []


@given(st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=12))
def test_every_literal_is_searched_for_in_some_pass(literals):
    wanted = [text.encode() for text in literals * 5]
    assert sorted(literal for group in passes(wanted) for literal in group) == sorted(wanted)
    assert max(map(len, passes(wanted))) <= FAST


def test_no_literal_is_so_short_that_the_search_slows_down():
    assert min(map(len, Catalogue(SIGNATURES).triggers)) >= 4
