"""Reads texts of what a command line says of run and machine, one by one: the app takes them, too."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

from msgspec.structs import replace

from advisor.arguments import fraction, row_length
from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.request import SessionRequest

Checked = TypeVar("Checked")
GivenName = Literal[
    "gpus",
    "nodes",
    "host_ram",
    "shm",
    "framework",
    "version",
    "libraries",
    "was",
    "model",
    "script",
    "launch",
    "logs",
    "max_row",
    "margin",
]
FORMS: dict[GivenName, str] = {
    "gpus": "8xA100-80GB",
    "nodes": "2",
    "host_ram": "760GB",
    "shm": "64GB",
    "framework": "verl",
    "version": "0.4.1",
    "libraries": "vllm=0.8.5 torch=2.6.0",
    "was": "trl=0.24.0",
    "model": "Qwen2.5-7B",
    "script": "run.sh",
    "launch": "1",
    "logs": "train.log worker-1.log",
    "max_row": "4096",
    "margin": "0.08",
}
"""How each is written, in the order in which they are shown."""
READ_AS: dict[GivenName, str] = dict.fromkeys(("host_ram", "shm"), mark("GB is read as GiB, as free -g shows it"))
"""What is not plain about how it is read."""
LONGEST = 4096
"""Characters of a text."""


def text_of(asked: SessionRequest, name: GivenName) -> str:
    """What was given, as it would be written; "" where nothing was."""
    texts: dict[GivenName, str] = {
        "gpus": asked.gpus or "",
        "nodes": "" if asked.nodes is None else str(asked.nodes),
        "host_ram": asked.host_ram or "",
        "shm": asked.shm or "",
        "framework": (asked.answers or {}).get("framework", ""),
        "libraries": " ".join(asked.libraries),
        "was": " ".join(asked.was),
        "model": asked.model or "",
        "script": "" if asked.script is None else str(asked.script),
        "launch": "" if asked.launch is None else str(asked.launch + 1),
        "logs": shlex.join(map(str, asked.logs)),
        "max_row": asked.max_row or "",
        "margin": f"{asked.margin:g}",
    }
    return texts.get(name, "")


def with_text(asked: SessionRequest, name: GivenName, text: str, package: str = "") -> SessionRequest:
    """The request with one thing said otherwise; "": it is not said any more. `package`: whose version "version" is.
    Raises ValueError, one sentence, for what is not written as it should be; what it names is looked for only when the
    session is opened."""
    text = clean_line(text.strip(), LONGEST)
    if name in ("libraries", "was"):
        return replace(asked, **{name: tuple(text.replace(",", " ").split())})
    if name == "version":
        if not package:
            raise ValueError(say("whose version it is, is not known: say the framework first"))
        others = tuple(one for one in asked.libraries if one.partition("=")[0] != package)
        libraries = (*others, f"{package}={text}") if text else others
        return replace(asked, libraries=libraries, answers=_without(asked, "version"))
    if name == "framework":
        rest = _without(asked, "framework", "version")
        return replace(asked, answers={**rest, "framework": text} if text else rest)
    if name == "logs":
        return replace(asked, logs=tuple(_file(one) for one in _words(text)))
    if name == "script":
        return replace(asked, script=_file(text) if text else None, launch=None)
    if name == "margin":
        return replace(asked, margin=_checked(fraction, text) if text else SessionRequest().margin)
    if name == "launch":
        number = _whole(text)
        return replace(asked, launch=None if number is None else number - 1)
    if name == "nodes":
        return replace(asked, nodes=_whole(text))
    if name == "max_row":
        return replace(asked, max_row=_checked(row_length, text) if text else None)
    return replace(asked, **{name: text or None})


def _without(asked: SessionRequest, *questions: str) -> dict[str, str]:
    """The answers without those to `questions`."""
    return {question: given for question, given in (asked.answers or {}).items() if question not in questions}


def _whole(text: str) -> int | None:
    """A number from 1 on; None where nothing is said."""
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:10]) == int(text)):
        raise ValueError(say("{text!r} is not a number from 1 on", text=clean_line(text, 40)))
    return int(text)


def _file(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.exists():
        raise ValueError(say("{file} does not exist", file=clean_line(text, 200)))
    return path


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise ValueError(say("a quote in {text!r} is not closed", text=clean_line(text, 80))) from None


def _checked(check: Callable[[str], Checked], text: str) -> Checked:
    """What a check of the command line makes of a text, its complaint in one sentence."""
    try:
        return check(text)
    except argparse.ArgumentTypeError as error:
        raise ValueError(str(error)) from error
