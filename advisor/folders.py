"""Locates the program's own data, the folders of the knowledge, and reads and writes the user's cache."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

_KEPT = 3
"""Files of one kind in the cache: knowledge of other versions and languages."""


@cache
def knowledge_folder() -> Path:
    """Where the YAML lies: inside the package in a wheel, beside it in a checkout or an editable install."""
    package = Path(__file__).resolve().parent
    shipped = package / "_knowledge"
    return shipped if shipped.is_dir() else package.parent / "knowledge"


def standing_folder() -> Path | None:
    """Where the user's own knowledge lies, there or not; None where there is no home."""
    root = os.environ.get("XDG_CONFIG_HOME") or (os.path.expanduser("~/.config") if os.environ.get("HOME") else "")
    return Path(root) / "rl-oom-advisor" / "knowledge" if root else None


def own_knowledge() -> Path | None:
    """The folder of the user's own knowledge, which stands over ours; None where there is none."""
    standing = standing_folder()
    return standing if standing is not None and standing.is_dir() else None


def state_folder(environ: Mapping[str, str] | None = None) -> Path:
    """$XDG_STATE_HOME/rl-oom-advisor, else under ~/.local/state."""
    base = (os.environ if environ is None else environ).get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "rl-oom-advisor"


def cache_file(name: str) -> Path | None:
    """A file in the user's cache; None where there is no home."""
    root = os.environ.get("XDG_CACHE_HOME") or (os.path.expanduser("~/.cache") if os.environ.get("HOME") else "")
    return Path(root) / "rl-oom-advisor" / name if root else None


def own_bytes(file: Path) -> bytes:
    """Bytes of a file that nobody but this user can have written: advice is made of it. Raises OSError."""
    with file.open("rb") as opened:
        status = os.fstat(opened.fileno())
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise PermissionError(file)
        return opened.read()


def keep(file: Path, data: bytes) -> None:
    """Write a file of the cache, whole or not at all, and drop the oldest of its kind ("knowledge-…"). Best effort: a
    read-only home only costs time."""
    import tempfile

    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        kind = file.name.partition("-")[0]
        found = sorted(file.parent.glob(f"{kind}-*"), key=lambda f: f.stat().st_mtime, reverse=True)
        for old in found[_KEPT:]:
            old.unlink(missing_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f"{kind}-", delete=False) as temporary:
            temporary.write(data)
        os.replace(temporary.name, file)
