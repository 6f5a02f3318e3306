"""Which phase a failure belongs to: traceback frames, then Ray's task, the message itself, the last progress mark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from advisor.crash.evidence import Frame
from advisor.crash.lines import Line
from advisor.knowledge.schema import FrameRule, Progress
from advisor.language import say
from advisor.words import Phase

_FRAME = re.compile(r'File \\?"(?P<file>[^"\n]{1,400}?)\\?", line (?P<line>\d{1,7}), in (?P<function>[\w.<>]{1,120})')
_NOTEBOOK = re.compile(
    r"(?:File )?(?P<file>(?:/|~|[A-Z]:\\)[^\s:]{1,400}\.py):(?P<line>\d{1,7}),? in (?P<function>[\w.<>]{1,120})"
)
"""IPython's form, and rich's with its frame around it."""
_OLD_NOTEBOOK = re.compile(
    r"^\[?(?P<file>(?:/|~)[^\s:\]]{1,400}\.py)(?:\]\(\S{0,200}\))? in (?P<function>[\w.<>]{1,120})\("
)
"""IPython's form of old, whose line number stands on an arrow below it."""
_ARROW = re.compile(r"^-{2,8}> ?\[?(?P<line>\d{1,7})\b")
_RAY_TASK = re.compile(r"\bray::(?P<task>[\w.:<>]{1,160})")
_CRITIC = re.compile(r"\bCritic(?:Model|Ray|Worker)\w*")
_BEGIN = "Traceback (most recent call last)"
_CHAINED = ("direct cause of the following", "During handling of the above")
_INSIDE = ("^", "~", "---", "-->", "...", "│", "╭", "╰", "|")
"""What lines inside a traceback begin with that are neither frames nor source."""
_FOREIGN = 200
"""Lines of other processes that may stand between the lines of one traceback."""
_TEXT_LINES = 12
_LOOKED_BACK = 4_000


class Trace(Struct, frozen=True):
    """What stands around a failure: frames from outermost to innermost, Ray tasks, and source lines next to them."""

    frames: tuple[Frame, ...] = ()
    tasks: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


def frame_in(line: Line) -> Frame | None:
    """The traceback frame a line shows, in Python's or IPython's form."""
    if " in " not in line.text:
        return None
    match = _FRAME.search(line.text) or _NOTEBOOK.search(line.text)
    if match is None:
        return None
    return Frame(match["file"].replace("\\", "/"), int(match["line"]), match["function"], line.number)


def _old_frame_in(line: Line, arrow: int) -> Frame | None:
    """The frame an old notebook shows, with the line number that the arrow below it had."""
    match = _OLD_NOTEBOOK.match(line.text) if arrow else None
    return Frame(match["file"], arrow, match["function"], line.number) if match else None


def trace_above(before: Sequence[Line], process: str) -> Trace:
    """The traceback that ends just above a line of `process`; lines of other processes in between are skipped."""
    frames: list[Frame] = []
    tasks: list[str] = []
    texts: list[str] = []
    foreign = arrow = 0
    for line in reversed(before):
        if line.process != process:
            foreign += 1
            if foreign > _FOREIGN:
                break
            continue
        tasks.extend(match["task"] for match in _RAY_TASK.finditer(line.text))
        frame = frame_in(line) or _old_frame_in(line, arrow)
        if pointed := _ARROW.match(line.text):
            arrow = int(pointed["line"])
        if frame is not None:
            frames.append(frame)
        elif _BEGIN in line.text or (frames and not _continues(line)):
            break
        elif len(texts) < _TEXT_LINES:
            texts.append(line.text)
    return Trace(tuple(reversed(frames)), tuple(tasks), tuple(texts))


def trace_below(after: Sequence[Line], process: str) -> Trace:
    """Frames right below a line of `process`: Ray prints the exception first and what it came through under it."""
    frames: list[Frame] = []
    texts: list[str] = []
    for line in (line for line in after[: _FOREIGN // 2] if line.process == process):
        frame = frame_in(line)
        if frame is not None:
            frames.append(frame)
        elif _BEGIN in line.text or (frames and not _continues(line)) or len(texts) >= _TEXT_LINES:
            break
        else:
            texts.append(line.text)
    return Trace(tuple(frames), (), tuple(texts) if frames else ())


def _continues(line: Line) -> bool:
    """Whether a line without a frame may stand inside a traceback."""
    text = line.text
    if not text.strip() or text[:1].isspace() or text.lstrip().startswith(_INSIDE):
        return True
    return "ray::" in text or any(mark in text for mark in _CHAINED) or "Error" in text[:120]


def tasks_in(lines: Sequence[Line]) -> tuple[str, ...]:
    """Ray tasks that lines name ("Unhandled error …: ray::WorkerDict.method()")."""
    return tuple(match["task"] for line in lines for match in _RAY_TASK.finditer(line.text))


WEAK = 10
"""Frames of rules up to this weight (an engine's inside, a trainer's main loop) count only where nothing else tells."""


def phase_of_frames(
    frames: Sequence[Frame], rules: Sequence[FrameRule], frameworks: Sequence[str]
) -> tuple[Phase, str]:
    """The phase of the weightiest rule, the innermost frame among equals; ("unknown", "") where no rule applies."""
    best: tuple[int, int] = (-1, -1)
    answer: tuple[Phase, str] = ("unknown", "")
    names = [_name(frame) for frame in frames]
    lower = [name.lower() for name in names]
    for rule in rules:
        if rule.in_ != "frame" or rule.or_ or not _concerns(rule, frameworks) or rule.weight < best[0]:
            continue
        for depth in range(len(names) - 1, -1, -1):
            if (rule.weight, depth) <= best:
                break
            if (
                _may_match(rule, lower[depth])
                and re.search(rule.frame, names[depth])
                and _is_under(rule, names[:depth])
            ):
                best, answer = (rule.weight, depth), (rule.phase, _shown(frames[depth]))
                break
    return answer


def phases_among(
    frames: Sequence[Frame], rules: Sequence[FrameRule], frameworks: Sequence[str]
) -> tuple[tuple[Phase, ...], str]:
    """The phases that share the innermost frame of a rule with `or`, the likeliest first, and the frame; else ((), "").

    Its caller would decide, and phase_of_frames has found none.
    """
    chosen = [rule for rule in rules if rule.or_ and rule.in_ == "frame" and _concerns(rule, frameworks)]
    for depth in range(len(frames) - 1, -1, -1):
        name = _name(frames[depth])
        for rule in chosen:
            if _may_match(rule, name.lower()) and re.search(rule.frame, name):
                return (rule.phase, *rule.or_), _shown(frames[depth])
    return (), ""


def phase_of_texts(
    texts: Iterable[str], rules: Sequence[FrameRule], where: str, frameworks: Sequence[str]
) -> tuple[Phase, str]:
    """The phase that a Ray task (`where` "task") or a line of text ("text") means, and the first text a rule knows."""
    chosen = [rule for rule in rules if rule.in_ == where and _concerns(rule, frameworks)]
    chosen.sort(key=lambda rule: -rule.weight)
    for text in texts:
        lower = text.lower()
        for rule in chosen:
            if _may_match(rule, lower) and re.search(rule.frame, text):
                return rule.phase, text.strip()[:120]
    return "unknown", ""


def is_critic(process: str, trace: Trace) -> bool:
    """Whether a critic's own Ray actor failed: the trainers' classes for it share the actor's training frames."""
    return any(_CRITIC.search(name) for name in (process, *trace.tasks))


Mark = tuple[Line, Phase]
"""A progress line and its phase ("unknown": between two steps)."""


def last_progress(lines: Sequence[Line], marks: Sequence[Progress], frameworks: Sequence[str]) -> Mark | None:
    """The last of `lines`, some thousands back at most, that a progress mark knows."""
    chosen = [(re.compile(mark.pattern), mark.phase) for mark in marks if _concerns(mark, frameworks)]
    for line in reversed(lines[-_LOOKED_BACK:]):
        for pattern, phase in chosen:
            if pattern.search(line.printed):
                return line, phase
    return None


def _concerns(rule: FrameRule | Progress, frameworks: Sequence[str]) -> bool:
    return not rule.frameworks or not frameworks or any(name in rule.frameworks for name in frameworks)


def _may_match(rule: FrameRule, lower: str) -> bool:
    """Cheaper than the regex, which is compiled only where it may match."""
    return not rule.needs or any(literal in lower for literal in rule.needs)


def _is_under(rule: FrameRule, outer: Sequence[str]) -> bool:
    return not rule.under or any(re.search(rule.under, name) for name in outer)


def _name(frame: Frame) -> str:
    return (
        f"{frame.file}:{frame.function.split('.')[-1]}"
        if "<" not in frame.function
        else f"{frame.file}:{frame.function}"
    )


def _shown(frame: Frame) -> str:
    file = frame.file.rsplit("/", 1)[-1]
    return say("frame {file} {function}, line {line}", file=file, function=frame.function, line=frame.line)
