"""Names the native values of one launch, the knobs that they carry, and what an expression may ask of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Framework, Scalar, SettingFact
from advisor.knowledge.vocabulary import COUNTS
from advisor.machine.inventory import Machine
from advisor.regex import regex
from advisor.rules.tree import RuleValue, as_number
from advisor.run.run import Knob, KnobSource, KnobValue, ModelShape, Run, Topology
from advisor.run.values import parse_value
from advisor.script.document import Setting, without_dashes
from advisor.script.launch import Launch

LauncherPrefix = "--"
LibraryPrefix = "library."
EnvironmentPrefix = "$"
"""Environment variables stand in the same table as settings, with this before the name."""


def native(key: str) -> str:
    """A setting's key as the dialects write it: without the dashes of an option or the mark of accelerate's file. A
    dotted option in kebab case (`--trainer.model.seq-len`) has the name that it has in a file."""
    return without_dashes(key).removeprefix("accelerate:")


def last_part(key: str) -> str:
    """The name of a key without what stands before it: "actor.micro_batch_size" and "--micro-batch-size" are one."""
    return _parts(key)[-1]


def is_spelling(key: str, pattern: str) -> bool:
    """Whether the last part of a key is one of the usual spellings of a knob, or its last two: "optim.offload"."""
    *groups, last = _parts(key)
    return bool(pattern) and any(re.fullmatch(pattern, name) for name in (last, "_".join((*groups[-1:], last))))


def _parts(key: str) -> list[str]:
    plain = re.sub(r"[- ]", "_", key.lstrip("-+").lower())
    return plain.replace("microbatch", "micro_batch").split(".")


SAMPLES = "rollout.samples_per_prompt"
OF_ROLLOUTS = ("rollout.", "sync.", "weight_sync.")
"""Knobs of the rollout engine and of what feeds it."""


class Native(Struct, frozen=True, gc=False):
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
    config_alone: str = ""
    """The name of the config file that was given without the command that starts it; "" where a command was."""
    launcher: Mapping[str, str] = field(default_factory=dict)
    """Options of torchrun, accelerate and their like: "--nnodes"; "" where one is set to nothing known."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Versions of the installed libraries, as far as they are known."""
    rolls_out: bool = True
    """False: nothing is rolled out as far as is known, so what says anything of a rollout engine is idle."""
    algorithm: str = ""
    """The training method; "" while it is not read yet."""
    carried: Mapping[str, Sequence[str]] | None = None
    """What `keys_by_knob` says of these values, where somebody knows it already: it is the same for every what-if."""

    def value(self, key: str) -> KnobValue | None:
        """The typed value in force; None where unset."""
        found = self.values.get(key)
        return None if found is None else found.value

    def number(self, key: str) -> float | None:
        """The value as a number; None where unset or not one."""
        found = as_number(self.value(key))
        return None if found is None else float(found)

    def carrier(self, knob: str) -> Native | None:
        """The native key that carries a knob: one that is set, else one with a default, else the first."""
        carriers = self.carriers(knob)
        if len(carriers) < 2:
            return carriers[0] if carriers else None
        given = next((c for c in carriers if c.given and (c.value is not None or c.stated_off)), None)
        return given or next((c for c in carriers if self._means_something(c, knob)), carriers[0])

    def _means_something(self, carrier: Native, knob: str) -> bool:
        """Whether a default says anything of the knob: "use_galore: false" names no optimizer."""
        fact = carrier.fact
        if carrier.value is None or fact is None:
            return False
        rule = fact.to_knob if knob == fact.knob else fact.also[knob]
        return rule is None or rule.of(RunScope(self).with_own(value=carrier.value)) is not None

    def carriers(self, knob: str) -> Sequence[Native]:
        """Every native key of this era that carries a knob, in the dialect's order."""
        found = self._carriers.get(knob)
        if found is None:
            found = self._carriers[knob] = self._read_carriers(knob)
        return found

    def _read_carriers(self, knob: str) -> tuple[Native, ...]:
        if not self.rolls_out and knob.startswith(OF_ROLLOUTS):
            return ()
        found = [self.values[key] for key in self.keys_of(knob)]
        return tuple([n for n in found if n.fact is not None and (n.fact.only_with is None or self.reads(n.fact))])

    @cached_property
    def _carriers(self) -> dict[str, tuple[Native, ...]]:
        return {}

    @cached_property
    def _keys(self) -> Mapping[str, Sequence[str]]:
        return keys_by_knob(self.values) if self.carried is None else self.carried

    def is_idle(self, fact: SettingFact) -> bool:
        """Whether nothing that this launch starts reads the key, as that knob or as something else."""
        return not self.reads(fact) and (fact.read_with is None or fact.read_with.holds(ChosenScope(self)) is not True)

    def reads(self, fact: SettingFact) -> bool:
        """Whether the backend that this launch chose reads the key at all; where that is not known, it does."""
        rule = fact.only_with
        if rule is None:
            return True
        if rule.text not in self._chosen:  # few rules, many keys that share them
            self._chosen[rule.text] = rule.holds(ChosenScope(self)) is not False
        return self._chosen[rule.text]

    @cached_property
    def _chosen(self) -> dict[str, bool]:
        """Rule of `only_with` → whether it leaves the keys that have it."""
        return {}

    def keys_of(self, knob: str) -> Sequence[str]:
        """Every key of this era that carries a knob, whatever the backend reads."""
        return self._keys.get(knob, ())

    def knobs(self) -> list[str]:
        """Every knob that a key of this era carries, sorted."""
        return sorted(self._keys)


def keys_by_knob(values: Mapping[str, Native]) -> dict[str, list[str]]:
    """Knob → the keys whose facts say that they carry it, in the dialect's order. No value decides it."""
    found: dict[str, list[str]] = {}
    for key, n in values.items():
        fact = n.fact
        if fact is not None and (fact.knob is not None or fact.also):
            for name in {fact.knob, *fact.also} if fact.also else (fact.knob,):
                if name is not None:
                    found.setdefault(name, []).append(key)
    return found


def differing(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    """Keys of two tables that do not hold the very same thing."""
    return {key for key, one in after.items() if before.get(key) is not one} | (before.keys() - after.keys())


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
            return self._of_launcher(name)
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
            return self._of_launcher(name) if name.startswith(LauncherPrefix) else None
        return _plain(native) if native.given else None

    def _of_launcher(self, name: str) -> RuleValue | None:
        return _number_or_text(self.natives.launcher.get(name) or None)

    def _of_run(self, name: str) -> RuleValue | None:
        if name == "samples":
            setting = self.natives.carrier(SAMPLES)
            samples = as_number(setting.value) if setting is not None else None
            return int(samples or 1)
        if name in ("era", "program", "rolls_out"):
            own: str | bool = getattr(self.natives, name)
            return own
        if name == "config_alone":
            return self.natives.config_alone or None
        if name == "algorithm":
            return self.algorithm or self.natives.algorithm or None
        if name.startswith(LibraryPrefix):
            return self.natives.libraries.get(name.removeprefix(LibraryPrefix))
        if name.startswith("model.") and self.model is not None:
            if name == "model.vision":
                return bool(self.model.vision_parameters)
            table = 2 * self.model.vocab * self.model.hidden
            part = name.removeprefix("model.")
            count = table if part == "table_bytes" else getattr(self.model, part, None)
            return None if self.model.basis == "estimated" else count
        if name == "machine.nodes" and self.machine is not None:
            return self.machine.nodes
        if name == "machine.gpus" and self.machine is not None:
            return gpus_of(self.machine) or None
        return None


class ChosenScope(RunScope):
    """What chooses a backend: where neither launch nor log shows it, the framework's default does."""

    def value(self, name: str) -> RuleValue | None:
        """As of any run, but for a setting that nobody has seen its default."""
        native = self.natives.values.get(name)
        if native is None or native.fact is None or native.given or native.value is not None:
            return super().value(name)
        default = default_of(native.fact, self.natives.era)
        return None if default is None else parse_value(str(default), native.fact.type)


def gpus_of(machine: Machine) -> int:
    """GPUs of one node, 0 where only a log speaks of them: it names some, seldom how many there are."""
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


def any_key(patterns: Iterable[str], keys: Iterable[str]) -> str | None:
    """The first key that one of the fnmatch patterns fits."""
    wanted = tuple(patterns)
    return next((key for key in keys for pattern in wanted if fnmatchcase(key, pattern)), None)


LOOSE = regex(r"[\s'\"]")
"""Signs that do not count where two texts are compared."""
_BETWEEN = regex(r"[\s'\",\[\]()]+")
"""What stands around the items of a list."""


def agreement(launch: Launch, printed: Mapping[str, str]) -> int:
    """Settings that the log confirms, less those that it contradicts. `printed`: key as in the log → text."""
    values = {native(key): text for key, text in printed.items()}
    known = [s for s in launch.effective().values() if s.resolved and native(s.key) in values]
    return sum(1 if same_text(s.text, values[native(s.key)]) else -1 for s in known)


def same_text(left: str, right: str) -> bool:
    """Equal as the frameworks read them: 1e-6 is 0.000001, True is true, a list is one with commas or without."""
    a, b = (LOOSE.sub("", text).lower() for text in (left, right))
    items, others = (_BETWEEN.sub(" ", text.lower()).split() for text in (left, right))
    if a == b or items == others or {a, b} <= {"none", "null", ""}:
        return True
    try:
        return float(a) == float(b)
    except ValueError:
        return False


_BITS = "actor.quantized_bits"


class OneValue:
    """A scope in which `value` alone is known."""

    def __init__(self, known: RuleValue) -> None:
        self.known = known

    def value(self, name: str) -> RuleValue | None:
        """The value; None of any other name."""
        return self.known if name == "value" else None

    given = value


def default_bits(run: Run) -> int | None:
    """The bits of a run none of whose settings was seen: unsloth packs into 4. None where it is not packed, or not
    known."""
    found = (bits for bits in _defaults(run, _BITS) if isinstance(bits, int) and bits)
    return next(found, None)


def adapters_by_default(run: Run) -> bool:
    """Whether a run none of whose settings was seen trains adapters, unless one of them says otherwise."""
    return any(full is False for full in _defaults(run, "actor.full_finetuning"))


def _defaults(run: Run, knob: str) -> Iterator[RuleValue]:
    """What the framework's settings make of a knob at their defaults, where none was seen."""
    framework = next((one for one in load_knowledge().frameworks if one.framework == run.framework), None)
    for fact in framework.settings.values() if framework is not None and not run.settings else ():
        if fact.knob == knob and (default := default_of(fact, run.era)) is not None:
            value = default if fact.to_knob is None else fact.to_knob.of(OneValue(default))
            if value is not None:
                yield value
