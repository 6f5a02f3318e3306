"""Says what a run saves, whether the same command would start again from there, and which checkpoint is whole."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from string import Formatter
from typing import Any

from msgspec import Struct, field

from advisor.hostile import clean_line
from advisor.knowledge.schema import Scalar
from advisor.knowledge.schema.facts import Resume
from advisor.language import listed, say
from advisor.rules.tree import RuleValue, as_number
from advisor.run.build import BuiltRun
from advisor.run.constraints import scope_of
from advisor.run.natives import RunScope
from advisor.run.values import parse_value

_MOST_PROGRAM = 1 << 20
"""Bytes of a program that are looked at."""
_MOST_FOUND = 10_000
"""Files of the checkpoints' folder that are looked at."""


class Checkpoint(Struct, frozen=True):
    """One that is whole."""

    path: Path
    step: int
    written: float
    """Epoch seconds."""


class Resumption(Struct, frozen=True):
    """How this run saves and starts again. `way` None: nobody has read how its framework does it."""

    way: Resume | None = None
    every: float | None = None
    """Steps (or epochs) between two checkpoints; None: none are saved that it could start from."""
    folder: Path | None = None
    """None: where they go is not known."""
    by_itself: bool = False
    """The same command starts again from the last one."""
    defaults: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def saves(self) -> bool:
        """Something is written that a run could start from."""
        return self.way is not None and self.every is not None

    def survives(self, knob: str) -> bool:
        """Whether a checkpoint can be read after this knob has changed."""
        return self.way is None or not any(fnmatchcase(knob, pattern) for pattern in self.way.fixed)

    def needed(self) -> dict[str, str]:
        """Settings without which nothing would resume, as they should be; {} where none is missing or none helps."""
        if self.way is None:
            return {}
        wanted = {} if self.saves else dict(self.way.saves)
        return {key: spelled(value) for key, value in wanted.items()}

    def settings_from(self, checkpoint: Checkpoint | None) -> dict[str, str]:
        """What a new start has to set to begin at that checkpoint; {} where it does so by itself, or none is there."""
        if self.way is None or self.by_itself:
            return {}
        places = {"checkpoint": checkpoint.path if checkpoint else "", "folder": self.folder or ""}
        texts = {key: spelled(value) for key, value in self.way.resumes.items()}
        named = any("{" in text for text in texts.values())
        return {} if named and checkpoint is None else {key: text.format(**places) for key, text in texts.items()}

    def can_resume(self) -> bool:
        """Whether a new start can begin where the last checkpoint was written."""
        return self.saves and self.way is not None and (self.by_itself or bool(self.way.resumes))


def resumption_of(built: BuiltRun, start: Path, program: Path | None = None) -> Resumption:
    """How a run saves and starts again; `start`: the folder that relative paths begin at."""
    framework = built.natives.framework
    for way in framework.resume if framework is not None else ():
        if way.eras and built.run.era not in way.eras:
            continue
        scope = _with_defaults(way, scope_of(built), built)
        if way.when is None or way.when.holds(scope) is True:
            return _resumption(way, scope, start, program)
    return Resumption()


def keys_to_resume(built: BuiltRun) -> str:
    """The settings that save and start again in this framework, as `key=value`; "" where all are set or none exist."""
    known = resumption_of(built, Path())
    if known.way is None:
        return ""
    places = {"checkpoint": "CHECKPOINT", "folder": known.folder or "FOLDER"}  # as a manual writes what is to be put in
    again = {} if known.by_itself else {k: spelled(v).format(**places) for k, v in known.way.resumes.items()}
    return _written({**known.needed(), **again})


def _with_defaults(way: Resume, scope: RunScope, built: BuiltRun) -> RunScope:
    """The run with what nobody sets of the keys that are no levers, and bare flags as what they mean."""
    own: dict[str, Any] = {}
    for key, default in way.defaults.items():
        known = built.natives.values.get(key)
        if known is None or not known.given:
            own[key] = default
        elif known.text is not None:
            own[key] = _read(known.text, default)
    return scope.with_own(**own)


def _read(text: str, default: Scalar) -> RuleValue | None:
    if isinstance(default, bool):
        return True if text == "" else parse_value(text, "bool")
    found = parse_value(text, "float")
    return found if isinstance(found, (int, float)) else parse_value(text, "str")


def _resumption(way: Resume, scope: RunScope, start: Path, program: Path | None) -> Resumption:
    every = None if way.every is None else as_number(way.every.of(scope))
    by_itself = way.by_itself is not None and way.by_itself.holds(scope) is True
    return Resumption(
        way,
        float(every) if every is not None and every > 0 else None,
        _folder(way, scope, start),
        by_itself or (bool(way.in_program) and _shown_in(program, way.in_program)),
    )


def _folder(way: Resume, scope: RunScope, start: Path) -> Path | None:
    for pattern in way.folder:
        values = {name: scope.value(name) for _, name, _, _ in Formatter().parse(pattern) if name}
        if all(value is not None for value in values.values()):
            text = pattern
            for name, value in values.items():
                text = text.replace(f"{{{name}}}", str(value))
            return None if "$" in text else start / Path(text).expanduser()
    return None


def _shown_in(program: Path | None, pattern: str) -> bool:
    if program is None or program.suffix != ".py":
        return False
    try:
        with program.open(encoding="utf-8", errors="replace") as file:
            return re.search(pattern, file.read(_MOST_PROGRAM)) is not None
    except OSError:
        return False


def spelled(value: Scalar) -> str:
    """A value as a command or a config file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- checkpoints on the disk ----------------------------------------------------------------------------------------


def last_checkpoint(resumption: Resumption, since: float = 0.0) -> Checkpoint | None:
    """The last whole one, written after `since` (epoch seconds); None where there is none, or nobody knows where."""
    way, folder = resumption.way, resumption.folder
    if way is None or folder is None:
        return None
    found = [one for pattern in way.checkpoint for one in _matching(folder, pattern) if one.written >= since]
    if way.latest:
        step = _latest(folder / way.latest, way.latest_step)
        found = [one for one in found if one.step == step]
    whole = [one for one in found if _is_whole(one.path, way.complete)]
    return max(whole, key=lambda one: (one.step, one.written), default=None)


def _matching(folder: Path, pattern: str) -> list[Checkpoint]:
    number = re.compile(re.escape(Path(pattern).name).replace(r"\{step\}", r"0*(\d+)").replace(r"\*", ".*"))
    found = []
    try:
        for count, path in enumerate(folder.glob(pattern.replace("{step}", "*"))):
            named = number.fullmatch(path.name)
            if count < _MOST_FOUND and named is not None and path.is_dir():
                found.append(Checkpoint(path, int(named[1]), path.stat().st_mtime))
    except OSError:
        return found
    return found


def _latest(file: Path, pattern: str) -> int | None:
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            found = re.search(pattern, opened.read(1 << 16))
    except OSError:
        return None
    return int(found[1]) if found else None


def _is_whole(path: Path, complete: tuple[str, ...]) -> bool:
    """It has every file that the framework writes, and holds something at all."""
    try:
        return any(path.iterdir()) and all(next(path.glob(pattern), None) is not None for pattern in complete)
    except OSError:
        return False


# --- in words -------------------------------------------------------------------------------------------------------


def cost_of_a_death(resumption: Resumption) -> str:
    """What is lost when the run dies, in one sentence: said before the first start."""
    way = resumption.way
    if way is None:
        return say("whether this run could start again from a checkpoint is not known: its framework was not read")
    if not resumption.saves:
        needed = resumption.needed()
        if not needed:
            return say("nothing would resume: {why}", why=way.says)
        return say("nothing would resume: add {settings}", settings=_written(needed))
    saves = _saves(resumption, way)
    if resumption.by_itself:
        return say("{saves}; resumes by itself", saves=saves)
    if not way.resumes:
        return say("{saves}; nothing would resume: {why}", saves=saves, why=way.says)
    return say("{saves}; a retry sets {settings}", saves=saves, settings=listed(way.resumes))


def _saves(resumption: Resumption, way: Resume) -> str:
    told = {
        "every": f"{resumption.every:g}",
        "folder": say("a folder that is not known") if resumption.folder is None else _shown(resumption.folder),
    }
    if resumption.every is not None and resumption.every < 1:  # transformers: a share of all steps
        return say("saves after each {every} of all steps to {folder}", **told)
    if way.unit == "epochs":
        return say("saves every {every} epochs to {folder}", **told)
    return say("saves every {every} steps to {folder}", **told)


def _shown(path: Path) -> str:
    return clean_line(str(path), 200)


def _written(settings: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in settings.items())
