"""Mechanics for tests: those of an FSDP trainer beside a sleeping engine, but for what a test says."""

from __future__ import annotations

from typing import Any

import msgspec

from advisor.knowledge.schema import Mechanics
from advisor.run.recipe import USUAL

_BASE = {**USUAL["fsdp"], "logits_update_bytes": 8, "logits_forward_bytes": 4, "engine_sleeps": True}


def made_mechanics(**fields: Any) -> Mechanics:
    """Complete mechanics with these fields."""
    return msgspec.convert({**_BASE, **fields}, Mechanics)
