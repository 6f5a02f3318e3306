"""Exactly what was planned may differ between two configs that a framework understood."""

from __future__ import annotations

from advisor.plan.plan import Change
from tests.real_parsers.compare import differences

BEFORE = {"actor.micro_batch": 8, "actor.fused": False, "rollout.share": 0.6, "packing_samples": False}


def said(after: dict[str, object], *changes: Change, derived: dict[str, list[str]] | None = None) -> list[str]:
    return [fault.key for fault in differences(BEFORE, {**BEFORE, **after}, changes, derived)]


def test_a_planned_value_that_arrives_is_no_fault() -> None:
    assert said({"actor.micro_batch": 4}, Change("actor.micro_batch", "8", "4")) == []
    assert said({"actor.fused": True}, Change("++actor.fused", None, "True")) == []
    assert said({"rollout.share": 1}, Change("rollout.share", "0.6", "1.0")) == []


def test_a_flag_is_found_under_the_name_that_argparse_gives_it() -> None:
    assert said({"packing_samples": True}, Change("--packing-samples", None, "true", bare=True)) == []


def test_a_value_that_does_not_arrive_is_a_fault() -> None:
    assert said({}, Change("actor.micro_batch", "8", "4")) == ["actor.micro_batch"]


def test_a_value_that_arrives_as_another_type_is_a_fault() -> None:
    assert said({"actor.micro_batch": "4"}, Change("actor.micro_batch", "8", "4")) == ["actor.micro_batch"]


def test_a_name_that_the_framework_does_not_have_is_a_fault() -> None:
    assert said({}, Change("actor.offload", None, "true")) == ["actor.offload"]


def test_what_the_parser_switches_on_by_itself_is_a_fault_unless_it_follows_from_the_plan() -> None:
    changes = Change("actor.fused", "False", "True")
    after = {"actor.fused": True, "packing_samples": True}
    assert said(after, changes) == ["packing_samples"]
    assert said(after, changes, derived={"packing_samples": ["actor.fused"]}) == []
    assert said(after, changes, derived={"packing_samples": ["rollout.share"]}) == ["packing_samples"]


def test_what_was_to_be_taken_out_and_stays_is_a_fault() -> None:
    assert said({}, Change("rollout.share", "0.6", None)) == ["rollout.share"]
    assert said({"rollout.share": 0.9}, Change("rollout.share", "0.6", None)) == []
