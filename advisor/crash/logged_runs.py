"""Separates the runs that logs hold: where each begins, how far it came, what it survived; picks the one to judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.crash.config_dump import is_launch
from advisor.crash.evidence import TOLD
from advisor.crash.finds import FAILURES, LogFind
from advisor.crash.lines import LogLine, glued_bar
from advisor.crash.verdict import SAID, Judgement, judge
from advisor.regex import regex

STEPS_OF_A_RUN = 3
"""So many different steps, and nothing that failed: the run was going on."""
_COUNTS = ("step", "step_", "epoch", "done", "iteration")
"""Groups of the mark "training-step" that only a trainer counts up; a bare progress bar may be anybody's."""
_SESSION = "Started a local Ray instance"
_AGAIN = "will restart worker group"
_DRIVER = regex(r"^(?P<name>TaskRunner|main_task|Runner) pid=(?P<pid>\d+)")
_STEP = regex(r"(?:^|\s)step:(?P<step>\d{1,9}) - ")
_APART = 20
"""Lines that lie at least between two runs: a loop that starts several processes at once starts one run."""
_OVER = regex(r"^(?:[\w.]{0,80}\.)?(?:CalledProcessError|ChildFailedError|SignalException)\b")
"""What a launcher of other processes prints last (subprocess, torch's elastic agent)."""
_DIGITS, _TOLD = regex(r"[\d.:,/-]+"), 20
"""What differs where the same line is printed again, and the characters that tell one line from others."""
_OPENS = regex(r"^\[(?:prompt|response|completion)\]")
_CLOSES = regex(r"^\[(?:response|completion|ground_truth|score|reward|accuracy)\]")
_SAMPLE = 300
"""Lines that a printed sample may have."""


class _Beginnings(Struct):
    """Lines on which another run begins, while a log is gone through."""

    found: list[int] = field(default_factory=list)
    launched: dict[tuple[str, ...], int] = field(default_factory=dict)
    drivers: dict[str, str] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    opening: str = ""
    """The first line of the log, without its numbers."""
    over: bool = False
    """A launcher ended in an exception."""

    def take(self, line: LogLine) -> None:
        if self._again(line):
            self.steps.clear()
            if not self.found or line.number > self.found[-1] + _APART:
                self.found.append(line.number)

    def _again(self, line: LogLine) -> bool:
        text = line.text
        if _AGAIN in text:
            return True
        if text.startswith("+") and is_launch(text):
            return self._repeats((line.process, *text.lstrip("+ ").split()[:3]), line.number)
        if _SESSION in text:
            return self._repeats((line.process, _SESSION), line.number)
        return self._opens_again(line) or self._other_driver(line.process) or self._falls_back(line)

    def _opens_again(self, line: LogLine) -> bool:
        """Whether the log's first line is printed again behind the end of what it began."""
        self.over = self.over or _OVER.match(line.text) is not None
        if self.opening and not self.over:
            return False
        told = _DIGITS.sub("", line.text)
        again = self.over and told == self.opening
        self.opening, self.over = self.opening or told * (len(told) >= _TOLD), self.over and not again
        return again

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

    def _falls_back(self, line: LogLine) -> bool:
        match = _STEP.search(line.text) if "step:" in line.text else None
        if match is None:
            return False
        step = int(match["step"])
        before = self.steps.get(line.process, 0)
        self.steps[line.process] = step
        return step < before


class RunStart(Struct, frozen=True):
    """How a log shows that a run was started in it, and when: what tells it from the log of another run."""

    drivers: frozenset[tuple[str, str]] = frozenset()
    """(name, pid) of Ray's driver tasks."""
    started: bool = False
    """It shows a launch, a driver or steps: it is no log of a helper."""
    first: str = ""
    last: str = ""
    """The stamps on its lines, "06-22 19:47:13"; "" where none has any."""

    def is_apart(self, other: RunStart) -> bool:
        """Whether the two are of different runs: each started one, with another driver or at another time."""
        if not self.started or not other.started:
            return False
        names = {name for name, _ in self.drivers} & {name for name, _ in other.drivers}
        if names:
            return not self.drivers & other.drivers
        return bool(self.first and other.first) and (self.last < other.first or other.last < self.first)


def _run_start(lines: Sequence[LogLine]) -> RunStart:
    """What the kept lines of a whole log show of its start."""
    seen, stamps = _gone_through(lines), [line.stamp for line in lines if line.stamp]
    drivers = frozenset(seen.drivers.items())
    started = bool(seen.launched or seen.steps or drivers)
    return RunStart(drivers, started, min(stamps, default=""), max(stamps, default=""))


def _gone_through(lines: Iterable[LogLine]) -> _Beginnings:
    seen = _Beginnings()
    for line in lines:
        seen.take(line)
    return seen


class RunLines(Struct, frozen=True):
    """The lines of one run: of these logs (by order of reading), from line `begin` up to, not including, `end`."""

    logs: frozenset[int]
    begin: int = 0
    end: int | None = None
    beside: frozenset[int] = frozenset()
    """Logs whose every line belongs to it: what a person says of the run."""

    def covers(self, log: int, number: int) -> bool:
        """Whether a line belongs to it."""
        inside = self.begin <= number and (self.end is None or number < self.end)
        return log in self.beside or (log in self.logs and inside)

    def among(self, finds: Iterable[LogFind]) -> list[LogFind]:
        """The finds that belong to it."""
        return [one for one in finds if self.covers(one.log, one.number)]


def runs_in(
    lines: Sequence[Sequence[LogLine]], changed: Sequence[float], beside: frozenset[int] = frozenset()
) -> list[RunLines]:
    """The runs that the logs hold, oldest first. `changed`: when each log was last written to, 0 where unknown;
    `beside`: those that are of no run by themselves; they belong to the newest."""
    runs: list[RunLines] = []
    for group in _groups(lines, changed):
        own = group - beside or group
        if len(own) > 1:
            runs.append(RunLines(own))
            continue
        (log,) = own  # a single log may hold several runs
        begins = _gone_through(lines[log]).found  # a second, third … run: relaunched, or its step count fell back
        runs += [RunLines(own, begin, end) for begin, end in zip((0, *begins), (*begins, None), strict=True)]
    return [*runs[:-1], replace(runs[-1], beside=beside)]


def _groups(lines: Sequence[Sequence[LogLine]], changed: Sequence[float]) -> list[frozenset[int]]:
    """Logs of one run together, the oldest run first; a log that starts none goes with the newest."""
    every = frozenset(range(len(lines)))
    starts = [_run_start(one) for one in lines] if len(lines) > 1 else []
    stamped = all(one.first for one in starts if one.started)  # else in the order in which they were written to
    started = [log for log, one in enumerate(starts) if one.started]
    groups: list[list[int]] = []
    for log in sorted(started, key=lambda log: (starts[log].first if stamped else "", changed[log], log)):
        if groups and not any(starts[log].is_apart(starts[other]) for other in groups[-1]):
            groups[-1].append(log)
        else:
            groups.append([log])
    if len(groups) < 2:
        return [every]
    return [*map(frozenset, groups[:-1]), every.difference(*groups[:-1])]


def is_quoted(failure: LogFind) -> bool:
    """Whether a line stands inside a sample that the trainer printed: between its [prompt] and its [score]."""
    process = failure.find.first.process
    above = [line.text for line in failure.find.before[-_SAMPLE:] if line.process == process]
    below = (line.text for line in failure.find.after[:_SAMPLE] if line.process == process)
    last = next((text for text in reversed(above) if _OPENS.match(text) or _CLOSES.match(text)), "")
    return bool(_OPENS.match(last)) and any(_CLOSES.match(text) for text in below)


class StepCount(Struct, frozen=True):
    """A step mark: where it stands, what is counted ("step", "epoch", "done" …), and how far it was."""

    log: int
    line: int
    group: str
    count: float


class Health(Struct, frozen=True):
    """How far a run came."""

    end: LogFind | None = None
    """The line that shows its end."""
    counts: tuple[StepCount, ...] = ()
    """Every step mark, in order."""

    @property
    def going(self) -> bool:
        """Several steps were done."""
        return len({(one.group, one.count) for one in self.counts}) >= STEPS_OF_A_RUN

    @property
    def steps_done(self) -> int | None:
        """The highest count of the trainer's own progress ("step:12", "Training Progress: 0%| 0/105")."""
        return max((int(one.count) for one in self.counts if one.group in ("step", "done")), default=None)

    @property
    def stepped(self) -> bool:
        """A counter that is the training's own, and no bare bar's, is past its beginning."""
        return any(one.count > 0 for one in self.counts if one.group in _COUNTS)

    @property
    def bar_done(self) -> int | None:
        """The count of the last bar without a title; whose bar it is, its caller knows."""
        return next((int(one.count) for one in reversed(self.counts) if one.group == "done_"), None)

    def outlived(self, failure: LogFind) -> bool:
        """Whether the run did several further steps after a failure, as it does after one it caught, or quoted."""
        last = failure.find.last_number
        for group in _COUNTS:
            mine = [one for one in self.counts if one.group == group and one.log == failure.log]
            highest = max((one.count for one in mine if one.line <= last), default=-1.0)
            if len({one.count for one in mine if one.line > last and one.count > highest}) >= STEPS_OF_A_RUN:
                return True
        return False


def health_of(marks: Iterable[LogFind]) -> Health:
    """From a run's own marks ("training-step", "run-finished"; "best-model-loaded": more is read behind the end)."""
    counts: list[StepCount] = []
    end: LogFind | None = None
    for mark in marks:
        end = mark if mark.id == "run-finished" else None if mark.id == "best-model-loaded" else end
        if mark.id == "training-step":
            fields = mark.find.fields
            counts.extend(StepCount(mark.log, mark.number, name, _number(text)) for name, text in fields.items())
    return Health(end, tuple(counts))


def _number(text: object) -> float:
    plain = str(text)
    return float(plain.removesuffix("k")) * (1000 if plain.endswith("k") else 1)


class LoggedRun(Struct, frozen=True):
    """One run: its finds, how far it came, and what became of it."""

    placed: tuple[LogFind, ...]
    """What is evidence of how it went."""
    outlived: tuple[LogFind, ...]
    """Failures it caught, for it did several steps more after each, or only quoted."""
    health: Health
    judgement: Judgement
    lines: RunLines

    @property
    def tells(self) -> bool:
        """Whether it proves anything, or failed after some steps: a task that Ray tries again may only stumble."""
        return self.judgement.verdict != "unclear" or (self.judgement.cause is not None and bool(self.health.counts))


def newest_crash(
    placed: Sequence[LogFind], marks: Sequence[LogFind], runs: Sequence[RunLines]
) -> tuple[LoggedRun, tuple[LoggedRun, ...]]:
    """The run to judge, and the ones before it, newest first. `runs`: the lines of each, oldest first. A run that only
    just began, without a failure and without steps, does not hide the crash before it."""
    judged = [_judged(placed, marks, run) for run in reversed(runs)]
    failed = (i for i, run in enumerate(judged) if run.judgement.cause is not None)
    at = next((i for i, run in enumerate(judged) if run.tells), next(failed, 0))
    return judged[at], tuple(judged[at + 1 :])


def _ends_in_words(placed: Sequence[LogFind], health: Health) -> bool:
    """Whether somebody says, behind the last step, that memory ran out: such a run was not going on."""
    said = [one for one in placed if one.id in SAID]
    return any(all(one.line <= word.number for one in health.counts if one.log == word.log) for word in said)


def _judged(placed: Sequence[LogFind], marks: Sequence[LogFind], run: RunLines) -> LoggedRun:
    mine, own_marks = run.among(placed), run.among(marks)
    told = {one.place[:2] for one in mine if one.id in TOLD}  # "after the training finished" in somebody's sentence
    health = health_of(one for one in own_marks if one.place[:2] not in told)
    outlived = [one for one in mine if one.role in FAILURES and (health.outlived(one) or is_quoted(one))]
    caught = {id(one) for one in outlived}
    lasting = [one for one in mine if id(one) not in caught]
    readings = [one for one in own_marks if one.memory == "host" and one.role in ("telemetry", "warning")]
    judgement = judge(lasting, health.end is not None, health.going and not _ends_in_words(lasting, health), readings)
    return LoggedRun(tuple(lasting), tuple(outlived), health, judgement, run)


_BAR = regex(r"(?:^\s*|(?<=[^:] ))\d+%\|[^|]{0,200}\| ?(?P<done>\d+)/(?P<total>\d+)(?![^\]]{0,80} examples/s)")
_TOTAL = regex(r"Total optimization steps ?= ?(?P<total>\d[\d,]*)")
"""transformers@v4.57.1 trainer.py (_inner_training_loop): the total of its bar."""
_BEGINS = regex(r"\*{3,} ?Running training\b|\bStarting trainer\b")
"""transformers trainer.py; axolotl@v0.4.0 train.py: the next bar is the training's."""
_REPORTS = regex(r"\{['\"]loss['\"]: ")
"""transformers trainer.py (log) prints the loss between two counts of the training's bar."""
_LONG = regex(r"\[\d{1,4}:\d\d:\d\d<")
"""tqdm prints hours where more than one has passed: of one bar alone that is the training (judgement)."""
_MANY = 500
"""Counts of a bar without a title that nothing else explains, and that did not come to its end (judgement)."""
_NEAR = 3
"""Lines between a loss and the bar beside it."""


def training_bar(lines: Iterable[LogLine]) -> int | None:
    """The last count of the training's bar; None where nothing shows which of the bars it is, or there is none."""
    total: str | None = None
    begun, reported = False, -_NEAR - 1
    last: tuple[int, str, str] | None = None
    alone = False
    done: dict[str, int] = {}
    for number, line in enumerate(lines):
        if printed := _TOTAL.search(line.text):
            total, begun = printed["total"].replace(",", ""), True
        elif _BEGINS.search(line.text):
            total, begun = None, True
        if _REPORTS.search(line.text):
            reported = number
            if total is None and last is not None and number - last[0] <= _NEAR:
                total = last[2]
        if (bar := _BAR.search(glued_bar(line) or line.text)) is None:
            continue
        last = (number, bar["done"], bar["total"])
        many = int(bar["done"]) < int(bar["total"]) >= _MANY
        alone = many or _LONG.search(line.text, bar.end()) is not None
        if total is None and (begun or number - reported <= _NEAR):
            total = bar["total"]
        done[bar["total"]] = int(bar["done"])
    if total is None and alone and len(done) == 1:
        return next(iter(done.values()))
    return done.get(total) if total is not None else None
