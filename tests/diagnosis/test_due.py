"""A checkpoint or an evaluation is blamed where it was due, and not where it was not."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from advisor.diagnosis.event_facts import due_facts
from advisor.run.run import Knob, Run
from advisor.script.document import Setting
from tests.loops import each
from tests.memory.made_runs import made_run


def run_of(knobs: Mapping[str, Knob]) -> Run:
    return replace(made_run(1)[0], knobs=knobs)


@each(
    ("every", "done", "due", "first"),
    [
        (500, 37, False, None),
        (500, 500, True, True),
        (50, 500, True, False),
        (20, 19, True, True),  # verl prints a step behind what comes with it
        (1, 7, None, None),
        (2, 7, None, None),
        (-1, 7, False, None),
        (0.1, 7, None, None),
        (500, None, None, None),
    ],
)
def test_the_interval_tells_what_was_due(every: float, done: int | None, due: bool | None, first: bool | None) -> None:
    facts = due_facts(run_of({"checkpoint.every": Knob("checkpoint.every", every, "script", "save_steps")}), done)
    assert (facts["save.due"].value if "save.due" in facts else None) is due
    assert (facts["save.first"].value if "save.first" in facts else None) is first


def test_an_interval_without_a_dialect_counts_by_its_usual_name() -> None:
    for key, value, due in (("save_steps", 500, {"save.due": True, "save.first": True}), ("save_total_limit", 5, {})):
        run = replace(run_of({}), framework="unknown", settings=(Setting(key, value, "command"),))
        assert {name: fact.value for name, fact in due_facts(run, 500).items()} == due


def test_a_save_that_is_counted_in_epochs_or_off_is_not_due_by_its_steps() -> None:
    every = Knob("checkpoint.every", 500, "default", "save_steps")
    for when, due in (("epoch", {}), ("no", {"save.due": False})):
        knobs = {"checkpoint.every": every, "checkpoint.when": Knob("checkpoint.when", when, "script", "save_strategy")}
        assert {name: fact.value for name, fact in due_facts(run_of(knobs), 500).items()} == due
