"""The gauges: how often they ask, what they keep, what they mark."""

from __future__ import annotations

from advisor.machine.inventory import Gpu, Host
from advisor.machine.live import HISTORY, NEVER, REOPEN_SECONDS, Gauges
from advisor.machine.nvml import SENTENCES, NvmlReader, Trouble

from .fake_nvml import MIB, Card, FakeNvml


def gauges(nvml: FakeNvml) -> Gauges:
    return Gauges(NvmlReader(nvml), host=lambda: Host(total_bytes=100, used_bytes=40), details=lambda gpus: gpus)


def test_within_a_second_nothing_is_asked_again():
    nvml = FakeNvml(Card())
    live = gauges(nvml)
    first = live.poll(100.0)
    asked = len(nvml.calls)
    assert live.poll(100.9) is first
    assert len(nvml.calls) == asked
    assert live.poll(101.0) is not first


def test_processes_every_two_seconds_and_slow_fields_every_five():
    nvml = FakeNvml(Card())
    live = gauges(nvml)
    for second in range(10):
        live.poll(float(second))
    assert nvml.calls.count("nvmlDeviceGetMemoryInfo") == 10
    assert nvml.calls.count("nvmlDeviceGetComputeRunningProcesses") == 5
    assert nvml.calls.count("nvmlDeviceGetTotalEccErrors") == 2
    assert nvml.calls.count("nvmlInit") == 1


def test_history_and_peak_follow_the_memory():
    card = Card()
    live = gauges(FakeNvml(card))
    for second, used in enumerate([10, 30, 20]):
        card.used = used * MIB
        live.poll(float(second))
    (row,) = live.latest.gpus
    assert (row.history, row.peak_bytes, row.stale) == ((10 * MIB, 30 * MIB, 20 * MIB), 30 * MIB, False)
    assert live.latest.host_peak_bytes == 40


def test_history_does_not_grow_for_ever():
    live = gauges(FakeNvml(Card()))
    for second in range(HISTORY + 20):
        live.poll(float(second))
    assert len(live.latest.gpus[0].history) == HISTORY


def test_a_card_lost_midway_keeps_its_last_reading_and_is_marked():
    lost, healthy = Card(used=500 * MIB), Card(uuid="GPU-1")
    live = gauges(FakeNvml(lost, healthy))
    live.poll(0.0)
    lost.lost = True
    snapshot = live.poll(7.0)
    row, other = snapshot.gpus
    assert (row.stale, row.gpu.used_bytes, row.read_at, row.age(7.0)) == (True, 500 * MIB, 0.0, 7.0)
    assert row.gpu.problem == SENTENCES[Trouble.GPU_IS_LOST]
    assert row.history == (500 * MIB, None)
    assert (other.stale, other.gpu.problem) == (False, "")


def test_a_card_that_comes_back_is_fresh_again():
    card = Card()
    live = gauges(FakeNvml(card, Card(uuid="GPU-1")))
    live.poll(0.0)
    card.errors["nvmlDeviceGetMemoryInfo"] = 999
    assert live.poll(1.0).gpus[0].stale
    card.errors.clear()
    row = live.poll(2.0).gpus[0]
    assert (row.stale, row.gpu.problem, row.age(2.0)) == (False, "", 0.0)


def test_when_the_driver_goes_all_rows_stay_and_nvml_is_tried_again_later():
    nvml = FakeNvml(Card(used=500 * MIB))
    live = gauges(nvml)
    live.poll(0.0)
    nvml.cards[0].errors["nvmlDeviceGetMemoryInfo"] = 1
    nvml.init_error = 9
    for second in (100.0, 101.0, 102.0):
        snapshot = live.poll(second)
    assert snapshot.problem
    assert (snapshot.gpus[0].stale, snapshot.gpus[0].gpu.used_bytes) == (True, 500 * MIB)
    assert nvml.calls.count("nvmlInit") == 1, "not tried every second"
    assert live.poll(100 + REOPEN_SECONDS).problem == SENTENCES[Trouble.DRIVER_NOT_LOADED]
    nvml.cards[0].errors.clear()
    nvml.init_error = None
    snapshot = live.poll(100 + 2 * REOPEN_SECONDS)
    assert (snapshot.problem, snapshot.gpus[0].stale) == ("", False)


def test_without_nvml_the_host_is_shown_and_the_reason():
    snapshot = gauges(FakeNvml(init_error=12)).poll(0.0)
    assert (snapshot.gpus, snapshot.problem) == ((), SENTENCES[Trouble.LIBRARY_NOT_FOUND])
    assert snapshot.host.used_bytes == 40


def test_unified_memory_is_not_taken_for_a_lost_card():
    live = gauges(FakeNvml(Card(errors={"nvmlDeviceGetMemoryInfo": 3})))
    live.poll(0.0)
    snapshot = live.poll(1.0)
    assert (snapshot.problem, snapshot.gpus[0].stale, snapshot.gpus[0].peak_bytes) == ("", False, None)


def test_between_two_process_lists_the_described_processes_stay():
    def described(gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
        from tests.replacing import replace

        return tuple(
            replace(gpu, processes=tuple(replace(p, command="python") for p in gpu.processes or ())) for gpu in gpus
        )

    live = Gauges(NvmlReader(FakeNvml(Card(processes=[(7, 100)]))), host=Host, details=described)
    live.poll(0.0)
    (row,) = live.poll(1.0).gpus
    assert row.gpu.processes is not None
    assert row.gpu.processes[0].command == "python"


def test_mig_instances_have_their_own_rows():
    parts = [Card(name="A100 MIG 3g.20gb", uuid="MIG-a", used=1), Card(name="A100 MIG 3g.20gb", uuid="MIG-b", used=2)]
    live = gauges(FakeNvml(Card(mig=parts)))
    live.poll(0.0)
    assert [row.history for row in live.poll(1.0).gpus] == [(1, 1), (2, 2)]


def test_before_the_first_poll_there_is_an_empty_snapshot():
    assert gauges(FakeNvml()).latest is NEVER
    assert NEVER.gpus == ()
