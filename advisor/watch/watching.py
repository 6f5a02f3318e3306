"""`watch`: a command run as without us, and the record of what it held."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from advisor.watch.begun import Opened, Started, Tell, Watch
from advisor.watch.child import ignored_signals, listen, shell_code, spawn
from advisor.watch.kernel import Before, KernelLog
from advisor.watch.names import ERRORS, OUTPUT, SAMPLES
from advisor.watch.pourer import Stream, pour, wire_to

if TYPE_CHECKING:
    from advisor.watch.pourer import Poured

T = TypeVar("T")
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND


class Ended(NamedTuple):
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

    The command starts first: all that is needed only for the record is loaded while it runs, msgspec too, which is why
    what stands here and below is made of plain classes.
    """
    begun = time.time()
    asked.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    samples = os.open(asked.folder / SAMPLES, _APPEND, 0o600)
    log = os.open(asked.folder / OUTPUT, _APPEND, 0o600)
    errors = None if _same_file(1, 2) else os.open(asked.folder / ERRORS, _APPEND, 0o600)
    kernel, before = KernelLog.open(), Before.now()
    try:
        started = _start(asked, log, errors)
    except OSError as error:
        from advisor.language import say
        from advisor.words import os_words

        said = say("{command}: {why}", command=asked.argv[0], why=os_words(error))
        return Ended(asked.folder, None, said, shell_code(error))
    for fd in (log, errors):
        if fd is not None:
            os.close(fd)
    from advisor.watch.recorder import record_of

    return Ended(asked.folder, record_of(asked, started, Opened(samples, kernel, before, begun), tell))


def _start(asked: Watch, log: int, errors: int | None) -> Started:
    """Under a pseudo-terminal where standard output is a terminal. Raises OSError."""
    ignored = ignored_signals()
    woken = listen(ignored)
    apart = [] if errors is None else [Stream(errors, 2)]
    if not os.isatty(1):
        poured = pour([Stream(log, 1), *apart])
        pid = _held(poured, lambda: spawn(asked.argv, wire_to(poured.ends), ignored))
        return Started(pid, woken, poured=poured, separate=errors is not None)
    from advisor.watch.keeper import Wiring, keep
    from advisor.watch.terminal import attributes_of

    held = pour(apart) if apart else None
    stderr, strange = (None, ()) if held is None else (held.ends[0], (held.ask, held.answer))
    wiring = Wiring(log, str(asked.folder / OUTPUT), os.isatty(0), stderr, 1, attributes_of(1), strange)
    kept = _held(held, lambda: keep(asked.argv, wiring, ignored))
    return Started(kept.pid, woken, kept, held, errors is not None)


def _held(poured: Poured | None, start: Callable[[], T]) -> T:
    """Start, and let go of the ends of its streams: they are its own."""
    try:
        return start()
    finally:
        if poured is not None:
            poured.close_ends()


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
