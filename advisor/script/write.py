"""Writes a patched file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from advisor.hostile import clean_line


def write_file(path: Path, data: bytes, mode: int, *, force: bool) -> None:
    """Write `data` to `path` with permission bits `mode`, atomically.

    Raises FileExistsError, in a sentence, where the file exists and `force` is not given; OSError where the folder
    cannot be written. Nothing is left behind on failure.
    """
    name = clean_line(str(path))
    if not force and os.path.lexists(path):
        raise FileExistsError(f"{name} exists; it is overwritten only with --force.")
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        if force:
            os.replace(temporary, target)
        else:
            _claim(temporary, target, name)
    finally:
        Path(temporary).unlink(missing_ok=True)  # it has another name by now, or was not written whole


def _claim(temporary: str, target: Path, name: str) -> None:
    """Give the file its name only if nobody took the name meanwhile."""
    try:
        os.link(temporary, target)
    except FileExistsError as error:
        raise FileExistsError(f"{name} exists; it is overwritten only with --force.") from error
    except OSError:  # a file system without hard links
        os.replace(temporary, target)
