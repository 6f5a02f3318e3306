"""Refuses changes with which the rollout engine could not start."""

from __future__ import annotations

from advisor.knowledge.schema import Remedy
from advisor.language import say
from advisor.memory.constants import BF16
from advisor.memory.fit import cannot_start
from advisor.memory.fit_clause import finding_clause
from advisor.memory.inputs import SHARE
from advisor.memory.predict import Prediction
from advisor.run.run import KnobValue
from advisor.units import show_bytes

WEIGHTS_OF_SHARE = 0.85
"""Part of an engine's share that its weights may take: start-up pass and cache need the rest (judgement)."""


def no_room_for_engine(remedy: Remedy, value: KnobValue, before: Prediction, after: Prediction) -> str:
    """Why the engine has no room after the remedy gave its setting the value; "" where it has, or nobody knows."""
    if any(map(cannot_start, after.ledger.gpu)) and not any(map(cannot_start, before.ledger.gpu)):
        stuck = next((one for one in after.fit.findings if one.reason == "engine"), None)
        if stuck is not None:
            return finding_clause(stuck)
    return _filled_by_weights(value, before) if remedy.knob == SHARE and isinstance(value, float) else ""


def _filled_by_weights(share: float, now: Prediction) -> str:
    """That the weights leave hardly anything of a share, where it is known over how many cards they are spread."""
    run, card, spread = now.run, now.ledger.gpu_capacity, now.run.knobs.get("rollout.tensor_parallel")
    guessed = spread is not None and spread.value != 1 and spread.source in ("default", "assumed")
    if run.model is None or card is None or (guessed and not run.seen_whole) or share >= (run.number(SHARE) or 1):
        return ""  # a larger one is on its way out of it
    counted = [cell.expected for each in now.ledger.gpu for cell in each.cells if cell.owner == "engine_weights"]
    packed = run.number("rollout.weight_bits") or run.model.served_bits or run.number("actor.quantized_bits")
    whole = 0 if packed else BF16 * run.model.parameters // max(1, int(run.number("rollout.tensor_parallel") or 1))
    weights = max(counted, default=whole)
    # no engine starts so: what spreads it was not seen, unless it has cards of its own, which it needs whole
    spread_wider = weights > card and not run.seen_whole and run.topology.colocated
    if weights <= WEIGHTS_OF_SHARE * share * card or spread_wider:
        return ""
    return say("the engine's weights alone take {weights} of each card", weights=show_bytes(weights))
