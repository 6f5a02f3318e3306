"""Tells what is known of what held the card: nothing, or weights and states that are more than it has."""

from __future__ import annotations

from advisor.diagnosis.allocation import OPEN
from advisor.knowledge.schema import Cause
from advisor.plan.select import LOGITS
from advisor.plan.situation import Situation

NAMED = ("frame.gather", "frame.gathers_all", "frame.bucket", "frame.collects")
"""Frames that name what was being allocated: then nothing has to be guessed, whatever the phase."""
SHOWN = {"batch-too-big": "frame.attention", "logits-too-big": "frame.logits"}
"""Cause → frames that show it by themselves: then nothing has to be guessed either."""


def weights_beyond(situation: Situation, also_states: bool = False) -> bool:
    """Whether the weights alone take a whole card and more (`also_states`: or all that is trained, by the parameters):
    then no pass is small enough."""
    counted = also_states and situation.now.built.natives.framework is not None  # a script of one's own may share them
    in_full = also_states and situation.cause == "states-too-big"  # nothing but the parameters led there
    names = ("weights.least_share", *(("states.least_share",) if counted else ()))
    names += ("states.if_full_share", "states.if_unshared_share") if in_full else ()
    known = (situation.facts.get(name) for name in names)
    return any(one is not None and isinstance(one.value, float) and one.value >= 1 for one in known)


def states_beyond(situation: Situation) -> bool:
    """Whether weights, gradients and optimizer alone are counted to take a whole card and more."""
    share = situation.facts.get("ledger.states_share")
    named = situation.cause == "states-too-big" and situation.now.ledger.gpu_capacity is not None
    return named and share is not None and isinstance(share.value, float) and share.value >= 1


def holder_unknown(situation: Situation, cause: Cause) -> bool:
    """Whether nothing tells what held the card: the cause is a guess, and no sum over a whole launch speaks for it."""
    if situation.place != "gpu" or cause.memory != "gpu" or situation.led:
        return False
    made = situation.facts.get("frame.cause")
    shown = (*NAMED, SHOWN.get(cause.id, ""))
    counted = situation.facts.get("attribution.likely")
    if counted is not None and cause.id == LOGITS and counted.value == "logits":
        return False
    if (made is not None and made.value == cause.id) or any(
        name in situation.facts and situation.facts[name].value is True for name in shown
    ):
        return False
    now = situation.now
    seen = now.built.natives.framework is not None and (now.enough is not False or now.run.seen_whole)
    if situation.phase == "unknown" and not seen:
        return cause.counted
    return cause.id in OPEN and now.enough is not False
