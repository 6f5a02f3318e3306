"""The course of a log: where another run begins in it, how far each came, and failures that a run lived through."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct, field

from advisor.crash.config_dump import is_launch
from advisor.crash.lines import Line
from advisor.crash.verdict import Placed

STEPS_OF_A_RUN = 3
"""So many different steps, and nothing that failed: the run was going on."""
_COUNTS = ("step", "step_", "epoch", "done", "iteration")
"""Groups of the mark "training-step" that only a trainer counts up; a bare progress bar may be anybody's."""
_SESSION = "Started a local Ray instance"
_AGAIN = "will restart worker group"
_DRIVER = re.compile(r"^(?P<name>TaskRunner|main_task|Runner) pid=(?P<pid>\d+)")
_STEP = re.compile(r"(?:^|\s)step:(?P<step>\d{1,9}) - ")
_APART = 20
"""Lines that lie at least between two runs: a loop that starts several processes at once starts one run."""


class _Beginnings(Struct):
    """Lines on which another run begins, while a log is gone through."""

    found: list[int] = field(default_factory=list)
    launched: dict[tuple[str, ...], int] = field(default_factory=dict)
    drivers: dict[str, str] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)

    def take(self, line: Line) -> None:
        if self._again(line):
            self.steps.clear()
            if not self.found or line.number > self.found[-1] + _APART:
                self.found.append(line.number)

    def _again(self, line: Line) -> bool:
        text = line.text
        if _AGAIN in text:
            return True
        if text.startswith("+") and is_launch(text):
            return self._repeats((line.process, *text.lstrip("+ ").split()[:3]), line.number)
        if _SESSION in text:
            return self._repeats((line.process, _SESSION), line.number)
        return self._other_driver(line.process) or self._falls_back(line)

    def _repeats(self, key: tuple[str, ...], number: int) -> bool:
        before = self.launched.get(key)
        self.launched[key] = number
        return before is not None and number > before + _APART

    def _other_driver(self, process: str) -> bool:
        """Ray's driver task is one process for the whole of a run."""
        match = _DRIVER.match(process)
        if match is None:
            return False
        before = self.drivers.get(match["name"])
        self.drivers[match["name"]] = match["pid"]
        return before is not None and before != match["pid"]

    def _falls_back(self, line: Line) -> bool:
        match = _STEP.search(line.text) if "step:" in line.text else None
        if match is None:
            return False
        step = int(match["step"])
        before = self.steps.get(line.process, 0)
        self.steps[line.process] = step
        return step < before


def beginnings(lines: Iterable[Line]) -> tuple[int, ...]:
    """Numbers of the lines on which a second, third … run begins: relaunched, or its step count fell back."""
    seen = _Beginnings()
    for line in lines:
        seen.take(line)
    return tuple(seen.found)


class Opening(Struct, frozen=True):
    """How a log shows that a run was started in it, and when: what tells it from the log of another run."""

    drivers: frozenset[tuple[str, str]] = frozenset()
    """(name, pid) of Ray's driver tasks."""
    started: bool = False
    """It shows a launch, a driver or steps: it is no log of a helper."""
    first: str = ""
    last: str = ""
    """The stamps on its lines, "06-22 19:47:13"; "" where none has any."""

    def is_apart(self, other: Opening) -> bool:
        """Whether the two are of different runs: each started one, with another driver or at another time."""
        if not self.started or not other.started:
            return False
        names = {name for name, _ in self.drivers} & {name for name, _ in other.drivers}
        if names:
            return not self.drivers & other.drivers
        return bool(self.first and other.first) and (self.last < other.first or other.last < self.first)


def opening(lines: Iterable[Line]) -> Opening:
    """What the kept lines of a whole log show of its start."""
    seen, first, last = _Beginnings(), "", ""
    for line in lines:
        seen.take(line)
        if line.stamp:
            first, last = min(first or line.stamp, line.stamp), max(last, line.stamp)
    drivers = frozenset(seen.drivers.items())
    return Opening(drivers, bool(seen.launched or seen.steps or drivers), first, last)


_OPENS = re.compile(r"^\[(?:prompt|response|completion)\]")
_CLOSES = re.compile(r"^\[(?:response|completion|ground_truth|score|reward|accuracy)\]")
_SAMPLE = 300
"""Lines that a printed sample may have."""


def is_quoted(failure: Placed) -> bool:
    """Whether a line stands inside a sample that the trainer printed: between its [prompt] and its [score]."""
    process = failure.find.first.process
    above = [line.text for line in failure.find.before[-_SAMPLE:] if line.process == process]
    below = (line.text for line in failure.find.after[:_SAMPLE] if line.process == process)
    last = next((text for text in reversed(above) if _OPENS.match(text) or _CLOSES.match(text)), "")
    return bool(_OPENS.match(last)) and any(_CLOSES.match(text) for text in below)


class Count(Struct, frozen=True):
    """A step mark: where it stands, what is counted ("step", "epoch", "done" …), and how far it was."""

    log: int
    line: int
    group: str
    count: float


class Health(Struct, frozen=True):
    """How far a run came."""

    finished: bool = False
    counts: tuple[Count, ...] = ()
    """Every step mark, in order."""

    @property
    def going(self) -> bool:
        """Several steps were done."""
        return len({(one.group, one.count) for one in self.counts}) >= STEPS_OF_A_RUN

    @property
    def steps_done(self) -> int | None:
        """The highest count of the trainer's own progress ("step:12", "Training Progress: 0%| 0/105")."""
        return max((int(one.count) for one in self.counts if one.group in ("step", "done")), default=None)

    def outlived(self, failure: Placed) -> bool:
        """Whether the run did several further steps after a failure, as it does after one it caught, or quoted."""
        last = failure.find.last_number
        for group in _COUNTS:
            mine = [one for one in self.counts if one.group == group and one.log == failure.log]
            highest = max((one.count for one in mine if one.line <= last), default=-1.0)
            if len({one.count for one in mine if one.line > last and one.count > highest}) >= STEPS_OF_A_RUN:
                return True
        return False


def health_of(marks: Iterable[Placed]) -> Health:
    """From a run's own marks ("training-step", "run-finished")."""
    counts: list[Count] = []
    finished = False
    for mark in marks:
        finished = finished or mark.id == "run-finished"
        if mark.id == "training-step":
            line = mark.find.first.number
            counts.extend(Count(mark.log, line, name, _number(text)) for name, text in mark.find.fields.items())
    return Health(finished, tuple(counts))


def _number(text: object) -> float:
    plain = str(text)
    return float(plain.removesuffix("k")) * (1000 if plain.endswith("k") else 1)
