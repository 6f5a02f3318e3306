"""config: where the user's own choices stand, and what is in force."""

from __future__ import annotations

import argparse

from advisor.commands.streams import emit, tell
from advisor.config import TEMPLATE, read_config, told
from advisor.exits import Exit, Refusal
from advisor.language import say
from advisor.report.layout import join, table
from advisor.words import os_words


def config(parsed: argparse.Namespace) -> int:
    """Print every choice with its value and who says so; `--init` writes the commented file."""
    if parsed.init:
        _write()
    found = read_config()
    missing = say("{path} (not there yet; --init writes it)", path=found.path)
    emit(join([str(found.path) if found.path.exists() else missing, "", *table(told(found))]), parsed.ascii)
    for sentence in found.problems:
        tell(sentence)
    return Exit.UNUSABLE if found.problems else Exit.DONE


def _write() -> None:
    path = read_config().path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError:
        raise Refusal(say("{path}: it is there already and stays as it is", path=path)) from None
    except OSError as error:
        raise Refusal(f"{path}: {os_words(error)}") from error
