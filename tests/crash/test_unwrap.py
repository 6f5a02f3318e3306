# ruff: noqa: E501  (log lines as they are printed)
"""Excerpts copied from a terminal that broke long lines, in the middle of words too, tell what the log told."""

import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.crash.log_reader import join_wrapped
from advisor.crash.read import read_logs
from tests.loops import each

from .known import SIGNATURES, judge

LOG = """\
(WorkerDict pid=7, ip=10.0.0.3) Traceback (most recent call last):
(WorkerDict pid=7, ip=10.0.0.3)   File "/home/someone/with/a/long/name/verl/workers/actor/dp_actor.py", line 301, in update_policy
(WorkerDict pid=7, ip=10.0.0.3)     loss.backward()
(WorkerDict pid=7, ip=10.0.0.3)   File "/opt/conda/envs/verl/lib/python3.11/site-packages/torch/_tensor.py", line 581, in backward
(WorkerDict pid=7, ip=10.0.0.3)     torch.autograd.backward(
{message}
(WorkerDict pid=7, ip=10.0.0.3) and a last line of ordinary words that is long enough to be broken somewhere by any terminal
"""
MESSAGES = {
    "oom": "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Bus error. It is possible that dataloader's "
    "workers are out of shared memory. Please try to raise your shared memory limit.",
    "not_oom": "RuntimeError: CUDA error: an illegal memory access was encountered. CUDA kernel errors might be reported "
    "asynchronously at some other API call, so the stacktrace below might be incorrect.",
}


def wrapped(text: str, width: int) -> str:
    return "\n".join(line[at : at + width] for line in text.split("\n") for at in range(0, max(len(line), 1), width))


@pytest.mark.parametrize("verdict", MESSAGES)
@pytest.mark.parametrize("width", [80, 97, 120])
def test_a_wrapped_excerpt_is_judged_like_the_log(tmp_path: Path, verdict, width):
    path = tmp_path / "run.log"
    text = LOG.format(message=MESSAGES[verdict])
    whole = judge(text)
    path.write_text(wrapped(text, width))
    crash = read_logs([path], SIGNATURES)
    assert (crash.verdict, crash.memory, crash.signature) == (whole.verdict, whole.memory, whole.signature)
    assert crash.verdict == verdict


@given(st.lists(st.text(alphabet="abcdefgh ", min_size=1, max_size=300), min_size=3, max_size=12), st.integers(60, 120))
def test_what_was_broken_comes_back_and_line_numbers_stay(lines, width):
    text = wrapped("\n".join(lines), width)
    whole = join_wrapped(text)
    if whole is not None:
        assert whole.count("\n") == text.count("\n")
        assert whole.replace("\n", "") == text.replace("\n", "")


@each(
    "text",
    [
        "short\n" * 50,
        "=" * 80 + "\n" + ("=" * 80 + "\nword\n") * 9,
        textwrap.fill("word " * 400, 80),
        "x" * 300 + "\nshort\n",
    ],
)
def test_what_was_not_wrapped_stays_as_it_is(text):
    assert join_wrapped(text) is None


def test_every_task_of_a_chain_of_rays_errors_is_looked_at():
    above = "ray.exceptions.RayTaskError(OutOfMemoryError): ray::Runner.run() (pid=1, ip=10.0.0.1)\n"
    frames = "".join(f'  File "/w/a{i}.py", line {i}, in call\n    go()\n' for i in range(4))
    inner = "ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.actor_rollout_update_actor() (pid=2)\n"
    crash = judge(above + frames + inner)
    assert (crash.verdict, crash.memory, crash.phase) == ("oom", "gpu", "actor_update")


def test_an_exception_alone_at_the_end_is_no_shortage_unless_something_speaks_of_one():
    assert judge("loading\nModuleNotFoundError: No module named 'flash_attn'\n").verdict == "not_oom"
    assert judge("KeyError: 'x'\n" + "a line\n" * 30).verdict == "unclear"
    assert (
        judge("KeyError: 'x'\n/usr/bin/bash: line 1: 4242 Killed   python3 -m verl.trainer.main_ppo\n").verdict
        == "unclear"
    )
