"""Draws facts from the numbers that a failure printed: who held the card, what was asked for, who was killed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from advisor.crash.evidence import Crash, Evidence, TopUser
from advisor.crash.holders import contradicts, fill_together, held_by_others, idle_in_pool, is_empty
from advisor.diagnosis.fact import Fact
from advisor.knowledge import load_knowledge
from advisor.language import listed, say
from advisor.machine.describe import NAMELESS
from advisor.machine.inventory import Gpu
from advisor.units import GIB, show_bytes

MUCH_IDLE, IDLE = 0.10, 0.03
"""Parts of a card that lie reserved but unallocated, where joined they would have done: so much is fragmentation; the
smaller part says that it lay in pieces, on a card that was full all the same (judgement)."""
DOMINATES, MINOR = 0.5, 0.1
"""Others dominate a card where they hold more than half of it and the process less than a tenth of that; a task is the
victim that held less than a tenth of what was in use (judgement)."""
RANKS = 2
"""Processes of a card that hold as much as the one that failed: ranks that were sent to it, no stranger (judgement)."""
FULL, EMPTY = 0.5, 0.05
"""Parts of a card in use, by nvidia-smi: taken by somebody, while another card of the node stands idle (judgement)."""
OF_ITS_OWN = 4 * GIB
"""What a process may hold beside torch: context, NCCL's buffers, kernels' workspaces, and a desktop (judgement)."""
MINOR_BESIDE = 0.25
"""Of what this process holds: another rank that loaded the same would hold as much (judgement)."""
SMI = "nvidia-smi-reading"
ABSURD = 2
"""Times its whole card, or more than any known card has where its own is not known: a single tensor of this size is of
no batch that anybody meant to run (judgement)."""


def line_words(evidence: Evidence) -> str:
    """Where an evidence stands: "line 1 204 of train.log"."""
    return say("line {line} of {file}", line=grouped(evidence.line), file=evidence.file)


def grouped(count: int) -> str:
    """ "41 207": read more easily than "41207", and not taken for a fraction."""
    return f"{count:,}".replace(",", " ")


def printed_facts(first: Evidence, where: str) -> dict[str, Fact]:
    """Facts from the numbers that the first cause printed."""
    fields = first.fields
    facts: dict[str, Fact] = {}

    def number(name: str) -> int | None:
        found = fields.get(name)
        return found if isinstance(found, int) else None

    tried, free, total = number("tried_bytes"), number("free_bytes"), number("total_bytes")
    idle, allocated = idle_in_pool(fields), number("allocated_bytes")
    if tried is not None:
        facts["gpu.tried_bytes"] = Fact(tried, "log", where, (0,))
    card = total or largest_card()
    if tried is not None and tried > card:
        sizes = {"tried": show_bytes(tried), "card": show_bytes(card)}
        because = (
            say("One request of {tried} is larger than the whole card ({card})", **sizes)
            if total
            else say("One request of {tried} is larger than any card that is known here", **sizes)
        )
        facts["gpu.beyond_card"] = Fact(True, "log", because, (0,))
        facts["gpu.absurd_request"] = Fact(not total or tried >= ABSURD * card, "log", because, (0,))
    if tried is not None and free is not None and total:
        sizes = {"tried": show_bytes(tried), "free": show_bytes(free), "total": show_bytes(total)}
        because = say("{tried} asked for, {free} free of {total} ({line})", **sizes, line=where)
        facts["gpu.missing_share"] = Fact(max(0.0, (tried - free) / total), "log", because, (0,))
    if tried is not None and free is not None:
        facts["gpu.free_bytes"] = Fact(free, "log", where, (0,))
        facts["gpu.free_exceeds_request"] = Fact(contradicts(fields), "log", where, (0,))
        facts["gpu.empty"] = Fact(is_empty(fields), "log", where, (0,))
    if idle is not None and total and tried is not None:
        told = "reserved_unallocated_bytes" in fields  # older allocators kept some pieces on any full card
        joined = idle + (free or 0) >= tried  # joined, the pieces would have done
        much, some = idle / total > MUCH_IDLE, told and idle / total > IDLE
        sizes = {"idle": show_bytes(idle), "tried": show_bytes(tried)}
        because = say("{idle} reserved but unallocated, {tried} asked for ({line})", **sizes, line=where)
        facts["gpu.idle_bytes"] = Fact(idle, "log", because, (0,))
        facts["gpu.idle_covers"] = Fact(joined, "log", because, (0,))
        if much or not (some and joined):  # less than much that would have done proves neither
            facts["gpu.fragmented"] = Fact(much and joined, "log", because, (0,))
        facts["gpu.scattered"] = Fact(some and joined, "log", because, (0,))
    if allocated is not None and total:
        sizes = {"size": show_bytes(allocated), "total": show_bytes(total)}
        because = say("{size} of {total} allocated by PyTorch ({line})", **sizes, line=where)
        facts["gpu.allocated_share"] = Fact(allocated / total, "log", because, (0,))
        if allocated > total:
            because = say(
                "{size} allocated on a card of {total}: torch counts the pool of a sleeping engine, whose memory is "
                "given back, so that engine is in this process ({line})",
                **sizes,
                line=where,
            )
            facts["engine.pool_counted"] = Fact(True, "log", because, (0,))
    others = held_by_others(fields)
    if others is not None and free is not None and total:
        sizes = {"size": show_bytes(others), "total": show_bytes(total)}
        if number("other_process_bytes"):
            because = say("{size} of {total} held by other processes ({line})", **sizes, line=where)
        elif "process_bytes" in fields:
            because = say(
                "{size} of {total} held outside this process: the driver, others ({line})", **sizes, line=where
            )
        else:
            because = say(
                "{size} of {total} held outside torch: its context, NCCL, other processes ({line})", **sizes, line=where
            )
        if "process_bytes" not in fields and not number("other_process_bytes") and others < OF_ITS_OWN:
            facts["gpu.others_aside"] = Fact(True, "log", because, (0,))
        facts["gpu.others_bytes"] = Fact(others, "log", because, (0,))
        facts["gpu.others_share"] = Fact(others / total, "log", because, (0,))
        mine = total - free - others
        facts["gpu.others_most"] = Fact(others > DOMINATES * (total - free) and others > mine, "log", because, (0,))
        facts["gpu.others_minor"] = Fact(others < mine * MINOR_BESIDE, "log", because, (0,))
        dominate = others / total > DOMINATES and mine < others * MINOR
        facts["gpu.others_dominate"] = Fact(dominate, "log", because, (0,))
        facts.update(_engine_beside(fields.get("engine_process"), number("engine_process_bytes"), others, where))
        alike = fields.get("alike_processes", 0)
        because = say("{count} other processes of the card hold as much as this one ({line})", count=alike, line=where)
        if allocated and isinstance(alike, int) and fill_together(fields, alike):
            because = say(
                "{count} processes with about {size} each fill the card's {total} ({line})",
                count=alike + 1,
                size=show_bytes(allocated),
                total=show_bytes(total),
                line=where,
            )
        facts["gpu.others_alike"] = Fact(isinstance(alike, int) and alike >= RANKS, "log", because, (0,))
    share = fields.get("share")
    if first.signature == "engine-share-not-free" and isinstance(share, (int, float)):
        facts["engine.share"] = Fact(float(share), "log", where, (0,))
    if first.signature == "engine-share-not-free" and free is not None and total:
        sizes = {"free": show_bytes(free), "total": show_bytes(total)}
        because = say("{free} of {total} were free when the engine started ({line})", **sizes, line=where)
        facts["engine.free_share"] = Fact(round(free / total, 4), "log", because, (0,))
    task, used = number("task_bytes"), number("node_used_bytes")
    if task is not None and used:
        sizes = {"size": show_bytes(task), "total": show_bytes(used)}
        because = say("the killed task held {size} of {total} ({line})", **sizes, line=where)
        facts["host.victim"] = Fact(task < used * MINOR, "log", because, (0,))
    return facts


def taken_before(crash: Crash) -> dict[str, Fact]:
    """What nvidia-smi showed above a failure whose own message names no sizes: a card that was taken before.

    Where several cards are full and none is idle, the table may be one of the run itself.
    """
    first = crash.evidence[0] if crash.evidence else None
    if first is None or crash.memory != "gpu" or "total_bytes" in first.fields or crash.steps_done:
        return {}
    shown = [(one, one.fields.get("used_bytes"), one.fields.get("total_bytes")) for one in crash.evidence
             if one.signature == SMI and one.line < first.line]  # fmt: skip
    rows = [(used / total, one, used, total) for one, used, total in shown
            if isinstance(used, int) and isinstance(total, int) and total]  # fmt: skip
    shares = [row[0] for row in rows]
    several = len(rows) > 1 or any(row[1].repeats for row in rows)  # rows that are alike are folded
    if not shares or max(shares) < FULL or (several and min(shares) > EMPTY):
        return {}
    share, one, used, total = max(rows, key=lambda row: row[0])
    told = {"size": show_bytes(used), "total": show_bytes(total), "line": line_words(one)}
    because = say("nvidia-smi showed {size} of {total} in use before ({line})", **told)
    index = (crash.evidence.index(one),)
    return {
        "gpu.others_share": Fact(share, "log", because, index),
        "gpu.others_bytes": Fact(used, "log", because, index),
    }


def _engine_beside(name: object, held: int | None, others: int, where: str) -> dict[str, Fact]:
    """Whether most of what other processes hold is the run's own engine, where the log names its process."""
    if held is None:
        return {}
    because = say(
        "{size} of the card are held by the run's own engine, {name} ({line})",
        size=show_bytes(held),
        name=name,
        line=where,
    )
    return {"gpu.others_engine": Fact(held > others * DOMINATES, "log", because, (0,))}


def card_name(gpu: Gpu) -> str:
    """The card's name; where nobody told one, that of the only card which has this memory."""
    size = gpu.total_bytes if gpu.name == say(NAMELESS) else None
    alike = {one.name for one in load_knowledge().gpus if size and abs(one.total_bytes - size) < GIB // 32}
    return alike.pop() if len(alike) == 1 else gpu.name


@lru_cache
def largest_card(kind: str = "") -> int:
    """Bytes of the largest card that gpus.yaml knows, of this kind where it has one: what does not fit it fits none."""
    known = load_knowledge().gpus
    return max(fact.total_bytes for fact in [one for one in known if one.name.startswith(f"{kind}-")] or known)


KINDS: Mapping[str, re.Pattern[str]] = {
    "tools": re.compile(
        r"(?:Kernel|Sandbox|Tool|Interpreter|Browser|Terminal)\w*(?:Actor|Worker|Server|\.execute)|jupyter|ipykernel|chrom(?:e|ium)\b"
    ),
    "engine": re.compile(r"LLMRayActor|vLLM|EngineCore|SGLang|RolloutServer|scheduler_TP|RolloutWorker", re.IGNORECASE),
    "driver": re.compile(r"TaskRunner|main_task|Runner\.run|main_ppo|train_ppo_ray|\bdriver\b", re.IGNORECASE),
    "workers": re.compile(
        r"WorkerDict|(?:Train|Policy|Actor|Critic|Model|Megatron|FSDP)\w*(?:RayActor|Worker)|Learner"
    ),
}
"""Kind of a process by its name in the table, the first that fits."""
MOST = 0.5
"""Part of what the table lists that makes one kind the holder (judgement)."""
STATES = 16
"""Bytes per parameter of weights, gradients, master weights and two moments: offload can move no more."""
COPIES = 4
"""Bytes per parameter that each process may hold of the whole model beside its part of the states: an fp32 copy while
it loads, or a sleeping engine's weights in pinned blocks."""
PRIVATE = 100
"""Processes as large as the smallest that is listed, at the most, that a list leaves out (judgement)."""
FEW, PLENTY = 0.25, 0.5
"""Parts of the node's memory in use: a table that names less proves no holder, a cut one that names more does
(judgement)."""
ONE_PROCESS = 0.7
"""Part of STATES in one process that only unsharded states explain: master weights and moments alone are 12 of 16."""
ROUNDED_UP = 1.1
"""Times the states that a process with all of them may hold: pinned blocks and buckets beside them (judgement)."""
BASE = 10 * GIB
"""What a worker process holds in RAM beside any model: CUDA, libraries, pinned buffers (judgement)."""


def kind_of(command: str) -> str:
    """tools, engine, driver or workers; "" where the name does not tell."""
    return next((kind for kind, names in KINDS.items() if names.search(command)), "")


def host_user_facts(
    users: Sequence[TopUser], parameters: float | None, cut: bool = False, in_use: int | None = None
) -> dict[str, Fact]:
    """host.top_user, .driver_large and .held_by; where the model is known, also whether its states explain it.

    `cut`: rows are missing; `in_use`: bytes of the node in use, where the log says so. Only host.outside_list where
    what is listed is no fair part of that.
    """
    in_table = sum(user.used_bytes for user in users)
    part = in_table / in_use if in_use else None
    outside = _outside_list(users, in_table, in_use) if users and not cut and in_use else {}
    if not users or (part is not None and part < FEW) or (cut and (part is None or part < PLENTY)):
        return outside
    top = max(users, key=lambda user: user.used_bytes)
    because = say("the log's memory users: {command} {size}", command=top.command, size=show_bytes(top.used_bytes))
    facts = {
        **outside,
        "host.top_user": Fact(top.command, "log", because),
        "host.driver_large": Fact(kind_of(top.command) == "driver", "log", because),
    }
    held = {kind: [user for user in users if kind_of(user.command) == kind] for kind in KINDS}
    sums = {kind: sum(user.used_bytes for user in rows) for kind, rows in held.items()}
    most = max(sums, key=lambda kind: sums[kind])
    if sums[most] > MOST * in_table:
        named = Counter(user.command for user in held[most])
        told = {"size": show_bytes(sums[most]), "held": listed([f"{count} × {name}" for name, count in named.items()])}
        because = say("the log's memory users: {size} in {held}", **told)
        facts["host.held_by"] = Fact(most, "log", because)
    if parameters:
        facts.update(_against_states(held["workers"], parameters))
    return facts


def _outside_list(users: Sequence[TopUser], listed: int, in_use: int) -> dict[str, Fact]:
    """host.outside_list: most of what is in use is held by none of the processes in the table, nor by smaller ones."""
    left = in_use - listed
    told = {"listed": show_bytes(listed), "used": show_bytes(in_use), "left": show_bytes(left)}
    because = say("the memory users that it lists hold {listed} of the {used} in use: {left} lie elsewhere", **told)
    beyond = left > PLENTY * in_use and left > PRIVATE * min(user.used_bytes for user in users)
    return {"host.outside_list": Fact(beyond, "log", because)}


def _against_states(workers: Sequence[TopUser], parameters: float) -> dict[str, Fact]:
    """Whether the workers hold more than all states of the model, or one of them all states by itself."""
    if not workers:
        return {}
    states, held = STATES * parameters, sum(user.used_bytes for user in workers)
    most = 2 * states + (COPIES * parameters + BASE) * len(workers)  # twice: pinned blocks are rounded up
    told = {"held": show_bytes(held), "count": len(workers), "most": show_bytes(most)}
    because = say("{count} workers hold {held}; the model's states and copies explain {most} at most", **told)
    facts = {"host.beyond_states": Fact(held > most, "log", because)}
    one = max(workers, key=lambda user: user.used_bytes)
    told = {"command": one.command, "held": show_bytes(one.used_bytes), "bytes": f"{one.used_bytes / parameters:.0f}"}
    because = say("{command} alone holds {held}, {bytes} bytes per parameter", **told)
    rest = [user.used_bytes for user in workers if not _is_whole(user, states)]
    facts["host.one_holds_states"] = Fact(_is_whole(one, states) and sum(rest) < one.used_bytes * MOST, "log", because)
    return facts


def _is_whole(user: TopUser, states: float) -> bool:
    """Whether a process holds all states of a model of this size: its own, or a critic's."""
    return ONE_PROCESS * states <= user.used_bytes <= ROUNDED_UP * states + BASE
