"""Peaks that a record measured take the place of predicted ones: in the diagnosis, the estimate, the plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.crash.evidence import NOTHING, Crash, Evidence
from advisor.diagnosis.from_record import peaks_in
from advisor.memory.constants import GPU_CONTEXT
from advisor.memory.ledger import build_ledger
from advisor.report.json_report import diagnose_json
from advisor.report.text_report import text_report
from advisor.run.run import Topology
from advisor.session import SessionRequest, State, open_session
from advisor.units import GIB
from advisor.watch.gauges import Gauge
from advisor.watch.measured import Held, Measured, measure_recording
from advisor.watch.record import Record
from advisor.watch.recording import read_record
from advisor.words import Phase
from tests.memory.runs import FSDP, box, make_run
from tests.replacing import replace

SCRIPT = Path(__file__).parents[1] / "runs" / "logic-rl" / "stage1.sh"
PASSES: tuple[tuple[Phase, int, int], ...] = (
    ("rollout_generate", 44, 220),
    ("log_prob", 40, 240),
    ("actor_update", 66, 300),
)
"""Phase, GiB on the fullest card, GiB on the host."""


def recorded(folder: Path, steps: int = 3, end: dict[str, int] | None = None) -> Path:
    """A run of so many steps; without `end` the watcher was killed in the last phase."""
    record = Record.create(folder, {"began": 1.7e9, "command": ["bash", "run.sh"]})
    host = record.column(Gauge("host", "host RAM", 1000 * GIB))
    card = record.column(Gauge("gpu", "GPU 0", 80 * GIB, gpu=0))
    at = 0
    for step in range(steps):
        for phase, gpu, ram in PASSES:
            record.mark(at, phase=phase)
            record.sample(at + 1, {host: ram * GIB, card: gpu * GIB})
            at += 5
        record.mark(at, counter="step", count=step + 1)
    record.flush(at)
    if end is not None:
        record.mark(at, end=end)
    record.close()
    return folder


def opened(record: Path | None) -> State:
    return open_session(SessionRequest(script=SCRIPT, gpus="8xA100-80G", host_ram="1000G", record=record))


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> tuple[State, State]:
    """Without and with a record of a run that went well."""
    folder = recorded(tmp_path_factory.mktemp("measured") / "record", end={"code": 0})
    return opened(None), opened(folder)


def test_the_ledger_of_each_phase_seen_is_what_the_record_measured(states: tuple[State, State]) -> None:
    predicted, measured = (state.ledger for state in states)
    for phase, gib, _ in PASSES[1:]:
        found, before = measured.phase("gpu", phase), predicted.phase("gpu", phase)
        assert found is not None
        assert before is not None
        assert (found.low, found.expected, found.high, found.predicted) == (*[gib * GIB] * 3, before.expected)
        assert "the record, GPU 0" in found.measured
    step = measured.phase("gpu", "optimizer_step")
    assert step is not None
    assert step == predicted.phase("gpu", "optimizer_step")  # no line of the output begins it
    update = measured.phase("host", "actor_update")
    assert update is not None
    assert update.expected == 300 * GIB


def test_the_plan_counts_with_it_and_every_face_says_measured(states: tuple[State, State]) -> None:
    before, after = states
    assert before.situation is not None
    assert after.situation is not None
    assert before.situation.now.unfit("gpu")
    assert after.situation.now.unfit("gpu") == []
    outcome = after.situation.now.ledger.phase("gpu", "actor_update")
    assert outcome is not None
    assert outcome.expected == 66 * GIB
    assert "measured" in text_report(after)
    phases = {each["phase"]: each for each in diagnose_json(after)["memory"]["gpu"]["phases"]}
    assert phases["actor_update"]["expected_bytes"] == 66 * GIB
    assert phases["actor_update"]["predicted_bytes"] > 80 * GIB
    assert "measured" not in phases["optimizer_step"]


def understood(folder: Path) -> Measured:
    return measure_recording(read_record(folder))


def lowered(measured: Measured, crash: Crash = NOTHING, topology: Topology | None = None) -> set[Phase]:
    """Phases of the card that the record makes smaller than predicted."""
    knobs = {"actor.micro_batch": 8, "data.max_prompt": 1024, "data.max_response": 3072, "rollout.memory_share": 0.7}
    run = make_run("Qwen2.5-7B-Instruct", FSDP, topology or Topology(1, 8, 8, 8, tensor_parallel=2), knobs)
    ledger = build_ledger(run, box(8, 80, 1000))
    halves = tuple(
        replace(peak, bytes=(found.expected * 2) // 3)
        for peak in measured.peaks
        if peak.place == "gpu" and (found := ledger.phase("gpu", peak.phase)) is not None
    )
    return {peak.phase for peak in peaks_in(replace(measured, peaks=halves), ledger, run, crash)}


def test_one_step_alone_does_not_yet_show_what_later_steps_need(tmp_path: Path) -> None:
    assert lowered(understood(recorded(tmp_path / "one", steps=1, end={"code": 0}))) == set()
    assert lowered(understood(recorded(tmp_path / "two", steps=2, end={"code": 0}))) == {name for name, *_ in PASSES}


def test_the_phase_in_which_a_record_breaks_off_counts_only_as_often_as_it_was_whole(tmp_path: Path) -> None:
    assert lowered(understood(recorded(tmp_path / "r", steps=2))) == {"rollout_generate", "log_prob"}
    assert "actor_update" in lowered(understood(recorded(tmp_path / "s", steps=3)))


def test_where_it_died_the_crash_says_what_was_needed(tmp_path: Path) -> None:
    died = Crash("oom", "gpu", "log_prob", "torch-oom", (Evidence("torch-oom", "cause", "log", 1, "", "gpu"),))
    assert "log_prob" not in lowered(understood(recorded(tmp_path / "r")), died)


def test_where_engines_have_cards_of_their_own_the_fullest_card_tells_of_them_alone(tmp_path: Path) -> None:
    apart = Topology(1, 8, 4, 4, tensor_parallel=2, colocated=False)
    assert lowered(understood(recorded(tmp_path / "r")), topology=apart) == {"rollout_generate"}


def test_processes_of_an_engine_are_told_from_the_trainers(tmp_path: Path) -> None:
    knobs = {"actor.micro_batch": 8, "data.max_prompt": 1024, "data.max_response": 3072, "rollout.memory_share": 0.7}
    run = make_run("Qwen2.5-7B-Instruct", FSDP, Topology(1, 8, 8, 8, tensor_parallel=2), knobs)
    ledger = build_ledger(run, box(8, 80, 1000))
    awake = ledger.phase("gpu", "rollout_generate")
    assert awake is not None
    measured = understood(recorded(tmp_path / "r"))
    owners = (Held("VLLM::Worker_TP0", 50 * GIB), Held("ray::WorkerDict", 2 * GIB))
    peaks = tuple(replace(one, bytes=awake.expected - GIB, owners=owners) for one in measured.peaks[:1])
    (found,) = peaks_in(replace(measured, peaks=peaks), ledger, run, NOTHING)
    assert found.phase == "rollout_generate"
    assert found.engine == 50 * GIB - GPU_CONTEXT
