"""The training method is told by program, key, settings or the files of a traceback; else it is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.run.recipe import method_named, recipe_of
from advisor.session import SessionRequest, State, open_session
from tests.loops import each

MODEL = "--model_name_or_path Qwen/Qwen2.5-7B --dataset_name d"
OF_ANSWERS = {
    "trl kto --model_name_or_path Qwen/Qwen2.5-7B": "kto",
    f"accelerate launch examples/scripts/dpo.py {MODEL}": "dpo",
    f"python run_sft.py {MODEL} --use_peft": "sft",
    f"python dpo_finetuning.py {MODEL}": "dpo",
    f"python examples/scripts/orpo.py {MODEL}": "orpo",
    f"python examples/scripts/cpo.py {MODEL} --loss_type simpo": "simpo",
    f"python examples/scripts/gkd.py {MODEL} --lmbda 0.0": "gkd_on_given_answers",
    "swift rlhf --rlhf_type rm --model Qwen/Qwen2.5-7B": "rm",
    "swift rlhf --model Qwen/Qwen2.5-7B": "dpo",
    "swift sft --task_type seq_cls --model Qwen/Qwen2.5-7B": "seq_cls",
    "uv run examples/run_dpo.py --config c.yaml dpo.max_num_steps=1 policy.model_name=Qwen/Qwen2.5-7B": "dpo",
    "torchrun -m verl.trainer.fsdp_sft_trainer model.partial_pretrain=Qwen/Qwen2.5-7B": "sft",
    "deepspeed main.py --data_split 2,4,4 --model_name_or_path Qwen/Qwen2.5-7B --max_seq_len 512 --zero_stage 3 "
    "--num_padding_at_beginning 0": "rm",
}
GENERATED = {
    f"python examples/scripts/online_dpo.py {MODEL}": "online_dpo",
    f"python examples/scripts/gkd.py {MODEL}": "gkd",
    f"accelerate launch examples/scripts/rloo_vlm.py {MODEL}": "rloo",
    "deepspeed main.py --actor_model_name_or_path Qwen/Qwen2.5-7B --actor_zero_stage 3": "ppo",
    "uv run examples/run_distillation.py policy.model_name=Qwen/Qwen2.5-7B": "on_policy_distillation",
}


def state_of(folder: Path, launch: str, log: str = "") -> State:
    script = folder / "run.sh"
    script.write_text(launch + "\n")
    if log:
        (folder / "train.log").write_text(log)
    return open_session(
        SessionRequest(script if launch else None, logs=(folder / "train.log",) if log else (), gpus="8xH100-80GB")
    )


@pytest.mark.parametrize("launch", OF_ANSWERS)
def test_a_run_on_given_answers_has_no_engine_and_no_rollouts(tmp_path: Path, launch: str) -> None:
    state = state_of(tmp_path, launch)
    assert state.run.algorithm == OF_ANSWERS[launch]
    assert state.run.recipe.answers == "given"
    phases = {one.phase for one in state.ledger.gpu} if state.ledger is not None else set()
    assert not phases & {"rollout_init", "rollout_generate", "weight_sync", "critic_update"}
    assert not [name for name in state.run.knobs if name.startswith(("rollout.samples", "rollout.memory", "sync."))]


@pytest.mark.parametrize("launch", GENERATED)
def test_a_run_that_generates_is_told_by_its_program_too(tmp_path: Path, launch: str) -> None:
    run = state_of(tmp_path, launch).run
    assert (run.algorithm, run.recipe.answers) == (GENERATED[launch], "generated")


@each(
    ("name", "method"),
    [
        ("verl.trainer.fsdp_sft_trainer", "sft"), ("/x/sft/train_grpo.py", "grpo"), ("run_sft_then_grpo.py", ""),
        ("train.py", ""), ("sft/main.py", "sft"), ("/ppo/code/train.py", ""),
        ("online_dpo.py", "online_dpo"), ("trl/trainer/reward_trainer.py", "rm"), ("", ""),
    ],
)  # fmt: skip
def test_only_whole_words_of_a_programs_own_name_or_of_its_folder_tell_the_method(name: str, method: str) -> None:
    assert method_named(name) == method


def test_the_outermost_trainer_in_a_traceback_is_the_method(tmp_path: Path) -> None:
    frames = "".join(
        f'  File "/env/lib/python3.11/site-packages/{file}", line {line}, in {function}\n    pass\n'
        for line, (file, function) in enumerate(
            (
                ("transformers/trainer.py", "train"),
                ("trl/trainer/dpo_trainer.py", "compute_loss"),
                ("torch/nn/functional.py", "log_softmax"),
            ),
            start=7,
        )
    )
    log = (
        'Traceback (most recent call last):\n  File "/w/main.py", line 3, in <module>\n    t.train()\n'
        f"{frames}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.27 GiB. GPU 0 has a total capacity "
        "of 79.11 GiB of which 5.10 GiB is free.\n"
    )
    state = state_of(tmp_path, "", log)
    assert (state.run.framework, state.run.algorithm) == ("trl", "dpo")


def test_where_nothing_tells_the_method_nothing_of_an_engine_is_taken_for_a_fact(tmp_path: Path) -> None:
    launch = "accelerate launch train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 4"
    log = (
        'Traceback (most recent call last):\n  File "/w/train.py", line 3, in <module>\n    t.train()\n'
        '  File "/env/trl/trainer/utils.py", line 9, in pad\n    pass\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.27 GiB. GPU 0 has a total capacity of 79.11 "
        "GiB of which 5.10 GiB is free.\n"
    )
    state = state_of(tmp_path, launch, log)
    assert (state.run.framework, state.run.algorithm) == ("trl", "unknown")
    assert not [step for step in state.plan.steps if step.id.startswith(("lower-engine", "lower-rollout"))]


def test_a_score_in_place_of_the_head_has_no_logits_and_no_weights_of_it(tmp_path: Path) -> None:
    launch = "swift {} --model Qwen/Qwen2.5-7B --tuner_type full --torch_dtype bfloat16 --deepspeed zero3"
    pair, scored = (
        state_of(tmp_path, launch.format(what)) for what in ("rlhf --rlhf_type orpo", "rlhf --rlhf_type rm")
    )
    assert recipe_of("rm").head == "score"
    assert pair.run.model.parameters - scored.run.model.parameters == 152064 * 3584
    update = scored.ledger.phase("gpu", "actor_update")
    assert sum(cell.expected for cell in update.cells if cell.owner == "logits") == 0


def test_megatron_programs_of_swift_train_everything_unless_told_otherwise(tmp_path: Path) -> None:
    launch = "{} --model Qwen/Qwen2.5-7B"
    full, low_rank = (state_of(tmp_path, launch.format(program)).run for program in ("megatron sft", "swift sft"))
    assert full.is_on("actor.full_finetuning")
    assert not low_rank.is_on("actor.full_finetuning", True)


def test_an_engine_in_the_traceback_shows_that_answers_are_generated(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        '(Actor pid=3)   File "/opt/py/site-packages/vllm/device_allocator/cumem.py", line 207, in wake_up\n'
        "(Actor pid=3)     create_and_map(handle)\n"
        "(Actor pid=3) RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62\n"
    )
    state = open_session(SessionRequest(None, (log,), answers={"framework": "openrlhf"}))
    assert state.run.recipe.answers == "generated"
    assert "lower-rollout-share" in {step.id for step in state.plan.steps}


CONFIGS_ALONE = {
    "dpo": "chosen_key: chosen\nrejected_key: rejected\nactor_train:\n  device_mapping: list(range(0,8))\n"
    "  strategy_args:\n    strategy_name: megatron_train\npretrain: Qwen/Qwen2.5-7B\n",
    "ppo": "ppo: {num_prompts_per_step: 32}\npolicy:\n  model_name: Qwen/Qwen2.5-7B\n  dtensor_cfg: {enabled: true}\n"
    "  generation: {vllm_cfg: {tensor_parallel_size: 1}}\n",
}


@pytest.mark.parametrize("method", CONFIGS_ALONE)
def test_what_a_config_sets_tells_its_method_before_a_key_at_its_default(tmp_path: Path, method: str) -> None:
    """ROLL's adv_estimator is gae where nothing sets it; a config of its DPO pipeline has no such key."""
    config = tmp_path / "config.yaml"
    config.write_text(CONFIGS_ALONE[method])
    assert open_session(SessionRequest(config, gpus="8xH100-80GB")).run.algorithm == method


def test_a_second_trainer_of_a_known_framework_is_no_other_framework_s(tmp_path: Path) -> None:
    state = state_of(tmp_path, "python -m skyrl.train.main_sft strategy=fsdp model.path=Qwen/Qwen2.5-7B max_length=512")
    assert (state.run.framework, state.run.algorithm) == ("skyrl-sft", "sft")
