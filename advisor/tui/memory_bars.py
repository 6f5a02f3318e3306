"""Draws stacked memory bars of one line: blocks with the letters of owners, "·" free, "|" the limit. Pure functions."""

from __future__ import annotations

from collections.abc import Container
from itertools import groupby

from advisor.hostile import cells
from advisor.language import Sayings, clauses, mark, say, say_count
from advisor.memory.cells import OWNERS, TITLES, Ledger, Owner, PhaseSum, Place
from advisor.memory.fit import ASIDE, ROOM_WORDS, Room, room_of
from advisor.plan.plan import Plan
from advisor.run.run import Run
from advisor.tui.gauge_strip import gib
from advisor.tui.ui_text import Row, Tone, Toned, TonedLine, flow, lead, line, pad, pad_left, paragraph, plain, span
from advisor.units import GIB
from advisor.words import PHASE_TITLES, Phase

_KINDS: dict[str, Tone] = {
    "states": "model",
    "gathered": "model",
    "models": "model",
    "batch": "batch",
    "engine": "engine",
}
NUMBER = 4
"""Columns of a number of gigabytes, so that the verdicts of all bars stand below each other."""
GAP = "  "
FREE, LIMIT = "·", "|"
BLOCK, SHADED, HATCH, UNEXPLAINED = "█", "▓", "░", OWNERS["unexplained"].letter
PLACE_WORDS: Sayings[Place] = Sayings({"gpu": "GPU", "host": "host"})


def stacked(of: PhaseSum | None, capacity: int | None, scale: int, width: int) -> str:
    """`width` columns standing for `scale` bytes; one letter a share of an owner, the limit at its place.

    Rounding is cumulative, so the letters end where the sum ends and no owner's rounding pushes the next one.
    """
    drawn = [FREE] * width
    if scale > 0 and of is not None:
        reached = 0
        for cell in of.cells:
            start, reached = reached, reached + max(cell.expected, 0)
            for column in range(_column(start, scale, width), _column(reached, scale, width)):
                drawn[column] = OWNERS[cell.owner].letter
    if capacity is not None and scale > 0:
        at = min(_column(capacity, scale, width), width - 1)
        drawn[at] = LIMIT
        for column in range(at + 1, width):
            drawn[column] = " " if drawn[column] == FREE else drawn[column]
    elif capacity is None:
        drawn = [" " if letter == FREE else letter for letter in drawn]  # what is free is not known
    return "".join(drawn)


def coloured(drawn: str, of: PhaseSum | None) -> TonedLine:
    """A bar in blocks, each begun by its owner's letter, in the colour of the owner's kind, with name and size where
    they fit; of two neighbours of one kind the second is shaded.

    What nothing explains is hatched, and never in the colour of what is good.
    """
    held = {OWNERS[cell.owner].letter: cell for cell in (of.cells if of is not None else ())}
    out: list[Toned] = []
    fill = BLOCK
    for letter, columns in groupby(drawn):
        count, cell = len(list(columns)), held.get(letter)
        if cell is None:
            out.append(Toned(letter * count, "dim" if letter == FREE else "strong"))
            continue
        tone = tone_of(cell.owner)
        fill = SHADED if fill == BLOCK and out and out[-1].tone == tone else BLOCK
        name = f" {TITLES[cell.owner]} {gib(of.of(cell.owner) if of is not None else None)} "
        name = name if cells(name) + 2 <= count else ""
        shade = HATCH if letter == UNEXPLAINED else fill
        out.append(Toned(letter + name + shade * (count - 1 - cells(name)), tone))
    return tuple(out)


def tone_of(owner: Owner) -> Tone:
    """The colour of an owner's kind."""
    return "bad" if owner == "unexplained" else _KINDS.get(OWNERS[owner].group, "plain")


def _column(count: int, scale: int, width: int) -> int:
    return min(width, round(count * width / scale))


def scale_of(before: PhaseSum | None, after: PhaseSum | None, capacity: int | None) -> int:
    """Bytes that the whole width stands for: the capacity, or more where something passes it."""
    sums = [of.expected for of in (before, after) if of is not None]
    largest = max(sums, default=0)
    if capacity is None:
        return 2 * largest  # half a bar: a full one would say that the memory is full
    return capacity if largest <= capacity else round(largest * 1.02)


_ROOM_TONES: dict[Room, Tone] = {
    "fits": "good",
    "passed": "good",
    "unsure": "warn",
    "tight": "warn",
    "over": "bad",
    "engine": "bad",
}


def figures(of: PhaseSum | None, capacity: int | None, plan: Plan) -> list[Toned]:
    """Like "26.1 of 40.0 G  fits": what is expected, the limit, and the verdict in words."""
    if of is None:
        return [Toned(" " + say("no such phase"), "dim")]
    used = pad_left(gib(of.expected), NUMBER)
    total = say("{used} of {total} G", used=used, total="?")
    if capacity is not None:
        longest = cells(say("{used} of {total} G", used="0" * NUMBER, total="0" * NUMBER))
        total = pad(say("{used} of {total} G", used=used, total=gib(capacity)), longest)
    return [Toned(f" {total}"), *_judged(of, capacity, plan)]


def _judged(of: PhaseSum, capacity: int | None, plan: Plan) -> list[Toned]:
    room = room_of(of, capacity, plan.fit_at(of, capacity), plan.margin)
    return [] if room is None else [Toned("  " + ROOM_WORDS[room], _ROOM_TONES[room])]


def pair(plan: Plan, place: Place, phase: Phase, width: int) -> list[Row]:
    """Before and after of one phase on one place: two lines, one where both are alike, none where the ledger does not
    know it."""
    before = plan.before.phase(place, phase) if plan.before else None
    after = plan.after.phase(place, phase) if plan.after else None
    if before is None and after is None:
        return []
    rooms = [_capacity(ledger, place) for ledger in (plan.before or plan.after, plan.after or plan.before)]
    scale = scale_of(before, after, max((room for room in rooms if room is not None), default=None))
    bar = max(8, width - 11 - 25)  # label before, figures behind
    out: list[Row] = []
    rows = ((PLACE_WORDS[place], say("now"), before), ("", say("after"), after))
    for (name, word, of), capacity in zip(rows, rooms, strict=True):
        drawn = (*coloured(stacked(of, capacity, scale, bar), of), *figures(of, capacity, plan))
        if out and out[0].line[1:] == drawn:
            word = say("both") if plan.selected() else say("now")
            return [Row((Toned(pad(PLACE_WORDS[place], 5) + pad(word, 6)), *drawn))]
        out.append(Row((Toned(pad(name, 5) + pad(word, 6)), *drawn)))
    return out


def _capacity(ledger: Ledger | None, place: Place) -> int | None:
    if ledger is None:
        return None
    return ledger.gpu_capacity if place == "gpu" else ledger.host_limit


def phases_of(plan: Plan) -> list[Phase]:
    """Phases the ledger knows, in its order, GPU first."""
    ledger = plan.before or plan.after
    if ledger is None:
        return []
    return list(dict.fromkeys(of.phase for of in (*ledger.gpu, *ledger.host)))


def first_phase(plan: Plan, crashed: Phase) -> Phase | None:
    """The phase to show first: the one that died, else the fullest on the GPU."""
    known = phases_of(plan)
    if crashed in known:
        return crashed
    ledger = plan.before or plan.after
    peak = (ledger.peak("gpu") or ledger.peak("host")) if ledger else None
    return peak.phase if peak else (known[0] if known else None)


def fullest_after(plan: Plan, shown: Phase | None, among: Container[Phase] | None = None) -> tuple[Phase, Place] | None:
    """Where memory is scarcest after the selected steps, as a share of its capacity; of equals `shown` wins.

    Short peaks outside the step do not count, as they do not for the fit. Where no capacity is known, the largest on
    a card. `among`: these phases alone; None or none of them known: all.
    """
    ledger = plan.after or plan.before
    if ledger is None:
        return None
    asked = [of for of in (*ledger.gpu, *ledger.host) if of.phase == shown or of.phase not in ASIDE[of.place]]
    asked = [of for of in asked if among is not None and of.phase in among] or asked
    sums = [
        (of.expected / capacity, of.phase == shown, of)
        for of in asked
        for capacity in (_capacity(ledger, of.place),)
        if capacity
    ]
    sums = sums or [(of.expected / GIB, of.phase == shown, of) for of in asked if of.place == "gpu"]
    if not sums:
        return None
    _, _, of = max(sums, key=lambda found: (round(found[0], 2), found[1]))
    return of.phase, of.place


def tightest_words(plan: Plan, shown: Phase | None) -> TonedLine:
    """Where another phase than the shown one is the fullest: which, and how full; () where it is this one."""
    found, ledger = fullest_after(plan, shown), plan.after or plan.before
    if found is None or ledger is None or found[0] == shown:
        return ()
    phase, place = found
    of = ledger.phase(place, phase)
    then = plan.before.phase(place, phase) if plan.before else None
    same = of is not None and then is not None and then.expected == of.expected
    return line(
        span("f", "mark"),
        "  " + say("fullest after: {place}", place=PLACE_WORDS[place]),
        *fullness(plan, place, phase),
        f"  {PHASE_TITLES[phase]}" + (" " + say("as before") if same else ""),
    )


def fullness(plan: Plan, place: Place, phase: Phase) -> TonedLine:
    """Like " 35.5 G  fits", after the plan: the verdict must not be cut away on a narrow line; () where not known."""
    ledger = plan.after or plan.before
    of = ledger.phase(place, phase) if ledger is not None else None
    if of is None:
        return ()
    return (Toned(f" {gib(of.expected)} G"), *_judged(of, _capacity(ledger, place), plan))


def phase_rows(plan: Plan, phase: Phase, width: int, places: tuple[Place, ...] = ("gpu", "host")) -> list[Row]:
    """One phase: its name, then GPU and host, each now and after."""
    bars = [row for place in places for row in pair(plan, place, phase, width)]
    aside = "  " + say("(a short peak outside the step)") if phase in ASIDE["host"] else ""
    return [Row(line(span(PHASE_TITLES[phase], "title"), span(aside, "dim"))), *bars] if bars else []


def legend(plan: Plan, phases: list[Phase], width: int) -> list[Row]:
    """The letters that are drawn, in words."""
    words: dict[str, str] = {}
    tones: dict[str, Tone] = {}
    for ledger in (plan.before, plan.after):
        for of in (*ledger.gpu, *ledger.host) if ledger else ():
            for cell in of.cells:
                if of.phase in phases and cell.expected > 0:
                    words.setdefault(OWNERS[cell.owner].letter, TITLES[cell.owner])
                    tones.setdefault(OWNERS[cell.owner].letter, tone_of(cell.owner))
    told = flow((f"{letter} {word}" for letter, word in words.items()), width, tone="dim", gap=GAP)
    return [Row(with_letters(plain(row.line), tones)) for row in told]


def with_letters(text: str, tones: dict[str, Tone]) -> TonedLine:
    """A line of the legend with each letter as the bars have it."""
    parts = [(piece, GAP if at else "") for at, piece in enumerate(text.split(GAP))]
    return tuple(
        part
        for piece, gap in parts
        for part in (Toned(gap), Toned(piece[:1], tones.get(piece[:1], "dim")), Toned(piece[1:], "dim"))
    )


def doubt_rows(run: Run, width: int, *, brief: bool = False) -> list[Row]:
    """What a missing file leaves in doubt of all sums, above them; `brief`: as much of each as two lines hold."""
    told = [lead(doubt, 2 * width - 8)[0] if brief else doubt for doubt in run.doubts]
    return [row for doubt in told for row in paragraph(doubt, width, tone="warn")]


def unexplained(plan: Plan, width: int) -> list[Row]:
    """Nothing to draw: which inputs are missing."""
    ledger = plan.before or plan.after
    missing = clauses(ledger.missing) if ledger else ""
    missing = missing or say("the run or the machine is not known well enough")
    return paragraph(say("Memory cannot be counted; what is missing: {missing}", missing=missing), width, tone="dim")


def fit_words(plan: Plan) -> Toned:
    """Whether the selected steps fit, in one clause."""
    chosen = say_count("{number} change on", "{number} changes on", len(plan.selected()))
    if plan.fit.fits_beside == "host":
        enough = mark("{changes}: the cards suffice; the nodes' RAM is not known")
        perhaps = mark("{changes}: the cards may suffice; the nodes' RAM is not known")
        return Toned(say(perhaps if plan.fit.doubted else enough, changes=chosen), "warn")
    if plan.fits is None:
        return Toned(say("{changes}: whether that fits cannot be computed", changes=chosen), "warn")
    if plan.fit.verdict == "may_not_fit":
        return Toned(
            say("{changes}: may fit with {margin:.0%} margin, not certain", changes=chosen, margin=plan.margin), "warn"
        )
    if plan.fits:
        return Toned(say("{changes}: fits with {margin:.0%} margin", changes=chosen, margin=plan.margin), "good")
    return Toned(say("{changes}: does not fit with {margin:.0%} margin", changes=chosen, margin=plan.margin), "bad")
