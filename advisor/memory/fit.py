"""Judges whether a predicted run fits, phase by phase and place by place: the one answer that every face shows.

Against: the walls of the machine (`Ledger.gpu_capacity`, `Ledger.host_limit`) less the margin. For: what a log proves
that the run passed. The thresholds stand in `standing` and `fit_of` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.language import Sayings
from advisor.memory.batches import LENGTHS
from advisor.memory.calibrate import Correction
from advisor.memory.cells import ENGINE, Ledger, Owner, PhaseSum, Place, owners_of
from advisor.memory.constants import ASSUMED_SHARE
from advisor.memory.inputs import SHARE, unread_parts
from advisor.run.run import Run
from advisor.words import NOW_AND_THEN, ONCE, PHASE_TABLE, PHASES, Phase

FitVerdict = Literal["fits", "may_not_fit", "does_not_fit", "cannot_be_said"]
Standing = Literal["fits", "over", "engine", "lived_through", "set_aside"]
"""Of one phase; "engine": its rollout engine cannot start, whatever room there is beside it."""
Room = Literal["fits", "unsure", "tight", "over", "passed", "engine"]
"""What a phase leaves of its place: "tight" eats into the margin, of "unsure" the verdict says what it hangs on."""
Reason = Literal[
    "over", "engine", "gpus", "high", "lengths", "near", "shape", "set_aside", "inputs", "capacity", "phase",
    "unexplained", "contradicted", "launch", "unread",
]  # fmt: skip
"""Why it does not fit (the first three), may not (the next five), or why nobody can say (the rest)."""

_DOUBTS: dict[Reason, int] = {"unexplained": 0, "set_aside": 1}
"""What is told first of a run that may not fit."""
ROOM_WORDS: Sayings[Room] = Sayings(
    {
        "fits": "fits",
        "unsure": "unsure",
        "tight": "tight",
        "over": "too much",
        "passed": "passed",
        "engine": "cannot start",
    }
)
_GUESSED: dict[str, tuple[Owner, ...]] = {
    SHARE: ENGINE,
    **dict.fromkeys(LENGTHS, owners_of("batch")),
}
"""Owners whose bytes are a guess, not the least that may be, where a setting could not be read."""
PLACES: tuple[Place, ...] = ("gpu", "host")
ASIDE: dict[Place, tuple[Phase, ...]] = {"gpu": (), "host": ("model_load", "checkpoint")}
"""Short peaks outside the step: what a log measured in the step beyond the prediction is not known to be there too."""


_ALIKE: tuple[Phase, ...] = ("optimizer_step",)
"""Phases that hold the same in each step: no batch goes through them."""


class Died(Struct, frozen=True):
    """Where the run of the log ran out: what it passed before that is proven, as long as nothing is added to it."""

    place: Place | None
    """None: neither (shared memory), so every phase of both was lived with."""
    phase: Phase
    """"unknown" where the log does not show it: then no phase of the place is proven."""
    first_step: bool = False
    """The optimizer had not made its state yet, so a phase that will hold it was not passed with it."""
    by_log: bool = True
    """False: only the user says so, which proves of no phase that the run passed it."""
    stepped: bool = True
    """A whole step was done before, so each of its phases was passed once."""
    among: tuple[Phase, ...] = ()
    """The phases that the log leaves open, where it shows some: what comes before all of them was passed."""


class Walls(Struct, frozen=True):
    """What a ledger is held against. `lived`: the ledger of the run as the log saw it; None where no log counts."""

    margin: float
    """Fraction of every capacity to be left free."""
    shared: bool = True
    """Engine and trainer use the same cards; an engine on cards of its own takes its share without a margin."""
    died: Died | None = None
    lived: Ledger | None = None
    unexplained: tuple[Correction, ...] = ()
    """What the crash needed and no setting explains: with it in the dark, no change is known to be enough."""
    seen: bool = True
    """False: neither launch nor log shows a setting, so the ledger is one of defaults."""


class FitFinding(Struct, frozen=True):
    """One thing that speaks against the run, or that nobody knows of it."""

    reason: Reason
    place: Place
    phase: Phase = "unknown"
    expected: int = 0
    """Bytes; the GPUs asked for, where the reason is "gpus"."""
    high: int = 0
    """Bytes at the upper end of the interval."""
    capacity: int = 0
    """Bytes of the place; the GPUs there are, where the reason is "gpus"."""
    short: int = 0
    """Bytes (GPUs) that are missing, the margin included; 0 where that cannot be said."""
    low: int = 0
    """Bytes at the lower end of the interval."""
    rows: int = 0
    """Tokens that the rows of a pass may have on average before it is full; 0 where they do not decide."""
    at_cap: int = 0
    """Bytes where every row is as long as its cap, the formulas right."""
    key: str = ""
    """The setting that nobody could read."""
    decides: Owner | None = None
    """Whose bytes decide it: the largest where it is over, the least certain where it may be."""


class Fit(Struct, frozen=True):
    """Whether a run fits, with what decides it, and which phases were left out of account and why."""

    verdict: FitVerdict
    findings: tuple[FitFinding, ...] = ()
    """What the verdict rests on, the worst first; () where it fits."""
    lived_through: tuple[tuple[Place, Phase], ...] = ()
    """Over by prediction, but the run passed them and they do not grow."""
    set_aside: tuple[tuple[Place, Phase], ...] = ()
    """Short peaks that are over only by what the log measured elsewhere."""
    perhaps: tuple[FitFinding, ...] = ()
    """Phases of a known place that may be over, whatever decides, the worst first."""

    @property
    def doubted(self) -> bool:
        """Whether a phase whose place is known may be over."""
        return bool(self.perhaps)

    @property
    def worst(self) -> FitFinding | None:
        """What decides."""
        return self.findings[0] if self.findings else None

    @property
    def of_defaults(self) -> bool:
        """No setting of the run was seen: its sums are those of the framework's defaults, and not the run's."""
        return any(one.reason == "launch" for one in self.findings)

    @property
    def fits_beside(self) -> Place | None:
        """The place whose size is not known, where it fits the other one and nothing else stands in doubt."""
        if self.verdict != "cannot_be_said" or {one.reason for one in self.findings} != {"capacity"}:
            return None
        places = {one.place for one in self.findings}
        return places.pop() if len(places) == 1 else None

    @property
    def fits(self) -> bool | None:
        """The contract's word: what only may not fit counts as fitting."""
        return None if self.verdict == "cannot_be_said" else self.verdict != "does_not_fit"


def capacity_of(ledger: Ledger, place: Place) -> int | None:
    """Bytes of one place; None where the machine is not known."""
    return ledger.gpu_capacity if place == "gpu" else ledger.host_limit


def limit_of(now: PhaseSum, capacity: int, walls: Walls) -> int:
    """Bytes that a phase may take."""
    free = walls.shared or now.has_trainer or _died_here(now, walls)
    return int(capacity * (1 - walls.margin)) if free else capacity


def counted(now: PhaseSum, walls: Walls) -> int:
    """Expected bytes that count: of a short peak outside the step, without what the log measured in the step."""
    if now.phase not in ASIDE[now.place] or _died_here(now, walls):
        return now.expected
    return now.expected - sum(cell.expected for cell in now.cells if cell.owner == "unexplained")


def standing(now: PhaseSum, capacity: int, walls: Walls) -> Standing:
    """How one phase stands: over where even the expected bytes leave less than the margin, unless it was lived with."""
    limit, stuck = limit_of(now, capacity, walls), cannot_start(now)
    if stuck or counted(now, walls) > limit:
        return "lived_through" if _lived(now, walls) else "engine" if stuck else "over"
    return "set_aside" if now.expected > limit else "fits"


def room_of(now: PhaseSum, capacity: int | None, fit: Fit, margin: float) -> Room | None:
    """What a phase leaves of its place, as the verdict judges it; None where the capacity is not known."""
    where = (now.place, now.phase)
    unsaid = fit.verdict == "cannot_be_said"
    of_all = unsaid and any(one.place == now.place and one.reason != "unexplained" for one in fit.findings)
    named = any((one.place, one.phase) == where for one in fit.findings)  # the verdict names this very phase
    doubted = named or of_all or unsaid > bool(fit.findings)
    if where in fit.lived_through:
        if capacity is None:
            return "passed" if cannot_start(now) else None
        if now.measured and now.expected > capacity:
            return "over"  # so much was in use: this is not where the run was
        return "unsure" if doubted or now.low > capacity else "passed"
    if cannot_start(now):
        return "engine"
    if capacity is None:
        return None
    if where in fit.set_aside:
        return "unsure"
    if now.expected > capacity * (1 - margin):
        return "over" if now.expected >= capacity else "tight"
    return "unsure" if doubted or _over_if_it_grows(now, capacity) else "fits"


def _over_if_it_grows(now: PhaseSum, capacity: int) -> bool:
    """Whether what nothing explains, which may grow as well as stay, would be too much at twice its size."""
    return now.expected + now.of("unexplained") > capacity


def unfit(ledger: Ledger, place: Place, walls: Walls) -> list[Phase] | None:
    """Phases of a place that do not fit; None where it cannot be computed."""
    capacity, sums = capacity_of(ledger, place), ledger.sums(place)
    if capacity is None or not sums:
        return None
    return [now.phase for now in sums if standing(now, capacity, walls) in ("over", "engine")]


def fit_of(ledger: Ledger, walls: Walls, run: Run, gpus: tuple[int, int] | None = None) -> Fit:
    """The verdict. `gpus`: how many are asked for and how many there are, where that is too few.

    Does not fit: the expected bytes of a phase leave less than the margin, the engine cannot start, GPUs are too few.
    Cannot be said: a capacity is not known, a setting on which a main part rests could not be read, much of what the
    crash needed is explained by nothing, the run passed a phase that cannot fit by prediction, or nothing shows in
    which phase it died and the prediction shows none. May not fit: the upper end of a phase's interval is above what
    the place has, or a phase that cannot fit by prediction was passed in the place that did not run out.
    """
    against: list[FitFinding] = []
    perhaps: list[FitFinding] = []
    unknown: list[FitFinding] = [] if ledger.gpu or ledger.host else [FitFinding("inputs", "gpu")]
    dark = {(one.place, one.phase) for one in walls.unexplained if not one.is_level}
    for one in walls.unexplained:
        found = FitFinding("unexplained", one.place, one.phase, short=one.unexplained)
        (perhaps if one.is_level else unknown).append(found)
    skipped: dict[Standing, list[tuple[Place, Phase]]] = {"lived_through": [], "set_aside": []}
    for place in PLACES:
        capacity = capacity_of(ledger, place)
        if capacity is None:
            grown = [now for now in ledger.sums(place) if not _lived(now, walls)]
            if grown:
                most = max(grown, key=lambda now: now.expected)
                # where it died it had passed some phases: what is counted may be too much for what there was
                ran = walls.died is not None and walls.died.place == place and len(grown) < len(ledger.sums(place))
                need = 0 if ran else int(most.expected / (1 - walls.margin))
                unknown.append(FitFinding("capacity", place, most.phase, most.expected, most.high, short=need))
            continue
        for now in ledger.sums(place):
            stands = standing(now, capacity, walls)
            if stands in skipped:
                skipped[stands].append((place, now.phase))
            if stands == "lived_through" and now.low > capacity:
                ran_out = walls.died is None or walls.died.place in (None, place)
                found = FitFinding("contradicted", place, now.phase, now.low, now.high, capacity)
                (unknown if ran_out else perhaps).append(found)
            if stands == "over" and (place, now.phase) in dark and _lies_in_the_dark(now, capacity, walls):
                continue
            if stands in ("over", "engine"):
                against.append(_finding("engine" if stands == "engine" else "over", now, capacity, walls, run))
            elif stands == "set_aside":
                perhaps.append(_finding("set_aside", now, capacity, walls, run))
            elif stands == "fits" and _highest(now, walls) > capacity and not _lived(now, walls):
                found = _finding("high", now, capacity, walls, run)
                perhaps.append(replace(found, reason="lengths") if found.rows else found)
            elif stands == "fits" and _over_if_it_grows(now, capacity) and not _lived(now, walls):
                perhaps.append(FitFinding("unexplained", place, now.phase, short=now.of("unexplained")))
    wrong = {one.place for one in unknown if one.reason == "contradicted"}  # whose sums are not the run's
    against = [one for one in against if one.place not in wrong]
    against.sort(key=lambda one: (one.reason != "engine", _came_later(one, walls), -one.short))
    perhaps.sort(key=lambda one: (_DOUBTS.get(one.reason, len(_DOUBTS)), -one.short))
    if gpus is not None:
        against.insert(0, FitFinding("gpus", "gpu", expected=gpus[0], capacity=gpus[1], short=gpus[0] - gpus[1]))
    elif not against and not unknown and _unexplained(walls):
        unknown.append(FitFinding("phase", walls.died.place or "gpu" if walls.died is not None else "gpu"))
    if unread := unread_parts(run):  # what is too much without a part, or with the least of it, is so with it
        guessed = {owner for knob in unread for owner in _GUESSED.get(knob.name, ())}
        against = [one for one in against if one.decides not in guessed]
        unknown += [FitFinding("unread", "gpu", key=knob.key) for knob in unread]
    if not walls.seen:
        against, unknown = [], [FitFinding("launch", "gpu")]
    decisive = against or unknown or perhaps
    verdict: FitVerdict = "does_not_fit" if against else "cannot_be_said" if unknown else "fits"
    return Fit(
        "may_not_fit" if decisive and verdict == "fits" else verdict,
        tuple(decisive),
        tuple(skipped["lived_through"]),
        tuple(skipped["set_aside"]),
        tuple(perhaps),
    )


def of_estimate(fit: Fit, walls: Walls, run: Run) -> Fit:
    """The verdict of a run that nobody has seen run: it does not fit only where the lower end of a phase's interval is
    above what the place has, and where the model's shape is no guess. A plan keeps to what is expected, with its
    margin."""
    if fit.verdict != "does_not_fit" or walls.died is not None or any(one.reason == "gpus" for one in fit.findings):
        return fit
    if run.model is not None and run.model.basis == "estimated":
        return replace(fit, verdict="may_not_fit", findings=tuple(replace(one, reason="shape") for one in fit.findings))
    if any(one.reason != "over" or one.low > one.capacity for one in fit.findings):
        return fit
    near = (replace(one, reason="lengths" if one.rows else "near") for one in fit.findings)
    return replace(fit, verdict="may_not_fit", findings=tuple(near))


def worst_of_each_place(findings: Sequence[FitFinding]) -> list[FitFinding]:
    """One finding of a kind and place: the others are relieved with it or say no more."""
    return list({(one.place, one.reason): one for one in reversed(findings)}.values())[::-1]


def cannot_start(now: PhaseSum) -> bool:
    """Whether the rollout engine has no room for its cache in this phase."""
    return any(cell.kind == "cannot_start" for cell in now.cells)


def died_in(before: Ledger, place: Place, phase: Phase, shared: bool = True, stepped: bool = False) -> Phase:
    """The phase that ran out: the one the log shows, else the fullest by prediction, of the trainer's own cards where
    the engine does not share them; after a step none that comes before it."""
    if before.phase(place, phase) is not None:
        return phase
    before = before.within_steps() if stepped else before
    peak = before.peak(place) if shared else before.crowded(place)
    return peak.phase if peak is not None else "unknown"


def _finding(reason: Reason, now: PhaseSum, capacity: int, walls: Walls, run: Run) -> FitFinding:
    over = now.expected - limit_of(now, capacity, walls)
    high = _highest(now, walls)
    short = _engine_short(now, capacity, run) if reason == "engine" else high - capacity if reason == "high" else over
    size = (lambda cell: cell.high - cell.expected) if reason == "high" else (lambda cell: cell.expected)
    largest = max(now.cells, key=size, default=None)
    owner: Owner | None = "kv_cache" if reason == "engine" else largest.owner if largest is not None else None
    rows = _rows_that_fit(now, limit_of(now, capacity, walls)) if reason in ("over", "high") else 0
    finding = FitFinding(reason, now.place, now.phase, now.expected, high, capacity, short, decides=owner)
    return replace(finding, low=now.low, rows=rows, at_cap=now.by_data[1])


def rows_that_fill(now: PhaseSum, capacity: int) -> int:
    """Tokens of a row on average with which the phase takes `capacity` bytes, beyond its cap, too; 0: none does."""
    least, most = now.by_data
    if now.rows is None or most <= least:
        return 0
    return max(0, round(now.rows.low + (now.rows.high - now.rows.low) * (capacity - least) / (most - least)))


def _rows_that_fit(now: PhaseSum, limit: int) -> int:
    """Tokens that the rows of the phase's pass may have on average below `limit` bytes; 0 where every length fits, or
    none. Between the ends a pass grows with its tokens."""
    if now.rows is None:
        return 0
    least, most = now.by_data
    at = [(now.rows.low, least), (now.rows.expected, now.expected), (now.rows.high, most)]
    for (fewer, below), (longer, above) in pairwise(at):
        if below <= limit < above:
            return int(fewer + (longer - fewer) * (limit - below) / (above - below))
    return 0


def _lies_in_the_dark(now: PhaseSum, capacity: int, walls: Walls) -> bool:
    """Whether a phase that holds less than when it died has room for all of it that settings explain."""
    then = walls.lived.phase(now.place, now.phase) if walls.lived is not None else None
    known = now.expected - now.of("unexplained")
    return then is not None and now.expected < then.expected and known <= limit_of(now, capacity, walls)


def _highest(now: PhaseSum, walls: Walls) -> int:
    return now.high - now.expected + counted(now, walls)


def _engine_short(now: PhaseSum, capacity: int, run: Run) -> int:
    """Bytes by which the engine's share is below its weights and its start-up pass; 0 where the cache alone is short.
    SGLang's share holds weights and cache alone; vLLM takes a profiling pass out of it, too."""
    share = run.number("rollout.memory_share") or ASSUMED_SHARE
    profiles = str(run.value("rollout.engine") or "").lower() != "sglang"
    held = sum(
        cell.expected
        for cell in now.cells
        if cell.owner == "engine_weights" or (profiles and cell.owner == "engine_rest" and not cell.kind)
    )
    return max(0, held - int(share * capacity))


def _died_here(now: PhaseSum, walls: Walls) -> bool:
    return walls.died is not None and (walls.died.place, walls.died.phase) == (now.place, now.phase)


def _lived(now: PhaseSum, walls: Walls) -> bool:
    """Whether a log shows that the run passed this phase with no less in it."""
    died = walls.died
    then = walls.lived.phase(now.place, now.phase) if walls.lived is not None else None
    if died is None or not died.by_log or then is None or now.expected > then.expected:
        return False
    if cannot_start(now) and not cannot_start(then):
        return False
    if died.first_step and any(
        cell.owner in ("optimizer", "offloaded_optimizer") and cell.expected for cell in now.cells
    ):
        return False
    among = (died.phase,) if died.phase != "unknown" else died.among
    earlier = bool(among) and all(_rank(now.phase) < _rank(phase) for phase in among)
    alike = now.phase in (*_ALIKE, *ONCE) and now.phase != died.phase  # in each step that was done, or before it
    return earlier or (died.stepped and (alike or died.place != now.place))


def _came_later(one: FitFinding, walls: Walls) -> bool:
    """Whether it is of a phase that comes now and then, where the log shows steps and not in which phase they ended."""
    died = walls.died
    unseen = died is not None and died.by_log and died.stepped and (died.place, died.phase) == (one.place, "unknown")
    return unseen and one.phase in NOW_AND_THEN


def _rank(phase: Phase) -> int:
    place = PHASE_TABLE[phase].first_step
    return len(PHASES) if place is None else place


def _unexplained(walls: Walls) -> bool:
    """The log does not show where it died, and by prediction the run as the log saw it fits there."""
    died, lived = walls.died, walls.lived
    if died is None or lived is None or died.place is None or lived.phase(died.place, died.phase) is not None:
        return False
    return capacity_of(lived, died.place) is not None and not unfit(lived, died.place, walls)
