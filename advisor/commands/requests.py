"""Turns parsed arguments into what a session is asked."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from advisor.commands.inputs import sort_files
from advisor.commands.streams import tell, usable
from advisor.config import read_config
from advisor.exits import Refusal
from advisor.hostile import clean_line
from advisor.language import say
from advisor.request import SessionRequest
from advisor.watch.recording import logs_in


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
