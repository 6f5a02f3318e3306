"""Whose settings decide a pass: the critic's own where the framework has them, else the actor's."""

from __future__ import annotations

import pytest

from advisor.memory.batches import Assumptions, critic_pass, update_pass
from advisor.memory.ledger import build_ledger
from advisor.run.run import KnobValue, Run, Topology
from advisor.words import Phase
from tests.measured.published import ledger_of
from tests.memory.runs import FSDP, box, make_run
from tests.replacing import replace

EIGHT = Topology(nodes=1, gpus_per_node=8, actor_gpus=8, rollout_gpus=8, tensor_parallel=2)
PPO: dict[str, KnobValue | None] = {
    "data.train_batch": 1024,
    "actor.mini_batch": 512,
    "data.prompt_tokens": 4096,
    "data.response_tokens": 4096,
    "data.total_tokens": 8192,
    "actor.remove_padding": True,
    "actor.gradient_checkpointing": True,
    "actor.dynamic_batch": True,
    "actor.tokens_per_gpu": 24000,
    "critic.remove_padding": True,
    "critic.gradient_checkpointing": True,
    "critic.dynamic_batch": True,
    "critic.tokens_per_gpu": 98304,
}


def ppo(**changed: KnobValue | None) -> Run:
    knobs = {**PPO, **{name.replace("__", "."): value for name, value in changed.items()}}
    return make_run("Qwen/Qwen2-7B-Instruct", FSDP, EIGHT, knobs, "ppo")


def held(run: Run, phase: Phase) -> int:
    found = build_ledger(run, box(8, 80, 1000), None).phase("gpu", phase)
    assert found is not None
    return found.expected


def test_the_critics_pass_is_as_long_as_the_critics_budget() -> None:
    assert critic_pass(ppo(), Assumptions()).tokens.value == 98304
    assert critic_pass(ppo(actor__tokens_per_gpu=8192), Assumptions()).tokens.value == 98304
    assert critic_pass(ppo(critic__tokens_per_gpu=16384), Assumptions()).tokens.value == 16384


@pytest.mark.parametrize(
    ("actors", "critics", "value"),
    [
        ("actor__tokens_per_gpu", "critic__tokens_per_gpu", 8192),
        ("actor__gradient_checkpointing", "critic__gradient_checkpointing", False),
        ("actor__remove_padding", "critic__remove_padding", False),
    ],
)
def test_a_setting_of_the_actor_moves_only_the_actors_update(actors: str, critics: str, value: KnobValue) -> None:
    before, actor, critic = ppo(), ppo(**{actors: value}), ppo(**{critics: value})
    assert held(actor, "critic_update") == held(before, "critic_update")
    assert held(actor, "actor_update") != held(before, "actor_update")
    assert held(critic, "critic_update") != held(before, "critic_update")
    assert held(critic, "actor_update") == held(before, "actor_update")


def test_where_the_critic_has_no_settings_of_its_own_the_actors_serve_both() -> None:
    shared = {name: None for name in PPO if name.startswith("critic.")}
    run = make_run("Qwen/Qwen2-7B-Instruct", FSDP, EIGHT, {**PPO, **shared}, "ppo")
    assert critic_pass(run, Assumptions()).tokens.value == update_pass(run, Assumptions()).tokens.value == 24000


def test_a_token_budget_over_padded_rows_counts_whole_rows_and_never_more_than_the_gpu_holds() -> None:
    padded = critic_pass(ppo(critic__remove_padding=False), Assumptions())
    assert padded.padded
    assert padded.tokens.value > 98304
    assert padded.tokens.value % 8192 == 0
    few = critic_pass(ppo(critic__remove_padding=False, critic__mini_batch=8), Assumptions())
    assert few.tokens.value == 8 * 8192


def test_the_critics_own_sequence_parallel_size_splits_its_sequences() -> None:
    knobs = {"critic__dynamic_batch": False, "actor__dynamic_batch": False, "critic__micro_batch": 8}
    whole, split = (critic_pass(ppo(**knobs, critic__sequence_parallel=n), Assumptions()) for n in (1, 4))
    assert split.tokens.value == round(whole.tokens.value / 4)


def test_a_fused_loss_saves_in_the_scoring_pass_only_where_the_framework_uses_it_there() -> None:
    wide: dict[str, KnobValue | None] = {**PPO, "logprob.tokens_per_gpu": 98304, "logprob.dynamic_batch": True}
    saved = {}
    for scores in (True, False):
        mechanics = replace(FSDP, fused_loss_scores=scores)
        plain = make_run("Qwen/Qwen2-7B-Instruct", mechanics, EIGHT, wide)
        fused = make_run("Qwen/Qwen2-7B-Instruct", mechanics, EIGHT, {**wide, "actor.fused_loss": True})
        saved[scores] = held(plain, "log_prob") - held(fused, "log_prob")
        assert held(plain, "actor_update") > held(fused, "actor_update")
    assert saved[True] > 0
    assert saved[False] == 0


def test_a_token_budget_above_all_rows_of_a_gpu_is_not_filled() -> None:
    """64 rows on 8 GPUs are 8 a GPU, and no more tokens than they have, whatever the budget allows."""
    run = {
        "framework": "verl-sft",
        "program": "verl.trainer.sft_trainer",
        "model": "Qwen/Qwen2.5-7B",
        "gpus": "8xH100-80GB",
    }

    def kept(batch: int) -> int:
        """Bytes of layer inputs at the most: 2 bytes x 3,584 hidden x 28 layers of a token."""
        settings = {"data.train_batch_size": batch, "data.max_length": 2048, "data.max_token_len_per_gpu": 65536}
        phase = ledger_of({**run, "settings": settings}).phase("gpu", "actor_update")
        assert phase is not None
        return next(cell for cell in phase.cells if cell.owner == "activations").high

    assert kept(64) == pytest.approx(2 * 3584 * 28 * 8 * 2048, rel=0.01)
    assert kept(128) == pytest.approx(2 * kept(64), rel=0.01)
    assert kept(4096) == kept(8192)


def test_rows_that_are_expected_to_fit_a_token_budget_are_one_pass_which_it_caps() -> None:
    """128 rows of at most 2,048 tokens on a GPU, a third of it on average, do not fill 150,000 tokens."""
    few = {"actor__mini_batch": 1024, "data__total_tokens": 2048}
    wide, wider = (update_pass(ppo(**few, actor__tokens_per_gpu=n), Assumptions()) for n in (150_000, 500_000))
    assert wide.tokens.value == wider.tokens.value == round((1 + 0.3 * 127) * 2048)
    assert wide.high == round(150_000 * 1.05)
    assert wider.high == 128 * 2048
    full = update_pass(ppo(**few, actor__tokens_per_gpu=150_000, data__longest_row="cap"), Assumptions())
    assert full.tokens.value == 150_000
