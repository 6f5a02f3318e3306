"""Agent-R1 is read as verl: on verl 0.7 where each step is a row, and as it was up to 2025, on what became verl 0.4."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.run.run import Run
from advisor.session import SessionRequest, open_session

# AgentR1/Agent-R1@6dc8f67 examples/run_qwen2.5-3b.sh
ONE_STEP = """python3 -m agent_r1.trainer.main_agent_ppo algorithm.adv_estimator=grpo \\
    data.train_batch_size=1024 data.max_prompt_length=512 data.max_response_length=1024 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-3B-Instruct \\
    actor_rollout_ref.actor.ppo_mini_batch_size=128 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=40 \\
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=40 actor_rollout_ref.rollout.n=5 \\
    actor_rollout_ref.rollout.tensor_model_parallel_size=1 trainer.n_gpus_per_node=2 trainer.nnodes=1"""
# AgentR1/Agent-R1@6dc8f67 examples/run_qwen3-4b_gsm8k_tool.sh
WITH_TOOL = (
    f"{ONE_STEP} actor_rollout_ref.rollout.agent.default_agent_flow=agent_env_loop "
    "actor_rollout_ref.rollout.agent.max_steps=5"
)
# AgentR1/Agent-R1@ed9f0cc examples/trainer/run_grpo_hotpotqa.sh
LEGACY = """python3 -m agent_r1.src.main_agent algorithm.adv_estimator=grpo \\
    data.train_batch_size=128 data.max_prompt_length=8192 data.max_response_length=8192 \\
    data.max_response_length_single_turn=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-1.5B-Instruct \\
    actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \\
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2 actor_rollout_ref.rollout.n_repeat=5 \\
    actor_rollout_ref.rollout.tensor_model_parallel_size=2 trainer.n_gpus_per_node=4 trainer.nnodes=1 \\
    tool.max_turns=5 tool.max_tool_response_length=2048"""


def _run(folder: Path, launch: str) -> Run:
    script = folder / "run.sh"
    script.write_text(f"{launch}\n")
    return open_session(SessionRequest(script)).run


@pytest.mark.parametrize(
    ("launch", "era", "micro_batch", "response"),
    [(ONE_STEP, "v0.7", 40, 1024), (WITH_TOOL, "v0.7", 40, 1024), (LEGACY, "v0.4", 2, 8192)],
    ids=["one-step", "with-tool", "legacy"],
)
def test_a_launch_is_told_and_its_knobs_come_to_what_it_says(
    tmp_path: Path, launch: str, era: str, micro_batch: int, response: int
) -> None:
    run = _run(tmp_path, launch)
    assert (run.framework, run.era, run.algorithm) == ("verl", era, "grpo")
    assert run.knobs["actor.micro_batch"].value == micro_batch
    assert run.knobs["data.response_tokens"].value == response
    assert run.knobs["rollout.samples_per_prompt"].value == 5


def test_started_as_a_file_it_is_told_as_well(tmp_path: Path) -> None:
    run = _run(tmp_path, ONE_STEP.replace("-m agent_r1.trainer.main_agent_ppo", "agent_r1/trainer/main_agent_ppo.py"))
    assert (run.framework, run.era) == ("verl", "v0.7")


def test_its_own_count_of_samples_wins_over_the_parents(tmp_path: Path) -> None:
    run = _run(tmp_path, f"{LEGACY} actor_rollout_ref.rollout.n=2")
    assert run.knobs["rollout.samples_per_prompt"].value == 5


def test_its_keys_hold_beside_the_version_that_its_verl_calls_itself(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"{LEGACY}\n")
    run = open_session(SessionRequest(script, libraries=("verl=0.2.0.dev0",))).run
    assert (run.era, run.knobs["rollout.samples_per_prompt"].value) == ("v0.2", 5)
