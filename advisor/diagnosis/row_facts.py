"""Draws facts on a death after steps that had room: whether rows are of one size, and whether a save was due."""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.diagnosis.fact import Fact, Facts
from advisor.language import say
from advisor.rules.tree import as_number
from advisor.run.natives import last_part
from advisor.run.run import Run
from advisor.run.values import parse_value

_FILLS = re.compile(
    r"pad_to_(?:sequence_len|max_len(?:gth)?|maximum|fixed_length|longest_allowed)|padding_to_max_length"
)
"""Switches that pad every row to the longest length (axolotl, AReaL, older scripts of transformers)."""
_EVERY = re.compile(
    r"(?:eval|test|val|validation)_(?:steps|freq|interval|every|period)(?:_n_steps)?|(?:val|eval)_every\w*"
)
"""Settings that count the steps between two evaluations, whatever the framework."""


def row_facts(run: Run, facts: Facts) -> dict[str, Fact]:
    """rows.equal, due; each only where the launch says it."""
    found: dict[str, Fact] = {}
    equal = next(_equal(run), "")
    if equal:
        found["rows.equal"] = Fact(True, "script", equal)
    done = facts.get("steps_done")
    steps = done.value if done is not None and isinstance(done.value, int) and done.value > 0 else 0
    for what, key, every in _periods(run) if steps else ():
        if steps % every == 0:
            because = say("{count} steps were done, and {key} is {every}", count=steps, key=key, every=every)
            found.setdefault("due", Fact(what, "log", because))
    return found


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


def _periods(run: Run) -> Iterator[tuple[str, str, int]]:
    """What comes round, the key that says so, and every how many steps."""
    save = run.knobs.get("checkpoint.every")
    if save is not None and save.key and isinstance(save.value, int) and save.value > 1:
        yield "checkpoint", save.key, save.value
    for one in run.settings:
        every = as_number(parse_value(one.text, "int")) if _EVERY.fullmatch(last_part(one.key)) else None
        if every is not None and every > 1:
            yield "validation", one.key, int(every)
