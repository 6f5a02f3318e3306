"""Writes the whole report (`--all`), estimates and scans: at most 78 columns, verdict first, no colour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.crash.evidence import Crash, Evidence
from advisor.diagnosis.diagnosis import UNKNOWN, CaseMatch, Diagnosis, QuestionStep, RuledOut
from advisor.hostile import cells
from advisor.language import Sayings, clauses, listed, mark, say, say_count, sentences
from advisor.line_breaks import cut, cut_left
from advisor.machine.inventory import Machine
from advisor.memory.cells import TITLES, Ledger, PhaseSum, Place
from advisor.memory.fit import capacity_of
from advisor.plan.plan import NotProposed, Plan, PlanStep
from advisor.report import phrases
from advisor.report.layout import WIDTH, join, section, table, wrap, wrap_each
from advisor.report.machine_report import nodes_section
from advisor.report.phrases import machine_line
from advisor.report.record_report import record_lines
from advisor.report.sharding_report import sharding_section
from advisor.run.run import Run
from advisor.units import show_bytes, show_gib
from advisor.words import (
    BASIS_TITLES,
    PHASE_NAMES,
    PHASE_TITLES,
    Memory,
    Verdict,
    sentence,
    when,
)

if TYPE_CHECKING:
    from advisor.plan.sizes import Reach, Sizes
    from advisor.run_file import Sizing
    from advisor.state import State

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
            *section(say("Questions"), [line for step in state.diagnosis.path for line in _question(step)]),
            *section(say("Plan"), _plan(state.plan)),
            *section(say("Memory, GiB"), _memory(state.ledger, state.plan)),
            *section(say("What the watcher measured, GiB"), record_lines(state.measured, state.ledger)),
            *section(say("Not proposed"), _reasons(state.plan.not_proposed)),
            *section(say("Ruled out"), _reasons(state.diagnosis.ruled_out)),
            *section(say("Less likely"), _reasons(state.diagnosis.less_likely)),
            *section(say("Documented cases"), [line for case in state.diagnosis.cases for line in _case(case)]),
            *section(say("To record next time"), wrap(state.diagnosis.record_next_time, 2)),
        ]
    )


def estimate_report(sizing: Sizing) -> str:
    """The ledger phase by phase and owner by owner, and whether it fits."""
    ledger = sizing.ledger
    return join(
        [
            *wrap(phrases.fit_sentence(sizing.fit, ledger, sizing.margin)),
            *wrap_each(ledger.doubts),
            "",
            *_subject(sizing.run, sizing.machine),
            *_ledger(ledger, "gpu"),
            *_ledger(ledger, "host"),
            *section(say("More than SFT"), wrap_each(_more_than_sft(sizing.run, ledger), 2, 4)),
            *sharding_section(sizing.run, sizing.machine),
            *section(
                say("How far it goes"),
                wrap_each(size_sentences(sizing.sizes, sizing.machine), 2, 4),
            ),
            *section(say("To see the worst batch first"), wrap(sizing.trial.sentence, 2) if sizing.trial else []),
            *section(say("Assumed"), wrap_each(ledger.assumed, 2, 4)),
            *section(say("Not known"), wrap_each(ledger.missing, 2, 4)),
        ]
    )


def _more_than_sft(run: Run, ledger: Ledger) -> list[str]:
    """What a method on given answers needs beyond SFT of the same batch and length, in the training step."""
    now, recipe = ledger.phase("gpu", "actor_update"), run.recipe
    if now is None or recipe.answers != "given":
        return []
    sizes = {owner: sum(cell.expected for cell in now.cells if cell.owner == owner) for owner in TITLES}
    of_rows = sizes["logits"] + sizes["activations"]
    part = of_rows * (recipe.rows - 1) // recipe.rows
    more = {"rows": recipe.rows, "size": show_bytes(of_rows), "part": show_bytes(part)}
    told = []
    if recipe.rows > 1 and of_rows:
        rows = say("Each sample is {rows} rows of a pass: {part} of the {size} of logits and activations.", **more)
        told.append(rows)
    if sizes["reference"]:
        size = show_bytes(sizes["reference"])
        told.append(say("The reference model stands beside the one that trains: {size}.", size=size))
    if not told:
        return []
    method = say("What {method} takes on each card in the training step that SFT does not:", method=recipe.title)
    return [method, *told]


def scan_report(crash: Crash) -> str:
    """The evidence alone."""
    if not crash.evidence:
        nothing = say("No sign of a memory crash in {count} lines.", count=crash.lines_read)
        return join(wrap_each((nothing, *crash.doubts)))
    head = say(
        "{verdict} · memory {memory} · phase {phase} · {count} lines read",
        verdict=_VERDICTS[crash.verdict],
        memory=_MEMORIES[crash.memory],
        phase=PHASE_NAMES[crash.phase],
        count=crash.lines_read,
    )
    doubts = wrap_each(crash.doubts)
    return join([*wrap(head), *doubts, "", *_proof(crash, most=100, roles=ANY_ROLE)])


# --- parts ---------------------------------------------------------------------------------------------------------


def _head(state: State) -> list[str]:
    lines = wrap(phrases.verdict(state))
    if state.crash.verdict == "unclear":
        lines += wrap(phrases.why_unclear(state))
        lines += wrap_each((say("To settle it: {hint}", hint=hint) for hint in state.crash.settle_by), 2, 4)
    lines += wrap_each(phrases.remarks(state))
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
        more = say_count(
            "and {number} more line (--format json has all)", "and {number} more lines (--format json has all)", left
        )
        lines.append(f"  {more}")
    if crash.phase_because:
        lines += wrap(say("The phase: {because}", because=crash.phase_because), 2, 4)
    lines += wrap_each((say("Held: {held}", held=held) for held in phrases.holders(crash)), 2, 4)
    return lines


def _entry(entry: Evidence, quote: bool) -> list[str]:
    what = say("{signature} ({role})", signature=entry.signature, role=phrases.role(entry))
    head = f"  {cut_left(phrases.quote_place(entry), 40)}  {what}"
    quoted = wrap(cut(entry.text, QUOTED_CAUSE if entry.role == "cause" else QUOTED), 4) if quote else []
    return [cut(head, WIDTH), *quoted, *wrap(phrases.printed(entry) if entry.role == "cause" else "", 4)]


def _subject(run: Run, machine: Machine) -> list[str]:
    lines = wrap(phrases.subject(run), 2, 4) + wrap(machine_line(machine, run.topology), 2, 4)
    lines += wrap(phrases.recognised(run), 2, 4)
    lines += wrap_each((*run.notes, *machine.problems), 2, 4)
    return lines


def _cause(diagnosis: Diagnosis) -> list[str]:
    if not diagnosis.cause:
        return []
    known = say("{title} ({basis})", title=diagnosis.title, basis=BASIS_TITLES[diagnosis.basis])
    lines = wrap(diagnosis.title if diagnosis.memory == "unknown" else known, 2, 4) + wrap(diagnosis.explains, 4)
    for advice in diagnosis.advisories:
        title = say("{library}: {title}.", library=f"{advice.library} {advice.version}", title=advice.title)
        lines += wrap(sentences((title, advice.says)), 2, 4)
    return lines


def _question(step: QuestionStep) -> list[str]:
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
    lines += wrap(f"{facts} · {step.id}", 6) + wrap(sentence(step.worked_here), 6)
    for change in step.changes:
        lines += wrap(phrases.change_line(change), 6, 8) + wrap(phrases.place_of(change), 8)
    lines += wrap(say("for example {example}", example=step.example), 6, 8) if step.example else []
    if brief:
        return lines
    lines += wrap(step.why, 6)
    lines += wrap(say("Costs: {costs}", costs=step.costs), 6, 8) if step.costs else []
    lines += wrap_each((say("Note: {note}", note=caveat) for caveat in step.caveats), 6, 8)
    return lines


def _memory(ledger: Ledger, plan: Plan) -> list[str]:
    lines: list[str] = []
    for place, title in _PLACES:
        lines += _before_after(say(title, size=phrases.size_words(capacity_of(ledger, place))), ledger, plan, place)
    lines += wrap_each((say("Assumed: {assumed}", assumed=text) for text in ledger.assumed), 2, 4)
    lines += wrap_each((say("Not known: {missing}", missing=text) for text in ledger.missing), 2, 4)
    return lines


def _before_after(title: str, before: Ledger, plan: Plan, place: Place) -> list[str]:
    """Expected GiB of every phase now and after, the range of the expectation now, and a word where room is short."""
    phases = before.sums(place)
    if not phases:
        return []
    room, then = capacity_of(before, place), capacity_of(plan.after or before, place)
    rows = [[title, say("now"), say("low–high"), say("after"), ""]]
    for each in phases:
        later = plan.after.phase(place, each.phase) if plan.after else None
        rows.append(
            [
                PHASE_TITLES[each.phase],
                show_gib(each.expected),
                say("measured") if each.measured else f"{show_gib(each.low)}–{show_gib(each.high)}",
                show_gib(later.expected) if later else "",
                phrases.room_word(later or each, room if later is None else then, plan),
            ]
        )
    return ["", *table(rows, right=frozenset({1, 2, 3}))]


def _ledger(ledger: Ledger, place: Place) -> list[str]:
    phases = ledger.sums(place)
    lines: list[str] = []
    for alike in _folded(phases):
        lines += ["", *_phase_lines(alike)]
    room = phrases.size_words(capacity_of(ledger, place))
    if not phases:
        return []
    if place == "gpu":
        return ["", say("GPU memory of one card, GiB, of {size}", size=room), *lines]
    return ["", say("Host RAM of one node, GiB, of {size}", size=room), *lines]


def _folded(phases: Sequence[PhaseSum]) -> list[list[PhaseSum]]:
    """The phases in their order; those that hold the same, to the byte and the word, stand together."""
    found: dict[tuple[object, ...], list[PhaseSum]] = {}
    for each in phases:
        held = (each.measured, each.low, each.high, *((cell.owner, cell.expected, cell.formula) for cell in each.cells))
        found.setdefault(held, []).append(each)
    return list(found.values())


def _phase_lines(alike: Sequence[PhaseSum]) -> list[str]:
    """Phases that hold the same, and what each owner holds with its whole arithmetic."""
    each, titles = alike[0], listed(PHASE_TITLES[one.phase] for one in alike)
    sizes = {"size": show_gib(each.expected), "low": show_gib(each.low), "high": show_gib(each.high)}
    if each.measured:
        sizes = {"size": show_gib(each.expected), "predicted": show_gib(each.predicted)}
        head = say("{phase}: {size} (measured; {predicted} predicted)", phase=titles, **sizes)
    else:
        head = say("{phase}: {size} ({low}–{high})", phase=titles, **sizes)
    held = sorted(each.cells, key=lambda cell: -cell.expected)
    named = table(
        [[TITLES[cell.owner], show_gib(cell.expected, 2), "·"] for cell in held], indent=4, right=frozenset({1})
    )
    lines = wrap(head, 2, 4)
    for front, cell in zip(named, held, strict=True):
        start = front[:-1]
        formula = wrap(cell.formula, cells(start))
        lines += [start + formula[0].lstrip(), *formula[1:]] if formula else [start.rstrip()]
    return lines


def _reasons(refused: Sequence[NotProposed | RuledOut]) -> list[str]:
    """One line a reason, with all that it speaks against."""
    reasons = phrases.by_reason(refused).items()
    told = (say("{title}: {because}", title=clauses(names), because=because) for because, names in reasons)
    return wrap_each(told, 2, 4)


def _case(case: CaseMatch) -> list[str]:
    told = {"title": case.title, "id": case.id, "agree": case.agree, "of": case.of}
    lines = wrap(say("{title} ({id}): {agree} of {of} facts agree", **told), 2, 4)
    differs = say("differs in {facts}", facts=listed(case.differs)) if case.differs else ""
    return lines + wrap(differs, 4) + wrap(case.source, 4)


def size_sentences(sizes: Sizes | None, machine: Machine) -> list[str]:
    """One line a setting, then the machine; [] where nothing can be computed."""
    if sizes is None:
        return []
    lines = [_reach(reach) for reach in sizes.reaches]
    if lines and all(reach.most is None for reach in sizes.reaches):
        keys = listed(reach.key for reach in sizes.reaches)
        lines = [say("No single one of {keys} makes it fit, however small.", keys=keys)]
    elif lines:
        lines.insert(0, say("One setting at a time, all others as they are:"))
    return [*lines, _smallest(sizes, machine)]


def _reach(reach: Reach) -> str:
    told = {"key": reach.key, "most": reach.most, "now": reach.now}
    if reach.most is None:
        said = say("{key} (now {now}): no value of it makes the run fit", **told)
    elif reach.stopped_by is not None and reach.stopped_by[0] == "gpu":
        at = when(reach.stopped_by[1])
        said = say("{key} up to {most} (now {now}); more is too much on the card {when}", **told, when=at)
    elif reach.stopped_by is not None:
        at = when(reach.stopped_by[1])
        said = say("{key} up to {most} (now {now}); more is too much in host RAM {when}", **told, when=at)
    elif not reach.is_open:
        said = say(
            "{key} up to {most} (now {now}); the framework takes no more with the other settings as they are", **told
        )
    else:
        said = say("{key} up to {most} (now {now}), or more: it is not what fills the machine", **told)
    return f"  {said}"


def _smallest(sizes: Sizes, machine: Machine) -> str:
    """Bytes needed, and the smallest card: an engine's share of the card is smaller on a smaller one."""
    each = {"card": show_bytes(sizes.gpu_bytes), "host": show_bytes(sizes.host_bytes)}
    need = say("As it is, the run needs {card} on each card", **each)
    if sizes.host_bytes:
        need = say("As it is, the run needs {card} on each card and {host} of host RAM on each node", **each)
    if sizes.gpu_bytes <= (machine.gpu_bytes or 0) and sizes.host_bytes + machine.host.taken_bytes > (
        machine.host.ceiling_bytes or math.inf
    ):
        return say("{need}, the margin included. The cards hold it; the RAM of a node does not.", need=need)
    if sizes.card is None and not machine.gpus:
        return say("{need}, the margin included. How much memory your cards have is not known (--gpus).", need=need)
    if sizes.card is None:
        return say("{need}, the margin included: more than any known card has.", need=need)
    count = f"{len(machine.gpus)} x " if len(machine.gpus) > 1 else ""
    told = {"need": need, "cards": f"{count}{sizes.card.name}"}
    if sizes.gpu_bytes > sizes.card.total_bytes:
        return say(
            "{need}, the margin included. The smallest known cards that hold it: {cards}, since shares of a card "
            "shrink with it.",
            **told,
        )
    if sizes.gpu_most > sizes.card.total_bytes:
        return say(
            "{need}, the margin included. The smallest known cards that hold it: {cards}, if it does not take more "
            "than that.",
            **told,
        )
    return say("{need}, the margin included. The smallest known cards that hold it: {cards}.", **told)
