"""The text of an estimate has every cell's arithmetic from end to end, and says equal phases once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.cli import main

SCRIPT = "NPROC_PER_NODE=8 swift rlhf --rlhf_type ppo --model Qwen/Qwen2.5-7B --tuner_type full --deepspeed zero3\n"
BOX = ["--gpus", "8xA100-80GB", "--host-ram", "900GB"]


@pytest.fixture
def said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, list[dict[str, object]]]:
    file = tmp_path / "run.sh"
    file.write_text(SCRIPT)
    main(["estimate", str(file), *BOX])
    text = capsys.readouterr().out
    main(["estimate", str(file), *BOX, "--format", "json"])
    return text, json.loads(capsys.readouterr().out)["memory"]["gpu"]["phases"]


def test_no_formula_is_cut_and_no_line_is_wider_than_a_terminal(said: tuple[str, list[dict[str, object]]]) -> None:
    text, phases = said
    flat = " ".join(text.split())
    formulas = {str(item["formula"]) for phase in phases for item in phase["items"]}  # type: ignore[attr-defined]
    assert any(len(formula) > 120 for formula in formulas)
    assert not [formula for formula in formulas if formula not in flat]
    assert max(len(line) for line in text.splitlines()) <= 80


def test_phases_that_hold_the_same_stand_together(said: tuple[str, list[dict[str, object]]]) -> None:
    text, phases = said
    alike = [phase for phase in phases if phase["phase"] in ("rollout_generate", "validation")]
    assert alike[0]["items"] == alike[1]["items"]
    assert "  generating rollouts, validation: " in text
