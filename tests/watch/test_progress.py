"""Phases and steps are read from the output as it comes, by the patterns of the knowledge and no others."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.watch.progress import Fetching, OutputProgress, Patterns, fetch, patterns_of, required_words


@pytest.fixture(scope="module")
def patterns():
    return patterns_of()


def marks_of(patterns, *pieces):
    watched = OutputProgress(patterns)
    found = []
    for piece in pieces:
        watched.feed(piece)
        found += list(watched.marks())
    return found


def test_a_phase_is_told_once_where_it_begins(patterns):
    found = marks_of(patterns, b"Update policy:  10%|#\rUpdate policy:  20%|##\r", b"Update policy:  30%|###\r")
    assert [mark.phase for mark in found if mark.phase] == ["actor_update"]


def test_a_line_that_comes_in_pieces_is_put_together(patterns):
    found = marks_of(patterns, b"step:", b"12 - actor/kl", b"_loss:0.1\n")
    assert ("step", 12.0) in [(mark.counter, mark.count) for mark in found]


def test_a_bar_whose_line_has_not_ended_counts(patterns):
    found = marks_of(patterns, "Training Progress:  10%|█         | 3/30 [00:01<00:02, 1.2s/it]".encode())
    assert ("done", 3.0) in [(mark.counter, mark.count) for mark in found]


def arrived(fetching):
    until = time.monotonic() + 20
    while (found := fetching.take()) is None and time.monotonic() < until:
        time.sleep(0.02)
    return found


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def test_the_same_patterns_come_from_the_process_that_reads_the_knowledge_and_are_kept_by_it(patterns, home):
    fetching = fetch()
    assert isinstance(fetching, Fetching)
    assert arrived(fetching) == patterns
    assert fetch() == patterns


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.write_text("[]"),
        lambda file: file.write_text('{"stamp": 3'),
        lambda file: file.write_text(file.read_text().replace("signatures.yaml", "signatures.yam")),
        lambda file: file.chmod(0o666),
    ],
    ids=["another shape", "cut short", "of other knowledge", "written by anybody"],
)
def test_kept_patterns_that_do_not_hold_are_read_again(patterns, home, spoil):
    arrived(fetch())
    file = home / "cache" / "rl-oom-advisor" / "watch-patterns.json"
    until = time.monotonic() + 20
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.02)
    spoil(file)
    assert arrived(fetch()) == patterns


def test_a_users_own_knowledge_is_never_read_from_what_is_kept(home):
    arrived(fetch())
    (home / "config" / "rl-oom-advisor" / "knowledge").mkdir(parents=True)
    fetching = fetch()
    assert isinstance(fetching, Fetching)
    arrived(fetching)


def test_a_word_that_is_required_stands_in_every_sample_its_pattern_matches(patterns):
    with_words = [one for one in patterns.phases if one.words]
    assert len(with_words) > len(patterns.phases) * 0.8
    lines = [
        "Update policy:  31%|###", "Compute log probs:  5%|", "Timer actor_train start", "Sleep mode freed 12 GiB",
        "(WorkerDict pid=1) KillCounts compute_log_prob, memory allocated (GB): 1", "Capturing CUDA graph shapes:  1%",
    ]  # fmt: skip
    for line in lines:
        for one in with_words:
            if re.search(one.pattern, line):
                assert any(word in line for word in one.words), (one.pattern, line)


@given(st.from_regex(r"(?:ab|c)d+ef?g(?:x|y)hij|klm{2}n[op]qrs", fullmatch=True))
def test_required_words_hold_for_whatever_a_pattern_matches(text):
    words = required_words(r"(?:ab|c)d+ef?g(?:x|y)hij|klm{2}n[op]qrs")
    assert words
    assert any(word in text for word in words)


@given(st.binary(max_size=2000))
def test_any_bytes_are_read_without_complaint(data):
    watched = OutputProgress(Patterns())
    watched.feed(data)
    list(watched.marks())


@pytest.mark.parametrize(
    "line",
    [
        b"step:3 - actor/loss:0.1 - response_length/mean:310.5 - response_length/max:1024.000 - timing_s/gen:3.1\n",
        b"step:3 - response_length/max:np.float64(1024.0) - x:1\n",
        b"{'loss': 0.1, 'completions/mean_length': 310.5, 'completions/max_length': 1024.0, 'epoch': 0.1}\n",
        b"{'loss': '0.1', 'completions/max_length': '1024', 'epoch': '0.1'}\n",
    ],
)
def test_the_longest_answer_of_a_step_is_read(patterns, line):
    assert [mark.count for mark in marks_of(patterns, line) if mark.counter == "longest"] == [1024.0]
