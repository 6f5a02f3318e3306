"""What any launch says of its cards and of sharding is read, whoever wrote the trainer."""

from pathlib import Path

import pytest

from advisor.session import SessionRequest, State, open_session


def opened(folder: Path, text: str, name: str = "run.sh", **asked: str) -> State:
    file = folder / name
    file.write_text(text)
    return open_session(SessionRequest(script=file, answers={"memory": "gpu"}, **asked))


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        ("deepspeed --include localhost:0,1,2 my_sft.py --lr 1e-5", 3),
        ("deepspeed --include worker-0:0,1@worker-1:0,1 my_sft.py --lr 1e-5", 4),
        ("deepspeed --num_gpus 8 my_sft.py --lr 1e-5", 8),
        ("deepspeed --num_nodes 2 --num_gpus=8 my_sft.py --lr 1e-5", 16),
        ("torchrun --nproc_per_node=4 my_sft.py --lr 1e-5", 4),
        ("torchrun --nnodes 2 --nproc-per-node 4 my_sft.py --lr 1e-5", 8),
        ("accelerate launch --num_processes 6 my_sft.py --lr 1e-5", 6),
        ("CUDA_VISIBLE_DEVICES=2,3 python my_sft.py --lr 1e-5", 2),
        ("CUDA_VISIBLE_DEVICES=0,-1,2 python my_sft.py --lr 1e-5", 1),
        ("python my_sft.py --lr 1e-5 --n_gpus 4", 4),
        ("python my_sft.py --lr 1e-5 trainer.devices=[0,1,2]", 3),
        ("python my_rl.py --lr 1e-5 --tensor_parallel_size 4 --data_parallel_size 2", 8),
    ],
)
def test_cards_are_counted_by_launcher_keys_sizes_or_visible_devices(tmp_path, text, cards):
    topology = opened(tmp_path, text + "\n").run.topology
    assert (topology.actor_gpus, topology.known) == (cards, True)


def test_torchrun_starts_a_process_for_each_card_and_hidden_cards_are_said(tmp_path):
    sft = "torchrun --nproc_per_node=gpu trl/scripts/sft.py --model_name_or_path Qwen/Qwen2.5-0.5B\n"
    assert opened(tmp_path, sft, gpus="4xA100-80GB").run.topology.actor_gpus == 4
    hidden = opened(tmp_path, f"export CUDA_VISIBLE_DEVICES=''\n{sft}", gpus="4xA100-80GB")
    assert any("sees no GPU" in note for note in hidden.run.notes)


def test_rays_own_settings_are_those_of_ray_start(tmp_path):
    run = "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B trainer.n_gpus_per_node=8\n"
    for start, limit in (("RAY_memory_usage_threshold=0.8", 800), ("RAY_memory_monitor_refresh_ms=0", 1000)):
        state = opened(tmp_path, f"{start} ray start --head\n{run}", gpus="8xA100-80GB", host_ram="1000GB")
        assert state.ledger.host_limit == limit * 2**30


def test_a_device_that_is_chosen_is_no_count(tmp_path):
    assert not opened(tmp_path, "python my_sft.py --gpu 0 --lr 1e-5\n").run.topology.known


def test_cards_of_a_config_file_are_counted_too(tmp_path):
    text = "model:\n  name: meta-llama/Llama-3.1-8B\ntrainer:\n  num_gpus: 4\n  batch_size: 16\n"
    assert opened(tmp_path, text, "own.yaml").run.topology.actor_gpus == 4


@pytest.mark.parametrize("starter", ["torchrun --nproc_per_node=4", "deepspeed --num_gpus 4"])
def test_a_launcher_without_a_sharding_file_shards_nothing_and_says_what_each_card_holds(tmp_path, starter):
    state = opened(tmp_path, f"{starter} my_sft.py --model Llama-2-13b --batch_size 8\n", gpus="4xA100-80GB")
    said = " ".join(state.diagnosis.remarks)
    assert "193.95 GiB with gradients" in said
    assert state.diagnosis.cause == "states-too-big"
    assert state.plan.steps[0].id == "higher-zero-stage"


@pytest.mark.parametrize(
    "rest",
    [
        "my_sft.py --model Llama-2-13b --deepspeed ds.json",
        "my_sft.py --model Llama-2-13b --zero_stage 3",
        'my_sft.py --model Llama-2-13b --fsdp "full_shard auto_wrap"',
        "my_sft.py $MORE --model Llama-2-13b",
        "pretrain_megatron.py --model Llama-2-13b",
    ],
)
def test_a_launch_that_may_shard_is_not_said_to_shard_nothing(tmp_path, rest):
    assert opened(tmp_path, f"torchrun --nproc_per_node=4 {rest}\n").run.unsharded == ""


def test_frozen_weights_are_not_counted_as_trained_ones(tmp_path):
    text = "torchrun --nproc_per_node=4 my_sft.py --model Llama-2-13b --lora_r 8 --bits 8\n"
    state = opened(tmp_path, text, gpus="4xA100-40GB")
    assert state.diagnosis.cause != "states-too-big"
    assert "all the frozen weights (13.02B parameters, 24.24 GiB" in " ".join(state.diagnosis.remarks)


def test_the_pass_is_halved_and_not_the_whole_batch_and_short_names_are_known(tmp_path):
    def changed(text: str) -> dict[str, str | None]:
        steps = opened(tmp_path, text).plan.steps
        return {change.key: change.new for step in steps for change in step.changes}

    first = changed("python my_sft.py --model Llama-2-7b --batch_size 128 --micro_batch_size 16 --lora_r 8 --bits 8\n")
    assert first["--micro_batch_size"] == "8"
    assert "--batch_size" not in first
    assert first["--bits"] == "4"
    assert changed("python my_dpo.py --model Llama-2-7b --bs 4 --seq_len 4096\n")["--bs"] == "2"


def test_a_script_that_starts_no_training_is_asked_for_its_whole_command_above_the_steps(tmp_path):
    plan = opened(tmp_path, "#!/bin/bash\nsource env.sh\nbash scripts/launch_all.sh $1\n").plan
    assert "run.sh starts none" in plan.beyond
    assert "env.sh is run by this script and was not found" in plan.beyond
    assert plan.steps[0].id == "lower-actor-micro-batch"
