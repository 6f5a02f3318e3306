"""Turns parsed arguments into what the session is asked, and opens it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from advisor import session
from advisor.commands.streams import usable
from advisor.config import read_config
from advisor.exits import Refusal
from advisor.hostile import clean_line
from advisor.language import say
from advisor.session import SessionRequest, State
from advisor.session_store import SavedSession, latest, load, with_switches
from advisor.watch.recording import logs_in
from advisor.words import os_words


def asked_from(parsed: argparse.Namespace) -> SessionRequest:
    """The arguments as the session takes them. Raises Refusal for what is not written as it should be."""
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


def kept_session(name: str) -> SavedSession:
    """The session kept in the file `name`, "" the last one. Raises Refusal where there is none."""
    path = Path(name) if name else latest()
    if path is None:
        raise Refusal(say("no session was kept yet: there is nothing to resume"))
    try:
        return load(path)
    except ValueError as error:
        raise Refusal(str(error)) from error
    except OSError as error:
        raise Refusal(f"{path}: {os_words(error)}") from error


def open_state(parsed: argparse.Namespace, needs_script: bool = False) -> State:
    """The session on what was given, or the app's with the answers and switches made there. Raises Refusal."""
    if getattr(parsed, "replay", None) is not None:
        kept = kept_session(parsed.replay)
        return usable(lambda: with_switches(session.open_session(kept.asked), kept.switched))
    asked = asked_from(parsed)
    if needs_script and asked.script is None:
        raise Refusal(say("give the SCRIPT that starts the run, or --demo (diagnose takes a log alone)"))
    return usable(lambda: session.open_session(asked))
