# ruff: noqa: E501  (log lines as they are printed)
"""What people paste: half a line, marks of a web page's text field, a whole log without its line breaks."""

import re

from advisor.units import GIB
from tests.heavy import heavy
from tests.loops import each

from .known import SIGNATURES, judge

FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.50 GiB. GPU 3 has a total capacity of 79.25 GiB of which 11.50 GiB is free. "
    "Including non-PyTorch memory, this process has 67.75 GiB memory in use. Of the allocated memory 60.25 GiB is allocated by PyTorch, "
    "and 5.25 GiB is reserved by PyTorch but unallocated."
)
IN_WORDS = re.compile(
    r"(?<!avoid running )\bout of memory|OutOfMemory|Killed process \d|oom[-_]kill[ e]|OOMKilled|killed due to (?:memory pressure|the node running low)|bad_alloc|Cannot allocate memory",
    re.IGNORECASE,
)
SHORTAGES = [entry for entry in SIGNATURES.signatures if entry.verdict == "oom"]
DIED = "(raylet) A worker died or was killed while executing a task by an unexpected system error. (1) The process is killed by SIGKILL by OOM killer due to high memory usage."
TIMEOUT = "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600005 milliseconds before timing out."


def test_a_shortage_cut_at_any_word_is_never_taken_for_something_else():
    """Of every message the first words, the last ones and each eighth cut between them; the others where heavy ones run."""
    _cut_anywhere(every=8)


@heavy
def test_at_every_word():
    _cut_anywhere(every=1)


def _cut_anywhere(every: int) -> None:
    for place, entry in enumerate(SHORTAGES):
        words = [match.span() for match in re.finditer(r"\S+", entry.sample)]
        halves = [entry.sample[begin:] for begin, _ in words] + [entry.sample[:end] for _, end in words]
        for half in dict.fromkeys((*halves[place % every :: every], halves[0], halves[len(words)], halves[-1])):
            _is_no_other(entry, half)


def _is_no_other(entry, half):
    if "avoid running" in half and half in "to avoid running out of memory.":
        return  # that much is advice
    crash = judge(half + "\n")
    assert crash.verdict != "not_oom" or "avoid running" in half, (entry.id, half)
    ours = (entry.memory, "unknown") if entry.id != "bad-alloc-gpu" else ("gpu", "host", "unknown")
    assert crash.verdict != "oom" or crash.memory in ours, (entry.id, half)
    assert crash.signature or not IN_WORDS.search(half), (entry.id, half)


@each(
    "pasted",
    [
        "**" + FULL.replace("memory. Tried", "memory.** Tried"),
        FULL.replace("18.50 GiB", "`18.50 GiB`"),
        FULL.replace("Tried", "*Tried*"),
        FULL.replace(". ", ".<br>"),
        FULL.replace("GPU 3", "<b>GPU</b> 3"),
        "> " + FULL,
        "> > `" + FULL + "`",
        FULL.replace("CUDA", "^[[36mCUDA^[[0m"),
        FULL.replace("capacity", "capacity\\_").replace("\\_", ""),
    ],
)
def test_marks_of_a_text_field_inside_a_message_cost_no_field(pasted):
    fields = judge(pasted + "\n").evidence[0].fields
    assert (fields["tried_bytes"], fields["process_bytes"]) == (18.5 * GIB, 67.75 * GIB)
    assert fields["allocated_bytes"] == 60.25 * GIB


def test_a_line_of_asterisks_is_no_markdown():
    assert judge("*** SIGFPE received at time=1751967829 on cpu 14 ***\n").signature == "native-crash"


def test_a_death_and_the_timeouts_that_follow_it_read_alike_with_and_without_line_breaks():
    for log in (f"{DIED}\n{TIMEOUT}\n", f"{DIED} {TIMEOUT}\n"):
        crash = judge(log)
        assert (crash.verdict, crash.signature) == ("unclear", "ray-worker-died-bare")
        assert "nccl-timeout" in [one.signature for one in crash.evidence]


def test_a_traceback_on_one_line_keeps_its_frames():
    frames = 'Traceback (most recent call last): File "/verl/workers/actor/dp_actor.py", line 812, in update_policy loss.backward()'
    crash = judge(f"INFO loading {frames} {FULL}\n")
    assert (crash.phase, [frame.line for frame in crash.frames]) == ("actor_update", [812])
