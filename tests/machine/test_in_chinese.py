"""What a machine lacks, and what is wrong with what was said of it, in Chinese."""

from pathlib import Path

import pytest

from advisor.language import CHINESE, speak, unsaid
from advisor.machine.describe import described
from advisor.machine.inventory import Gpu, Host, Machine
from advisor.machine.measure import measure
from advisor.machine.nodes import join_nodes
from advisor.machine.nvml import SENTENCES
from advisor.units import GIB
from tests.loops import each

from .facts import FACTS
from .fake_nvml import FakeNvml


@pytest.fixture(autouse=True)
def _chinese():
    speak(CHINESE)
    yield
    assert not unsaid()


def node(name, ram, torch, used=0):
    cards = tuple(Gpu(index, "A100", 40 * GIB, used if index == 0 else 0) for index in range(2))
    return Machine(1, cards, Host(total_bytes=ram * GIB), {"torch": torch}, name=name)


def test_nodes_that_differ_are_told_apart():
    joined = join_nodes([node("n1", 512, "2.5.1"), node("n2", 512, "2.5.1"), node("", 256, "2.4.0", 9 * GIB)])
    assert joined.members[2].name == "节点 3"
    assert "各节点不一致（torch）：节点 3 为 2.4.0；其余 2 个 为 2.5.1。" in joined.problems
    assert "已被占用的卡：节点 3 GPU 0 9.00 GiB。" in joined.problems
    assert any("它最先崩溃" in problem for problem in joined.problems)


def test_what_cannot_be_read_is_said(tmp_path):
    machine = measure(nvml=FakeNvml(init_error=12), environ={"PATH": ""}, root=tmp_path)
    assert machine.problems[0].startswith("NVML：这台机器上没有驱动库")
    assert machine.problems[1].startswith("PATH 中没有 Python")


def test_every_refusal_of_the_driver_has_a_sentence():
    assert all(SENTENCES[trouble].endswith("。") for trouble in SENTENCES)


@each(
    ("given", "told"),
    [
        ({"gpus": "8xFooCard"}, "--gpus：不认识 GPU 'FooCard'"),
        ({"nodes": 0}, "训练至少有一个节点"),
        ({"host_ram": "much"}, "--host-ram："),
        ({"libraries": ["torch"]}, "--lib：'torch' 不是 NAME=VERSION"),
    ],
)
def test_wrong_flags_are_named(given, told):
    with pytest.raises(ValueError, match="：") as wrong:
        described(FACTS, **given)
    assert told in str(wrong.value)


def test_a_wrong_machine_file_is_named(tmp_path):
    path = Path(tmp_path) / "machine.json"
    path.write_text('{"nodes": 1, "gpus": 3}')
    with pytest.raises(ValueError, match="gpus 必须是列表，不能是 '3'"):
        described((), machine_files=[path])
