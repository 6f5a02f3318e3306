"""The JSON contract."""

from __future__ import annotations

import json

import pytest

from advisor.crash.evidence import Evidence
from advisor.memory.fit import Walls, fit_of
from advisor.report.json_report import (
    diagnose_json,
    encode,
    estimate_json,
    machine_file,
    scan_json,
)
from advisor.run_file import sizing_of
from advisor.units import GIB
from tests.loops import each
from tests.replacing import replace
from tests.report.sitting import OFFLOAD, crash, ledger, machine, sitting, unknown_sitting


def read_back(value):
    return json.loads(encode(value))


@pytest.mark.parametrize("state", [sitting(), unknown_sitting()], ids=["known", "unknown"])
def test_a_diagnosis_keeps_the_contract(state, validate):
    validate(read_back(diagnose_json(state)), "diagnose")


@pytest.mark.parametrize("state", [sitting(), unknown_sitting()], ids=["known", "unknown"])
def test_an_estimate_keeps_the_contract(state, validate):
    validate(read_back(estimate_json(sizing_of(state))), "estimate")


def test_a_scan_and_a_machine_keep_the_contract(validate):
    validate(read_back(scan_json(crash())), "scan")
    validate(read_back(machine_file(machine())), "machine_file")


def test_the_contract_refuses_a_word_it_does_not_know(validate):
    wrong = read_back(diagnose_json(sitting()))
    wrong["crash"]["phase"] = "backward"
    with pytest.raises(Exception, match="backward"):
        validate(wrong, "diagnose")


def test_every_place_that_sets_a_key_is_listed_in_order_with_its_bytes():
    settings = diagnose_json(sitting())["run"]["settings"]
    assert [s["key"] for s in settings] == [OFFLOAD, "data.files", "lora_targets"]
    assert settings[0] == {
        "key": OFFLOAD,
        "value": "true",
        "resolved": True,
        "effective": True,
        "file": "conf/vl.yaml",
        "line": 22,
        "start": 610,
        "end": 614,
        "origin": "file",
    }
    assert (settings[1]["value"], settings[1]["resolved"], settings[1]["reason"]) == (None, False, "$DATA is not set")
    assert settings[2]["value"] == ["q_proj", "v_proj"]
    assert settings[2]["effective"] is False


def test_the_first_cause_comes_first_and_sizes_are_whole_bytes():
    first = diagnose_json(sitting())["crash"]["evidence"][0]
    assert (first["signature"], first["file"], first["line"]) == ("ray-memory-kill", "train.log", 207)
    assert first["fields"]["total_bytes"] == 760 * GIB


def test_plan_says_what_changes_and_what_is_saved_in_which_phase():
    step = diagnose_json(sitting())["plan"][0]
    (change,) = step["changes"]
    assert (change["key"], change["old"], change["new"]) == (OFFLOAD, "true", "false")
    assert (change["file"], change["line"], change["how"]) == ("run.sh", 9, "added as an override")
    assert step["saves_bytes"] == {"actor_update": 64 * GIB}
    assert step["other_place_saves_bytes"] == {"rollout_generate": -8 * GIB}
    assert step["selected"] is True


def test_after_has_the_shape_of_memory_and_other_numbers():
    told = diagnose_json(sitting())
    assert set(told["after"]) == set(told["memory"])
    now, later = (told[name]["host"]["phases"][0]["expected_bytes"] for name in ("memory", "after"))
    assert now - later == 64 * GIB


def test_floats_are_rounded_and_what_is_no_number_is_null():
    odd = Evidence("s", "cause", "f", 1, "t", fields={"a": 0.1 + 0.2, "b": float("inf"), "c": float("nan"), "d": 7})
    assert read_back(scan_json(replace(crash(), evidence=(odd,))))["crash"]["evidence"][0]["fields"] == {
        "a": 0.3,
        "b": None,
        "c": None,
        "d": 7,
    }


def test_the_text_is_ascii_so_that_no_locale_can_break_it():
    odd = replace(sitting().crash, evidence=(Evidence("s", "cause", "f", 1, "显存不足 \ud800"),))
    text = encode(scan_json(odd))
    assert text.isascii()
    assert json.loads(text)["crash"]["evidence"][0]["text"] == "显存不足 \ud800"


def test_the_same_state_gives_the_same_bytes():
    assert encode(diagnose_json(sitting())) == encode(diagnose_json(sitting()))


@each(
    ("gpu", "host", "expected"),
    [(40, 760, True), (10, 760, False), (40, 300, False), (None, 760, None), (None, 300, False), (None, None, None)],
)
def test_a_run_fits_only_where_card_and_host_do(gpu, host, expected):
    known = replace(
        ledger(False),
        gpu_capacity=None if gpu is None else gpu * GIB,
        host_limit=None if host is None else host * GIB,
    )
    assert fit_of(known, Walls(0.08), sitting().run).fits is expected
