"""Writes the short report: what a colleague would say at two in the morning, everything once; `--all` has the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.crash.evidence import Evidence
from advisor.diagnosis.cases import open_words
from advisor.diagnosis.deciding import DecidingQuestion, Outcome
from advisor.diagnosis.diagnosis import UNKNOWN, QuestionStep
from advisor.diagnosis.open_questions import SHARDING, VERSION, WAS
from advisor.diagnosis.tree import UNSETTLED
from advisor.hostile import cells, clean_line
from advisor.knowledge.schema import Case
from advisor.language import Sayings, clauses, listed, say, say_count, sentences
from advisor.memory.cells import Place
from advisor.memory.fit import FitVerdict
from advisor.memory.ledger import peak_rises
from advisor.plan.order import most_saved
from advisor.plan.plan import Plan, PlanStep
from advisor.plan.solve import WITNESSES, contradicting, enough_alone
from advisor.report import phrases
from advisor.report.layout import cut_front, join, section, wrap
from advisor.report.machine_line import machine_line
from advisor.report.memory_section import memory_section
from advisor.words import BASIS_TITLES, BETWEEN_SENTENCES, sentence

if TYPE_CHECKING:
    from advisor.state import State

QUOTED, BRIEFLY = 180, 90
"""Characters of the proving line; where its sizes stand beside it."""
SIZES, CLAUSES = 4, 2
"""Shown at most."""
BOTH = 2
"""Ways that an answer could go, shown at least."""
ON_HOST = 2
"""Other steps, shown at least of a plan for the host: what relieves most, and the machine."""
WORDS = 400
"""What somebody reads at night; a longer report says less of what comes second."""


class Most(Struct, frozen=True):
    """How many of each are shown at most."""

    remarks: int
    alternatives: int
    in_order: int
    by_hand: int
    outcomes: int
    notes: int
    assumed: int


LENGTHS = (Most(3, 3, 6, 3, 3, 2, 2), Most(3, 2, 6, 2, 3, 2, 1), Most(2, 1, 6, 1, 2, 1, 1), Most(1, 0, 4, 0, 2, 1, 1))
"""From the longest on; the last is taken however long it is."""
PARAGRAPH = 180
"""Columns of a paragraph; the sentences beyond are for `--all`."""
_PROVES = ("cause", "victim", "hint", "pointer", "warning")
"""Roles of evidence, the one that proves most first."""
UNPROVEN = "unproven"
"""An answer that no evidence contradicts."""
_OPTION = re.compile(r"--[a-z-]+")
_FILE = re.compile(r"[\w./-]+\.(?:ya?ml|json|toml|py|sh)\b")
_SIZE = re.compile(r"\d [KMGT]iB\b")
_COMMAND = re.compile(r"[`=]|--\w|\w_\w")
"""What a sentence has that says what to type."""
OTHER = "other"
"""The answer that names nothing, so that whatever the evidence names agrees with it."""
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
"""The same where the changes move nothing to that place."""


def short_report(state: State) -> str:
    """Verdict and proof, cause, the question that decides most, changes, what they rest on, what to look at next.

    As much of each as leaves the whole short.
    """
    *longer, shortest = LENGTHS
    written = (_written(state, most) for most in longer)
    return next((text for text in written if len(text.split()) <= WORDS), None) or _written(state, shortest)


def _written(state: State, most: Most) -> str:
    asked = state.deciding()
    return join(
        [
            *_head(state),
            *_cause(state, most, guessed=asked is not None),
            *_settling(state),
            *(_asked(asked, state, most) if asked is not None else []),
            *_asked_name(state, asked),
            *section(say("Change"), _changes(state, most)),
            *memory_section(state),
            *section(say("It rests on"), _basis(state, asked, most)),
            *section(say("If it fails again"), _again(state, asked)),
            "",
            *wrap(say("--all shows the rest: every question, step, phase and case.")),
        ]
    )


# --- verdict and proof ---------------------------------------------------------------------------------------------


def _head(state: State) -> list[str]:
    crash = state.crash
    lines = wrap(phrases.verdict(state))
    if crash.verdict == "unclear" and state.asked.logs:
        lines += wrap(phrases.why_unclear(state))
    proof = min((one for one in crash.evidence if one.role in _PROVES), key=_proving, default=None)
    if proof is not None:
        sizes = phrases.printed(proof, SIZES)
        quoted = _excerpt(proof, _anchors(state, proof), BRIEFLY if sizes else QUOTED)
        lines += wrap(f"{cut_front(phrases.quote_place(proof), 60)}  {quoted}", 2, 4) + wrap(sizes, 4)
        beside, every = proof.fields.get("other_processes"), proof.fields.get("card_processes")
        lines += wrap(say("Held beside it: {held}", held=beside), 2, 4) if beside else []
        lines += wrap(say("On the card: {held}", held=every), 2, 4) if every else []
        lines += wrap(_tensor(state), 4) if crash.phase == "unknown" else []
    held = phrases.holders(crash, 1)
    lines += wrap(say("Held: {held}", held=held[0]), 2, 4) if held else []
    if crash.phase_because and crash.phase != "unknown":
        lines += wrap(say("The phase: {because}", because=crash.phase_because), 2, 4)
    run = f"{phrases.subject(state.run)} · {machine_line(state.machine, state.run.topology, state.crash.platform)}"
    told = [line for sentence in state.run.told_first for line in wrap(sentence, 2, 4)]
    return [*lines, *wrap(say("Run: {run}", run=run), 2, 4), *told]


def _proving(entry: Evidence) -> tuple[int, int]:
    return (entry.runs_ago, _PROVES.index(entry.role))


def _tensor(state: State) -> str:
    """Which tensors of this run have the size that was asked for, the likeliest first; "" where none has."""
    found = [match for match in state.attribution if match.matches]
    other = next((match for match in found if match.of_logits is not found[0].of_logits), None)
    if not found:
        return ""
    told = {"tensor": found[0].tensor, "shape": found[0].shape}
    if other is None:
        return say("The size is that of: {tensor}, {shape}", **told)
    also = {"other": other.tensor, "as": other.shape}
    return say("The size is that of: {tensor}, {shape}; or of: {other}, {as}", **told, **also)


def _anchors(state: State, entry: Evidence) -> tuple[str, ...]:
    signatures = state.knowledge.signatures.signatures
    return next((one.anchors for one in signatures if one.id == entry.signature), ())


def _excerpt(entry: Evidence, anchors: Iterable[str], most: int) -> str:
    """The part of a long line that stands around what makes it a proof."""
    text = clean_line(entry.text, 100_000)
    if len(text) <= most:
        return text
    at = min((found for anchor in anchors if (found := text.find(anchor)) >= 0), default=0)
    start = max(0, min(at - most // 4, len(text) - most))
    start = text.find(" ", start, at) + 1 if start else 0
    part = text[start : start + most]
    end = part.rfind(" ") if start + most < len(text) else -1
    return ("…" if start else "") + (f"{part[:end]} …" if end > 0 else part)


# --- cause and the open question -----------------------------------------------------------------------------------


def _cause(state: State, most: Most, guessed: bool) -> list[str]:
    """Why, by which fact, what the user and the evidence say differently, known faults, and remarks."""
    diagnosis = state.diagnosis
    if not diagnosis.cause:
        return []
    title = diagnosis.title
    if diagnosis.memory != "unknown" and not guessed:
        title = say("{title} ({basis})", title=title, basis=BASIS_TITLES[diagnosis.basis])
    head = say("Best guess: {title}", title=title) if guessed else say("Cause: {title}", title=title)
    head = title if diagnosis.cause == UNSETTLED else head
    lines = wrap(head, 0, 2) if sentence(diagnosis.title) != phrases.verdict(state) else []
    lines = ["", *lines, *wrap(_brief(diagnosis.explains), 2), *wrap(_what_it_was(state), 2)]
    last = diagnosis.path[-1] if diagnosis.path else None
    lines += (
        wrap(say("By: {fact}", fact=_answered(last)), 2, 4)
        if last is not None
        and last.is_a_fact("log", "script", "machine")
        and last.answer != "no"  # what is not so proves nothing of what is
        and not _said(last.because, diagnosis.explains)
        else []
    )
    for step in diagnosis.path:
        if step.suggested not in ("", step.answer, UNPROVEN) and step.answer != OTHER:
            other = next((choice.title for choice in step.choices if choice.id == step.suggested), step.suggested)
            told = {"asks": step.asks, "answer": phrases.answer_title(step), "other": other}
            lines += wrap(say("{asks} You said: {answer}. The evidence says: {other}.", **told), 2, 4)
    for advice in diagnosis.advisories:
        library = f"{advice.library} {advice.version}"
        lines += wrap(say("{library}: {title}.", library=library, title=advice.title), 2, 4)
    return lines + [line for remark in phrases.remarks(state)[: most.remarks] for line in wrap(_brief(remark), 2)]


def _said(because: str, explains: str) -> bool:
    """Whether the cause's own words have a size, or one of the facts behind an answer: then they are its proof."""
    facts = because.split(clauses(("", "")))
    return _SIZE.search(explains) is not None or any(one and one in explains for one in facts)


def _what_it_was(state: State) -> str:
    """What is known of a failure that is no shortage of memory."""
    crash, known = state.crash, state.knowledge.signatures.signatures
    says = next((one.says for one in known if one.id == crash.signature), "")
    return " ".join(says.split()) if crash.verdict == "not_oom" else ""


def _answered(step: QuestionStep) -> str:
    told = {"asks": step.asks, "answer": phrases.answer_title(step), "because": phrases.because(step)}
    return say("{asks} {answer} ({because})", **told)


def _asked(asked: DecidingQuestion, state: State, at_most: Most) -> list[str]:
    """Where each answer leads, how to find out, and the step that is right whatever the answer."""
    step = asked.step
    most = max(BOTH, at_most.outcomes - bool(state.plan.selected()))  # with nothing chosen, it is the next step
    lines = ["", *wrap(say("One answer decides most: {asks}", asks=step.asks), 0, 2)]
    for outcome in sorted(asked.outcomes, key=lambda one: one.cause.id != state.diagnosis.cause)[:most]:
        lines += wrap(_outcome(outcome, state, with_look=asked.tells_memory), 2, 4)
    lines += _more(len(asked.outcomes) - most)
    how = say("To find out: {how}", how=_brief(step.if_unknown, 1)) if step.if_unknown else ""
    lines += wrap(sentences((how, say("Answer: --answer {question}=…", question=step.question))), 2, 4)
    return lines + _right_either_way(asked, _Shown.of(state.plan, at_most))


def _asked_name(state: State, asked: DecidingQuestion | None) -> list[str]:
    """Which framework trains, where nobody knows it and the steps bear the usual names of settings."""
    of_settings = {one.id for one in state.knowledge.remedies if one.knob is not None}
    named = any(one.id in of_settings for one in state.plan.steps)
    if state.run.framework != "unknown" or state.crash.platform not in ("cuda", "mps", "cpu") or not named:
        return []
    place = "framework_host" if state.diagnosis.memory == "host" else "framework"
    if asked is not None and asked.step.question == place:
        return []
    told = say("Which framework trains decides what its settings are called: --answer {question}=…", question=place)
    return wrap(told, 2, 4) if asked is not None else ["", *wrap(told, 0, 2)]


def _settling(state: State) -> list[str]:
    """What log or user contradict is asked first: its answer decides every sum."""
    step = state.settling()
    if step is None:
        return []
    lines = ["", *wrap(say("First: {asks}", asks=step.asks), 0, 2)]
    who = contradicting(state.situation) if state.situation is not None else ""
    lines += wrap(say("{who} contradicts the sums without it: {why}", who=who, why=step.why), 2, 4)
    return lines + wrap(say("Answer: --answer {question}=…", question=step.question), 2, 4)


def _right_either_way(asked: DecidingQuestion, shown: _Shown) -> list[str]:
    """A step by the number under which it is shown; none that stands further down."""
    numbered = shown.chosen or shown.others
    right = (number for number, one in enumerate(numbered, 1) if one.id in asked.right_either_way and _helps(one))
    number = next(right, None)
    if number is None and asked.tells_memory:
        told = say(
            "Right whatever the answer: start it again, from the last checkpoint, under "
            "`rl-oom-advisor watch -- COMMAND`, which records card and RAM up to the end and diagnoses what ended it."
        )
        return wrap(told, 2, 4)
    return [] if number is None else wrap(say("Right whatever the answer: change {number}", number=number), 2, 4)


def _helps(step: PlanStep) -> bool:
    return step.selected or step.kind in ("machine", "manual") or any(size > 0 for size in step.saves.values())


def _outcome(outcome: Outcome, state: State, with_look: bool) -> str:
    """ "yes → Host memory grows with every step", and where no memory was short, what to look at."""
    told = [choice.id for choice in outcome.choices[:2]]
    left = len(outcome.choices) - len(told)
    told += [say("{count} more", count=left)] if left else []
    leads = say("as above") if outcome.cause.id == state.diagnosis.cause else outcome.cause.title
    then = ""
    if with_look and outcome.cause.memory == "none":
        then = say("; look at: {what}", what=sentences((outcome.cause.record_next_time,)))
    return f"{listed(told)} → {leads}{then}"


# --- the plan ------------------------------------------------------------------------------------------------------


class _Shown(Struct, frozen=True):
    """The steps that are printed, in the plan's order."""

    ahead: tuple[PlanStep, ...]
    """Before what is switched on: what is looked at first."""
    chosen: tuple[PlanStep, ...]
    others: tuple[PlanStep, ...]
    left: int
    """Steps that are not printed."""

    @staticmethod
    def of(plan: Plan, most: Most) -> _Shown:
        """What takes more of the other place than there is is offered only where nothing else is; so is what costs
        memory, unless it is the cure: a larger share saves nothing, and may be what an engine lacks.
        """
        chosen = plan.selected()
        certain = [step for step in plan.steps if not step.only_if]
        first = certain.index(chosen[0]) if chosen else 0
        ahead, later = certain[:first], [step for step in certain[first:] if not step.selected]
        helping = [s for s in later if s is plan.steps[0] or (phrases.largest_saving(s) or ("", 1, ""))[1] >= 0]
        on_host = (one for one in helping if one.place == "host")
        largest = max(on_host, key=most_saved, default=None)  # told with its price
        helping = [step for step in helping if not step.spills or step is largest] or helping
        least = 1 if largest is None else ON_HOST
        shown = helping[: max(least, most.alternatives + 1 - len(chosen))] if chosen else helping[: most.in_order]
        ahead = ahead[: max(1, most.alternatives)]
        left = len(certain) - len(chosen) - len(ahead) - len(shown)
        return _Shown(tuple(ahead), chosen, tuple(shown), left)


def _changes(state: State, most: Most) -> list[str]:
    plan = state.plan
    shown = _Shown.of(plan, most)
    chosen, others = shown.chosen, shown.others
    perhaps = [step for step in plan.steps if step.only_if]
    if not plan.steps:
        return wrap(plan.shortfall, 2)
    short = _worst(_unsaid(plan.shortfall, state, most))
    if perhaps and not chosen and not others:
        counted = say("By the settings alone: {short}", short=short) if short and not state.ran else ""
        nothing = say("Nothing, before it is known what ended the run.")
        beside = say("Beside that, by the settings alone: {short}", short=short) if counted else ""
        told = any(one.place == perhaps[0].place and one.reason == "over" for one in plan.fit.findings)
        ways = wrap(nothing, 2) + _if_it_was(perhaps, state, most)
        return wrap(counted, 2) + ways if told else ways + wrap(beside, 2)
    lines = [line for step in shown.ahead for line in _offered(say("First:"), step, state) + _by_hand(step, state)]
    lines += wrap(sentences((_promise(state), short)), 2)
    for number, step in enumerate(chosen, 1):
        lines += _chosen(f"{number}.", step, state)
    if others:
        ordered = say("In this order, until it runs:") if len(others) > 1 else say("To try:")
        lines += wrap(say("Or:") if chosen else ordered, 2)
        marks = ["-"] * len(others) if chosen else [f"{number}." for number in range(1, len(others) + 1)]
        for number, (mark, step) in enumerate(zip(marks, others, strict=True)):
            helps = _only_helps(step, state) if chosen else ""
            lines += _offered(mark, step, state, helps) + (_by_hand(step, state) if number < most.by_hand else [])
    return lines + _more(shown.left) + _if_it_was(perhaps, state, most)


def _if_it_was(steps: list[PlanStep], state: State, most: Most) -> list[str]:
    """Steps for one way the open question may go, under what has to be true first; [] where there are none."""
    lines = [line for one in steps[:1] for line in wrap(say("Right {only_if}:", only_if=one.only_if), 2)]
    for number, step in enumerate(steps[: most.in_order], 1):
        lines += _offered(f"{number}.", step, state) + (_by_hand(step, state) if number <= most.by_hand else [])
    return lines + _more(len(steps) - most.in_order)


def _promise(state: State) -> str:
    plan = state.plan
    if not plan.selected():
        return ""
    if state.run.quoted:
        return say("Whether these suffice cannot be said from a part of the launch.")
    beside = plan.fit.fits_beside
    if beside is None or plan.before is None or plan.after is None:
        return _PROMISES[plan.fit.verdict]
    return (_ONE_SIDE if peak_rises(plan.before, plan.after, beside) else _ENOUGH)[beside]


def _unsaid(shortfall: str, state: State, most: Most) -> str:
    """Without the remarks that stand below the cause already."""
    for remark in phrases.remarks(state)[: most.remarks]:
        shortfall = shortfall.replace(remark, "")
    return shortfall.strip(" ;；")


def _worst(shortfall: str) -> str:
    """What is short or in doubt: its first clauses, and how many more there are."""
    parts = shortfall.split(clauses(("", "")))
    left = len(parts) - CLAUSES
    return sentence(clauses([*parts[:CLAUSES], say("{count} more", count=left)])) if left > 0 else sentence(shortfall)


def _chosen(number: str, step: PlanStep, state: State) -> list[str]:
    lines = wrap(f"{number} {_named(step, state)}", 2, 5)
    for change in step.changes:
        where = f"{change.file}:{change.line}" if change.line is not None else change.file or change.how
        told = phrases.change_line(change) + (_further(step) if change is step.changes[0] else "")
        lines += wrap(say("{change} ({place})", change=told, place=where) if where else told, 5, 7)
    lines += wrap(sentence(step.worked_here), 5)
    why = "" if phrases.saves_word(step) else _brief(step.why, 1)
    costs = say("Costs: {costs}", costs=step.costs) if step.costs else ""
    return lines + wrap(why, 5) + wrap(costs, 5, 7)


def _further(step: PlanStep) -> str:
    return say(", then {value}", value=step.then) if step.then else ""


def _only_helps(step: PlanStep, state: State) -> str:
    """That another way is none by itself, where the chosen steps are one."""
    fit = state.plan.fit
    if state.planned_for is None or (fit.verdict != "fits" and fit.fits_beside is None):
        return ""
    return say("not enough alone") if enough_alone(step, state.planned_for) is False else ""


def _offered(mark: str, step: PlanStep, state: State, *more: str) -> list[str]:
    """The step in a line, with what `more` there is to say of it."""
    changes = clauses(phrases.change_line(change) for change in step.changes)
    line = f"{mark} {_named(step, state, *more)}" + (f": {changes}{_further(step)}" if changes else "")
    unwritten = state.script is not None and step.kind == "setting" and not any(one.file for one in step.changes)
    lines = wrap(say("{step}; by hand", step=line) if unwritten and changes else line, 2, 3 + len(mark))
    return lines + wrap(_as_in(step, state), 5, 7)


def _as_in(step: PlanStep, state: State) -> str:
    """Which case stands behind it, where all that is known of that is so here, and the versions it had."""
    alike = state.situation.cases if state.situation is not None else ()
    case = next((one for one in alike if step.documented.partition(" ")[0] == one.id), None)
    if case is None or any(not name.startswith("version ") for name in _unknown_of(case, state)):
        return ""
    if next(one for one in state.plan.steps if one.documented == step.documented) is not step:
        return ""  # told already
    had = [f"{name.removeprefix('version ')} {v}" for name, v in case.situation.items() if name.startswith("version ")]
    told = {"title": case.title, "versions": listed(had)}
    return say("Reported, with {versions}: {title}.", **told) if had else say("Reported: {title}.", **told)


def _unknown_of(case: Case, state: State) -> list[str]:
    """What the case says of its run and nobody knows of this one."""
    return open_words(case, state.situation.facts, state.run) if state.situation is not None else []


def _by_hand(step: PlanStep, state: State) -> list[str]:
    """How that is done which no setting does."""
    remedy = next((one for one in state.knowledge.remedies if one.id == step.id), None)
    if step.kind == "version":
        return wrap(_brief(step.why, 1), 5)
    if step.changes or remedy is None or remedy.knob is not None:
        return []
    told = BETWEEN_SENTENCES.split(step.why)
    return wrap(next(filter(_COMMAND.search, told), told[0]), 5)


def _named(step: PlanStep, state: State, *more: str) -> str:
    """Title, what it saves and takes elsewhere, whether results change, `more`, and the id that `--accept` takes."""
    results = "" if step.results == "unchanged" else say("results CHANGE")
    moved = (phrases.saves_word(step, state.ledger.gpu_capacity), *phrases.trade_words(step, state.ledger))
    facts = " · ".join(filter(None, [*moved, *more, results, step.id]))
    return say("{step} ({facts})", step=step.title, facts=facts)


def _brief(text: str, columns: int = PARAGRAPH) -> str:
    """The first sentence, and those after it that fit into so many columns."""
    first, *others = BETWEEN_SENTENCES.split(text)
    for one in others:
        if cells(first) + cells(one) > columns:
            break
        first = sentences((first, one))
    return first


def _more(left: int) -> list[str]:
    return wrap(say_count("and {number} more", "and {number} more", left), 2) if left > 0 else []


# --- what it rests on, and what next -------------------------------------------------------------------------------


def _basis(state: State, asked: DecidingQuestion | None, most: Most) -> list[str]:
    """Notes on how the run was read, guesses of the count, what is not known, and the questions that stay open.

    What the cause's remarks say of a file is not said again.
    """
    if state.crash.verdict == "not_oom" or state.diagnosis.memory == "none":
        return []
    ledger = state.ledger
    told_files = _files([*state.run.told_first, *phrases.remarks(state)[: most.remarks]])
    missing = [one for one in ledger.missing if not told_files & _files([one])]
    wanted = set(_OPTION.findall(" ".join(missing)))  # nothing is asked for twice
    notes = [n for n in state.run.notes if n not in state.run.told_first and not wanted & set(_OPTION.findall(n))]
    notes = [note for note in notes if not told_files & _files([note])]
    taken = dict.fromkeys(gpu.problem for gpu in state.machine.usable if gpu.problem)
    lines = [line for one in taken for line in wrap(sentence(one), 2, 4)]
    lines += [line for note in notes[: most.notes] for line in wrap(note, 2, 4)] + _more(len(notes) - most.notes)
    assumed = [one for one in ledger.assumed if not told_files & _files([one])]
    if assumed and not ledger.missing:
        left = len(assumed) - most.assumed
        told = [*assumed[: most.assumed], *([say("{count} more", count=left)] if left > 0 else [])]
        lines += wrap(say("Assumed: {assumed}", assumed=clauses(told)), 2, 4)
    lines += wrap(say("Not known: {missing}", missing=clauses(missing)), 2, 4) if missing else []
    versioned = any("--lib" in _OPTION.findall(note) for note in notes)
    untold = () if versioned else (VERSION,)
    open_ones = [step.question for step in state.diagnosis.path if step.answer == UNKNOWN]
    still = [one for one in state.telling() if asked is None or one.step.question != asked.step.question]
    surer, more = ([f"{one.step.question}=…" for one in still if one.seldom is rare] for rare in (True, False))
    more += [f"{question}=…" for question in open_ones if question in (*untold, SHARDING, WAS)]
    if more:
        told_so = listed(more)
        lines += wrap(say("More would tell: --answer {questions} (--all says how)", questions=told_so), 2, 4)
    if surer and not more:
        lines += wrap(say("To be surer: --answer {questions} (--all says how)", questions=listed(surer)), 2, 4)
    return lines


def _files(texts: Iterable[str]) -> set[str]:
    """Names of files in sentences."""
    return {name for text in texts for name in _FILE.findall(text)}


def _again(state: State, asked: DecidingQuestion | None) -> list[str]:
    """What to record, what would settle a log that may deceive (unless the question told it), and a case like this."""
    diagnosis, crash = state.diagnosis, state.crash
    known = crash.verdict == "not_oom" and state.plan.steps  # what to do is known already
    lines = [] if known else wrap(_brief(diagnosis.record_next_time, 1), 2)
    told = asked is not None and asked.tells_memory
    told = told or any(step.id in WITNESSES for step in state.plan.steps)  # it is the plan's first step
    told = told or (phrases.told_of_memory(state) and state.diagnosis.memory == "gpu")  # who raised was not killed
    hints = () if told else crash.settle_by[:1]
    lines += [line for hint in hints for line in wrap(say("To settle it: {hint}", hint=hint), 2, 4)]
    if (case := phrases.looks_like(state)) is not None:
        lines += wrap(say("Like this one: {title}: {source}", title=case.title, source=case.source), 2, 4)
    return lines
