"""What a dialect says of a key's eras agrees with the list of all keys that each version of the framework reads."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

import pytest

from advisor.knowledge import load_knowledge
from advisor.knowledge.key_space import key_space
from advisor.knowledge.schema import Framework, SettingFact

DIALECTS = [one for one in load_knowledge().frameworks if key_space(one.framework) is not None]
OTHER_COMMANDS = "a key of another command of the framework there, or of a trainer that is no lever"
READ_BY_NOBODY = "still taken there, and read by nobody"
NEWER_WORKERS = "read there by the new engine workers alone, or by another backend"
SINGLE_CONTROLLER = "read there by the single controller alone"
UNWRITTEN = "read there, and written in none of the files that the list is made of"
OF_FORKS = "of forks, which were cut from that version; upstream has no such key"
OF_MEGATRON = "read by mcore_adapter, whose arguments stand beside the trainer's"
WHERE_GIVEN = "counted only where a launch gives it"
LISTED: dict[tuple[str, str], str] = {
    ("areal", "actor.scheduling_strategy.type"): SINGLE_CONTROLLER,
    ("areal", "rollout.scheduling_strategy.type"): SINGLE_CONTROLLER,
    ("easyr1", "worker.actor.use_kl_loss"): "the program sets it from algorithm.use_kl_loss",
    ("ms-swift", "quant_bits"): OTHER_COMMANDS,
    ("ms-swift", "truncation_strategy"): "GRPO takes only 'left' there",
    ("ms-swift", "vllm_device"): READ_BY_NOBODY,
    ("ms-swift", "num_infer_workers"): READ_BY_NOBODY,
    ("ms-swift", "vllm_enable_lora"): OTHER_COMMANDS,
    ("ms-swift", "sequence_parallel"): OTHER_COMMANDS,
    ("ms-swift", "vllm_mm_processor_cache_gb"): "from 3.9 on, the last version of that era",
    ("nemo-rl", "policy.activation_checkpointing_enabled"): READ_BY_NOBODY,
    ("nemo-rl", "policy.refit_buffer_size_gb"): READ_BY_NOBODY,
    ("trl", "max_prompt_length"): OTHER_COMMANDS,
    ("trl", "ds3_gather_for_generation"): OTHER_COMMANDS,
    ("verl", "actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size"): NEWER_WORKERS,
    ("verl", "actor_rollout_ref.actor.fsdp_config.entropy_from_logits_with_chunking"): NEWER_WORKERS,
    ("verl", "actor_rollout_ref.actor.optim.optimizer"): NEWER_WORKERS,
}
"""Keys that some version lists and that the dialect leaves out there, and why."""
UNLISTED: dict[tuple[str, str], str] = {
    ("axolotl", "pretraining_dataset.0.path"): "an entry of a list, which the list of keys names without its place",
    ("llamafactory", "tensor_model_parallel_size"): OF_MEGATRON,
    ("llamafactory", "pipeline_model_parallel_size"): OF_MEGATRON,
    ("llamafactory", "expert_model_parallel_size"): OF_MEGATRON,
    ("llamafactory", "context_parallel_size"): OF_MEGATRON,
    ("llamafactory", "sequence_parallel"): OF_MEGATRON,
    ("llamafactory", "recompute_granularity"): OF_MEGATRON,
    ("llamafactory", "use_distributed_optimizer"): OF_MEGATRON,
    ("llamafactory", "optimizer_cpu_offload"): OF_MEGATRON,
    ("llamafactory", "optimizer_offload_fraction"): OF_MEGATRON,
    ("llamafactory", "expert_tensor_parallel_size"): OF_MEGATRON,
    ("llamafactory", "virtual_pipeline_model_parallel_size"): OF_MEGATRON,
    ("llamafactory", "recompute_method"): OF_MEGATRON,
    ("llamafactory", "recompute_num_layers"): OF_MEGATRON,
    ("llamafactory", "overlap_grad_reduce"): OF_MEGATRON,
    ("llamafactory", "overlap_param_gather"): OF_MEGATRON,
    ("llamafactory", "bias_activation_fusion"): OF_MEGATRON,
    ("llamafactory", "apply_rope_fusion"): OF_MEGATRON,
    ("llamafactory", "moe_grouped_gemm"): OF_MEGATRON,
    ("llamafactory", "moe_token_dispatcher_type"): OF_MEGATRON,
    ("torchtune", "tokenizer.max_seq_len"): UNWRITTEN,
    ("torchtune", "dataset.packed"): UNWRITTEN,
    ("torchtune", "grpo_samples"): UNWRITTEN,
    ("torchtune", "orchestration.num_inference_workers"): UNWRITTEN,
    ("torchtune", "max_generated_tokens"): UNWRITTEN,
    ("torchtune", "reward_and_value_model.base_model_path"): UNWRITTEN,
    ("trl", "max_pixels"): OF_FORKS,
    ("trl", "max_seq_length"): WHERE_GIVEN,
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
"""Keys that no list of some version has and that the dialect knows there, and why."""


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
        if known.only_in or any(fnmatchcase(key, pattern) for pattern in space.open):
            continue
        said, having = eras_of(dialect, known), {era for era, keys in listed.items() if key in keys}
        if having - said and not known.elsewhere and key not in dialect.renamed:
            yield key, True
        if (said & set(listed)) - having:
            yield key, False


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.framework)
def test_a_key_is_known_in_the_versions_that_read_it(dialect: Framework) -> None:
    found = set(contradictions(dialect))
    explained = {(key, has) for table, has in ((LISTED, True), (UNLISTED, False)) for name, key in table
                 if name == dialect.framework}  # fmt: skip
    assert found == explained
