"""Fail, or kill, every system call of a write in turn, and see that no file is lost.

    python -m tests.trust.inject_faults

Needs strace, which does the failing: the program itself is not changed. Prints what was injected and what was lost.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OLD, NEW = b"#!/bin/sh\necho old\n", b"#!/bin/sh\necho new\n" * 500
CALLS = (
    *("openat", "newfstatat", "fstat", "readlink", "write", "fchmod", "fchown", "fsync", "close"),
    *("link", "linkat", "rename", "unlink"),
)
ERRORS = ("ENOSPC", "EIO", "EDQUOT", "EROFS", "EACCES", "EINTR")
WRITE = """
import os, sys, tempfile
tempfile._name_sequence, os.getpid = iter(["fixed"] * 9), lambda: "fixed"
from pathlib import Path
from advisor.script.write import write_file
if sys.argv[4] == "named":  # as on a file system that knows no files without a name
    del os.O_TMPFILE
try:
    write_file(Path(sys.argv[1]), Path(sys.argv[2]).read_bytes(), force=sys.argv[3] == "force", mode=0o755)
except OSError as problem:
    sys.exit(f"refused: {problem}")
"""


@dataclass(frozen=True)
class Way:
    """One way to write: over a file, through a link to one, or to a name that is free."""

    name: str
    exists: bool
    linked: bool = False
    named: bool = False

    def prepare(self, folder: Path) -> Path:
        target = folder / "run.sh"
        if self.exists:
            target.write_bytes(OLD)
        if not self.linked:
            return target
        (folder / "link.sh").symlink_to(target)
        return folder / "link.sh"

    def is_whole(self, folder: Path) -> bool:
        """The old bytes or all of the new ones; nothing only where nothing was."""
        target = folder / "run.sh"
        if not target.exists():
            return not self.exists
        return target.read_bytes() in ((OLD, NEW) if self.exists else (NEW,))


WAYS = (
    *(Way("over a file", True), Way("through a link", True, True), Way("to a new name", False)),
    *(Way("over a file, by a named one", True, named=True), Way("to a new name, by a named one", False, named=True)),
)


def inject(way: Way, call: str, fault: str, number: int) -> tuple[bool, bool, bool]:
    """(whether the fault came about, whether the file is whole, whether anything is left lying about)"""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "new"
        source.write_bytes(NEW)
        place = folder / "place"
        place.mkdir()
        path = way.prepare(place)
        watched = [place, place / "run.sh", place / ".run.sh.fixed", path]
        command = ["strace", "-f", "-qq", "-o", str(folder / "trace"), "-e", f"trace={call}"]
        command += ["-e", f"inject={call}:{fault}:when={number}"]
        command += [word for each in watched for word in ("-P", str(each))]
        force = "force" if way.exists else "new"
        run = [*command, sys.executable, "-c", WRITE, str(path), str(source), force]
        run += ["named" if way.named else "unnamed"]
        done = subprocess.run(run, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": "."})
        trace = (folder / "trace").read_text(errors="replace")
        came = "INJECTED" in trace or "killed by SIGKILL" in trace
        if done.returncode not in (0, 1) and "signal" not in fault:
            print(f"  {way.name}, {call} {fault} {number}: {done.stderr.strip()[-300:]}")
        left = {each.name for each in place.iterdir()} - {"run.sh", "link.sh"}
        return came, way.is_whole(place), bool(left) and "signal" not in fault and call not in ("unlink", "unlinkat")


def every_fault() -> Iterator[tuple[Way, str, str]]:
    """Each call with each error, and with a kill."""
    for way in WAYS:
        for call in CALLS:
            for fault in (*(f"error={name}" for name in ERRORS), "signal=KILL"):
                yield way, call, fault


def main() -> None:
    """Go through all of them; a call that comes several times is failed at each of its times."""
    if shutil.which("strace") is None:
        sys.exit("this needs strace")
    injected, lost, littered = Counter[str](), 0, 0
    for way, call, fault in every_fault():
        for number in range(1, 12):
            came, whole, left = inject(way, call, fault, number)
            if not came:
                break
            injected[call] += 1
            lost += not whole
            littered += left
            if not whole or left:
                print(f"  {way.name}, {call} {fault} at time {number}: {'LOST' if not whole else 'left something'}")
    told = ", ".join(f"{call} {count}" for call, count in sorted(injected.items()) if re.match(r"\w", call))
    print(f"{injected.total()} faults ({told}); files lost: {lost}; something left behind: {littered}")


if __name__ == "__main__":
    main()
