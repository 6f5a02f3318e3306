"""Resolves OmegaConf's `${key}` in the settings of a launch: such a value follows another setting.

Source: omegaconf@v2.3.0 grammar (`${a.b}` from the root, `${.b}` from the same table, a dot more for each table above).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from advisor.hostile import clean_line
from advisor.language import say
from advisor.regex import regex
from advisor.script.document import Setting

_REFERENCE = regex(r"\$\{([^${}]*)\}")
_NAME = regex(r"\.*[\w\-]+(?:\.[\w\-]+|\[\d+\])*\Z")
_VARIABLE = regex(r"(?:oc\.)?env:\s*(\w+)\s*(?:,(.*))?\Z")
_DEEPEST = 10


class _Unknown(Exception):  # noqa: N818 - it is an answer: what the value depends on
    pass


def interpolated(settings: Sequence[Setting], environment: Mapping[str, str]) -> list[Setting]:
    """The settings with each `${…}` replaced by what it stands for, as far as the launch tells.

    Options (`--key`) take their text as it is, and so does what has none of it.
    """
    values = {_root(one.key): one for one in settings if one.effective}
    return [_resolved(one, values, environment) for one in settings]


def _root(key: str) -> str:
    return key.lstrip("+")


def _resolved(setting: Setting, values: Mapping[str, Setting], environment: Mapping[str, str]) -> Setting:
    if setting.key.startswith("-") or not isinstance(setting.value, str) or "${" not in setting.value:
        return setting
    seen: list[str] = []
    try:
        text = _text(setting, values, environment, seen, 0)
    except _Unknown as unknown:
        alone = len(seen) == 1 and _REFERENCE.fullmatch(setting.value) is not None
        follows = tuple(seen) if alone else ()
        return replace(setting, value=None, resolved=False, reason=str(unknown), follows=follows)
    return replace(setting, value=text, follows=tuple(dict.fromkeys(seen)))


def _text(
    setting: Setting, values: Mapping[str, Setting], environment: Mapping[str, str], seen: list[str], depth: int
) -> str:
    """The text of a setting. Adds the keys that it takes values from to `seen`. Raises _Unknown."""
    if not isinstance(setting.value, str) or setting.key.startswith("-") or "${" not in setting.value:
        if setting.value is None:
            raise _Unknown(setting.reason)
        return setting.text
    text = setting.value
    for _ in range(_DEEPEST):
        found = _REFERENCE.search(text)
        if found is None:
            return text
        name = found.group(1).strip()
        text = text[: found.start()] + _reference(setting, name, values, environment, seen, depth) + text[found.end() :]
    raise _Unknown(say("{value} refers to itself", value=clean_line(setting.value, 80)))


def _reference(
    setting: Setting,
    name: str,
    values: Mapping[str, Setting],
    environment: Mapping[str, str],
    seen: list[str],
    depth: int,
) -> str:
    variable = _VARIABLE.match(name)
    if variable is not None:
        given = environment.get(variable.group(1), variable.group(2))
        if given is None:
            raise _Unknown(say("${name} is not set in the script", name=variable.group(1)))
        return given.strip().strip("'\"")
    if not _NAME.match(name):
        raise _Unknown(say("{value} is known only when it runs", value=clean_line(f"${{{name}}}", 80)))
    key = _absolute(_root(setting.key), name)
    seen.append(key)
    leader = values.get(key)
    if leader is None:
        raise _Unknown(say("it follows {key}, which nothing here sets", key=clean_line(key, 80)))
    if depth > _DEEPEST:
        raise _Unknown(say("{value} refers to itself", value=clean_line(f"${{{name}}}", 80)))
    return _text(leader, values, environment, seen, depth + 1)


def _absolute(own: str, name: str) -> str:
    """The key that a reference names, seen from the key it stands at."""
    above = len(name) - len(name.lstrip("."))
    name = re.sub(r"\[(\d+)\]", r".\1", name.lstrip("."))
    parts = own.split(".")
    return ".".join([*parts[: max(len(parts) - above, 0)], name]) if above else name
