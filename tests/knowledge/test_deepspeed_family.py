"""The dialects of the DeepSpeed family and the advisories: what a correction of these files must not break."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from packaging.specifiers import SpecifierSet

from advisor.knowledge.schema import Advisory, Constraint, Framework, KnobFact, SettingFact
from advisor.knowledge.vocabulary import RUN_NAMES
from advisor.rules.expression import decode
from advisor.rules.tree import Name, Not, joined
from tests.loops import each
from tests.plain_yaml import plain_yaml

KNOWLEDGE = Path(__file__).resolve().parents[2] / "knowledge"
DIALECTS = ("open_reasoner_zero", "openrlhf", "ms_swift", "trl")
T = TypeVar("T")


@cache
def read(name: str, kind: type[T]) -> T:
    return msgspec.convert(plain_yaml(KNOWLEDGE / name), kind, dec_hook=decode)


def dialect(name: str) -> Framework:
    return read(f"frameworks/{name}.yaml", Framework)


def advisory(name: str) -> Advisory:
    return next(a for a in read("advisories.yaml", tuple[Advisory, ...]) if a.id == name)


def facts(framework: Framework) -> Iterator[tuple[str, SettingFact]]:
    yield from framework.settings.items()
    yield from framework.environment.items()


def living(framework: Framework, era: str) -> dict[str, SettingFact]:
    return {key: fact for key, fact in framework.settings.items() if not fact.eras or era in fact.eras}


def era_for(framework: Framework, version: str) -> str:
    return next(era.id for era in framework.eras if SpecifierSet(era.versions, prereleases=True).contains(version))


@pytest.fixture(params=DIALECTS)
def framework(request: pytest.FixtureRequest) -> Framework:
    return dialect(request.param)


def test_every_knob_is_in_the_vocabulary(framework: Framework) -> None:
    knobs = {knob.id for knob in read("knobs.yaml", tuple[KnobFact, ...])}
    used = {knob for _, fact in facts(framework) for knob in (fact.knob, *fact.also) if knob is not None}
    assert used - knobs == set()


def test_every_era_that_is_named_exists(framework: Framework) -> None:
    eras = {era.id for era in framework.eras}
    named = set(framework.per_era)
    for _, fact in facts(framework):
        named |= set(fact.eras)
        named |= set(fact.default) - {"*"} if isinstance(fact.default, dict) else set()
        for rule in (*fact.must, *fact.no_effect_when, *fact.with_it):
            named |= set(rule.eras)
    assert named - eras == set()


def test_every_fact_says_where_it_comes_from(framework: Framework) -> None:
    silent = [key for key, fact in facts(framework) if not fact.source]
    silent += [rule.frame for rule in framework.frames if not rule.source]
    silent += [era.id for era in framework.eras if not era.source]
    assert silent == []
    assert framework.mechanics.source


def test_version_ranges_of_the_eras_join_without_a_gap(framework: Framework) -> None:
    if framework.package == "open-reasoner-zero":
        assert [era.versions for era in framework.eras] == [""]
        return
    bounds = [{one.operator: one.version for one in SpecifierSet(era.versions)} for era in framework.eras]
    assert "<" not in bounds[0]
    assert ">=" not in bounds[-1]
    assert [newer[">="] for newer in bounds[:-1]] == [older["<"] for older in bounds[1:]]


def test_rules_of_a_setting_speak_of_keys_that_exist_beside_it(framework: Framework) -> None:
    wrong, knobs = [], [knob.id for knob in read("knobs.yaml", tuple[KnobFact, ...])]
    for key, fact in framework.settings.items():
        for rule in fact.must:
            for era in rule.eras or fact.eras or [e.id for e in framework.eras]:
                known = {*living(framework, era), *RUN_NAMES, *switches(rule), *knobs, "value"}
                wrong += [(key, era, name) for name in rule.holds.names() if name not in known]
    assert wrong == []


def switches(rule: Constraint) -> list[str]:
    """Switches that may be absent: `not SWITCH or …` asks nothing where the era has none."""
    parts = [part.part for part in joined("or", rule.holds.tree) if isinstance(part, Not)]
    return [part.name for part in parts if isinstance(part, Name)]


def test_settings_whose_results_stay_never_name_a_length_or_a_batch_of_prompts(framework: Framework) -> None:
    changing = {
        "data.prompt_tokens",
        "data.response_tokens",
        "data.total_tokens",
        "rollout.samples_per_prompt",
        "rollout.batch",
    }
    same = [key for key, fact in framework.settings.items() if fact.knob in changing and fact.results == "unchanged"]
    assert same == []


def test_accumulation_is_marked_as_moving_nothing() -> None:
    for name in ("ms_swift", "trl"):
        fact = dialect(name).settings["gradient_accumulation_steps"]
        assert (fact.moves, fact.results) == ({"all": "none"}, "changed")


@each(
    ("version", "share", "micro_train", "micro_rollout"),
    [("0.5.9", 0.9, 4, 8), ("0.6.3", 0.9, 4, 8), ("0.6.4", 0.95, 4, 8), ("0.9.8", 0.95, 4, 8), ("0.10.1", 0.95, 1, 1)],
)
def test_openrlhf_defaults_follow_the_version(version: str, share: float, micro_train: int, micro_rollout: int) -> None:
    framework = dialect("openrlhf")
    era = era_for(framework, version)

    def default(key: str) -> object:
        given = framework.settings[key].default
        return given.get(era, given.get("*")) if isinstance(given, dict) else given

    keys = ("vllm_gpu_memory_utilization", "micro_train_batch_size", "micro_rollout_batch_size")
    assert tuple(map(default, keys)) == (share, micro_train, micro_rollout)


def test_openrlhf_has_flat_keys_before_0_10_2_and_dotted_ones_since() -> None:
    framework = dialect("openrlhf")
    old, new = (set(living(framework, era_for(framework, version))) for version in ("0.10.1", "0.10.2"))
    assert not {key for key in old if "." in key}
    assert not {key for key in new if "." not in key}
    carried = [{framework.settings[key].knob for key in keys} for keys in (old, new)]
    assert carried[0] == carried[1]


def test_openrlhf_booleans_are_bare_flags() -> None:
    assert {fact.type for fact in dialect("openrlhf").settings.values()} & {"bool"} == set()


def test_orz_pins_its_micro_batches_and_packs_at_least_one_sequence() -> None:
    settings = dialect("open_reasoner_zero").settings
    for key in ("micro_train_batch_size", "micro_forward_batch_size"):
        assert [str(rule.holds) for rule in settings[key].must] == ["value == 1"]
    assert str(settings["packing_max_len"].must[0].holds) == "value >= prompt_max_len + generate_max_len"
    assert settings["micro_rollout_batch_size"].knob == "rollout.max_sequences"


def test_swift_3_1_counts_no_accumulation_in_the_multiple_of_generations() -> None:
    framework = dialect("ms_swift")
    era = era_for(framework, "3.1.1")
    rules = [rule for rule in framework.settings["num_generations"].must if era in rule.eras]
    assert [str(rule.holds) for rule in rules] == ["per_device_train_batch_size * processes % num_generations == 0"]
    assert framework.topology is not None
    assert f'"{era}"' in str(framework.topology.let["beside"])


@each("bad", ["0.16.0", "0.16.1", "0.16.2", "0.16.3", "0.16.4", "0.16.5", "0.16.6", "0.16.7"])
def test_the_deepspeed_leak_covers(bad: str) -> None:
    assert SpecifierSet(advisory("deepspeed-016-zero3-leak").versions).contains(bad)


@each("good", ["0.15.0", "0.15.4", "0.16.8", "0.16.9", "0.17.0"])
def test_the_deepspeed_leak_spares(good: str) -> None:
    leak = advisory("deepspeed-016-zero3-leak")
    assert not SpecifierSet(leak.versions).contains(good)


def test_what_an_advisory_calls_safe_is_outside_what_it_calls_bad() -> None:
    known = ["0.9.1", "0.9.2", "0.13.0", "0.15.0", "0.15.4", "0.16.0", "0.16.7", "0.16.8", "0.17.5", "0.17.6", "0.18.3"]
    known += ["0.19.4", "0.19.5", "3.11.1", "3.12.0", "3.12.3", "3.12.6", "4.46.0", "4.45.2", "0.6.1", "0.7.0", "0.7.1"]
    both = []
    for one in read("advisories.yaml", tuple[Advisory, ...]):
        bad = SpecifierSet(one.versions)
        for safe in one.safe:
            fitting = [version for version in known if SpecifierSet(safe).contains(version)]
            assert fitting, (one.id, safe)
            both += [(one.id, safe, version) for version in fitting if bad.contains(version)]
    assert both == []


def test_advisories_have_a_source_and_one_id_each() -> None:
    all_of_them = read("advisories.yaml", tuple[Advisory, ...])
    assert all(one.source and one.says and one.when for one in all_of_them)
    assert len({one.id for one in all_of_them}) == len(all_of_them)
    assert {one.cause for one in all_of_them} == {None, "library-regression", "host-library-leak"}
