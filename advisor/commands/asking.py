"""From parsed arguments to what the session is asked."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from advisor.exits import Refusal
from advisor.hostile import clean_line
from advisor.session import Asked


def asked_from(parsed: argparse.Namespace) -> Asked:
    """The arguments as the session takes them. Raises Refusal for what is not written as it should be."""
    script = Path(parsed.script) if parsed.script else None
    logs = tuple(Path(log) for log in parsed.log)
    machines = tuple(Path(file) for file in parsed.machine)
    if parsed.demo:
        from advisor.demo import demo_files

        demo = demo_files()
        script, logs, machines = demo.script, (demo.log,), (demo.machine, *machines)
    return Asked(
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
        margin=parsed.margin,
        answers=_answers(getattr(parsed, "answer", [])),
        accept=getattr(parsed, "accept", "recommended"),
        knowledge=tuple(Path(folder) for folder in parsed.knowledge),
    )


def launch_index(number: int | None) -> int | None:
    """Launches are counted from 1 outside and from 0 inside."""
    if number is not None and number < 1:
        raise Refusal(f"--launch {number}: launches are counted from 1")
    return None if number is None else number - 1


def _answers(given: Sequence[str]) -> dict[str, str]:
    answers = {}
    for text in given:
        question, _, choice = text.partition("=")
        if not question.strip() or not choice.strip():
            raise Refusal(f"--answer {clean_line(text, 80)}: write it as QUESTION=ANSWER")
        answers[question.strip()] = choice.strip()
    return answers
