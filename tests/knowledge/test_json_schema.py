"""knowledge/schema/*.json: current, and true of our own files, so that an editor complains where the program does."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import yaml

from advisor.folders import knowledge_folder
from advisor.knowledge.__main__ import FILES, schema_of, schema_text
from tests.loops import each

FOLDER = knowledge_folder()


def _files(name: str) -> list[Path]:
    folders = {"framework": "frameworks", "case": "cases"}
    return sorted((FOLDER / folders[name]).glob("*.yaml")) if name in folders else [FOLDER / f"{name}.yaml"]


@each("name", sorted(FILES))
def test_the_schema_files_are_those_of_the_types(name: str) -> None:
    assert (FOLDER / "schema" / f"{name}.json").read_text() == schema_text(name), (
        "write them again: python -m advisor.knowledge --write-schema knowledge/schema"
    )


@each("name", sorted(FILES))
def test_our_own_files_hold_to_their_schema(name: str) -> None:
    files = _files(name)
    assert files
    validator = jsonschema.Draft202012Validator(schema_of(name))
    for file in files:
        data = yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)
        assert [error.message for error in validator.iter_errors(data)] == [], file


FILES_OF = [(name, file) for name in sorted(FILES) for file in _files(name)]


@each(("name", "file"), FILES_OF, ids=[file.stem for _, file in FILES_OF])
def test_every_file_tells_editors_its_schema(name: str, file: Path) -> None:
    up = "../" if file.parent != FOLDER else ""
    assert file.read_text().startswith(f"# yaml-language-server: $schema={up}schema/{name}.json\n")
