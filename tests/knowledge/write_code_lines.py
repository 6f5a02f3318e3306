"""Writes knowledge/lines/FOLDER.json: on which lines the functions of a package's releases stand.

    python -m tests.knowledge.write_code_lines FOLDER SOURCE

By hand, after a release. FOLDER is the package's import folder; tests/knowledge/code_lines.yaml says which files are
read, and whether SOURCE is a bare mirror with tags or a folder with one for each version, as unzip leaves a wheel.
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
from msgspec import Struct, convert
from packaging.version import Version

from advisor.folders import knowledge_folder
from advisor.knowledge.code_lines import CodeLines
from tests.knowledge.upstream import Mirror


class Plan(Struct, frozen=True):
    """What code_lines.yaml says of a package."""

    package: str
    oldest: str
    files: tuple[str, ...]
    root: str = ""
    tags: str = ""

    def wants(self, name: str) -> bool:
        """Whether a file is read, by its path from the import folder on."""
        return any(fnmatch(name, pattern) for pattern in self.files)


def releases_in(source: Path, plan: Plan) -> Iterator[tuple[str, dict[str, str]]]:
    """Version and files (by path from the import folder) of each release, oldest first."""
    mirror, pattern = Mirror(str(source)), re.compile(plan.tags)
    if not plan.tags:
        every = {Version(folder.name): str(folder) for folder in source.iterdir() if folder.is_dir()}
    else:
        tags = (mirror.git("tag") or "").split()
        every = {Version(found[1]): tag for tag in tags if (found := pattern.fullmatch(tag))}
    for version, where in sorted(every.items()):
        if version < Version(plan.oldest):
            continue
        if plan.tags:
            names = (mirror.git("ls-tree", "-r", "--name-only", where) or "").splitlines()
            texts = {
                name: mirror.git("show", f"{where}:{name}") or "" for name in names if plan.wants(_short(name, plan))
            }
        else:
            files = {str(file.relative_to(where)): file for file in sorted(Path(where).rglob("*.py"))}
            texts = {name: file.read_text("utf-8", "replace") for name, file in files.items() if plan.wants(name)}
        yield str(version), {_short(name, plan): text for name, text in texts.items()}


def _short(name: str, plan: Plan) -> str:
    return name.removeprefix(plan.root)


def functions_of(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, first and last line of every function; nothing where it is no Python of this version."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno, node.end_lineno or node.lineno


def code_lines(source: Path, plan: Plan) -> CodeLines:
    """The file's content."""
    releases: list[str] = []
    found: dict[str, dict[str, list[list[int]]]] = {}
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
    told = f"tags of {source.parent.name.replace('+', '/')}" if plan.tags else "packages of the index"
    return CodeLines(plan.package, told, tuple(releases), dict(sorted(found.items())))


def main() -> None:
    """Write the file of one package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("source", type=Path)
    parsed = parser.parse_args()
    plans = yaml.safe_load(Path(__file__).with_name("code_lines.yaml").read_text())
    written = code_lines(parsed.source, convert(plans[parsed.folder], Plan))
    head = {"package": written.package, "source": written.source, "releases": written.releases}
    rows = (
        f" {json.dumps(file)}: {json.dumps(known, separators=(',', ':'))}" for file, known in written.functions.items()
    )
    target = knowledge_folder() / "lines" / f"{parsed.folder}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(f'{json.dumps(head)[:-1]},\n "functions": {{\n' + ",\n".join(rows) + "\n}}\n", "utf-8")
    print(f"{target.name}: {len(written.releases)} releases, {sum(map(len, written.functions.values()))} functions")


if __name__ == "__main__":
    main()
