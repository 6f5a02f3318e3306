"""Tells whether the rows of a pass are all of one size, or none is long: then no long row explains a late death."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.diagnosis.fact import Fact
from advisor.language import say
from advisor.regex import regex
from advisor.run.natives import last_part
from advisor.run.run import Run
from advisor.run.values import parse_value

_FILLS = regex(r"pad_to_(?:sequence_len|max_len(?:gth)?|maximum|fixed_length|longest_allowed)|padding_to_max_length")
"""Switches that pad every row to the longest length (axolotl, AReaL, older scripts of transformers)."""


_WHOLE_ROW = regex(
    r"(?:model_)?max_(?:seq(?:uence)?_)?len(?:gth)?|cutoff_len|block_size|(?:max_)?seq(?:uence)?_len(?:gth)?"
)
"""Keys of the longest row, prompt and answer together."""
SHORT = 512
"""Tokens: a row of so many holds about 0.3 GiB of logits and as much of activations (judgement)."""


def row_facts(run: Run) -> dict[str, Fact]:
    """rows.equal, rows.short; only where the launch says it."""
    equal = next(_equal(run), "")
    facts = {"rows.equal": Fact(True, "script", equal)} if equal else {}
    caps = {one.key: number for one in run.settings if _WHOLE_ROW.fullmatch(last_part(one.key))
            and isinstance(number := parse_value(one.text, "int"), int) and number > 0}  # fmt: skip
    if caps and max(caps.values()) <= SHORT:
        key = max(caps, key=lambda name: caps[name])
        because = say("{key} {value}: no row is long", key=key, value=caps[key])
        facts["rows.short"] = Fact(True, "script", because)
    return facts


def _equal(run: Run) -> Iterator[str]:
    """Why the passes of the update are of one size whatever the data brings."""
    for name in ("data.packs", "data.pack_tokens", "actor.dynamic_batch"):
        knob = run.knobs.get(name)
        if knob is not None and knob.value not in (None, False) and knob.key and knob.source in ("script", "log"):
            written = next((one.text for one in run.settings if one.key == knob.key and one.effective), knob.value)
            yield say("{key} {value} fills every pass to one size", key=knob.key, value=written)
    for one in run.settings:
        filled = _FILLS.fullmatch(last_part(one.key)) and parse_value(one.text, "bool") is True
        if filled or (last_part(one.key) == "padding" and one.text == "max_length"):
            yield say("{key} {value} pads every row to one length", key=one.key, value=one.text)
    padding = run.knobs.get("actor.remove_padding")
    off = padding is not None and padding.value is False and (run.seen_whole or padding.source == "script")
    if off and padding is not None and run.recipe.answers == "generated" and run.mechanics.trainer == "fsdp":
        told = {"framework": run.title, "key": padding.key}
        yield say("{framework} pads every row to the longest length without {key}", **told)
