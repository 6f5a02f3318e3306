"""Keys that move together: a batch with its accumulation, engines with their GPUs, a packed row with its responses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.knowledge import load_knowledge
from advisor.plan.candidates import Joined, forms
from advisor.run.bound import bind_natives
from advisor.run.natives import Natives
from advisor.script.document import Setting
from tests.plan.planned import Planned, changes, out_of_memory
from tests.plan.test_select import NEW, OLD, grpo, old_grpo

FRAMEWORKS = {f.framework: f for f in load_knowledge().frameworks}


def bound(framework: str, era: str, **values: object) -> Natives:
    settings = [Setting(key, str(value), "command") for key, value in values.items()]
    return bind_natives(FRAMEWORKS[framework], era, settings, {}, {}, {})


def moved(natives: Natives, key: str, value: object) -> list[Joined]:
    return forms(natives.values[key], {key: str(value)}, natives)


def test_partners_are_keys_of_their_dialect() -> None:
    for framework in FRAMEWORKS.values():
        for fact in framework.settings.values():
            for rule in fact.with_it:
                assert {*rule.sets, *rule.given}
                known = {*framework.settings, *(f"${name}" for name in framework.environment)}
                assert {*rule.sets, *rule.given} <= known


@given(st.integers(0, 6), st.integers(1, 6), st.integers(1, 64), st.sampled_from(["ms-swift", "trl"]))
def test_a_lower_batch_with_its_accumulation_keeps_the_effective_batch(
    low: int, more: int, passes: int, framework: str
) -> None:
    batch, new = 2 ** (low + more), 2**low
    era = FRAMEWORKS[framework].eras[0].id
    natives = bound(framework, era, per_device_train_batch_size=batch, gradient_accumulation_steps=passes)
    first, alone = moved(natives, "per_device_train_batch_size", new)
    assert first.kept
    assert new * int(first.overrides["gradient_accumulation_steps"] or 0) == batch * passes
    assert not alone.kept
    assert "gradient_accumulation_steps" not in alone.overrides


def test_generation_steps_that_are_set_follow_and_those_that_are_not_stay_unset() -> None:
    sizes = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 8}
    follows = moved(bound("ms-swift", "v4", **sizes), "per_device_train_batch_size", 1)[0]
    assert "steps_per_generation" not in follows.overrides
    own = moved(bound("ms-swift", "v4", **sizes, steps_per_generation=32), "per_device_train_batch_size", 1)[0]
    assert own.overrides["steps_per_generation"] == "64"


@pytest.mark.parametrize(("era", "follows"), [("v0.5", {}), ("v0.7", {"trainer.model.optim_cpu_offload": "false"})])
def test_a_partner_that_stands_as_it_should_is_no_change(era: str, follows: dict[str, str]) -> None:
    key = "trainer.model.fsdp_cpu_offload"
    found = moved(bound("prime-rl", era, **{"trainer.optim.type": "adamw"}), key, "true")[0].overrides
    assert found == {key: "true", **follows}


def test_an_accumulation_that_cannot_follow_exactly_stays() -> None:
    natives = bound("ms-swift", "v4", per_device_train_batch_size=4, gradient_accumulation_steps=2)
    assert [form.kept for form in moved(natives, "per_device_train_batch_size", 3)] == [False]


@pytest.mark.parametrize(("engines", "expected"), [(16, [{"16": "8"}]), (3, [])])
def test_larger_engines_are_fewer_or_are_not_offered(engines: int, expected: list[dict[str, str]]) -> None:
    natives = bound("open-reasoner-zero", "2025", vllm_num_engines=engines, vllm_tensor_parallel_size=4)
    found = moved(natives, "vllm_tensor_parallel_size", 8)
    assert [{str(engines): form.overrides["vllm_num_engines"]} for form in found] == expected


def test_shorter_responses_shorten_the_packed_row_with_them() -> None:
    natives = bound("open-reasoner-zero", "2025", generate_max_len=8000, packing_max_len=10048)
    (found,) = moved(natives, "generate_max_len", 4000)
    assert found.overrides == {"generate_max_len": "4000", "packing_max_len": "6048"}


def test_in_swift_4_a_smaller_batch_leaves_results_and_generations_alone(planned: Planned) -> None:
    step = planned(grpo(), NEW)["lower-actor-micro-batch"]
    assert changes(step) == {"per_device_train_batch_size": ("2", "1"), "gradient_accumulation_steps": ("2", "4")}
    assert step["results"] == "unchanged"


def test_in_swift_3_1_the_groups_stay_whole_where_the_batch_still_holds_them(planned: Planned) -> None:
    whole = planned(old_grpo(per_device_train_batch_size=4, NPROC=4, CARDS=5), OLD)["lower-actor-micro-batch"]
    assert changes(whole) == {"per_device_train_batch_size": ("4", "2"), "gradient_accumulation_steps": ("8", "16")}
    assert whole["results"] == "unchanged"


def test_where_the_groups_must_shrink_they_shrink_as_little_as_the_rule_allows(planned: Planned) -> None:
    step = planned(old_grpo(), OLD)["lower-actor-micro-batch"]
    assert changes(step) == {"per_device_train_batch_size": ("8", "4"), "num_generations": ("8", "6")}
    assert step["results"] == "changed"


def test_in_trl_0_18_accumulation_keeps_sixteen_generations(planned: Planned) -> None:
    script = (
        "accelerate launch --num_processes 8 grpo.py --model_name_or_path Qwen/Qwen2.5-7B-Instruct --use_vllm true "
        "--vllm_mode colocate --vllm_gpu_memory_utilization 0.3 --bf16 true --per_device_train_batch_size 16 "
        "--gradient_accumulation_steps 1 --num_generations 16 --max_prompt_length 512 --max_completion_length 2048\n"
    )
    log = out_of_memory("trl/trainer/grpo_trainer.py")
    step = planned(script, log, "--lib", "trl=0.18.0")["lower-actor-micro-batch"]
    moved_to = {key: new for key, (_, new) in changes(step).items()}
    assert set(moved_to) == {"per_device_train_batch_size", "gradient_accumulation_steps"}
    assert int(moved_to["per_device_train_batch_size"] or 0) * int(moved_to["gradient_accumulation_steps"] or 0) == 16
    assert step["results"] == "unchanged"
