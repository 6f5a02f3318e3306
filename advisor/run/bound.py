"""The native values in force for a launch: default < file < command line, holes filled from the log, then what-ifs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from msgspec import Struct, field

from advisor.knowledge.schema import Framework, Rule, Scalar, SettingFact
from advisor.run.run import KnobSource, KnobValue
from advisor.run.values import parse_value
from advisor.script.document import Setting

EnvironmentPrefix = "$"
"""Environment variables stand in the same table as settings, with this before the name."""


def native(key: str) -> str:
    """A setting's key as the dialects write it: without the dashes of an option or the mark of accelerate's file."""
    return key.lstrip("-").removeprefix("accelerate:")


class Native(Struct, frozen=True):
    """One native value in force. `text` None: unset; `given`: the user's files or the log set it."""

    key: str
    text: str | None
    value: KnobValue | None
    source: KnobSource
    fact: SettingFact | None = None
    setting: Setting | None = None

    @property
    def given(self) -> bool:
        """Set by somebody, not a default."""
        return self.source != "default"


class Natives(Struct, frozen=True):
    """All native values of one launch, keyed as the dialect writes them; `$NAME` for environment variables."""

    framework: Framework | None
    era: str
    values: Mapping[str, Native] = field(default_factory=dict)
    program: str = ""
    """What the launch runs; "" where that is not known."""
    by_knob: dict[str, list[Native]] = field(default_factory=dict)
    """The natives that carry each knob; filled when first asked for."""

    def value(self, key: str) -> KnobValue | None:
        """The typed value in force; None where unset."""
        found = self.values.get(key)
        return None if found is None else found.value

    def number(self, key: str) -> float | None:
        """The value as a number; None where unset or not one."""
        found = self.value(key)
        return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else None

    def given(self, key: str) -> bool:
        """Whether the user's files or the log set this key."""
        found = self.values.get(key)
        return found is not None and found.given

    def carrier(self, knob: str) -> Native | None:
        """The native key that carries a knob: one that is set if there is one, else the first the era has."""
        carriers = self.carriers(knob)
        given = [c for c in carriers if c.given and c.value is not None]
        return next(iter(given or carriers), None)

    def carriers(self, knob: str) -> list[Native]:
        """Every native key of this era that carries a knob, in the dialect's order."""
        return [n for n in self._index().get(knob, ()) if n.fact is not None and self.reads(n.fact)]

    def _index(self) -> dict[str, list[Native]]:
        if not self.by_knob:
            for n in self.values.values():
                for name in () if n.fact is None else {n.fact.knob, *n.fact.also}:
                    self.by_knob.setdefault(name or "", []).append(n)
        return self.by_knob

    def reads(self, fact: SettingFact) -> bool:
        """Whether the backend that this launch chose reads the key at all; where that is not known, it does."""
        rule = fact.only_with
        return rule is None or all(self._chosen(part) for part in rule.get("all", [rule]))

    def _chosen(self, rule: Rule) -> bool:
        """One term of `only_with`: a program, or the value of the key that chooses the backend."""
        if "key" not in rule:
            return self.runs(rule)
        chosen = self.value(str(rule["key"]))
        if chosen is None:
            return True
        return bool(chosen == rule["is"] if "is" in rule else chosen != rule["is_not"])

    def runs(self, rule: Rule) -> bool:
        """Whether the program is one of the rule's `program`, or none of its `program_not` (fnmatch)."""
        wanted, unwanted = rule.get("program", ()), rule.get("program_not", ())
        if any(fnmatchcase(self.program, pattern) for pattern in unwanted):
            return False
        return not wanted or any(fnmatchcase(self.program, pattern) for pattern in wanted)

    def knobs(self) -> list[str]:
        """Every knob that a key of this era carries, sorted."""
        return sorted(knob for knob in self._index() if knob)


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
    if isinstance(fact.default, dict):
        return fact.default.get(era, fact.default.get("*"))
    return fact.default


def bind_natives(
    framework: Framework | None,
    era: str,
    settings: Iterable[Setting],
    environment: Mapping[str, str],
    log_settings: Mapping[str, str],
    overrides: Mapping[str, str | None],
    with_defaults: bool = True,
    program: str = "",
) -> Natives:
    """The table of native values. `overrides` are the plan's what-ifs: key (`$NAME` for variables) → text, None removes
    it.

    `with_defaults` False: there is no launch to look at, so what is not set is not known to be at its default.
    """
    values = dict(_defaults(framework, era, with_defaults)) if framework is not None else {}
    settings = tuple(settings)
    for key, default in _of_named_config(framework, settings).items():
        values[key] = _native(key, str(default), "default", _fact(framework, key, values))
    for setting in settings:
        if setting.effective:
            key = native(setting.key)
            text = setting.text if setting.resolved else None
            source: KnobSource = "environment" if setting.origin == "environment" else "script"
            values[key] = _native(key, text, source, _fact(framework, key, values), setting)
    for name, text in environment.items():
        key = EnvironmentPrefix + name
        known = values.get(key)
        values[key] = _native(key, text, "environment", known.fact if known else None)
    for key, text in log_settings.items():
        _fill_from_log(values, framework, key, text)
    for key, override in overrides.items():
        known = values.get(key)
        setting_of = known.setting if known else None
        values[key] = _native(key, override, "user", known.fact if known else None, setting_of)
    for key, known in list(values.items()):
        values[key] = _followed(known, values)
    return Natives(framework, era, values, program)


_DEFAULTS: dict[tuple[int, str, bool], tuple[Framework, dict[str, Native]]] = {}
"""Tables of defaults made before; the framework is kept, so that its identity stays its own."""
_MOST_TABLES = 64


def _defaults(framework: Framework, era: str, with_defaults: bool) -> dict[str, Native]:
    """Every key of the era at its default, or unset; a search binds the same dialect hundreds of times."""
    known = (id(framework), era, with_defaults)
    if known not in _DEFAULTS:
        if len(_DEFAULTS) >= _MOST_TABLES:
            _DEFAULTS.clear()
        _DEFAULTS[known] = framework, dict(_default_rows(framework, era, with_defaults))
    return _DEFAULTS[known][1]


def _default_rows(framework: Framework, era: str, with_defaults: bool) -> Iterator[tuple[str, Native]]:
    for table, prefix in ((framework.settings, ""), (framework.environment, EnvironmentPrefix)):
        for key, known_as in table.items():
            fact = fact_in(known_as, era)
            if fact is not None:
                default = default_of(fact, era) if with_defaults else None
                text = None if default is None else str(default)
                yield prefix + key, _native(prefix + key, text, "default", fact)


def _of_named_config(framework: Framework | None, settings: Iterable[Setting]) -> dict[str, Scalar]:
    """Defaults of a configuration of the framework's own that the launch names; its file is inside the package."""
    names = [s.text for s in settings if s.effective and s.resolved and native(s.key) in ("config-name", "cn")]
    if framework is None or not names:
        return {}
    named = names[-1].removesuffix(".yaml")
    return {
        key: value
        for pattern, defaults in framework.config_defaults.items()
        if fnmatchcase(named, pattern)
        for key, value in defaults.items()
    }


def _followed(known: Native, values: Mapping[str, Native], depth: int = 4) -> Native:
    """A default "${a.b}" takes the value of key a.b, as the framework's own config interpolates it."""
    text = known.text or ""
    if known.given or not (text.startswith("${") and text.endswith("}")) or depth == 0:
        return known
    leader = values.get(text[2:-1])
    if leader is None:
        return Native(known.key, None, None, "default", known.fact)
    leader = _followed(leader, values, depth - 1)
    return _native(known.key, leader.text, "default", known.fact)


def _fill_from_log(values: dict[str, Native], framework: Framework | None, key: str, text: str) -> None:
    """What the run printed fills what the script leaves open; it never overrules a value the script decides."""
    known = values.get(key)
    if known is None or not known.given or known.text is None:
        values[key] = _native(key, text, "log", _fact(framework, key, values), known.setting if known else None)


def _fact(framework: Framework | None, key: str, values: Mapping[str, Native]) -> SettingFact | None:
    known = values.get(key)
    if known is not None and known.fact is not None:
        return known.fact
    return framework.settings.get(key) if framework is not None else None


def _native(
    key: str, text: str | None, source: KnobSource, fact: SettingFact | None, setting: Setting | None = None
) -> Native:
    kind = fact.type if fact is not None else "str"
    return Native(key, text, None if text is None else parse_value(text, kind), source, fact, setting)


def any_key(patterns: Iterable[str], keys: Iterable[str]) -> str | None:
    """The first key that one of the fnmatch patterns fits."""
    wanted = tuple(patterns)
    return next((key for key in keys for pattern in wanted if fnmatchcase(key, pattern)), None)
