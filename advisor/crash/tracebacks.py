"""Reads tracebacks in every form that logs have, finds that of a failure, tells what it made and of which release."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace
from packaging.version import Version

from advisor.crash.evidence import Frame
from advisor.crash.finds import LogFind
from advisor.crash.lines import LogLine
from advisor.hostile import clean_line
from advisor.knowledge.code_lines import code_lines, place_in_package
from advisor.regex import regex

_FRAME = regex(r'File \\?"(?P<file>[^"\n]{1,400}?)\\?", line (?P<line>\d{1,7}),? in (?P<function>[\w.<>]{1,120})')
"""Python's form, and the one of its faulthandler, which has no comma."""
_HALF = regex(r"^\W{0,4}line (?P<line>\d{1,7}), in (?P<function>[\w.<>]{1,120})\s*$")
"""The end of a frame whose file was cut off."""
_NOTEBOOK = regex(
    r"(?:File )?(?P<file>(?:/|~|[A-Z]:\\)[^\s:]{1,400}\.py):(?P<line>\d{1,7}),? in (?P<function>[\w.<>]{1,120})"
)
"""IPython's form, and rich's with its frame around it."""
_TESTED = regex(r"^(?:E +)?(?P<file>[^\s:]{1,400}\.py):(?P<line>\d{1,7}): in (?P<function>[\w.<>]{1,120})\s*$")
"""pytest's form."""
_AT_BLANK = regex(r":\d{1,7}(?: in)?$")
"""What of a frame's head has a blank behind it."""
_HEAD_LINES = 8
"""Lines over which rich breaks the head of a frame."""
_OLD_NOTEBOOK = regex(r"^\[?(?P<file>(?:/|~)[^\s:\]]{1,400}\.py)(?:\]\(\S{0,200}\))? in (?P<function>[\w.<>]{1,120})\(")
"""IPython's form of old, whose line number stands on an arrow below it."""
_ARROW = regex(r"^[\s│]*(?:-{2,8}>|❱) ?\[?(?P<line>\d{1,7})\b")
"""Where IPython and rich point at the line that failed."""
_HERE = "<--- HERE"
"""Where TorchScript points at the line above."""
_BOXED = regex(r"^\s*│ (?P<inside>.*?) ?│\s*$")
_CHAIN = regex(r"^\s*(?:→|↳|⟶|└─*>?|[-=]{1,3}>) ?")
_CALLED = regex(_CHAIN.pattern + r".{0,200}?(?P<function>[\w.<>]{1,120})(?:\(\))? +"
                     r"\((?P<file>[^\s:()]{1,200}\.py):(?P<line>\d{1,7})\b")  # fmt: skip
"""One of a person's chain of calls, "→ caller → function (file.py:12)", the outermost above."""
_RAY_TASK = regex(r"\bray::(?P<task>[\w.:<>]{1,160})")
_CALL_NAMED = regex(
    r"\b(?:running|executing|calling|invoking) (?:(?P<owner>[A-Za-z]\w{1,80})'s )?(?:function|method|task)"
    r" ['\"`]?(?P<call>[A-Za-z_][\w.]{1,80})"
)
"""A wrapper's own words for the call that failed: "while running RolloutWorker's function sync" (RLinf/RLinf@a3816b596
rlinf/scheduler/worker/worker_group.py:491), "Error executing method 'load_model'" (vllm/worker/worker_base.py)."""
TRACEBACK = "traceback"
"""The signature of a traceback's beginning."""
_TASK_LINES, _CHAIN_LINES = 6, 60
"""Lines below a failure on which a Ray task is that of the failure; and, of the tasks that raised in turn, all."""
BEGIN = "Traceback (most recent call last)"
_FATAL = "(most recent call first):"
"""The faulthandler's heading of a thread: its frames stand below it, the innermost first."""
_FAILING = "Current thread"
_FATALLY = "Fatal Python error: "
_CHAINED = ("direct cause of the following", "During handling of the above")
_INSIDE = ("^", "~", "---", "-->", "...", "│", "╭", "╰", "|")
"""What lines inside a traceback begin with that are neither frames nor source."""
_FOREIGN = 200
"""Lines of other processes that may stand between the lines of one traceback, and lines between a message and it."""
_TEXT = 200
"""Characters kept of the source line below a frame."""
_TEXT_LINES = 12
"""Source lines kept next to the frames."""


_GLUED = regex(r"^\s*(?P<source>\S[^\n]{0,300}?)\s{2,}(?:\w+\.)*\w*Error\b")
"""A source line with the error below it on the same line: a traceback pasted without its line breaks."""


class Trace(Struct, frozen=True):
    """What stands around a failure: frames from outermost to innermost, Ray tasks, source lines next to them, and calls
    that a wrapper says it was making."""

    frames: tuple[Frame, ...] = ()
    tasks: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()


NO_TRACE = Trace()


def frame_in(line: LogLine) -> Frame | None:
    """The traceback frame a line shows, in Python's or IPython's form."""
    if " in " not in line.text:
        called = _CALLED.match(line.text) if ".py:" in line.text else None
        return Frame(called["file"], int(called["line"]), called["function"], line.number) if called else None
    match = _FRAME.search(line.text) or _NOTEBOOK.search(line.text) or _TESTED.match(line.text.strip())
    if match is None and (half := _HALF.match(line.text)):
        return Frame("…", int(half["line"]), half["function"], line.number)
    if match is None:
        return None
    return Frame(match["file"].replace("\\", "/"), int(match["line"]), match["function"], line.number)


def _frames_on(line: LogLine) -> tuple[Frame, ...]:
    """Every frame that one line shows: a traceback pasted without its line breaks."""
    found = (
        Frame(m["file"].replace("\\", "/"), int(m["line"]), m["function"], line.number)
        for m in _FRAME.finditer(line.text)
    )
    return tuple(found)


def _wrapped_frame_in(lines: Sequence[LogLine]) -> Frame | None:
    """The frame on the first of `lines` whose head rich broke at its width, with the rest of it on those below."""
    head = ""
    for line in lines[:_HEAD_LINES]:
        boxed = _BOXED.match(line.text)
        if boxed is None or not boxed["inside"].strip():
            return None
        head += boxed["inside"].strip()
        head += " " if _AT_BLANK.search(head) else ""  # broken at a blank, or within a path
        if match := _NOTEBOOK.fullmatch(head.rstrip()):
            return Frame(match["file"], int(match["line"]), match["function"], lines[0].number)
    return None


def _old_frame_in(line: LogLine, arrow: int) -> Frame | None:
    """The frame an old notebook shows, with the line number that the arrow below it had."""
    match = _OLD_NOTEBOOK.match(line.text) if arrow else None
    return Frame(match["file"], arrow, match["function"], line.number) if match else None


def _trace_above(before: Sequence[LogLine], process: str) -> Trace:
    """The traceback that ends just above a line of `process`; lines of other processes in between are skipped."""
    frames: list[Frame] = []
    tasks: list[str] = []
    texts: list[str] = []
    foreign = arrow = 0
    below = at_arrow = above = ""
    under: list[LogLine] = []
    for line in reversed(before):
        if line.process != process or not frames:
            foreign += 1
            if foreign > _FOREIGN:
                break
        if line.process != process:
            continue
        tasks.extend(match["task"] for match in _RAY_TASK.finditer(line.text))
        frame = frame_in(line) or _old_frame_in(line, arrow)
        under = [line, *under[: _HEAD_LINES - 1]]
        if frame is None and (whole := _wrapped_frame_in(under)) is not None:
            part = frames[-1] if frames else whole
            if part.line == whole.line and part.file != whole.file and whole.file.endswith(part.file):
                frames[-1] = replace(whole, text=part.text)  # its end was read by itself
                continue
            frame = whole
        if line.text.endswith(_HERE):
            arrow = -1  # of the line above
        elif arrow < 0:
            arrow, at_arrow = 0, line.text.strip()
        if pointed := _ARROW.match(line.text):
            arrow, at_arrow = int(pointed["line"]), line.text[pointed.end() :].strip(" \t│")
        if frame is not None:  # a notebook shows the lines around the one that failed, and an arrow at that
            text = at_arrow if arrow in (0, frame.line) and at_arrow else below
            frames.append(replace(frame, text=clean_line(text.strip(), _TEXT)))
            at_arrow = ""
        elif BEGIN in line.text or (frames and not _continues(line)):
            texts += [line.text] if _CHAIN.match(above) else []  # whose call the chain begins with
            break
        elif len(texts) < _TEXT_LINES:
            texts.append(line.text)
        above = line.text
        below = "" if frame is not None else line.text
    return Trace(tuple(reversed(frames)), tuple(tasks), tuple(texts))


def _trace_below(after: Sequence[LogLine], process: str) -> Trace:
    """Frames right below a line of `process`: Ray prints the exception first and what it came through under it."""
    own = [line for line in after if line.process == process]
    heading = next((i for i, line in enumerate(own[:_FOREIGN]) if _FATAL in line.text), None)
    if heading is not None:
        return Trace(_of_faulthandler(own[heading:]))
    frames: list[Frame] = []
    texts: list[str] = []
    for line in (line for line in after[: _FOREIGN // 2] if line.process == process):
        frame = frame_in(line)
        if frame is not None:
            frames.append(frame)
        elif BEGIN in line.text or (frames and not _continues(line)) or len(texts) >= _TEXT_LINES:
            break
        else:
            texts.append(line.text)
    return Trace(tuple(frames), (), tuple(texts) if frames else ())


def _of_faulthandler(lines: Sequence[LogLine]) -> tuple[Frame, ...]:
    """Frames of the thread that failed, outermost first: of several, the one that is called current."""
    headings = [i for i, line in enumerate(lines) if _FATAL in line.text]
    begin = next((i for i in headings if _FAILING in lines[i].text), headings[0])
    found: list[Frame] = []
    for line in lines[begin + 1 :]:
        frame = frame_in(line)
        if frame is not None:
            found.append(frame)
        elif found or line.text.strip():
            break
    return tuple(reversed(found))


def _continues(line: LogLine) -> bool:
    """Whether a line without a frame may stand inside a traceback."""
    text = line.text
    if not text.strip() or text[:1].isspace() or text.lstrip().startswith(_INSIDE):
        return True
    return "ray::" in text or any(mark in text for mark in _CHAINED) or "Error" in text[:120]


def _tasks_in(lines: Sequence[LogLine]) -> tuple[str, ...]:
    """Ray tasks that lines name ("Unhandled error …: ray::WorkerDict.method()")."""
    return tuple(match["task"] for line in lines for match in _RAY_TASK.finditer(line.text))


def _calls_in(lines: Sequence[LogLine]) -> tuple[str, ...]:
    """Calls that a wrapper names, "Owner.method" or "method"."""
    found = (match for line in lines for match in _CALL_NAMED.finditer(line.text))
    return tuple(".".join(filter(None, (match["owner"], match["call"]))) for match in found)


def trace_of(cause: LogFind | None, lines: Sequence[LogLine]) -> Trace:
    """The traceback of the cause, above it or right below it; without a cause, the last traceback of `lines`."""
    if cause is not None and cause.id != TRACEBACK:
        return _around(cause, lines)
    if cause is not None and cause.find.after:
        lines = [cause.find.first, *cause.find.after]
    last = next(
        (
            i
            for i in range(len(lines) - 1, -1, -1)
            if frame_in(lines[i]) or _wrapped_frame_in(lines[i : i + _HEAD_LINES])
        ),
        None,
    )
    if last is None:
        return Trace()
    end = next((i for i in range(last + 2, len(lines)) if _BOXED.match(lines[i].text) is None), len(lines))
    return _trace_above(lines[:end], lines[last].process)


def waiter_of(cause: LogFind, lines: Sequence[LogLine]) -> Trace:
    """Where the process stood that waited for the one that failed: its traceback, or its request that got no answer."""
    trace = trace_of(None, lines)
    waited = [line.text for line in cause.find.after[:_CHAIN_LINES] if "timed out" in line.text]
    return trace if trace.frames else Trace(texts=tuple(waited[:_TEXT_LINES]))


def _around(cause: LogFind, lines: Sequence[LogLine]) -> Trace:
    first = cause.find.first
    start, end = (place(lines, first.number, key=lambda line: line.number) for place in (bisect_left, bisect_right))
    before, after = cause.find.before or lines[:start], cause.find.after or lines[end : end + _FOREIGN]
    trace = _trace_above(before, first.process)
    if cause.find.text.startswith(_FATALLY) or all("/ray/" in frame.file for frame in trace.frames):
        # Ray and the faulthandler tell under an error what it came through
        below = _trace_below([*_beside(first, lines[start:end]), *after], first.process)
        trace = replace(trace, frames=below.frames or trace.frames, texts=below.texts or trace.texts)
    trace = replace(trace, frames=trace.frames or _frames_on(first))
    if not trace.frames and (glued := _GLUED.match(first.text)) is not None:
        trace = replace(trace, texts=(glued["source"], *trace.texts))
    elif not trace.frames and (pointed := next(filter(None, map(_ARROW.match, trace.texts)), None)) is not None:
        trace = replace(trace, texts=(pointed.string[pointed.end() :], *trace.texts))  # a notebook without its head
    chain = [line for line in after[_TASK_LINES:_CHAIN_LINES] if "RayTaskError" in line.text]
    tasks = _tasks_in([first]) + trace.tasks + _tasks_in([*after[:_TASK_LINES], *chain])
    return replace(trace, tasks=tasks, calls=_calls_in([*before[-_TASK_LINES:], first, *after[:_TASK_LINES]]))


def _beside(first: LogLine, same: Sequence[LogLine]) -> Sequence[LogLine]:
    """What stands on the same printed line after a message: a log in JSON keeps the whole traceback there."""
    texts = [line.printed for line in same]
    return same[texts.index(first.printed) + 1 :] if first.printed in texts else ()


_LEAST = 2
"""Places in a package that have to agree: one alone may lie on such a line by chance, in a fork or between releases."""

_OF_TREE = regex(r"/[\w-]*?[-_]v?(\d{1,2}\.\d[\w.]*)/$")
"""A source tree as it is unpacked: "verl-0.7", "OpenRLHF-v0.8.5"."""


def traced_versions(frames: Iterable[Frame]) -> dict[str, str]:
    """Package → version, where all of a traceback's places in it agree on one or on releases of one minor version. Of
    several such releases the newest. A place that no release has, or a function that none has in that file, as in a
    fork or between two releases, leaves its package to what its source tree is called."""
    found = ((place, frame) for frame in frames if (place := place_in_package(frame.file)) is not None)
    places: dict[str, dict[tuple[str, str, int], None]] = {}
    told: dict[str, str] = {}
    for (folder, file), frame in found:
        places.setdefault(folder, {})[file, frame.function, frame.line] = None
        if (tree := _OF_TREE.search(frame.file.replace("\\", "/").removesuffix(file))) is not None:
            told.setdefault(code_lines(folder).package, tree[1])
    for folder, within in places.items():
        lines = code_lines(folder)
        agreed = [releases for at in within if (releases := lines.of_frame(*at)) is not None]
        both = frozenset.intersection(*agreed) if len(agreed) >= _LEAST else frozenset[int]()
        versions = [lines.releases[number] for number in sorted(both)]
        if len({Version(version).release[:2] for version in versions}) == 1:
            told[lines.package] = versions[-1]
    return told


Made = Literal["weights", "logits", ""]
GATHER = regex(r"all_?gather|GatheredParameters|summon_full_params|_unshard|full_tensor", re.IGNORECASE)
"""Functions that collect sharded weights (DeepSpeed, FSDP, DTensor)."""
GATHERED = regex(
    r"(?:numel\w*|partition_s\w*) \* [\w.]*(?:world_size|num_partitions)|"
    r"\b(?:_?get_)?_?all_gather\w*\(|\b_?unshard\(|summon_full_params\(|\bfull_tensor\("
)
"""Source lines that make the buffer of a gather: a shard's elements times the ranks (torch's FSDP, DeepSpeed)."""
LOADS = regex(
    r"^(?:from_pretrained|_?load_pretrained_model\w*|_load_state_dict_into_\w+|load_checkpoint_in_model|load_state_dict)$"
)
"""Functions that load weights before there is an optimizer (torch, transformers, accelerate)."""
LOGITS = regex(
    r"^(?:\w*log_?softmax|softmax|logsumexp|entropy_from_logits\w*|cross_entropy\w*|\w*logits_to_log_?probs\w*|"
    r"\w*log_?probs?_from_logits\w*|\w*vocab_parallel_\w+|gather_logprobs\w*|_?calculate_log_probs\w*)$"
)
"""Functions that go over the whole vocabulary (torch, verl, OpenRLHF, TRL, slime, AReaL, NeMo-RL)."""
CALLS = regex(r"\b(?!softmax\b)(\w+)\(")
CALLED = regex(r"\blogits\b(?:\[[^]]*\])?\.(?:float|to|exp|clone|contiguous|softmax|log_softmax|div_?)\(")
"""What the innermost source line calls, where the call itself has no frame, and a whole copy of the logits in it."""
ONE_ROW = regex(r"\b(?:row_logits?|logits?_row)\b|\bfor (\w+) in logits\b")
"""Source lines that go over a batch's logits row by row (TRL selective_log_softmax, verl logprobs_from_logits_v2)."""
ATTENTION = regex(r"\battn_\w+|\bscores?\b.*softmax", re.IGNORECASE)
"""A softmax of attention goes over tokens, not over words."""
NEAREST = 2
"""Innermost frames among which one of them stands where it is what failed."""


def scores(frame: Frame) -> bool:
    """Whether the source line itself goes over the whole vocabulary."""
    return CALLED.search(frame.text) is not None or any(map(LOGITS.match, CALLS.findall(frame.text)))


def gathers(frame: Frame) -> bool:
    """Whether function or source line collects sharded weights."""
    return GATHER.search(frame.function) is not None or GATHERED.search(frame.text) is not None


def made(frames: Sequence[Frame]) -> Made:
    """What the innermost frames were making; "" where they do not tell."""
    near = frames[-NEAREST:]
    if any(ATTENTION.search(frame.text) for frame in near):
        return ""
    if any(gathers(frame) for frame in near) or any(LOADS.match(frame.function) for frame in frames):
        return "weights"
    scored = any(LOGITS.match(frame.function) for frame in near) or (bool(frames) and scores(frames[-1]))
    return "logits" if scored else ""


def one_row(frames: Sequence[Frame]) -> bool:
    """Whether the innermost line takes one row of a batch at a time."""
    return bool(frames) and any(ONE_ROW.search(frame.text) for frame in frames[-NEAREST:])
