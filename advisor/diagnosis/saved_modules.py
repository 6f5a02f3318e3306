"""Counts embedding and head where they are trained whole beside adapters: 16 bytes a parameter, not 2."""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.diagnosis.fact import Fact, Facts
from advisor.language import say
from advisor.memory.constants import BF16
from advisor.regex import regex
from advisor.run.natives import last_part
from advisor.run.run import Run
from advisor.units import show_bytes, show_params

_KEY = regex(r"(?:lora_)?modules_to_save|additional_trainable_modules?")
"""peft's LoraConfig, LLaMA-Factory's older name, and the options of scripts that pass it on."""
_TABLES = regex(r"embed\w*|wte|lm_head|output_layer", re.IGNORECASE)
WHOLE = 8 * BF16
"""Bytes of a parameter that is trained whole in mixed precision."""


def saved_facts(run: Run) -> dict[str, Fact]:
    """modules.saved: bytes that the tables of the vocabulary take, where a setting names them to be trained whole."""
    shape = run.model
    for one in run.settings:
        tables = len({name.lower() for name in _TABLES.findall(one.text)}) if _KEY.fullmatch(last_part(one.key)) else 0
        if tables and shape is not None:
            count = tables * shape.vocab * shape.hidden
            told = {"key": one.key, "names": one.text, "count": show_params(count), "size": show_bytes(WHOLE * count)}
            because = say("{key} {names} are trained whole: {count} parameters × 16 bytes are {size}", **told)
            return {"modules.saved": Fact(WHOLE * count, "script", because)}
    return {}


def saved_remark(facts: Facts) -> Iterator[str]:
    """What they take of the card, and that a vocabulary that was extended takes more."""
    memory, saved = facts.get("memory"), facts.get("modules.saved")
    if saved is not None and memory is not None and memory.value == "gpu":
        yield say("{because}, more where the vocabulary was extended.", because=saved.because)
