"""Compares a dialect with every released version of each of its eras, not with the newest alone.

    python -m tests.knowledge.compare_with_upstream --every FRAMEWORK /path/to/bare-mirror.git

An era that begins or ends a release too early shows as keys that some of its versions lack, or as keys that the dialect
denies them; a default that only its last version has, as one that differs in the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from advisor.knowledge.schema import Framework
from tests.knowledge.compare_with_upstream import compare, never_upstream
from tests.knowledge.upstream import PACKAGE, Mirror, Packages, Upstream, version_of


def report_every(dialect: Framework, upstream: Upstream, mirror: Mirror, packages: Packages) -> int:
    """Print what does not hold in all of an era's releases; 1 where anything does not."""
    wrong = 0
    for era, tags in releases(dialect, upstream, mirror, packages).items():
        said: dict[str, list[str]] = defaultdict(list)
        for tag in tags:
            source = replace(upstream.eras[era], tag=tag, older=())
            found = compare(dialect, era, source, mirror, packages)
            lines = [f"default {line}" for line in found.defaults] + [f"missing {key}" for key in found.missing]
            alone = replace(upstream, eras={era: source})
            lines += [f"denied {key}" for key, _ in never_upstream(dialect, alone, mirror, packages)]
            for line in lines:
                said[line].append(tag)
        print(f"{dialect.framework} {era}: {len(tags)} releases, {len(said)} differences", flush=True)
        for line, where in said.items():
            print(f"  {line} at {'all' if where == tags else ', '.join(where)}")
        wrong += bool(said)
    return 1 if wrong else 0


def releases(dialect: Framework, upstream: Upstream, mirror: Mirror, packages: Packages) -> Mapping[str, list[str]]:
    """Era → tags of its releases, oldest first; packages where no tag has the version."""
    tags = {version: tag for tag in (mirror.git("tag") or "").splitlines() if (version := _release(tag)) is not None}
    newest = max(tags, default=Version("0"))
    published = packages.versions(upstream.package) if upstream.package else []
    tags |= {one: f"{PACKAGE}{one}" for one in map(_release, published) if one is not None and one > newest}
    by_era: dict[str, list[str]] = defaultdict(list)
    for version, tag in sorted(tags.items()):
        by_era[_era_of(dialect, version)].append(tag)
    return {era: tags for era, tags in by_era.items() if era in upstream.eras}


def _release(tag: str) -> Version | None:
    version = version_of(tag)
    return version if version is not None and not version.is_prerelease else None


def _era_of(dialect: Framework, version: Version) -> str:
    told = [one for one in dialect.eras if one.versions and not one.told_by_keys]
    return next((one.id for one in told if version in SpecifierSet(one.versions, prereleases=True)), "")
