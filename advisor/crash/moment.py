"""When in the training step a failure happened: its traceback, Ray's task, its own message, the last progress mark."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import TopUser
from advisor.crash.lines import Line
from advisor.crash.phase import (
    WEAK,
    Mark,
    Trace,
    frame_in,
    is_critic,
    phase_of_frames,
    phase_of_texts,
    phases_among,
    tasks_in,
    trace_above,
    trace_below,
)
from advisor.crash.verdict import TRACEBACK, Placed
from advisor.knowledge.schema import FrameRule, Progress
from advisor.language import say
from advisor.words import Phase

_TASK_LINES, _CHAIN_LINES = 6, 60
"""Lines below a failure on which a Ray task is that of the failure; and, of the tasks that raised in turn, all."""
Moment = tuple[Phase, str]
"""(phase, one clause that says by what)"""


class Rules(Struct, frozen=True):
    """What the knowledge says of frames and progress, for the frameworks whose marks the log bears."""

    frames: Sequence[FrameRule]
    progress: Sequence[Progress]
    frameworks: Sequence[str]


def trace_of(cause: Placed | None, lines: Sequence[Line]) -> Trace:
    """The traceback of the cause, above it or right below it; without a cause, the last traceback of `lines`."""
    if cause is not None and cause.id != TRACEBACK:
        return _around(cause, lines)
    if cause is not None and cause.find.after:
        lines = [cause.find.first, *cause.find.after]
    last = next((i for i in range(len(lines) - 1, -1, -1) if frame_in(lines[i])), None)
    return trace_above(lines[: last + 2], lines[last].process) if last is not None else Trace()


def _around(cause: Placed, lines: Sequence[Line]) -> Trace:
    first, after = cause.find.first, cause.find.after
    before = cause.find.before or tuple(line for line in lines if line.number < first.number)
    trace = trace_above(before, first.process)
    if all("/ray/" in frame.file for frame in trace.frames):  # Ray tells under its error what it came through
        below = trace_below([*_beside(first, lines), *after], first.process)
        trace = replace(trace, frames=below.frames or trace.frames, texts=below.texts or trace.texts)
    chain = [line for line in after[_TASK_LINES:_CHAIN_LINES] if "RayTaskError" in line.text]
    return replace(trace, tasks=tasks_in([first]) + trace.tasks + tasks_in([*after[:_TASK_LINES], *chain]))


def _beside(first: Line, lines: Sequence[Line]) -> list[Line]:
    """What stands on the same printed line after a message: a log in JSON keeps the whole traceback there."""
    same = [line for line in lines if line.number == first.number]
    texts = [line.printed for line in same]
    return same[texts.index(first.printed) + 1 :] if first.printed in texts else []


def moment_of(cause: Placed | None, trace: Trace, mark: Mark | None, users: Sequence[TopUser], rules: Rules) -> Moment:
    """The phase of a failure and what shows it. `mark`: the last progress line of its run before it."""
    proofs: tuple[Callable[[], Moment], ...] = (
        lambda: _while_loading(cause, trace, rules),
        lambda: _by_frames(cause, trace, [rule for rule in rules.frames if rule.weight > WEAK], rules.frameworks),
        lambda: _by_texts(cause, trace, rules),
        lambda: _by_message(cause),
    )
    hints: tuple[Callable[[], Moment], ...] = (
        lambda: _by_frames(cause, trace, rules.frames, rules.frameworks),
        lambda: _by_largest(users, rules),
        lambda: _by_progress(mark),
    )
    nothing: Moment = ("unknown", "")
    proof = next((found for step in proofs if (found := step())[0] != "unknown"), nothing)
    if proof[0] != "unknown":
        return proof
    among, _ = left_open(cause, trace, rules)  # a hint may choose among these phases, not overrule them
    hinted = (step() for step in (hints[1:] if among else hints))
    return next((found for found in hinted if found[0] in among or not (among or found[0] == "unknown")), nothing)


def left_open(cause: Placed | None, trace: Trace, rules: Rules) -> tuple[tuple[Phase, ...], str]:
    """The phases among which a frame without its caller leaves the choice, the likeliest first, and the frame."""
    among, frame = phases_among(trace.frames, rules.frames, rules.frameworks)
    if among and is_critic(cause.find.first.process if cause else "", trace):
        among = tuple(dict.fromkeys("critic_update" if one == "actor_update" else one for one in among))
    return among, frame


def _while_loading(cause: Placed | None, trace: Trace, rules: Rules) -> Moment:
    """A message that only one phase prints, under the frame that sets up everything: the message says which part."""
    phase, _ = phase_of_frames(trace.frames, [rule for rule in rules.frames if rule.weight > WEAK], rules.frameworks)
    return _by_message(cause) if phase == "model_load" else ("unknown", "")


def _by_frames(cause: Placed | None, trace: Trace, rules: Sequence[FrameRule], known: Sequence[str]) -> Moment:
    phase, because = phase_of_frames(trace.frames, rules, known)
    if phase == "actor_update" and is_critic(cause.find.first.process if cause else "", trace):
        return "critic_update", say("{because}, in a critic's process", because=because)
    return phase, because


def _by_texts(cause: Placed | None, trace: Trace, rules: Rules) -> Moment:
    task = str(cause.find.fields.get("task", "")) if cause is not None else ""
    own = cause.find.text.split("\n") if cause is not None else []
    tasks = [name for name in (task, *trace.tasks) if name]
    phase, found = phase_of_texts(tasks, rules.frames, "task", rules.frameworks)
    if phase != "unknown":
        return phase, say("Ray task {name}", name=found)
    lines = [text for text in (*own, *trace.texts) if text]
    phase, found = phase_of_texts(lines, rules.frames, "text", rules.frameworks)
    return (phase, say("text {quoted}", quoted=found)) if phase != "unknown" else ("unknown", "")


def _by_message(cause: Placed | None) -> Moment:
    if cause is None or cause.find.signature.phase == "unknown":
        return "unknown", ""
    return cause.find.signature.phase, say("the message itself ({title})", title=cause.find.signature.title)


def _by_progress(mark: Mark | None) -> Moment:
    return (mark[1], say("last progress mark, line {line}", line=mark[0].number)) if mark else ("unknown", "")


def _by_largest(users: Sequence[TopUser], rules: Rules) -> Moment:
    commands = [user.command.removeprefix("ray::") for user in users[:1]]
    phase, found = phase_of_texts(commands, rules.frames, "task", rules.frameworks)
    return (phase, say("the largest process, {name}", name=found)) if phase != "unknown" else ("unknown", "")
