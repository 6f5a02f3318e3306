"""The model that a distilled one learns from: its size, and where it is while it does not score."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.knowledge import load_knowledge
from advisor.memory.cells import Cell
from advisor.session import SessionRequest, open_session
from advisor.words import Phase

NEMO = (
    "uv run examples/run_distillation.py policy.model_name=Qwen/Qwen3-1.7B-Base teacher.model_name=Qwen/Qwen3-32B "
    "cluster.gpus_per_node=8 cluster.num_nodes=1\n"
)
SWIFT = (
    "NPROC_PER_NODE=4 swift rlhf --rlhf_type gkd --model Qwen/Qwen2.5-7B --teacher_model Qwen/Qwen2.5-14B-Instruct "
    "--tuner_type full --deepspeed zero3 --max_length 2048 {more}\n"
)
QWEN3_32B, QWEN_14B = 32_762_123_264, 14_770_033_664


def held(folder: Path, text: str, place: str, phase: Phase, owner: str = "reference") -> list[Cell]:
    (folder / "run.sh").write_text(text)
    state = open_session(SessionRequest(folder / "run.sh", gpus="8xH100-80GB", host_ram="2000GB"))
    found = state.ledger.phase("gpu" if place == "gpu" else "host", phase)
    assert found is not None
    return [cell for cell in found.cells if cell.owner == owner]


def test_a_teacher_that_rests_in_host_ram_is_on_the_card_only_while_it_scores(tmp_path: Path) -> None:
    (scoring,) = held(tmp_path, NEMO, "gpu", "log_prob")
    assert scoring.expected == pytest.approx(4 * QWEN3_32B / 8)
    assert not held(tmp_path, NEMO, "gpu", "actor_update")
    (resting,) = held(tmp_path, NEMO, "host", "actor_update")
    assert resting.expected == pytest.approx(4 * QWEN3_32B)


def test_a_teacher_stands_beside_its_student_unless_it_is_offloaded(tmp_path: Path) -> None:
    (beside,) = held(tmp_path, SWIFT.format(more=""), "gpu", "actor_update")
    assert beside.expected == pytest.approx(2 * QWEN_14B / 4)
    offloaded = SWIFT.format(more="--offload_teacher_model true")
    assert not held(tmp_path, offloaded, "gpu", "rollout_generate")
    assert held(tmp_path, offloaded, "host", "actor_update")


def test_the_divergence_from_a_teacher_is_kept_for_the_answers(tmp_path: Path) -> None:
    text = SWIFT.format(more="--per_device_train_batch_size 4 --max_completion_length 512")
    (logits,) = held(tmp_path, text, "gpu", "actor_update", "logits")
    tokens, vocabulary = 4 * (2048 + 512), 152064
    assert logits.expected == pytest.approx(tokens * vocabulary * (4 + 26) * 513 / 2560, rel=0.01)
    fused = text.replace("--rlhf_type", "--use_liger_kernel true --rlhf_type")
    assert sum(cell.expected for cell in held(tmp_path, fused, "gpu", "actor_update", "logits")) < logits.expected / 3


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("dpo: {reference_policy_kl_penalty: 0.05}", "dpo"),
        ("distillation: {num_prompts_per_step: 128}", "on_policy_distillation"),
        ("sft: {max_num_steps: 60}", "sft"),
        ("grpo: {num_prompts_per_step: 32}", "grpo"),
    ],
)
def test_a_configuration_alone_tells_the_method(tmp_path: Path, text: str, method: str) -> None:
    policy = "policy: {model_name: Qwen/Qwen3-1.7B, dtensor_cfg: {enabled: true, activation_checkpointing: true}}"
    (tmp_path / "run.yaml").write_text(f"{text}\n{policy}\ncluster: {{gpus_per_node: 8, num_nodes: 1}}\n")
    state = open_session(SessionRequest(tmp_path / "run.yaml", gpus="8xH100-80GB", host_ram="2000GB"))
    known = {recipe.id: recipe for recipe in load_knowledge().recipes}
    assert state.run.recipe == known[method]
