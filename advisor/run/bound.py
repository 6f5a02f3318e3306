"""Binds a launch's native settings: default < file < command line, holes filled from the log, then what-ifs."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from advisor.knowledge.schema import DefaultWhen, Framework, Idle, Scalar, SettingFact
from advisor.regex import regex
from advisor.rules.functions import version_in
from advisor.run.natives import (
    ChosenScope,
    EnvironmentPrefix,
    Native,
    Natives,
    RunScope,
    default_of,
    fact_in,
    in_era,
    in_this_era,
    is_spelling,
    keys_by_knob,
    native,
)
from advisor.run.run import KnobSource
from advisor.run.unknown_keys import has_key
from advisor.run.values import parse_value
from advisor.script.document import Setting

T = TypeVar("T")


def bind_natives(
    framework: Framework | None,
    era: str,
    settings: Iterable[Setting],
    environment: Mapping[str, str],
    log_settings: Mapping[str, str],
    overrides: Mapping[str, str | None],
    with_defaults: bool = True,
    program: str = "",
    config_alone: str = "",
    launcher: Mapping[str, str] | None = None,
    tables: Tables | None = None,
    libraries: Mapping[str, str] | None = None,
    shipped: Iterable[str] = (),
    in_pieces: bool = False,
    spelled: Mapping[str, str] | None = None,
) -> Natives:
    """The table of native values. `overrides` are the plan's what-ifs: key (`$NAME` for variables) → text, None removes
    it.

    `with_defaults` False: there is no launch to look at, so what is not set is not known to be at its default.
    `shipped`: files of the framework's own that the launch names and that were not found. `in_pieces`: the launch was
    quoted in part, so the front of a key may be missing; so it is where no key is known as it stands. What no version
    of the framework has is read by `spelled`, knob → the usual spellings of the last part; a length always is.
    `tables`: shared by what-ifs of the same launch.
    """
    version = (libraries or {}).get(framework.package, "") if framework is not None else ""
    stated = (framework, era, version, tuple(settings), environment, log_settings, with_defaults, tuple(shipped))
    tables, which = tables or Tables(), (era, version, with_defaults)
    rows = tables.once(("stated", *which), partial(_stated, *stated, in_pieces, spelled or {}))
    carried = tables.once(("keys by knob", *which), lambda: keys_by_knob(rows))
    values = dict(rows)
    for key, override in overrides.items():
        known = values.get(key)
        setting_of = known.setting if known else None
        values[key] = _native(key, override, "user", known.fact if known else None, setting_of)
    follow = tables.once(("followers", *which), lambda: [key for key, known in rows.items() if _follows(known)])
    for key in [*follow, *overrides]:
        values[key] = tables.same(_followed(values[key], values))
    bound = Natives(framework, era, values, program, config_alone, launcher or {}, libraries or {}, carried=carried)
    may_be = tables.once(("forced", *which), lambda: [key for key, known in rows.items() if _forcing(known.fact)])
    for one in may_be:
        values[one] = tables.same(_forced(values[one], bound))
    return bound


def _forcing(fact: SettingFact | None) -> list[Idle]:
    return [idle for idle in fact.no_effect_when if idle.forced is not None] if fact is not None else []


def _forced(known: Native, bound: Natives) -> Native:
    """A key with the value that another setting forces, in place of its own; a rule sees what one before forced."""
    here = (idle for idle in _forcing(known.fact) if not idle.eras or bound.era in idle.eras)
    found = next((idle for idle in here if idle.when and idle.when.holds(RunScope(bound)) is True), None)
    return known if found is None else _native(known.key, str(found.forced), known.source, known.fact, known.setting)


def _stated(
    framework: Framework | None,
    era: str,
    version: str,
    settings: Sequence[Setting],
    environment: Mapping[str, str],
    log_settings: Mapping[str, str],
    with_defaults: bool,
    shipped: Sequence[str],
    in_pieces: bool,
    spelled: Mapping[str, str],
) -> dict[str, Native]:
    """The table as defaults, launch and log state it, before any what-if."""
    values = _default_rows(framework, era, version, with_defaults) if framework is not None else {}
    foreign = not any(native(setting.key) in values for setting in settings)
    for key, default in _of_named_config(framework, era, settings, shipped).items():
        values[key] = _native(
            key, None if default is None else str(default), "default", _fact(framework, era, key, values)
        )
    for setting in settings:
        if setting.effective:
            key = native(setting.key)
            key = _in_full(key, values) if (in_pieces or foreign) and key not in values else key
            if key not in values:
                named = {full.rpartition(".")[2] for full in values}  # of its own, in a group without that name
                own = framework is not None and not has_key(framework, key) and key.rpartition(".")[2] not in named
                read = spelled if foreign or own else {name: spelled[name] for name in _ANYBODYS & spelled.keys()}
                key = _by_spelling(key, setting.text, values, read)
            text = setting.text if setting.resolved else (f"${{{setting.follows[-1]}}}" if setting.follows else None)
            source: KnobSource = "environment" if setting.origin == "environment" else "script"
            values[key] = _native(key, text, source, _fact(framework, era, key, values), setting)
    for name, text in environment.items():
        key = EnvironmentPrefix + name
        known = values.get(key)
        values[key] = _native(key, text, "environment", known.fact if known else None)
    for key, text in log_settings.items():  # fills what the script leaves open, and overrules nothing that it decides
        known = values.get(key)
        if known is None or not known.given or known.text is None:
            fact = _fact(framework, era, key, values)
            values[key] = _native(key, text, "log", fact, known.setting if known else None)
    return values


class Tables:
    """What the runs of one sitting share: a search binds the same dialect and model hundreds of times."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, made once for a key; the key names all that decides it."""
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    def same(self, row: Native) -> Native:
        """The row, or one made before that is equal to it: what did not move is the very same in every what-if."""
        known = self.once(("row", row.key, row.text, row.source), lambda: row)
        return known if known == row else row


def _default_rows(framework: Framework, era: str, version: str, with_defaults: bool) -> dict[str, Native]:
    """Every key of the era at its default, or unset; not what came after the `version` that runs."""
    rows: dict[str, Native] = {}
    for table, prefix in ((framework.settings, ""), (framework.environment, EnvironmentPrefix)):
        for key, known_as in table.items():
            fact = fact_in(known_as, era)
            if fact is not None and not (fact.since and version and version_in(f"<{fact.since}", version)):
                default = default_of(fact, era) if with_defaults else None
                text = None if default is None else str(default)
                rows[prefix + key] = _native(prefix + key, text, "default", fact)
    return rows


def _of_named_config(
    framework: Framework | None, era: str, settings: Iterable[Setting], shipped: Iterable[str]
) -> dict[str, Scalar]:
    """Defaults of a configuration of the framework's own: one inside the package, its groups, or a `shipped` file."""
    if framework is None:
        return {}
    chosen = {native(s.key): str(s.text) for s in settings if s.effective and s.resolved}
    named = [chosen[key].removesuffix(".yaml") for key in ("config-name", "cn") if key in chosen]
    names = [*named, *(f"{key}={option}" for key, option in chosen.items()), *shipped]
    return {
        key: in_this_era(value, era)
        for pattern, defaults in framework.config_defaults.items()
        if any(_is_named(name, pattern) for name in names)
        for key, value in defaults.items()
        if (known := framework.settings.get(key)) is None or fact_in(known, era) is not None
    }


def with_defaults_of_method(natives: Natives, tables: Tables) -> Natives:
    """The defaults that only this program, backend or method has, in place of the framework's usual ones."""
    scope = ChosenScope(natives)
    own = {}
    rows = natives.values.values()
    ruled = tables.once(
        ("defaults by rules", natives.era), lambda: [one.key for one in rows if one.fact and one.fact.default_when]
    )
    for key in ruled:
        one = natives.values[key]
        chosen = None if one.fact is None or one.given else _default_when(one.fact, scope)
        if chosen is not None:
            default = in_this_era(chosen.default, natives.era)
            text = None if default is None else str(default)
            own[one.key] = tables.same(_native(one.key, text, "default", one.fact, one.setting))
    return replace(natives, values={**natives.values, **own}) if own else natives


def default_here(fact: SettingFact, natives: Natives) -> Scalar:
    """The framework's default, of this program, backend and method where those have their own; None without one."""
    chosen = _default_when(fact, ChosenScope(natives)) if fact.default_when else None
    return default_of(fact, natives.era) if chosen is None else in_this_era(chosen.default, natives.era)


def _default_when(fact: SettingFact, scope: ChosenScope) -> DefaultWhen | None:
    return next((rule for rule in fact.default_when if rule.when.holds(scope) is True), None)


def shipped_files(framework: Framework | None, missing: Iterable[str]) -> tuple[str, ...]:
    """Of the files that were not found, those that the framework's source tree has under that name."""
    patterns = [] if framework is None else [name for name in framework.config_defaults if name.endswith(".yaml")]
    return tuple(name for name in missing if any(_is_named(name, pattern) for pattern in patterns))


def _is_named(name: str, pattern: str) -> bool:
    """A file of the framework's may be named from any folder above its source tree."""
    return fnmatchcase(name, pattern) or (pattern.endswith(".yaml") and name.endswith("/" + pattern))


def _follows(known: Native) -> bool:
    return known.text is not None and known.text.startswith("${")


def _followed(known: Native, values: Mapping[str, Native], depth: int = 4) -> Native:
    """A value "${a.b}" is that of key a.b, as OmegaConf interpolates it in the framework's own config and in others."""
    text = known.text or ""
    if not (_follows(known) and text.endswith("}")) or depth == 0:
        return known
    leader = values.get(text[2:-1])
    if leader is None:
        return Native(known.key, None, None, known.source, known.fact, known.setting)
    leader = _followed(leader, values, depth - 1)
    return _native(known.key, leader.text, known.source, known.fact, known.setting)


def keys_of_knobs(framework: Framework | None, era: str, knobs: Mapping[str, str]) -> dict[str, str]:
    """What an engine printed, by knob, under the keys with which this framework's users set it as it is."""
    found: dict[str, str] = {}
    for key, known_as in framework.settings.items() if framework is not None else ():
        fact = fact_in(known_as, era)
        if fact is not None and fact.knob is not None and fact.knob in knobs and fact.to_knob is None:
            found.setdefault(fact.knob, key)
    return {key: knobs[knob] for knob, key in found.items()}


def _in_full(key: str, values: Mapping[str, Native]) -> str:
    """The one setting whose key ends in `key`, as people quote it, with which `key` ends, as a file of several models
    has it, or that ends in its last part, where a file groups them otherwise, or has an engine's own argument behind
    the engine's name (vllm_max_model_len); of several roles, the trained model's.
    What an element of a list has is that list's alone."""
    groups = key.split(".")
    behind = (".".join(groups[at:]) for at in range(1, len(groups) - 1))
    front = next((short for short in behind if short in values and values[short].fact is not None), "")
    if front and not _in_a_list(key):
        return front
    last = key if _in_a_list(key) else key.rpartition(".")[2]
    if last in values and values[last].fact is not None:
        return last
    named = [full for full, known in values.items() if known.fact is not None]
    ends = [full for full in named if full.endswith(f".{key}")]
    ends = ends or [full for full in named if full.endswith(f".{last}") and not _in_a_list(full)]
    ends = ends or [full for full in named if full in (f"vllm_{last}", f"sglang-{last.replace('_', '-')}")]
    trained = [full for full in ends if not (_knob(values[full]) or "").startswith(("critic.", "reference."))]
    return next((found[0] for found in (ends, trained) if len(found) == 1), key)


def _in_a_list(key: str) -> bool:
    return any(part.isdigit() for part in key.split("."))


_TRAINED = frozenset({"actor", "policy"})
"""Groups of settings that are the trained model's whatever the groups around them are called."""
_OF_ANOTHER_PASS = regex(r"eval|val_|critic|ref|reward|rollout|infer|log_?prob|generat|buffer")


_ANYBODYS = frozenset({"data.total_tokens"})
"""Knobs that a program of one's own often has a key of its own for, on a trainer that has another."""
_GENERATED = frozenset({"data.response_tokens", "rollout.samples_per_prompt", "rollout.memory_share", "rollout.sleeps"})
_NAMED_PASSES = ("eval.",)
"""Knobs of what is rolled out, which stand among the rollout's settings; and those of a pass that no front tells."""
MOST_ROWS = 64
"""Rows of a pass; a larger number under a plain "batch_size" counts those of a step (judgement)."""


def _by_spelling(key: str, text: object, values: Mapping[str, Native], spelled: Mapping[str, str]) -> str:
    """The one setting that carries the knob of which the last part of `key` is a usual spelling."""
    groups = key.lower().split(".")
    if not _TRAINED.intersection(groups) and _OF_ANOTHER_PASS.search(key.lower()):
        read = {knob: spelled[knob] for knob in _GENERATED & spelled.keys()}
    else:
        read = {knob: pattern for knob, pattern in spelled.items() if not knob.startswith(_NAMED_PASSES)}
    knobs = [knob for knob, pattern in read.items() if is_spelling(key, pattern)]
    if knobs == ["actor.micro_batch"] and not (str(text).isdecimal() and int(str(text)) <= MOST_ROWS):
        return key
    found = [full for full, known in values.items() if knobs and _knob(known) == knobs[0] and not known.given]
    alike = found if len(found) < 2 else difflib.get_close_matches(key, found, 1, cutoff=0)
    return alike[0] if len(knobs) == 1 and alike else key


def _knob(known: Native) -> str | None:
    return known.fact.knob if known.fact is not None else None


def _fact(framework: Framework | None, era: str, key: str, values: Mapping[str, Native]) -> SettingFact | None:
    """What is known of a key; of one that the era lacks, too, unless it is something else there."""
    known = values.get(key)
    if known is not None and known.fact is not None:
        return known.fact
    fact = framework.settings.get(key) if framework is not None else None
    return None if fact is not None and fact.elsewhere and not in_era(fact, era) else fact


def _native(
    key: str, text: str | None, source: KnobSource, fact: SettingFact | None, setting: Setting | None = None
) -> Native:
    kind = fact.type if fact is not None else "str"
    return Native(key, text, None if text is None else parse_value(text, kind), source, fact, setting)
