"""verl-tool, a fork of verl 0.7: told by its own module, its agent's keys read."""

from __future__ import annotations

from pathlib import Path

from advisor.run.run import Run
from advisor.session import SessionRequest, open_session

LAUNCH = (
    "python3 -m verl_tool.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B "
    "data.train_batch_size=128 data.max_prompt_length=1024 data.max_response_length=4096 "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 trainer.n_gpus_per_node=8 trainer.nnodes=1 "
    "actor_rollout_ref.agent.max_turns=5"
)


def _run(folder: Path, more: str = "") -> Run:
    script = folder / "run.sh"
    script.write_text(f"{LAUNCH} {more}\n")
    return open_session(SessionRequest(script, planned=False)).run


def test_a_launch_is_told_by_its_own_program_of_the_version_that_it_was_cut_from(tmp_path: Path) -> None:
    run = _run(tmp_path)
    assert (run.framework, run.era, run.algorithm) == ("verl", "v0.7", "grpo")
    assert run.knobs["actor.micro_batch"].value == 2


def test_rows_are_padded_to_the_length_of_the_data_whatever_the_agent_ends_at(tmp_path: Path) -> None:
    run = _run(tmp_path, "actor_rollout_ref.agent.train_max_response_length=2048")
    assert run.knobs["data.response_tokens"].value == 4096
    assert not run.unknown_keys
