"""Tells which release of each package a traceback is of: a function stands on other lines in every one."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.version import Version

from advisor.crash.evidence import Frame
from advisor.knowledge.code_lines import code_lines, known_packages

_LEAST = 2
"""Places in a package that have to agree: one alone may lie on such a line by chance, in a fork or between releases."""

_INSTALLED = ("site-packages", "dist-packages", "src")
"""Where a package lies that is its own project's; its checkout bears its name."""


def traced_versions(frames: Iterable[Frame]) -> dict[str, str]:
    """Package → version, where all of a traceback's places in it agree on one or on releases of one minor version.

    Of several such releases the newest. A place that no release has, or a function that none has in that file, as in a
    fork or between two releases, leaves its package out.
    """
    found = ((place, frame) for frame in frames if (place := _place(frame.file)) is not None)
    places: dict[str, dict[tuple[str, str, int], None]] = {}
    for (folder, file), frame in found:
        places.setdefault(folder, {})[file, frame.function, frame.line] = None
    told = {}
    for folder, within in places.items():
        lines = code_lines(folder)
        agreed = [releases for at in within if (releases := lines.of_frame(*at)) is not None]
        both = frozenset.intersection(*agreed) if len(agreed) >= _LEAST else frozenset[int]()
        versions = [lines.releases[number] for number in sorted(both)]
        if len({Version(version).release[:2] for version in versions}) == 1:
            told[lines.package] = versions[-1]
    return told


def _place(path: str) -> tuple[str, str] | None:
    """The import folder of a known package and the file from there on; None where the path lies in none, or in a tree
    of another name, as a fork's ("Search-R1/verl/…"), whose versions are its own."""
    parts = path.replace("\\", "/").split("/")
    at = next((at for at in range(len(parts) - 2, 0, -1) if parts[at] in known_packages()), None)
    if at is None or not (parts[at - 1] in _INSTALLED or parts[at] in parts[at - 1].lower()):
        return None
    return parts[at], "/".join(parts[at:])
