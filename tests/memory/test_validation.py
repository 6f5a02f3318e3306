"""Evaluation during training: what its own batch needs, and where it has none."""

from __future__ import annotations

from typing import Any

from advisor.memory.cells import Ledger, PhaseSum
from tests.measured.published import ledger_of

SFT: dict[str, Any] = {
    "framework": "ms-swift",
    "program": "swift sft",
    "model": "Qwen/Qwen2.5-7B-Instruct",
    "gpus": "1xA100-80GB",
    "settings": {
        "tuner_type": "lora",
        "torch_dtype": "bfloat16",
        "per_device_train_batch_size": 1,
        "per_device_eval_batch_size": 8,
        "max_length": 2048,
    },
}
TRL: dict[str, Any] = {
    "framework": "trl",
    "model": "Qwen/Qwen2.5-1.5B-Instruct",
    "gpus": "1xA100-80GB",
    "knobs": {
        "data.prompt_tokens": 512,
        "data.response_tokens": 1024,
        "actor.micro_batch": 4,
        "rollout.samples_per_prompt": 4,
        "rollout.engine": "hf",
        "eval.micro_batch": 32,
    },
}


def sft(**settings: object) -> Ledger:
    return ledger_of({**SFT, "settings": {**SFT["settings"], **settings}})


def trl(**knobs: object) -> Ledger:
    named = {name.replace("__", "."): value for name, value in knobs.items()}
    return ledger_of({**TRL, "knobs": {**TRL["knobs"], **named}})


def validation(of: Ledger) -> PhaseSum:
    found = of.phase("gpu", "validation")
    assert found is not None
    return found


def test_fine_tuning_evaluates_only_where_data_are_kept_for_it() -> None:
    assert sft().phase("gpu", "validation") is None
    assert sft(split_dataset_ratio=0.0).phase("gpu", "validation") is None
    assert sft(eval_strategy="no", split_dataset_ratio=0.01).phase("gpu", "validation") is None
    assert sft(split_dataset_ratio=0.01).phase("gpu", "validation") is not None
    assert sft(val_dataset="more.jsonl").phase("gpu", "validation") is not None


def test_an_evaluation_batch_of_eight_needs_more_than_training_with_one() -> None:
    of = sft(split_dataset_ratio=0.01)
    update = of.phase("gpu", "actor_update")
    assert update is not None
    assert validation(of).expected > 1.3 * update.expected
    assert of.peak("gpu") == validation(of)
    logits = [cell for cell in validation(of).cells if cell.owner == "logits"]
    assert [cell.expected for cell in logits] == [10 * 152064 * round(0.55 * 8 * 2048)]


def test_an_evaluation_has_no_padding_where_training_has_none() -> None:
    padded = validation(sft(split_dataset_ratio=0.01))
    free = validation(sft(split_dataset_ratio=0.01, padding_free=True, attn_impl="flash_attn"))
    assert free.of("logits") < 0.5 * padded.of("logits")
    assert free.by_data[1] == padded.by_data[1]  # rows may all be at the cap, padded or not


def test_an_evaluation_of_one_row_needs_less_than_training() -> None:
    of = sft(split_dataset_ratio=0.01, per_device_eval_batch_size=1)
    update = of.phase("gpu", "actor_update")
    assert update is not None
    assert validation(of).expected < update.expected


def test_generation_in_the_trainer_takes_all_evaluation_rows_at_once() -> None:
    off, on = trl(eval__on="no"), trl(eval__on="steps")
    assert validation(on).expected > 1.2 * validation(off).expected
    generate = on.phase("gpu", "rollout_generate")
    assert generate is not None
    assert validation(on).expected > generate.expected


def test_an_engine_holds_its_share_however_large_the_validation_batch_is() -> None:
    base = {"framework": "verl", "model": "Qwen/Qwen2.5-7B-Instruct", "gpus": "8xA100-80GB", "host_ram": "1000GB"}
    knobs: dict[str, object] = {"data.train_batch": 64, "data.prompt_tokens": 1024, "data.response_tokens": 1024}
    knobs["rollout.memory_share"] = 0.5
    small, large = (ledger_of({**base, "knobs": {**knobs, "data.val_batch": size}}) for size in (64, 65536))
    assert validation(small) == validation(large)
    host = [found.expected for of in (small, large) if (found := of.phase("host", "validation")) is not None]
    assert host[1] > host[0] + 5_000_000_000
