"""Writes the changes of the short report: what comes first, what is switched on, what else there is, the promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.diagnosis.cases import open_words
from advisor.hostile import cells
from advisor.language import Sayings, clauses, listed, say, say_count, sentences
from advisor.memory.cells import Place
from advisor.memory.fit import FitVerdict, capacity_of
from advisor.memory.ledger import peak_rises
from advisor.plan.order import most_saved
from advisor.plan.plan import Change, PlanStep
from advisor.plan.ran_with import AS_REPORTED
from advisor.plan.solve import WITNESSES, enough_alone
from advisor.regex import regex
from advisor.report import phrases
from advisor.report.layout import wrap
from advisor.words import BETWEEN_SENTENCES, sentence, when

if TYPE_CHECKING:
    from advisor.state import State

CLAUSES = 2
"""Of what is short, shown at most."""
ON_HOST = 2
"""Other steps, shown at least of a plan for the host: what relieves most, and the machine."""
FEWEST = 2
"""Steps told in full where none acts on the cause."""
PARAGRAPH = 180
"""Columns of a paragraph; the sentences beyond are for `--all`."""
_COMMAND = regex(r"[`=]|--\w|\w_\w")
"""What a sentence has that says what to type."""
_PROMISES: Sayings[FitVerdict] = Sayings(
    {
        "fits": "With these the run is expected to fit.",
        "may_not_fit": "With these the run may fit; that is not certain.",
        "does_not_fit": "These alone do not suffice.",
        "cannot_be_said": "Whether these suffice cannot be computed.",
    }
)
"""Of the selected changes."""
_ONE_SIDE: Sayings[Place] = Sayings(
    {
        "gpu": "With these host RAM suffices; whether the cards do cannot be said.",
        "host": "With these the cards suffice; whether host RAM does cannot be said.",
    }
)
"""The same where the size of one place is all that is not known."""
_ENOUGH: Sayings[Place] = Sayings({"gpu": "With these host RAM suffices.", "host": "With these the cards suffice."})
_MAY_DO: Sayings[Place] = Sayings(
    {"gpu": "With these host RAM may suffice; that is not certain.", "host": "With these the cards may suffice."}
)
"""The same where the changes move nothing to that place, and where what is counted stands in doubt."""


class Most(Struct, frozen=True):
    """How many of each are shown at most."""

    remarks: int
    alternatives: int
    in_order: int
    by_hand: int
    outcomes: int
    notes: int
    assumed: int
    further: int
    """Steps told by their title alone, behind those that are told in full."""


class ShownSteps(Struct, frozen=True):
    """The steps that are printed, in the plan's order."""

    ahead: tuple[PlanStep, ...]
    """Before what is switched on: what is looked at first."""
    chosen: tuple[PlanStep, ...]
    others: tuple[PlanStep, ...]
    further: tuple[PlanStep, ...]
    """Steps that are told by their title alone."""
    left: int
    """Steps that are not printed."""

    @staticmethod
    def of(state: State, most: Most) -> ShownSteps:
        """What takes more of the other place than there is is offered only where nothing else is; so is what costs
        memory, unless it is the cure: a larger share saves nothing, and may be what an engine lacks. Beside changes
        that suffice by the count stands what does so, too.
        """
        plan = state.plan
        chosen = plan.selected()
        certain = [step for step in plan.steps if not step.only_if]
        first = certain.index(chosen[0]) if chosen else 0
        ahead, later = certain[:first], [step for step in certain[first:] if not step.selected]
        helping = [s for s in later if s is plan.steps[0] or (phrases.largest_saving(s) or ("", 1, ""))[1] >= 0]
        on_host = (one for one in helping if one.place == "host")
        largest = max(on_host, key=most_saved, default=None)  # told with its price
        helping = [step for step in helping if not step.spills or step is largest] or helping
        helping = [step for step in helping if not (chosen and _no_way_out(step, state))]
        least = 1 if largest is None else ON_HOST
        near = [step for step in helping if not step.further or step is largest] or helping[:FEWEST]
        shown = near[: max(least, most.alternatives + 1 - len(chosen)) if chosen else most.in_order]
        ahead = ahead[: max(1, most.alternatives)]
        further = tuple(step for step in helping if step not in shown)[: most.further]
        left = len(certain) - len(chosen) - len(ahead) - len(shown) - len(further)
        return ShownSteps(tuple(ahead), chosen, tuple(shown), further, left)


def changes_of(state: State, most: Most) -> list[str]:
    """The plan's steps, as many as are shown, with what is promised of those that are switched on."""
    plan = state.plan
    shown = ShownSteps.of(state, most)
    chosen, others = shown.chosen, shown.others
    perhaps = [step for step in plan.steps if step.only_if]
    if not plan.steps:
        return wrap(plan.shortfall, 2)
    unsaid = plan.shortfall
    for remark in phrases.remarks(state)[: most.remarks]:  # these stand below the cause already
        unsaid = unsaid.replace(remark, "")
    short = _worst(unsaid.strip(" ;；"))
    if perhaps and not chosen and not others:
        counted = say("By the settings alone: {short}", short=short) if short and not state.ran else ""
        nothing = say("Nothing, before it is known what ended the run.")
        beside = say("Beside that, by the settings alone: {short}", short=short) if counted else ""
        told = any(one.place == perhaps[0].place and one.reason == "over" for one in plan.fit.findings)
        ways = wrap(nothing, 2) + _if_it_was(perhaps, state, most)
        return wrap(counted, 2) + ways if told else ways + wrap(beside, 2)
    beside = ""
    of_cards = any(one.place == "gpu" for one in plan.fit.findings)
    looks = not chosen and all(step.id in WITNESSES for step in others)
    if looks or (of_cards and phrases.killed_likely(state)):  # what the settings take killed nobody that is known
        beside = say("Beside that, by the settings alone: {short}", short=short) if short and not state.ran else ""
        short = ""
    lines = [line for step in shown.ahead for line in _offered(say("First:"), step, state) + _by_hand(step, state)]
    lines += wrap(sentences((_promise(state), short)), 2)
    for number, step in enumerate(chosen, 1):
        lines += _chosen(f"{number}.", step, state)
    if others:
        open_ = state.situation.open_phase if perhaps and not chosen and state.situation is not None else None
        ordered = say("In this order, until it runs:") if len(others) > 1 else say("To try:")
        ordered = say("If it died {when}, in this order:", when=when(open_.taken)) if open_ is not None else ordered
        lines += wrap(say("Or:") if chosen else ordered, 2)
        marks = ["-"] * len(others) if chosen else [f"{number}." for number in range(1, len(others) + 1)]
        seen = sum(step.id in WITNESSES for step in others)
        for number, (mark, step) in enumerate(zip(marks, others, strict=True), -seen):
            lines += _offered(mark, step, state) + (
                _by_hand(step, state) if number < most.by_hand or step.id in WITNESSES else []
            )
    lines += [] if perhaps and others else _further_steps(shown)
    return lines + wrap(beside, 2) + _if_it_was(perhaps, state, most)


def _further_steps(shown: ShownSteps) -> list[str]:
    """What else there is, by its titles: who looks for a step finds it, and how many are not told."""
    if not shown.further:
        return and_more(shown.left)
    titles = [say("{step} ({facts})", step=step.title, facts=_in_a_word(step)) for step in shown.further]
    left = [say("{count} more", count=shown.left)] if shown.left > 0 else []
    return wrap(say("Further: {steps}", steps=clauses([*titles, *left])), 2, 4)


def _in_a_word(step: PlanStep) -> str:
    """The name of a step, and the first setting that it changes: who reads no further finds the key."""
    told = step.changes or (step.typed.changes if step.typed is not None else ())
    return f"{step.id}: {told[0].key}={told[0].new}" if told and told[0].new is not None else step.id


def _if_it_was(steps: list[PlanStep], state: State, most: Most) -> list[str]:
    """Steps for each way the open question may go, under what has to be true first; [] where there are none."""
    lines: list[str] = []
    for only_if in dict.fromkeys(step.only_if for step in steps):
        of_it = [step for step in steps if step.only_if == only_if]
        lines += wrap(say("Right {only_if}:", only_if=only_if), 2)
        for number, step in enumerate(of_it[: most.in_order], 1):
            lines += _offered(f"{number}.", step, state) + (_by_hand(step, state) if number <= most.by_hand else [])
        lines += and_more(len(of_it) - most.in_order)
    return lines


def _promise(state: State) -> str:
    plan = state.plan
    if not plan.selected():
        return ""
    if state.run.quoted:
        return say("Whether these suffice cannot be said from a part of the launch.")
    beside = plan.fit.fits_beside
    other: Place = "host" if beside == "gpu" else "gpu"
    if beside is None or plan.before is None or plan.after is None or capacity_of(plan.after, other) is None:
        return _PROMISES[plan.fit.verdict]
    if plan.fit.doubted:
        return _MAY_DO[beside]
    return (_ONE_SIDE if peak_rises(plan.before, plan.after, beside) else _ENOUGH)[beside]


def _worst(shortfall: str) -> str:
    """What is short or in doubt: its first clauses, and how many more there are."""
    parts = shortfall.split(clauses(("", "")))
    left = len(parts) - CLAUSES
    return sentence(clauses([*parts[:CLAUSES], say("{count} more", count=left)])) if left > 0 else sentence(shortfall)


def _chosen(number: str, step: PlanStep, state: State) -> list[str]:
    lines = wrap(f"{number} {_named(step, state)}", 2, 5)
    for change in step.changes:
        where = _place(change)
        told = phrases.change_line(change) + (_further(step) if change is step.changes[0] else "")
        lines += wrap(say("{change} ({place})", change=told, place=where) if where else told, 5, 7)
    lines += wrap(sentence(step.worked_here), 5)
    why = "" if phrases.saves_word(step) else brief(step.why, 1)
    costs = say("Costs: {costs}", costs=step.costs) if step.costs else ""
    return lines + wrap(why, 5) + wrap(costs, 5, 7)


def _place(change: Change) -> str:
    return f"{change.file}:{change.line}" if change.line is not None else change.file or change.how


def _further(step: PlanStep) -> str:
    return say(", then {value}", value=step.then) if step.then else ""


def _no_way_out(step: PlanStep, state: State) -> bool:
    """Whether another way than the chosen steps, which suffice by the count of a whole launch, is none by the count,
    and nobody reports it to be one. What an environment variable gives, no sum knows."""
    fit = state.plan.fit
    if (
        state.planned_for is None
        or step.kind == "environment"
        or state.run.quoted
        or (fit.verdict != "fits" and fit.fits_beside is None)
        or step.documented
    ):
        return False
    alone = enough_alone(step, state.planned_for)
    return alone is False or (alone is None and step.kind != "setting")


def _offered(mark: str, step: PlanStep, state: State) -> list[str]:
    """The step in a line."""
    words = [phrases.change_line(change) for change in step.changes]
    changes = clauses([f"{words[0]}{_further(step)}", *words[1:]]) if words else ""
    if words and mark != "-" and step.changes[0].line is not None:  # nothing above it was changed in its place
        changes = say("{change} ({place})", change=changes, place=_place(step.changes[0]))
    changes = say("for example {example}", example=step.example) if step.example else changes
    named = _named(step, state)
    line = f"{mark} " + (say("{step}: {changes}", step=named, changes=changes) if changes else named)
    unwritten = state.script is not None and step.kind == "setting" and not any(one.file for one in step.changes)
    lines = wrap(say("{step}; by hand", step=line) if unwritten and step.changes else line, 2, 3 + len(mark))
    return lines + wrap(_as_in(step, state), 5, 7)


def _as_in(step: PlanStep, state: State) -> str:
    """Which case stands behind it, where all that is known of that is so here, and the versions it had."""
    now = state.situation
    alike = now.cases if now is not None else ()
    case = next((one for one in alike if step.documented.partition(" ")[0] == one.id), None)
    if now is None or case is None:
        return ""
    if any(not name.startswith("version ") for name in open_words(case, now.facts, state.run)):
        return ""
    if next(one for one in state.plan.steps if one.documented == step.documented) is not step:
        return ""  # told already
    had = [f"{name.removeprefix('version ')} {v}" for name, v in case.situation.items() if name.startswith("version ")]
    told = {"title": case.title, "versions": listed(had)}
    return say("Reported, with {versions}: {title}.", **told) if had else say("Reported: {title}.", **told)


def _by_hand(step: PlanStep, state: State) -> list[str]:
    """How that is done which no setting does."""
    remedy = next((one for one in state.knowledge.remedies if one.id == step.id), None)
    if step.kind == "version":
        return wrap(brief(step.why, 1), 5)
    if state.plan.steps == (step,) and not step.changes:  # the whole advice
        return wrap(step.why, 5)
    if (step.changes and step.id != AS_REPORTED) or (remedy is not None and remedy.knob is not None):
        return []
    told = BETWEEN_SENTENCES.split(step.why)
    return wrap(next(filter(_COMMAND.search, told), told[0]), 5)


def _named(step: PlanStep, state: State) -> str:
    """Title, what it saves and takes elsewhere, whether results change, and the id that `--accept` takes."""
    results = "" if step.results == "unchanged" else say("results CHANGE")
    moved = (phrases.saves_word(step), *phrases.trade_words(step, state.ledger))
    facts = " · ".join(filter(None, [*moved, results, step.id]))
    return say("{step} ({facts})", step=step.title, facts=facts)


def brief(text: str, columns: int = PARAGRAPH) -> str:
    """The first sentence, and those after it that fit into so many columns."""
    first, *others = BETWEEN_SENTENCES.split(text)
    for one in others:
        if cells(first) + cells(one) > columns:
            break
        first = sentences((first, one))
    return first


def and_more(left: int) -> list[str]:
    """How many are not shown; [] where all are."""
    return wrap(say_count("and {number} more", "and {number} more", left), 2) if left > 0 else []
