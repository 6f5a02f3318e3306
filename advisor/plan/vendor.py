"""Speaks of AMD's and Ascend's variables and tools where the card is one of theirs."""

from __future__ import annotations

from msgspec.structs import replace

from advisor.diagnosis.vendor import Vendor, in_names_of
from advisor.language import say
from advisor.plan.plan import PlanStep


def in_words_of(vendor: Vendor, step: PlanStep) -> PlanStep:
    """The step with the names that this vendor's software has for variables and tools."""
    if vendor == "nvidia":
        return step

    def renamed(text: str) -> str:
        return in_names_of(vendor, text)

    environment = step.kind == "environment"
    changes = tuple(replace(c, key=renamed(c.key)) if environment else c for c in step.changes)
    caveats = [*map(renamed, step.caveats)]
    if vendor == "amd" and any(c.new == "expandable_segments:True" for c in changes):
        caveats.append(
            say("torch for AMD may lack it: the log then says that expandable_segments are not supported here")
        )
    words = {"title": renamed(step.title), "why": renamed(step.why), "costs": renamed(step.costs)}
    return replace(step, changes=changes, caveats=tuple(caveats), **words)
