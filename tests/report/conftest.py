"""The contract's JSON Schema, and golden files that `UPDATE_GOLDEN=1` writes anew."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

HERE = Path(__file__).parent
CONTRACT = json.loads((HERE.parents[1] / "docs" / "contract.schema.json").read_text())


@pytest.fixture
def validate() -> Callable[[object, str], None]:
    """validate(value, "diagnose"): fails with the path of what breaks the contract."""

    def check(value: object, name: str) -> None:
        jsonschema.Draft202012Validator({**CONTRACT, "anyOf": [{"$ref": f"#/$defs/{name}"}]}).validate(value)

    return check


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """golden("name.txt", text): equal to the file of that name."""

    def check(name: str, text: str) -> None:
        file = HERE / "golden" / name
        if os.environ.get("UPDATE_GOLDEN"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return check
