"""Turns parsed arguments into what a session is asked: launch scripts told from logs and folders, in whatever order."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from advisor.commands import COMMANDS
from advisor.commands.streams import tell, usable
from advisor.config import read_config
from advisor.exits import Refusal
from advisor.hostile import clean_line
from advisor.language import say
from advisor.recent import LIKE_A_LOG, LOGS, LOOKED_AT, SCRIPTS, recent_in
from advisor.regex import regex
from advisor.request import SessionRequest
from advisor.watch.recording import logs_in

_WRITTEN_BY_HAND = (*SCRIPTS, ".yaml", ".yml", ".json", ".toml", ".ipynb", ".md")
_IN_PERSON = regex(
    rb"\A\s*(?=[^\n]{0,200}(?:\bI(?:'(?:m|ve))? |\b[Ww]e(?:'(?:re|ve))? |\b[Mm]y |%s))[^\[({|+/\\#$<>!]" % "我".encode()
)
"""A page that begins in the first person: somebody tells of a run."""
_BOTH = (".md", ".ipynb")
"""Files that hold a launch and, quoted or as the output of a cell, what it printed."""
_CRASHED = regex(
    rb"Traceback \(most recent call last|\bTried to allocate \d|OutOfMemoryError|memory usage threshold of"
)


def sort_files(parsed: argparse.Namespace) -> None:
    """Give `parsed` its `script`, what else of its `files` is a log beside those of `--log`, and the `folder` of runs.

    A page or a notebook that shows a crash is the log of its own launch, where no other is given.

    A folder with launch scripts is one to choose a run from; any other holds logs. Where `--log` names the log, a file
    is one too only by its name. Once: what was chosen meanwhile stays. Raises Refusal for a second script, and for a
    word that is no file but nearly a command.
    """
    if "script" in parsed:
        return
    parsed.script, parsed.folder = None, None
    sniffs = not parsed.log
    for name in parsed.files:
        path = Path(name)
        if path.is_dir() and recent_in(path).runs:
            parsed.folder = name
        elif name == "-" or path.is_dir() or is_log(path, sniffs):
            parsed.log = [*parsed.log, name]
        elif parsed.script is None:
            _refuse_near_command(name)
            parsed.script = name
        else:
            given = {"one": clean_line(parsed.script, 80), "other": clean_line(name, 80)}
            raise Refusal(say("{one} and {other} are two launch files: give one; --log LOG names a log", **given))
    both = parsed.script is not None and not parsed.log and parsed.script.lower().endswith(_BOTH)
    if both and _holds(Path(parsed.script), _CRASHED):
        parsed.log = [parsed.script]


def is_log(path: Path, sniffs: bool = True) -> bool:
    """Whether a file is what a run printed: by its name, else, if it `sniffs`, by what stands in it."""
    name = path.name.lower()
    if name.endswith(_WRITTEN_BY_HAND):
        return False
    if any(fnmatch(name, pattern) for pattern in LOGS):
        return True
    return sniffs and (_holds(path, LIKE_A_LOG) or _holds(path, _IN_PERSON))


def _holds(path: Path, pattern: re.Pattern[bytes]) -> bool:
    """Whether the beginning of a file has it; not, where it cannot be read."""
    try:
        with path.open("rb") as file:
            return pattern.search(file.read(LOOKED_AT)) is not None
    except OSError:
        return False


def take_newest(parsed: argparse.Namespace) -> str:
    """Take the newest run of the `folder`, where nobody can choose; returns what was taken in words, "" for nothing."""
    if parsed.folder is None or parsed.script is not None or parsed.log:
        return ""
    run = recent_in(Path(parsed.folder)).runs[0]
    taken = [found.path for found in (run.script, run.log) if found is not None]
    parsed.script = str(run.script.path) if run.script else None
    parsed.log = [str(run.log.path)] if run.log else []
    names = ", ".join(clean_line(str(path), 200) for path in taken)
    return say("the newest run of {folder}: {files}", folder=clean_line(parsed.folder, 200), files=names)


def _refuse_near_command(name: str) -> None:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, 1, 0.7)
    if near and os.sep not in name and not os.path.exists(name):
        raise Refusal(say("{word} is neither a file nor a command; is {command} meant?", word=name, command=near[0]))


def asked_from(parsed: argparse.Namespace) -> SessionRequest:
    """The arguments as the session takes them. Raises Refusal for what is not written as it should be."""
    sort_files(parsed)
    script = Path(parsed.script) if parsed.script else None
    logs = tuple(Path(log) for log in parsed.log)
    record = Path(parsed.record) if getattr(parsed, "record", None) else None
    if record is not None:
        logs = (*usable(lambda: logs_in(record)), *logs)
    machines = tuple(Path(file) for file in parsed.machine)
    if parsed.demo:
        from advisor.demo import demo_files

        demo = demo_files()
        script, logs, machines = demo.script, (demo.log,), (demo.machine, *machines)
    return SessionRequest(
        script=script,
        logs=logs,
        gpus=parsed.gpus,
        nodes=_nodes(parsed.nodes),
        host_ram=parsed.host_ram,
        shm=parsed.shm,
        libraries=tuple(parsed.lib),
        was=tuple(getattr(parsed, "was", [])),
        machine_files=machines,
        model=parsed.model,
        launch=launch_index(parsed.launch),
        max_row=getattr(parsed, "max_row", None),
        margin=read_config().margin if parsed.margin is None else parsed.margin,
        answers=_answers(getattr(parsed, "answer", [])),
        accept=getattr(parsed, "accept", "recommended"),
        knowledge=tuple(Path(folder) for folder in parsed.knowledge),
        record=record,
        ray=getattr(parsed, "ray", None),
    )


def _nodes(text: str | None) -> int | None:
    """ "2", "2 nodes" → 2; a word that counts nothing ("several") leaves the number of nodes unknown, and is told."""
    counted = re.fullmatch(r"([-+]?\d{1,9})\s*(?:x\s*)?(?:nodes?)?", (text or "").strip(), re.IGNORECASE | re.ASCII)
    if text is not None and counted is None:
        tell(say("--nodes {text} is no number: the number of nodes counts as unknown", text=repr(clean_line(text, 40))))
    return int(counted[1]) if counted is not None else None


def launch_index(number: int | None) -> int | None:
    """Launches are counted from 1 outside and from 0 inside."""
    if number is not None and number < 1:
        raise Refusal(say("--launch {number}: launches are counted from 1", number=number))
    return None if number is None else number - 1


def _answers(given: Sequence[str]) -> dict[str, str]:
    answers = {}
    for text in given:
        question, _, choice = text.partition("=")
        if not question.strip() or not choice.strip():
            raise Refusal(say("--answer {given}: write it as QUESTION=ANSWER", given=clean_line(text, 80)))
        answers[question.strip()] = choice.strip()
    return answers
