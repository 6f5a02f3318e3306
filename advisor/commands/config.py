"""Shows where the user's own choices stand and what is in force; `--init` writes the commented file."""

from __future__ import annotations

import argparse

from advisor.arguments import add_ascii
from advisor.exits import Exit, Refusal
from advisor.language import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--init", action="store_true", help=say("write the commented file if there is none"))
    add_ascii(parser)


def run(parsed: argparse.Namespace) -> int:
    """Print every choice with its value and who says so. Exit 2 where a line of the file cannot be used."""
    from advisor.commands.streams import emit, tell
    from advisor.config import choices_in_force, read_config
    from advisor.report.layout import join, table

    if parsed.init:
        _write()
    found = read_config()
    missing = say("{path} (not there yet; --init writes it)", path=found.path)
    emit(join([str(found.path) if found.path.exists() else missing, "", *table(choices_in_force(found))]), parsed.ascii)
    for sentence in found.problems:
        tell(sentence)
    return Exit.UNUSABLE if found.problems else Exit.DONE


def _write() -> None:
    from advisor.config import TEMPLATE, config_path
    from advisor.words import os_words

    path = config_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError:
        raise Refusal(say("{path}: it is there already and stays as it is", path=path)) from None
    except OSError as error:
        raise Refusal(f"{path}: {os_words(error)}") from error
