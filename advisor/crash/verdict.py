"""Which find is the first cause and what it proves: look-alikes set aside, contradictions shown, kills left unclear."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import KILL_TOLD, TOLD
from advisor.crash.finds import FAILURES, WRAPPER, LogFind
from advisor.crash.holders import contradicts, with_worded
from advisor.crash.lines import LogLine
from advisor.crash.phase import PhaseRules, ProgressLine, over_at
from advisor.crash.tracebacks import TRACEBACK, Trace
from advisor.hostile import clean_line
from advisor.knowledge.schema import Signature
from advisor.language import mark, say
from advisor.redact import redact
from advisor.regex import regex
from advisor.words import PHASE_TITLES, Memory, Phase, Verdict

KERNEL = frozenset(("kernel-oom", "cgroup-oom", "kernel-oom-constraint", "kernel-oom-cut", "systemd-oom"))
"""Witnesses from the system's own log: they confirm; an error the run printed itself comes first."""
POOL_TROUBLE = "cumem-invalid"
_ONE_MESSAGE = 80
"""Characters from the name of an exception to what it says (judgement)."""
OTHER_EXCEPTION = "other-exception"
ENDS = frozenset(
    f"{OTHER_EXCEPTION} arguments-disagree hang-told interrupted launch-refused outside-unreachable peer-lost "
    "prompt-too-long".split()
)
"""Lines that tell why a run ended only where they end a traceback or the log: elsewhere the program went on."""
ENDED_BY_SCHEDULER = frozenset(("time-limit", "job-preempted"))
ALLOCATOR_WARNING = "torch-oom-warned"
KILLS = frozenset(
    ("killed-9", "exit-137", "bash-killed", "dataloader-killed", "ray-worker-died", "ray-worker-died-bare", KILL_TOLD)
)
"""Somebody sent SIGKILL, or may have: not proof of a shortage without a second witness."""
GUESSES = frozenset(("ray-worker-died", "ray-worker-died-bare"))
"""Ray's text for a worker that went away: the same three guesses each time."""
ADVICE = "oom-advice"
SAID = frozenset(("oom-words", "oom-said", *TOLD))
"""Words that memory ran out, in which nothing tells the memory."""
_NO_SPACE, _DISK = "enospc", "enospc-disk"
"""What a disk and /dev/shm print alike, and what only a disk does."""
_WRITES_FILES = regex(
    r"(?:^|/)(?:fsspec/implementations/local|pyarrow|datasets/(?:builder|arrow_\w+|arrow_dataset|utils/file_utils)|"
    r"huggingface_hub|shutil|ray/_private/external_storage|safetensors/(?:torch|numpy)|torch/(?:serialization|distributed/checkpoint/\w+)|"
    r"logging/(?:__init__|handlers)|deepspeed/runtime/checkpoint_engine/\w+)"
    r"(?:[./]|$)"
)
"""Files of libraries that write to a disk, never to /dev/shm."""
NEARLY_FULL = 95.0
"""Percent of host memory in use; above it the kernel or Ray kills next (Ray's own threshold is 95)."""
_BY_SCHEDULER = frozenset(("job-ended-by-scheduler", "job-preempted-by-accounting"))
_ASIDE = frozenset(("gpu-lost", "sigterm-from-outside")) | _BY_SCHEDULER
"""Lines of the system's log, perhaps old, and of an end from outside that another node's failure may have brought: they
do not outrank a shortage that the run printed itself."""
_DETAILS = ("tried_bytes", "node_used_bytes")
_STATEMENT = 6
"""Lines of a statement that raises, as a traceback quotes it."""
_NEARBY = 400
"""Lines within which a fuller message about the same shortage replaces one without sizes."""
_PINNED = ("pin_memory", "cudaHostAlloc", "host_alloc", "_pin_memory_loop")
_OFFLOADING = (
    *("_configure_zero_optimizer", "cpu_adam", "_create_fp32_partitions"),
    *("DeepSpeedZeroOptimizer", "DeepSpeedZeRoOffload", "offload"),
)


class Judgement(Struct, frozen=True):
    """The first cause (None: no line proves one), the verdict, and for an unclear one the lines it rests on."""

    verdict: Verdict
    memory: Memory
    cause: LogFind | None
    because: str = ""
    settle_by: tuple[str, ...] = ()
    witness: LogFind | None = None
    """What makes a killed process a shortage: a reading of nearly full memory just before."""


def chosen(finds: Sequence[LogFind], marks: Iterable[LogFind]) -> list[LogFind]:
    """The finds, and the marks that add to what stands on their line: a sentence tells more than its bare words, and
    whatever else a line bears tells more than either, but for advice and a kill."""
    marks = list(marks)
    told = {one.place[:2] for one in marks if one.id in TOLD}
    kept = [one for one in finds if not (one.id in SAID and one.place[:2] in told)]
    known = {one.place[:2]: one for one in kept if one.id not in SAID}
    own = {one.place[:2] for one in kept if one.id not in (*SAID, *KILLS, ADVICE)}
    kept += [one for one in marks if one.id not in SAID or one.place[:2] not in (own if one.id in TOLD else known)]
    return [replace(one, find=with_worded(one.find)) for one in kept]


def judge(placed: Sequence[LogFind], finished: bool, going: bool, readings: Sequence[LogFind] = ()) -> Judgement:
    """Decide from finds in order of time. `finished`: the log shows a run's end; `going`: several steps were done.
    `readings` of host memory may bear witness that a killed process died of a shortage."""
    short = _first_shortage(placed)
    if short is None:
        return _with_witness(_without_shortage(placed, finished, going), readings)
    refuted = (one for one in placed if one.role == "cause" and one.verdict == "not_oom")
    other = next((one for one in refuted if one.id not in ENDS and one.id not in _ASIDE), None)
    if other is None or other.place >= short.place:
        other = _pool_trouble(placed, short)
    return Judgement("not_oom", "none", other) if other else Judgement("oom", _memory_of(short, placed), short)


def met_by_run(cause: LogFind | None, placed: Sequence[LogFind]) -> LogFind | None:
    """Where the run itself met with what the system's own log proves: there it shows what it was doing."""
    if cause is None or cause.id not in KERNEL:
        return cause
    return judge([one for one in placed if one.log != cause.log], finished=False, going=False).cause or cause


def _memory_of(short: LogFind, placed: Sequence[LogFind]) -> Memory:
    """Which memory was short. Ray wraps torch's and its own OutOfMemoryError alike: another line has to say which."""
    if WRAPPER not in short.find.fields:
        return short.memory
    proofs = {one.memory for one in placed if one.verdict == "oom" and WRAPPER not in one.find.fields}
    known = proofs & {"gpu", "host"}
    return known.pop() if len(known) == 1 else "unknown"


def _with_witness(judgement: Judgement, readings: Sequence[LogFind]) -> Judgement:
    """A kill right after a reading of nearly full host memory is a shortage of it."""
    kill = judgement.cause
    if judgement.verdict != "unclear" or kill is None or kill.id not in KILLS:
        return judgement
    told = kill.id == KILL_TOLD  # nobody writes in the order in which it happened
    before = [one for one in readings if one.log == kill.log and (told or one.place < kill.place)]
    last = next((one for one in reversed(before) if host_percent(one) is not None), None)
    if last is None or (host_percent(last) or 0.0) < NEARLY_FULL:
        return judgement
    return Judgement("oom", "host", kill, witness=last)


def host_percent(one: LogFind) -> float | None:
    """How full a reading shows the host's memory, in percent; None where it does not say."""
    fields = one.find.fields
    percent, used, total = (fields.get(name) for name in ("percent", "node_used_bytes", "node_total_bytes"))
    if isinstance(percent, (int, float)) and one.memory == "host":
        return float(percent)
    return 100.0 * used / total if isinstance(used, int) and isinstance(total, int) and total else None


def _without_shortage(placed: Sequence[LogFind], finished: bool, going: bool) -> Judgement:
    if finished:  # what fails while a program ends, fails in its leftovers
        placed = [one for one in placed if one.id not in ENDS]
    hard = [one for one in placed if one.id in ENDED_BY_SCHEDULER]
    telling = hard or [
        one for one in placed
        if (one.verdict == "not_oom" and one.role in FAILURES)
        or (one.role == "hint" and one.id != TRACEBACK)
    ]  # fmt: skip
    told = [one for one in placed if one.id in TOLD]
    ram_told = next((one for one in told if one.memory == "host"), None)
    if telling:
        first = _closest(telling)
        if ram_told is not None and all(one.id in KILLS for one in telling):  # who sent the kill, somebody says
            return Judgement("oom", "host", ram_told)
        if first.id in GUESSES:  # it lists what may have been; a fault that a process printed itself is one of them
            faults = (one for one in telling if one.role == "cause" and one.verdict == "not_oom" and one.id not in ENDS)
            first = next(faults, first)
        if first.id == "sigterm-from-outside":  # who sent it, another line may say
            first = next((one for one in telling if one.id in _BY_SCHEDULER), first)
        return Judgement("not_oom", "none", first) if first.verdict == "not_oom" else _unclear(first)
    if told and not finished and (not going or told[-1] is placed[-1]):
        first = min(told, key=lambda one: TOLD.index(one.id))
        return Judgement("oom", first.memory, first)
    loose = [one for one in placed if one.role == "pointer" or one.id == TRACEBACK]
    alone = [one for one in placed if one.id in ENDS and one.role == "warning" and one.verdict == "not_oom"]
    if loose and not finished:
        pointers = [one for one in loose if one.role == "pointer"]
        explained = pointers and alone and alone[0].place < pointers[-1].place
        return Judgement("not_oom", "none", alone[0]) if explained else _unclear(next(iter(pointers), loose[0]))
    pressed = [one for one in placed if one.role == "warning" and one.find.signature.settle_by]
    if pressed and not finished and not going:
        return _unclear(next((one for one in pressed if one.id == KILL_TOLD), pressed[-1]))
    if alone and not finished and not going:
        return Judgement("not_oom", "none", alone[-1])
    warned = any(one.role == "warning" for one in placed)
    if finished or going or (warned and not loose):
        return Judgement("not_oom", "none", None)
    return Judgement("unclear", "unknown", None)


def _unclear(one: LogFind) -> Judgement:
    signature = one.find.signature
    return Judgement("unclear", "unknown", one, signature.says or signature.title, signature.settle_by)


def _first_shortage(placed: Sequence[LogFind]) -> LogFind | None:
    """The first line that proves a shortage; a fuller message about the same one, close by, in its place."""
    causes = [one for one in placed if one.is_shortage]
    causes = [one for one in causes if one.id not in KERNEL] or causes
    if not causes:
        return None
    first = _closest(causes)
    if first.find.first.text.lstrip().startswith("raise "):  # the statement, quoted above what it raises
        below = (one for one in causes if (one.log, one.id) == (first.log, first.id) and one.number > first.number)
        first = next((one for one in below if one.number - first.number <= _STATEMENT), first)
    for _ in range(2):  # a wrapper's exception, and the message of that
        if any(name in first.find.fields for name in _DETAILS):
            return first
        rest = causes[causes.index(first) + 1 :]
        first = next((one for one in rest if _fuller(one, first)), first)
    return first


def _closest(finds: Sequence[LogFind]) -> LogFind:
    """The first find; of several in its message the one whose entry says most of it: look-alikes have lower ranks. A
    log pasted into one line has other messages there, further away."""
    first = finds[0]
    line = [one for one in finds if (one.log, one.number) == (first.log, first.number)]
    message = [one for one in line if abs(one.find.column - first.find.column) < _ONE_MESSAGE]
    return min(message, key=lambda one: one.find.signature.rank)


def _fuller(one: LogFind, first: LogFind) -> bool:
    """Whether a find tells more of the shortage that `first` only names."""
    if one.log != first.log or one.number - first.number > _NEARBY:
        return False
    if WRAPPER in first.find.fields:  # RayTaskError(OutOfMemoryError): torch's or Ray's, what stands under it decides
        return WRAPPER not in one.find.fields
    mine, its = one.find.signature, first.find.signature
    alike = mine.memory == its.memory and mine.phase == its.phase == "unknown"
    details = (*_DETAILS, "task_bytes") if one.id in KERNEL else _DETAILS  # who was killed, behind who asked
    return alike and any(name in one.find.fields for name in details)


def _pool_trouble(placed: Sequence[LogFind], short: LogFind) -> LogFind | None:
    """The driver's refusal before a torch message that shows plenty free: then the message is not to be believed."""
    fields = short.find.fields
    tried, free = fields.get("tried_bytes"), fields.get("free_bytes")
    if not contradicts(fields) or not isinstance(tried, int) or not isinstance(free, int) or free < 4 * tried:
        return None
    return next((one for one in placed if one.id == POOL_TROUBLE and one.place < short.place), None)


def is_pinning(trace: Trace) -> bool:
    """Whether the failure happened while host memory was being pinned."""
    return _shows(trace, _PINNED)


def in_phase(judgement: Judgement, phase: Phase, trace: Trace, signatures: Sequence[Signature]) -> Judgement:
    """The judgement where phase or frames settle it: no space was left where files are written, so a disk is full."""
    writes = phase == "checkpoint" or any(_WRITES_FILES.search(frame.file) for frame in trace.frames)
    cause = judgement.cause
    if cause is None or cause.id != _NO_SPACE or not writes:
        return judgement
    disk = next((one for one in signatures if one.id == _DISK), cause.find.signature)
    return Judgement("not_oom", "none", replace(cause, find=replace(cause.find, signature=disk)))


def memory_by_frames(memory: Memory, signature: str, trace: Trace) -> Memory:
    """For the driver's bare "out of memory": the host in a frame that pins, unknown where offloading is set up."""
    if signature != "cuda-error-oom":
        return memory
    if is_pinning(trace):
        return "host"
    return "unknown" if _shows(trace, _OFFLOADING) else memory


def _shows(trace: Trace, words: Sequence[str]) -> bool:
    around = (*(frame.function for frame in trace.frames), *trace.texts)
    return any(word in text for text in around for word in words)


_QUOTED = 100
"""Characters of a line that are quoted."""
_FAILS = regex(
    r"(?i)(?a:\boom\b)|\bout[- ]of[- ]memory\b|\b(?:return|exit)[ _]?(?:code|status)\W{1,4}-?[1-9]|"
    r"(?<!\b0 )(?<!\bno )\b(?:errors?|exception|fatal|abort(?:ed)?(?![ _]requests?\b)|crash(?:ed|es)?|killed)\b|"
    r"\b\w+(?:Error|Exception)\b|报错|错误|崩溃|异常|失败"
)
"""Words of a failure, whatever else a line says."""
_CUT_OFF = (
    mark("The rest of the log: the last lines of the process that failed first."),
    mark("In a Ray session's logs folder, the .err file of the worker that died."),
)


def why_unclear(
    judgement: Judgement, trace: Trace, lines: Iterable[LogLine], last: ProgressLine | None, rules: PhaseRules
) -> tuple[str, tuple[str, ...]]:
    """Why the verdict is unclear, and what would settle it or, where it is clear, test a line that may deceive. `last`:
    the last mark of progress."""
    if judgement.verdict != "unclear":
        return "", judgement.cause.find.signature.settle_by if judgement.cause else ()
    if judgement.because:
        return judgement.because, judgement.settle_by
    cut_off = tuple(say(text) for text in _CUT_OFF)
    if trace.frames:
        return say("the log ends inside a traceback, before the line that says what failed"), cut_off
    failing = [line for line in lines if _FAILS.search(line.text)]
    if failing:
        told = {"line": failing[-1].number, "text": clean_line(redact(failing[-1].printed.strip()), _QUOTED)}
        return say("line {line} speaks of a failure in words that prove nothing here: {text}", **told), cut_off
    if last is not None and (over := over_at(last, rules)) != "unknown":
        told = {"phase": PHASE_TITLES[over], "line": last[0].number}
        because = say(
            "the part given ends before any error, where {phase} was over (line {line}); send what follows it", **told
        )
        return because, cut_off
    return say("the log shows neither a crash nor the end of a run"), cut_off
