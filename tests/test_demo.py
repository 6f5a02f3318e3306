"""The bundled crash, as `--demo` shows it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import jsonschema
import pytest

from advisor.demo import demo_files
from advisor.units import GIB
from tests.machine_file import read_machine_file


@pytest.fixture(scope="module")
def told():
    done = subprocess.run(
        [sys.executable, "-m", "advisor", "diagnose", "--demo", "--format", "json"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_its_files_are_there():
    demo = demo_files()
    assert demo.script.is_file()
    assert demo.log.is_file()
    machine = read_machine_file(demo.machine)
    assert (len(machine.gpus), machine.host.total_bytes) == (8, 760 * GIB)


def test_it_keeps_the_contract(told):
    schema = json.loads((demo_files().script.parents[3] / "docs" / "contract.schema.json").read_text())
    validator: Callable[[object], None] = jsonschema.Draft202012Validator(
        {**schema, "anyOf": [{"$ref": "#/$defs/diagnose"}]}
    ).validate
    validator(told)


def test_host_ram_ran_out_while_the_actor_was_updated(told):
    assert (told["run"]["framework"], told["crash"]["memory"]) == ("easyr1", "host")
    first = told["crash"]["evidence"][0]
    assert "726.33GB / 760.00GB" in first["text"]
    assert told["diagnosis"]["memory"] == "host"


def test_the_offload_switches_are_found_where_they_are_decided(told):
    decided = {s["key"]: s for s in told["run"]["settings"] if s["effective"]}
    for key in ("worker.actor.offload.offload_params", "worker.actor.offload.offload_optimizer"):
        assert decided[key]["value"] == "true"
        assert decided[key]["file"].endswith("vl.yaml")


def test_the_plan_turns_offload_off_and_is_checked_on_the_cards(told):
    changed = {c["key"]: c["new"] for step in told["plan"] if step["selected"] for c in step["changes"]}
    assert "false" in {changed.get(f"worker.actor.offload.{name}") for name in ("offload_params", "offload_optimizer")}
    assert told["after"]["gpu"]["phases"]


def test_a_version_that_mends_two_faults_is_one_step(told):
    steps = [step["id"] for step in told["plan"]]
    assert len(steps) == len(set(steps))
    assert sum(advisory["library"] == "vllm" for advisory in told["diagnosis"]["advisories"]) > 1
