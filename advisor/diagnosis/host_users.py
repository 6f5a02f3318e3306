"""Reads who holds a node's RAM from the table of memory users that Ray prints, and what of it the model can explain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from advisor.crash.evidence import TopUser
from advisor.diagnosis.fact import Fact
from advisor.language import say
from advisor.units import GIB, show_bytes

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
    listed = sum(user.used_bytes for user in users)
    part = listed / in_use if in_use else None
    outside = _outside_list(users, listed, in_use) if users and not cut and in_use else {}
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
    if sums[most] > MOST * listed:
        told = {"size": show_bytes(sums[most]), "count": len(held[most]), "command": held[most][0].command}
        because = say("the log's memory users: {size} in {count} × {command}", **told)
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
