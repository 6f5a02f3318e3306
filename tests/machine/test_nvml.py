"""What the reader makes of whatever NVML answers."""

from __future__ import annotations

import builtins
import os
import sys
from types import SimpleNamespace

import pytest

from advisor.machine import tool
from advisor.machine.inventory import Host, Machine
from advisor.machine.inventory_json import from_json, to_json
from advisor.machine.nvml import EMPTY_MIG, SENTENCES, SHARED_WITH_HOST, NvmlReader, Refused, Trouble, query
from tests.loops import each

from .fake_nvml import MIB, Card, FakeNvml


def opened(*cards: Card) -> NvmlReader:
    reader = NvmlReader(FakeNvml(*cards))
    assert reader.open() is None
    return reader


def test_a_healthy_card_is_read_in_full():
    reader = opened(Card(processes=[(4321, 1500 * MIB)], throttle=0x04 | 0x40))
    (gpu,) = reader.snapshot()
    assert (gpu.index, gpu.name, gpu.total_bytes, gpu.used_bytes) == (
        0,
        "NVIDIA A100-SXM4-40GB",
        40960 * MIB,
        2000 * MIB,
    )
    assert gpu.usable_bytes == (40960 - 433) * MIB
    assert (gpu.utilisation, gpu.temperature, gpu.power_watts, gpu.power_limit_watts) == (97, 63, 318.0, 400.0)
    assert gpu.processes is not None
    assert [(p.pid, p.used_bytes) for p in gpu.processes] == [(4321, 1500 * MIB)]
    assert gpu.throttle == ("power cap", "temperature (hardware)")
    assert (gpu.ecc_errors, gpu.problem, reader.driver) == (0, "", "550.54.15")


def test_an_idle_clock_is_no_throttle():
    assert opened(Card(throttle=0x01 | 0x02)).snapshot()[0].throttle == ()


@each(
    ("code", "trouble"),
    [
        (4, Trouble.NO_PERMISSION),
        (9, Trouble.DRIVER_NOT_LOADED),
        (12, Trouble.LIBRARY_NOT_FOUND),
        (15, Trouble.GPU_IS_LOST),
        (18, Trouble.VERSION_MISMATCH),
        (999, Trouble.UNKNOWN),
        (4711, Trouble.UNKNOWN),
    ],
)
def test_each_failure_to_start_has_its_own_sentence(code: int, trouble: Trouble):
    reader = NvmlReader(FakeNvml(init_error=code))
    assert reader.open() == SENTENCES[trouble]
    assert reader.snapshot() == ()
    reader.close()


def test_no_two_failures_share_a_sentence():
    assert len(set(SENTENCES.values())) == len(SENTENCES) == len(Trouble)


def test_without_the_bindings_the_reader_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def refuse(name: str, *rest: object, **more: object) -> object:
        if name == "pynvml":
            raise ImportError(name)
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.setattr(tool, "has_nvidia", lambda: True)
    assert NvmlReader().open() == SENTENCES[Trouble.BINDINGS_MISSING]
    monkeypatch.setattr(tool, "has_nvidia", lambda: False)
    assert NvmlReader().open() == SENTENCES[Trouble.LIBRARY_NOT_FOUND], "told without the bindings"


def test_memory_info_falls_back_to_version_1_when_the_driver_is_old():
    (gpu,) = opened(Card(errors={"v2": 13})).snapshot()
    assert (gpu.total_bytes, gpu.used_bytes, gpu.reserved_bytes) == (40960 * MIB, 2433 * MIB, None)
    assert gpu.usable_bytes == gpu.total_bytes


def test_memory_info_falls_back_when_the_bindings_are_old():
    nvml = FakeNvml(Card())
    nvml.nvmlMemory_v2 = None
    reader = NvmlReader(nvml)
    reader.open()
    assert reader.snapshot()[0].used_bytes == 2433 * MIB


def test_a_card_lost_from_the_start_stays_listed():
    first, second = opened(Card(lost=True), Card(uuid="GPU-1")).snapshot()
    assert (first.index, first.total_bytes, first.problem) == (0, None, SENTENCES[Trouble.GPU_IS_LOST])
    assert (second.index, second.problem, second.used_bytes) == (1, "", 2000 * MIB)


def test_a_card_lost_while_running_stays_listed_with_its_name():
    card = Card()
    reader = opened(card)
    reader.snapshot()
    card.lost = True
    (gpu,) = reader.snapshot()
    assert (gpu.name, gpu.used_bytes, gpu.problem) == (card.name, None, SENTENCES[Trouble.GPU_IS_LOST])


def test_unified_memory_has_no_size_but_still_a_temperature():
    (gpu,) = opened(Card(errors={"nvmlDeviceGetMemoryInfo": 3})).snapshot()
    assert (gpu.total_bytes, gpu.used_bytes, gpu.temperature, gpu.problem) == (None, None, 63, SHARED_WITH_HOST)


def test_readings_that_are_not_supported_are_unknown_not_zero():
    missing = dict.fromkeys(
        [
            "nvmlDeviceGetUtilizationRates",
            "nvmlDeviceGetTemperature",
            "nvmlDeviceGetPowerUsage",
            "nvmlDeviceGetTotalEccErrors",
            "nvmlDeviceGetEnforcedPowerLimit",
        ],
        3,
    )
    (gpu,) = opened(Card(errors=missing)).snapshot()
    assert (gpu.utilisation, gpu.temperature, gpu.power_watts) == (None, None, None)
    assert (gpu.ecc_errors, gpu.power_limit_watts, gpu.problem) == (None, None, "")


def test_an_absurd_utilisation_is_unknown():
    assert opened(Card(utilisation=4_294_967)).snapshot()[0].utilisation is None


def test_processes_that_may_not_be_seen_differ_from_no_processes():
    hidden, idle = opened(Card(errors={"nvmlDeviceGetComputeRunningProcesses": 4}), Card()).snapshot()
    assert hidden.processes is None
    assert idle.processes == ()


def test_a_process_whose_memory_the_driver_hides_is_listed():
    (gpu,) = opened(Card(processes=[(7, None)])).snapshot()
    assert gpu.processes is not None
    assert (gpu.processes[0].pid, gpu.processes[0].used_bytes) == (7, None)


def test_a_process_on_both_lists_counts_once():
    (gpu,) = opened(Card(processes=[(7, 100)], graphics=[(7, 100), (8, 5)])).snapshot()
    assert gpu.processes is not None
    assert {p.pid: p.used_bytes for p in gpu.processes} == {7: 100, 8: 5}


def test_mig_instances_stand_in_place_of_their_card():
    parts = [
        Card(name="NVIDIA A100-SXM4-40GB MIG 3g.20gb", total=19968 * MIB, reserved=0, used=11000 * MIB, uuid="MIG-a"),
        Card(name="NVIDIA A100-SXM4-40GB MIG 4g.20gb", total=19968 * MIB, reserved=0, used=37 * MIB, uuid="MIG-b"),
    ]
    for part in parts:
        part.errors = dict.fromkeys(["nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature"], 3)
    gpus = opened(Card(), Card(mig=parts, uuid="GPU-1")).snapshot()
    assert [(gpu.index, gpu.mig, gpu.parent) for gpu in gpus] == [(0, "", None), (1, "3g.20gb", 1), (1, "4g.20gb", 1)]
    assert gpus[1].used_bytes == 11000 * MIB
    assert (gpus[1].utilisation, gpus[1].temperature) == (None, 63), "temperature is the whole card's"


def test_mig_without_instances_says_that_cuda_sees_nothing():
    (gpu,) = opened(Card(mig=[])).snapshot()
    assert (gpu.problem, gpu.total_bytes) == (EMPTY_MIG, None)


def test_slow_fields_and_processes_are_asked_only_when_wanted():
    reader = opened(Card(processes=[(7, 100)]))
    reader.snapshot()
    nvml = reader.nvml
    nvml.calls.clear()
    (gpu,) = reader.snapshot(slow=False, processes=False)
    assert (gpu.power_limit_watts, gpu.ecc_errors, len(gpu.processes or ())) == (400.0, 0, 1)
    assert not {
        call for call in nvml.calls if "Ecc" in call or "Limit" in call or "Processes" in call or "Clocks" in call
    }


def test_names_are_cleaned_of_control_sequences_and_bytes_are_decoded():
    first, second = opened(Card(name="A\x1b]0;owned\x07100"), Card(name=b"Tesla T4")).snapshot()
    assert (first.name, second.name) == ("A100", "Tesla T4")


def test_the_gate_turns_a_missing_function_into_a_refusal():
    answer = query(FakeNvml(), "nvmlDeviceGetSomethingNew")
    assert answer == Refused(Trouble.FUNCTION_NOT_FOUND, "nvmlDeviceGetSomethingNew")


def test_the_gate_survives_a_library_that_does_not_load():
    nvml = FakeNvml()
    nvml.nvmlInit = lambda: os.stat("/proc/nonexistent")  # type: ignore[method-assign]
    assert query(nvml, "nvmlInit").trouble is Trouble.UNKNOWN


def test_a_closed_reader_can_be_opened_again():
    reader = opened(Card())
    reader.close()
    assert reader.snapshot() == ()
    assert reader.open() is None
    assert len(reader.snapshot()) == 1


HOSTILE = (0, -1, 1, 2**40, 2**63, 2**64 - 1, 2**64)


@pytest.mark.parametrize("place", ["total", "used", "reserved", "processes"])
@pytest.mark.parametrize("size", HOSTILE)
def test_a_size_that_no_card_has_is_never_told(place: str, size: int) -> None:
    card = Card(name="A100\x1b]52;c;AAAA\x07", processes=[(7, size)] if place == "processes" else [])
    if place != "processes":
        setattr(card, place, size)
    reader = NvmlReader(FakeNvml(card))
    assert reader.open() is None
    (gpu,) = reader.snapshot()
    assert gpu.name == "A100"
    total = gpu.total_bytes
    assert total is None or 0 < total < 2**46
    held = [one.used_bytes for one in gpu.processes or ()]
    for told in (gpu.used_bytes, gpu.reserved_bytes, *held, *reader.used()):
        assert told is None or 0 <= told <= (total or 0)
    assert all(0 <= told < 2**47 for told in reader.holders().values())
    assert gpu.usable_bytes is None or gpu.usable_bytes > 0
    assert from_json({"machine": to_json(Machine(nodes=1, gpus=(gpu,), host=Host()))}).gpus[0].total_bytes == total


def test_a_driver_that_counts_millions_of_cards_is_not_waited_for() -> None:
    made = FakeNvml(*[Card()] * 1100)
    made.nvmlDeviceGetCount = lambda: 2**32 - 1  # type: ignore[method-assign]
    reader = NvmlReader(made)
    assert reader.open() is None
    assert len(reader.snapshot()) == 1024


def test_a_driver_that_lacks_what_pynvml_asks_for_costs_that_reading_alone() -> None:
    class NVMLLibraryMismatchError(Exception):
        """As pynvml's: no NVMLError."""

    class OldDriver(FakeNvml):
        def nvmlDeviceGetComputeRunningProcesses(self, card: Card) -> list[SimpleNamespace]:  # noqa: N802
            raise NVMLLibraryMismatchError

        def nvmlDeviceGetUtilizationRates(self, card: Card) -> SimpleNamespace:  # noqa: N802
            raise TypeError

    class WithSecondForm(OldDriver):
        nvmlDeviceGetComputeRunningProcesses_v2 = FakeNvml.nvmlDeviceGetComputeRunningProcesses  # noqa: N815

    for nvml, pids in ((OldDriver, None), (WithSecondForm, [7])):
        reader = NvmlReader(nvml(Card(processes=[(7, MIB)])))
        assert reader.open() is None
        (gpu,) = reader.snapshot()
        assert (gpu.total_bytes, gpu.utilisation, gpu.problem) == (40960 * MIB, None, "")
        assert (None if gpu.processes is None else [one.pid for one in gpu.processes]) == pids
