"""Writes knowledge/lines/FOLDER.json: on which lines the functions of a package's releases stand. By hand, after a release.

    python -m tests.knowledge.write_code_lines FOLDER /path/to/bare-mirror.git
    python -m tests.knowledge.write_code_lines FOLDER /path/to/unpacked      (a folder for each version, as unzip leaves it)

FOLDER is the package's import folder; tests/knowledge/code_lines.yaml says which files are read.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import warnings
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import yaml
from packaging.version import Version

from advisor.folders import knowledge_folder
from tests.knowledge.upstream import Mirror

Stretch = list[int]
"""First release, last release, first line, last line."""


def releases_in(source: Path, plan: dict[str, object]) -> Iterator[tuple[str, dict[str, str]]]:
    """Version and files (by path from the import folder) of each release, oldest first."""
    root, patterns, oldest = str(plan.get("root", "")), list(plan["files"]), Version(str(plan["oldest"]))  # type: ignore[call-overload]
    if "tags" not in plan:
        folders = {Version(folder.name): folder for folder in source.iterdir() if folder.is_dir()}
        for version, folder in sorted(folders.items()):
            files = {str(file.relative_to(folder)): file for file in sorted(folder.rglob("*.py"))}
            wanted = {name: file.read_text("utf-8", "replace") for name, file in files.items() if _wanted(name, patterns)}
            if version >= oldest:
                yield str(version), wanted
        return
    mirror, pattern = Mirror(str(source)), re.compile(str(plan["tags"]))
    tags = {Version(found[1]): tag for tag in (mirror.git("tag") or "").split() if (found := pattern.fullmatch(tag))}
    for version, tag in sorted(tags.items()):
        if version >= oldest:
            names = (mirror.git("ls-tree", "-r", "--name-only", tag) or "").splitlines()
            wanted = [name for name in names if _wanted(name.removeprefix(root), patterns)]
            yield str(version), {name.removeprefix(root): mirror.git("show", f"{tag}:{name}") or "" for name in wanted}


def _wanted(name: str, patterns: list[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def functions_of(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, first and last line of every function; nothing where it is no Python of this version."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno, node.end_lineno or node.lineno


def code_lines(folder: str, source: Path) -> dict[str, object]:
    """The file's content."""
    plan = yaml.safe_load((Path(__file__).with_name("code_lines.yaml")).read_text())[folder]
    releases: list[str] = []
    found: dict[str, dict[str, list[Stretch]]] = {}
    for number, (version, files) in enumerate(releases_in(source, plan)):
        releases.append(version)
        for file, text in files.items():
            for name, first, last in functions_of(text):
                stretches = found.setdefault(file, {}).setdefault(name, [])
                same = next((one for one in stretches if one[1] == number - 1 and one[2:] == [first, last]), None)
                if same is not None:
                    same[1] = number
                else:
                    stretches.append([number, number, first, last])
    told = f"tags of {source.parent.name.replace('+', '/')}" if "tags" in plan else "packages of the index"
    return {"package": plan["package"], "source": told, "releases": releases, "functions": found}


def main() -> None:
    """Write the file of one package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("source", type=Path)
    parsed = parser.parse_args()
    written = code_lines(parsed.folder, parsed.source)
    functions: dict[str, dict[str, list[Stretch]]] = written.pop("functions")  # type: ignore[assignment]
    rows = [f" {json.dumps(file)}: {json.dumps(known, separators=(',', ':'))}" for file, known in sorted(functions.items())]
    head = json.dumps(written)[:-1]
    target = knowledge_folder() / "lines" / f"{parsed.folder}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(f'{head},\n "functions": {{\n' + ",\n".join(rows) + "\n}}\n", "utf-8")
    print(f"{target.name}: {len(written['releases'])} releases, {sum(map(len, functions.values()))} functions")  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
