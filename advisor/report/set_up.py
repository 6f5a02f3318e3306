"""Tells which backend trains, which engine generates, and whether they share cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.diagnosis.backend_facts import backend_facts
from advisor.diagnosis.diagnose import WAKING
from advisor.language import clauses, mark, say
from advisor.memory.trainer import has_engine, stage_of, trainer_of

if TYPE_CHECKING:
    from advisor.run.run import Run
    from advisor.state import State

_TRAINS = {
    "fsdp": mark("FSDP trains"),
    "megatron": mark("Megatron trains"),
    "deepspeed": mark("DeepSpeed trains (ZeRO stage {stage})"),
    "ddp": mark("each card trains a whole copy"),
}
_ENGINES = {"vllm": "vLLM", "sglang": "SGLang"}


def _given(run: Run, name: str) -> bool:
    """Whether launch or log states a knob."""
    return (knob := run.knobs.get(name)) is not None and knob.source in ("script", "log")


def set_up(state: State) -> str:
    """Of a run that generates its answers: what trains, which engine generates, and whether they share cards."""
    run, facts = state.run, state.situation.facts if state.situation is not None else {}
    if run.framework == "unknown" or run.recipe.answers != "generated" or state.diagnosis.memory != "gpu":
        return ""
    shown = backend_facts(state.crash).get("trainer")
    named = next((one for one in state.knowledge.frameworks if one.framework == run.framework), None)
    several = named is not None and any("trainer" in one.set for one in named.mechanics_when)
    trainer = str(shown.value) if shown is not None else trainer_of(run)
    read = run.settings and not run.missing_files
    parts = []
    if trainer in ("fsdp", "megatron") and (read or shown is not None or not several):
        parts.append(say(_TRAINS[trainer]))
    elif trainer not in ("fsdp", "megatron") and (
        (run.seen_whole and run.unread is None and not run.launcher_unseen) or _given(run, "actor.zero_stage")
    ):
        parts.append(say(_TRAINS[trainer], stage=stage_of(run, trainer_of(run))))
    elif several:
        parts.append(say("FSDP or Megatron trains, which is not told: their settings have other names"))
    if not has_engine(run):
        return say("Set-up: {parts}.", parts=clauses(parts)) if run.settings and parts else ""
    seen = facts.get("frame.engine")
    name = str(run.value("rollout.engine") or (seen.value if seen is not None else "")).lower()
    engine = _ENGINES.get(name, say("the engine"))
    shared = facts.get("colocated")
    if any(name in facts for name in WAKING):
        told = say("{engine} generates on the same cards, and sleeps while it trains", engine=engine)
    elif not (read or (shared is not None and shared.source == "log")):
        told = say("{engine} generates; whether on the same cards is not told", engine=engine)
    elif run.topology.colocated or (shared is not None and shared.value is True):
        told = say("{engine} generates on the same cards", engine=engine)
    elif not run.topology.known and not run.seen_whole:  # what places it was not seen
        told = say("{engine} generates; whether on the same cards is not told", engine=engine)
    elif run.topology.engine_elsewhere:
        told = say("{engine} generates in a server of its own", engine=engine)
    else:
        told = say("{engine} generates on cards of its own", engine=engine)
    return say("Set-up: {parts}.", parts=clauses([*parts, told]))
