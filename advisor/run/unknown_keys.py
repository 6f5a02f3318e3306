"""Names the keys of a launch that no version of its framework has, and those that may be meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase

from advisor.hostile import clean_line
from advisor.knowledge.key_space import KeySpace, key_space, keys_at, keys_ever
from advisor.knowledge.schema import Framework
from advisor.language import listed, say, say_count
from advisor.run.natives import Natives, in_era, last_part, native
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
    """Keys that are set and that no version of the framework has.

    `own`: what is started is a program of the framework's own. Where it is not, or where the framework lets everything
    pass, a strange key may be the user's: then only those are named that look like a misspelt key that moves memory.
    """
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


def has_key(framework: Framework, key: str) -> bool:
    """Whether some version of the framework has a key, or hands it on; True where nobody listed its keys."""
    space = key_space(framework.framework)
    return space is None or _is_known(key, framework, space, keys_ever(framework.framework))


def longer_names(framework: Framework | None, launch: Launch, key: str) -> tuple[str, ...]:
    """What may be meant by a key that is not set: longer names that end in it, or have it inside; none for a key of
    which the framework's dialect speaks.
    """
    if framework is not None and (key in framework.settings or key in framework.renamed):
        return ()
    ours = set(framework.settings) if framework is not None else set()
    if framework is None or not has_key(framework, key):
        ours |= keys_ever(framework.framework) if framework is not None else set()
        ours |= {native(one) for one in launch.effective()}
    return tuple(sorted(one for one in ours if f".{key}." in f"{one}.")[:3])


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
    """The part of a launch's keys that some version of the framework has; None where nobody listed its keys.

    What stands in accelerate's file is accelerate's.
    """
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
    last word; "" where there is none.
    """
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
