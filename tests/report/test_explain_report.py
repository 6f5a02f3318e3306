"""explain: everything with an id can be asked about."""

from __future__ import annotations

import pytest

from advisor.hostile import cells
from advisor.report.explain_report import UnknownIdError, all_ids, explain_report
from tests.loops import each
from tests.report.sitting import KNOWLEDGE, OFFLOAD


@each(
    ("wanted", "said"),
    [
        ("actor.optimizer_offload", "a knob"),
        (OFFLOAD, "a setting of EasyR1"),
        ("RAY_memory_usage_threshold", "an environment variable of EasyR1"),
        ("host-copies", "a cause"),
        ("turn-off-optimizer-offload", "a remedy (setting)"),
        ("ray-memory-kill", "a crash line"),
        ("memory", "a question"),
        ("deepspeed-0.16-leak", "an advisory for deepspeed"),
        ("easyr1-59", "a documented case (plausible)"),
        ("easyr1", "a framework"),
    ],
)
def test_every_kind_of_id_is_explained(wanted, said):
    assert said in explain_report(KNOWLEDGE, wanted)


def test_everything_listed_can_be_explained_in_78_columns():
    for wanted in all_ids(KNOWLEDGE):
        assert [line for line in explain_report(KNOWLEDGE, wanted).splitlines() if cells(line) > 78] == []


def test_a_knob_names_the_settings_that_carry_it_in_every_dialect():
    said = explain_report(KNOWLEDGE, "actor.optimizer_offload")
    assert f"easyr1: {OFFLOAD}" in said
    assert "verl: actor_rollout_ref.actor.fsdp_config.optimizer_offload" in said
    assert "turn-off-optimizer-offload" in said


def test_a_setting_says_where_memory_moves_and_from_where_that_is_known():
    said = explain_report(KNOWLEDGE, OFFLOAD)
    assert "lowers GPU memory in the actor update" in said
    assert "raises host RAM in every phase" in said
    assert "source: EasyR1@b44b311 config.py:1" in said


def test_dashes_of_a_flag_are_not_part_of_its_name():
    assert explain_report(KNOWLEDGE, f"--{OFFLOAD}") == explain_report(KNOWLEDGE, OFFLOAD)


def test_a_misspelt_id_gets_close_ones():
    with pytest.raises(UnknownIdError) as refused:
        explain_report(KNOWLEDGE, "ray-memory-kil")
    assert refused.value.close[0] == "ray-memory-kill"


def test_a_part_of_a_key_finds_the_keys_that_hold_it():
    with pytest.raises(UnknownIdError) as refused:
        explain_report(KNOWLEDGE, "offload_optimize")
    assert OFFLOAD in refused.value.close
    assert f"{OFFLOAD}: a setting" in explain_report(KNOWLEDGE, "offload_optimizer")


def test_nothing_alike_gives_no_guesses():
    with pytest.raises(UnknownIdError) as refused:
        explain_report(KNOWLEDGE, "zzzzqqqq")
    assert refused.value.close == ()
