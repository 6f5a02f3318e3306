"""Knows on which lines the functions of a package's releases stand, so that a traceback tells its versions."""

from __future__ import annotations

from functools import cache, lru_cache

import msgspec
from msgspec import Struct

from advisor.folders import knowledge_folder


class CodeLines(Struct, frozen=True):
    """Where the functions of a package stand, release by release. Made by `tests.knowledge.write_code_lines`."""

    package: str
    """Its name in the package index."""
    source: str
    releases: tuple[str, ...]
    """Oldest first."""
    functions: dict[str, dict[str, list[list[int]]]]
    """File below the import folder ("trl/trainer/utils.py") → function → [first release, last release, first line,
    last line], once for each stretch of releases and each function of that name. Releases by their place above."""

    def of_file(self, file: str) -> frozenset[str]:
        """The releases that have a file; none of a file that was not read."""
        stretches = [one for each in self.functions.get(file, {}).values() for one in each]
        return frozenset(self.releases[number] for one in stretches for number in range(one[0], one[1] + 1))

    def of_frame(self, file: str, function: str, line: int) -> frozenset[int] | None:
        """The releases in which a line of a file is one of a function, none where the file has no such function; None
        of a file that was not read, and of what is no function ("<module>", "<listcomp>")."""
        if file not in self.functions or function.startswith("<"):
            return None
        stretches = self.functions[file].get(function, [])
        return frozenset(
            release
            for first, last, start, end in stretches
            if start <= line <= end
            for release in range(first, last + 1)
        )


@cache
def known_packages() -> frozenset[str]:
    """The import folders of the packages whose lines are known."""
    return frozenset(file.stem for file in (knowledge_folder() / "lines").glob("*.json"))


@lru_cache(maxsize=16)
def code_lines(folder: str) -> CodeLines:
    """The lines of a package, by its import folder. Raises OSError where they are not known."""
    return msgspec.json.decode((knowledge_folder() / "lines" / f"{folder}.json").read_bytes(), type=CodeLines)


_INSTALLED = ("site-packages", "dist-packages", "src")
"""Where a package lies that is its own project's; its checkout bears its name."""


def place_in_package(path: str) -> tuple[str, str] | None:
    """The import folder of a known package and the file from there on; None where the path lies in none, or in a tree
    of another name, as a fork's ("Search-R1/verl/…"), whose versions are its own."""
    parts = path.replace("\\", "/").split("/")
    at = next((at for at in range(len(parts) - 2, 0, -1) if parts[at] in known_packages()), None)
    if at is None or not (parts[at - 1] in _INSTALLED or parts[at] in parts[at - 1].lower()):
        return None
    return parts[at], "/".join(parts[at:])
