"""`watch`: a command run as without us, and the record of what it held."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from advisor.watch.child import shell_code
from advisor.watch.course import start
from advisor.watch.kernel import KernelLog
from advisor.watch.names import ERRORS, OUTPUT, SAMPLES
from advisor.watch.outlet import Outlet

Tell = Callable[[str], None]
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND


class Watch(Struct, frozen=True):
    """What was asked for."""

    argv: tuple[str, ...]
    folder: Path
    alert: float | None = None
    knowledge: tuple[Path, ...] = ()


class Ended(Struct, frozen=True):
    """How it went. `status` as waitpid gives it; None where only the keeper knew and was killed."""

    folder: Path
    status: int | None
    not_started: str = ""
    code: int = 0
    """The shell's $? where the command could not be started."""

    @property
    def failed(self) -> bool:
        """Anything but exit code 0."""
        return self.status != 0

    @property
    def was_sent_away(self) -> bool:
        """A signal ended it that people send, and no shortage of memory does."""
        people = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE)
        return self.status is not None and os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) in people


def default_folder() -> Path:
    """Where the record goes when nobody says: a name with the time, here, or in the temporary folder."""
    name = time.strftime("watch-%Y%m%d-%H%M%S")
    here = Path.cwd()
    if os.access(here, os.W_OK):
        return here / name
    import tempfile

    return Path(tempfile.gettempdir()) / name


def watch(asked: Watch, tell: Tell) -> Ended:
    """Run the command and record it. Raises OSError where no record can be written; the command is not started then.

    The command starts first: all that is needed only for the record is loaded while it runs.
    """
    begun = time.time()
    asked.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    samples = os.open(asked.folder / SAMPLES, _APPEND, 0o600)
    log = os.open(asked.folder / OUTPUT, _APPEND, 0o600)
    outlets = [Outlet.follow(asked.folder / OUTPUT, 1)]
    errors = None if _same_file(1, 2) else os.open(asked.folder / ERRORS, _APPEND, 0o600)
    if errors is not None:
        outlets.append(Outlet.follow(asked.folder / ERRORS, 2))
    kernel = KernelLog.open()
    try:
        course = start(asked.argv, log, str(asked.folder / OUTPUT), errors, outlets, os.isatty(0), os.isatty(1))
    except OSError as error:
        from advisor.words import os_words

        said = f"{asked.argv[0]}: {os_words(error)}"
        return Ended(asked.folder, None, said, shell_code(error))
    for fd in (log, errors):
        if fd is not None:
            os.close(fd)
    from advisor.watch.recorder import Opened, record_of

    record_of(asked, course, Opened(samples, kernel, begun), tell)
    return Ended(asked.folder, course.status)


def _same_file(one: int, other: int) -> bool:
    try:
        first, second = os.fstat(one), os.fstat(other)
    except OSError:
        return True
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)


def leave_like(status: int | None) -> int:
    """End as the command ended: by the same signal, so that whoever waits for us sees what they would have seen.

    Returns the exit code where it was one.
    """
    if status is None:
        return 129  # its terminal was hung up under it
    if not os.WIFSIGNALED(status):
        return os.WEXITSTATUS(status)
    import resource

    sys.stdout.flush()
    sys.stderr.flush()
    number = os.WTERMSIG(status)
    with suppress(OSError, ValueError):  # one core dump is enough
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
