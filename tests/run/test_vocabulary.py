"""A launch is told by the keys that one framework alone reads, and its era by those that only some versions have."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.knowledge.key_space import key_space
from advisor.run.run import Run
from advisor.session import SessionRequest, open_session


def run_of(tmp_path: Path, command: str) -> Run:
    script = tmp_path / "run.sh"
    script.write_text(command + "\n")
    return open_session(SessionRequest(script, planned=False)).run


def test_a_program_of_any_name_is_told_by_two_keys_that_only_one_framework_reads(tmp_path: Path) -> None:
    keys = "--model Qwen/Qwen2.5-7B --num_train_epochs 1 --template qwen --learning_rate 1e-4"
    own = "--vllm_enable_lora true --offload_teacher_model true --move_model_batches 4"
    assert run_of(tmp_path, f"python my_train.py {keys} {own}").framework == "ms-swift"
    assert run_of(tmp_path, f"python my_train.py {keys}").framework == "unknown"


def test_one_word_of_a_framework_among_strange_ones_proves_nothing(tmp_path: Path) -> None:
    strange = "--tokens 4096 --student x --teacher y --shards 4 --rows 8"
    assert run_of(tmp_path, f"python my_train.py --sleep_level 1 {strange}").framework == "unknown"


def test_another_projects_dpo_on_the_same_trainer_is_not_trl(tmp_path: Path) -> None:
    shared = "--model_name_or_path m --per_device_train_batch_size 1 --learning_rate 1e-6 --num_train_epochs 1"
    own = "--dataset_mixer_list a 1.0 --tokenizer_name t --use_slow_tokenizer --with_tracking --checkpointing_steps 9"
    assert run_of(tmp_path, f"accelerate launch my_lab/dpo_tune.py {shared} {own}").framework == "unknown"
    assert run_of(tmp_path, f"accelerate launch my_lab/dpo_tune.py {shared} --use_peft").framework == "trl"


def test_a_key_that_hydra_is_told_to_add_is_not_in_that_version(tmp_path: Path) -> None:
    common = (
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.strategy=fsdp actor_rollout_ref.rollout.name=vllm"
    )
    newer = run_of(tmp_path, f"{common} actor_rollout_ref.actor.ppo_epochs=1 algorithm.use_pf_ppo=False").era
    older = run_of(tmp_path, f"{common} actor_rollout_ref.actor.ppo_epochs=1 +algorithm.use_pf_ppo=False").era
    keys = key_space("verl")
    had = [era.era for era in keys.eras if "algorithm.use_pf_ppo" in keys.at(era.era)]
    assert newer in had
    assert older not in had


def test_step_3_of_deepspeed_chat_is_ppo_though_it_pads_as_step_2_does(tmp_path: Path) -> None:
    own = "--actor_model_name_or_path a --critic_model_name_or_path c --num_padding_at_beginning 1 --actor_zero_stage 3"
    assert run_of(tmp_path, f"deepspeed main.py --data_split 2,4,4 {own}").algorithm == "ppo"


MEGATRON_MODEL = (
    "MODEL_ARGS=(\n   --swiglu\n   --num-layers 28\n   --hidden-size 3584\n   --group-query-attention\n"
    '   --normalization "RMSNorm"\n   --disable-bias-linear\n)\n'
)
OWN_SFT = (
    "python -m mylab.train.main_sft backend=ddp net.path=Qwen/Qwen2.5-0.5B messages_key=messages longest=512 "
    "rows=4 logger=console start_from=ckpt out_path=out seed=42\n"
)


@pytest.mark.parametrize("text", [MEGATRON_MODEL, OWN_SFT])
def test_single_words_and_words_of_another_syntax_name_no_framework(text: str, tmp_path: Path) -> None:
    """Megatron's own `--swiglu` is no word of ms-swift, and `messages_key=…` no option of TRL."""
    script = tmp_path / "run.sh"
    script.write_text(text)
    state = open_session(SessionRequest(script, gpus="8xH100-80GB", planned=False))
    assert state.run.framework == "unknown"


def test_what_stands_in_accelerates_file_is_no_strange_word(tmp_path: Path) -> None:
    (tmp_path / "acc.yaml").write_text(
        "compute_environment: LOCAL_MACHINE\nmachine_rank: 0\nmain_training_function: main\nrdzv_backend: static\n"
        "same_network: true\ntpu_env: []\ntpu_use_cluster: false\ntpu_use_sudo: false\nnum_processes: 8\n"
    )
    command = (
        "accelerate launch --config_file acc.yaml examples/scripts/sft_vlm.py --model_name_or_path Qwen/Qwen2.5-VL-3B "
        "--dataset_name a/b --per_device_train_batch_size 1 --max_length 4096 --use_peft"
    )
    assert run_of(tmp_path, command).framework == "trl"


def test_a_file_that_builds_a_trainer_trains_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "examples" / "scripts").mkdir(parents=True)
    command = "python examples/scripts/xpo.py --model_name_or_path Qwen/Qwen2.5-7B --dataset_name a/b --max_length 2048"
    program = tmp_path / "examples" / "scripts" / "xpo.py"
    program.write_text("class MyTrainer(Base):\n    pass\n# XPOTrainer(model)\n")
    assert run_of(tmp_path, command).framework == "unknown"
    program.write_text("from trl import XPOTrainer\ntrainer = XPOTrainer(model=model, args=args)\ntrainer.train()\n")
    assert run_of(tmp_path, command).framework == "trl"
