"""Writes the short report: what a colleague would say at two in the morning, everything once; `--all` has the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from advisor.crash.evidence import Evidence
from advisor.crash.holders import held_by_others
from advisor.diagnosis.deciding import DecidingQuestion, Outcome
from advisor.diagnosis.diagnose import WAKING
from advisor.diagnosis.diagnosis import UNKNOWN
from advisor.diagnosis.frame_facts import backend_facts
from advisor.diagnosis.open_questions import SHARDING, VERSION, WAS
from advisor.diagnosis.tree import EITHER, UNSETTLED
from advisor.hostile import clean_line
from advisor.language import clauses, listed, mark, say, sentences
from advisor.line_breaks import cut_left
from advisor.machine.describe import held_words
from advisor.machine.gpu_spec import cards_named
from advisor.memory.trainer import has_engine, stage_of, trainer_of
from advisor.plan.plan import PlanStep
from advisor.plan.solve import WITNESSES, contradicting
from advisor.regex import regex
from advisor.report import phrases
from advisor.report.layout import join, section, wrap, wrap_each
from advisor.report.memory_section import memory_section
from advisor.report.phrases import machine_line
from advisor.report.short_changes import Most, ShownSteps, and_more, brief, changes_of
from advisor.units import GIB, show_bytes
from advisor.words import BASIS_TITLES, sentence

if TYPE_CHECKING:
    from advisor.state import State

QUOTED, BRIEFLY = 180, 90
"""Characters of the proving line; where its sizes stand beside it."""
SIZES = 4
"""Shown at most."""
NOTABLE = GIB // 8
"""What others hold of a card is told from here on: less is rounding and the driver's own."""
BOTH = 2
"""Ways that an answer could go, shown at least."""
WORDS = 450
"""What somebody reads at night; a longer report says less of what comes second."""
LENGTHS = (
    Most(3, 3, 4, 3, 3, 2, 2, 5),
    Most(3, 2, 4, 2, 3, 2, 1, 5),
    Most(2, 1, 4, 1, 2, 1, 1, 4),
    Most(1, 0, 4, 1, 2, 1, 1, 4),
)
"""From the longest on; the last is taken however long it is."""
_NAMED = 0.1
"""Part of what all listed processes hold from which on those of one name are told (judgement)."""
_PROVES = ("cause", "victim", "hint", "pointer", "warning")
"""Roles of evidence, the one that proves most first."""
UNPROVEN = "unproven"
"""An answer that no evidence contradicts."""
_OPTION = regex(r"--[a-z-]+")
_FILE = regex(r"[\w./-]+\.(?:ya?ml|json|toml|py|sh)\b")
_SIZE = regex(r"\d [KMGT]iB\b")
_LOOKS = frozenset(
    {
        ("ask-who-killed", "killer"),
        ("ask-the-dead-worker", "seen"),
        ("ask-how-it-ended", "seen"),
        ("ask-how-it-ended", "killer"),
        ("ask-the-last-line", "seen"),
        ("ask-what-failed", "seen"),
        ("ask-what-is-full", "full_place"),
    }
)
"""Steps that say how to find out, and the questions that they answer."""
OTHER = "other"
"""The answer that names nothing, so that whatever the evidence names agrees with it."""


def short_report(state: State) -> str:
    """Verdict and proof, cause, the question that decides most, changes, what they rest on, what to look at next. As
    much of each as leaves the whole short."""
    *longer, shortest = LENGTHS
    written = (_written(state, most) for most in longer)
    return next((text for text in written if len(text.split()) <= WORDS), None) or _written(state, shortest)


def _written(state: State, most: Most) -> str:
    asked = state.deciding()
    return join(
        [
            *_head(state),
            *_cause(state, most, guessed=asked is not None or phrases.killed_likely(state)),
            *_settling(state),
            *(_asked(asked, state, most) if asked is not None else []),
            *_asked_name(state, asked),
            *section(say("Change"), changes_of(state, most)),
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
    lines = wrap(sentences((phrases.verdict(state), state.situation.fits_alone if state.situation is not None else "")))
    if crash.verdict == "unclear" and state.asked.logs:
        lines += wrap(phrases.why_unclear(state))
    roles = (*_PROVES[:-1], "progress") if crash.is_well else _PROVES  # what a run outlived proves nothing
    proving = [one for one in crash.evidence if one.role in roles and not (crash.is_well and one.runs_ago)]
    proof = min(proving, key=lambda one: (one.runs_ago, roles.index(one.role)), default=None)
    if proof is not None:
        sizes = phrases.printed(proof, SIZES)
        signatures = state.knowledge.signatures.signatures
        anchors = next((one.anchors for one in signatures if one.id == proof.signature), ())
        quoted = _excerpt(proof, anchors, BRIEFLY if sizes else QUOTED)
        lines += wrap(f"{cut_left(phrases.quote_place(proof), 60)}  {quoted}", 2, 4) + wrap(sizes, 4)
        beside, every = proof.fields.get("other_processes"), proof.fields.get("card_processes")
        lines += wrap(say("Held beside it: {held}", held=beside), 2, 4) if beside else []
        lines += wrap(say("On the card: {held}", held=every), 2, 4) if every else []
        outside = held_by_others(proof.fields) if crash.memory == "gpu" and not (beside or every) else None
        if outside is not None and outside >= NOTABLE:
            lines += wrap(say("Held by others on the card, or outside torch: {size}", size=show_bytes(outside)), 2, 4)
        lines += wrap(_tensor(state), 4) if crash.phase == "unknown" else []
    held = phrases.holders(crash, 3, _NAMED)
    lines += wrap(say("Held: {held}", held=clauses(held)), 2, 4) if held else []
    lines += wrap(phrases.launch_before(state), 2, 4)
    if crash.phase_because and crash.phase != "unknown":
        lines += wrap(say("The phase: {because}", because=crash.phase_because), 2, 4)
    run = f"{phrases.subject(state.run)} · {machine_line(state.machine, state.run.topology, state.crash.platform)}"
    told = wrap_each(state.run.told_first, 2, 4)
    how = wrap(set_up(state), 2, 4)
    return [*lines, *wrap(say("Run: {run}", run=run), 2, 4), *how, *told]


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
    unfilled = diagnosis.cause == EITHER and "gpu" in (state.crash.memory, state.answers.get("memory"))
    head = title if diagnosis.cause == UNSETTLED or unfilled else head  # no guess: it says what is not known
    lines = wrap(head, 0, 2) if sentence(diagnosis.title) != phrases.verdict(state) else []
    known = (one.says for one in state.knowledge.signatures.signatures if one.id == state.crash.signature)
    other = " ".join(next(known, "").split()) if state.crash.verdict == "not_oom" else ""  # no shortage: what it was
    lines = ["", *lines, *wrap(brief(diagnosis.explains), 2), *wrap(other, 2)]
    last = diagnosis.path[-1] if diagnosis.path else None
    sure = last is not None and last.is_a_fact("log", "script", "machine")
    if last is not None and sure and last.answer != "no" and not _said(last.because, diagnosis.explains):
        told = {"asks": last.asks, "answer": phrases.answer_title(last), "because": phrases.because(last)}
        lines += wrap(say("By: {fact}", fact=say("{asks} {answer} ({because})", **told)), 2, 4)
    for step in diagnosis.path:
        if step.suggested not in ("", step.answer, UNPROVEN) and step.answer != OTHER:
            other = next((choice.title for choice in step.choices if choice.id == step.suggested), step.suggested)
            told = {"asks": step.asks, "answer": phrases.answer_title(step), "other": other}
            lines += wrap(say("{asks} You said: {answer}. The evidence says: {other}.", **told), 2, 4)
    for advice in diagnosis.advisories:
        library = f"{advice.library} {advice.version}"
        lines += wrap(say("{library}: {title}.", library=library, title=advice.title), 2, 4)
    return lines + wrap_each((brief(remark) for remark in phrases.remarks(state)[: most.remarks]), 2)


def _said(because: str, explains: str) -> bool:
    """Whether the cause's own words have a size, or one of the facts behind an answer: then they are its proof."""
    facts = because.split(clauses(("", "")))
    return _SIZE.search(explains) is not None or any(one and one in explains for one in facts)


def _asked(asked: DecidingQuestion, state: State, at_most: Most) -> list[str]:
    """Where each answer leads, how to find out, and the step that is right whatever the answer."""
    step = asked.step
    most = max(BOTH, at_most.outcomes - bool(state.plan.selected()))  # with nothing chosen, it is the next step
    lines = ["", *wrap(say("One answer decides most: {asks}", asks=step.asks), 0, 2)]
    ordered = sorted(asked.outcomes, key=lambda one: one.cause.id != state.diagnosis.cause)[:most]
    lines += wrap_each((_outcome(one, state, with_look=asked.tells_memory) for one in ordered), 2, 4)
    lines += and_more(len(asked.outcomes) - most)
    first = state.plan.steps[0].id if state.plan.steps else ""
    way = say("change {number} shows it.", number=1) if (first, step.question) in _LOOKS else brief(step.if_unknown, 1)
    how = say("To find out: {how}", how=way) if step.if_unknown else ""
    lines += wrap(sentences((how, say("Answer: --answer {question}=…", question=step.question))), 2, 4)
    shown = ShownSteps.of(state, at_most)
    return lines + _right_either_way(state, asked, shown)


def _asked_name(state: State, asked: DecidingQuestion | None) -> list[str]:
    """Which framework trains, where nobody knows it and the steps bear the usual names of settings."""
    of_settings = {one.id for one in state.knowledge.remedies if one.knob is not None}
    named = any(one.id in of_settings for one in state.plan.steps)
    own = state.situation is not None and "project" in state.situation.facts
    if state.run.framework != "unknown" or own or state.crash.platform not in ("cuda", "mps", "cpu") or not named:
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


def _right_either_way(state: State, asked: DecidingQuestion, shown: ShownSteps) -> list[str]:
    """A step by the number under which it is shown; none that stands further down."""
    numbered = shown.chosen or shown.others
    now = state.situation
    sides = [(at, one) for at, one in enumerate(numbered, 1) if now is None or not now.fills_other(one.host_saves)]
    either = asked.right_either_way(state.knowledge.remedies)
    right = (number for number, one in sides if one.id in either and _helps(one))
    number = next(right, None)
    if number is None and asked.tells_memory:
        again = say(
            "Right whatever the answer: start it again (from its last checkpoint, if it has one) under "
            "`rl-oom-advisor watch -- COMMAND`, which records card and RAM up to the end and diagnoses what ended it."
        )
        return wrap(again, 2, 4)
    return [] if number is None else wrap(say("Right whatever the answer: change {number}", number=number), 2, 4)


def _helps(step: PlanStep) -> bool:
    if min(step.host_saves.values(), default=0) < 0:
        return False  # it fills the other memory, which may be the one that is short
    return step.selected or step.kind in ("machine", "manual", "job") or any(size > 0 for size in step.saves.values())


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


# --- what it rests on, and what next -------------------------------------------------------------------------------


def _basis(state: State, asked: DecidingQuestion | None, most: Most) -> list[str]:
    """Notes on how the run was read, guesses of the count, what is not known, and the questions that stay open. What
    the cause's remarks say of a file is not said again."""
    if state.crash.verdict == "not_oom" or state.diagnosis.memory == "none":
        return []
    ledger = state.ledger
    told_files = _files([*state.run.told_first, *phrases.remarks(state)[: most.remarks]])
    missing = [one for one in ledger.missing if not told_files & _files([one])]
    wanted = set(_OPTION.findall(" ".join(missing)))  # nothing is asked for twice
    notes = [n for n in state.run.notes if n not in state.run.told_first and not wanted & set(_OPTION.findall(n))]
    notes = [note for note in notes if not told_files & _files([note])]
    machine = state.machine
    taken = dict.fromkeys(filter(None, (held_words(machine.host), *(gpu.problem for gpu in machine.usable))))
    if state.asked.gpus and machine.sources.get("gpus") != "described":
        taken |= dict.fromkeys(cards_named(state.asked.gpus, state.knowledge.gpus)[1].notes)
    lines = wrap_each((sentence(one) for one in taken), 2, 4)
    lines += wrap_each(notes[: most.notes], 2, 4) + and_more(len(notes) - most.notes)
    assumed = [one for one in ledger.assumed if not told_files & _files([one])]
    if state.diagnosis.memory == "shm":  # no sum is told of it
        return lines
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
    known = crash.verdict == "not_oom" and (state.plan.steps or crash.finished)  # what to do, or that it did not die
    lines = [] if known else wrap(brief(diagnosis.record_next_time, 1), 2)
    told = asked is not None and asked.tells_memory
    told = told or any(step.id in WITNESSES for step in state.plan.steps)  # it is the plan's first step
    told = told or crash.platform == "mps"  # its hints are Linux's
    told = told or (phrases.told_of_memory(state) and state.diagnosis.memory == "gpu")  # who raised was not killed
    hints = () if told else crash.settle_by[:1]
    lines += wrap_each((say("To settle it: {hint}", hint=hint) for hint in hints), 2, 4)
    if (case := phrases.looks_like(state)) is not None:
        lines += wrap(say("Like this one: {title}: {source}", title=case.title, source=case.source), 2, 4)
    return lines


_TRAINS = {
    "fsdp": mark("FSDP trains"),
    "megatron": mark("Megatron trains"),
    "deepspeed": mark("DeepSpeed trains (ZeRO stage {stage})"),
    "ddp": mark("each card trains a whole copy"),
}
_ENGINES = {"vllm": "vLLM", "sglang": "SGLang"}


def set_up(state: State) -> str:
    """Of a run that generates its answers: what trains, which engine generates, and whether they share cards."""
    run, facts = state.run, state.situation.facts if state.situation is not None else {}
    if run.framework == "unknown" or run.recipe.answers != "generated" or state.diagnosis.memory != "gpu":
        return ""
    shown = backend_facts(state.crash).get("trainer")
    named = next((one for one in state.knowledge.frameworks if one.framework == run.framework), None)
    several = named is not None and any("trainer" in one.set for one in named.mechanics_when)
    trainer = str(shown.value) if shown is not None else trainer_of(run)
    read, stage = run.settings and not run.missing_files, run.knobs.get("actor.zero_stage")
    parts = []
    if trainer in ("fsdp", "megatron") and (read or shown is not None or not several):
        parts.append(say(_TRAINS[trainer]))
    elif trainer not in ("fsdp", "megatron") and (
        (run.seen_whole and run.unread is None and not run.launcher_unseen)
        or (stage is not None and stage.source in ("script", "log"))
    ):
        parts.append(say(_TRAINS[trainer], stage=stage_of(run, trainer_of(run))))
    elif several:
        parts.append(say("FSDP or Megatron trains, which is not told: their settings have other names"))
    if not has_engine(run):
        return say("Set-up: {parts}.", parts=clauses(parts)) if run.settings and parts else ""
    seen = facts.get("frame.engine")
    name = str(run.value("rollout.engine") or (seen.value if seen is not None else "")).lower()
    engine = _ENGINES.get(name, say("the engine"))
    shared = facts.get("colocated")
    if any(name in facts for name in WAKING):
        told = say("{engine} generates on the same cards, and sleeps while it trains", engine=engine)
    elif not read and run.settings and run.topology.colocated and (shared is None or shared.source != "log"):
        told = say("{engine} generates, by default on the same cards", engine=engine)
    elif not (read or (shared is not None and shared.source == "log")):
        told = say("{engine} generates; whether on the same cards is not told", engine=engine)
    elif run.topology.colocated or (shared is not None and shared.value is True):
        told = say("{engine} generates on the same cards", engine=engine)
    elif not run.topology.known and not run.seen_whole:  # what places it was not seen
        told = say("{engine} generates; whether on the same cards is not told", engine=engine)
    elif run.topology.engine_elsewhere:
        told = say("{engine} generates in a server of its own", engine=engine)
    else:
        told = say("{engine} generates on cards of its own", engine=engine)
    return say("Set-up: {parts}.", parts=clauses([*parts, told]))
