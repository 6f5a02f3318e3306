"""Published data sets are known by the tokens of their rows, so that a run that names them is not taken at its cap."""

from __future__ import annotations

from math import ceil

import pytest

from advisor.knowledge import load_knowledge
from advisor.memory.cells import PhaseSum
from tests.measured.published import ledger_of

ZH, EN = "AI-ModelScope/alpaca-gpt4-data-zh", "AI-ModelScope/alpaca-gpt4-data-en"
RUN = {"framework": "ms-swift", "program": "swift sft", "model": "Qwen/Qwen2.5-7B", "gpus": "1xA100-80GB"}
LORA = {"tuner_type": "lora", "torch_dtype": "bfloat16", "per_device_train_batch_size": 2, "max_length": 2048}


def update(**settings: object) -> PhaseSum:
    found = ledger_of({**RUN, "settings": {**LORA, **settings}}).phase("gpu", "actor_update")
    assert found is not None
    return found


def rows(names: str, **settings: object) -> tuple[int, int, int]:
    found = update(dataset=names, **settings).rows
    assert found is not None
    return found.low, found.expected, found.high


def test_the_longest_row_of_all_is_the_published_one_and_of_fewer_rows_a_shorter_one() -> None:
    low, expected, high = rows(EN)
    assert (expected, high) == (607, ceil(1.25 * 607))
    assert 160 < low < 175
    low, of_few, high = rows(f"{EN}#500")
    assert low < of_few < 607 < high


def test_of_several_data_sets_the_longest_rows_count() -> None:
    assert rows(f"{ZH} {EN}")[1:] == (607, ceil(1.25 * 607))
    assert rows(f"{ZH} {EN}", max_length=400)[1:] == (400, 400)


@pytest.mark.parametrize("names", ["my.jsonl", f"{EN} my.jsonl", ""])
def test_rows_of_data_that_nobody_knows_are_taken_as_before(names: str) -> None:
    assert rows(names) == rows("")


def test_what_the_user_says_of_the_rows_counts_more() -> None:
    knobs = {"data.longest_row": 1500}
    found = ledger_of({**RUN, "settings": {**LORA, "dataset": EN}, "knobs": knobs}).phase("gpu", "actor_update")
    assert found is not None
    assert found.rows is not None
    assert found.rows.expected == 1500


def test_no_data_set_is_listed_twice_and_means_are_below_the_longest_row() -> None:
    facts = load_knowledge().data_sets
    assert len({fact.name.lower() for fact in facts}) == len(facts) > 100
    assert all(0 < fact.mean <= fact.longest for fact in facts)
