"""Takes up in a crash what the user answered of it, and what the sizes and the saves that are due tell of its phase."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from advisor.crash.evidence import Crash, stopped_without_a_word
from advisor.crash.phase import LEAVES_BEHIND
from advisor.diagnosis.course_facts import rising_course, said_facts
from advisor.diagnosis.diagnosis import UNKNOWN
from advisor.diagnosis.event_facts import due_facts
from advisor.diagnosis.facts import NEARLY_ALL
from advisor.language import clauses, say
from advisor.memory.attribution import BySize
from advisor.memory.batches import AT_CAP, LONGEST_ROW, NO_EVALUATION
from advisor.run.run import Knob, KnobValue, Run
from advisor.words import PHASES, Phase

OF_A_DEATH = ("memory", "ended", "seen", "phase", "first_step", "course")
"""Questions of which an answer says that the run died."""
FUSED, FLASH = "actor.fused_loss", "actor.flash_attention"


def end_settled(crash: Crash, answers: Mapping[str, str]) -> Crash:
    """The crash without the doubt that an answer takes away: who killed the process."""
    if crash.verdict != "unclear" or answers.get("killer") != "kernel":
        return crash
    return replace(crash, unclear_because=say("by your answer the kernel killed it for memory"), settle_by=())


def died_all_the_same(crash: Crash, answers: Mapping[str, str], host: int | None) -> Crash:
    """The crash where the user says how the run died, of which the log bears no sign; or where `host`, the bytes of RAM
    of a node, was nearly full at the log's end and filling.
    """
    said = {answer for name, answer in answers.items() if name in OF_A_DEATH} - {UNKNOWN, "none", "well", "hung"}
    course = rising_course(crash.readings, "host_used")
    full = course is not None and host is not None and course[-1].bytes >= host * NEARLY_ALL / 100
    return stopped_without_a_word(crash) if (said or full) and crash.is_well and not crash.finished else crash


def where_due(crash: Crash, run: Run) -> Crash:
    """The crash among what came due where it died, for the first time or each time by a person's words, where the last
    mark alone shows its phase, or nothing does."""
    crash = _without_evaluation(crash, run)
    marked = crash.phase_by_mark and crash.phase not in LEAVES_BEHIND
    untold = crash.phase == "unknown" and crash.verdict == "oom" and not (crash.phase_among or crash.frames)
    if not (marked or untold):
        return crash
    facts = due_facts(run, crash.steps_done)
    if untold and (told := said_facts(crash).get("periodic")) is not None:
        facts = {**dict.fromkeys(("eval.due", "eval.first", "save.due", "save.first"), told), **facts}
    events: dict[str, Phase] = {"save": "checkpoint"} if marked else {"eval": "validation", "save": "checkpoint"}
    sure = {name for name, fact in facts.items() if fact.value is True}
    due = {name: phase for name, phase in events.items() if {f"{name}.due", f"{name}.first"} <= sure}
    if not due:
        return crash
    reasons = (*(facts[f"{name}.due"].because for name in due), crash.phase_because)
    because = clauses(dict.fromkeys(filter(None, reasons)))
    among = (*due.values(), crash.phase if marked else "actor_update")
    return replace(crash, phase="unknown", phase_among=among, phase_because=because)


def _without_evaluation(crash: Crash, run: Run) -> Crash:
    """The crash without an evaluation among its phases, where the launch says that there is none."""
    knob = run.knobs.get("eval.on")
    if (
        "validation" not in crash.phase_among
        or knob is None
        or knob.source == "default"
        or knob.value not in NO_EVALUATION
    ):
        return crash
    left = tuple(phase for phase in crash.phase_among if phase != "validation")
    because = clauses((crash.phase_because, say("the launch evaluates nothing")))
    alone = len(left) == 1
    return replace(
        crash, phase=left[0] if alone else crash.phase, phase_among=() if alone else left, phase_because=because
    )


def with_answered_phase(crash: Crash, answers: Mapping[str, str]) -> Crash:
    """The crash in the phase that the user named, where the log shows none or another."""
    given = next((phase for phase in PHASES if phase == answers.get("phase")), None)
    return crash if given is None else replace(crash, phase=given, phase_among=())


def in_phase_of(crash: Crash, told: BySize) -> Crash:
    """The crash in the phase, or among the phases, whose pass makes what was asked for, where nothing else tells it."""
    if crash.phase != "unknown" and not told.instead:
        return crash
    if told.of_logits and "validation" in crash.phase_among:  # an evaluation makes logits of that size as well
        return replace(crash, phase_among=tuple(dict.fromkeys(("validation", *told.phases))))
    if len(told.phases) == 1:
        return replace(crash, phase=told.phases[0], phase_among=(), phase_because=told.because)
    because = crash.phase_because if crash.phase_among else told.because
    return replace(crash, phase_among=told.phases, phase_because=because)


def knobs_of(told: BySize, run: Run) -> dict[str, Knob]:
    """Rows at their cap, full logits in spite of a fused loss, and attention that is not fused, where what was asked
    for says so."""
    knobs: dict[str, KnobValue] = {LONGEST_ROW: AT_CAP} if told.at_cap else {}
    switch = FUSED if told.of_logits else FLASH
    if not told.of_weights and run.is_on(switch, not told.of_logits):
        knobs[switch] = False
    return {name: Knob(name, value, "log", note=told.because) for name, value in knobs.items()}
