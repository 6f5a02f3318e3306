"""Reads the user's own choices from one small commented file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.hostile import clean_line
from advisor.language import AUTO, LANGUAGES, listed, mark, say

PROGRAM = "rl-oom-advisor"
SWITCHES = {"yes": True, "true": True, "on": True, "1": True, "no": False, "false": False, "off": False, "0": False}
THEMES = {
    "dark": "textual-dark",
    "light": "textual-light",
    "contrast": "contrast",
    "terminal": "ansi-dark",
    **{name: name for name in ("nord", "gruvbox", "dracula", "solarized-dark", "solarized-light", "catppuccin-mocha")},
}
"""Our names of colour themes → Textual's."""
MOUSE = (AUTO, "on", "off")
LARGEST_MARGIN, QUICKEST, SLOWEST = 0.9, 0.5, 60.0
LONGEST_FILE = 1 << 16

TEMPLATE = mark("""\
# What rl-oom-advisor does where the command line does not say otherwise.
# A line that begins with # counts for nothing; remove the # to make it count.

# theme = auto        # auto, dark, light, contrast, terminal (the terminal's own 16 colours); `:` in the app shows all
# ascii = no          # yes: no signs beyond ASCII
# mouse = auto        # auto (off over SSH), on, off
# language = auto     # auto (from the locale), en, zh
# margin = 0.08       # memory to leave free, a fraction of every capacity
# refresh = 1.0       # seconds between two readings of the gauges

# Keys: key NAME = KEY. Names: why_not, answers, given, ticket, gauges, memory, record, plain, palette, help, quit;
# those of single screens stand in docs/keys.md.
# key why_not = w
# key gauges = g
# key quit = q
""")


class Config(Struct, frozen=True):
    """What is in force. `given` names what the file sets; all else is as it comes."""

    path: Path
    theme: str = AUTO
    ascii: bool = False
    mouse: str = AUTO
    language: str = AUTO
    margin: float = 0.08
    """Fraction of every capacity."""
    refresh: float = 1.0
    """Seconds."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Name of an action → its key."""
    given: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """One sentence for each line that cannot be used."""


def config_path(environ: Mapping[str, str] | None = None) -> Path:
    """Where the file lies: $XDG_CONFIG_HOME, else ~/.config."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".config") / PROGRAM / "config"


def read_config(environ: Mapping[str, str] | None = None) -> Config:
    """The choices in force. Never raises: what cannot be used is named in `problems` and left as it comes."""
    path = config_path(environ)
    try:
        text = path.read_bytes()[:LONGEST_FILE].decode("utf-8", "replace")
    except FileNotFoundError:
        return Config(path)
    except OSError as error:
        return Config(path, problems=(f"{path}: {(error.strerror or str(error)).lower()}",))
    config = Config(path)
    for number, line in enumerate(text.splitlines(), start=1):
        said = clean_line(line).partition("#")[0].strip()
        config = _with(config, said, number) if said else config
    return config


def _with(config: Config, said: str, number: int) -> Config:
    name, equals, value = (part.strip() for part in said.partition("="))
    if not equals or not value:
        return _complained(config, number, say("write it as NAME = VALUE"))
    try:
        if name.startswith("key "):
            keys = {**config.keys, name[4:].strip(): value}
            return replace(config, keys=keys, given=(*config.given, name))
        changed: dict[str, object] = {name: _reader(name)(value)}
        return replace(config, given=(*config.given, name), **changed)
    except ValueError as problem:
        return _complained(config, number, str(problem))


def _complained(config: Config, number: int, problem: str) -> Config:
    return replace(config, problems=(*config.problems, f"{config.path}:{number}: {problem}"))


def _reader(name: str) -> Callable[[str], object]:
    if name not in _READERS:
        raise ValueError(
            say("there is no {name}; there are {names}, and key NAME", name=repr(name), names=listed(_READERS))
        )
    return _READERS[name]


def _one_of(allowed: tuple[str, ...]) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value.lower() not in allowed:
            raise ValueError(say("{value} is none of {names}", value=repr(value), names=listed(allowed)))
        return value.lower()

    return read


def _switch(value: str) -> bool:
    if value.lower() not in SWITCHES:
        raise ValueError(say("{value} is neither yes nor no", value=repr(value)))
    return SWITCHES[value.lower()]


def _between(least: float, most: float) -> Callable[[str], float]:
    def read(value: str) -> float:
        try:
            number = float(value)
        except ValueError:
            raise ValueError(say("{value} is not a number", value=repr(value))) from None
        if not least <= number <= most:
            raise ValueError(say("{value} is not between {least:g} and {most:g}", value=value, least=least, most=most))
        return number

    return read


_READERS: dict[str, Callable[[str], object]] = {
    "theme": _one_of((AUTO, *THEMES)),
    "ascii": _switch,
    "mouse": _one_of(MOUSE),
    "language": _one_of((AUTO, *LANGUAGES)),
    "margin": _between(0, LARGEST_MARGIN),
    "refresh": _between(QUICKEST, SLOWEST),
}


def choices_in_force(config: Config) -> list[tuple[str, str, str]]:
    """(name, value, who says so) of everything that can be chosen."""
    values: list[tuple[str, str]] = [
        ("theme", config.theme),
        ("ascii", "yes" if config.ascii else "no"),
        ("mouse", config.mouse),
        ("language", config.language),
        ("margin", f"{config.margin:g}"),
        ("refresh", f"{config.refresh:g}"),
        *((f"key {name}", key) for name, key in config.keys.items()),
    ]
    return [(name, value, say("the file") if name in config.given else say("as it comes")) for name, value in values]
