"""Resolves OmegaConf's `${key}` in the settings of a launch: such a value follows another setting.

Source: omegaconf@v2.3.0 grammar (`${a.b}` from the root, `${.b}` from the same table, a dot more for each table above).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from advisor.hostile import clean_line
from advisor.language import say
from advisor.regex import regex
from advisor.script.document import Setting, effective

_REFERENCE = regex(r"\$\{([^${}]*)\}")
_NAME = regex(r"\.*[\w\-]+(?:\.[\w\-]+|\[\d+\])*\Z")
_VARIABLE = regex(r"(?:oc\.)?env:\s*(\w+)\s*(?:,(.*))?\Z")
_PRODUCT = regex(r"mul:\s*(\d{1,9})\s*,\s*(\d{1,9})\Z")
"""NeMo-RL's own resolver (NVIDIA-NeMo/RL@v0.7.0 nemo_rl/utils/config.py)."""
_DEEPEST = 10


class _Unknown(Exception):  # noqa: N818 - it is an answer: what the value depends on
    pass


def interpolated(settings: Sequence[Setting], environment: Mapping[str, str]) -> list[Setting]:
    """The settings with each `${…}` replaced by what it stands for, as far as the launch tells. Options (`--key`) take
    their text as it is, and so does what has none of it."""
    values = {_root(one.key): one for one in settings if one.effective}
    tables = [each for one in settings if _refers(one) and one.effective for each in _of_table(one, values)]
    if tables:
        whole = {one.follows[0] for one in tables}
        settings = effective([*tables, *(one for one in settings if one.key not in whole)])
        values |= {one.key: one for one in settings if one.effective}
    return [_resolved(one, values, environment) if _refers(one) else one for one in settings]


def _of_table(setting: Setting, values: Mapping[str, Setting]) -> Iterator[Setting]:
    """The settings of the table that a value stands for as a whole, where it stands: `strategy_config: ${zero3}`."""
    found = _REFERENCE.fullmatch(setting.text)
    table = _absolute(_root(setting.key), found[1].strip()) + "." if found is not None else ""
    for key, one in values.items() if _NAME.match(table[:-1]) else ():
        if key.startswith(table):
            yield replace(
                one, key=f"{_root(setting.key)}.{key.removeprefix(table)}", span=None, follows=(setting.key, key)
            )


def _root(key: str) -> str:
    return key.lstrip("+")


def _refers(setting: Setting) -> bool:
    return isinstance(setting.value, str) and "${" in setting.value and not setting.key.startswith("-")


def _resolved(setting: Setting, values: Mapping[str, Setting], environment: Mapping[str, str]) -> Setting:
    follower = _References(values, environment)
    try:
        text = follower.text(setting, 0)
    except _Unknown as unknown:
        alone = len(follower.seen) == 1 and _REFERENCE.fullmatch(setting.text) is not None
        follows = tuple(follower.seen) if alone else ()
        return replace(setting, value=None, resolved=False, reason=str(unknown), follows=follows)
    return replace(setting, value=text, follows=tuple(dict.fromkeys(follower.seen)))


class _References:
    """Follows the references of one setting; `seen` are the keys that it takes values from."""

    def __init__(self, values: Mapping[str, Setting], environment: Mapping[str, str]) -> None:
        self.values, self.environment = values, environment
        self.seen: list[str] = []

    def text(self, setting: Setting, depth: int) -> str:
        """The text of a setting. Raises _Unknown."""
        if setting.value is None:
            raise _Unknown(setting.reason)
        text = setting.text
        if not _refers(setting):
            return text
        for _ in range(_DEEPEST):
            found = _REFERENCE.search(text)
            if found is None:
                return text
            text = text[: found.start()] + self.reference(setting, found[1].strip(), depth) + text[found.end() :]
        raise _Unknown(say("{value} refers to itself", value=clean_line(setting.text, 80)))

    def reference(self, setting: Setting, name: str, depth: int) -> str:
        variable = _VARIABLE.match(name)
        if variable is not None:
            given = self.environment.get(variable.group(1), variable.group(2))
            if given is None:
                raise _Unknown(say("${name} is not set in the script", name=variable.group(1)))
            return given.strip().strip("'\"")
        if (product := _PRODUCT.match(name)) is not None:
            return str(int(product[1]) * int(product[2]))
        if not _NAME.match(name):
            raise _Unknown(say("{value} is known only when it runs", value=clean_line(f"${{{name}}}", 80)))
        key = _absolute(_root(setting.key), name)
        self.seen.append(key)
        leader = self.values.get(key)
        if leader is None:
            raise _Unknown(say("it follows {key}, which nothing here sets", key=clean_line(key, 80)))
        if depth > _DEEPEST:
            raise _Unknown(say("{value} refers to itself", value=clean_line(f"${{{name}}}", 80)))
        return self.text(leader, depth + 1)


def _absolute(own: str, name: str) -> str:
    """The key that a reference names, seen from the key it stands at."""
    above = len(name) - len(name.lstrip("."))
    name = re.sub(r"\[(\d+)\]", r".\1", name.lstrip("."))
    parts = own.split(".")
    return ".".join([*parts[: max(len(parts) - above, 0)], name]) if above else name
