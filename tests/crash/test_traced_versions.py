"""The lines on which a traceback's functions stand tell the releases of its packages, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from packaging.version import Version

from advisor.crash.evidence import Frame
from advisor.crash.tracebacks import traced_versions
from advisor.knowledge.code_lines import code_lines, known_packages
from advisor.session import SessionRequest, open_session

VERL = "/opt/venv/lib/python3.10/site-packages/verl/"
LOG = """\
  File "{verl}workers/fsdp_workers.py", line 764, in compute_log_prob
  File "{verl}workers/actor/dp_actor.py", line 338, in compute_log_prob
  File "{verl}workers/actor/dp_actor.py", line 211, in _forward_micro_batch
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 13.91 GiB. GPU 0 has a total capacity of 79.11 GiB of \
which 9.10 GiB is free. Including non-PyTorch memory, this process has 69.98 GiB memory in use.
"""


@settings(max_examples=30, deadline=None)
@given(data=st.data(), folder=st.sampled_from(sorted(known_packages())))
def test_no_other_minor_version_is_ever_told(data: st.DataObject, folder: str) -> None:
    lines = code_lines(folder)
    release = data.draw(st.integers(0, len(lines.releases) - 1))
    there = [
        (file, function, start, end)
        for file, known in sorted(lines.functions.items())
        for function, stretches in sorted(known.items())
        for first, last, start, end in stretches
        if first <= release <= last
    ]
    assume(there)  # the functions of a first release may all have gone since
    drawn = data.draw(st.lists(st.sampled_from(there), min_size=1, max_size=5))
    frames = [
        Frame(f"/x/site-packages/{file}", data.draw(st.integers(start, end)), function, number)
        for number, (file, function, start, end) in enumerate(drawn)
    ]
    told = traced_versions(frames).get(lines.package)
    assert told is None or Version(told).release[:2] == Version(lines.releases[release]).release[:2]


def test_the_traceback_tells_the_version_and_with_it_the_steps_that_exist(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(LOG.format(verl=VERL))
    state = open_session(SessionRequest(None, logs=(log,), model="Qwen/Qwen2.5-32B"))
    assert state.crash.traced == {"verl": "0.5.0"}
    assert any("verl 0.5.0" in note for note in state.run.notes)
    assert "entropy-in-chunks" in {step.id for step in state.plan.steps}


@pytest.mark.parametrize(
    "places",
    [
        [("workers/fsdp_workers.py", 764, "compute_log_prob")],  # one alone
        [("workers/fsdp_workers.py", 764, "compute_log_prob"), ("workers/actor/dp_actor.py", 9999, "compute_log_prob")],
        [("workers/my_worker.py", 12, "step"), ("workers/my_worker.py", 30, "run")],
        [  # a function of a fork's own beside two that a release has on these lines
            ("workers/fsdp_workers.py", 764, "compute_log_prob"),
            ("workers/actor/dp_actor.py", 338, "compute_log_prob"),
            ("workers/actor/dp_actor.py", 400, "update_by_my_method"),
        ],
    ],
)
def test_what_no_release_has_tells_none(places: list[tuple[str, int, str]]) -> None:
    assert not traced_versions(Frame(VERL + file, line, function, 1) for file, line, function in places)


def test_a_source_tree_says_which_release_it_is() -> None:
    assert traced_versions([Frame("/opt/llm/verl-0.7/verl/utils/of_ours.py", 250, "of_ours", 1)]) == {"verl": "0.7"}
    assert not traced_versions([Frame("/opt/envs/py3.10/verl/utils/of_ours.py", 250, "of_ours", 1)])


@pytest.mark.parametrize(("tree", "told"), [("site-packages", True), ("verl-main", True), ("EasyR1", False)])
def test_a_fork_that_carries_the_package_has_versions_of_its_own(tree: str, told: bool) -> None:
    places = (("fsdp_workers.py", 764), ("actor/dp_actor.py", 338))
    frames = [Frame(f"/x/{tree}/verl/workers/{file}", line, "compute_log_prob", 1) for file, line in places]
    assert bool(traced_versions(frames)) is told
