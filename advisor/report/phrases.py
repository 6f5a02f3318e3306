"""Words what several reports share: the verdict in a sentence, run and machine in a line, numbers with their basis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.crash.evidence import HEARD_OTHERWISE, TOLD, Crash, Evidence, stopped
from advisor.diagnosis.diagnosis import UNKNOWN, CaseMatch, QuestionStep, RuledOut
from advisor.hostile import clean_line
from advisor.language import Sayings, clauses, listed, mark, say, sentences
from advisor.machine.describe import NAMELESS
from advisor.machine.inventory import Machine
from advisor.memory.cells import Ledger, PhaseSum, Place
from advisor.memory.fit import (
    ROOM_WORDS,
    Fit,
    FitFinding,
    FitVerdict,
    capacity_of,
    room_of,
    worst_of_each_place,
)
from advisor.memory.squeeze import finding_clause
from advisor.plan.as_in_case import AS_IN
from advisor.plan.plan import NotProposed, Plan
from advisor.report.step_words import *  # noqa: F403 - the words of a step go by this module
from advisor.run.run import Run, Topology
from advisor.units import show_bytes, show_gib, show_params
from advisor.words import (
    MEMORY_TITLES,
    PHASE_TITLES,
    Basis,
    Memory,
    Phase,
    Platform,
    filled,
    sentence,
    when,
    when_either,
)

if TYPE_CHECKING:
    from advisor.state import State

SHARED = 5
"""Of the plan's first steps one has to be a case's own, or the case is not like this one."""
BASIS_WORDS: Sayings[Basis] = Sayings(
    {
        "measured": "measured: printed by the log or read on this machine",
        "computed": "computed: every input of the arithmetic is known",
        "estimated": "estimated: an input of the arithmetic was assumed",
        "documented": "documented: a reported case did this",
    }
)
ANSWERED_BY: Sayings[str] = Sayings(
    {
        "log": "by the log",
        "script": "by the script",
        "machine": "by the machine",
        "user": "by you",
        "unknown": "not answered",
    }
)
ROLES: Sayings[str] = Sayings(
    {
        "cause": "cause",
        "victim": "victim",
        "hint": "hint",
        "pointer": "pointer",
        "warning": "warning",
        "echo": "echo",
        "telemetry": "telemetry",
        "progress": "progress",
    }
)
"""What a line of evidence is."""
_PRINTED: Sayings[str] = Sayings(
    {
        "active_bytes": "active {size}",
        "allocated_bytes": "allocated {size}",
        "allowed_bytes": "allowed {size}",
        "available_bytes": "available {size}",
        "file_bytes": "file {size}",
        "free_bytes": "free {size}",
        "freed_bytes": "freed {size}",
        "graphs_bytes": "graphs {size}",
        "held_bytes": "held {size}",
        "kv_available_bytes": "kv available {size}",
        "kv_needed_bytes": "kv needed {size}",
        "left_bytes": "left {size}",
        "node_total_bytes": "node total {size}",
        "node_used_bytes": "node used {size}",
        "other_bytes": "other {size}",
        "other_process_bytes": "other process {size}",
        "engine_process_bytes": "engine process {size}",
        "peak_bytes": "peak {size}",
        "private_bytes": "private {size}",
        "reserved_bytes": "reserved {size}",
        "reserved_unallocated_bytes": "reserved unallocated {size}",
        "shared_bytes": "shared {size}",
        "shm_bytes": "shm {size}",
        "spilled_bytes": "spilled {size}",
        "task_bytes": "task {size}",
        "threshold_bytes": "threshold {size}",
        "total_bytes": "total {size}",
        "tried_bytes": "tried {size}",
        "used_bytes": "used {size}",
        "virtual_bytes": "virtual {size}",
        "wanted_bytes": "wanted {size}",
        "weights_bytes": "weights {size}",
        "process_bytes": "process {size}",
    }
)
"""Sizes that lines print, by field."""
_ENDINGS = ("memory", "seen", "ended")
"""Questions that ask which memory ran out, or what tells it."""


def verdict(state: State) -> str:
    """The first sentence of every report."""
    crash = state.crash
    if state.diagnosis.is_verdict and crash.verdict == "oom":
        return sentence(state.diagnosis.title)
    if crash.verdict == "oom":
        ran_out = _oom(state.diagnosis.memory, state.diagnosis.phase, crash.phase_among)
        told = say("So somebody wrote; no line of the log proves it.") if crash.is_hearsay else ""
        return sentences((ran_out, told))
    if state.diagnosis.memory == "none" and _told(state) and (crash.verdict != "not_oom" or crash.is_well):
        return sentences((say("No memory was short."), _by_you(state)))
    if crash.is_well and crash.finished:
        ended = mark("The run came to its end after {number} steps; nothing in the log failed.")
        return say(ended, number=crash.steps_done) if crash.steps_done else say("Nothing in the log failed.")
    if crash.is_well:
        return say("Nothing in the log failed as far as it goes; if the run is dead, it was stopped without a word.")
    if crash.is_hearsay and crash.verdict == "not_oom":
        return say(HEARD_OTHERWISE, line=crash.evidence[0].line)
    if crash.verdict == "not_oom":
        return sentences((say("This is not a shortage of memory."), _written(crash)))
    told = state.diagnosis.memory if told_of_memory(state) or killed_likely(state) else "unknown"
    if told == "host" and "memory" not in state.answers and state.answers.get("killer") != "kernel":
        return sentences((_killed(state.diagnosis.phase), _written(crash)))
    if told != "unknown":
        ran_out = say("{memory} ran out.", memory=MEMORY_TITLES[told])
        if state.diagnosis.phase != "unknown":
            ran_out = _oom(told, state.diagnosis.phase)
        return sentences((ran_out, _by_you(state)))
    if not state.asked.logs:
        if state.situation is not None and "nothing_given" in state.situation.facts:
            return say("No log was given, so no crash is proven.")
        return say("No log was given, so no crash is proven; below is what the script asks of the machine.")
    if not crash.evidence:
        return say("Nothing in the log proves a crash for want of memory.")
    return say("The log does not prove whether memory ran out.")


def launch_before(state: State) -> str:
    """How the launch before this one ended in the same log, where that was a shortage and this one had none."""
    failed = (one for one in state.crash.evidence if one.runs_ago and one.memory not in ("none", "unknown"))
    before = next(failed, None) if state.crash.verdict == "not_oom" else None
    if before is None:
        return ""
    told = {"memory": MEMORY_TITLES[before.memory], "place": quote_place(before)}
    return say("The launch before this one in the log ran out of memory: {memory} ({place}).", **told)


def _written(crash: Crash) -> str:
    """What somebody wrote of a shortage, beside a failure that the log proves; "" where nobody did."""
    told = next((one for one in crash.evidence if one.signature in TOLD and not one.runs_ago), None)
    return say("That memory ran out somebody wrote (line {line}); no line proves it.", line=told.line) if told else ""


def _killed(phase: Phase) -> str:
    """The verdict where somebody saw a kill, and nobody who killed."""
    told = {"when": when(phase)}
    return (
        say("The process was killed. That host RAM was short is likely; nothing here proves it.")
        if phase == "unknown"
        else say("The process was killed {when}. That host RAM was short is likely; nothing here proves it.", **told)
    )


def _by_you(state: State) -> str:
    """What of the first sentence only the user says."""
    if not state.asked.logs:
        return say("This is by your answers; no log was given.")
    if state.diagnosis.phase == "unknown" or "phase" in state.answers:
        return say("This is by your answers; the log does not prove it.")
    return say("Which memory it was is by your answers; the log does not prove it.")


def told_of_memory(state: State) -> bool:
    """Whether the user said which memory ran out, or how the run ended, which settles it."""
    return _told(state) and state.diagnosis.memory not in ("none", "unknown")


def killed_likely(state: State) -> bool:
    """Whether host RAM is taken to have been short for a kill alone, of which nothing tells who sent it."""
    guessed = {(step.question, step.answer) for step in state.diagnosis.path if step.guess}
    return bool(guessed & {("killer", "kernel"), ("seen", "killed")})


def why_unclear(state: State) -> str:
    """Why the log proves nothing; of lines that break off, nothing more where the user knows the end."""
    because = state.crash.unclear_because
    if because == stopped() and told_of_memory(state) and state.diagnosis.memory == "gpu":
        return say("These lines do not show the end.")
    return sentence(because)


def _told(state: State) -> bool:
    said = (step for step in state.diagnosis.path if step.source == "user" and step.answer != UNKNOWN)
    return any(step.question in _ENDINGS for step in said)


def nothing_told(crash: Crash) -> str:
    """Of logs that show no cause, one clause."""
    if crash.verdict == "not_oom":
        return say("no failure stands here ({count} lines read)", count=crash.lines_read)
    return say("nothing here says why the run died ({count} lines read)", count=crash.lines_read)


def repeated(entry: Evidence) -> str:
    """ ", 7 times more", ", the run before this one"; "" for a line that stands alone."""
    again = say(", {count} times more", count=entry.repeats) if entry.repeats else ""
    if not entry.runs_ago:
        return again
    if entry.runs_ago == 1:
        return again + say(", the run before this one")
    return again + say(", {count} runs before this one", count=entry.runs_ago)


def role(entry: Evidence) -> str:
    """ "cause, 7 times more"."""
    return ROLES[entry.role] + repeated(entry)


def _oom(memory: Memory, phase: Phase, among: Sequence[Phase] = ()) -> str:
    if phase == "unknown" and among:
        told = {"memory": MEMORY_TITLES[memory], "when": when_either(among)}
        return say("{memory} ran out {when}; the log does not show which.", **told)
    if memory == "unknown" and phase == "unknown":
        return say("Memory ran out; the log does not show in which phase.")
    if memory == "unknown":
        return say("Memory ran out {when}.", when=when(phase))
    if phase == "unknown":
        return say("{memory} ran out; the log does not show in which phase.", memory=MEMORY_TITLES[memory])
    return say("{memory} ran out {when}.", memory=MEMORY_TITLES[memory], when=when(phase))


def remarks(state: State) -> tuple[str, ...]:
    """What the diagnosis remarks, but for what the reports already say of an unclear log."""
    said = state.crash.unclear_because.rstrip(".。").lower() if state.crash.verdict == "unclear" else ""
    return tuple(remark for remark in state.diagnosis.remarks if not said or not remark.lower().startswith(said))


def looks_like(state: State) -> CaseMatch | None:
    """The documented case to be named beside this run: alike, and helped by one of the first steps proposed here."""
    helped = {one.id: {*one.remedies, *one.values, AS_IN + one.id} for one in state.knowledge.cases}
    first = state.plan.steps[:SHARED]
    planned = {name for step in first for name in (step.id, *(change.key.lstrip("-") for change in step.changes))}
    return next((one for one in state.diagnosis.cases if one.alike and helped.get(one.id, set()) & planned), None)


def subject(run: Run) -> str:
    """ "EasyR1 · GRPO · Qwen2.5-VL-7B (8.29B parameters)"."""
    parts = [run.title]
    if run.framework != "unknown" or run.algorithm != "unknown":
        parts.append(run.recipe.title)
    name = run.model_name or (run.model.name if run.model else "")
    if name:
        size = show_params(run.model.parameters) if run.model else ""
        parts.append(say("{model} ({size} parameters)", model=name, size=size) if size else name)
    return " · ".join(parts)


def recognised(run: Run) -> str:
    """By what the framework is told, and up to which of its versions it is known; "" where nobody says."""
    if not run.recognised_by:
        return ""
    if run.framework == "unknown":
        return say("Not recognised: {because}.", because=run.recognised_by)
    told = {"because": run.recognised_by, "framework": run.title}
    if (read := run.newest_read) is None:
        return say("Recognised by {because}.", **told)
    told |= {"version": read.name, "month": read.month}
    return say("Recognised by {because}; {framework} is known up to {version} ({month}).", **told)


def because(step: QuestionStep) -> str:
    """Who answered a question and why: "by the log: train.log line 207"."""
    who = say("a guess") if step.guess else ANSWERED_BY[step.source]
    return say("{who}: {because}", who=who, because=step.because) if step.because else who


def answer_title(step: QuestionStep) -> str:
    return next((choice.title for choice in step.choices if choice.id == step.answer), say("I don't know"))


def of_another_run(state: State) -> str:
    """That the log is not of the script as it is, by the first setting that tells it; "" where nothing does."""
    earlier = state.situation.predictor.earlier if state.situation is not None else {}
    for key, then in earlier.items():
        told = mark("The log is of another run than this script's: it had {key} = {then}.")
        return say(told, key=clean_line(key, 80), then=say("unset") if then is None else clean_line(then, 40))
    return ""


def by_reason(refused: Sequence[NotProposed | RuledOut]) -> dict[str, list[str]]:
    """Reason → the titles of all that it speaks against."""
    titles: dict[str, list[str]] = {}
    for each in refused:
        titles.setdefault(each.because, []).append(each.title)
    return titles


def rooms(before: Ledger, after: Ledger | None, place: Place) -> str:
    """What a place has, in GiB; now and after where the changes move it."""
    now, then = (capacity_of(one, place) for one in (before, after or before))
    return size_words(now) if now == then else f"{size_words(now)} → {size_words(then)}"


def size_words(room: int | None) -> str:
    """How large a memory is in GiB, for a title that names the unit."""
    return say("?") if room is None else show_gib(room)


def room_word(phase: PhaseSum, room: int | None, plan: Plan) -> str:
    """What a phase lacks of its place, in a word; "" where it fits, as far as anybody knows."""
    word = room_of(phase, room, plan.fit_at(phase, room), plan.margin)
    return "" if word in (None, "fits", "unsure") else ROOM_WORDS[word]


_PROMISES: Sayings[FitVerdict] = Sayings(
    {
        "fits": "With the selected changes the run is expected to fit: each phase of a step leaves {margin:.0%} of the "
        "memory free, or is no fuller than when the run passed it.",
        "may_not_fit": "With the selected changes the run is expected to fit, but that is not certain: each phase of a "
        "step leaves {margin:.0%} of the memory free, or is no fuller than when the run passed it.",
        "does_not_fit": "The selected changes do not leave {margin:.0%} of the memory free.",
        "cannot_be_said": "Whether the selected changes are enough cannot be computed.",
    }
)
"""Of the selected changes."""
_ONE_SIDE: Sayings[Place] = Sayings(
    {
        "gpu": "With the selected changes the nodes' RAM suffices, {margin:.0%} of it free; whether the cards do "
        "cannot be said.",
        "host": "With the selected changes the cards suffice, {margin:.0%} of each free; whether the nodes' RAM does "
        "cannot be said.",
    }
)
"""The same where the size of one place is all that is not known."""


def fits_words(plan: Plan) -> str:
    """What the plan promises, in a sentence or two; a caution of the plan's own follows."""
    if not plan.selected() and plan.fit.verdict != "cannot_be_said":
        return sentences((say("No change is selected; this is the run as it is."), sentence(plan.shortfall)))
    promise = _PROMISES[plan.fit.verdict]
    if (beside := plan.fit.fits_beside) is not None:
        promise = _ONE_SIDE[beside] if not plan.fit.doubted else _PROMISES["may_not_fit"]
    return sentences((promise.format(margin=plan.margin), sentence(plan.shortfall)))


def fit_sentence(fit: Fit, ledger: Ledger, margin: float) -> str:
    """Whether a run fits as it is, in a sentence or two: the headline of an estimate."""
    worst = worst_of_each_place(fit.findings)
    if fit.verdict == "fits":
        said = say("It fits, with {margin:.0%} of the memory left free in every phase.", margin=margin)
        passed = say(
            "It fits: every phase leaves {margin:.0%} of the memory free, or was passed already.", margin=margin
        )
        return passed if fit.lived_through else said
    if fit.verdict == "may_not_fit":
        return say("It may not fit: {why}.", why=clauses(map(finding_clause, worst)))
    if fit.verdict == "does_not_fit":
        return sentences(_excess(one, ledger, margin) for one in worst)
    if ledger.gpu and [one.place for one in worst] == ["host"] and worst[0].reason == "capacity":
        beside = say("It fits on the GPUs, with {margin:.0%} of their memory left free in every phase.", margin=margin)
        if fit.doubted:
            beside = say("It may not fit: {why}.", why=clauses(map(finding_clause, worst_of_each_place(fit.perhaps))))
        unknown = say("Whether host RAM suffices cannot be said: how much a node has is not known (--host-ram).")
        return sentences((beside, unknown))
    missing = clauses(ledger.missing or map(finding_clause, worst)) or say("the capacity is not known")
    if not ledger.missing and worst and all(one.reason == "capacity" for one in worst):
        return sentences(map(sentence, map(finding_clause, worst)))  # what to tell, and no more stands in doubt
    return say("Whether it fits cannot be said: {missing}.", missing=missing)


def _excess(one: FitFinding, ledger: Ledger, margin: float) -> str:
    if one.reason != "over":
        return say("It does not fit: {why}.", why=finding_clause(one))
    return say(
        "{memory} does not fit: {phase} is expected to take {size} of {room}, of which {margin:.0%} should stay free.",
        memory=MEMORY_TITLES[one.place],
        phase=PHASE_TITLES[one.phase],
        size=show_bytes(one.expected),
        room=show_bytes(capacity_of(ledger, one.place)),
        margin=margin,
    )


def holders(crash: Crash, most: int = 4, least: float = 0.0) -> list[str]:
    """Who held host RAM, alike commands together: "8 × ray::WorkerDict.update_actor, 68.31–68.71 GiB each". `least`:
    part of what all hold, below which nobody is named."""
    by_command: dict[str, list[int]] = {}
    for user in crash.top_users:
        by_command.setdefault(clean_line(user.command, 60), []).append(user.used_bytes)
    held = sorted(by_command.items(), key=lambda one: -sum(one[1]))
    floor = least * sum(user.used_bytes for user in crash.top_users)
    return [_held(command, sizes) for command, sizes in held[:most] if sum(sizes) >= floor]


def _held(command: str, sizes: list[int]) -> str:
    if len(sizes) == 1:
        return say("{command}, {size}", command=command, size=show_bytes(sizes[0]))
    return say(
        "{count} × {command}, {low}–{high} GiB each",
        count=len(sizes),
        command=command,
        low=show_gib(min(sizes), 2),
        high=show_gib(max(sizes), 2),
    )


def quote_place(entry: Evidence) -> str:
    """ "train.log:41207"."""
    return f"{entry.file}:{entry.line}" if entry.file else say("line {line}", line=entry.line)


def printed(entry: Evidence, most: int | None = None) -> str:
    """The sizes that a line printed, `most` of them: "tried 2.00 GiB · total 79.15 GiB · free 278.19 MiB"."""
    sizes = [
        filled(_PRINTED.get(name, name.replace("_", " ").removesuffix("bytes") + "{size}"), {"size": show_bytes(value)})
        for name, value in entry.fields.items()
        if name.endswith("_bytes") and not isinstance(value, str)
    ]
    return " · ".join(sizes[:most])


def machine_line(machine: Machine, topology: Topology, platform: Platform = "cuda") -> str:
    """ "2 nodes of 8 × A100-SXM4-40GB each · 760.00 GiB RAM, no container limit known · torch 2.5.1, ray 2.40.0". By
    the launch's topology the nodes that nobody states, and how many GPUs where nobody knows of which kind they are."""
    parts = []
    nodes = machine.nodes or (topology.nodes if topology.known else 1)
    count, counted = len(machine.usable), topology.counted or 0
    if machine.sources.get("gpus") == "script" and count == topology.asked_per_node:  # of a node, as the job asks
        nodes = max(nodes, -(-counted // count))
    one_memory = platform in ("mps", "cpu") and not machine.gpus
    own = say("no card with memory of its own") if one_memory else cards(machine, topology.counted)
    each = nodes > 1 and machine.gpus and not (machine.more_gpus and counted > count)
    parts += [say("{count} nodes of {cards} each", count=nodes, cards=own)] if each else [own]
    parts = [say("{count} nodes", count=nodes), *parts] if nodes > 1 and not each else parts
    host = machine.host
    if host.total_bytes is not None and host.limit_bytes is not None:
        sizes = {"size": show_bytes(host.total_bytes), "limit": show_bytes(host.limit_bytes)}
        if machine.sources.get("host.limit") == "script":
            parts.append(say("{size} RAM, limited to {limit} by {source}", **sizes, source=host.limit_source))
        else:
            parts.append(say("{size} RAM, limited to {limit}", **sizes))
    elif host.limit_bytes is not None:
        source = host.limit_source or say("a limit")
        parts.append(say("RAM limited to {limit} by {source}", limit=show_bytes(host.limit_bytes), source=source))
    elif host.total_bytes is not None:
        parts.append(say("{size} RAM", size=show_bytes(host.total_bytes)))
    if host.shm_bytes is not None:
        parts.append(say("{size} shared memory", size=show_bytes(host.shm_bytes)))
    told = ("torch", "vllm", "sglang", "ray", "deepspeed", "verl", "openrlhf", "ms-swift", "trl", "transformers")
    versions = [f"{name} {machine.libraries[name]}" for name in told if name in machine.libraries]
    if versions:
        parts.append(listed(versions))
    return " · ".join(parts)


def cards(machine: Machine, asked: int | None, kind: str = "", each: str = "") -> str:
    """How many GPUs of which kind; `asked`: as many as the launch asks for, told where nobody counted more. `kind`
    names a card with its size, like "A100 (79.15 GiB)", and `each` its size alone; by default as reports do."""
    names = " / ".join(sorted({gpu.name for gpu in machine.usable}))
    if not machine.gpus or (machine.gpu_bytes is None and names == say(NAMELESS)):
        asked = asked or len(machine.usable)
        return say("{count} GPUs of unknown size", count=asked) if asked else say("no GPU known")
    count, each = len(machine.usable), each or show_bytes(machine.gpu_bytes)
    kind = kind or say("{names} ({size})", names=names, size=each)
    if machine.more_gpus and (asked or 0) > count:
        return say("{count} GPUs by the script, one of {size} by the log", count=asked, size=each)
    if machine.more_gpus and count == 1:
        return say("{kind}, number not known", kind=kind)
    told = f"{count} × {kind}"
    return say("at least {cards}", cards=told) if machine.more_gpus else told
