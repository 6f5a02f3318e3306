"""A run that trains on the CPU (`use_cpu`): what a card would hold lies in host RAM, and no card is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.run.constraints import violations
from advisor.session import SessionRequest, State, open_session
from advisor.units import GIB, MIB
from advisor.watch.gauges import Gauge
from advisor.watch.record import Record

SCRIPT = """python train.py --model_name_or_path Qwen/Qwen2.5-0.5B --per_device_train_batch_size 8 \\
  --num_generations 8 --max_completion_length 256 --bf16 false --use_cpu {cpu} --dataloader_num_workers {workers}{more}
"""


def opened(folder: Path, cpu: str = "true", workers: int = 4, more: str = "", record: Path | None = None) -> State:
    script = folder / "run.sh"
    script.write_text(SCRIPT.format(cpu=cpu, workers=workers, more=more))
    return open_session(SessionRequest(script=script, host_ram="64GB", gpus="1xA100-80GB", record=record))


def test_what_a_card_would_hold_is_counted_in_host_ram(tmp_path: Path) -> None:
    on_card, on_cpu = opened(tmp_path, cpu="false").ledger, opened(tmp_path).ledger
    assert on_cpu.gpu == ()
    for phase in on_card.gpu:
        host = on_cpu.phase("host", phase.phase)
        assert host is not None
        for owner in ("weights", "optimizer", "activations", "logits"):
            assert host.of(owner) == phase.of(owner), (phase.phase, owner)
        assert not host.of("context", "fragmentation")


def test_it_fits_or_not_by_the_ram_alone(tmp_path: Path) -> None:
    situation = opened(tmp_path).situation
    assert situation is not None
    assert situation.now.fit.fits is True
    assert {finding.place for finding in situation.now.fit.findings} <= {"host"}


def recorded(folder: Path, steps: int) -> Path:
    """Of a trainer that prints no phases: the host holds 1.5 GiB at the most."""
    record = Record.create(folder, {"began": 1.7e9, "command": ["bash", "run.sh"]})
    host = record.column(Gauge("host", "host RAM", 64 * GIB))
    for step in range(steps):
        record.sample(step, {host: GIB + 100 * MIB * step})
        record.mark(step, counter="done", count=step + 1)
    record.flush(steps)
    record.close()
    return folder


def test_where_no_phase_is_shown_none_took_more_than_the_most_that_was_in_use(tmp_path: Path) -> None:
    predicted = opened(tmp_path).ledger
    most = GIB + 500 * MIB
    measured = opened(tmp_path, record=recorded(tmp_path / "six", 6)).ledger
    for before in predicted.host:
        now = measured.phase("host", before.phase)
        assert now is not None
        assert before.expected > most
        assert now.expected == most
        assert "in whichever phase" in now.measured
    early = opened(tmp_path, record=recorded(tmp_path / "one", 1)).ledger
    assert [each.expected for each in early.host] == [each.expected for each in predicted.host]


@pytest.mark.parametrize(("more", "refused"), [("", False), (" --dataloader_prefetch_factor 2", True)])
def test_no_loader_at_all_is_not_proposed_where_the_framework_refuses_it(
    tmp_path: Path, more: str, refused: bool
) -> None:
    situation = opened(tmp_path, workers=1, more=more).situation
    assert situation is not None
    built = situation.predictor.predict({"dataloader_num_workers": "0"}).built
    said = " ".join(violations(built, ["dataloader_num_workers"]))
    assert ("dataloader_prefetch_factor is refused" in said) is refused
