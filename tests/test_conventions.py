"""Checks the conventions that a machine can check: unique type names, goldens a person reads, no hidden tricks."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.loops import each

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "advisor").rglob("*.py"))
GOLDENS = sorted(
    path
    for pattern in ("runs/*/expected*", "**/golden/*")
    for path in (ROOT / "tests").glob(pattern)
    if path.suffix != ".svg"
)
LONGEST = 100
"""Lines of a golden: more is not read."""
DIALECT = frozenset(
    {"patience", "pourer", "keeper", "outlet", "people", "begun", "talk", "spot", "fold", "keep", "marks", "moment"}
    | {"cluster_doors", "cluster_carried", "glance", "sitting", "door", "normalise", "noops", "told"}
)
"""Names of modules that a newcomer cannot guess."""
RIDDLES = re.compile(r"\b(told|said|whoever|nobody|somebody)\b", re.IGNORECASE)
"""Words that a module's first sentence does without."""
TRICKS = ("sys.modules[", "os._exit(", "gc.disable(", "os.fork(")
"""What changes the whole process for everybody; each needs its gain in a comment beside it."""

TRICKS_ALLOWED = {
    "machine/cluster/child.py": {"os._exit("},
    "machine/cluster/probe.py": {"sys.modules["},
    "tui/app.py": {"os._exit("},
    "watch/output_relay.py": {"os._exit(", "os.fork("},
    "watch/progress.py": {"os._exit(", "os.fork("},
    "watch/pty_relay.py": {"os._exit(", "os.fork("},
    "watch/spawn.py": {"os._exit(", "os.fork("},
}

BOUNDARIES = {
    "cli.py": 1,  # the door: what is left is a fault of ours, written down for its report
    "commands/settings.py": 1,  # one of many scripts: it costs the others nothing
    "machine/amd.py": 2,  # a stranger's library, imported and called: it fails in ways of its own
    "machine/nvml.py": 1,  # likewise: on an old driver pynvml raises what is no NVMLError
    "commands/retry.py": 3,  # a watched command starts and ends as without us, whatever fails
    "commands/watch.py": 1,
    "commands/watched_run.py": 1,
    "watch/launcher.py": 2,  # likewise, as are those below
    "watch/recorder.py": 3,
    "watch/sampler.py": 2,
    "watch/supervisor.py": 1,
}
"""Modules that catch whatever is raised, and how often: nowhere else, since it would hide what it is."""


def relative(path: Path) -> str:
    return path.relative_to(ROOT / "advisor").as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def first_sentence(path: Path) -> str:
    return re.split(r"(?<=[.:;])\s", ast.get_docstring(parsed(path)) or "")[0]


def types_of(path: Path) -> Iterator[str]:
    """Classes and aliases of types that a module defines at its top, without a leading underscore."""
    for node in parsed(path).body:
        if isinstance(node, ast.ClassDef):
            yield node.name.lstrip("_")
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id.lstrip("_")
            if name[:1].isupper() and not name.isupper() and "_" not in name:
                yield name


def test_a_type_name_means_one_thing() -> None:
    places: dict[str, set[Path]] = defaultdict(set)
    for path in MODULES:
        for name in types_of(path):
            places[name].add(path)
    shared = {name: sorted(map(relative, paths)) for name, paths in places.items() if len(paths) > 1}
    assert shared == {}


@each("path", GOLDENS, ids=lambda path: path.name)
def test_a_golden_is_short_enough_to_be_read(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= LONGEST


def test_modules_have_names_of_the_field() -> None:
    assert {relative(path) for path in MODULES if path.stem in DIALECT} == set()


def test_no_module_changes_the_process_for_everybody() -> None:
    found = {relative(path): {trick for trick in TRICKS if trick in path.read_text("utf-8")} for path in MODULES}
    assert {file: tricks for file, tricks in found.items() if tricks} == TRICKS_ALLOWED


def test_every_module_says_what_it_does() -> None:
    said = {relative(path): first_sentence(path) for path in MODULES if path.read_text("utf-8").strip()}
    assert [file for file, sentence in said.items() if not sentence] == []
    assert {file for file, sentence in said.items() if RIDDLES.search(sentence)} == set()


def test_whatever_is_raised_is_caught_at_boundaries_alone() -> None:
    broad = {relative(path): path.read_text("utf-8").count("except Exception") for path in MODULES}
    assert {module: count for module, count in broad.items() if count} == BOUNDARIES
