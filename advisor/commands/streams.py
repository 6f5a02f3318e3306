"""Writes data to stdout and narration to stderr; the one place where unusable input becomes a sentence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from advisor.crash.sources import LogError
from advisor.exits import Exit, Refusal
from advisor.hostile import clean_line
from advisor.knowledge import Knowledge, KnowledgeError, open_knowledge
from advisor.language import say
from advisor.redact import redact
from advisor.report.layout import plain_ascii, spelled
from advisor.script.document import EditRefused, ScriptError
from advisor.words import os_words

T = TypeVar("T")


def emit(text: str, ascii_only: bool = False) -> None:
    """To stdout, without secrets; signs that its encoding lacks are spelled. Raises Refusal where there is no room."""
    text = redact(text)
    try:
        sys.stdout.write(plain_ascii(text) if ascii_only else spelled(text, sys.stdout.encoding or "ascii"))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritten(error) from error


def emit_file(data: bytes) -> None:
    """A whole file to stdout, byte for byte: what `-o -` asks for. Raises Refusal where there is no room."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritten(error) from error


def unwritten(error: OSError) -> Refusal:
    return Refusal(say("the output could not be written: {why}", why=os_words(error)), Exit.FAILED)


def tell(text: str) -> None:
    """One line of narration, to stderr, without secrets."""
    text = redact(text)
    print(spelled(text, sys.stderr.encoding or "ascii"), file=sys.stderr)


def usable(read: Callable[[], T]) -> T:
    """The result of `read`. Raises Refusal for what it raises on unusable input; a fault in the knowledge is ours."""
    try:
        return read()
    except KnowledgeError as error:
        raise Refusal(str(error), Exit.FAILED) from error
    except (ScriptError, LogError, EditRefused, ValueError) as error:
        raise Refusal(str(error)) from error
    except OSError as error:
        raise Refusal(unreadable(error)) from error


def unreadable(error: OSError) -> str:
    """ "run.sh: permission denied"; what was raised in words of its own keeps them."""
    if error.filename is None:
        return str(error)
    return f"{clean_line(str(error.filename), 300)}: {os_words(error)}"


def knowledge_of(parsed: argparse.Namespace) -> Knowledge:
    """Ours and what was given with --knowledge; what of that is refused is told. Raises Refusal."""
    knowledge = usable(lambda: open_knowledge([Path(folder) for folder in parsed.knowledge]))
    for sentence in knowledge.refused:
        tell(say("left out of your knowledge: {reason}", reason=sentence))
    return knowledge
