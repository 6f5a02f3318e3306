"""From "Tried to allocate" to the tensor of this run that has that size."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from advisor.crash.evidence import NOTHING, Frame
from advisor.memory.allocator import can_mean, segment_request
from advisor.memory.attribution import MATCHES_KEPT, attribute, beyond_weights, candidates
from advisor.memory.host import sub_groups
from advisor.run.run import KnobValue, Run, Topology
from advisor.units import GIB, MIB, parse_size, show_bytes
from advisor.words import Phase
from tests.heavy import examples
from tests.loops import each
from tests.replacing import replace

from .runs import DEEPSPEED, FSDP, crash, logic_rl, make_run, models, openrlhf, shape


def padded(model: str, micro: int, length: int) -> Run:
    knobs: dict[str, KnobValue | None] = {
        "actor.micro_batch": micro,
        "logprob.micro_batch": micro,
        "data.total_tokens": length,
        "actor.entropy": True,
    }
    return make_run(model, FSDP, Topology(1, 8, 8, 8), knobs)


@pytest.mark.parametrize(
    ("printed", "model", "micro", "length"),
    [("13.91 GiB", "Qwen3-32B", 3, 8192), ("13.92 GiB", "Qwen2.5-32B", 3, 8192)],
)
def test_the_entropy_copy_of_the_logits_is_found(printed: str, model: str, micro: int, length: int) -> None:
    best = attribute(padded(model, micro, length), crash(parse_size(printed), "actor_update"))[0]
    assert best.matches
    assert best.phase == "actor_update"
    assert "logits in fp32" in best.tensor
    assert best.shape == f"fp32 [24576, {151936 if model.startswith('Qwen3') else 152064}]"


def test_one_vocabulary_is_told_from_the_other() -> None:
    matches = attribute(padded("Qwen2.5-32B", 3, 8192), crash(parse_size("13.91 GiB")))
    assert not any(match.matches and "24576" in match.shape for match in matches)


@each(
    ("printed", "model", "phase", "tensor", "shape"),
    [
        ("518.00 MiB", "Qwen2-7B", "rollout_init", "fused gate and up", "fp32 [37888, 3584]"),
        ("172.00 MiB", "Llama-2-7B", "model_load", "MLP matrix", "fp32 [11008, 4096]"),
        ("350.00 MiB", "microsoft/phi-4", "rollout_init", "fused gate and up", "bf16 [35840, 5120]"),
        ("1002.00 MiB", "Llama-3-8B", "model_load", "embedding or head", "bf16 [128256, 4096]"),
        ("1.02 GiB", "Qwen2.5-7B", "model_load", "embedding or head", "bf16 [152064, 3584]"),
        ("594.00 MiB", "Qwen2.5-3B", "weight_sync", "embedding or head", "bf16 [151936, 2048]"),
        ("14.19 GiB", "Qwen2.5-7B", "weight_sync", "whole model", "bf16 [7615616512]"),
    ],
)
def test_weights_are_found_by_their_size(printed: str, model: str, phase: Phase, tensor: str, shape: str) -> None:
    matches = attribute(padded(model, 1, 3000), crash(parse_size(printed), phase))
    assert (tensor in matches[0].tensor, matches[0].shape) == (True, shape)


def test_the_phase_of_the_crash_ranks_first() -> None:
    run = make_run("Qwen2.5-7B", FSDP, Topology(1, 8, 8, 8), {"data.total_tokens": 3584, "actor.micro_batch": 1})
    size = parse_size("1.02 GiB")
    update, load = (attribute(run, crash(size, phase))[0] for phase in ("actor_update", "model_load"))
    assert "logits" in update.tensor
    assert "embedding or head" in load.tensor


@pytest.mark.parametrize("printed", ["2.00 MiB", "20.00 MiB"])
def test_sizes_that_stand_for_any_small_tensor_identify_nothing(printed: str) -> None:
    assert attribute(padded("Qwen2.5-7B", 1, 4096), crash(parse_size(printed), "actor_update")) == ()


def test_where_nothing_matches_the_tokens_that_logits_would_need_are_told() -> None:
    tried = parse_size("36.98 GiB")
    matches = attribute(padded("Qwen3-8B", 1, 4096), crash(tried, "actor_update"))
    assert matches
    assert not any(match.matches for match in matches)
    fp32 = next(match for match in matches if match.shape.startswith("fp32"))
    assert "= 65323 to 65343 tokens: more than a pass should hold" in fp32.formula


def test_a_line_that_takes_row_by_row_asks_for_one_row_of_a_padded_batch() -> None:
    line = "row_logps = F.log_softmax(row_logits, dim=-1)"
    frames = (Frame("trl/trainer/utils.py", 7, "selective_log_softmax", 1, line),)
    run, tried = padded("Qwen3-8B", 8, 4096), parse_size("1.74 GiB")
    whole = attribute(run, crash(tried, "actor_update"))[0]
    of_row = attribute(run, replace(crash(tried, "actor_update"), frames=frames))[0]
    assert "for 8 sequences of at most 4096" in whole.formula
    assert "tokens of one row" in of_row.formula
    exact = attribute(run, replace(crash(parse_size("1.16 GiB"), "actor_update"), frames=frames))[0]
    assert exact.matches
    assert "4,096 tokens" in exact.formula


def test_without_padding_the_mean_length_of_the_pass_is_told() -> None:
    matches = attribute(logic_rl(), crash(parse_size("18.13 GiB"), "actor_update"))
    assert not matches[0].matches
    assert matches[0].shape == "bf16 [T, 152064]"
    assert "1000 on average, for 64 sequences of at most 2448" in matches[0].formula


def test_a_gathered_matrix_may_fail_in_the_update() -> None:
    best = attribute(openrlhf(True), crash(parse_size("448.00 MiB"), "actor_update"))[0]
    assert (best.tensor, best.shape, best.phase) == ("MLP matrix weight", "bf16 [28672, 8192]", "actor_update")


def test_nothing_is_attributed_without_a_size_or_to_a_small_one_without_a_model() -> None:
    assert attribute(padded("Qwen2.5-7B", 1, 4096), NOTHING) == ()
    assert attribute(make_run(None, FSDP, Topology(), {}), crash(GIB // 2)) == ()


def test_the_host_allocator_prints_exact_bytes() -> None:
    run = make_run("Llama-2-7B", DEEPSPEED, Topology(1, 4, 4, 0), {"actor.zero_stage": 3})
    exact = attribute(run, crash(6_738_415_616 // 4 * 4, "model_load", "host"))
    assert exact[0].matches
    assert attribute(run, crash(6_738_415_616 // 4 * 4 + 1, "model_load", "host")) == ()


def test_openrlhf_shards_are_found() -> None:
    matches = attribute(openrlhf(False), crash(4 * 70_553_706_496 // 32, "optimizer_step"))
    assert "flat shard" in matches[0].tensor


@given(st.integers(1, 80 * GIB))
def test_a_tensor_always_matches_what_it_makes_the_allocator_print(size: int) -> None:
    assert can_mean(parse_size(show_bytes(segment_request(size))), size)


@given(st.integers(32 * MIB, 80 * GIB), st.integers(32 * MIB, 80 * GIB))
def test_a_tensor_of_another_size_does_not_match(size: int, other: int) -> None:
    assume(abs(size - other) > GIB // 64)
    assert not can_mean(parse_size(show_bytes(segment_request(size))), other)


@given(
    st.sampled_from(["Qwen2.5-1.5B", "Qwen2.5-7B", "Llama-3.1-8B", "Qwen3-32B"]),
    st.integers(1, 16),
    st.integers(200, 9000),
    st.sampled_from([2, 4]),
)
def test_the_true_logits_are_among_the_first_three(model: str, micro: int, length: int, width: int) -> None:
    run = padded(model, micro, length)
    assert run.model is not None
    size = micro * length * run.model.vocab * width
    assume(size >= 64 * MIB)
    matches = attribute(run, crash(parse_size(show_bytes(segment_request(size))), "actor_update"))
    assert len(matches) <= MATCHES_KEPT
    assert any(match.bytes == size for match in matches[:3])


def test_megatron_splits_the_vocabulary_over_its_tensor_parallel_ranks() -> None:
    knobs: dict[str, KnobValue | None] = {
        "actor.tensor_parallel": 4,
        "actor.micro_batch": 2,
        "data.total_tokens": 8192,
    }
    run = make_run("Qwen3-32B", replace(FSDP, trainer="megatron"), Topology(1, 8, 8, 8), knobs)
    size = 16384 * 38016 * 4
    best = attribute(run, crash(parse_size(show_bytes(segment_request(size))), "actor_update"))[0]
    assert (best.bytes, best.shape) == (size, "fp32 [16384, 38016]")


def test_stacked_experts_are_found_while_the_engine_loads() -> None:
    run = padded("Qwen3-30B-A3B", 1, 4096)
    best = attribute(run, crash(parse_size("768.00 MiB"), "rollout_init"))[0]
    assert (best.tensor, best.shape) == ("gate and up of all experts weight", "bf16 [196608, 2048]")


@given(
    st.sampled_from([fact.name for fact in models()]),
    st.sampled_from([1, 2, 3, 4, 6, 8, 16]),
    st.integers(100, 4000),
    st.integers(200, 12000),
    st.sampled_from([1, 2, 8, 16]),
    st.data(),
)
@settings(max_examples=examples(150), deadline=None)
def test_whatever_tensor_failed_is_among_the_first_three(
    model: str, micro: int, prompt: int, response: int, gpus: int, data: st.DataObject
) -> None:
    """The few that are not have the very size of two kinds of logits: such a size cannot tell (below 0.1 % of them)."""
    knobs: dict[str, KnobValue | None] = {
        "actor.micro_batch": micro,
        "logprob.micro_batch": 2 * micro,
        "data.prompt_tokens": prompt,
        "data.response_tokens": response,
    }
    run = make_run(model, FSDP, Topology(max(1, gpus // 8), min(gpus, 8), gpus, gpus), knobs)
    assert run.model is not None
    large = [x for x in candidates(run, run.model) if 64 * MIB <= x.bytes <= 141 * GIB]
    assume(large)
    true = data.draw(st.sampled_from(large))
    matches = attribute(run, crash(parse_size(show_bytes(segment_request(true.bytes))), true.phases[0]))
    same = [x for x in large if can_mean(parse_size(show_bytes(segment_request(true.bytes))), x.bytes)]
    assert any(match.bytes == true.bytes for match in matches[:3]) or len(same) > 3


@pytest.mark.parametrize(("model", "asked"), [("Llama-2-7B", 4_009_910_272), ("Llama-2-13B", 4_052_879_360)])
def test_a_sub_group_of_cpu_adam_is_found_to_the_byte(model: str, asked: int) -> None:
    """OptimalScale/LMFlow issue 90 and CVI-SZU/Linly issue 26: DefaultCPUAllocator under ZeRO-3 with offload."""
    run = make_run(model, DEEPSPEED, Topology(1, 4, 4, 0), {"actor.zero_stage": 3, "actor.optimizer_offload": True})
    best = attribute(run, crash(asked, "model_load", "host"))[0]
    assert (best.matches, best.bytes, best.tensor) == (True, asked, "fp32 sub-group of CPU Adam")


@each("model", ["Qwen2.5-7B", "Qwen3-8B", "Qwen2.5-72B", "Llama-3.2-1B"])
def test_sub_groups_hold_every_parameter_once(model: str) -> None:
    groups = sub_groups(shape(model), 1)
    assert sum(groups) == shape(model).parameters
    assert all(size >= 10**9 for size in groups[:-1])


def test_a_vocabulary_that_no_model_list_has_is_found_too() -> None:
    """huggingface/trl issue 3678: fp32 [2, 256, 151665]."""
    own = replace(shape("Qwen2.5-0.5B"), vocab=151665)
    knobs: dict[str, KnobValue | None] = {"actor.micro_batch": 2, "logprob.micro_batch": 2, "data.total_tokens": 256}
    run = replace(make_run("Qwen2.5-0.5B", DEEPSPEED, Topology(1, 1, 1, 1), knobs), model=own)
    printed = show_bytes(segment_request(2 * 256 * 151665 * 4))
    best = attribute(run, crash(parse_size(printed), "log_prob"))[0]
    assert (best.matches, best.shape) == (True, "fp32 [512, 151665]")


@pytest.mark.parametrize(("printed", "is_round"), [("11.59 GiB", True), ("11.61 GiB", False)])
def test_logits_of_a_round_number_of_tokens_are_told_from_a_chance_size(printed: str, is_round: bool) -> None:
    """20,480 tokens of 151,936 words take 11.59 GiB in fp32."""
    run = make_run("Qwen2.5-0.5B", FSDP, Topology(), {})
    assert any(match.round for match in attribute(run, crash(parse_size(printed)))) is is_round


@each(
    ("size", "beyond"),
    [
        ("5.87 GiB", True),
        ("4.06 GiB", False),  # embedding and head in fp32, FSDP's root
        ("28.37 GiB", False),  # the whole model in one fp32 buffer
        ("7.09 GiB", False),  # cut over four ranks
        ("512.00 MiB", False),
    ],
)
def test_what_no_weights_take_at_once_is_of_a_pass(size: str, beyond: bool) -> None:
    assert beyond_weights(make_run("Qwen2.5-7B", FSDP, Topology(), {}), parse_size(size)) is beyond
