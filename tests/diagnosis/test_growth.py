"""Many done steps show that host memory grew."""

from __future__ import annotations

from pathlib import Path

from advisor.diagnosis.fact import Fact, Facts, contradicted, holds
from advisor.diagnosis.tree import walk
from advisor.knowledge import load_knowledge
from advisor.report.short_report import short_report
from advisor.rules.expression import Expression
from advisor.session import SessionRequest, open_session
from tests.loops import each

K = load_knowledge()


def facts_of(**values: object) -> Facts:
    return {name.replace("__", "."): Fact(value, "log", "said") for name, value in values.items()}  # type: ignore[arg-type]


@each(
    ("steps", "phase", "cause"),
    [
        (45, None, "host-growth"),
        (45, "rollout_generate", "host-growth"),
        (45, "checkpoint", "checkpoint-in-ram"),
        (4, "rollout_generate", "host-too-small"),
    ],
)
def test_what_had_room_for_many_steps_has_grown(steps: int, phase: str | None, cause: str) -> None:
    known = facts_of(memory="host", steps_done=steps, first_step=False, **({"phase": phase} if phase else {}))
    assert walk(K.tree, known, {}).cause.id == cause


def test_groups_of_conditions_may_hold_groups() -> None:
    inner = "steps_done >= 10 and not known(phase)"
    rule = Expression(f"sleep or {inner}")
    assert holds(rule, facts_of(steps_done=12)) is not None
    assert holds(rule, facts_of(steps_done=9)) is None
    assert holds(rule, facts_of(steps_done=12, phase="validation")) is None
    assert contradicted(Expression(inner), facts_of(steps_done=9))
    assert not contradicted(Expression(inner), facts_of(sleep=True))


def test_a_run_without_rollouts_is_asked_about_no_engine(tmp_path: Path) -> None:
    script = tmp_path / "run.yaml"
    keys = {
        "model_name_or_path": "Qwen/Qwen3-8B",
        "stage": "sft",
        "finetuning_type": "lora",
        "dataset": "mine",
        "template": "qwen",
    }
    script.write_text("".join(f"{key}: {value}\n" for key, value in keys.items()))
    answers = {"memory": "host", "host_growth": "yes", "host_limit": "no"}
    state = open_session(SessionRequest(script, host_ram="669GB", answers=answers))
    told = short_report(state)
    assert "workers" in told
    assert "engine" not in told
    assert "object store" not in told
