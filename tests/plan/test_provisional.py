"""A process that ended without a word: what may be done before anybody knows why, and in which order by hand."""

from __future__ import annotations

import pytest

from advisor.knowledge import load_knowledge
from tests.plan.planned import Planned, changes, selected

LOST = """\
{before}ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
	class_name: {name}
	pid: 17871
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker \
unexpectedly exits with a connection error code 2. End of file. There are some potential root causes. (1) The process \
is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop --force is called. (3) The worker is crashed \
unexpectedly due to SIGSEGV or other unexpected errors.
"""
VALIDATE = '  File "/root/verl/verl/trainer/ppo/ray_trainer.py", line 743, in _validate\n'
VERL = (
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B trainer.n_gpus_per_node=8 "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 data.train_batch_size=256\n"
)
NOTHING = "echo nothing\n"


def test_steps_after_an_unwitnessed_death_carry_their_condition_and_are_not_switched_on(planned: Planned) -> None:
    steps = planned(VERL, LOST.format(before="", name="WorkerDict"))
    look, *proposed = [step for name, step in steps.items() if not name.startswith("not:")]
    assert look["id"] == "ask-the-dead-worker"
    assert 0 < len(proposed) <= 4
    assert not selected(steps)
    for step in proposed:
        assert step["caveats"][0].startswith("only if it was host RAM")
        assert step["results"] == "unchanged"
        assert not any(size < 0 for size in step["other_place_saves_bytes"].values())


LAUNCHER = "[2024-01-24 13:07:57,785] [INFO] [launch.py:178:sigkill_handler] Killing subprocess 9727\n"
LOADING = "Loading checkpoint shards:  25%|##5       | 1/4 [00:10<00:30, 10.2s/it]\n"
STEPS = "{'loss': 1.2, 'epoch': 0.1}\n  2%|2  | 20/1000 [10:00<5:00:00, 30s/it]\n{'loss': 1.2, 'epoch': 0.1}\n"


CUT = """step 683/3710 =========================
▶ Taking a training step...
Traceback (most recent call last):
  File "/opt/nemo-rl/nemo_rl/algorithms/sft.py", line 455, in sft_train
"""


def test_a_step_late_in_the_run_that_ends_without_its_error_line_points_to_the_longest_samples(
    planned: Planned,
) -> None:
    late, first = (planned(NOTHING, CUT.replace("683", step), "--answer", "framework=nemo-rl") for step in ("683", "1"))
    assert "longest-first" in late
    assert "longest-first" not in first


def test_rows_that_are_packed_to_one_length_lose_nothing_by_a_filter(planned: Planned) -> None:
    config = "tokenizer:\n  max_seq_len: 1024\ndataset:\n  packed: true\nbatch_size: 1\nepochs: 1\n"
    on = ("--answer", "framework=torchtune", "--answer", "memory=gpu")
    packed, apart = (planned(text, "", *on) for text in (config, config.replace("true", "false")))
    assert not {"length-filter", "longest-first"} & packed.keys()
    assert {"length-filter", "longest-first"} <= apart.keys()


@pytest.mark.parametrize(
    ("before", "host", "card"),
    [
        ("Time to load cpu_adam op: 2.3 seconds\n", "more-host-ram", "lower-actor-micro-batch"),
        (LOADING, "load-once", "load-smaller"),
        ("Attempting to resume from out/checkpoint-500\n", "resume-weights-only-host", "resume-by-way-of-ram"),
        ("", "load-once", "lower-actor-micro-batch"),
        (STEPS, "fewer-loader-workers", "token-budget"),
    ],
)
def test_what_a_launcher_ended_has_a_list_for_each_memory_that_it_may_have_been(
    planned: Planned, before: str, host: str, card: str
) -> None:
    steps = planned(NOTHING, before + LAUNCHER)
    caveats = {name: (step.get("caveats") or [""])[0] for name, step in steps.items()}
    told = {name: caveat for name, caveat in caveats.items() if caveat.startswith("only if")}
    assert {host, card} <= told.keys()
    assert len({*told.values()}) == 2
    assert not selected(steps)


def test_a_death_in_the_validation_names_the_validation_batch_first(planned: Planned) -> None:
    steps = planned(VERL, LOST.format(before=VALIDATE, name="TaskRunner"))
    assert [*steps][:2] == ["ask-the-dead-worker", "smaller-validation-batch"]
    assert changes(steps["smaller-validation-batch"]) == {"data.val_batch_size": (None, "64")}


def test_a_text_model_has_no_image_cache_to_switch_off(planned: Planned) -> None:
    assert "no-image-cache" not in planned(VERL, LOST.format(before="", name="WorkerDict"))


def test_an_unproven_end_that_no_process_died_of_gets_no_steps(planned: Planned) -> None:
    steps = planned(NOTHING, "Traceback (most recent call last):\nKeyError: 'prompt'\n")
    assert not [name for name in steps if not name.startswith("not:")]


def test_what_changes_results_is_no_provision() -> None:
    named = {name for cause in load_knowledge().tree.causes for p in cause.provisional for name in p.remedies}
    assert "lora" not in named


SHM = "RuntimeError: DataLoader worker (pid 1234) is killed by signal: Bus error. It is possible that dataloader's \
workers are out of shared memory.\n"


def test_a_limit_is_raised_before_anything_is_made_smaller(planned: Planned) -> None:
    assert next(iter(planned(NOTHING, SHM))) == "raise-shm"


def test_more_ram_is_among_the_first_steps_of_a_full_node(planned: Planned) -> None:
    log = (
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
        "Memory on the node (IP: 10.2.8.9, ID: 87d7) where the task (task ID: 7900, name=main_task, pid=2285, memory "
        "used=3.13GB) was running was 730.06GB / 768.00GB (0.9506), which exceeds the memory usage threshold of 0.95.\n"
    )
    order = [name for name in planned(VERL, log) if not name.startswith("not:")]
    assert "more-host-ram" in order[:4]


SERVER = (
    "CUDA_VISIBLE_DEVICES=0,1,2,3,4,5 NPROC_PER_NODE=6 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-3B-Instruct "
    "--use_vllm true --vllm_mode server --vllm_server_base_url http://0.0.0.0:8000 --train_type full --torch_dtype "
    "bfloat16 --max_length 2048 --max_completion_length 2048 --per_device_train_batch_size 2 --num_generations 4 "
    "--gradient_accumulation_steps 8 --deepspeed zero3\n"
)
LATE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 1 has a total capacity of 79.15 GiB "
    "of which 1.31 GiB is free. Of the allocated memory 75.65 GiB is allocated by PyTorch, and 0.30 GiB is reserved by "
    "PyTorch but unallocated.\n"
)


def test_an_engine_on_cards_of_its_own_is_not_what_fills_the_trainers(planned: Planned) -> None:
    steps = planned(SERVER, LATE, "--lib", "ms-swift=3.5.0")
    assert "lower-actor-micro-batch" in steps
    assert "separate-cards" not in steps
