"""Judges the keys of a launch: whose they are, which no version or era has, which are meant, which no sum counts."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import asdict, replace

from advisor.hostile import clean_line
from advisor.knowledge import load_knowledge
from advisor.knowledge.key_space import KeySpace, key_space, keys_at, keys_ever
from advisor.knowledge.schema import Framework
from advisor.language import listed, say, say_count
from advisor.regex import regex
from advisor.rules.expression import Expression
from advisor.run.natives import Natives, default_of, in_era, last_part, native
from advisor.run.run import UnknownKey
from advisor.script.launch import Launch

MOST_NAMED = 6
_ALIKE = 0.84
"""Ratio of difflib from which a key may be another one misspelt: one letter of seven."""
_OPEN = (
    *("hydra.*", "defaults", "defaults.*", "config", "config_file", "config-*", "cn", "cp", "cd"),
    *("deepspeed", "deepspeed_config"),
)
"""Keys of hydra, and options that name a config: deepspeed.add_config_arguments gives any parser its two."""
_SECTIONS = frozenset(":@")
"""What stands in a launcher's file ("deepspeed:..."), and a group of hydra's that a launch chooses."""


def unknown_keys(framework: Framework | None, era: str, launch: Launch | None, *, own: bool) -> tuple[UnknownKey, ...]:
    """Keys that are set and that no version of the framework has. `own`: what is started is a program of the
    framework's own. Where it is not, or where the framework lets everything pass, a strange key may be the user's: then
    only those are named that look like a misspelt key that moves memory."""
    if framework is None or launch is None or framework.syntax == "dataclass":
        return ()
    space = key_space(framework.framework)
    if space is None:
        return ()
    ever, everything = keys_ever(framework.framework), own and space.refuses
    candidates = (
        s for s in launch.settings if s.effective and not _SECTIONS & set(s.key) and s.marker[:1] not in ("+", "~")
    )
    strange = [s for s in candidates if not _is_known(native(s.key), framework, space, ever)]
    if not strange:
        return ()
    levers = _levers(framework, era, space)
    told = [UnknownKey(clean_line(s.key, 100), _meant(native(s.key), levers, moved=everything)) for s in strange]
    return tuple(one for one in told if one.meant or everything)


def has_key(framework: Framework, key: str, *, listed_alone: bool = False) -> bool:
    """Whether some version of the framework has a key, or hands it on (not: `listed_alone`); True where nobody listed
    its keys."""
    space = key_space(framework.framework)
    return space is None or _is_known(
        key, framework, replace(space, open=()) if listed_alone else space, keys_ever(framework.framework)
    )


def is_added(framework: Framework, era: str, key: str, unsure: bool = False) -> bool:
    """Whether hydra takes a key only as an addition (`+`): the config of the era that reads it has it not. `unsure`: of
    any that may run. What has no section may be a group of configs, which is chosen and not added."""
    space, fact = key_space(framework.framework), framework.settings.get(key)
    if space is None or "." not in key or not has_key(framework, key):
        return False
    eras = [one.id for one in framework.eras if fact is None or in_era(fact, one.id)] if unsure else [era]
    return any(key not in keys_at(framework.framework, one) for one in eras)


def longer_names(framework: Framework | None, launch: Launch, key: str, known: bool) -> tuple[str, ...]:
    """What may be meant by a key that is not set: longer names that end in it, or have it inside; none for a key of
    which the framework's dialect speaks."""
    if framework is not None and (key in framework.settings or key in framework.renamed):
        return ()
    ours = set(framework.settings) if framework is not None else set()
    if not known:
        ours |= keys_ever(framework.framework) if framework is not None else set()
        ours |= {native(one) for one in launch.effective()}
    return tuple(sorted(one for one in ours if f".{key}." in f".{one.replace(':', '.')}." and one != key)[:3])


def read_by_name(natives: Natives) -> dict[str, str]:
    """Keys of a launch that no version of its framework has → the key as which their spelling lets them be read."""
    framework = natives.framework
    found = {n.setting.key: n.key for n in natives.values.values() if n.setting is not None and n.fact is not None}
    return {
        key: meant
        for key, meant in found.items()
        if framework is not None and last_part(native(key)) != last_part(meant) and not has_key(framework, native(key))
    }


def by_name_note(read: Mapping[str, str]) -> tuple[str, ...]:
    if not read:
        return ()
    told = [say("{key} as {meant}", key=clean_line(key, 100), meant=meant) for key, meant in read.items()]
    left = len(told) - MOST_NAMED
    shown = listed([*told[:MOST_NAMED], *([say("{count} more", count=left)] if left > 0 else [])])
    return (say("Read by their names alone: {keys}.", keys=shown),)


def known_share(framework: Framework, launch: Launch) -> float | None:
    """The part of a launch's keys that some version of the framework has; None where nobody listed its keys. What
    stands in accelerate's file is accelerate's."""
    space = key_space(framework.framework)
    own = (setting.key for setting in launch.settings if not setting.key.startswith("accelerate:"))
    keys = {key for key in map(native, own) if not _matches(key, _OPEN)}
    if space is None or not keys:
        return None
    ever = keys_ever(framework.framework)
    return sum(_is_known(key, framework, space, ever) for key in keys) / len(keys)


def unknown_note(keys: Collection[UnknownKey]) -> tuple[str, ...]:
    if not keys:
        return ()
    first = sorted(keys, key=lambda one: not one.meant)[:MOST_NAMED]
    named = [say("{key} ({meant}?)", key=one.key, meant=one.meant) if one.meant else one.key for one in first]
    left = len(keys) - len(first)
    shown = listed([*named, *([say("{count} more", count=left)] if left else [])])
    return (
        say_count(
            "1 key is not known here and not counted: {keys}.",
            "{number} keys are not known here and not counted: {keys}.",
            len(keys),
            keys=shown,
        ),
    )


def _is_known(key: str, framework: Framework, space: KeySpace, ever: Collection[str]) -> bool:
    spellings = (key, key.replace("-", "_"), key.removeprefix("no_"))  # as HfArgumentParser reads them
    named = any(one in ever for one in spellings) or key in framework.settings or key in framework.renamed
    return named or _matches(key, _OPEN) or _matches(key, space.open)


def _matches(key: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in patterns)


def _levers(framework: Framework, era: str, space: KeySpace) -> list[str]:
    """Keys of the era that move memory."""
    here = keys_at(framework.framework, era)
    facts = framework.settings.items()
    moving = (key for key, fact in facts if in_era(fact, era) and (fact.knob or fact.moves))
    return [key for key in moving if key in here or _matches(key, space.open)]


def _meant(key: str, levers: Sequence[str], *, moved: bool) -> str:
    """The lever that is spelt like the key, or, where it may have `moved`, the only one of its section that has its
    last word; "" where there is none."""
    section, dot, last = key.rpartition(".")
    beside = {lever.rpartition(".")[2]: lever for lever in levers if lever.rpartition(".")[0] == section}
    for alike in difflib.get_close_matches(last, beside, 3, _ALIKE):
        if not _has_more_words(alike, last):
            return beside[alike]
    top = key.partition(".")[0]
    found = [lever for lever in levers if dot and lever.startswith(f"{top}.") and lever.endswith(f".{last}")]
    return found[0] if moved and len(found) == 1 else ""


def _has_more_words(one: str, other: str) -> bool:
    """Whether one name is the other with a word more: then it is another setting, not a slip."""
    words, others = set(re.split(r"[-_.]", one)), set(re.split(r"[-_.]", other))
    return words < others or others < words


LEAST_OWN = 2
"""Keys that no other framework reads: one alone may be anybody's option."""
LEAST_WORDS = 4
"""Words of a key that by itself tells whose it is: "log-probs-chunk-size" (judgement)."""
_JOINTS = frozenset("._-")
_JOINT = regex(r"[.-]")
"""What joins the words of a key."""
LEAST_SHARE = 0.6
"""Of all keys of a launch that nothing but its words tells; a stranger on the same Trainer shares half."""


def own_keys(launch: Launch, frameworks: Sequence[Framework]) -> dict[str, list[str]]:
    """Keys of the launch by the one package that reads them, in the order of the launch. Frameworks of one package (a
    framework and its forks) share their words. A single word (`swiglu`) is anybody's, and `key=value` is no word of a
    framework that takes options."""
    found: dict[str, list[str]] = {}
    for setting in launch.settings:
        key, bare = native(setting.key), setting.origin == "command" and not setting.key.startswith("-")
        packages = {one.package for one in frameworks if _reads(one, key) and not (bare and one.syntax == "argparse")}
        if len(packages) == 1 and set(key) & _JOINTS and key not in found.get(min(packages), ()):
            found.setdefault(packages.pop(), []).append(key)
    return found


def by_words(launch: Launch, frameworks: Sequence[Framework]) -> tuple[Framework, list[str]] | None:
    """The framework in whose words alone the launch is written, and the keys that prove it; None where none is. One
    that stops at a strange option would not have begun a launch that has one: then it is another's."""
    owned = own_keys(launch, frameworks)
    package = max(owned, key=lambda name: len(owned[name]), default="")
    keys = owned.get(package, [])
    if len(keys) < LEAST_OWN or any(len(others) == len(keys) for name, others in owned.items() if name != package):
        return None
    shares = [(known_share(one, launch) or 0.0, one) for one in frameworks if one.package == package]
    # of a package and its forks that all know these words, it is the package's own
    share, framework = max(shares, key=lambda pair: (pair[0], pair[1].framework == package))
    space = key_space(framework.framework)
    least = 1.0 if framework.syntax == "argparse" and space is not None and space.refuses else LEAST_SHARE
    return (framework, keys) if share >= least else None


def by_named_keys(words: Sequence[str], frameworks: Sequence[Framework]) -> tuple[Framework, str] | None:
    """The framework whose option or path of keys a person names, one of several words that nobody else reads; None
    where those of several are named. (What only underscores join may be a name of anybody's program.)"""
    owned: dict[str, str] = {}
    for word in words:
        if _JOINT.search(word) and len(_JOINT.split(word.replace("_", "-"))) >= LEAST_WORDS:
            packages = {one.package for one in frameworks if _reads(one, word)}
            if len(packages) == 1:
                owned.setdefault(packages.pop(), word)
    if len(owned) != 1:
        return None
    ((package, key),) = owned.items()
    framework = next((one for one in frameworks if one.framework == package), None)
    return (framework, say("named in the text: {name}", name=clean_line(key, 60))) if framework is not None else None


def outspoken(framework: Framework, launch: Launch, frameworks: Sequence[Framework]) -> bool:
    """Whether the launch has more words of another framework alone than of this one."""
    owned = own_keys(launch, frameworks)
    own = len(owned.get(framework.package, []))
    return any(len(keys) >= LEAST_OWN and len(keys) > own for keys in owned.values())


def strangers(framework: Framework, era: str, keys: Iterable[str], added: Collection[str] = ()) -> int:
    """How many of `keys` other eras have and this one has not, and of `added` this one has. `added`: keys that hydra is
    told to add; it refuses to where they exist with a value (hydra 1.3.2 _internal/config_loader_impl.py:370-374)."""
    here, ever = keys_at(framework.framework, era), keys_ever(framework.framework)
    known = {key: framework.settings.get(key) for key in added if key in here}
    refused = sum(fact is None or default_of(fact, era) is not None for fact in known.values())
    return sum(key in ever and key not in here for key in keys) + refused


def _reads(framework: Framework, key: str) -> bool:
    """Whether some version of the framework names the key, spelt like this, as its own and not a launcher's."""
    fact = framework.settings.get(key)
    if fact is not None and fact.only_in:
        return False
    return fact is not None or key in framework.renamed or key in keys_ever(framework.framework)


def uncounted(framework: Framework | None, natives: Natives) -> tuple[str, ...]:
    """Keys that the launch sets to something else than their default and that have no effect on the ledger."""
    if framework is None:
        return ()
    idle = without_effect(framework)
    found = set()
    for key in natives.values.keys() & idle:
        native = natives.values[key]
        if native.fact is None or not native.given or not natives.reads(native.fact):
            continue
        if native.value not in (None, False, 0, default_of(native.fact, natives.era)):
            found.add(key)
    return tuple(key for key in natives.values if key in found) if found else ()


_idle: dict[tuple[str, str], frozenset[str]] = {}
"""Name and source of a dialect → its settings without effect: expressions cannot be hashed."""


def without_effect(framework: Framework) -> frozenset[str]:
    """Settings that say that they move GPU memory, carry no knob that is counted, and that no expression speaks of."""
    known = (framework.framework, framework.source)
    if known not in _idle:
        spoken_of = {name.removeprefix("$") for name in _names(framework)}
        settings = {**framework.settings, **framework.environment}
        counted = {knob.id for knob in load_knowledge().knobs if knob.counted}
        moving = (one for one in settings.items() if any(what.startswith("gpu") for what in one[1].moves.values()))
        idle = (key for key, fact in moving if counted.isdisjoint((fact.knob, *fact.also)))
        _idle[known] = frozenset(key for key in idle if key not in spoken_of)
    return _idle[known]


def _names(framework: Framework) -> Iterator[str]:
    """Every setting that topology, mechanics, algorithm, or the value of another one depends on."""
    facts: list[Expression | None] = [one.when for one in framework.mechanics_when]
    if framework.topology is not None:
        stated = asdict(framework.topology)
        facts += [*stated.pop("let").values(), *(one for one in stated.values() if isinstance(one, Expression))]
        yield from framework.topology.counted_by
    for fact in framework.settings.values():
        facts += [fact.to_knob, fact.only_with, *fact.also.values(), *(one.when for one in fact.default_when)]
        yield from _referred(fact.default)
    algorithm = framework.algorithm
    facts += [*algorithm.by_settings.values(), *algorithm.narrowed.values()]
    yield from (algorithm.key,) if isinstance(algorithm.key, str) else algorithm.key
    for expression in facts:
        if isinstance(expression, Expression):
            yield from expression.names()


def _referred(default: object) -> Iterator[str]:
    """The keys of defaults like "${gradient_accumulation_steps}"."""
    for text in default.values() if isinstance(default, Mapping) else (default,):
        if isinstance(text, str) and text.startswith("${"):
            yield text[2:-1]
