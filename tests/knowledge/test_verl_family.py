"""The verl family: the dialects load, name only what exists, and state the batch algebra the forks really have."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from advisor.folders import knowledge_folder
from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Constraint, Era, FrameTier, Framework, Idle, SettingFact, StatedMechanics
from advisor.rules.expression import Expression, decode
from advisor.rules.tree import Call, Compare, Node, RuleValue, joined
from advisor.session import SessionRequest, open_session
from advisor.words import Phase
from tests.loops import each
from tests.plain_yaml import plain_yaml

FILES = ("verl", "easyr1", "logic_rl")
WHERE = {"gpu", "gpu-", "host", "host-", "none"}
FOLDER: Path = knowledge_folder()


def read(name: str) -> Framework:
    return msgspec.convert(plain_yaml(FOLDER / "frameworks" / f"{name}.yaml"), Framework, dec_hook=decode)


FAMILY = {name: read(name) for name in FILES}


@pytest.fixture(params=FILES)
def dialect(request: pytest.FixtureRequest) -> Framework:
    return FAMILY[request.param]


def facts(dialect: Framework) -> dict[str, SettingFact]:
    return {**dialect.settings, **dialect.environment}


def constraints(dialect: Framework) -> list[Constraint]:
    """Every `must` of the file."""
    return [*dialect.must, *(rule for fact in facts(dialect).values() for rule in fact.must)]


def eras_of(fact: SettingFact) -> set[str]:
    named = set(fact.eras)
    if isinstance(fact.default, dict):
        named |= set(fact.default) - {"*"}
    return named


def test_every_knob_is_one_of_the_canonical_knobs(dialect: Framework) -> None:
    knobs = {knob.id for knob in load_knowledge().knobs}
    assert {fact.knob for fact in facts(dialect).values() if fact.knob} <= knobs


def test_every_fact_says_where_it_comes_from(dialect: Framework) -> None:
    unsourced = [key for key, fact in facts(dialect).items() if not re.search(r"@\S+ \S+|https://", fact.source)]
    assert not unsourced
    assert dialect.source
    assert dialect.mechanics.source
    assert all(frame.source for frame in dialect.frames)
    assert all(era.source for era in dialect.eras)


def test_every_era_named_exists(dialect: Framework) -> None:
    eras = {era.id for era in dialect.eras}
    assert len(eras) == len(dialect.eras)
    named = set(dialect.per_era)
    for fact in facts(dialect).values():
        named |= eras_of(fact)
    for rule in (*constraints(dialect), *(i for fact in facts(dialect).values() for i in fact.no_effect_when)):
        named |= set(rule.eras)
    assert named <= eras


def test_every_setting_a_default_speaks_of_is_known(dialect: Framework) -> None:
    followed = {d[2:-1] for f in facts(dialect).values() if isinstance(d := f.default, str) and d.startswith("${")}
    assert followed <= set(dialect.settings)


def test_every_constraint_says_in_words_what_it_asks(dialect: Framework) -> None:
    assert constraints(dialect)
    silent = [rule.holds for rule in constraints(dialect) if not rule.says]
    plain = [joined("or", rule.tree)[0] for rule in silent]
    assert all(isinstance(tree, Compare) and tree.sign == "<=" for tree in plain)


def test_defaults_have_the_type_of_their_setting(dialect: Framework) -> None:
    kinds: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,), "str": (str,)}
    wrong = []
    for key, fact in facts(dialect).items():
        values = fact.default.values() if isinstance(fact.default, dict) else [fact.default]
        for value in values:
            if value is None or (isinstance(value, str) and value.startswith("${")) or fact.type not in kinds:
                continue
            if not isinstance(value, kinds[fact.type]) or (fact.type != "bool" and isinstance(value, bool)):
                wrong.append((key, value))
    assert not wrong


def test_moves_name_phases_and_places(dialect: Framework) -> None:
    phases = {*get_args(Phase), "all"}
    for key, fact in facts(dialect).items():
        assert set(fact.moves) <= phases, key
        assert set(fact.moves.values()) <= WHERE, key


def test_mechanics_of_every_era_are_valid(dialect: Framework) -> None:
    base = msgspec.to_builtins(dialect.mechanics)
    for fields in dialect.per_era.values():
        changed = msgspec.convert({**base, **fields}, StatedMechanics)
        assert changed != dialect.mechanics


def test_patterns_compile_and_match_what_they_are_for(dialect: Framework) -> None:
    for frame in dialect.frames:
        re.compile(frame.frame)
        re.compile(frame.under)
    for pattern in [p.pattern for p in dialect.progress] + [p for r in dialect.recognised_by for p in r.log]:
        re.compile(pattern)


@each(
    ("name", "frame", "phase"),
    [
        ("logic_rl", "dp_actor.py:update_policy", "actor_update"),
        ("logic_rl", "dp_actor.py:_optimizer_step", "optimizer_step"),
        ("logic_rl", "dtensor_weight_loaders.py:load_dtensor_weights", "weight_sync"),
        ("easyr1", "fsdp_vllm.py:load_vllm_and_sync_weights", "weight_sync"),
        ("easyr1", "dp_actor.py:compute_log_prob", "log_prob"),
        ("easyr1", "fsdp_workers.py:_build_rollout", "rollout_init"),
        ("verl", "fsdp_workers.py:rollout_mode", "weight_sync"),
        ("verl", "megatron_workers.py:update_actor", "actor_update"),
        ("verl", "dp_critic.py:update_critic", "critic_update"),
    ],
)
def test_a_frame_means_its_phase(name: str, frame: str, phase: str) -> None:
    rules = [r for r in FAMILY[name].frames if r.in_ == "frame" and not r.under and re.search(r.frame, frame)]
    assert max(rules, key=lambda r: get_args(FrameTier).index(r.tier)).phase == phase


def test_log_probs_inside_generate_sequences_are_told_from_generation() -> None:
    for name in ("logic_rl", "verl"):
        under = [r for r in FAMILY[name].frames if r.under and re.search(r.under, "fsdp_workers.py:generate_sequences")]
        assert any(re.search(r.frame, "dp_actor.py:compute_log_prob") and r.phase == "log_prob" for r in under)


# --- recognition --------------------------------------------------------------------------------------------------


def test_the_more_special_dialects_are_tried_before_verl() -> None:
    first = {name: min(r.priority for r in FAMILY[name].recognised_by) for name in FILES}
    last = {name: max(r.priority for r in FAMILY[name].recognised_by) for name in FILES}
    assert max(last["easyr1"], last["logic_rl"]) < first["verl"]


def test_easyr1_is_not_seen_in_the_log_of_verl() -> None:
    line = "(TaskRunner pid=3407) {'actor_rollout_ref': {'actor': {'ppo_micro_batch_size_per_gpu': 4,"
    assert not [p for r in FAMILY["easyr1"].recognised_by for p in r.log if re.search(p, line)]
    assert [p for r in FAMILY["easyr1"].recognised_by for p in r.log if re.search(p, "(Runner pid=77) {")]
    assert [p for r in FAMILY["verl"].recognised_by for p in r.log if re.search(p, line)]


def test_logic_rl_asks_for_its_own_marks_and_never_for_per_gpu_micro_batches() -> None:
    recognition, _ = FAMILY["logic_rl"].recognised_by
    assert any(mark in "data.train_files=data/kk/instruct/5ppl/train.parquet" for mark in recognition.marks)
    other = (
        "VLLM_ATTENTION_BACKEND=XFORMERS trainer.project_name=TinyZero data/countdown/train.parquet grad_offload=True"
    )
    assert not any(mark in other for mark in (*recognition.marks, *recognition.hints))
    key = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"
    assert any(fnmatchcase(key, pattern) for pattern in recognition.lacks)


def era_by_keys(dialect: Framework, keys: set[str]) -> str:
    """The first era whose keys agree, as the schema says."""

    def meets(era: Era) -> bool:
        has = not era.has or any(fnmatchcase(key, pattern) for key in keys for pattern in era.has)
        return has and not any(fnmatchcase(key, pattern) for key in keys for pattern in era.lacks)

    return next(era.id for era in dialect.eras if meets(era))


@each(
    ("keys", "era"),
    [
        ({"data.val_batch_size", "actor_rollout_ref.actor.ppo_micro_batch_size"}, "v0.1-fork"),
        ({"actor_rollout_ref.actor.use_dynamic_bsz", "actor_rollout_ref.actor.fsdp_config.grad_offload"}, "v0.1-fork"),
        (
            {
                "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
                "actor_rollout_ref.actor.fsdp_config.grad_offload",
            },
            "v0.2",
        ),
        ({"actor_rollout_ref.actor.ppo_micro_batch_size", "actor_rollout_ref.model.lora_rank"}, "v0.4"),
        ({"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"}, "v0.4"),
        ({"actor_rollout_ref.rollout.agent.num_workers"}, "v0.5"),
        ({"ray_kwargs.ray_init.num_cpus"}, "v0.6"),
        ({"actor_rollout_ref.model.tiled_mlp.enabled"}, "v0.7"),
        ({"actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes"}, "v0.7.1"),
        ({"reward.reward_model.enable"}, "v0.7.1"),
        ({"model_engine"}, "v0.8"),
        ({"critic.fsdp.param_offload"}, "v0.8"),
        ({"trainer.v1.trainer_mode"}, "v0.9"),
        ({"actor_rollout_ref.actor.fsdp_config.use_no_sync_for_gradient_accumulation"}, "v0.9.1"),
    ],
)
def test_keys_tell_the_era_of_a_verl_script(keys: set[str], era: str) -> None:
    assert era_by_keys(FAMILY["verl"], keys) == era


@each(
    ("keys", "era"),
    [
        ({"worker.actor.ulysses_sequence_parallel_size"}, "v0.3.0"),
        ({"worker.actor.ulysses_size", "trainer.save_model_only"}, "v0.3.1"),
        ({"worker.actor.ulysses_size", "worker.actor.dynamic_batching"}, "v0.3.2"),
        ({"worker.actor.model.model_path"}, "v0.3.2"),
    ],
)
def test_keys_tell_the_era_of_an_easyr1_script(keys: set[str], era: str) -> None:
    assert era_by_keys(FAMILY["easyr1"], keys) == era


@each(
    ("name", "version", "era"),
    [
        ("verl", "0.1", "v0.1-fork"),
        ("verl", "0.2", "v0.2"),
        ("verl", "0.3.0.post1", "v0.3"),
        ("verl", "0.4.0", "v0.4"),
        ("verl", "0.4.1", "v0.4.1"),
        ("verl", "0.7.0.dev", "v0.7"),
        ("verl", "0.7.1", "v0.7.1"),
        ("verl", "0.8.0.dev", "v0.8"),
        ("verl", "0.9.0", "v0.9"),
        ("verl", "0.9.1", "v0.9.1"),
        ("easyr1", "0.3.0", "v0.3.0"),
        ("easyr1", "0.3.3.dev0", "v0.3.2"),
        ("logic_rl", "0.1", "v0.1-fork"),
    ],
)
def test_one_era_holds_each_released_version(name: str, version: str, era: str) -> None:
    from packaging.specifiers import SpecifierSet

    held = [e.id for e in FAMILY[name].eras if SpecifierSet(e.versions).contains(version, prereleases=True)]
    assert held == [era]


# --- the batch algebra --------------------------------------------------------------------------------------------

MICRO = {
    "update": "actor_rollout_ref.actor.ppo_micro_batch_size",
    "scoring": "actor_rollout_ref.rollout.log_prob_micro_batch_size",
    "critic": "critic.ppo_micro_batch_size",
}


def sequences(rule: Expression | Node | None, value: int, gpus: int, n: int, era: str = "v0.1-fork") -> int:
    """What a native value comes to on `gpus` data-parallel ranks, with `n` samples per prompt."""

    class Scope:
        def value(self, name: str) -> RuleValue | None:
            return {"dp": gpus, "samples": n, "era": era}.get(name, value)

        def given(self, name: str) -> RuleValue | None:
            return None

    found = value if rule is None else rule.of(Scope())
    assert isinstance(found, int)
    return found


def normalised(dialect: Framework, era: str) -> Call:
    """`divides(micro, mini)`: the dialect's rule that the mini-batch of one GPU is a multiple of its micro-batch."""
    found = [r.holds.tree for r in dialect.must if not r.eras or era in r.eras]
    return [tree for tree in found if isinstance(tree, Call) and tree.function == "divides"][-1]


@pytest.mark.parametrize("name", ["logic_rl", "verl"])
@pytest.mark.parametrize(
    ("gpus", "batch", "n", "mini", "micro", "scoring", "update_pass", "scoring_pass"),
    [
        (4, 64, 16, 32, 16, 160, 64, 256),
        (4, 16, 8, 256, 64, 160, 32, 32),
        (8, 8, 8, 256, 64, 160, 8, 8),
        (4, 8, 4, 32, 4, 40, 4, 8),
        (4, 4, 2, 4, 4, 4, 2, 2),
        (4, 8, 32, 256, 64, 160, 64, 64),
    ],
    ids=["main_grpo", "grpo_4gpu", "curriculum", "ppo_3B", "ppo_7B", "issue_8"],
)
def test_sequences_per_pass_of_the_january_forks(
    name: str, gpus: int, batch: int, n: int, mini: int, micro: int, scoring: int, update_pass: int, scoring_pass: int
) -> None:
    settings = FAMILY[name].settings
    per_gpu = batch * n // gpus
    values = {"update": micro, "scoring": scoring}
    now = {key: sequences(settings[MICRO[key]].to_knob, v, gpus, n) for key, v in values.items()}
    now["mini"] = sequences(normalised(FAMILY[name], "v0.1-fork").arguments[1], mini, gpus, n)
    assert min(now["update"], now["mini"], per_gpu) == update_pass
    assert min(now["scoring"], per_gpu) == scoring_pass


@pytest.mark.parametrize("name", ["logic_rl", "verl"])
def test_the_critic_of_the_january_forks_is_not_multiplied_by_n(name: str) -> None:
    assert sequences(FAMILY[name].settings[MICRO["critic"]].to_knob, 64, 8, 16) == 8


def test_later_verl_divides_the_old_micro_batch_only_and_takes_the_new_one_as_it_is() -> None:
    settings = FAMILY["verl"].settings
    assert sequences(settings[MICRO["update"]].to_knob, 64, 8, 16, "v0.4") == 8
    rule = normalised(FAMILY["verl"], "v0.4")
    assert sequences(rule.arguments[1], 64, 8, 5) == 40
    assert sequences(rule.arguments[0], 64, 8, 5) == 8
    per_gpu = settings["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"]
    assert sequences(per_gpu.to_knob, 4, 8, 16) == 4
    assert "v0.1-fork" not in per_gpu.eras


def test_easyr1_multiplies_the_mini_batch_and_leaves_the_micro_batches() -> None:
    settings = FAMILY["easyr1"].settings
    mini = normalised(FAMILY["easyr1"], "v0.3.2").arguments[1]
    assert "worker.actor.global_batch_size" in str(mini)
    assert sequences(mini, 128, 8, 5) == 80
    for key in ("update", "experience"):
        micro = settings[f"worker.actor.micro_batch_size_per_device_for_{key}"]
        assert sequences(micro.to_knob, 4, 8, 5) == 4


def test_logic_rl_offers_a_token_budget_that_holds_a_whole_sequence() -> None:
    settings = FAMILY["logic_rl"].settings
    budget = settings["actor_rollout_ref.actor.ppo_max_token_len_per_gpu"]
    assert budget.knob == "actor.tokens_per_gpu"
    assert budget.results == "unchanged"
    assert any(
        {"data.max_prompt_length", "data.max_response_length"} <= set(rule.holds.names()) for rule in budget.must
    )
    dynamic = settings["actor_rollout_ref.actor.use_dynamic_bsz"]
    assert dynamic.default is False
    assert dynamic.results == "unchanged"
    followers = ("rollout.log_prob_use_dynamic_bsz", "ref.log_prob_use_dynamic_bsz")
    for follower in followers:
        assert settings[f"actor_rollout_ref.{follower}"].default == "${actor_rollout_ref.actor.use_dynamic_bsz}"


@pytest.mark.parametrize("name", FILES)
def test_batches_in_prompts_reach_the_ledger_as_prompts(name: str) -> None:
    for fact in FAMILY[name].settings.values():
        if fact.knob in ("actor.mini_batch", "data.train_batch"):
            assert fact.unit == "prompts, all GPUs"
            assert fact.to_knob is None


def test_switches_that_do_nothing_are_marked() -> None:
    def idle(name: str, key: str) -> Idle:
        (rule,) = FAMILY[name].settings[key].no_effect_when
        assert rule.when is None
        assert rule.because
        return rule

    assert not idle("logic_rl", "actor_rollout_ref.rollout.max_num_seqs").eras
    assert not idle("logic_rl", "actor_rollout_ref.actor.fsdp_config.grad_offload").eras
    reference = idle("verl", "actor_rollout_ref.ref.fsdp_config.param_offload")
    assert "v0.4" in reference.eras
    assert "v0.1-fork" not in reference.eras
    assert FAMILY["logic_rl"].settings["actor_rollout_ref.ref.fsdp_config.param_offload"].no_effect_when == ()


def test_offloads_move_bytes_to_the_host_and_do_not_relieve_the_update(dialect: Framework) -> None:
    offloads = [fact for fact in dialect.settings.values() if fact.knob == "actor.optimizer_offload"]
    assert offloads
    for fact in offloads:
        assert fact.moves["all"] == "host"
        assert fact.moves["actor_update"] == "none"
        assert fact.results == "unchanged"


def test_rllms_own_names_win_over_those_of_verl(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(
        "python3 -m examples.train rllm/backend=verl rllm.algorithm.adv_estimator=grpo rllm.rollout.n=8 "
        "actor_rollout_ref.rollout.n=4 rllm.data.max_response_length=4096 actor_rollout_ref.model.path=Qwen/Qwen3-4B "
        "actor_rollout_ref.rollout.name=vllm actor_rollout_ref.actor.ppo_mini_batch_size=32\n"
    )
    run = open_session(SessionRequest(script, planned=False)).run
    assert (run.framework, run.algorithm) == ("verl", "grpo")
    assert (run.knobs["rollout.samples_per_prompt"].value, run.knobs["data.response_tokens"].value) == (8, 4096)
