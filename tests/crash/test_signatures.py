"""knowledge/signatures.yaml keeps its promises."""

import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.crash.evidence import TOLD, EvidenceRole
from advisor.crash.patterns import Catalogue, expand
from advisor.crash.scan import scan
from advisor.crash.sources import text_source
from tests.heavy import examples
from tests.loops import each

from .known import SIGNATURES, judge

CATALOGUE = Catalogue(SIGNATURES)
EVERY = [pytest.param(ready, id=ready.signature.id) for ready in CATALOGUE.ready]
NO_SHORTAGE = [
    one for one in EVERY if one.values[0].signature.verdict != "oom" and one.values[0].signature.id not in TOLD
]


@each("ready", EVERY)
def test_every_pattern_matches_its_own_sample(ready):
    assert ready.regex.search(ready.signature.sample)


OTHER_WORDINGS = {
    "shm-full": (
        "RuntimeError: unable to allocate shared memory(shm) for file </torch_7_1>: Success (0)",
        "RuntimeError: unable to write to file </torch_123_456_0>: No space left on device (28)",
    ),
    "vllm-profile-race": (
        "AssertionError: Error in memory profiling. Initial used memory 1651310592, currently used memory 1524118323. "
        "This happens when the GPU memory was not cleaned up.",
    ),
}
"""What other versions print of the same failure."""


@pytest.mark.parametrize(("name", "said"), [(name, one) for name, every in OTHER_WORDINGS.items() for one in every])
def test_other_wordings_of_a_failure_are_found_under_its_name(name: str, said: str) -> None:
    finds = scan(text_source(f"before\n{said}\nafter\n", "x"), CATALOGUE).finds
    assert name in [find.signature.id for find in finds]


@each("ready", [one for one in EVERY if one.values[0].signature.anchors])
def test_every_sample_is_found_by_the_literal_search_under_its_own_name(ready):
    scanned = scan(text_source(f"before\n{ready.signature.sample}\nafter\n", "x"), CATALOGUE)
    assert ready.signature.id in [find.signature.id for find in scanned.finds]


@each("ready", [one for one in EVERY if one.values[0].signature.role in ("cause", "hint")])
def test_a_failure_is_found_whichever_of_its_words_is_printed_in_colour(ready):
    sample = ready.signature.sample
    for word in re.finditer(r"\S+", sample if ready.signature.anchors else ""):
        begin, end = word.span()
        coloured = f"{sample[:begin]}\x1b[1;31m{sample[begin:end]}\x1b[0m{sample[end:]}"
        finds = scan(text_source(f"before\n{coloured}\nafter\n", "x"), CATALOGUE).finds
        assert ready.signature.id in [find.signature.id for find in finds], coloured


@each("ready", EVERY)
def test_every_entry_says_what_it_is_and_where_it_was_seen(ready):
    entry = ready.signature
    assert entry.title
    assert entry.source
    assert entry.role in EvidenceRole.__args__
    assert entry.says or entry.role == "telemetry"
    assert entry.settle_by or not (entry.role == "hint" and entry.verdict is None)


@each("ready", NO_SHORTAGE)
def test_no_sample_of_a_look_alike_is_taken_for_a_shortage(ready):
    assert judge(ready.signature.sample).verdict != "oom"


@each("ready", [one for one in EVERY if one.values[0].signature.verdict == "oom"])
def test_every_sample_of_a_shortage_is_one_and_names_its_memory(ready):
    crash = judge(ready.signature.sample)
    assert (crash.verdict, crash.memory) == ("oom", ready.signature.memory)
    assert crash.evidence[0].signature == crash.signature == ready.signature.id


def test_identifiers_are_unique_and_look_alikes_exist():
    names = [entry.id for entry in SIGNATURES.signatures]
    assert len(names) == len(set(names)) >= 84
    assert {alike for entry in SIGNATURES.signatures for alike in entry.look_alikes} <= set(names)


def test_regexes_of_frames_progress_versions_and_marks_compile():
    for rule in SIGNATURES.frames:
        re.compile(rule.frame)
        re.compile(rule.under)
    for mark in SIGNATURES.progress:
        re.compile(mark.pattern)
    for entry in (*SIGNATURES.versions, *SIGNATURES.framework_marks):
        re.compile(entry.pattern)


@pytest.mark.parametrize("mark", [*SIGNATURES.versions, *SIGNATURES.framework_marks], ids=lambda mark: mark.pattern)
@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_a_mark_matches_holds_one_of_its_literals(mark, data):
    text = data.draw(st.from_regex(re.compile(mark.pattern, re.ASCII)))
    matched = re.search(mark.pattern, text)
    assert matched is None or any(literal in matched.group() for literal in mark.within)


@each(
    "filler",
    [
        "CUDA out of memory. Tried to allocate ",
        "a",
        " ",
        "1 ",
        "Process 1 has 1.00 GiB memory in use. ",
        "if OOM ",
        "(IP: ",
    ],
)
def test_patterns_stay_quick_on_long_lines_made_to_mislead_them(filler):
    line = (filler * (16_000 // len(filler)))[:16_000]
    begun = time.process_time()
    for ready in CATALOGUE.ready:
        re.compile(expand(ready.signature)).search(line)
    assert time.process_time() - begun < 1
