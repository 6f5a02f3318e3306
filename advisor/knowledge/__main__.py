"""Lints the knowledge files, `python -m advisor.knowledge [--knowledge DIR]…`; exit 1 where something is found."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from advisor.folders import knowledge_folder
from advisor.hostile import clean_line
from advisor.knowledge.entries import entries_of
from advisor.knowledge.lint import lint_folder
from advisor.knowledge.load import KnowledgeError, load_knowledge


def main(argv: Sequence[str] | None = None) -> int:
    """0: nothing found, 1: findings on stdout, one a line as FILE:LINE: WHAT, 2: no such folder."""
    parser = argparse.ArgumentParser(prog="python -m advisor.knowledge", description="Lint knowledge files.")
    parser.add_argument(
        "--knowledge", action="append", default=[], type=Path, metavar="DIR",
        help="a folder of your own, merged over what comes with the program; repeatable (default: ours)",
    )  # fmt: skip
    parser.add_argument("--write-schema", type=Path, metavar="DIR", help="write the JSON Schema files there and stop")
    parsed = parser.parse_args(argv)
    if parsed.write_schema is not None:
        from advisor.knowledge.json_schema import write_schemas

        return write_schemas(parsed.write_schema)
    missing = [folder for folder in parsed.knowledge if not folder.is_dir()]
    for folder in missing:
        print(f"{clean_line(str(folder))}: no such folder", file=sys.stderr)
    return 2 if missing else _lint(parsed.knowledge)


def _lint(own: Sequence[Path]) -> int:
    try:
        ours = entries_of(load_knowledge()) if own else []
    except KnowledgeError as error:
        print(clean_line(str(error)), file=sys.stderr)
        return 1
    findings = [finding for folder in own or [knowledge_folder()] for finding in lint_folder(folder, ours)]
    for finding in findings:
        print(clean_line(str(finding), 2000))
    return 1 if findings else 0


if __name__ == "__main__":
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:  # who reads has what it wants; the interpreter flushes once more on its way out
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    raise SystemExit(code)
