"""Reads a config file to the byte by its kind: YAML, JSON or TOML."""

from __future__ import annotations

from advisor.script.document import Document
from advisor.script.keyed import Keyed, read_json, read_yaml


def read_keyed(document: Document) -> Keyed:
    """A YAML, JSON or TOML document to the byte. Raises ScriptError."""
    if document.kind == "toml":
        from advisor.script.toml_file import read_toml  # few launches have one

        return read_toml(document)
    return read_json(document) if document.kind == "json" else read_yaml(document)
