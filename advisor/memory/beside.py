"""Finds out whether the process beside the trainer on its card is the run's own rollout engine, and is awake."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.language import say
from advisor.memory.trainer import has_engine
from advisor.regex import regex
from advisor.run.run import Knob, Run
from advisor.units import show_bytes
from advisor.words import Phase

_PID = regex(r"\(pid (\d+)\)")
LEAST = 0.1
"""Part of a card from which on another process of it is worth a word (judgement)."""
AS_ITS_SHARE = 0.2
"""Part by which what an engine holds may miss its share: a context, graphs, a cache in whole blocks (judgement)."""
RANKS = 2
"""Processes that hold as much as the one that failed: ranks that were sent to one card, no engine (judgement)."""
OF_TRAINER: tuple[Phase, ...] = ("log_prob", "actor_update", "critic_update", "optimizer_step", "checkpoint")
"""Phases in which it is the trainer that fails."""
SHARE, SLEEPS = "rollout.memory_share", "rollout.sleeps"


class OwnEngine(Struct, frozen=True):
    """The run's own engine as the process that torch's message lists beside the trainer."""

    size: int
    name: str
    because: str
    awake: bool
    """It holds as much as its share of the card."""

    @property
    def knobs(self) -> dict[str, Knob]:
        """What that says of the run."""
        return {SLEEPS: Knob(SLEEPS, False, "log", note=self.because)} if self.awake else {}

    def named_in(self, crash: Crash) -> Crash:
        """The crash whose message names the process."""
        first, *rest = crash.evidence
        fields = {**first.fields, "engine_process": self.name, "engine_process_bytes": self.size}
        return replace(crash, evidence=(replace(first, fields=fields), *rest))


def own_engine(run: Run, crash: Crash) -> OwnEngine | None:
    """The run's own engine, where something beside the trainer holds much of the card and nothing else explains it:
    engine and trainer share cards, and are processes of their own as far as anybody knows."""
    fields = crash.evidence[0].fields if crash.evidence and crash.verdict == "oom" and crash.memory == "gpu" else {}
    held, total, alike = (fields.get(name) for name in ("other_process_bytes", "total_bytes", "alike_processes"))
    if not isinstance(held, int) or not isinstance(total, int) or "engine_process_bytes" in fields:
        return None
    ranks = isinstance(alike, int) and alike >= RANKS
    shared = run.topology.colocated or not run.topology.known
    apart = has_engine(run) and stands_apart(run) is not False
    share = run.number(SHARE)
    due = share * total if share else 0
    awake = bool(due) and abs(held - due) <= AS_ITS_SHARE * due
    fails = crash.phase in OF_TRAINER or (awake and crash.phase == "unknown")  # it is the trainer that does
    if held < LEAST * total or ranks or not fails or not shared or not apart:
        return None
    told = {
        "size": show_bytes(held),
        "total": show_bytes(total),
        "share": f"{share or 0:g}",
        "due": show_bytes(round(due)),
    }
    because = (
        say("another process holds {size} of {total}, as much as the engine's share ({share}: {due})", **told)
        if awake
        else say("another process holds {size} of {total}, and this run has its engine on the same card", **told)
    )
    pids = _PID.findall(str(fields.get("other_processes", "")))
    name = f"pid {pids[0]}" if len(pids) == 1 else say("another process")
    return OwnEngine(held, name, because, awake)


def stands_apart(run: Run) -> bool | None:
    """Whether the engine is a process of its own; None where nobody knows the version, and that decides it."""
    inside = run.mechanics.engine_inside and str(run.value("rollout.engine")).lower() != "sglang"
    return None if inside and run.era_assumed else not inside
