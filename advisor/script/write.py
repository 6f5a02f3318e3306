"""Writes a file whole or not at all, and never over an existing one without leave.

The bytes go to a temporary file in the same folder, reach the disk, and only then get the name.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from advisor.hostile import clean_line
from advisor.language import listed, say
from advisor.script.document import Document, EditRefused

_OF_THE_SYSTEM = ("security.",)
"""Extended attributes that the system sets anew on every file."""


def write_file(
    path: Path, data: bytes, *, force: bool, like: Path | None = None, mode: int | None = None
) -> tuple[str, ...]:
    """Write `data` to `path`, atomically; what is worth a word comes back as sentences.

    A file that is replaced keeps its owner, mode and attributes, a new one gets those of `like`, as far as this user
    may give them; without it what the umask leaves. `mode`: permission bits that it has instead. A link is followed to
    its end, which is said. Raises as `refuse_existing`, and OSError with
    the file's name where it cannot be written. Nothing is left behind on failure.
    """
    name = clean_line(str(path))
    refuse_existing(path, force)
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    pattern = target if target.exists() else like
    told = _FileBefore(pattern, target)
    new = _New(target, data, pattern, force, name, mode)
    try:
        if not _unnamed(new):
            _named(new)
    except FileExistsError:
        raise
    except OSError as error:  # the user knows nothing of a temporary file
        raise OSError(error.errno, error.strerror, str(path)) from error
    _settle(target.parent)
    written = {"link": name, "file": clean_line(str(target))}
    linked = (say("{link} is a link; {file} was written.", **written),) if target != path else ()
    return (*linked, *told.sentences())


def write_all(files: Sequence[tuple[Path, bytes, Path | None]], *, force: bool) -> tuple[str, ...]:
    """Write several files (path, bytes, `like`) as `write_file` does, or none: where one cannot be written, what stood
    in the place of those before it comes back."""
    notes: list[str] = []
    with ExitStack() as undo:
        for path, data, like in files:
            before = path.read_bytes() if path.is_file() else None
            notes += write_file(path, data, force=force, like=like)
            if before is None:
                undo.callback(path.unlink, missing_ok=True)
            else:
                undo.callback(write_file, path, before, force=True)
        undo.pop_all()
    return tuple(notes)


class _New(NamedTuple):
    """A file that is to be written. `pattern`: whose owner, mode and attributes it gets; `shown`: its name in words."""

    target: Path
    data: bytes
    pattern: Path | None
    force: bool
    shown: str
    mode: int | None

    def fill(self, descriptor: int, undo: ExitStack) -> None:
        """Give an open file its bytes and its permissions, on the disk. `undo` closes it. Raises OSError."""
        file = undo.enter_context(os.fdopen(descriptor, "wb"))
        file.write(self.data)
        file.flush()
        _give_away(descriptor, self.pattern, self.target)
        os.fchmod(descriptor, self._mode())
        for attribute, value in _attributes(self.pattern).items():
            with suppress(OSError):
                os.setxattr(descriptor, attribute, value)
        os.fsync(descriptor)

    def _mode(self) -> int:
        if self.mode is not None:
            return self.mode
        if self.pattern is not None and self.pattern.exists():
            return stat.S_IMODE(self.pattern.stat().st_mode) & (0o7777 if self.pattern == self.target else 0o777)
        umask = os.umask(0o077)
        os.umask(umask)
        return 0o666 & ~umask


def _unnamed(new: _New) -> bool:
    """Write a file that has no name until it is whole, so that nothing is left of it whenever we are killed.

    False where the file system knows no such files: nothing was done. Raises FileExistsError.
    """
    folder = new.target.parent
    with ExitStack() as undo:
        try:
            at = os.open(folder, os.O_RDONLY)
            undo.callback(os.close, at)
            descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
            new.fill(descriptor, undo)
            own = f"/proc/self/fd/{descriptor}"
            if not new.force:
                os.link(own, new.target, src_dir_fd=at, follow_symlinks=True)
                return True
            beside = folder / f".{new.target.name[:100]}.{os.getpid()}"
            os.link(own, beside, src_dir_fd=at, follow_symlinks=True)
            undo.callback(beside.unlink, missing_ok=True)
            os.replace(beside, new.target)
        except FileExistsError as error:
            if new.force:  # somebody's file has the name that ours would have for a moment
                return False
            raise _exists(new.shown) from error
        except (OSError, AttributeError):
            return False
    return True


def _named(new: _New) -> None:
    """The same by a file that has a name of its own meanwhile. Raises OSError, and leaves nothing then."""
    with ExitStack() as undo:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{new.target.name[:100]}.", dir=new.target.parent)
        undo.callback(Path(temporary).unlink, missing_ok=True)  # it has another name by then, or none was free
        new.fill(descriptor, undo)
        if new.force:
            os.replace(temporary, new.target)
        else:
            _claim(temporary, new.target, new.shown)


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


def _give_away(descriptor: int, pattern: Path | None, target: Path) -> None:
    """To the owner of another file, which only the system's administrator may do; to its group, but where the folder
    hands its own on to what is new in it.
    """
    with suppress(OSError):
        found = os.stat(pattern) if pattern is not None else os.fstat(descriptor)
        hands_on = pattern != target and os.stat(target.parent).st_mode & stat.S_ISGID
        group = -1 if hands_on else found.st_gid
        if (found.st_uid, group) not in ((os.getuid(), os.getgid()), (os.getuid(), -1)):
            os.fchown(descriptor, found.st_uid, group)


def _attributes(path: Path | None) -> dict[str, bytes]:
    """Extended attributes of a file, access lists among them, but for those of the system's own."""
    found: dict[str, bytes] = {}
    with suppress(OSError, AttributeError):
        for name in os.listxattr(path) if path is not None else ():
            if not name.startswith(_OF_THE_SYSTEM):
                found[name] = os.getxattr(path or "", name)
    return found


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


class _FileBefore:
    """What another file has beyond its bytes, as it was before: what of it the written one has not is said."""

    def __init__(self, pattern: Path | None, target: Path) -> None:
        self.pattern, self.target = pattern, target
        self.attributes = _attributes(pattern)
        self.before: os.stat_result | None = None
        with suppress(OSError):
            self.before = os.stat(pattern) if pattern is not None else None

    def sentences(self) -> tuple[str, ...]:
        """What was not kept: attributes, an owner, other names of the same file."""
        said: list[str] = []
        file, other = clean_line(str(self.target)), clean_line(str(self.pattern))
        if lost := self.attributes.keys() - _attributes(self.target).keys():
            names = listed(clean_line(each) for each in sorted(lost))
            said.append(say("The extended attributes of {file} were not copied ({names}).", file=other, names=names))
        if self.before is not None and self.before.st_uid != self.target.stat().st_uid:
            said.append(say("{file} belongs to you, {other} to another user.", file=file, other=other))
        if self.before is not None and self.before.st_nlink > 1 and self.pattern == self.target:
            said.append(say("{file} had other names (hard links): they keep what was in it.", file=file))
        return tuple(said)


def _exists(name: str) -> FileExistsError:
    return FileExistsError(say("{file} exists; it is overwritten only with --force.", file=name))
