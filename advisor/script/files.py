"""Loads the files that a script is made of: once, bounded, never run."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from advisor.hostile import clean_line
from advisor.language import say
from advisor.script.document import Document, DocumentKind, ScriptError

LARGEST = 10_000_000
"""Bytes; a launch file is not larger."""
_ANCESTORS = 4
_MAX_FILES = 40


def load(path: Path, kind: DocumentKind) -> Document:
    """Read one file. Raises ScriptError, in one sentence, where it is no readable text file."""
    name = clean_line(str(path))
    try:
        info = path.stat()
        if stat.S_ISDIR(info.st_mode):
            raise ScriptError(say("{file} is a directory, not a launch file.", file=name))
        if not stat.S_ISREG(info.st_mode):
            raise ScriptError(say("{file} is not a regular file.", file=name))
        if info.st_size > LARGEST:
            sizes = {"size": info.st_size, "most": LARGEST}
            raise ScriptError(say("{file} has {size} bytes; a launch file has at most {most}.", file=name, **sizes))
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise ScriptError(say("{file} does not exist.", file=name)) from error
    except PermissionError as error:
        raise ScriptError(say("{file} cannot be read: permission denied.", file=name)) from error
    except (OSError, ValueError) as error:
        raise ScriptError(say("{file} cannot be read: {why}.", file=name, why=clean_line(str(error)))) from error
    if not data:
        raise ScriptError(say("{file} is empty.", file=name))
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise ScriptError(say("{file} is a binary file: line {line} holds a NUL byte.", file=name, line=line))
    return Document(path, data, kind)


class Files(Struct):
    """Documents in the order they were followed. `given` replaces the disk: then nothing else is found."""

    documents: list[Document] = field(default_factory=list)
    given: Mapping[str, Document] | None = None
    notes: dict[str, None] = field(default_factory=dict)
    """Sentences on files that were taken for others."""

    def add(self, path: Path, kind: DocumentKind) -> int:
        """The number of a document, loaded if need be. Raises ScriptError."""
        for number, document in enumerate(self.documents):
            if os.path.abspath(document.path) == os.path.abspath(path):
                return number
        document = load(path, kind) if self.given is None else self.known(path)
        self.documents.append(document)
        return len(self.documents) - 1

    def known(self, path: Path) -> Document:
        found = (self.given or {}).get(os.path.abspath(path))
        if found is None:
            raise ScriptError(say("{file} does not exist.", file=clean_line(str(path))))
        return found

    def find(self, name: str, base: Path, kind: DocumentKind, folder: str = "", *, strays: bool = True) -> int | None:
        """A file that a script names: in the `folder` it went to, beside it, in up to four folders above it, or in the
        working folder. `strays` False: in the folder it went to, nowhere else."""
        if not name or "\0" in name or len(name) > 1000 or len(self.documents) >= _MAX_FILES:
            return None
        for candidate in self.candidates(name, base, folder, strays=strays):
            try:
                number = self.add(candidate, kind)
            except ScriptError:  # an unreadable file is passed over
                continue
            if name.startswith(("/", "~/")) and os.path.abspath(candidate) != os.path.normpath(name):
                told = {"file": clean_line(str(candidate)), "name": clean_line(name)}
                self.notes[say("{name} is not here: {file} is taken for it.", **told)] = None
            return number
        return None

    def candidates(self, name: str, base: Path, folder: str = "", *, strays: bool = True) -> list[Path]:
        """Where a named file may stand; a home folder is never searched."""
        path = Path(name)
        around = [base, *list(base.resolve().parents)[:_ANCESTORS], Path()]
        if path.is_absolute() and self.exists(path):
            return [path]
        gone = [Path(folder), *(here / folder for here in around)] if folder and "\0" not in folder else []
        folders = [*gone, *around] if strays else gone
        elsewhere = path.is_absolute() or name.startswith("~/")
        near = [] if elsewhere else [candidate for here in folders if self.exists(candidate := here / path)]
        far = path if elsewhere else Path(folder, path) if strays and folder.startswith(("/", "~/")) else None
        if near or far is None:
            return near
        # of a container, or a cluster: its end, a folder at least
        ends = [Path(*far.parts[at:]) for at in range(1 + far.is_absolute(), len(far.parts) - 1)]
        found = next((here / end for end in ends for here in around if self.exists(here / end)), None)
        return [found] if found is not None else []

    def is_folder(self, folder: str, base: Path) -> bool:
        """Whether a folder that a script went to stands beside it, so that what it names there can be nowhere else."""
        if not folder or "\0" in folder:
            return False
        try:
            return (base / folder).is_dir()
        except OSError:
            return False

    def exists(self, path: Path) -> bool:
        return is_file(path) if self.given is None else os.path.abspath(path) in self.given


def start_of(path: Path, most: int = 1 << 18) -> bytes:
    """The first bytes of a file; none of one that cannot be read."""
    with suppress(OSError, ValueError), path.open("rb") as file:
        return file.read(most)
    return b""


def text_of(path: Path) -> str:
    """The first 64 KiB of a file that states versions; those are some hundred bytes long."""
    return start_of(path, 65_536).decode("utf-8", "replace")


def is_file(path: Path) -> bool:
    """Whether a name that a stranger wrote is a file that can be read."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
