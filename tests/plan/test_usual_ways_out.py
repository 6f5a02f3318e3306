"""What a kind of run is usually helped by stands among the first steps; what cannot help it stands nowhere."""

from __future__ import annotations

import pytest

from tests.plan.planned import Planned, Step, changes, swift

BARE = "torch.OutOfMemoryError: CUDA out of memory. \n"
UPDATE = ("--answer", "phase=actor_update")
SFT = "--dataset x/y --max_length 4096 --gradient_accumulation_steps 4 --output_dir out"
PACKED = """base_model: mistralai/Mistral-7B-v0.1
learning_rate: 0.0002
sequence_len: 4096
micro_batch_size: 2
sample_packing: true
datasets: [{path: x/y, type: completion}]
output_dir: out
"""


def first(steps: dict[str, Step], count: int = 4) -> list[str]:
    return [name for name in steps if not name.startswith("not:")][:count]


def sft(model: str, more: str = "") -> str:
    return f"NPROC_PER_NODE=8 swift sft --model {model} --per_device_train_batch_size 2 {SFT} {more}\n"


def test_pictures_without_a_limit_are_limited_among_the_first_steps(planned: Planned) -> None:
    assert "fewer-pixels" in first(planned(sft("Qwen/Qwen2-VL-7B-Instruct"), BARE))
    assert "fewer-pixels" not in planned(sft("Qwen/Qwen2.5-7B-Instruct"), BARE)


def test_packed_rows_are_unpacked_among_the_first_steps(planned: Planned) -> None:
    steps = planned(PACKED, BARE, *UPDATE, name="run.yaml")
    assert changes(steps["packing-off"]) == {"sample_packing": ("true", "false")}
    assert "packing-off" in first(steps, 6)
    assert "packing-off" not in planned(PACKED.replace("sample_packing: true\n", ""), BARE, name="run.yaml")


def test_given_answers_have_no_length_and_no_samples_to_lower(planned: Planned) -> None:
    steps = planned(sft("Qwen/Qwen2.5-7B-Instruct"), BARE)
    assert not {"shorten-responses", "lower-samples"} & set(steps)


def test_one_sequence_is_no_batch_that_tokens_or_padding_could_shrink(planned: Planned) -> None:
    alone = sft("Qwen/Qwen2.5-7B-Instruct").replace("batch_size 2", "batch_size 1")
    assert "remove-padding" not in planned(alone, BARE)
    assert "remove-padding" in planned(sft("Qwen/Qwen2.5-7B-Instruct"), BARE)


@pytest.mark.parametrize(
    "launch",
    [
        "python train.py --lora_rank 8 --batch_size 4\n",
        sft("Qwen/Qwen2.5-7B-Instruct", "--train_type lora --deepspeed zero2"),
    ],
)
def test_adapters_have_no_moments_worth_moving(planned: Planned, launch: str) -> None:
    steps = planned(launch, BARE)
    assert not {"cpu-optimizer", "optimizer-offload", "smaller-optimizer", "optimizer-8bit"} & set(steps)


def test_what_takes_more_wherever_it_counts_is_no_step(planned: Planned) -> None:
    steps = planned(swift(model="Qwen/Qwen2.5-7B-Instruct", per_device_train_batch_size=8, num_generations=8), BARE)
    for step in (one for name, one in steps.items() if not name.startswith("not:")):
        saves = step["saves_bytes"].values()
        assert not saves or max(saves) > 0 or step["other_place_saves_bytes"], step["id"]


EVALUATES = """model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_predict: true
finetuning_type: full
eval_dataset: test
cutoff_len: 6144
output_dir: out
per_device_eval_batch_size: 8
predict_with_generate: true
"""


def test_a_run_that_only_evaluates_has_no_optimizer_no_loss_and_no_training_batch(planned: Planned) -> None:
    steps = planned(EVALUATES, BARE, name="run.yaml")
    assert first(steps, 1) == ["lower-evaluation-batch"]
    trained = {"lower-actor-micro-batch", "gradient-checkpointing", "fused-loss", "cpu-optimizer", "lora"}
    assert not trained & set(steps)
    assert trained & set(planned(EVALUATES.replace("do_predict", "do_train"), BARE, name="run.yaml"))


def test_rows_without_a_cap_get_one_among_the_first_steps(planned: Planned) -> None:
    uncapped = sft("Qwen/Qwen2.5-7B-Instruct").replace("--max_length 4096 ", "")
    steps = planned(uncapped, BARE)
    assert list(changes(steps["shorten-sequences"]).values()) == [(None, "2048")]
    assert "shorten-sequences" in first(steps)


def test_nothing_is_switched_on_by_sums_over_rows_without_a_cap(planned: Planned) -> None:
    uncapped = sft("Qwen/Qwen2.5-7B-Instruct").replace("--max_length 4096 ", "")
    steps = planned(uncapped, BARE, "--gpus", "8xA100-80GB")
    assert next(iter(steps)) == "shorten-sequences"
    assert not any(step.get("selected") for step in steps.values())
