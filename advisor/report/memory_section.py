"""Writes the short report's sums: what a record measured, else who holds the phase that died, else phase by phase."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from advisor.language import say
from advisor.memory.cells import TITLES, Owner, PhaseSum, Place
from advisor.memory.fit import capacity_of, worst_of_each_place
from advisor.memory.ledger import implausible, refuted
from advisor.report import phrases
from advisor.report.layout import section, table, wrap
from advisor.report.record_report import record_lines
from advisor.report.sharding_report import sharding_section
from advisor.units import show_gib
from advisor.words import PHASE_TITLES, Phase

if TYPE_CHECKING:
    from advisor.state import State

HOLDERS, PHASES = 3, 4
"""Owners shown at the least, phases at most."""
LEFT = 0.15
"""Of the phase: what is more has names (judgement)."""
SMALL = 0.25
"""Of the fullest phase; one below it did not die."""
FAR = 1.5
"""Times a card, from which on a sum is said to be held by none (judgement)."""
_NUMBERS = frozenset({1, 2})
"""Columns that hold numbers."""


def memory_section(state: State) -> list[str]:
    """What was measured; else who holds how much in the phase that died, now and after; else the fullest phases.

    [] of a crash that is no shortage, of a launch that is known in part, and of a run that passed what could not have
    fitted by this count: its sums are not the run's.
    """
    plan, ledger = state.plan, state.ledger
    place: Place = "host" if state.diagnosis.memory == "host" else "gpu"
    if state.measured is not None and state.crash.verdict != "not_oom":
        return section(say("What the watcher measured, GiB"), record_lines(state.measured, ledger))
    if state.crash.verdict == "not_oom" or state.run.quoted or plan.fit.of_defaults or implausible(state.run, ledger):
        return []
    # a run of these sums did steps
    if (place == "gpu" and refuted(ledger, state.ran)) or (state.ran and state.crash.verdict == "unclear"):
        return []
    short: Phase = next((one.phase for one in worst_of_each_place(plan.fit.findings) if one.place == place), "unknown")
    died: Phase = state.situation.fullest if state.situation is not None and place == "host" else state.diagnosis.phase
    room, load = capacity_of(ledger, place), ledger.phase(place, "model_load")
    if died == "unknown" and load is not None and room is not None and load.expected > room:
        short = load.phase  # it comes to no other
    now = ledger.phase(place, died) or ledger.phase(place, short) or ledger.crowded(place)
    if now is None or not phrases.room_word(now, room, plan):
        return sharding_section(state.run, state.machine, state.crash) if place == "host" else _phases(state)
    then = plan.after.phase(place, now.phase) if plan.after is not None and plan.selected() else None
    columns = [now, *([then] if then is not None else [])]
    held = [_by_owner(phase) for phase in columns]
    largest = sorted({**held[0], **held[-1]}, key=lambda owner: -max(sizes[owner] for sizes in held))
    shown = next(
        count for count in range(min(HOLDERS, len(largest)), len(largest) + 1)
        if sum(held[0][owner] for owner in largest[count:]) <= LEFT * now.expected
    )  # fmt: skip
    largest = largest[:shown]
    rows = [[TITLES[owner], *(show_gib(sizes[owner]) for sizes in held)] for owner in largest]
    rest = [sum(sizes.values()) - sum(sizes[owner] for owner in largest) for sizes in held]
    rows += [[say("other"), *map(show_gib, rest)]] if any(rest) else []
    rows.append(
        [
            say("all, of {size}", size=phrases.rooms(ledger, plan.after if then is not None else None, place)),
            *(show_gib(phase.expected) for phase in columns),
        ]
    )
    titles = [say("now"), say("after")][: len(columns)]
    one = say("one node") if place == "host" else say("one card")
    title = say("Memory in {phase}, GiB, {place}", phase=PHASE_TITLES[now.phase], place=one)
    lines = table([["", *titles], *rows], right=_NUMBERS)
    if place == "gpu" and room is not None and now.expected > FAR * room:
        told = say("More than {size} is never held: the run fails on the way there.", size=phrases.size_words(room))
        lines += wrap(told, 2, 4)
    return section(title, lines)


def _phases(state: State) -> list[str]:
    """The phases that may have died, the fullest first; [] where one is known, or the count would be one of guesses."""
    ledger, room = state.ledger, state.ledger.gpu_capacity
    if state.diagnosis.phase != "unknown" or state.diagnosis.memory != "gpu" or ledger.missing:
        return []
    if room is None or not state.run.settings:
        return []
    fullest = sorted(ledger.sums("gpu"), key=lambda one: -_at_most(one))[:PHASES]
    fullest = [one for one in fullest if _at_most(one) > SMALL * _at_most(fullest[0])]
    endless = state.run.unlimited_rows
    caps = [say("no cap") if endless and one.rows is not None else show_gib(one.by_data[1]) for one in fullest]
    rows = []
    for one, cap in zip(fullest, caps, strict=True):
        sizes = _by_owner(one)  # what is lost between blocks is lost by another owner
        most = max(sizes, key=lambda owner: (owner != "fragmentation", sizes[owner]))
        largest = f"{TITLES[most]} {show_gib(sizes[most])}"
        rows.append([PHASE_TITLES[one.phase], show_gib(one.expected), cap, largest])
    titles = ["", say("counted"), say("at the caps"), say("most of it")]
    title = say("Memory by phase, GiB of the {size} of one card", size=phrases.size_words(room))
    return section(title, table([titles, *rows], right=_NUMBERS))


def _at_most(phase: PhaseSum) -> int:
    return max(phase.expected, phase.by_data[1])


def _by_owner(phase: PhaseSum) -> Counter[Owner]:
    sizes: Counter[Owner] = Counter()
    for cell in phase.cells:
        sizes[cell.owner] += cell.expected
    return sizes
