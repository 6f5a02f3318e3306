"""docs/accuracy.md says what the ledger says now, and every reading has its place there."""

from __future__ import annotations

from functools import cache
from statistics import median

import yaml

from tests.gpu.trainers.compare import compared
from tests.measured import accuracy, peers
from tests.measured.published import rows, size


@cache
def told() -> str:
    """The document as it would be written now."""
    return accuracy.text()


def test_the_document_is_what_the_ledger_says_now() -> None:
    assert accuracy.FILE.read_text() == told(), "write it anew: python -m tests.measured.accuracy --write"


def test_what_is_not_claimed_says_why_and_whence() -> None:
    unclaimed = yaml.safe_load(accuracy.UNCLAIMED.read_text())
    assert len(unclaimed) > 10
    assert all(row["why"] and row["source"] and row["what"] for row in unclaimed)


def test_a_run_whose_kind_is_not_claimed_is_an_estimate_and_says_what_it_rests_on() -> None:
    runs = [row["run"] for row in yaml.safe_load(accuracy.UNCLAIMED.read_text()) if "run" in row]
    assert runs
    for run in runs:
        ledger = accuracy.ledger_of(run)
        assert ledger.basis == "estimated", run
        assert ledger.assumed, run


def test_no_other_estimator_is_as_near_on_the_same_rows() -> None:
    errors: dict[str, list[float]] = {}
    for found in peers.compared():
        for name in ("ours", "accelerate", "deepspeed", "llm_analysis"):
            told = getattr(found, name)
            if told is not None:
                errors.setdefault(name, []).append(abs(told / found.row.reading - 1))
    means = {name: sum(each) / len(each) for name, each in errors.items()}
    assert means["ours"] < 0.06
    assert all(mean > 4 * means["ours"] for name, mean in means.items() if name != "ours"), means


def test_sizes_of_cards_count_in_no_figure() -> None:
    cards = [row for row in rows() if row.doubt == peers.WHOLE_CARD]
    assert {row.reading for row in cards} == {80}
    figures = told().split("## Sizes of cards")[0]
    assert all(f"| {row.id} |" not in figures for row in cards)
    assert max(size(row.run).high for row in cards) > 80


def test_trainers_on_a_gpu_hold_what_the_ledger_says() -> None:
    rows = compared()
    assert median(abs(row.error) for row in rows) <= 0.02
    out = [row for row in rows if not row.low <= row.measured <= row.high]
    assert [(row.configuration, row.phase) for row in out] == [("rloo-05b", "log_prob")]


def test_a_gpu_reads_what_the_cpu_counts() -> None:
    rows = accuracy.on_gpu()
    assert median(abs(row.error) for row in rows) <= 0.02
    assert sum(row.low <= row.measured <= row.high for row in rows) >= 0.98 * len(rows)
