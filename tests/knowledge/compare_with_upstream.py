"""Compare the keys of a dialect with the framework's own source at a tag. Not a test: run by hand.

    python -m tests.knowledge.compare_with_upstream FRAMEWORK /path/to/bare-mirror.git [--verbose]
    python -m tests.knowledge.compare_with_upstream --newest [FRAMEWORK ...]

Per era it reads argument parsers and config classes with `ast`, and configuration files with yaml; nothing of the
framework is imported or run. Printed: keys of the dialect in that era that upstream has ("right") or may have ("free":
open dictionaries, options of another library), those that it has not, how many keys of upstream the dialect does not
speak of, and defaults that differ or that the dialect leaves out. `--newest`: see newest_upstream.py.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from typing import Any

from packaging.version import Version

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Framework, SettingFact
from advisor.run.natives import default_of
from tests.knowledge.upstream import (
    UNKNOWN,
    Mirror,
    Packages,
    Source,
    Tree,
    Upstream,
    all_keys,
    upstream_keys,
    upstream_of,
    version_of,
)

_OF_OTHER_FILES = ("deepspeed:*",)
"""Keys of a file that a launch names, which is another library's."""


@dataclass
class Found:
    """What one era's comparison gave."""

    right: list[str] = field(default_factory=list)
    free: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    defaults: list[str] = field(default_factory=list)
    """Keys whose default differs from upstream's, in words."""
    omitted: list[str] = field(default_factory=list)
    """Keys for which upstream has a plain default and the dialect none."""


def compare(dialect: Framework, era: str, source: Source, mirror: Tree, packages: Tree) -> Found:
    """One era's keys against upstream's."""
    theirs = upstream_keys(mirror, packages, source, dialect.package)
    elsewhere = all_keys(source, mirror, packages, dialect.package)
    ours = [key for key, fact in dialect.settings.items() if not fact.eras or not era or era in fact.eras]
    found = Found()
    for key in ours:
        if key not in theirs and _came_later(dialect.settings[key], source.tag):
            continue
        if key in theirs:
            found.right.append(key)
            own = default_of(dialect.settings[key], era)
            if own is None and _plain(theirs[key]):
                found.omitted.append(f"{key}: {theirs[key]} upstream")
            elif theirs[key] is not UNKNOWN and not _same(own, theirs[key]):
                found.defaults.append(f"{key}: {own} here, {theirs[key]} upstream")
        else:
            free = any(fnmatch(key, pattern) for pattern in (*source.free, *_OF_OTHER_FILES))
            (found.right if key in elsewhere else found.free if free else found.missing).append(key)
    found.extra = sorted(set(theirs) - set(dialect.settings))
    return found


def _plain(value: Any) -> bool:
    """Whether a default of upstream is a value that a dialect could state."""
    known = isinstance(value, (bool, int, float)) or (isinstance(value, str) and value and "/" not in value)
    return bool(known) and not (isinstance(value, str) and value.startswith("${"))


def _came_later(fact: SettingFact, tag: str) -> bool:
    """Whether the dialect says that the key came after this release."""
    version = version_of(tag)
    return bool(fact.since) and version is not None and version < Version(fact.since)


_FOLLOWS = re.compile(r"\$\{(?:oc\.select:)?([\w.]+?)(?:,[^{}]*)?\}")
"""A default that is the value of another key."""


def _same(own: Any, theirs: Any) -> bool:
    """Equal defaults. Other interpolations and lists are left alone; None here is told as omitted."""
    if isinstance(theirs, (list, dict)) or own is None:
        return True
    if isinstance(theirs, str) and theirs.startswith("${"):
        follows = _FOLLOWS.fullmatch(theirs)
        return follows is None or _FOLLOWS.fullmatch(str(own)) is not None
    if isinstance(own, str) and own.startswith("${"):
        return True
    if theirs is None:  # demanded or derived upstream: the dialect says what its code makes of it
        return True
    try:
        return float(own) == float(theirs)
    except (TypeError, ValueError):
        return str(own).lower() == str(theirs).lower()


def never_upstream(dialect: Framework, upstream: Upstream, mirror: Tree, packages: Tree) -> list[tuple[str, str]]:
    """(key, era) where upstream has the key and the dialect says that it does not exist there. Not told: keys that are
    something else there (`elsewhere`, `before`, `renamed`), and those that upstream_tags.yaml settles.
    """
    facts = {key: fact for key, fact in dialect.settings.items() if fact.eras and not fact.elsewhere}
    open_ones = {key: fact for key, fact in facts.items() if key not in {*dialect.renamed, *upstream.settled}}
    found = []
    for era in (one.id for one in dialect.eras if one.id in upstream.eras):
        source = replace(upstream.eras[era], bases=())
        theirs = upstream_keys(mirror, packages, source, dialect.package)
        said = {key: {*fact.eras, *(fact.before.eras if fact.before else ())} for key, fact in open_ones.items()}
        found += [(key, era) for key, eras in said.items() if key in theirs and era not in eras]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the comparison; 1 where a key of the dialect does not exist upstream, or something newer was not read."""
    dialects = {dialect.framework: dialect for dialect in load_knowledge().frameworks}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "framework", nargs="*", help="a framework and its mirror; with --newest any number of frameworks"
    )
    parser.add_argument("--newest", action="store_true", help="look for releases that were not read")
    parser.add_argument("--every", action="store_true", help="compare every release of each era (every_version.py)")
    parser.add_argument("--packages", metavar="FOLDER", help="keep downloaded packages here")
    parser.add_argument("--mirrors", metavar="FOLDER", help="--newest: read OWNER+NAME/repo below it before cloning")
    parser.add_argument("--verbose", action="store_true", help="list upstream's other keys, too")
    given = parser.parse_args(arguments)
    packages = Packages(given.packages)
    if given.newest:
        from tests.knowledge.newest_upstream import report_newest

        return report_newest([dialects[name] for name in given.framework or dialects], packages, given.mirrors)
    if len(given.framework) != 2:
        parser.error("give a framework and its mirror")
    name, path = given.framework
    dialect, mirror = dialects[name], Mirror(path)
    known = {era.id for era in dialect.eras} | {""}
    upstream = upstream_of(name)
    if given.every:
        from tests.knowledge.every_version import report_every

        return report_every(dialect, upstream, mirror, packages)
    eras = {era: source for era, source in upstream.eras.items() if era in known}
    wrong = 0
    for era in sorted(known - set(eras) - {""}):
        print(f"{name} {era}: no upstream tag named in upstream_tags.yaml")
    for era, source in eras.items():
        found = compare(dialect, era, source, mirror, packages)
        wrong += len(found.missing)
        print(
            f"{name} {era or '-'} @{source.tag}: {len(found.right)} right, {len(found.free)} free, "
            f"{len(found.missing)} missing upstream, {len(found.extra)} extra upstream, "
            f"{len(found.defaults)} defaults differ, {len(found.omitted)} left out"
        )
        print("".join(f"  default {said}\n" for said in found.defaults), end="")
        print("".join(f"  missing {key}\n" for key in found.missing), end="")
        if given.verbose:
            print("".join(f"  left out {said}\n" for said in found.omitted), end="")
            print("".join(f"  extra {key}\n" for key in found.extra), end="")
    for key, era in never_upstream(dialect, upstream, mirror, packages):
        wrong += 1
        print(f"  {key} exists in {era}, and the dialect says it does not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
