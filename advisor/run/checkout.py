"""Reads the version of a framework from the source tree around a script: many launch from the clone they installed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from advisor.hostile import clean_line
from advisor.knowledge.schema import Framework
from advisor.regex import regex
from advisor.rules.functions import release_of

_ANCESTORS = 6
"""Folders above the script in which the root of the tree is looked for; examples lie two to four deep."""
_LONGEST = 65_536
"""Bytes read of a file; those that state a version are some hundred long."""
_ASSIGNED = regex(r"^(?:__version__|version)\s*(?::\s*str\s*)?=\s*['\"]([^'\"\n]{1,64})['\"]", re.MULTILINE)
_BARE = regex(r"\s*(v?\d[\w.+-]{0,63})\s*\Z")
_PROJECT = "pyproject.toml"
_TABLE = regex(r"^\[(?:project|tool\.poetry)\][ \t]*(?:#.*)?$.*?(?=^\[|\Z)", re.MULTILINE | re.DOTALL)


def checkout_version(framework: Framework, script: Path) -> str | None:
    """What the tree that the script lies in says of the framework's version; None where it is no tree of it."""
    folder = Path(os.path.abspath(script)).parent
    for root in [folder, *folder.parents][: _ANCESTORS + 1]:
        for text in _stated(framework, root):
            found = _BARE.match(text) or _ASSIGNED.search(text)
            if found and release_of(found.group(1)) is not None:
                return clean_line(found.group(1))
    return None


def _stated(framework: Framework, root: Path) -> Iterator[str]:
    """Texts of the files that would state it."""
    own = framework.package.replace("-", "_")
    for name in framework.checkout:
        if "/" in name or (root / own).is_dir():  # a bare VERSION is anybody's
            yield _text(root / name)
    table = _TABLE.search(_text(root / _PROJECT))  # other tables state versions of what it depends on
    project = table.group() if table is not None else ""
    if re.search(rf"^name\s*=\s*['\"]{re.escape(framework.package)}['\"]", project, re.MULTILINE | re.IGNORECASE):
        yield project


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_LONGEST).decode("utf-8", "replace")
    except OSError:
        return ""
