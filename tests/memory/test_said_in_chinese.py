"""A ledger is counted once and read in any language: its formulas are said when they are read, the numbers the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from advisor.language import CHINESE, ENGLISH, speak
from advisor.memory import amount
from advisor.memory import cells as memory_cells
from advisor.memory.cells import Cell, Ledger
from tests.loops import each
from tests.measured.published import ledger_of
from tests.memory.test_named_owners import SFT, VERL, run

RUNS: dict[str, dict[str, Any]] = {
    "offloaded": VERL,
    "unpadded": run(VERL, actor__dynamic_batch=True, actor__tokens_per_gpu=8192, logprob__entropy_in_chunks=True),
    "adapters": run(VERL, actor__lora_rank=32),
    "experts": run(VERL, model="Qwen/Qwen3-30B-A3B", actor__tensor_parallel=2),
    "vision": run(VERL, model="Qwen/Qwen2.5-VL-7B-Instruct"),
    "no room": run(VERL, rollout__memory_share=0.1),
    "critic": run(VERL, algorithm__estimator="ppo"),
    "fine-tuning": SFT,
    "quantised": run(SFT, actor__full_finetuning=False, actor__lora_rank=16, actor__quantized_bits=4),
}
_CHINESE = re.compile("[\u4e00-\u9fff]")
_WORDS = re.compile(r"[a-z]{3,} [a-z]{2,} [a-z]{2,}")
_NUMBER = re.compile(r"\d[\d.,]*\d|\d")


def cells(ledger: Ledger) -> Iterator[Cell]:
    for phase in (*ledger.gpu, *ledger.host):
        yield from phase.cells


def numbers(text: str) -> Counter[str]:
    return Counter(_NUMBER.findall(text))


@each("name", RUNS)
def test_a_formula_says_the_same_numbers_in_chinese(name: str) -> None:
    counted = list(cells(ledger_of(RUNS[name])))
    english = [cell.formula for cell in counted]
    assert not any(_CHINESE.search(text) for text in english)
    speak(CHINESE)
    for was, cell in zip(english, counted, strict=True):
        now = cell.formula
        assert not _WORDS.search(now), now
        assert "{" not in now
        assert numbers(now) == numbers(was), (was, now)
    assert sum(bool(_CHINESE.search(cell.formula)) for cell in counted) > len(counted) * 0.9
    speak(ENGLISH)
    assert [cell.formula for cell in counted] == english


def test_counting_a_ledger_says_none_of_its_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan computes thousands of ledgers and reads few of them."""
    said: list[str] = []
    monkeypatch.setattr(amount, "say", lambda text, **_: said.append(text))
    monkeypatch.setattr(memory_cells, "say", lambda text, **_: said.append(text))
    assert all(list(cells(ledger_of(RUNS[name]))) for name in RUNS)
    assert not said


def test_equal_ledgers_are_equal_whichever_words_they_carry() -> None:
    one, other = ledger_of(VERL), ledger_of(VERL)
    assert one == other
    assert len({*cells(one), *cells(other)}) == len(set(cells(one)))
    assert one != ledger_of(RUNS["no room"])


def test_what_had_to_be_assumed_and_what_is_missing_is_said_in_chinese() -> None:
    speak(CHINESE)
    bare = {**SFT, "knobs": {"algorithm.estimator": "sft", "actor.full_finetuning": True}}
    told = (*ledger_of(bare).assumed, *ledger_of({**bare, "model": "nobody/nothing"}).missing)
    assert any("最长的序列" in text for text in told)
    assert any("模型 nobody/nothing 的结构" in text for text in told)
    assert not any(_WORDS.search(text) for text in told), told


def test_an_engine_without_room_is_known_by_its_kind_in_any_language() -> None:
    speak(CHINESE)
    ledger = ledger_of(RUNS["no room"])
    assert {cell.owner for cell in cells(ledger) if cell.kind == "cannot_start"} == {"kv_cache"}
    assert any("引擎无法启动" in cell.formula for cell in cells(ledger) if cell.kind == "cannot_start")
