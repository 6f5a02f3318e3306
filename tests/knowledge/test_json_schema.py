"""knowledge/schema/*.json: current, and true of our own files, so that an editor complains where the program does."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from advisor.knowledge.json_schema import FILES, schema_of, schema_text
from advisor.knowledge.load import knowledge_folder

FOLDER = knowledge_folder()


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_schema_files_are_those_of_the_types(name: str) -> None:
    assert (FOLDER / "schema" / f"{name}.json").read_text() == schema_text(name), (
        "write them again: python -m advisor.knowledge --write-schema knowledge/schema"
    )


@pytest.mark.parametrize("name", sorted(FILES))
def test_our_own_files_hold_to_their_schema(name: str) -> None:
    folders = {"framework": "frameworks", "case": "cases"}
    files = sorted((FOLDER / folders[name]).glob("*.yaml")) if name in folders else [FOLDER / f"{name}.yaml"]
    assert files
    validator = jsonschema.Draft202012Validator(schema_of(name))
    for file in files:
        data = yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)
        assert [error.message for error in validator.iter_errors(data)] == [], file


@pytest.mark.parametrize("file", sorted((FOLDER / "cases").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_case_tells_editors_its_schema(file: Path) -> None:
    assert file.read_text().startswith("# yaml-language-server: $schema=../schema/case.json\n")
