"""Reads versions as people have them: which release one belongs to, and whether a specifier holds it."""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

_NUMBER = re.compile(r"(?:^|[^\w.])v?(\d+(?:\.\w+)*(?:-?(?:dev|rc|post|a|b)\d*)?)(?!\w)", re.IGNORECASE)


def release_of(text: str) -> Version | None:
    """The release that a version people have belongs to: 0.17.0.dev0, 0.17.0rc1, v0.17.0+cu124 and the git describe
    v0.17.0-12-gabc1234 all are 0.17.0. None where no number is in it.
    """
    found = _NUMBER.search(text.strip())
    if found is None:
        return None
    for words in (found.group(1), re.split(r"\.?[^\d.]", found.group(1))[0]):
        try:
            version = Version(words)
        except InvalidVersion:
            continue
        return Version(version.base_version if version.post is None else f"{version.base_version}.post{version.post}")
    return None


def version_in(specifier: str, version: str) -> bool:
    """Whether a version lies in a packaging specifier; a pre-release counts as the release that it leads to."""
    release = release_of(version)
    try:
        return release is not None and SpecifierSet(specifier, prereleases=True).contains(release)
    except InvalidSpecifier:
        return False
