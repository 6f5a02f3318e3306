"""AMD and Ascend cards: read by their own tools, with the gates that NVML has; boxes with none, one and two vendors."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.machine.amd import TROUBLES as AMD_TROUBLES
from advisor.machine.amd import AmdReader, read_json
from advisor.machine.ascend import TROUBLES as NPU_TROUBLES
from advisor.machine.ascend import npu_reader, read_table
from advisor.machine.cards import AllCards, CardReader
from advisor.machine.inventory import Host
from advisor.machine.inventory_json import from_json, to_json
from advisor.machine.live import Gauges
from advisor.machine.measure import measure
from advisor.machine.nvml import NvmlReader
from advisor.machine.processes import unseen_bytes
from advisor.machine.tool import ToolAnswer, ToolReader, run_tool
from tests.loops import each

from . import fake_amdsmi
from .fake_nvml import MIB, Card, FakeNvml

GIB = 2**30
HEAD = """+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc2                 Version: 24.1.rc2                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
"""
CARD = """| {npu}     {name}               | {health:13} | 93.2        37                0    / 0             |
| {chip}                         | 0000:C1:00.0  | 12          0    / 0          {used:5}/ 65536         |
+===========================+===============+====================================================+
"""
PROCESSES = """+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
"""
TWO_CHIPS = """| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
| 0     Ascend910           | OK            | 178.5       36                0    / 0             |
| 0     0                   | 0000:9D:00.0  | 0           0    / 0          3416 / 65536         |
| 0     Ascend910           | OK            | -           36                0    / 0             |
| 1     1                   | 0000:9F:00.0  | 0           0    / 0          3195 / 65536         |
| NPU     Chip              | Process id    | Process name       | Process memory(MB)    | Process id in container |
| 0       1                 | 171273        |                    | 48954                 | 77                      |
"""


def table(*used: int, processes: str = "", health: str = "OK") -> str:
    cards = (CARD.format(npu=npu, name="910B3", chip=0, used=size, health=health) for npu, size in enumerate(used))
    return HEAD + "".join(cards) + PROCESSES + processes


class Tool:
    """Stands in for a tool: its answers in order, the last one again and again."""

    def __init__(self, *answers: ToolAnswer) -> None:
        self.answers, self.asked = list(answers), 0

    def __call__(self, words: Sequence[str]) -> ToolAnswer:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def npus(*answers: ToolAnswer, now: list[float] | None = None) -> ToolReader:
    ticks = now if now is not None else [0.0]
    return npu_reader(Tool(*answers), lambda: ticks[0])


def test_the_table_tells_cards_memory_load_and_who_holds_them() -> None:
    text = table(3372, 61000, processes="| 1       0                 | 4242          | python3    | 57000      |\n")
    first, second = read_table(text).gpus
    assert (first.name, first.total_bytes, first.used_bytes) == ("Ascend 910B3", 64 * GIB, 3372 * MIB)
    assert (first.utilisation, first.temperature, first.power_watts, first.problem) == (12, 37, 93.2, "")
    assert first.usable_bytes == int(60.96 * GIB), "what torch prints as total capacity"
    assert first.processes == ()
    assert second.processes is not None
    assert [(one.pid, one.used_bytes) for one in second.processes] == [(4242, 57000 * MIB)]


def test_two_chips_of_one_npu_are_two_cards_and_a_container_has_process_ids_of_its_own() -> None:
    first, second = read_table(TWO_CHIPS).gpus
    assert [(one.index, one.name, one.power_watts) for one in (first, second)] == [
        (0, "Ascend910", 178.5),
        (1, "Ascend910", None),
    ]
    assert second.processes is not None
    assert second.processes[0].pid == 77


def test_a_card_that_is_not_well_says_so_and_is_read_all_the_same() -> None:
    (gpu,) = read_table(table(100, health="Alarm")).gpus
    assert "Alarm" in gpu.problem
    assert not gpu.is_silent


@each(
    ("answer", "trouble"),
    [
        (ToolAnswer(missing=True), "missing"),
        (ToolAnswer(hangs=True), "hangs"),
        (
            ToolAnswer("DrvMngGetConsoleLogLevel failed. (ret=4)\ndcmi module initialize failed. ret is -8005\n"),
            "-8005",
        ),
        (ToolAnswer("dcmi model initialized failed, because the device is used. ret is -8020\n"), "-8020"),
        (ToolAnswer("something else\n"), "unread"),
    ],
)
def test_where_npu_smi_tells_of_no_card_it_is_said_why(answer: ToolAnswer, trouble: str) -> None:
    assert npus(answer).open() == NPU_TROUBLES[trouble]


def test_npu_smi_is_not_asked_again_at_once_and_a_driver_that_falls_silent_is_said() -> None:
    now = [0.0]
    reader = npus(ToolAnswer(table(100)), ToolAnswer(table(200)), ToolAnswer(hangs=True), now=now)
    assert reader.open() is None
    assert reader.used() == [100 * MIB]
    now[0] = 3.0
    assert reader.used() == [200 * MIB]
    now[0] = 6.0
    (gpu,) = reader.snapshot()
    assert (gpu.used_bytes, gpu.problem) == (None, NPU_TROUBLES["hangs"])


def test_amdsmi_tells_cards_and_processes() -> None:
    card = fake_amdsmi.Card(used=100 * GIB, processes=[(7, 90 * GIB)])
    reader = AmdReader(fake_amdsmi.FakeAmdsmi(card), run=Tool(ToolAnswer(missing=True)))
    assert reader.open() is None
    (gpu,) = reader.snapshot()
    assert (gpu.name, gpu.total_bytes, gpu.used_bytes, gpu.vendor) == (card.name, 192 * GIB, 100 * GIB, "amd")
    assert (gpu.utilisation, gpu.temperature, gpu.power_watts, gpu.ecc_errors) == (87, 61, 512.0, 0)
    assert (reader.used(), reader.holders(), reader.driver) == ([100 * GIB], {(0, 7): 90 * GIB}, "6.8.5")


@pytest.mark.parametrize(("code", "trouble"), [(34, "no_driver"), (10, "no_permission"), (99, "unknown")])
def test_a_library_that_refuses_is_said_where_there_is_no_tool_either(code: int, trouble: str) -> None:
    reader = AmdReader(fake_amdsmi.FakeAmdsmi(init_error=code), run=Tool(ToolAnswer(missing=True)))
    assert reader.open() == AMD_TROUBLES[trouble]


def test_one_card_that_does_not_answer_does_not_take_the_others_along() -> None:
    lost = fake_amdsmi.Card(errors={"amdsmi_get_gpu_memory_total": 12})
    reader = AmdReader(fake_amdsmi.FakeAmdsmi(lost, fake_amdsmi.Card()), run=Tool(ToolAnswer(missing=True)))
    assert reader.open() is None
    first, second = reader.snapshot()
    assert (first.problem, first.is_silent, second.problem) == (AMD_TROUBLES["lost"], True, "")


def test_rocm_smi_is_read_where_there_is_no_library() -> None:
    card = {
        "VRAM Total Memory (B)": "206141652992",
        "VRAM Total Used Memory (B)": "298471424",
        "GPU use (%)": "3",
        "Temperature (Sensor junction) (C)": "44.0",
        "Current Socket Graphics Package Power (W)": "140.0",
        "Card Series": "AMD Instinct MI300X",
    }
    text = "WARNING: AMD GPU device(s) is/are in a low-power state.\n" + json.dumps({"card0": card, "system": {}})
    (gpu,) = read_json(text)
    assert (gpu.name, gpu.total_bytes, gpu.used_bytes) == ("AMD Instinct MI300X", 206141652992, 298471424)
    assert (gpu.utilisation, gpu.temperature, gpu.power_watts) == (3, 44, 140.0)
    assert read_json("ERROR:root:Driver not initialized (amdgpu not found in modules)\n") == ()


def cards(*readers: CardReader, nvml: FakeNvml) -> AllCards:
    return AllCards(NvmlReader(nvml), others=readers)


def test_a_box_of_two_vendors_numbers_its_cards_through_and_gauges_show_all() -> None:
    both = cards(npus(ToolAnswer(table(100, 200))), nvml=FakeNvml(Card(), Card()))
    live = Gauges(both, host=Host, details=lambda gpus: gpus)
    rows = live.poll(0.0).gpus
    assert [(row.gpu.index, row.gpu.vendor) for row in rows] == [
        (0, "nvidia"),
        (1, "nvidia"),
        (2, "ascend"),
        (3, "ascend"),
    ]
    assert [row.peak_bytes for row in rows[2:]] == [100 * MIB, 200 * MIB]


def test_cards_in_parts_leave_no_number_out() -> None:
    parts = [Card(name="A100 MIG 3g.20gb"), Card(name="A100 MIG 4g.20gb")]
    both = cards(npus(ToolAnswer(table(100))), nvml=FakeNvml(Card(), Card(mig=parts, uuid="GPU-1")))
    assert both.open() is None
    assert [gpu.index for gpu in both.snapshot()] == [0, 1, 1, 2]


def test_what_the_driver_keeps_of_an_idle_npu_is_held_by_nobody() -> None:
    line = "| 1       0                 | 4242          | python3    | 50000      |\n"
    idle, full = read_table(table(3372, 61000, processes=line)).gpus
    assert unseen_bytes(full) == (61000 - 50000) * MIB - (64 * GIB - int(60.96 * GIB))
    assert (unseen_bytes(replace(idle, processes=())) or 0) < GIB


def test_a_box_without_nvidia_says_nothing_of_nvml() -> None:
    ascend = cards(npus(ToolAnswer(table(100))), nvml=FakeNvml(init_error=12))
    assert (ascend.open(), ascend.troubles) == (None, ())
    broken = cards(npus(ToolAnswer(hangs=True)), nvml=FakeNvml(init_error=12))
    assert broken.open() == NPU_TROUBLES["hangs"]


def test_one_vendor_that_is_not_read_is_said_beside_the_other() -> None:
    both = cards(npus(ToolAnswer(hangs=True)), nvml=FakeNvml(Card()))
    assert both.open() is None
    assert both.troubles == (NPU_TROUBLES["hangs"],)


def tool_in(folder: Path, name: str, text: str) -> dict[str, str]:
    """A real program on a PATH of its own."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_text(text)
    script = folder / name
    script.write_text(f'#!/bin/sh\ncat "{folder}/{name}.txt"\n')
    script.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}/bin{os.pathsep}/usr/bin"}


def test_the_whole_box_is_measured_by_the_real_tool_and_kept_as_json(tmp_path: Path) -> None:
    environ = tool_in(tmp_path / "bin", "npu-smi", table(3372, 3372))
    machine = measure(nvml=FakeNvml(init_error=12), environ=environ, root=tmp_path)
    assert ([gpu.name for gpu in machine.gpus], machine.driver) == (["Ascend 910B3", "Ascend 910B3"], "24.1.rc2")
    assert not any("NVML" in problem for problem in machine.problems)
    assert from_json(json.loads(json.dumps(to_json(machine)))).gpus == machine.gpus


def test_a_tool_that_hangs_is_waited_for_no_longer_than_asked(tmp_path: Path) -> None:
    script = tmp_path / "npu-smi"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)
    answer = run_tool(["npu-smi", "info"], patience=0.2, environ={"PATH": f"{tmp_path}{os.pathsep}/bin"})
    assert answer == ToolAnswer(hangs=True)
