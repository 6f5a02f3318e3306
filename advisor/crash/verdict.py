"""Which find is the first cause and what it proves: look-alikes set aside, contradictions shown, kills left unclear."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.crash.keep import Find
from advisor.crash.patterns import Field
from advisor.crash.phase import Trace
from advisor.units import MIB, parse_size
from advisor.words import Memory, Verdict

KERNEL = frozenset(("kernel-oom", "cgroup-oom", "kernel-oom-constraint", "systemd-oom"))
"""Witnesses from the system's own log: they confirm; an error the run printed itself comes first."""
POOL_TROUBLE = "cumem-invalid"
TRACEBACK = "traceback"
OTHER_EXCEPTION = "other-exception"
ENDED_BY_SCHEDULER = "time-limit"
_DETAILS = ("tried_bytes", "node_used_bytes")
_NEARBY = 400
"""Lines within which a fuller message about the same shortage replaces one without sizes."""
_PINNED = ("pin_memory", "cudaHostAlloc", "host_alloc", "_pin_memory_loop")
_OFFLOADING = (
    "_configure_zero_optimizer",
    "cpu_adam",
    "_create_fp32_partitions",
    "DeepSpeedZeroOptimizer",
    "DeepSpeedZeRoOffload",
    "offload",
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A find and the log it stands in (by order of reading)."""

    log: int
    find: Find

    @property
    def id(self) -> str:
        return self.find.signature.id


@dataclass(frozen=True, slots=True)
class Judgement:
    """The first cause (None: no line proves one), the verdict, and for an unclear one the lines it rests on."""

    verdict: Verdict
    memory: Memory
    cause: Placed | None
    because: str = ""
    settle_by: tuple[str, ...] = ()


def judge(placed: Sequence[Placed], finished: bool, going: bool) -> Judgement:
    """Decide from finds in order of time. `finished`: the log shows a run's end; `going`: several steps were done."""
    short = first_shortage(placed)
    other = _first(placed, "cause", "not_oom", besides=OTHER_EXCEPTION)
    if short is not None and not (other is not None and _before(other, short)):
        trouble = _pool_trouble(placed, short)
        if trouble is not None:
            return Judgement("not_oom", "none", trouble)
        return Judgement("oom", short.find.signature.memory, short)
    if other is not None and short is not None:
        return Judgement("not_oom", "none", other)
    return _without_shortage(placed, finished, going)


def _without_shortage(placed: Sequence[Placed], finished: bool, going: bool) -> Judgement:
    hard = [one for one in placed if one.id == ENDED_BY_SCHEDULER]
    telling = hard or [
        one for one in placed
        if (one.find.signature.verdict == "not_oom" and one.find.signature.role in ("cause", "pointer", "hint"))
        or (one.find.signature.role == "hint" and one.id != TRACEBACK)
    ]  # fmt: skip
    if telling:
        first = telling[0]
        if first.find.signature.verdict == "not_oom":
            return Judgement("not_oom", "none", first)
        return _unclear(first)
    loose = [one for one in placed if one.find.signature.role == "pointer" or one.id == TRACEBACK]
    if loose and not finished:
        return _unclear(loose[0])
    warned = any(one.find.signature.role == "warning" for one in placed)
    if finished or going or (warned and not loose):
        return Judgement("not_oom", "none", None)
    return Judgement("unclear", "unknown", None)


def _unclear(one: Placed) -> Judgement:
    signature = one.find.signature
    return Judgement("unclear", "unknown", one, signature.says or signature.title, signature.settle_by)


def first_shortage(placed: Sequence[Placed]) -> Placed | None:
    """The first line that proves a shortage; a fuller message about the same one, close by, in its place."""
    causes = [one for one in placed if one.find.signature.role == "cause" and one.find.signature.verdict == "oom"]
    causes = [one for one in causes if one.id not in KERNEL] or causes
    if not causes:
        return None
    first = causes[0]
    if any(name in first.find.fields for name in _DETAILS):
        return first
    for one in causes[1:]:
        same = one.log == first.log and one.find.signature.memory == first.find.signature.memory
        near = one.find.first.number - first.find.first.number <= _NEARBY
        alike = one.find.signature.phase == first.find.signature.phase == "unknown"
        if same and near and alike and any(name in one.find.fields for name in _DETAILS):
            return one
    return first


def _first(placed: Sequence[Placed], role: str, verdict: Verdict, besides: str) -> Placed | None:
    return next(
        (
            one
            for one in placed
            if one.find.signature.role == role and one.find.signature.verdict == verdict and one.id != besides
        ),
        None,
    )


def _before(one: Placed, other: Placed) -> bool:
    return (one.log, one.find.offset) < (other.log, other.find.offset)


def contradiction(fields: dict[str, Field]) -> bool:
    """Whether torch printed clearly more free memory than it asked for (rounding and 2 MiB blocks allowed for)."""
    tried, free = fields.get("tried_bytes"), fields.get("free_bytes")
    return isinstance(tried, int) and isinstance(free, int) and free - tried > max(64 * MIB, tried // 20)


def _pool_trouble(placed: Sequence[Placed], short: Placed) -> Placed | None:
    """The driver's refusal before a torch message that shows plenty free: then the message is not to be believed."""
    fields = short.find.fields
    tried, free = fields.get("tried_bytes"), fields.get("free_bytes")
    if not contradiction(fields) or not isinstance(tried, int) or not isinstance(free, int) or free < 4 * tried:
        return None
    return next((one for one in placed if one.id == POOL_TROUBLE and _before(one, short)), None)


def is_pinning(trace: Trace) -> bool:
    """Whether the failure happened while host memory was being pinned."""
    around = [frame.function for frame in trace.frames] + list(trace.texts)
    return any(mark in text for text in around for mark in _PINNED)


def memory_by_frames(memory: Memory, signature: str, trace: Trace) -> Memory:
    """For the driver's bare "out of memory": the host in a frame that pins, unknown where offloading is set up."""
    if signature != "cuda-error-oom":
        return memory
    if is_pinning(trace):
        return "host"
    around = [frame.function for frame in trace.frames] + list(trace.texts)
    if any(mark in text for text in around for mark in _OFFLOADING):
        return "unknown"
    return memory


def with_processes(find: Find) -> Find:
    """torch's list of processes as `process_bytes` and `other_process_bytes`; a contradiction is named."""
    fields = dict(find.fields)
    rows = fields.pop("processes", None)
    if isinstance(rows, str) and rows:
        fields.update(_process_bytes(rows, fields))
    if contradiction(fields):
        fields["contradiction"] = "free exceeds request"
    return replace(find, fields=fields)


def _process_bytes(rows: str, fields: dict[str, Field]) -> dict[str, int]:
    """In a container torch lists itself among the others: it is the one that holds what it allocated."""
    compact = re.sub(r"\s+", "", rows)
    own = re.search(r"thisprocesshas(\d[\d.]*(?:bytes|[KMGTPE]iB))", compact)
    sizes = [parse_size(size) for size in re.findall(r"Process\d+has(\d[\d.]*(?:bytes|[KMGTPE]iB))", compact)]
    mine = parse_size(own.group(1)) if own else None
    if mine is None:
        parts = (fields.get(name) for name in ("allocated_bytes", "reserved_unallocated_bytes", "private_bytes"))
        pool = sum(part for part in parts if isinstance(part, int))
        holders = [size for size in sizes if size >= pool > 0]
        if not holders:  # the message was cut before it says what this process allocated
            return {}
        mine = min(holders)
        sizes.remove(mine)
    return {"process_bytes": mine, **({"other_process_bytes": sum(sizes)} if sizes else {})}
