"""Says what a setting does to memory."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.knowledge.schema import SettingFact
from advisor.language import Sayings, listed, say
from advisor.words import PHASE_TITLES

_EFFECTS: Sayings[str] = Sayings(
    {
        "none": "does not move memory in {phases}",
        "decides gpu": "its value decides GPU memory in {phases}",
        "decides host": "its value decides host RAM in {phases}",
        "on gpu-": "turning it on lowers GPU memory in {phases}",
        "on gpu": "turning it on raises GPU memory in {phases}",
        "on host-": "turning it on lowers host RAM in {phases}",
        "on host": "turning it on raises host RAM in {phases}",
        "more gpu-": "raising it lowers GPU memory in {phases}",
        "more gpu": "raising it raises GPU memory in {phases}",
        "more host-": "raising it lowers host RAM in {phases}",
        "more host": "raising it raises host RAM in {phases}",
    }
)
"""How a setting moves memory, by how it is changed and what that does."""


def effects(fact: SettingFact) -> list[str]:
    """One clause an effect, with the phases that have it: "raising it lowers GPU memory in the actor update, …"."""
    phases: dict[str, list[str]] = {}
    for phase, moved in fact.moves.items():
        phases.setdefault(_effect(moved, fact.type), []).append(phase)
    still = phases.pop("none", [])
    said = [_EFFECTS[effect].format(phases=_phases(named)) for effect, named in phases.items()]
    if not phases:
        return [say("does not move memory")] if still else []
    named = [phase for phase in still if phase != "all"]
    return [*said, *([_EFFECTS["none"].format(phases=_phases(named))] if named else [])]


def _phases(named: Iterable[str]) -> str:
    return listed(say("every phase") if phase == "all" else PHASE_TITLES.get(phase, phase) for phase in named)  # type: ignore[arg-type]


def _effect(moved: str, kind: str) -> str:
    """The key of what is said of it."""
    if moved == "none":
        return moved
    if kind in ("str", "list"):
        return f"decides {moved.removesuffix('-')}"
    return f"on {moved}" if kind in ("bool", "flag") else f"more {moved}"
