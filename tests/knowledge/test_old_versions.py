"""Launches for versions of years ago are read by the options of their time, not by today's."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.knowledge import load_knowledge
from advisor.run.bound import bind_natives
from advisor.run.run import Run
from advisor.session import SessionRequest, open_session, patch

OLD_LLAMA = (
    "python src/train_bash.py --stage sft --do_train --model_name_or_path Qwen/Qwen2.5-7B --finetuning_type lora "
    "--per_device_train_batch_size 4 --output_dir out"
)
OLD_SWIFT = "NPROC_PER_NODE=2 swift sft --model_id_or_path Qwen/Qwen2.5-7B --sft_type full --batch_size 8"


def run_of(tmp_path: Path, command: str) -> Run:
    script = tmp_path / "run.sh"
    script.write_text(command + "\n")
    return open_session(SessionRequest(script, planned=False)).run


@pytest.mark.parametrize(
    ("options", "era", "tokens"),
    [
        ("--max_source_length 1024 --max_target_length 256", "v0.1", 1280),
        ("--max_source_length 1024", "v0.1", 1536),
        ("--checkpoint_dir sft --cutoff_len 512", "v0.2", 512),
        ("--plot_loss", "v0.4", 1024),
        ("--cutoff_len 4096 --visual_inputs", "v0.8.3", 4096),
    ],
)
def test_llama_factory_is_told_by_its_lengths_and_checkpoints(
    tmp_path: Path, options: str, era: str, tokens: int
) -> None:
    run = run_of(tmp_path, f"{OLD_LLAMA} {options}")
    assert (run.framework, run.era) == ("llamafactory", era)
    assert run.knobs["data.total_tokens"].value == tokens


def test_a_key_that_came_within_an_era_is_no_lever_before() -> None:
    """use_badam came with 0.6.3; 0.4 to 0.6 are one era."""
    (dialect,) = (one for one in load_knowledge().frameworks if one.framework == "llamafactory")
    for version, there in ((None, True), ("0.6.2", False), ("0.6.3", True)):
        libraries = {"llamafactory": version} if version is not None else {}
        natives = bind_natives(dialect, "v0.4", (), {}, {}, {}, libraries=libraries)
        assert ("use_badam" in natives.values) is there, version


def test_a_copied_trainer_of_llama_factory_under_another_name_is_still_told(tmp_path: Path) -> None:
    own = OLD_LLAMA.replace("src/train_bash.py", "src/train_sft.py").replace("--stage sft ", "")
    run = run_of(tmp_path, f"{own} --checkpoint_dir a,b --plot_loss --prompt_template x --max_source_length 512")
    assert (run.framework, run.era, run.algorithm) == ("llamafactory", "v0.1", "sft")


@pytest.mark.parametrize("stage", ["ppo", "rm", "pt"])
def test_a_program_for_each_stage_was_llama_factorys_first_form(tmp_path: Path, stage: str) -> None:
    run = run_of(
        tmp_path, f"python src/train_{stage}.py --do_train --model_name_or_path p/Qwen-7B --dataset a --output_dir o"
    )
    assert (run.framework, run.era, run.algorithm) == ("llamafactory", "v0.1", stage)


def test_swift_2_has_its_own_names_for_batch_and_tuner(tmp_path: Path) -> None:
    run = run_of(tmp_path, f"{OLD_SWIFT} --deepspeed zero3-offload --use_flash_attn true")
    assert (run.framework, run.era, run.algorithm) == ("ms-swift", "v2", "sft")
    knobs = {name: knob.value for name, knob in run.knobs.items()}
    assert knobs["actor.micro_batch"] == 8
    assert knobs["actor.full_finetuning"] is True
    assert knobs["data.total_tokens"] == 2048
    assert (knobs["actor.zero_stage"], knobs["actor.param_offload"]) == (3, True)
    assert knobs["actor.flash_attention"] is True


def test_swift_2_under_torchrun_is_told_by_its_words(tmp_path: Path) -> None:
    run = run_of(tmp_path, "torchrun --nproc_per_node 8 llm_sft.py --sft_type lora --dtype AUTO --batch_size 2")
    assert (run.framework, run.era) == ("ms-swift", "v2")


def test_a_patch_for_swift_2_speaks_its_words(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"{OLD_SWIFT} --max_length 8192 --gradient_accumulation_steps 2\n")
    log = tmp_path / "train.log"
    log.write_text(
        "Traceback (most recent call last):\n"
        '  File "/x/swift/trainers/mixin.py", line 500, in training_step\n    self.accelerator.backward(loss)\n'
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB total capacity; "
        "77.01 GiB already allocated; 1.10 GiB free; 77.50 GiB reserved in total by PyTorch)\n"
    )
    state = open_session(SessionRequest(script, logs=(log,), gpus="2xA100-80GB", host_ram="1000GB"))
    (rewrite,) = patch(state).rewrites
    text = rewrite.new.decode()
    assert "--deepspeed default-zero3" in text
    newer = (
        "--per_device_train_batch_size",
        "--use_liger_kernel",
        "--tuner_type",
        "--train_type",
        "--attn_impl",
        " zero",
    )
    assert [word for word in newer if word in text] == []


GRPO = "torchrun --nproc_per_node 8 src/open_r1/grpo.py --model_name_or_path Qwen/Qwen2.5-7B --num_generations 8"


@pytest.mark.parametrize(
    ("options", "era", "rows"),
    [
        ("--per_device_train_batch_size 1 --max_pixels 401408", "v0.14", 8),
        ("--per_device_train_batch_size 8 --image_folders a --data_file_paths b", "v0.17", 8),
    ],
)
def test_a_fork_is_of_the_version_that_it_was_cut_from(tmp_path: Path, options: str, era: str, rows: int) -> None:
    run = run_of(tmp_path, f"{GRPO} {options}")
    assert (run.framework, run.era, run.algorithm) == ("trl", era, "grpo")
    assert run.knobs["actor.micro_batch"].value == rows


def test_a_fork_is_told_by_the_folder_that_its_script_lies_in(tmp_path: Path) -> None:
    home = tmp_path / "R1-V"
    home.mkdir()
    assert run_of(home, f"{GRPO} --per_device_train_batch_size 1").era == "v0.14"


def test_trl_before_0_12_is_a_loop_of_ones_own_around_ppo(tmp_path: Path) -> None:
    own = "--ppo_epochs 4 --early_stopping True --adap_kl_ctrl True --mini_batch_size 4 --log_with wandb --target_kl 6"
    run = run_of(
        tmp_path, f"accelerate launch rl_training.py {own} --learning_rate 1e-5 --gradient_accumulation_steps 2"
    )
    assert (run.framework, run.era, run.algorithm) == ("trl", "v0.11", "ppo")
    assert run.knobs["actor.micro_batch"].value == 4


VERL = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B "
    "data.train_batch_size=256 trainer.n_gpus_per_node=8 trainer.nnodes=1"
)


@pytest.mark.parametrize(
    ("options", "era", "group", "rows"),
    [
        ("actor_rollout_ref.rollout.n_agent=5 actor_rollout_ref.actor.ppo_micro_batch_size=64", "v0.1-fork", 5, 8),
        ("data.n_samples=4 actor_rollout_ref.actor.ppo_micro_batch_size=64", "v0.1-fork", 4, 8),
        ("actor_rollout_ref.rollout.n=4 actor_rollout_ref.actor.ppo_micro_batch_size=64", "v0.1-fork", 4, 32),
        (
            "actor_rollout_ref.rollout.agent.activate_agent=True actor_rollout_ref.rollout.n=4 "
            "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2",
            "v0.2",
            4,
            2,
        ),
    ],
)
def test_a_fork_of_verl_counts_its_groups_by_its_own_keys(
    tmp_path: Path, options: str, era: str, group: int, rows: int
) -> None:
    run = run_of(tmp_path, f"{VERL} {options}")
    assert (run.framework, run.era) == ("verl", era)
    assert run.knobs["rollout.samples_per_prompt"].value == group
    assert run.knobs["actor.micro_batch"].value == rows


def test_openrlhf_before_0_3_1_starts_from_its_examples(tmp_path: Path) -> None:
    keys = "--pretrain m --micro_train_batch_size 2 --micro_rollout_batch_size 4 --zero_stage 2 --prompt_max_len 512"
    assert run_of(tmp_path, f"deepspeed ../train_ppo.py {keys}").era == "v0.4"
    assert run_of(tmp_path, f"python3 examples/train_ppo_ray.py {keys}").era == "v0.4"
    assert run_of(tmp_path, f"python3 -m openrlhf.cli.train_ppo_ray {keys} --vllm_enable_sleep").era != "v0.4"


def test_a_key_that_was_another_one_before_is_not_missing_there(tmp_path: Path) -> None:
    run = run_of(tmp_path, f"{OLD_SWIFT} --deepspeed default-zero2 --per_device_train_batch_size 4")
    assert run.era == "v2"
    assert not [note for note in run.notes if "not a setting" in note]


@pytest.mark.parametrize(
    ("keys", "era"),
    [
        ("worker.actor.offload.param_offload=true worker.actor.offload.optimizer_offload=true", "v0.2"),
        ("worker.actor.offload.offload_params=true worker.actor.offload.offload_optimizer=true", "v0.3.0"),
    ],
)
def test_two_easyr1_of_one_unreleased_version_are_told_by_their_keys(tmp_path: Path, keys: str, era: str) -> None:
    (tmp_path / "verl").mkdir()
    (tmp_path / "verl" / "__init__.py").write_text('__version__ = "0.2.0.dev"\n')
    run = run_of(tmp_path, f"python3 -m verl.trainer.main worker.rollout.n=8 {keys}")
    assert (run.framework, run.era, run.unknown_keys) == ("easyr1", era, ())
    assert (run.knobs["actor.param_offload"].value, run.knobs["actor.optimizer_offload"].value) == (True, True)


def test_openrlhfs_distillation_is_no_ppo(tmp_path: Path) -> None:
    run = run_of(tmp_path, "deepspeed --module openrlhf.cli.train_kd --pretrain Qwen/Qwen2.5-7B --zero_stage 3")
    assert (run.framework, run.algorithm) == ("openrlhf", "distillation")
