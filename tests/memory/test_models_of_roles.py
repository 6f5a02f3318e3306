"""A critic, or a reward model, that is another model than the actor is counted by its own size."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.memory.cells import Owner
from advisor.session import SessionRequest, open_session

VERL = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=gae actor_rollout_ref.model.path=Qwen/Qwen2.5-32B "
    "trainer.n_gpus_per_node=8 data.train_batch_size=128 data.max_prompt_length=512 data.max_response_length=512 "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 critic.ppo_micro_batch_size_per_gpu=1 "
)
OPENRLHF = (
    "python3 -m openrlhf.cli.train_ppo_ray --actor_num_nodes 1 --actor_num_gpus_per_node 8 --zero_stage 3 --bf16 "
    "--critic_num_gpus_per_node 8 --ref_num_gpus_per_node 8 --colocate_all_models --pretrain Qwen/Qwen2.5-32B "
)
TRL = (
    "accelerate launch --num_processes 8 examples/scripts/ppo/ppo.py --num_ppo_epochs 1 --output_dir o "
    "--per_device_train_batch_size 1 --model_name_or_path EleutherAI/pythia-6.9b --dataset_name d "
)
ROWS = [
    (VERL, 32.76, 31.98),
    (VERL + "critic.model.path=Qwen/Qwen2.5-32B", 32.76, 31.98),
    (VERL + "critic.model.path=Qwen/Qwen2.5-7B", 32.76, 7.07),
    (OPENRLHF + "--reward_pretrain Qwen/Qwen2.5-7B", 32.76, 7.07),
    (OPENRLHF + "--reward_pretrain Qwen/Qwen2.5-7B --critic_pretrain Qwen/Qwen2.5-3B", 32.76, 3.09),
    (TRL + "--reward_model_path EleutherAI/pythia-1b", 6.86, 0.91),
]
"""Launch, and billions of parameters of actor and critic: its head is a score."""


def test_each_role_is_counted_by_its_own_model(tmp_path: Path) -> None:
    for launch, actor, critic in ROWS:
        (tmp_path / "run.sh").write_text(launch + "\n")
        state = open_session(SessionRequest(tmp_path / "run.sh", gpus="8xA100-80GB", planned=False))
        assert state.run.model is not None
        counts = [shape.parameters / 1e9 for shape in (state.run.model, state.run.critic_model or state.run.model)]
        assert counts == pytest.approx([actor, critic], abs=0.01), launch
        loading = next(phase for phase in state.ledger.gpu if phase.phase == "model_load")
        held = [sum(loading.of(owner) for owner in owners) for owners in (_ACTOR, _CRITIC)]
        assert held[1] / held[0] == pytest.approx(critic / actor, rel=0.05), launch


_ACTOR: tuple[Owner, ...] = ("weights", "gradients", "optimizer")
_CRITIC: tuple[Owner, ...] = ("critic",)


def test_one_process_that_reads_the_weights_is_counted_once(tmp_path: Path) -> None:
    held = []
    for once in ("true", "false"):
        (tmp_path / "q.yml").write_text(
            "base_model: Qwen/Qwen2.5-7B\nsequence_len: 512\nmicro_batch_size: 1\nfsdp: [full_shard, auto_wrap]\n"
            f"fsdp_config:\n  fsdp_cpu_ram_efficient_loading: {once}\n"
        )
        (tmp_path / "run.sh").write_text("accelerate launch --num_processes 2 -m axolotl.cli.train q.yml\n")
        state = open_session(SessionRequest(tmp_path / "run.sh", gpus="2xA100-80GB", planned=False))
        loading = next(phase for phase in state.ledger.host if phase.phase == "model_load")
        held.append(loading.of("loading"))
    assert held[1] == 2 * held[0]
