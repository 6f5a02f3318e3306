"""From parsed arguments to what the session is asked."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from advisor.config import read_config
from advisor.exits import Refusal
from advisor.hostile import clean_line
from advisor.language import say
from advisor.session import SessionRequest
from advisor.session_store import SavedSession, latest, load
from advisor.words import os_words


def asked_from(parsed: argparse.Namespace) -> SessionRequest:
    """The arguments as the session takes them. Raises Refusal for what is not written as it should be."""
    script = Path(parsed.script) if parsed.script else None
    logs = tuple(Path(log) for log in parsed.log)
    record = Path(parsed.record) if getattr(parsed, "record", None) else None
    if record is not None:
        logs = (*_logs_of(record), *logs)
    machines = tuple(Path(file) for file in parsed.machine)
    if parsed.demo:
        from advisor.demo import demo_files

        demo = demo_files()
        script, logs, machines = demo.script, (demo.log,), (demo.machine, *machines)
    return SessionRequest(
        script=script,
        logs=logs,
        gpus=parsed.gpus,
        nodes=parsed.nodes,
        host_ram=parsed.host_ram,
        shm=parsed.shm,
        libraries=tuple(parsed.lib),
        machine_files=machines,
        model=parsed.model,
        launch=launch_index(parsed.launch),
        margin=read_config().margin if parsed.margin is None else parsed.margin,
        answers=_answers(getattr(parsed, "answer", [])),
        accept=getattr(parsed, "accept", "recommended"),
        knowledge=tuple(Path(folder) for folder in parsed.knowledge),
        record=record,
        ray=getattr(parsed, "ray", None),
    )


def _logs_of(record: Path) -> tuple[Path, ...]:
    """The logs in a record of `watch`. Raises Refusal where it is none."""
    from advisor.commands.streams import usable
    from advisor.watch.recording import logs_in

    return usable(lambda: logs_in(record))


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


def kept_sitting(name: str) -> SavedSession:
    """The sitting kept in the file `name`, "" the last one. Raises Refusal where there is none."""
    path = Path(name) if name else latest()
    if path is None:
        raise Refusal(say("no sitting was kept yet: there is nothing to take up"))
    try:
        return load(path)
    except ValueError as error:
        raise Refusal(str(error)) from error
    except OSError as error:
        raise Refusal(f"{path}: {os_words(error)}") from error
