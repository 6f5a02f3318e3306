"""Writes the JSON Schema files of knowledge/ from the types that read them, so that editors complete and complain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from advisor.knowledge.entries import LinesPart, TreePart
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
    made = msgspec.json.schema(FILES[name], schema_hook=json_schema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"knowledge: {name}", **made}


def schema_text(name: str) -> str:
    """What stands in knowledge/schema/NAME.json."""
    return json.dumps(schema_of(name), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def write_schemas(folder: Path) -> int:
    """Write all of them; returns the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (folder / f"{name}.json").write_text(schema_text(name), encoding="utf-8")
    return 0
