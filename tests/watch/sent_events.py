"""Reads the events that a command was handed, each held to the contract's schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

CONTRACT = json.loads((Path(__file__).parents[2] / "docs" / "contract.schema.json").read_text("utf-8"))
EVENT = jsonschema.Draft202012Validator({**CONTRACT, "anyOf": [{"$ref": "#/$defs/event"}]})


def sent_events(file: Path) -> list[dict[str, Any]]:
    """One a line, as `tee -a` keeps them. Raises ValidationError."""
    events = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for event in events:
        EVENT.validate(event)
    return events
