"""Writes a file whole or not at all, and never over an existing one without leave.

The bytes go to a temporary file in the same folder, reach the disk, and only then get the name.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from advisor.hostile import clean_line
from advisor.language import listed, say
from advisor.script.document import Document, EditRefused

_OF_THE_SYSTEM = ("security.",)
"""Extended attributes that the system sets anew on every file."""


def write_file(path: Path, data: bytes, mode: int, *, force: bool, like: Path | None = None) -> tuple[str, ...]:
    """Write `data` to `path` with permission bits `mode`, atomically; what is worth a word comes back as sentences.

    A file that is replaced keeps its owner, a new one gets that of `like`, as far as this user may give files away.
    A link is followed to its end, which is said. Raises as `refuse_existing`, and OSError with
    the file's name where it cannot be written. Nothing is left behind on failure.
    """
    name = clean_line(str(path))
    refuse_existing(path, force)
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    pattern = target if target.exists() else like
    try:
        temporary = _temporary(target, data, mode, pattern)
    except OSError as error:  # the user knows nothing of a temporary file
        raise OSError(error.errno, error.strerror, str(path)) from error
    try:
        if force:
            os.replace(temporary, target)
        else:
            _claim(temporary, target, name)
    finally:  # it has another name by now, or none was free
        Path(temporary).unlink(missing_ok=True)
    _settle(target.parent)
    written = {"link": name, "file": clean_line(str(target))}
    linked = (say("{link} is a link; {file} was written.", **written),) if target != path else ()
    return (*linked, *_not_kept(pattern, target))


def refuse_existing(path: Path, force: bool) -> None:
    """Raises FileExistsError, in a sentence, where a file is there and `force` is not given.

    Raises EditRefused where something else is there: a device or a pipe would be replaced by a file.
    """
    name = clean_line(str(path))
    if not os.path.lexists(path):
        return
    with suppress(FileNotFoundError):  # a link to nowhere
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            told = {"file": name, "what": _kind(mode)}
            raise EditRefused(say("{file} is {what}; only a regular file is overwritten.", **told))
    if not force:
        raise _exists(name)


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return say("a directory")
    if stat.S_ISFIFO(mode):
        return say("a pipe")
    return say("a socket") if stat.S_ISSOCK(mode) else say("a device")


def refuse_changed(document: Document) -> None:
    """Raises EditRefused where a file no longer holds what was read: changes would be made to something else."""
    try:
        unchanged = document.path.read_bytes() == document.data
    except OSError:
        unchanged = False
    if not unchanged:
        name = clean_line(str(document.path))
        raise EditRefused(
            say("{file} has changed since it was read; nothing was written. Start again to see it as it is.", file=name)
        )


def _temporary(target: Path, data: bytes, mode: int, pattern: Path | None) -> str:
    """The name of a file beside `target` that holds `data` on the disk. Raises OSError, and leaves nothing then."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    with ExitStack() as undo:
        undo.callback(os.unlink, temporary)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            _give_away(file.fileno(), pattern)
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        undo.pop_all()  # it is whole
    return temporary


def _give_away(descriptor: int, pattern: Path | None) -> None:
    """To the owner of another file; only the system's administrator may do so."""
    with suppress(OSError):
        found = os.stat(pattern) if pattern is not None else os.fstat(descriptor)
        if (found.st_uid, found.st_gid) != (os.getuid(), os.getgid()):
            os.fchown(descriptor, found.st_uid, found.st_gid)


def _claim(temporary: str, target: Path, name: str) -> None:
    """Give the file its name only if nobody took the name meanwhile."""
    try:
        os.link(temporary, target)
    except FileExistsError as error:
        raise _exists(name) from error
    except OSError:  # a file system without hard links: take the name with an empty file first
        try:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError as error:
            raise _exists(name) from error
        with ExitStack() as undo:
            undo.callback(os.unlink, target)
            os.replace(temporary, target)
            undo.pop_all()


def _settle(folder: Path) -> None:
    """Have the new name on the disk, where the file system knows how."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _not_kept(pattern: Path | None, target: Path) -> tuple[str, ...]:
    """What the other file has beyond its mode that this one has not: an owner, access lists, attributes."""
    if pattern is None:
        return ()
    said: list[str] = []
    with suppress(OSError, AttributeError):
        before, now = os.stat(pattern), os.stat(target)
        lost = {each for each in os.listxattr(pattern) if not each.startswith(_OF_THE_SYSTEM)} - {*os.listxattr(target)}
        if lost:
            names, file = listed(clean_line(each) for each in sorted(lost)), clean_line(str(pattern))
            said.append(say("The extended attributes of {file} were not copied ({names}).", file=file, names=names))
        if before.st_uid != now.st_uid:
            files = {"file": clean_line(str(target)), "other": clean_line(str(pattern))}
            said.append(say("{file} belongs to you, {other} to another user.", **files))
    return tuple(said)


def _exists(name: str) -> FileExistsError:
    return FileExistsError(say("{file} exists; it is overwritten only with --force.", file=name))
