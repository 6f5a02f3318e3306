"""Look for releases of the frameworks that nobody read: `python -m tests.knowledge.compare_with_upstream --newest`.

Per framework: the newest version of its package (pip), the newest tag of its repository and where the repository is now
(git ls-remote, which follows a move and says so), against the dialect's newest_read. Below it the keys that are new and
speak of memory, defaults that moved since the newest era was read, keys that are gone; and what becomes of the examples
of the newest state: framework, trainer, keys not understood. It fails where something newer was not read, where a key
of the dialect is gone, where a repository moved, and where a package is ahead of every tag: then the repository
stopped (a mirror older than the reading proves no such thing).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import Version

from advisor.knowledge.key_space import key_space
from advisor.knowledge.schema import Framework
from tests.knowledge.compare_with_upstream import compare
from tests.knowledge.upstream import (
    PACKAGE,
    UNKNOWN,
    Mirror,
    Source,
    Tree,
    Upstream,
    all_keys,
    upstream_keys,
    upstream_of,
    version_of,
)
from tests.knowledge.upstream_examples import tried_examples

MEMORY = re.compile(
    r"offload|batch|token|dtype|recompute|memory|mem_|chunk|engine|strategy|cache|length|max_len|parallel|colocat|sleep"
    r"|fused|checkpointing|precision|num_generations|backend"
)
"""Words of keys that speak of memory; the rest of a release is none of ours."""
GONE = "gone"
"""Begins what is told of a key of the dialect that the newest state refuses."""
_PLAIN = re.compile(r"[A-Za-z][\w.-]*")
"""A key: no pattern, no private field, no sentence that begins like an option."""
_MOVED = re.compile(r"redirecting to https://github\.com/([^/\s]+/[^/\s]+?)(?:\.git)?/?\s*$", re.MULTILINE)
_TAG = re.compile(r"refs/tags/(v?\d[^\s^]*)$", re.MULTILINE)


@dataclass(frozen=True)
class Newest:
    """What there is upstream; None and "" where it could not be asked or does not exist."""

    package: Version | None = None
    tag: str = ""
    moved: str = ""
    copied: str = ""
    """The day of the newest commit, where a copy of the repository was asked instead of the repository."""

    @property
    def tagged(self) -> Version | None:
        return version_of(self.tag)


def report_newest(dialects: Sequence[Framework], packages: Tree, mirrors: str | None) -> int:
    """Print what is newer than what was read; 1 where anything is."""
    wrong = 0
    for dialect in dialects:
        upstream = upstream_of(dialect.framework)
        with tempfile.TemporaryDirectory() as folder:
            there = newest_of(upstream, _mirror(upstream, mirrors))
            problems = [*not_read(dialect, upstream, there)]
            print(f"{dialect.framework}: {_told(dialect, there)}: {'; '.join(problems) or 'all of it was read'}")
            mirror = _mirror(upstream, mirrors) or _cloned(upstream, there, Path(folder))
            differences = [*_differences(dialect, upstream, there, mirror, packages)]
            print("".join(f"  {line}\n" for line in differences), end="", flush=True)
            wrong += bool(problems) or any(line.startswith(GONE) for line in differences)
    return 1 if wrong else 0


def newest_of(upstream: Upstream, mirror: Mirror | None) -> Newest:
    """Asks the package index and the repository (a mirror on disk instead, where one is given)."""
    package = _newest_package(upstream.package) if upstream.package else None
    if mirror is not None:
        tags = mirror.git("for-each-ref", "--format=%(refname)", "refs/tags") or ""
        day = (mirror.git("log", "-1", "--format=%cs", "HEAD") or "").strip()
        return Newest(package, newest_tag(_TAG.findall(tags)), copied=day)
    url = f"https://github.com/{upstream.repository}"
    asked = subprocess.run(["git", "ls-remote", "--tags", url], capture_output=True, text=True, check=False)
    moved = _MOVED.search(asked.stderr)
    return Newest(package, newest_tag(_TAG.findall(asked.stdout)), moved.group(1) if moved else "")


def not_read(dialect: Framework, upstream: Upstream, there: Newest) -> Iterator[str]:
    """What is beyond newest_read, a repository that moved, and one that its package left behind."""
    read = dialect.newest_read
    known = version_of(read.version) if read is not None else None
    for what, version in (("package", there.package), ("tag", there.tagged)):
        if version is not None and (known is None or version > known):
            yield f"{what} {version} was not read (newest_read {known or 'nothing'})"
    if there.moved and there.moved.lower() != upstream.repository.lower():
        yield f"{upstream.repository} is {there.moved} now: say so in upstream_tags.yaml and in its sources"
    old = read is not None and there.copied and there.copied < read.date  # its newest tags are not in this copy
    ahead = there.package is not None and there.tagged is not None and minor(there.package) > minor(there.tagged)
    if ahead and not old:
        yield f"package {there.package} is ahead of the newest tag {there.tag}: has the repository moved?"


def newest_tag(tags: Sequence[str]) -> str:
    """The tag of the newest release; candidates and development versions do not count."""
    releases = [tag for tag in tags if (version := version_of(tag)) is not None and not version.is_prerelease]
    return max(releases, key=lambda tag: version_of(tag) or Version("0"), default="")


def minor(version: Version) -> tuple[int, int]:
    return version.major, version.minor


def _newest_package(name: str) -> Version | None:
    command = [sys.executable, "-m", "pip", "index", "versions", name]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\(([^)]+)\)", asked.stdout)
    return version_of(found.group(1)) if found else None


def _mirror(upstream: Upstream, mirrors: str | None) -> Mirror | None:
    path = Path(mirrors or "", upstream.repository.replace("/", "+"), "repo")
    return Mirror(str(path)) if mirrors and path.is_dir() else None


def _cloned(upstream: Upstream, there: Newest, folder: Path) -> Mirror | None:
    command = ["git", "clone", "--quiet", "--bare", "--depth", "1", *(["--branch", there.tag] if there.tag else [])]
    done = subprocess.run([*command, f"https://github.com/{upstream.repository}", str(folder / "repo")], check=False)
    return Mirror(str(folder / "repo")) if done.returncode == 0 else None


def _differences(
    dialect: Framework, upstream: Upstream, there: Newest, mirror: Mirror | None, packages: Tree
) -> Iterator[str]:
    """New keys and moved defaults that speak of memory, keys that are gone, and what becomes of the examples."""
    *_, (era, read) = upstream.eras.items()
    source = _source_of(there, read, mirror)
    if source is not None:
        tree: Tree = mirror or Mirror("")
        space = key_space(dialect.framework)
        known = space.ever() if space is not None else {*all_keys(read, tree, packages, dialect.package)}
        keys = sorted({*all_keys(source, tree, packages, dialect.package)} - known - set(dialect.settings))
        yield from (f"new key {key}" for key in keys if MEMORY.search(key) and _PLAIN.fullmatch(key))
        yield from (f"{GONE} {key}" for key in compare(dialect, era, source, tree, packages).missing)
        if source.tag != read.tag:
            yield from _moved_defaults(dialect, read, source, tree, packages)
    if mirror is not None:
        tag = there.tag if mirror.git("rev-parse", "--verify", there.tag or "HEAD") else "HEAD"
        yield from tried_examples(dialect, mirror, tag or "HEAD", upstream.examples)


def _moved_defaults(dialect: Framework, read: Source, source: Source, tree: Tree, packages: Tree) -> Iterator[str]:
    """Defaults of the dialect's keys, and of others that speak of memory, that are other ones than when it was read."""
    before, now = (upstream_keys(tree, packages, one, dialect.package) for one in (read, source))
    for key in sorted(before.keys() & now.keys()):
        spoken = key in dialect.settings or (MEMORY.search(key) and _PLAIN.fullmatch(key))
        if spoken and UNKNOWN not in (before[key], now[key]) and before[key] != now[key]:
            yield f"default {key}: {before[key]} when it was read, {now[key]} now"


def _source_of(there: Newest, read: Source, mirror: Mirror | None) -> Source | None:
    """Where the newest keys stand: in the package where that is what was read, else at the newest tag."""
    if read.tag.startswith(PACKAGE):
        return replace(read, tag=f"{PACKAGE}{there.package}", older=()) if there.package is not None else None
    if mirror is None:
        return None
    tagged = mirror.git("rev-parse", "--verify", "--quiet", f"refs/tags/{read.tag}")
    ahead = tagged is None or not there.tag  # a commit behind the newest tag was read
    return replace(read, tag="HEAD" if ahead else there.tag, older=())


def _told(dialect: Framework, there: Newest) -> str:
    read = dialect.newest_read
    package = f"package {there.package}" if there.package is not None else "no package"
    tag = f"tag {there.tag or 'none'}" + (f" (a copy of {there.copied})" if there.copied else "")
    return f"read {read.name if read else 'nothing'}, {package}, {tag}"
