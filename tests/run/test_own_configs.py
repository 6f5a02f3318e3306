"""A program that reads a config of its own has that one's values, and never those of another program's."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session
from advisor.state import State


def opened(folder: Path, command: str, *, version: str = "0.5.0") -> State:
    (folder / "run.sh").write_text(command + " cluster.gpus_per_node=8\n")
    answers = {"memory": "gpu", "phase": "actor_update"}
    libraries = (f"nemo-rl={version}",)
    return open_session(SessionRequest(folder / "run.sh", gpus="8xH100-80GB", libraries=libraries, answers=answers))


@pytest.mark.parametrize(
    ("program", "length", "checkpointing"),
    [("run_grpo_math.py", 512, False), ("run_grpo_sliding_puzzle.py", 1024, True), ("run_grpo_rm.py", 512, False)],
)
def test_defaults_are_those_of_the_config_that_the_program_reads(
    tmp_path: Path, program: str, length: int, checkpointing: bool
) -> None:
    run = opened(tmp_path, f"uv run python examples/{program}").run
    assert run.knobs["data.total_tokens"].value == length
    assert run.knobs["actor.gradient_checkpointing"].value is checkpointing
    assert run.missing_files == ()


def test_the_config_is_that_of_the_version(tmp_path: Path) -> None:
    run = opened(tmp_path, "python examples/run_grpo_sliding_puzzle.py", version="0.3.1").run
    assert run.knobs["data.total_tokens"].value == 3072
    assert any("reads examples/configs/grpo_sliding_puzzle.yaml where the command" in doubt for doubt in run.doubts)


@pytest.mark.parametrize("program", ["examples/run_vlm_grpo.py", "mine/run_grpo_my_game.py"])
def test_of_a_program_whose_config_is_not_known_no_value_is_a_default(tmp_path: Path, program: str) -> None:
    state = opened(tmp_path, f"python {program}")
    assert state.run.missing_files
    assert not [knob for knob in state.run.knobs.values() if knob.source == "default"]
    named = [change.old_words for step in state.plan.steps for change in step.changes]
    assert not [words for words in named if words is not None and "default" in words]


def test_a_config_that_the_command_names_is_the_one_that_counts(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("policy:\n  max_total_sequence_length: 777\n")
    run = opened(tmp_path, "python examples/run_grpo_sliding_puzzle.py --config c.yaml").run
    assert run.knobs["data.total_tokens"].value == 777
    assert not any("where the command names no config" in doubt for doubt in run.doubts)
