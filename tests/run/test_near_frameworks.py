"""Launches of projects that are not known, with keys in common with those that are: unknown, not the neighbour."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.knowledge import load_knowledge
from advisor.run.dialect import recognise
from advisor.script.reader import read_script

OTHERS = {
    # allenai/open-instruct@e6c3044a scripts/train/debug/grpo_fast.sh
    "open-instruct": "uv run --active open_instruct/grpo_fast.py --dataset_mixer_list ai2-adapt-dev/rlvr_gsm8k_zs 64 "
    "--max_prompt_token_length 512 --response_length 512 --pack_length 1024 --per_device_train_batch_size 1 "
    "--num_unique_prompts_rollout 8 --num_samples_per_prompt_rollout 4 --model_name_or_path Qwen/Qwen2.5-7B "
    "--deepspeed_stage 3 --num_learners_per_node 8 --vllm_num_engines 8 --vllm_tensor_parallel_size 1 --beta 0.01",
    # sail-sg/oat examples: OpenRLHF's words, another parser
    "oat": "python -m oat.experiment.main --gpus 8 --collocate --vllm_gpu_ratio 0.45 --gradient-checkpointing "
    "--flash-attn --bf16 --zero-stage 2 --ref_offload --pretrain Qwen/Qwen2.5-7B --rollout_batch_size 128 "
    "--train_batch_size 128 --train_batch_size_per_device 1 --rnd-seed --learning_rate 1e-6 --num_samples 8",
    "pipeline-rl": "python -m pipelinerl.launch output_dir=out actor.llm_max_rollouts=64 finetune.train_batch_size=1 "
    "finetune.gradient_accumulation_passes=1024 model_path=Qwen/Qwen2.5-7B world.actor_fraction=4",
    # NVIDIA/NeMo-Aligner docs
    "nemo-aligner": "python -u examples/nlp/gpt/train_gpt_ppo_actor.py trainer.num_nodes=1 trainer.devices=8 "
    "model.global_batch_size=64 model.micro_batch_size=1 ++model.tensor_model_parallel_size=4 "
    "trainer.ppo.rollout_micro_batch_size=8 remote_critic_rm.reward_model.ip=127.0.0.1",
    "trlx": "accelerate launch --config_file configs/accelerate/zero2-bf16.yaml examples/hh/ppo_hh.py",
    "megatron-lm": "torchrun --nproc_per_node 8 train_rl.py --perform-rl-step --grpo-group-size 16 "
    "--grpo-prompts-per-step 32 --tensor-model-parallel-size 4 --micro-batch-size 1 --global-batch-size 512",
    "cosmos-rl": "cosmos-rl --config configs/qwen2-5/qwen2-5-7b-p-fsdp2-r-tp2-grpo.toml --policy 1 --rollout 1",
    "verifiers": "uv run vf-rl @ configs/rl/math.toml --trainer.max-steps 100",
    "an own trainer": "torchrun --nproc_per_node 8 train_rlhf.py --model Qwen/Qwen2.5-7B --batch_size 8 --rollouts 64 "
    "--colocate_all_models --clip 0.2 --lr 1e-6 --max_len 2048 --kl 0.01",
}
CONFIGS = {
    # RLinf/RLinf examples/reasoning/config/math/qwen2.5-1.5b-grpo-fsdp.yaml
    "rlinf": "cluster: {num_nodes: 1}\nrunner: {task_type: reasoning, max_epochs: 5, seq_length: 28672}\n"
    "algorithm: {group_size: 8, recompute_logprobs: True, adv_type: grpo, loss_type: actor}\n"
    "rollout: {group_name: RolloutGroup, gpu_memory_utilization: 0.55, rollout_backend: sglang}\n"
    "data: {type: math, rollout_batch_size: 512, max_prompt_length: 1024, train_data_paths: [a]}\n"
    "actor: {group_name: ActorGroup, training_backend: fsdp, micro_batch_size: 4, global_batch_size: 1024}\n",
    "a service": "allocation_mode: spot\nregion: eu\nreplicas: 4\nimage: trainer:1\nports: [80]\n",
}
KNOWLEDGE = load_knowledge()


def framework_of(text: str, file: Path) -> str | None:
    file.write_text(text)
    script = read_script(file)
    known = [recognise(launch, text, (), {}, {}, KNOWLEDGE.frameworks).framework for launch in script.launches]
    return next((framework.framework for framework in known if framework is not None), None)


@pytest.mark.parametrize("project", OTHERS)
def test_a_command_of_another_project_is_unknown(project: str, tmp_path: Path) -> None:
    assert framework_of(f"{OTHERS[project]}\n", tmp_path / "run.sh") is None


@pytest.mark.parametrize("project", CONFIGS)
def test_a_config_of_another_project_is_unknown(project: str, tmp_path: Path) -> None:
    assert framework_of(CONFIGS[project], tmp_path / "run.yaml") is None


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        (
            "python my_ppo.py --pretrain Qwen2.5-7B --colocate_all_models --vllm_num_engines 4 --mine 1\n",
            "openrlhf",
        ),
        ("  --vllm_num_engines 8 \\\n  --micro_train_batch_size 2 \\\n  --colocate_all_models \\\n", "openrlhf"),
        ("python lab/train.py worker.actor.global_batch_size=128 worker.rollout.n=5 lab.name=x\n", "easyr1"),
    ],
)
def test_a_fork_and_a_pasted_part_are_known_by_their_words(text: str, framework: str, tmp_path: Path) -> None:
    assert framework_of(text, tmp_path / "run.sh") == framework
