"""prime-rl: gradients stay, moments come back for the step alone, the engine's log-probabilities are the old ones."""

from __future__ import annotations

import pytest

from advisor.memory.cells import Ledger
from advisor.words import Phase
from tests.measured.published import ledger_of

RUN = {"framework": "prime-rl", "model": "Qwen/Qwen3-8B", "gpus": "8xH100-80GB", "libraries": {"prime-rl": "0.8.0"}}
APART: dict[str, object] = {"deployment.num_train_gpus": 4, "deployment.num_infer_gpus": 4, "seq_len": 8192}


def ledger(**settings: object) -> Ledger:
    return ledger_of({**RUN, "settings": {**APART, **{key.replace("__", "."): settings[key] for key in settings}}})


def held(found: Ledger, phase: Phase, owner: str) -> int:
    there = found.phase("gpu", phase)
    assert there is not None
    return sum(cell.expected for cell in there.cells if cell.owner == owner)


def test_offloaded_moments_are_on_the_card_for_the_step_alone() -> None:
    offloaded, kept = (ledger(trainer__model__optim_cpu_offload=on) for on in (True, False))
    share = 8_190_735_360 / 4
    for found in (offloaded, kept):
        assert held(found, "actor_update", "gradients") == pytest.approx(4 * share, rel=1e-6)
        assert held(found, "optimizer_step", "optimizer") == pytest.approx(8 * share, rel=1e-6)
    assert held(offloaded, "actor_update", "optimizer") == 0
    assert held(kept, "actor_update", "optimizer") == pytest.approx(8 * share, rel=1e-6)


def test_no_pass_scores_what_the_engine_has_scored() -> None:
    assert ledger().phase("gpu", "log_prob") is None


def test_context_parallel_ranks_of_fsdp_share_the_tokens_of_a_row() -> None:
    whole, halved = (
        held(ledger(trainer__model__cp=ways, seq_len=131_072), "actor_update", "activations") for ways in (1, 2)
    )
    assert halved == pytest.approx(whole / 2, rel=0.01)


@pytest.mark.parametrize(
    ("framework", "settings"),
    [
        ("verl", {"algorithm.rollout_correction.bypass_mode": True}),
        ("slime", {"use-rollout-logprobs": True, "actor-num-nodes": 1, "colocate": True}),
    ],
)
def test_a_switch_takes_the_engine_s_log_probabilities_for_the_old_ones(
    framework: str, settings: dict[str, object]
) -> None:
    run = {"framework": framework, "model": "Qwen/Qwen3-8B", "gpus": "8xH100-80GB"}
    run |= {"program": "verl.trainer.main_ppo"} if framework == "verl" else {}
    wanted = {"verl": "0.7.1", "slime": "0.3.1"}
    base = {key: value for key, value in settings.items() if "log" not in key and "bypass" not in key}
    grpo = {"algorithm.adv_estimator": "grpo"} if framework == "verl" else {}
    libraries = {framework: wanted[framework]}
    scored = ledger_of({**run, "libraries": libraries, "settings": {**base, **grpo}})
    taken = ledger_of({**run, "libraries": libraries, "settings": {**settings, **grpo}})
    assert scored.phase("gpu", "log_prob") is not None
    assert taken.phase("gpu", "log_prob") is None


def test_megatron_s_context_parallelism_divides_the_tokens_of_a_row_once() -> None:
    """ROLL: 2 ranks of context parallelism halve the activations, and do not quarter them."""
    name = "actor_train.strategy_args"

    def kept(ways: int) -> int:
        settings: dict[str, object] = {
            f"{name}.strategy_name": "megatron_train",
            f"{name}.strategy_config.context_parallel_size": ways,
            "actor_train.device_mapping": "list(range(0,8))",
            "actor_infer.device_mapping": "list(range(0,8))",
            "prompt_length": 2048,
            "response_length": 6144,
        }
        run = {"framework": "roll", "model": "Qwen/Qwen2.5-7B", "gpus": "8xH100-80GB", "settings": settings}
        return held(ledger_of(run), "actor_update", "activations")

    assert kept(2) == pytest.approx(kept(1) / 2, rel=0.01)
