"""Tells whether the rows of a pass are all of one size: then no long row explains a late death."""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.diagnosis.fact import Fact
from advisor.language import say
from advisor.run.natives import last_part
from advisor.run.run import Run
from advisor.run.values import parse_value

_FILLS = re.compile(
    r"pad_to_(?:sequence_len|max_len(?:gth)?|maximum|fixed_length|longest_allowed)|padding_to_max_length"
)
"""Switches that pad every row to the longest length (axolotl, AReaL, older scripts of transformers)."""


def row_facts(run: Run) -> dict[str, Fact]:
    """rows.equal; only where the launch says it."""
    equal = next(_equal(run), "")
    return {"rows.equal": Fact(True, "script", equal)} if equal else {}


def _equal(run: Run) -> Iterator[str]:
    """Why the passes of the update are of one size whatever the data brings."""
    for name in ("data.packs", "data.pack_tokens", "actor.dynamic_batch"):
        knob = run.knobs.get(name)
        if knob is not None and knob.value not in (None, False) and knob.key and knob.source in ("script", "log"):
            yield say("{key} {value} fills every pass to one size", key=knob.key, value=knob.value)
    for one in run.settings:
        filled = _FILLS.fullmatch(last_part(one.key)) and parse_value(one.text, "bool") is True
        if filled or (last_part(one.key) == "padding" and one.text == "max_length"):
            yield say("{key} {value} pads every row to one length", key=one.key, value=one.text)
    padding = run.knobs.get("actor.remove_padding")
    off = padding is not None and padding.value is False and (run.seen_whole or padding.source == "script")
    if off and padding is not None and run.recipe.answers == "generated" and run.mechanics.trainer == "fsdp":
        told = {"framework": run.title, "key": padding.key}
        yield say("{framework} pads every row to the longest length without {key}", **told)
