"""Several nodes become one machine; what differs is told with names, and who dies first."""

from __future__ import annotations

import json
import time

import pytest

from advisor.machine.describe import described, read_machine_files
from advisor.machine.inventory import Gpu, Host, Machine
from advisor.machine.inventory_json import from_json, to_json
from advisor.machine.nodes import differences, first_to_die, join_nodes, named
from advisor.report.machine_report import machine_report
from advisor.units import GIB
from tests.machine_file import read_machine_file
from tests.replacing import replace


def node(name, **changes):
    host = Host(2015 * GIB, available_bytes=1900 * GIB, shm_bytes=1000 * GIB)
    cards = tuple(Gpu(index, "NVIDIA H100 80GB HBM3", 80 * GIB, used_bytes=GIB // 2) for index in range(8))
    known = Machine(1, cards, host, {"torch": "2.5.1", "vllm": "0.8.5"}, driver="550.54.15", name=name)
    return replace(known, **changes)


def test_the_odd_nodes_out_are_named_and_the_many_are_counted():
    nodes = [node(f"n{place:02d}") for place in range(16)]
    nodes[3], nodes[7] = node("n03", driver="535.54.03"), node("n07", libraries={"torch": "2.4.0", "vllm": "0.8.5"})
    said = differences(nodes)
    assert said == [
        "The nodes differ in the driver: 535.54.03 on n03; 550.54.15 on the 15 others.",
        "The nodes differ in torch: 2.4.0 on n07; 2.5.1 on the 15 others.",
    ]


def test_nodes_that_differ_by_what_firmware_takes_are_alike():
    hosts = [Host(2015 * GIB + place * GIB // 4, available_bytes=1900 * GIB) for place in range(8)]
    assert differences([node(f"n{place}", host=host) for place, host in enumerate(hosts)]) == []


def test_the_node_with_the_least_left_for_a_run_is_the_first_to_die():
    short = node("n2", host=Host(2015 * GIB, available_bytes=1200 * GIB))
    limited = node("n3", host=Host(2015 * GIB, available_bytes=1900 * GIB, limit_bytes=900 * GIB, limit_used_bytes=0))
    assert first_to_die([node("n1"), short]).name == "n2"
    assert first_to_die([node("n1"), short, limited]).name == "n3"
    assert first_to_die([node("n1"), node("n2")]) is None
    assert "n3 has the least host memory for a run, 900.00 GiB" in " ".join(differences([node("n1"), short, limited]))


def test_of_nodes_of_one_size_the_fullest_stands_for_all():
    full = node("n2", host=Host(2015 * GIB, available_bytes=400 * GIB))
    assert join_nodes([node("n1"), full, node("n3")]).host.available_bytes == 400 * GIB
    none = node("n2", host=Host(2015 * GIB, available_bytes=0))
    assert join_nodes([none, node("n1")]).host.available_bytes == 0


def test_cards_that_somebody_holds_before_the_run_are_named():
    busy = tuple(
        Gpu(index, "NVIDIA H100 80GB HBM3", 80 * GIB, used_bytes=12 * GIB * (index == 5)) for index in range(8)
    )
    assert "n2 GPU 5 12.00 GiB" in " ".join(differences([node("n1"), node("n2", gpus=busy)]))


def test_members_keep_their_own_facts_and_survive_json():
    joined = join_nodes([node("n1"), node("n2", driver="535.54.03")])
    again = from_json(json.loads(json.dumps(to_json(joined))))
    assert [member.name for member in again.members] == ["n1", "n2"]
    assert again.members[1].driver == "535.54.03"
    assert again.nodes == 2


def test_nodes_of_one_name_are_told_apart():
    assert [one.name for one in named([node("a"), node("a"), node("")])] == ["a", "a (2)", "node 3"]


def test_what_one_node_alone_complains_of_keeps_its_name():
    joined = join_nodes([node("n1"), node("n2", problems=("GPU 3: GPU is lost.",))])
    assert "n2: GPU 3: GPU is lost." in joined.problems


@pytest.mark.parametrize("label", [False, True])
def test_one_file_may_hold_what_srun_collected(tmp_path, label):
    texts = [json.dumps(to_json(node(f"n{place}")), indent=1) for place in range(3)]
    if label:
        texts = ["\n".join(f"{place}: {line}" for line in text.splitlines()) for place, text in enumerate(texts)]
    file = tmp_path / "all.json"
    file.write_text("\n".join(texts) + "\n")
    assert [one.name for one in read_machine_files(file)] == ["n0", "n1", "n2"]
    assert read_machine_file(file).nodes == 3


def test_a_hundred_and_twenty_eight_nodes_are_merged_and_shown_within_a_second(tmp_path):
    files = []
    for place in range(128):
        changes = {"driver": "535.54.03"} if place in (5, 77) else {}
        files.append(tmp_path / f"{place:03d}.json")
        files[-1].write_text(json.dumps(to_json(node(f"n{place:03d}", **changes))))
    began = time.perf_counter()
    text = machine_report(described((), machine_files=files))
    assert time.perf_counter() - began < 1.0
    assert "535.54.03 on n005, n077" in text
    assert "and 116 more nodes" in text
