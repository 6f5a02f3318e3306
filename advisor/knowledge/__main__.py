"""Lints the knowledge files, `python -m advisor.knowledge [--knowledge DIR]…`; exit 1 where something is found.

`--write-schema` writes the JSON Schema of each from the types that read them, so that editors complete and complain.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from advisor.folders import knowledge_folder
from advisor.hostile import clean_line
from advisor.knowledge.entries import LinesPart, TreePart, entries_of
from advisor.knowledge.lint import lint_folder
from advisor.knowledge.load import KnowledgeError, load_knowledge
from advisor.knowledge.schema import LISTS, Case, Framework
from advisor.rules.expression import json_schema

FILES: dict[str, Any] = {
    "framework": Framework,
    "case": Case,
    **{name: several for name, (_, several) in LISTS.items()},
    "decision_tree": TreePart,
    "signatures": LinesPart,
}
"""Schema name → what a file of that name holds."""


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of one kind of file; field docstrings of the types are not in it."""
    made = json.dumps(msgspec.json.schema(FILES[name], schema_hook=json_schema))
    told = json.loads(made, object_hook=_or_list)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"knowledge: {name}", **told}


def _or_list(part: dict[str, Any]) -> dict[str, Any]:
    """A string that the file may give as a list of alternatives (`Worded`) is either."""
    return {**part, "type": ["string", "array"]} if part.get("type") == "string" and "items" in part else part


def schema_text(name: str) -> str:
    """What stands in knowledge/schema/NAME.json."""
    return json.dumps(schema_of(name), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def write_schemas(folder: Path) -> int:
    """Write all of them; returns the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (folder / f"{name}.json").write_text(schema_text(name), encoding="utf-8")
    return 0


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
