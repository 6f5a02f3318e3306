"""What a dialect says of a key's eras agrees with the list of all keys that each version of the framework reads."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from advisor.knowledge import load_knowledge
from advisor.knowledge.key_space import key_space
from advisor.knowledge.schema import Framework, SettingFact
from tests.knowledge.upstream import upstream_of
from tests.loops import each

DIALECTS = load_knowledge().frameworks
UNWRITTEN = "read there, and written in none of the files that the list is made of"
OF_FORKS = "of forks, which were cut from that version; upstream has no such key"
WHERE_GIVEN = "counted only where a launch gives it"
OPEN_THERE = "read there out of an open table or another library's arguments; a file names it in other versions"
FSDP_KEYS = ("offload_params", "state_dict_type", "activation_checkpointing", "cpu_ram_efficient_loading")
MEGATRON_SIZES = (
    *("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"),
    *("expert_model_parallel_size", "expert_tensor_parallel_size"),
)
UNLISTED: dict[tuple[str, str], str] = {
    ("torchtune", "tokenizer.max_seq_len"): UNWRITTEN,
    ("torchtune", "dataset.packed"): UNWRITTEN,
    ("torchtune", "grpo_samples"): UNWRITTEN,
    ("torchtune", "max_generated_tokens"): UNWRITTEN,
    ("torchtune", "reward_and_value_model.base_model_path"): UNWRITTEN,
    **dict.fromkeys((("axolotl", f"fsdp_config.{one}") for one in FSDP_KEYS), OPEN_THERE),
    **dict.fromkeys((("skyrl", f"trainer.policy.megatron_config.{one}") for one in MEGATRON_SIZES), OPEN_THERE),
    **dict.fromkeys(
        (("verl-sft", f"model.{one}") for one in ("enable_gradient_checkpointing", "use_liger", "lora_rank")),
        OPEN_THERE,
    ),
    ("llamafactory", "num_layer_trainable"): "in 0.7.0, and the list is of 0.7.1",
    ("nemo-rl", "policy.generation.vllm_kwargs.max_num_seqs"): OPEN_THERE,
    ("nemo-rl", "policy.generation.vllm_kwargs.mm_processor_cache_gb"): OPEN_THERE,
    ("prime-rl", "orchestrator.algo.type"): "its default names the one algorithm of older versions",
    ("slime", "no-save-optim"): OPEN_THERE,
    ("slime", "save-interval"): OPEN_THERE,
    ("torchtune", "data_parallel_shard_dim"): "its default says that older recipes shard, too",
    ("trl", "torch_dtype"): "the model's older name of dtype, given beside it",
    ("verl", "data.gen_batch_size"): OPEN_THERE,
    ("verl", "actor_rollout_ref.actor.fsdp_config.model_dtype"): OPEN_THERE,
    ("verl", "actor_rollout_ref.ref.fsdp_config.model_dtype"): OPEN_THERE,
    ("verl", "actor_rollout_ref.rollout.engine_kwargs.vllm.disable_mm_preprocessor_cache"): OPEN_THERE,
    ("verl", "actor_rollout_ref.rollout.engine_kwargs.vllm.swap_space"): OPEN_THERE,
    **dict.fromkeys(
        (
            ("verl", f"actor_rollout_ref.actor.megatron.override_transformer_config.recompute_{one}")
            for one in ("granularity", "method", "num_layers")
        ),
        OPEN_THERE,
    ),
    ("verl", "rollout.nnodes"): OPEN_THERE,
    ("verl", "rollout.n_gpus_per_node"): OPEN_THERE,
    ("verl", "trainer.val_before_train"): OPEN_THERE,
    ("trl", "max_pixels"): OF_FORKS,
    ("trl", "max_seq_length"): WHERE_GIVEN,
    **dict.fromkeys([(one, "evaluation_strategy") for one in ("transformers", "trl", "unsloth")], WHERE_GIVEN),
    ("verl", "actor_rollout_ref.rollout.n_repeat"): OF_FORKS,
    ("verl", "actor_rollout_ref.rollout.agent.max_steps"): OF_FORKS,
    ("verl", "actor_rollout_ref.rollout.agent.default_agent_flow"): OF_FORKS,
    ("verl", "data.max_response_length_single_turn"): OF_FORKS,
    ("verl", "tool.max_turns"): OF_FORKS,
    ("verl", "tool.max_tool_response_length"): OF_FORKS,
    ("verl", "rllm.rollout.n"): OF_FORKS,
    ("verl", "actor_rollout_ref.agent.train_max_response_length"): OF_FORKS,
    ("verl", "actor_rollout_ref.agent.val_max_response_length"): OF_FORKS,
    ("verl", "actor_rollout_ref.agent.max_response_length"): OF_FORKS,
    ("verl", "actor_rollout_ref.agent.max_concurrent_trajectories"): OF_FORKS,
    ("verl", "actor_rollout_ref.agent.max_turns"): OF_FORKS,
    ("verl", "actor_rollout_ref.agent.max_obs_length"): OF_FORKS,
    ("verl", "rllm.data.train_batch_size"): OF_FORKS,
    ("verl", "rllm.data.max_prompt_length"): OF_FORKS,
    ("verl", "rllm.data.max_response_length"): OF_FORKS,
    ("verl", "actor_rollout_ref.rollout.n_agent"): OF_FORKS,
    ("verl", "data.n_samples"): OF_FORKS,
}
"""Keys that no list of some version has and that the dialect knows there, and why.

What an open pattern takes (a library's own table, Megatron's arguments in slime) and no list of any version names is
not held by this: some 230 of 1550 keys, whose eras rest on their source lines alone.
"""


def facts_of(known: SettingFact) -> Iterator[SettingFact]:
    """What the key is now, and what it was before."""
    yield known
    if known.before is not None:
        yield from facts_of(known.before)


def eras_of(dialect: Framework, known: SettingFact) -> set[str]:
    """The eras in which the dialect knows the key."""
    every = [era.id for era in dialect.eras]
    return {era for fact in facts_of(known) for era in fact.eras or every}


def contradictions(dialect: Framework) -> Iterator[tuple[str, bool]]:
    """(key, whether some list has it where the dialect does not) of each key on which the two disagree."""
    space = key_space(dialect.framework)
    assert space is not None
    listed = {era.era: space.at(era.era) for era in space.eras}
    for key, known in dialect.settings.items():
        said, having = eras_of(dialect, known), {era for era, keys in listed.items() if key in keys}
        if known.only_in or (not having and any(fnmatchcase(key, pattern) for pattern in space.open)):
            continue
        if having - said and not known.elsewhere and key not in dialect.renamed:
            yield key, True
        if (said & set(listed)) - having:
            yield key, False


@each("dialect", DIALECTS, ids=lambda dialect: dialect.framework)
def test_a_key_is_known_in_the_versions_that_read_it(dialect: Framework) -> None:
    """What the dialect leaves out is settled where compare_with_upstream reads it, too: upstream_tags.yaml."""
    settled = upstream_of(dialect.framework).settled
    unlisted = {key for name, key in UNLISTED if name == dialect.framework}
    assert set(contradictions(dialect)) == {(key, True) for key in settled} | {(key, False) for key in unlisted}


def test_every_dialect_has_a_list_of_the_keys_that_its_framework_reads() -> None:
    assert [one.framework for one in DIALECTS if key_space(one.framework) is None] == []
