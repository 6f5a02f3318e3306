"""The report for a terminal, a pipe or a mail: at most 78 columns, verdict first, no colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.crash.evidence import Crash, Evidence
from advisor.diagnosis.diagnosis import UNKNOWN, CaseMatch, Diagnosis, Step
from advisor.language import Sayings, clauses, listed, mark, say, say_count, sentences
from advisor.machine.inventory import Machine
from advisor.memory.cells import TITLES, Ledger, PhaseSum, Place
from advisor.plan.plan import Plan, PlanStep
from advisor.report import phrases
from advisor.report.cluster_report import nodes_section
from advisor.report.json_report import fits
from advisor.report.layout import WIDTH, cut, cut_front, join, section, table, wrap
from advisor.report.record_report import record_lines
from advisor.report.sharding_report import sharding_section
from advisor.report.sizes_report import sizes_told
from advisor.run.run import Run
from advisor.units import show_bytes, show_gib
from advisor.words import (
    BASIS_TITLES,
    MEMORY_TITLES,
    PHASE_NAMES,
    PHASE_TITLES,
    Memory,
    Verdict,
    sentence,
)

if TYPE_CHECKING:
    from advisor.run_file import Sizing
    from advisor.session import State

EVIDENCE_SHOWN = 8
QUOTED_CAUSE, QUOTED = 400, 160
"""Characters of a line that are quoted."""
TELLING = frozenset({"cause", "victim", "hint", "pointer", "warning"})
ANY_ROLE = TELLING | {"echo", "telemetry", "progress"}
STEPS_EXPLAINED = 6
_VERDICTS: Sayings[Verdict] = Sayings({"oom": "oom", "not_oom": "not_oom", "unclear": "unclear"})
_MEMORIES: Sayings[Memory] = Sayings({"gpu": "gpu", "host": "host", "shm": "shm", "none": "none", "unknown": "unknown"})
_PLACES: tuple[tuple[Place, str], ...] = (
    ("gpu", mark("GPU, one card (of {size})")),
    ("host", mark("host, one node (of {size})")),
)


def text_report(state: State) -> str:
    """The whole diagnosis: verdict, proof, cause, questions, plan, memory, and what was left out and why."""
    return join(
        [
            *_head(state),
            *section(say("What the log proves"), _proof(state.crash)),
            *section(say("Run and machine"), _subject(state.run, state.machine)),
            *nodes_section(state.machine.members, state.ledger),
            *sharding_section(state.run, state.machine, state.crash),
            *section(say("Likely cause"), _cause(state.diagnosis)),
            *section(say("Questions"), _questions(state.diagnosis)),
            *section(say("Plan"), _plan(state.plan)),
            *section(say("Memory, GiB"), _memory(state.ledger, state.plan)),
            *section(say("What the watcher measured, GiB"), record_lines(state.measured, state.ledger)),
            *section(say("Not proposed"), _not_proposed(state.plan)),
            *section(say("Ruled out"), _ruled_out(state.diagnosis)),
            *section(say("Documented cases"), _cases(state.diagnosis)),
            *section(say("To record next time"), wrap(state.diagnosis.record_next_time, 2)),
        ]
    )


def estimate_report(sizing: Sizing) -> str:
    """The ledger phase by phase and owner by owner, and whether it fits."""
    ledger = sizing.ledger
    return join(
        [
            *wrap(_fit_sentence(ledger, sizing.margin)),
            *[line for doubt in sizing.run.doubts for line in wrap(doubt)],
            "",
            *_subject(sizing.run, sizing.machine),
            *_ledger(ledger, "gpu"),
            *_ledger(ledger, "host"),
            *sharding_section(sizing.run, sizing.machine),
            *section(
                say("How far it goes"),
                [line for text in sizes_told(sizing.sizes, sizing.machine) for line in wrap(text, 2, 4)],
            ),
            *section(say("Assumed"), [line for text in ledger.assumed for line in wrap(text, 2, 4)]),
            *section(say("Not known"), [line for text in ledger.missing for line in wrap(text, 2, 4)]),
        ]
    )


def scan_report(crash: Crash) -> str:
    """The evidence alone."""
    if not crash.evidence:
        return join(wrap(say("No sign of a memory crash in {count} lines.", count=crash.lines_read)))
    head = say(
        "{verdict} · memory {memory} · phase {phase} · {count} lines read",
        verdict=_VERDICTS[crash.verdict],
        memory=_MEMORIES[crash.memory],
        phase=PHASE_NAMES[crash.phase],
        count=crash.lines_read,
    )
    return join([*wrap(head), "", *_proof(crash, most=100, roles=ANY_ROLE)])


# --- parts ---------------------------------------------------------------------------------------------------------


def _head(state: State) -> list[str]:
    lines = wrap(phrases.verdict(state))
    if state.crash.verdict == "unclear":
        lines += wrap(sentence(state.crash.unclear_because))
        lines += [line for hint in state.crash.settle_by for line in wrap(say("To settle it: {hint}", hint=hint), 2, 4)]
    for remark in phrases.remarks(state):
        lines += wrap(remark)
    return lines


def _proof(crash: Crash, most: int = EVIDENCE_SHOWN, roles: frozenset[str] = TELLING) -> list[str]:
    """The telling lines; a message that proves two things is quoted once."""
    told = [entry for entry in crash.evidence if entry.role in roles or entry.runs_ago]
    lines: list[str] = []
    before = ""
    for entry in told[:most]:
        lines += _entry(entry, quote=entry.text != before)
        before = entry.text
    left = len(crash.evidence) - len(told[:most])
    if left:
        lines.append("  " + _more(left))
    if crash.phase_because:
        lines += wrap(say("The phase: {because}", because=crash.phase_because), 2, 4)
    for held in phrases.holders(crash):
        lines += wrap(say("Held: {held}", held=held), 2, 4)
    return lines


def _more(left: int) -> str:
    return say_count(
        "and {number} more line (--format json has all)", "and {number} more lines (--format json has all)", left
    )


def _entry(entry: Evidence, quote: bool) -> list[str]:
    what = say("{signature} ({role})", signature=entry.signature, role=phrases.role(entry))
    head = f"  {cut_front(phrases.quote_place(entry), 40)}  {what}"
    quoted = wrap(cut(entry.text, QUOTED_CAUSE if entry.role == "cause" else QUOTED), 4) if quote else []
    return [cut(head, WIDTH), *quoted, *wrap(phrases.printed(entry) if entry.role == "cause" else "", 4)]


def _subject(run: Run, machine: Machine) -> list[str]:
    lines = wrap(phrases.subject(run), 2, 4) + wrap(phrases.machine_line(machine), 2, 4)
    if run.recognised_by:
        told = {"because": run.recognised_by}
        known = run.framework != "unknown"
        said = say("Recognised by {because}.", **told) if known else say("Not recognised: {because}.", **told)
        lines += wrap(said, 2, 4)
    for note in (*run.notes, *machine.problems):
        lines += wrap(note, 2, 4)
    return lines


def _cause(diagnosis: Diagnosis) -> list[str]:
    if not diagnosis.cause:
        return []
    lines = wrap(_basis(diagnosis), 2, 4) + wrap(diagnosis.explains, 4)
    for advice in diagnosis.advisories:
        title = say("{library}: {title}.", library=f"{advice.library} {advice.version}", title=advice.title)
        lines += wrap(sentences((title, advice.says)), 2, 4)
    return lines


def _basis(diagnosis: Diagnosis) -> str:
    """The title, and how it is known where anything is."""
    if diagnosis.memory == "unknown":
        return diagnosis.title
    return say("{title} ({basis})", title=diagnosis.title, basis=BASIS_TITLES[diagnosis.basis])


def _questions(diagnosis: Diagnosis) -> list[str]:
    return [line for step in diagnosis.path for line in _question(step)]


def _question(step: Step) -> list[str]:
    answer, because = phrases.answer_title(step), phrases.because(step)
    lines = wrap(say("{asks} {answer} ({because})", asks=step.asks, answer=answer, because=because), 2, 4)
    if step.answer == UNKNOWN or step.guess:
        choices = "|".join(choice.id for choice in step.choices)
        lines += wrap(say("Answer it with --answer {answer}", answer=f"{step.question}={choices}"), 4)
    if step.answer == UNKNOWN:
        lines += wrap(say("To find out: {how}", how=step.if_unknown), 4)
    if step.suggested and step.suggested != step.answer:
        lines += wrap(say("The evidence says otherwise: {answer}", answer=step.suggested), 4)
    return lines


def _plan(plan: Plan) -> list[str]:
    if not plan.steps:
        return wrap(plan.shortfall, 2)
    lines = wrap(phrases.fits_words(plan), 2)
    for place, step in enumerate(plan.steps):
        lines += ["", *_step(step, brief=place >= STEPS_EXPLAINED and not step.selected)]
    return lines


def _step(step: PlanStep, brief: bool) -> list[str]:
    results = say("results same") if step.results == "unchanged" else say("results CHANGES")
    facts = " · ".join(filter(None, [results, phrases.saves_word(step), BASIS_TITLES[step.basis]]))
    lines = wrap(f"[{'x' if step.selected else ' '}] {step.title}", 2, 6)
    lines += wrap(f"{facts} · {step.id}", 6)
    for change in step.changes:
        lines += wrap(phrases.change_line(change), 6, 8) + wrap(phrases.place_of(change), 8)
    if brief:
        return lines
    lines += wrap(step.why, 6)
    lines += wrap(say("Costs: {costs}", costs=step.costs), 6, 8) if step.costs else []
    for caveat in step.caveats:
        lines += wrap(say("Note: {note}", note=caveat), 6, 8)
    return lines


def _memory(ledger: Ledger, plan: Plan) -> list[str]:
    lines: list[str] = []
    for place, title in _PLACES:
        lines += _before_after(say(title, size=show_gib(phrases.capacity(ledger, place))), ledger, plan, place)
    for text in ledger.assumed:
        lines += wrap(say("Assumed: {assumed}", assumed=text), 2, 4)
    for text in ledger.missing:
        lines += wrap(say("Not known: {missing}", missing=text), 2, 4)
    return lines


def _before_after(title: str, before: Ledger, plan: Plan, place: Place) -> list[str]:
    """Expected GiB of every phase now and after, the range of the expectation now, and a word where room is short."""
    phases = phrases.sums(before, place)
    if not phases:
        return []
    room = phrases.capacity(before, place)
    rows = [[title, say("now"), say("low–high"), say("after"), ""]]
    for each in phases:
        later = plan.after.phase(place, each.phase) if plan.after else None
        rows.append(
            [
                PHASE_TITLES[each.phase],
                show_gib(each.expected),
                say("measured") if each.measured else f"{show_gib(each.low)}–{show_gib(each.high)}",
                show_gib(later.expected) if later else "",
                phrases.room_word(later or each, room, plan.margin),
            ]
        )
    return ["", *table(rows, right=frozenset({1, 2, 3}))]


def _ledger(ledger: Ledger, place: Place) -> list[str]:
    phases = phrases.sums(ledger, place)
    lines: list[str] = []
    for each in phases:
        lines += ["", *_phase_lines(each)]
    room = show_gib(phrases.capacity(ledger, place))
    if not phases:
        return []
    if place == "gpu":
        return ["", say("GPU memory of one card, GiB, of {size}", size=room), *lines]
    return ["", say("Host RAM of one node, GiB, of {size}", size=room), *lines]


def _phase_lines(each: PhaseSum) -> list[str]:
    sizes = {"size": show_gib(each.expected), "low": show_gib(each.low), "high": show_gib(each.high)}
    if each.measured:
        sizes = {"size": show_gib(each.expected), "predicted": show_gib(each.predicted)}
        head = "  " + say("{phase}: {size} (measured; {predicted} predicted)", phase=PHASE_TITLES[each.phase], **sizes)
    else:
        head = "  " + say("{phase}: {size} ({low}–{high})", phase=PHASE_TITLES[each.phase], **sizes)
    rows = [
        [TITLES[cell.owner], show_gib(cell.expected, 2), cut(cell.formula, 50)]
        for cell in sorted(each.cells, key=lambda cell: -cell.expected)
    ]
    return [head, *(cut(line, WIDTH) for line in table(rows, indent=4, right=frozenset({1})))]


def _fit_sentence(ledger: Ledger, margin: float) -> str:
    answer = fits(ledger, margin)
    if answer is None and ledger.fits("gpu", margin):
        return say(
            "It fits on the GPUs, with {margin:.0%} of their memory left free in every phase. Whether host RAM "
            "suffices cannot be said: how much a node has is not known (--host-ram).",
            margin=margin,
        )
    if answer is None:
        missing = clauses(ledger.missing) or say("the capacity is not known")
        return say("Whether it fits cannot be said: {missing}.", missing=missing)
    places: tuple[Place, Place] = ("gpu", "host")
    if answer:
        return say("It fits, with {margin:.0%} of the memory left free in every phase.", margin=margin)
    tight = [place for place in places if ledger.fits(place, margin) is False]
    return sentences(_excess(ledger, place, margin) for place in tight)


def _excess(ledger: Ledger, place: Place, margin: float) -> str:
    peak, room = ledger.peak(place), phrases.capacity(ledger, place)
    assert peak is not None
    return say(
        "{memory} does not fit: {phase} is expected to take {size} of {room}, of which {margin:.0%} should stay free.",
        memory=MEMORY_TITLES[place],
        phase=PHASE_TITLES[peak.phase],
        size=show_bytes(peak.expected),
        room=show_bytes(room),
        margin=margin,
    )


def _not_proposed(plan: Plan) -> list[str]:
    return [line for each in plan.not_proposed for line in wrap(_reason(each.title, each.because), 2, 4)]


def _ruled_out(diagnosis: Diagnosis) -> list[str]:
    return [line for each in diagnosis.ruled_out for line in wrap(_reason(each.title, each.because), 2, 4)]


def _reason(title: str, because: str) -> str:
    return say("{title}: {because}", title=title, because=because)


def _cases(diagnosis: Diagnosis) -> list[str]:
    return [line for case in diagnosis.cases for line in _case(case)]


def _case(case: CaseMatch) -> list[str]:
    told = {"title": case.title, "id": case.id, "agree": case.agree, "of": case.of}
    lines = wrap(say("{title} ({id}): {agree} of {of} facts agree", **told), 2, 4)
    differs = say("differs in {facts}", facts=listed(case.differs)) if case.differs else ""
    return lines + wrap(differs, 4) + wrap(case.source, 4)
