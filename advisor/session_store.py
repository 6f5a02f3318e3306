"""Stores sessions on disk at every step, so that a dropped connection costs nothing and one can be resumed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, ValidationError, convert, field, to_builtins
from msgspec.structs import replace

from advisor import session
from advisor.folders import state_folder
from advisor.language import say
from advisor.script.write import write_file
from advisor.session import ChosenSet, SessionRequest, State

MOST_SESSIONS = 20
"""Sessions that stay on disk; older ones make room."""
LARGEST = 1 << 20
"""Bytes of a file that are read."""
SCHEMA = 1


class SavedSession(Struct, frozen=True):
    """One session: what was asked for with the user's answers, what was switched by hand, and where the user was."""

    asked: SessionRequest
    switched: Mapping[str, bool] = field(default_factory=dict)
    """Step of the plan → on or off, in the order of the keystrokes."""
    stage: str = ""
    question: int = 0
    numbers: Mapping[str, str] = field(default_factory=dict)
    """Step of the plan → the number that the user wrote for it."""
    sets: Mapping[str, ChosenSet] = field(default_factory=dict)
    """Name → steps and numbers that the user keeps under it."""
    cursors: Mapping[str, str | None] = field(default_factory=dict)
    """Stage → what its cursor stood on."""
    folder: str = ""
    """Where the app was started; "" in sessions of earlier versions."""

    @property
    def run(self) -> str:
        """The path of its script, else of its log; "" without either."""
        return next((str(path) for path in (self.asked.script, *self.asked.logs) if path is not None), "")

    def belongs_to(self, folder: Path) -> bool:
        """Whether it was started in the folder, or its script or a log lies there."""
        files = (path for path in (self.asked.script, *self.asked.logs) if path is not None)
        places: list[Path] = [*([Path(self.folder)] if self.folder else []), *(path.parent for path in files)]
        here = os.path.realpath(folder)
        return any(os.path.realpath(place) == here for place in places)


def keep_private(name: str, text: str) -> Path:
    """Write a text under the state folder, for the user alone; returns the file. Raises OSError."""
    from advisor.script.write import write_file

    path = state_folder() / name
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_file(path, text.encode("utf-8", "replace"), force=True, mode=0o600)
    return path


def sessions_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where the sessions lie. (The folder has the name that earlier versions gave it.)"""
    return state_folder(environ) / "sittings"


def fixes_folder() -> Path:
    """Where fixes lie of which nobody has said whether they helped."""
    return state_folder() / "fixes"


def new_file() -> Path:
    """The file of a session that begins now."""
    return sessions_folder() / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.json"


def kept(environ: Mapping[str, str] | None = None) -> Iterator[tuple[Path, SavedSession]]:
    """The sessions that can be read, the one that was saved last first."""
    for path in sorted(_files(sessions_folder(environ)), key=_age_key, reverse=True):
        with suppress(OSError, ValueError):
            yield path, load(path)


def _files(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.suffix == ".json"]
    except OSError:
        return []


def _age_key(path: Path) -> tuple[float, str]:
    try:
        return path.stat().st_mtime, path.name
    except OSError:
        return 0.0, path.name


def save(path: Path, saved: SavedSession) -> None:
    """Write the session whole or not at all, readable by the user alone. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = json.dumps({"schema": SCHEMA, **to_builtins(saved, enc_hook=str)}, indent=1, ensure_ascii=True)
    write_file(path, text.encode(), force=True, mode=0o600)
    for old in sorted(_files(path.parent), key=_age_key)[:-MOST_SESSIONS]:
        with suppress(OSError):
            old.unlink()


def load(path: Path) -> SavedSession:
    """A saved session. Raises OSError where it cannot be read and ValueError, one sentence, where it is none."""
    with path.open("rb") as file:
        data = file.read(LARGEST)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError(say("{path}: this is not a kept sitting (no JSON)", path=path)) from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA or not isinstance(found.get("asked"), dict):
        raise ValueError(say("{path}: this is not a kept sitting", path=path))
    try:
        saved = convert(found, SavedSession, dec_hook=_path)
    except ValidationError as error:
        raise ValueError(say("{path}: this sitting cannot be read ({error})", path=path, error=error)) from error
    if any(str(log) == "-" for log in saved.asked.logs):
        raise ValueError(say("its log came from standard input and is gone"))
    return saved


def with_switches(state: State, switched: Mapping[str, bool], numbers: Mapping[str, str] | None = None) -> State:
    """The session with steps and numbers as they were; what the plan has or allows no more is passed over."""
    for name, text in (numbers or {}).items():
        with suppress(ValueError):
            state = session.give_number(state, name, text)
    for name, on in switched.items():
        if any(step.id == name and step.selected != on for step in state.plan.steps):
            state = session.toggle(state, name, on)
    return state


def current_request(state: State) -> SessionRequest:
    """What was asked for, paths made absolute, with the answers as they stand."""
    asked = state.asked
    return replace(
        asked,
        script=asked.script and _absolute(asked.script),
        logs=tuple(map(_absolute, asked.logs)),
        machine_files=tuple(map(_absolute, asked.machine_files)),
        knowledge=tuple(map(_absolute, asked.knowledge)),
        record=asked.record and _absolute(asked.record),
        answers=dict(state.answers),
    )


def _absolute(path: Path) -> Path:
    return path if str(path) == "-" else path.absolute()


def _path(kind: type, value: object) -> Path:
    if kind is not Path or not isinstance(value, str) or "\0" in value:
        raise TypeError("Expected a path")  # as msgspec words it
    return Path(value)
