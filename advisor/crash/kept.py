"""The lines of the logs that were kept: all of them, what a person may have written, and those of the run judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from advisor.crash.finds import LogFind
from advisor.crash.lines import LogLine
from advisor.crash.logged_runs import RunLines
from advisor.crash.scan import Scanned
from advisor.crash.statements import A_PAGE, TITLE_LINES

SAID_IN = "--model"
"""Where people write what is no log of theirs."""
_FACT_CHARACTERS = 2_000_000
"""Characters of the kept lines in which facts are looked for."""


class KeptLines:
    """The kept lines of every log."""

    def __init__(self, logs: Sequence[Scanned]) -> None:
        self.names = [log.name for log in logs]
        self.lines = [log.kept_lines() for log in logs]
        self.text = "\n".join(line.printed for _, line in self.every())[:_FACT_CHARACTERS]
        self.said_in = frozenset(at for at, name in enumerate(self.names) if name == SAID_IN)
        self.said = [line.text for log in self.said_in for line in self.lines[log]]
        self.page = [at for at in self.every() if len(self.text) <= A_PAGE or at[0] in self.said_in]
        """What a person may have written."""

    def every(self) -> Iterator[tuple[int, LogLine]]:
        """Each line with the place of its log."""
        return ((log, line) for log, lines in enumerate(self.lines) for line in lines)


class LinesOfRun:
    """Those of the run that is judged."""

    def __init__(self, kept: KeptLines, run: RunLines) -> None:
        self.kept, self.run = kept, run

    def own(self, log: int, lines: Iterable[LogLine]) -> list[LogLine]:
        """Those of the lines of a log that belong to the run."""
        return [line for line in lines if self.run.covers(log, line.number)]

    @cached_property
    def _by_log(self) -> list[list[LogLine]]:
        return [self.own(log, lines) for log, lines in enumerate(self.kept.lines)]

    def all(self) -> list[LogLine]:
        """Of every log."""
        return [line for lines in self._by_log for line in lines]

    def near(self, cause: LogFind | None) -> list[LogLine]:
        """Of the cause's log, or of the first one."""
        log = cause.log if cause is not None else min(self.run.logs, default=0)
        return self._by_log[log] if self._by_log else []

    def until(self, cause: LogFind | None, whole: bool = True) -> list[LogLine]:
        """Up to the cause; `whole`: all of a post below its title, which names what they show."""
        if cause is None:
            return self.all()
        titled = whole and cause.number <= TITLE_LINES and len(self.kept.text) <= A_PAGE
        mine = [line for line in self.near(cause) if titled or line.number <= cause.number]
        return [*mine, *self.own(cause.log, cause.find.before), cause.find.first]
