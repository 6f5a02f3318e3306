"""Samples a run in several rhythms: ten readings a second into the ring, the highest of each second into the record."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import thread_time

from msgspec import Struct, field

from advisor.hostile import clean_line
from advisor.language import say
from advisor.units import MIB
from advisor.watch.gauges import NOBODY, STORE, Gauge, HostGauges, Pace, shown_name
from advisor.watch.gpu_gauges import GpuGauges
from advisor.watch.process_tree import ProcessTree
from advisor.watch.progress import OutputProgress
from advisor.watch.record import Record, Ring
from advisor.watch.record_files import LONGEST
from advisor.watch.system_logs import KillCounts

FAST, WHOLE = 0.1, 0.5
"""Seconds from one row of the ring to the next, and from one reading of all of the host's gauges to the next."""
_BEAT_SHARE = 0.0015
_RHYTHMS = {"gpus": (FAST, 0.001), "slow": (1.0, 0.0007), "processes": (5.0, 0.0005), "marks": (0.2, 0.001)}
"""Seconds from one to the next, and the share of one processor's time that they may take: 0.5 % with the beat's."""
_MEASURED = 8
"""Of so many fast readings, one is timed."""
_PATIENCE = 1.5
"""Seconds that a run which ended at once waits for the patterns of its phases, before they are read in its process."""
_Holder = tuple[str, str, int, int | None]
"""Kind of gauge, role, process id, card."""
_FREELY, _MOST, _LARGE = 500, 4000, 256 * MIB
"""Columns that processes get whatever they hold; columns for those that hold so many bytes; bytes."""
_TROUBLED = 10
"""After a reading that failed, so many times the usual wait."""
_CALM = 0.02
"""Of a gauge's size: so far it must fall below the level before it can be alerted of again."""


class Sampler(Struct):
    """Everything that is read. `began` is on the monotonic clock."""

    record: Record
    host: HostGauges
    gpus: GpuGauges
    processes: ProcessTree
    progress: OutputProgress
    began: float
    alert: float | None = None
    """Share of a gauge's size from which on the user is told."""
    tell: Callable[[str], None] = print
    before: KillCounts = KillCounts()
    """What the kernel had counted when the run began."""
    on_alert: Callable[[str, float], None] | None = None
    """Gets the gauge's name and how full it is, where the user is told."""
    on_steps: Callable[[Path], None] | None = None
    """Gets the record's folder when half as many steps again were counted as at the last time."""
    gauges: list[Gauge] = field(default_factory=list)
    peaks: dict[int, int] = field(default_factory=dict)
    """Highest of each fixed gauge, by its place, over the whole run."""
    oom_kills: int = 0
    latest: float = 0.0
    trouble: str = ""
    """The first reading that failed, and why."""
    recent: deque[list[int | None]] = field(default_factory=lambda: deque(maxlen=20))
    """The fixed gauges of the last seconds."""
    _values: list[int | None] = field(default_factory=list)
    """The fixed gauges now."""
    _shown: int | None = None
    """Bytes of the gauge that is always read, when all of the host's were read last."""
    _whole_due: float = 0.0
    _step: int = MIB
    """Bytes by which that gauge moves before all are read at once."""
    _ring: Ring | None = None
    _highest: dict[int, int | None] = field(default_factory=dict)
    """Of each fixed gauge, by its place, since the last sample."""
    _numbers: list[int] = field(default_factory=list)
    """The column of each fixed gauge in the record."""
    _columns: dict[_Holder, int] = field(default_factory=dict)
    _alive: dict[_Holder, int] = field(default_factory=dict)
    """Of the columns, those whose process was there at the last sample."""
    _counted: dict[str, int] = field(default_factory=dict)
    """Counter → how often the output moved it."""
    _look_at: int = 2
    """Steps at which the record is looked at next."""
    _alerted: set[int] = field(default_factory=set)
    _kills: list[int | None] = field(default_factory=list)
    _paces: dict[str, Pace] = field(default_factory=dict)
    _beat: Pace = field(default_factory=lambda: Pace(FAST, _BEAT_SHARE))
    _beats: int = 0
    _apart: float = 0.0
    """Seconds of processor time that the cards take in their own thread, for this beat."""
    _due: float = 0.0
    """When anything but the fast readings is due."""

    def open(self) -> None:
        """Find the gauges and make the ring. Raises OSError."""
        self._paces = {"fast": self._beat, **{name: Pace(*rhythm) for name, rhythm in _RHYTHMS.items()}}
        self.gpus.open()
        self.gauges = [*self.host.gauges, Gauge("store", STORE), *self.gpus.gauges]
        self._values = [None] * len(self.gauges)
        self._step = max(MIB, (self.gauges[self.host.first].total or 0) // 1024)
        counted = [self.before.in_groups.get(group) for group in self.host.groups[: self.host.charged]]
        self._kills = [self.host.kills(place) if known is None else known for place, known in enumerate(counted)]
        self._numbers = [self.record.column(gauge) for gauge in self.gauges]
        self._ring = Ring.create(self.record.folder, len(self.gauges))

    def _join_gpus(self) -> None:
        """Cards of a driver that took its time: their gauges stand last, the ring begins anew with them."""
        for gauge in self.gpus.join():
            self.gauges.append(gauge)
            self._numbers.append(self.record.column(gauge))
        missing: list[int | None] = [None] * (len(self.gauges) - len(self._values))
        if not missing:
            return
        self._values = [*self._values, *missing]
        self.recent = deque(([*row, *missing] for row in self.recent), self.recent.maxlen)
        ring = self._ring
        if ring is not None:
            self._ring = None
            ring.close()
            self._ring = Ring.create(self.record.folder, len(self.gauges))

    def tick(self, now: float) -> None:
        """Whatever is due at `now` (monotonic). A reading that fails costs readings, never the run."""
        try:
            self._tick(now)
        except Exception as error:  # noqa: BLE001 - no fault of ours ends the run
            for pace in self._paces.values():
                pace.due = max(pace.due, now + _TROUBLED * pace.every)
            self._troubled(error)

    def hear(self, data: bytes) -> None:
        """More output of the command. What cannot be read of it costs its phases, never the run."""
        try:
            self.progress.feed(data)
        except Exception as error:  # noqa: BLE001 - no fault of ours ends the run
            self._troubled(error)

    def _troubled(self, error: Exception) -> None:
        if not self.trouble:
            self.trouble = clean_line(f"{type(error).__name__}: {error}", 200)
            self.record.mark(self.latest, trouble=self.trouble)

    def _tick(self, now: float) -> None:
        self.latest = now - self.began
        fast = self._beat
        if now < fast.due:  # the other rhythms keep to its beat: fewer wake-ups
            return
        self._beats += 1
        if self._beats % _MEASURED == 0:  # asking what it cost costs, too
            begun = thread_time()
            self._fast(now)
            fast.ran(now, thread_time() - begun + self._apart)
        else:
            self._fast(now)
            fast.again(now)
        pace = self._paces["marks"]
        if self.progress.has_news and pace.is_due(now):
            if self.progress.is_ready():
                pace.run_if_due(now, self.take_marks)
                self._look()  # its cost is none of the marks': they would come minutes late
            else:
                pace.due = now + pace.every
        if now >= self._due:
            self._paces["processes"].run_if_due(now, self._refresh_processes)
            self._paces["slow"].run_if_due(now, self._slow)
            self._due = min(self._paces["processes"].due, self._paces["slow"].due)

    def wait(self, now: float) -> float:
        """Seconds until something is due."""
        return max(0.0, self._beat.due - now)

    def finish(self, now: float, failed: bool) -> None:
        """The last readings; of a run that failed, in the phase that its last lines tell."""
        self.latest = now - self.began
        self._take(self.host.read(slow=False), self.gpus.last())
        self.progress.await_ready(_PATIENCE if failed else 0.0)
        self.take_marks()
        self._look()
        self._slow()
        self._count_kills()
        self.record.flush(self.latest)

    def take_marks(self) -> None:
        """Phases and steps in the output since the last look; what was read before belongs to the phase before."""
        for mark in self.progress.marks():
            if mark.phase is not None:
                self.record.sample(self.latest, self._taken())
                self.record.flush(self.latest)
                self.record.mark(self.latest, phase=mark.phase)
            else:
                self.record.mark(self.latest, counter=mark.counter, count=mark.count)
                self._counted[mark.counter] = self._counted.get(mark.counter, 0) + (mark.counter != LONGEST)

    def _look(self) -> None:
        """Hand the record over to be looked at; ever more rarely, so that it costs little whatever it costs."""
        steps = max(self._counted.values(), default=0)
        if self.on_steps is not None and steps >= self._look_at:
            self._look_at = steps + max(1, steps // 2)
            self.record.flush(self.latest)
            self.on_steps(self.record.folder)

    def _fast(self, now: float) -> None:
        """Into the ring: the gauge that tells of the run first, and all of the host's where it moved or it is time."""
        cards, quick, first = self._read_gpus(now), self.host.quick(), self.host.first
        before = self._shown
        if quick is None or before is None or abs(quick - before) >= self._step or now >= self._whole_due:
            self._take(self.host.read(slow=False), cards)
            self._shown, self._whole_due = self._values[first], now + WHOLE
        elif cards is not None:
            self._take([*self._values[:first], quick, *self._values[first + 1 : len(self.host.gauges)]], cards)
        elif quick // MIB == (self._values[first] or -1) // MIB:
            self.recent.append(self._values)
            if self._ring is not None:
                self._ring.again(self.latest)
        else:
            self._keep([*self._values[:first], quick, *self._values[first + 1 :]])
            self._raise(first, quick)

    def _read_gpus(self, now: float) -> list[int | None] | None:
        """None where there are none, or nothing new is known."""
        pace = self._paces["gpus"]
        if not self.gpus.gauges:
            self._join_gpus()
            return None
        due = pace.is_due(now)
        found = self.gpus.read(due)
        self._apart = self.gpus.cost if due else 0.0
        if due:
            pace.ran(now, self._apart)
        if self.gpus.silent and found:
            self.record.mark(self.latest, trouble="NVML does not answer")
        return found

    def _take(self, host: list[int | None], cards: list[int | None] | None) -> None:
        """A row of the host's gauges and the cards'; None: these have the values they had."""
        count = len(host)
        values = [*host, self.processes.in_store(), *(cards or self._values[count + 1 :])]
        self._keep(values)
        for column, value in enumerate(values):
            self._raise(column, value)

    def _keep(self, values: list[int | None]) -> None:
        self._values = values
        self.recent.append(values)
        if self._ring is not None:
            self._ring.put(self.latest, values)

    def _raise(self, column: int, value: int | None) -> None:
        """The highest of this second and of the run, and the alert."""
        before = self._highest.get(column)
        self._highest[column] = value if before is None or value is None else max(before, value)
        if value is not None:
            self.peaks[column] = max(self.peaks.get(column, 0), value)
            if self.alert is not None:
                self._alert(column, value, self.alert)

    def _slow(self) -> None:
        self._take(self.host.read(slow=True), None)
        self.record.sample(self.latest, {**self._taken(), **self._of_processes()})
        self._count_kills(own_only=True)

    def _taken(self) -> dict[int, int | None]:
        """Column → the highest value since it was asked last."""
        highest, self._highest = self._highest, {}
        return {self._numbers[place]: value for place, value in highest.items()}

    def _refresh_processes(self) -> None:
        self.processes.refresh({pid for _, pid in self.gpus.holders()})
        self._count_kills()
        self.progress.is_ready()

    def _of_processes(self) -> dict[int, int | None]:
        """What each process holds; those that are gone are marked so once."""
        name = self.processes.names.get
        found: dict[_Holder, int] = {
            ("rss", name(pid, NOBODY), pid, None): size for pid, size in self.processes.held().items()
        }
        for (card, pid), size in self.gpus.holders().items():
            found["gpu_process", name(pid, NOBODY), pid, card] = size
        gone = {column: None for key, column in self._alive.items() if key not in found}
        for key, size in found.items():
            count = len(self._columns)  # some runs start a process each second, for days: of many, only the large ones
            if key not in self._columns and (count < _FREELY or (size >= _LARGE and count < _MOST)):
                kind, role, pid, gpu = key
                self._columns[key] = self.record.column(Gauge(kind, role, None, pid, gpu))
        self._alive = {key: self._columns[key] for key in found if key in self._columns}
        return {**gone, **{column: found[key] for key, column in self._alive.items()}}

    def _count_kills(self, own_only: bool = False) -> None:
        """Since the run began. A kill is counted in its own group and in those above: the highest count is all."""
        for place, before in enumerate(self._kills[:1] if own_only else self._kills):
            kills = self.host.kills(place)
            more = 0 if kills is None or before is None else kills - before - self.oom_kills
            if more > 0:
                self.record.mark(self.latest, oom_kills=more, group=self.host.groups[place].folder)
                self.oom_kills += more

    def _alert(self, column: int, value: int, level: float) -> None:
        gauge = self.gauges[column]
        if not gauge.total:
            return
        if value >= level * gauge.total and column not in self._alerted:
            self._alerted.add(column)
            self.record.mark(self.latest, alert=self._numbers[column], mib=value // MIB)
            told = {"gauge": shown_name(gauge.name), "share": value / gauge.total, "total": gauge.total / 2**30}
            self.tell(say("{gauge}: {share:.1%} of {total:.1f} GiB in use", **told))
            if self.on_alert is not None:
                self.on_alert(shown_name(gauge.name), value / gauge.total)
        elif value < (level - _CALM) * gauge.total:
            self._alerted.discard(column)

    def close(self) -> None:
        for one in (self.host, self.gpus, self.processes, self.record):
            one.close()
        if self._ring is not None:
            self._ring.close()
