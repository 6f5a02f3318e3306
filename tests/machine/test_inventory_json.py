"""The contract's machine block, there and back."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from advisor.machine.inventory import Gpu, GpuProcess, Host, Machine
from advisor.machine.inventory_json import from_json, to_json

FULL = Machine(
    nodes=2,
    gpus=(
        Gpu(
            index=0,
            name="NVIDIA A100",
            total_bytes=40,
            used_bytes=20,
            uuid="GPU-1",
            utilisation=97,
            temperature=60,
            power_watts=300.5,
            power_limit_watts=400.0,
            processes=(GpuProcess(1, None, "me", 12.5, 99, "python"), GpuProcess(2, 5)),
            reserved_bytes=3,
            ecc_errors=0,
            throttle=("power cap",),
        ),
        Gpu(1, "NVIDIA A100 MIG 3g.20gb", None, mig="3g.20gb", parent=1, problem="GPU is lost"),
    ),
    host=Host(100, 50, 50, 90, 45, "cgroup v2 x", 1, 10, 1, 64, 2),
    libraries={"torch": "2.5.1"},
    environment="/opt/conda",
    driver="550",
    sources={"gpus": "measured", "host.total": "log"},
    problems=("something",),
)


def test_everything_survives_json():
    assert from_json(json.loads(json.dumps(to_json(FULL)))) == FULL


def test_unknown_stays_unknown():
    assert from_json(json.loads(json.dumps(to_json(Machine(gpus=(Gpu(0, "x", None),)))))) == Machine(
        gpus=(Gpu(0, "x", None),)
    )


def test_the_contracts_fields_are_there():
    block = to_json(FULL)
    assert {"nodes", "gpus", "host", "libraries", "sources"} <= set(block)
    assert {"index", "name", "total_bytes", "used_bytes"} <= set(block["gpus"][0])
    assert {"total_bytes", "limit_bytes", "shm_bytes"} <= set(block["host"])
    assert block["gpus"][0]["usable_bytes"] == 37


def test_the_contracts_fields_are_enough():
    machine = from_json(
        {
            "nodes": 1,
            "gpus": [{"index": 0, "name": "A100", "total_bytes": 5, "used_bytes": None}],
            "host": {"total_bytes": 7, "limit_bytes": None, "shm_bytes": 1},
            "libraries": {"Flash_Attn": "2.7"},
            "sources": {"gpus": "described", "host.total": "a guess"},
            "something_new": [1, 2],
        }
    )
    assert machine.gpus == (Gpu(0, "A100", 5),)
    assert (machine.host.total_bytes, machine.host.shm_bytes) == (7, 1)
    assert (machine.libraries, machine.sources) == ({"flash-attn": "2.7"}, {"gpus": "described"})


def test_text_from_a_file_is_cleaned():
    machine = from_json({"gpus": [{"name": "A\x1b]0;owned\x07B"}], "libraries": {"torch": "2\x1b[31m"}})
    assert (machine.gpus[0].name, machine.libraries["torch"]) == ("AB", "2")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(
    ["nodes", "gpus", "host", "libraries", "sources", "problems", "driver", "environment", "machine"]
)
gpu_keys = st.sampled_from(["index", "name", "total_bytes", "processes", "throttle", "power_watts"])
gpus = st.lists(st.dictionaries(gpu_keys, json_values, max_size=4), max_size=2)


def machine_or_sentence(stated: object) -> Machine | str:
    try:
        return from_json(stated)
    except ValueError as error:
        return str(error)


@given(st.dictionaries(keys, json_values | gpus, max_size=6))
def test_any_json_is_a_machine_or_one_sentence(stated: dict[str, object]):
    answer = machine_or_sentence(stated)
    if isinstance(answer, str):
        assert "\n" not in answer
    else:
        assert from_json(json.loads(json.dumps(to_json(answer)))) == answer
