"""Binds a launch's native settings: default < file < command line, holes filled from the log, then what-ifs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property, partial
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.knowledge.schema import Framework, Scalar, SettingFact
from advisor.knowledge.vocabulary import COUNTS
from advisor.machine.inventory import Machine
from advisor.rules.expression import RuleValue, as_number
from advisor.run.run import Knob, KnobSource, KnobValue, ModelShape, Topology
from advisor.run.values import parse_value
from advisor.script.document import Setting, without_dashes

T = TypeVar("T")
LauncherPrefix = "--"
LibraryPrefix = "library."
EnvironmentPrefix = "$"
"""Environment variables stand in the same table as settings, with this before the name."""


def native(key: str) -> str:
    """A setting's key as the dialects write it: without the dashes of an option or the mark of accelerate's file.

    A dotted option in kebab case (`--trainer.model.seq-len`) has the name that it has in a file.
    """
    return without_dashes(key).removeprefix("accelerate:")


OF_ROLLOUTS = ("rollout.", "sync.", "weight_sync.")
"""Knobs of the rollout engine and of what feeds it."""


class Native(Struct, frozen=True):
    """One native value in force. `text` None: unset; `given`: the user's files or the log set it."""

    key: str
    text: str | None
    value: KnobValue | None
    source: KnobSource
    fact: SettingFact | None = None
    setting: Setting | None = None

    @property
    def switch(self) -> bool:
        """On or off, nothing between."""
        return self.fact is not None and self.fact.type in ("bool", "flag")

    @property
    def given(self) -> bool:
        """Set by somebody, not a default."""
        return self.source != "default"

    @property
    def stated_off(self) -> bool:
        """Somebody wrote "none" where a word could stand."""
        word = self.fact is not None and self.fact.type == "str"
        return word and self.given and (self.text or "").lower() == "none"


class Natives(Struct, dict=True):
    """All native values of one launch, keyed as the dialect writes them; `$NAME` for environment variables."""

    framework: Framework | None
    era: str
    values: Mapping[str, Native] = field(default_factory=dict)
    program: str = ""
    """What the launch runs; "" where that is not known."""
    launcher: Mapping[str, str] = field(default_factory=dict)
    """Options of torchrun, accelerate and their like: "--nnodes"; "" where one is set to nothing known."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Versions of the installed libraries, as far as they are known."""
    rolls_out: bool = True
    """False: nothing is rolled out as far as is known, so what says anything of a rollout engine is idle."""
    algorithm: str = ""
    """The training method; "" while it is not read yet."""

    def value(self, key: str) -> KnobValue | None:
        """The typed value in force; None where unset."""
        found = self.values.get(key)
        return None if found is None else found.value

    def number(self, key: str) -> float | None:
        """The value as a number; None where unset or not one."""
        found = as_number(self.value(key))
        return None if found is None else float(found)

    def carrier(self, knob: str) -> Native | None:
        """The native key that carries a knob: one that is set if there is one, else the first the era has."""
        carriers = self.carriers(knob)
        if len(carriers) < 2:
            return carriers[0] if carriers else None
        return next((c for c in carriers if c.given and (c.value is not None or c.stated_off)), carriers[0])

    def carriers(self, knob: str) -> list[Native]:
        """Every native key of this era that carries a knob, in the dialect's order."""
        if not self.rolls_out and knob.startswith(OF_ROLLOUTS):
            return []
        found = self.by_knob.get(knob, ())
        return [n for n in found if n.fact is not None and (n.fact.only_with is None or self.reads(n.fact))]

    @cached_property
    def by_knob(self) -> dict[str, list[Native]]:
        """Knob → the natives that carry it."""
        found: dict[str, list[Native]] = {}
        for n in self.values.values():
            fact = n.fact
            if fact is not None and (fact.knob is not None or fact.also):
                for name in {fact.knob, *fact.also} if fact.also else (fact.knob,):
                    found.setdefault(name or "", []).append(n)
        return found

    def reads(self, fact: SettingFact) -> bool:
        """Whether the backend that this launch chose reads the key at all; where that is not known, it does."""
        rule = fact.only_with
        if rule is None:
            return True
        if rule.text not in self._chosen:  # few rules, many keys that share them
            self._chosen[rule.text] = rule.holds(_Chosen(self)) is not False
        return self._chosen[rule.text]

    @cached_property
    def _chosen(self) -> dict[str, bool]:
        """Rule of `only_with` → whether it leaves the keys that have it."""
        return {}

    def knobs(self) -> list[str]:
        """Every knob that a key of this era carries, sorted."""
        return sorted(knob for knob in self.by_knob if knob)


class RunScope:
    """What a run knows, as far as it is built. `own`: names of this one expression (value, old, new)."""

    def __init__(
        self,
        natives: Natives,
        topology: Topology | None = None,
        knobs: Mapping[str, Knob] | None = None,
        model: ModelShape | None = None,
        machine: Machine | None = None,
        algorithm: str | None = None,
        own: Mapping[str, Any] | None = None,
    ) -> None:
        self.natives, self.topology, self.knobs, self.model = natives, topology, knobs or {}, model
        self.machine, self.algorithm, self.own = machine, algorithm, own or {}

    def with_own(self, **own: RuleValue | None) -> RunScope:
        """The same run with names of one expression."""
        return RunScope(
            self.natives, self.topology, self.knobs, self.model, self.machine, self.algorithm, {**self.own, **own}
        )

    def value(self, name: str) -> RuleValue | None:
        """An own name, else a setting, a variable or an option, else a count of the run, else a knob."""
        if name in self.own:
            own: RuleValue | None = self.own[name]
            return own
        native = self.natives.values.get(name)
        if native is not None:
            return _plain(native)
        if name.startswith(LauncherPrefix):
            return _number_or_text(self.natives.launcher.get(name) or None)
        if name in COUNTS:
            count: int | None = None if self.topology is None else getattr(self.topology, COUNTS[name])
            return count
        if name in self.knobs:
            return self.knobs[name].value
        return self._of_run(name)

    def given(self, name: str) -> RuleValue | None:
        """The value of a setting or variable that is no default, or of a launcher option."""
        native = self.natives.values.get(name)
        if native is None:
            return self.value(name) if name.startswith(LauncherPrefix) else None
        return _plain(native) if native.given else None

    def _of_run(self, name: str) -> RuleValue | None:
        if name == "samples":
            setting = self.natives.carrier("rollout.samples_per_prompt")
            samples = as_number(setting.value) if setting is not None else None
            return int(samples or 1)
        if name == "era":
            return self.natives.era
        if name == "program":
            return self.natives.program
        if name == "rolls_out":
            return self.natives.rolls_out
        if name == "algorithm":
            return self.algorithm or self.natives.algorithm or None
        if name.startswith(LibraryPrefix):
            return self.natives.libraries.get(name.removeprefix(LibraryPrefix))
        if name.startswith("model.") and self.model is not None:
            if name == "model.vision":
                return bool(self.model.vision_parameters)
            heads = {"model.heads": self.model.heads, "model.kv_heads": self.model.kv_heads}.get(name)
            return None if self.model.basis == "estimated" else heads
        if name == "machine.nodes" and self.machine is not None:
            return self.machine.nodes
        if name == "machine.gpus" and self.machine is not None:
            return gpus_of(self.machine) or None
        return None


class _Chosen(RunScope):
    """What chooses a backend: where neither launch nor log shows it, the framework's default does."""

    def value(self, name: str) -> RuleValue | None:
        """As of any run, but for a setting that nobody has seen its default."""
        native = self.natives.values.get(name)
        if native is None or native.fact is None or native.given or native.value is not None:
            return super().value(name)
        default = default_of(native.fact, self.natives.era)
        return None if default is None else parse_value(str(default), native.fact.type)


def gpus_of(machine: Machine) -> int:
    """GPUs of one node, 0 where they were never counted: a log names one card, not how many there are."""
    return 0 if machine.sources.get("gpus") == "log" else len(machine.usable)


def _plain(native: Native) -> RuleValue | None:
    """Of a key that the dialect does not describe, a text that is a number is meant as one."""
    return _number_or_text(native.text) if native.fact is None else native.value


def _number_or_text(text: str | None) -> RuleValue | None:
    if text is None:
        return None
    number = parse_value(text, "float")
    if isinstance(number, float):
        return int(number) if number == int(number) else number
    return parse_value(text, "str")


def in_era(fact: SettingFact, era: str) -> bool:
    """Whether the key exists in that era."""
    return not fact.eras or not era or era in fact.eras


def fact_in(fact: SettingFact, era: str) -> SettingFact | None:
    """What the key is in that era: the same name may have been another switch before; None where it did not exist."""
    if in_era(fact, era):
        return fact
    return fact.before if fact.before is not None and in_era(fact.before, era) else None


def default_of(fact: SettingFact, era: str) -> Scalar:
    """The era's default; None where the framework has none."""
    return in_this_era(fact.default, era)


def in_this_era(value: Scalar | Mapping[str, Scalar], era: str) -> Scalar:
    """A value, or the one of several that the era has; None where it has none."""
    return value.get(era, value.get("*")) if isinstance(value, Mapping) else value


def bind_natives(
    framework: Framework | None,
    era: str,
    settings: Iterable[Setting],
    environment: Mapping[str, str],
    log_settings: Mapping[str, str],
    overrides: Mapping[str, str | None],
    with_defaults: bool = True,
    program: str = "",
    launcher: Mapping[str, str] | None = None,
    tables: Tables | None = None,
    libraries: Mapping[str, str] | None = None,
    shipped: Iterable[str] = (),
    in_pieces: bool = False,
) -> Natives:
    """The table of native values. `overrides` are the plan's what-ifs: key (`$NAME` for variables) → text, None removes
    it.

    `with_defaults` False: there is no launch to look at, so what is not set is not known to be at its default.
    `shipped`: files of the framework's own that the launch names and that were not found. `in_pieces`: the launch was
    quoted in part, so the front of a key may be missing; so it is where no key is known as it stands. `tables`: shared
    by what-ifs of the same launch.
    """
    rows = partial(
        _stated, framework, era, tuple(settings), environment, log_settings, with_defaults, tuple(shipped), in_pieces
    )
    values = dict(rows() if tables is None else tables.once(("stated", era, with_defaults), rows))
    for key, override in overrides.items():
        known = values.get(key)
        setting_of = known.setting if known else None
        values[key] = _native(key, override, "user", known.fact if known else None, setting_of)
    for key in [key for key, known in values.items() if known.text is not None and known.text.startswith("${")]:
        values[key] = _followed(values[key], values)
    return Natives(framework, era, values, program, launcher or {}, libraries or {})


def _stated(
    framework: Framework | None,
    era: str,
    settings: Sequence[Setting],
    environment: Mapping[str, str],
    log_settings: Mapping[str, str],
    with_defaults: bool,
    shipped: Sequence[str],
    in_pieces: bool,
) -> dict[str, Native]:
    """The table as defaults, launch and log state it, before any what-if."""
    values = _default_rows(framework, era, with_defaults) if framework is not None else {}
    in_pieces = in_pieces or not any(native(setting.key) in values for setting in settings)
    for key, default in _of_named_config(framework, era, settings, shipped).items():
        values[key] = _native(
            key, None if default is None else str(default), "default", _fact(framework, era, key, values)
        )
    for setting in settings:
        if setting.effective:
            key = native(setting.key)
            key = _in_full(key, values) if in_pieces and key not in values else key
            text = setting.text if setting.resolved else _leader(setting)
            source: KnobSource = "environment" if setting.origin == "environment" else "script"
            values[key] = _native(key, text, source, _fact(framework, era, key, values), setting)
    for name, text in environment.items():
        key = EnvironmentPrefix + name
        known = values.get(key)
        values[key] = _native(key, text, "environment", known.fact if known else None)
    for key, text in log_settings.items():
        _fill_from_log(values, framework, era, key, text)
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


def _default_rows(framework: Framework, era: str, with_defaults: bool) -> dict[str, Native]:
    """Every key of the era at its default, or unset."""
    rows: dict[str, Native] = {}
    for table, prefix in ((framework.settings, ""), (framework.environment, EnvironmentPrefix)):
        for key, known_as in table.items():
            fact = fact_in(known_as, era)
            if fact is not None:
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


def with_defaults_of_method(natives: Natives) -> Natives:
    """The defaults that only this program, backend or method has, in place of the framework's usual ones."""
    scope = _Chosen(natives)
    own = {}
    ruled = [n for n in natives.values.values() if n.fact is not None and n.fact.default_when and not n.given]
    for native in ruled:
        key, rules = native.key, native.fact.default_when if native.fact is not None else ()
        chosen = next((rule for rule in rules if rule.when.holds(scope) is True), None)
        if chosen is not None:
            default = in_this_era(chosen.default, natives.era)
            text = None if default is None else str(default)
            own[key] = _native(key, text, "default", native.fact, native.setting)
    return replace(natives, values={**natives.values, **own}) if own else natives


def shipped_files(framework: Framework | None, missing: Iterable[str]) -> tuple[str, ...]:
    """Of the files that were not found, those that the framework's source tree has under that name."""
    patterns = [] if framework is None else [name for name in framework.config_defaults if name.endswith(".yaml")]
    return tuple(name for name in missing if any(_is_named(name, pattern) for pattern in patterns))


def _is_named(name: str, pattern: str) -> bool:
    """A file of the framework's may be named from any folder above its source tree."""
    return fnmatchcase(name, pattern) or (pattern.endswith(".yaml") and name.endswith("/" + pattern))


def _followed(known: Native, values: Mapping[str, Native], depth: int = 4) -> Native:
    """A value "${a.b}" is that of key a.b, as OmegaConf interpolates it in the framework's own config and in others."""
    text = known.text or ""
    if not (text.startswith("${") and text.endswith("}")) or depth == 0:
        return known
    leader = values.get(text[2:-1])
    if leader is None:
        return Native(known.key, None, None, known.source, known.fact, known.setting)
    leader = _followed(leader, values, depth - 1)
    return _native(known.key, leader.text, known.source, known.fact, known.setting)


def _leader(setting: Setting) -> str | None:
    """What an unresolved setting follows that no file of the user's sets: the framework's default may."""
    return f"${{{setting.follows[-1]}}}" if setting.follows else None


def _fill_from_log(values: dict[str, Native], framework: Framework | None, era: str, key: str, text: str) -> None:
    """What the run printed fills what the script leaves open; it never overrules a value the script decides."""
    known = values.get(key)
    if known is None or not known.given or known.text is None:
        values[key] = _native(key, text, "log", _fact(framework, era, key, values), known.setting if known else None)


def keys_of_knobs(framework: Framework | None, era: str, knobs: Mapping[str, str]) -> dict[str, str]:
    """What an engine printed, by knob, under the keys with which this framework's users set it as it is."""
    found: dict[str, str] = {}
    for key, known_as in framework.settings.items() if framework is not None else ():
        fact = fact_in(known_as, era)
        if fact is not None and fact.knob is not None and fact.knob in knobs and fact.to_knob is None:
            found.setdefault(fact.knob, key)
    return {key: knobs[knob] for knob, key in found.items()}


def _in_full(key: str, values: Mapping[str, Native]) -> str:
    """The one setting whose key ends in `key`, as people quote it; of several roles, the trained model's."""
    ends = [full for full, known in values.items() if full.endswith(f".{key}") and known.fact is not None]
    own = [full for full in ends if not (_knob(values[full]) or "").startswith(("critic.", "reference."))]
    return next((found[0] for found in (ends, own) if len(found) == 1), key)


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


def any_key(patterns: Iterable[str], keys: Iterable[str]) -> str | None:
    """The first key that one of the fnmatch patterns fits."""
    wanted = tuple(patterns)
    return next((key for key in keys for pattern in wanted if fnmatchcase(key, pattern)), None)
