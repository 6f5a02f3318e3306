"""Puts the diagnosis together: facts, advisories, the walk, what was ruled out, matching cases, remarks."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.diagnosis.advise import Concern, advice_of, concern_facts, concerns, suspects, suspicion
from advisor.diagnosis.allocation import allocation_facts, allocation_of, heads, in_order, led, narrower
from advisor.diagnosis.cases import MatchedCase, match_cases
from advisor.diagnosis.deciding import narrowed, walk_likeliest
from advisor.diagnosis.diagnosis import UNKNOWN, Diagnosis, QuestionStep
from advisor.diagnosis.fact import Fact, value_of
from advisor.diagnosis.facts import DiagnosisInputs, gather_facts, scored
from advisor.diagnosis.frame_facts import ENGINES
from advisor.diagnosis.parts import spoken_here
from advisor.diagnosis.remarks import remarks
from advisor.diagnosis.sharing_facts import unrefuted
from advisor.diagnosis.tree import RETOLD, Walk, check_answers, less_likely, retell, ruled_out, walk
from advisor.knowledge.schema import Cause, Knowledge, Tree
from advisor.language import say, sentences
from advisor.memory.calibrate import Correction
from advisor.memory.cells import Ledger
from advisor.memory.ledger import certainty
from advisor.regex import regex
from advisor.words import MEMORIES, PHASES, Basis, Memory, Phase

SUSPECTED = {"regression": "library-regression", "host_growth": "host-library-leak", "what_grows": "host-library-leak"}
"""Questions, and the cause of the advisories that would answer them."""
TOLD = {("host_growth", "yes"): ("host.grows", True), ("course", "grows"): ("gpu.grows", True),
        ("first_step", "yes"): ("first_step", True), ("first_step", "no"): ("first_step", False)}  # fmt: skip
"""Answers that are facts for whatever else asks: advisories, which are checked before the walk, and other questions."""

WAKING = ("line.cumem-oom", "line.torch-memory-saver-oom", "frame.wakes")
"""What shows that an engine was taking its memory back."""
STEPPED = ("first_step", False)
"""A log may count no step and steps were done all the same: its next mark would have come after the one that failed."""
TABLE_TELLS = ("host_holder", "what_grows")
"""Questions that Ray's table of memory users answers."""
ENDINGS = ("ended", "seen")
"""Two questions about one thing, how it ended: an answer to the one is an answer to the other."""


_FACT = regex(r"\{([a-z_.]+)\}")
"""A fact by its name, in the narrower words of a cause: what it says stands there."""


class Diagnosed(Struct, frozen=True):
    """The diagnosis, and what the plan needs beside it."""

    diagnosis: Diagnosis
    cause: Cause
    facts: Mapping[str, Fact]
    concerns: tuple[Concern, ...]
    matched: tuple[MatchedCase, ...]


def diagnose(
    known: DiagnosisInputs, knowledge: Knowledge, answers: Mapping[str, str], found: tuple[Correction, ...] = ()
) -> Diagnosed:
    """Diagnose from what is known and what the user answered. Raises AnswerError for answers the tree does not have."""
    check_answers(knowledge.tree, answers)
    gathered = gather_facts(known)
    facts = unrefuted({**gathered, **allocation_facts(known.crash, knowledge.allocations, gathered)})
    answers = _by_the_line(answers, facts)
    proved = dict(facts)
    ending = next((answers[name] for name in ENDINGS if answers.get(name, UNKNOWN) != UNKNOWN), None)
    if answers.get("killer") == "kernel":  # the kernel kills for host RAM alone
        ending = "killed"
    if ending is not None:
        facts["ended"] = Fact(ending, "user", say("you said so"))
    for name, answer in answers.items():
        if answer != UNKNOWN:
            facts[f"answer.{name}"] = Fact(answer, "user", say("you said so"))
    for name in RETOLD:
        if name in answers:
            retell(facts, name, answers[name])
    facts.update(scored(facts))
    for (question, answer), (name, value) in TOLD.items():
        if answers.get(question) == answer and (name not in proved or (name, value) == STEPPED):
            facts[name] = Fact(value, "user", say("you said so"))
    if answers.get("first_step") == "yes" and (done := facts.get("steps_done")) is not None and done.value == 1:
        facts["first_step"] = Fact(True, "user", say("you said so"))  # one mark may be of the step that failed
        facts.pop("ran", None)
    if (begun := facts.get("first_step")) is not None and begun.value is True:
        facts.setdefault("save.due", Fact(False, begun.source, begun.because))  # nothing is saved before a step
    # where the phase is not known, an advisory is not dismissed for it
    worries = concerns(knowledge.advisories, facts, ignoring=frozenset({"phase"} - set(facts)))
    facts.update(concern_facts(worries))
    walked = _walked(knowledge.tree, facts, answers, known, proved)
    if "memory" not in facts and value_of(facts, "killed.likely") and walked.cause.memory == "host":
        facts["memory"] = Fact("host", "log", "")  # a guess, for what is said and planned
        worries = concerns(knowledge.advisories, facts, ignoring=frozenset({"phase"} - set(facts)))
    matched = match_cases(knowledge.cases, facts, known.run, knowledge.own_cases)
    cause = in_order(walked.cause, led(walked.cause, facts, knowledge))
    made = allocation_of(facts, knowledge)
    title, explains = words_of(cause, facts)
    if made is not None and heads(cause.id, made):
        title, explains = say("No room for {what}", what=made.title), " ".join(made.says.split())
    path = tuple(_with_command(_suspecting(step, worries, facts), known.crash) for step in walked.steps)
    memory = _memory(facts, walked, known.crash)
    diagnosis = Diagnosis(
        cause=cause.id,
        title=title,
        explains=explains,
        basis=_basis(walked, known.ledger, known.crash, memory, _phase(facts)),
        memory=memory,
        phase=_phase(facts),
        path=path,
        ruled_out=ruled_out(knowledge.tree, cause.id, facts),
        less_likely=less_likely(knowledge.tree, walked, facts),
        cases=tuple(m.match for m in matched[:3]),
        advisories=advice_of(worries) if memory != "none" else (),  # each is of memory
        remarks=remarks(known, facts, found, cause.id, made),
        is_verdict=cause.is_verdict,
        record_next_time=spoken_here(cause.record_next_time, facts),
        open_questions=tuple(step.question for step in walked.steps if step.answer == UNKNOWN),
    )
    return Diagnosed(diagnosis, cause, facts, worries, matched)


def _by_the_line(answers: Mapping[str, str], facts: Mapping[str, Fact]) -> Mapping[str, str]:
    """The answers without one that a line of the log names more closely: who sees an engine die as it wakes says that
    it died while it generated."""
    phase = facts.get("phase")
    closer = phase is not None and (phase.value, phase.source) == ("weight_sync", "log")
    if not closer or answers.get("phase") != "rollout_generate" or not any(name in facts for name in WAKING):
        return answers
    return {name: answer for name, answer in answers.items() if name != "phase"}


def words_of(cause: Cause, facts: Mapping[str, Fact]) -> tuple[str, str]:
    """Its title and how it is explained: the narrower words where a fact has them, with what that fact says in them."""
    words = narrower(cause, facts)
    title, explains = (words and words.title) or cause.title, (words and words.explains) or cause.explains
    told = _FACT.sub(lambda found: facts[found[1]].because if found[1] in facts else found[0], explains)
    return title, " ".join(told.split())


def _suspecting(step: QuestionStep, worries: tuple[Concern, ...], facts: Mapping[str, Fact]) -> QuestionStep:
    """An open question that a library version would answer, with the versions that are suspects."""
    suspected = [one for one in suspects(worries) if one.advisory.cause == SUSPECTED.get(step.question)]
    told = [value_of(facts, name) for name in ("has_engine", "rolls_out")]
    suspected = [one for one in suspected if False not in told or one.advisory.library not in ENGINES]
    if step.answer != UNKNOWN or not suspected:
        return step
    doubts = (suspicion(one, facts) for one in suspected[:2])
    return replace(step, if_unknown=sentences((step.if_unknown, *doubts)))


def _with_command(step: QuestionStep, crash: Crash) -> QuestionStep:
    """An open question that Ray's table of memory users answers, with the command by which the log says to read it."""
    if step.answer != UNKNOWN or step.question not in TABLE_TELLS or not crash.table_command:
        return step
    how = say("`{command}`, which the log itself names, prints who held the RAM.", command=crash.table_command)
    return replace(step, if_unknown=sentences((how, step.if_unknown)))


def _walked(
    tree: Tree, facts: dict[str, Fact], answers: Mapping[str, str], known: DiagnosisInputs, proved: Mapping[str, Fact]
) -> Walk:
    """The walk; where a frame without its caller leaves several phases, the likeliest of them is taken as a guess."""
    among = known.crash.phase_among
    if not among or "phase" in facts or known.crash.verdict != "oom":
        walked = walk(tree, facts, answers, proved)
        return narrowed(walked, among) if among else walked
    if answers.get("phase") == UNKNOWN:
        return narrowed(walk(tree, facts, answers, proved), among)
    return walk_likeliest(facts, known.crash, known.ledger, lambda assumed: walk(tree, assumed, answers, proved))


def _basis(walked: Walk, ledger: Ledger, crash: Crash, memory: Memory, phase: Phase) -> Basis:
    """measured: the log answered all · computed: script or machine helped · estimated: one is open, guessed, said, or
    the sum that answers it is."""
    if crash.is_hearsay:
        return "estimated"
    sources = {step.source for step in walked.steps}
    sure = certainty(ledger, "host" if memory == "host" else "gpu", phase) if ledger.gpu else "computed"
    if "script" in sources and (ledger.doubts or sure == "estimated"):
        return "estimated"
    if sources & {"unknown", "user"} or not sources or any(step.guess for step in walked.steps):
        return "estimated"
    return "measured" if sources == {"log"} else "computed"


def _memory(facts: Mapping[str, Fact], walked: Walk, crash: Crash) -> Memory:
    """Which memory ran out; unknown where a log proves that one did, but not which, and the user says nothing."""
    named = value_of(facts, "memory")
    if named is None and crash.verdict == "oom" and not any(step.source == "user" for step in walked.steps):
        return "unknown"
    return next((word for word in MEMORIES if named == word), walked.cause.memory)


def _phase(facts: Mapping[str, Fact]) -> Phase:
    return next((word for word in PHASES if value_of(facts, "phase") == word), "unknown")
