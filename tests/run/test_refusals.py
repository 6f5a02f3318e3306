"""What a framework or an engine would refuse or not read is known before it is proposed."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from advisor.knowledge import load_knowledge
from advisor.run.build import BuiltRun
from advisor.run.constraints import no_effect, violations
from tests.loops import each
from tests.made_mechanics import made_mechanics
from tests.run.test_binding import built, gpus, launch, logic_rl

A = "actor_rollout_ref."
ULYSSES = "actor_rollout_ref.actor.ulysses_sequence_parallel_size"
ROLLOUT_TP = "actor_rollout_ref.rollout.tensor_model_parallel_size"


def verl(model: str = "Qwen/Qwen2.5-7B-Instruct", /, **settings: str) -> BuiltRun:
    given = {"actor_rollout_ref__model__path": model, "trainer__n_gpus_per_node": "8", **settings}
    return built(launch("verl.trainer.main_ppo", **given), gpus(8), libraries={"verl": "0.4.0"})


def easyr1(model: str, version: str = "0.3.2", /, **settings: str) -> BuiltRun:
    given = {"worker__actor__model__model_path": model, "trainer__n_gpus_per_node": "8", **settings}
    return built(launch("verl.trainer.main", **given), gpus(8), libraries={"verl": version})


@pytest.mark.parametrize(("size", "refused"), [("2", False), ("4", False), ("8", True)])
def test_a_rollout_engine_is_not_spread_over_more_gpus_than_divide_the_heads(size: str, refused: bool) -> None:
    """Qwen2.5-7B has 28 attention heads and 4 key-value heads."""
    for run, key in (
        (verl(actor_rollout_ref__rollout__tensor_model_parallel_size=size), ROLLOUT_TP),
        (
            easyr1("Qwen/Qwen2.5-7B-Instruct", worker__rollout__tensor_parallel_size=size),
            "worker.rollout.tensor_parallel_size",
        ),
    ):
        said = " ".join(violations(run, [key]))
        assert ("28 attention heads" in said) is refused


@pytest.mark.parametrize(("size", "refused"), [("4", False), ("8", True)])
def test_a_sequence_is_not_split_over_more_gpus_than_divide_the_heads(size: str, refused: bool) -> None:
    on = {"actor_rollout_ref__model__use_remove_padding": "True"}
    run = verl(**on, actor_rollout_ref__actor__ulysses_sequence_parallel_size=size)
    assert any("28 attention heads" in said for said in violations(run, [ULYSSES])) is refused


def test_heads_of_a_shape_that_was_guessed_from_the_name_refuse_nothing() -> None:
    run = verl("nobody/heard-of-7B", actor_rollout_ref__rollout__tensor_model_parallel_size="8")
    assert run.run.model.basis == "estimated"
    assert violations(run, [ROLLOUT_TP]) == []


@pytest.mark.parametrize(
    ("version", "key"),
    [
        ("0.3.0", "worker.actor.ulysses_sequence_parallel_size"),
        ("0.3.1", "worker.actor.ulysses_size"),
        ("0.3.2", "worker.actor.ulysses_size"),
    ],
)
def test_easyr1_splits_sequences_of_text_models_only(version: str, key: str) -> None:
    two = {key.replace(".", "__"): "2", "worker__actor__padding_free": "true"}
    assert violations(easyr1("Qwen/Qwen2.5-7B-Instruct", version, **two), [key]) == []
    said = violations(easyr1("Qwen/Qwen2.5-VL-7B-Instruct", version, **two), [key])
    assert any("vision-language" in sentence for sentence in said)


MEGATRON = [
    {"actor_rollout_ref__actor__strategy": "megatron"},
    {"--config-name": "ppo_megatron_trainer.yaml", "--config-path": "config"},
    {"--config-name": "ppo_megatron_trainer"},
]


@pytest.mark.parametrize("chosen", MEGATRON)
def test_keys_of_fsdp_are_not_offered_to_megatron_and_the_run_says_what_is_an_allowance(chosen: dict[str, str]) -> None:
    run = verl(**chosen)
    for knob in (
        "actor.remove_padding",
        "actor.gradient_checkpointing",
        "actor.sequence_parallel",
        "actor.shard_size",
        "actor.full_cpu_offload",
    ):
        assert run.natives.carrier(knob) is None, knob
    offload = run.natives.carrier("actor.optimizer_offload")
    assert offload.key == "actor_rollout_ref.actor.megatron.optimizer_offload"
    assert run.run.mechanics.trainer == "megatron"
    assert any("allowance" in note for note in run.run.notes)
    fused = verl(**chosen, actor_rollout_ref__model__use_fused_kernels="True")
    assert any("Megatron" in said for said in violations(fused, ["actor_rollout_ref.model.use_fused_kernels"]))


def test_what_a_backend_decides_speaks_of_keys_and_fields_that_exist() -> None:
    fields = set(msgspec.structs.asdict(made_mechanics()))
    for framework in load_knowledge().frameworks:
        chosen = [fact.only_with for fact in framework.settings.values() if fact.only_with is not None]
        own = {f"${name}" for name in framework.environment}
        for rule in (*chosen, *(one.when for one in framework.mechanics_when)):
            assert set(rule.names()) <= {
                *framework.settings,
                *own,
                "program",
                "config_alone",
                "algorithm",
                "rolls_out",
                *(f"library.{name}" for name in ("transformers", framework.package)),
                "era",
            }
        assert all(set(one.set) <= fields for one in framework.mechanics_when)
        assert {key for defaults in framework.config_defaults.values() for key in defaults} <= set(framework.settings)


def test_fsdp_keeps_its_keys_and_is_not_offered_megatrons() -> None:
    run = verl(actor_rollout_ref__actor__strategy="fsdp2")
    offload = run.natives.carrier("actor.optimizer_offload")
    assert offload.key == "actor_rollout_ref.actor.fsdp_config.optimizer_offload"
    assert run.natives.carrier("actor.remove_padding") is not None
    assert run.run.mechanics.trainer == "fsdp"
    assert run.run.notes == verl().run.notes


@each(("samples", "micro", "binds"), [(32, 8, False), (32, 4, True), (64, 16, False), (64, 4, False)])
def test_a_micro_batch_is_idle_by_its_own_value_and_not_by_the_one_before(
    samples: int, micro: int, binds: bool
) -> None:
    """Logic-RL: (micro // 4 GPUs) * samples against the sequences that a GPU holds of the step."""
    prompts = 8 if samples == 32 else 4
    run = logic_rl(prompts, samples, micro)
    assert (no_effect(run, "actor_rollout_ref.actor.ppo_micro_batch_size") == "") is binds


def test_the_critics_keys_carry_knobs_of_their_own() -> None:
    keys = {
        "critic.tokens_per_gpu": "critic.ppo_max_token_len_per_gpu",
        "critic.gradient_checkpointing": "critic.model.enable_gradient_checkpointing",
        "critic.remove_padding": "critic.model.use_remove_padding",
        "critic.sequence_parallel": "critic.ulysses_sequence_parallel_size",
    }
    for run in (verl(algorithm__adv_estimator="gae"), logic_rl(8, 4, 4)):
        for knob, key in keys.items():
            carrier = run.natives.carrier(knob)
            assert carrier.key == key


@pytest.mark.parametrize(("size", "refused"), [("2", False), ("4", True)])
def test_a_trainer_that_copies_no_heads_is_not_spread_over_more_gpus_than_there_are(size: str, refused: bool) -> None:
    """Qwen2.5-3B has 16 attention heads and 2 key-value heads, of which an engine would keep a copy on each GPU."""
    key = "policy.dtensor_cfg.tensor_parallel_size"
    model = {"policy__model_name": "Qwen/Qwen2.5-3B-Instruct", "policy__dtensor_cfg__enabled": "true"}
    given = {**model, "cluster__gpus_per_node": "8", key.replace(".", "__"): size}
    run = built(launch("examples/run_grpo_math.py", **given), gpus(8), libraries={"nemo-rl": "0.5.0"})
    assert run.run.framework == "nemo-rl"
    assert any("2 key-value heads" in said for said in violations(run, [key])) is refused


@pytest.mark.parametrize(("core", "refused"), [(None, True), ("0.15.0", True), ("0.16.0", False)])
def test_megatron_copies_heads_from_a_version_on(core: str | None, refused: bool) -> None:
    """Qwen3-30B-A3B has 32 attention heads and 4 key-value heads."""
    at = {"actor_rollout_ref__actor__strategy": "megatron", "trainer__n_gpus_per_node": "8"}
    model = {"actor_rollout_ref__model__path": "Qwen/Qwen3-30B-A3B"}
    size = {"actor_rollout_ref__actor__megatron__tensor_model_parallel_size": "8"}
    machine = replace(gpus(8), libraries={"megatron-core": core} if core else {})
    run = built(launch("verl.trainer.main_ppo", **at, **model, **size), machine, libraries={"verl": "0.5.0"})
    said = violations(run, ["actor_rollout_ref.actor.megatron.tensor_model_parallel_size"])
    assert any("4 key-value heads" in one for one in said) is refused
