"""Counts to what the memory limit of a job has to be raised, and writes that into the step that raises it."""

from __future__ import annotations

from math import ceil

from msgspec.structs import replace

from advisor.language import say
from advisor.memory.fit import counted
from advisor.memory.predict import Prediction, Predictor
from advisor.plan.patch import not_written
from advisor.plan.plan import Change, PlanStep
from advisor.plan.situation import Situation
from advisor.units import GIB


def needed_on_host(now: Prediction, predictor: Predictor) -> float:
    """Bytes of RAM that each node has to give by the count, the margin kept free; 0 where none is counted.

    Also of a phase that the run passed: a limit is raised once, and for all of it.
    """
    peak = max((counted(each, predictor.walls) for each in now.ledger.sums("host")), default=0)
    return peak / (1 - predictor.margin)


def with_number(step: PlanStep, situation: Situation) -> PlanStep:
    """The step with the limit that the run needs; as it is where no count is above the limit, or the node has less.

    A run that was killed at its limit needs more than that: where most of it is explained by nothing, nobody knows how
    much more, and no number is given.
    """
    predictor, host = situation.predictor, situation.predictor.machine.host
    asked = predictor.machine.asked_memory
    if any(one.place == "host" and one.unexplained and not one.is_level for one in predictor.measured.corrections):
        if asked is None:
            return step
        place = f"{asked.file}:{asked.line}"
        title = say("Raise {option}={old} ({place})", option=asked.option, old=asked.text, place=place)
        told = say("It was killed at this limit, so it needs more; how much more, the count does not say.")
        return replace(step, title=title, caveats=(*step.caveats, told))
    each = ceil(needed_on_host(situation.now, predictor) / GIB)
    if situation.uncounted or host.limit_bytes is None or each * GIB <= host.limit_bytes:
        return step
    if host.total_bytes is not None and each * GIB > host.total_bytes:
        told = say("by the count the run needs {size} GiB on each node, and a node has less", size=each)
        return replace(step, caveats=(*step.caveats, told))
    if asked is None:
        title = say("{title}: to at least {size} GiB by the count", title=step.title, size=each)
        return replace(step, title=title, host_limit=each * GIB)
    new = ceil(each / asked.times)
    title = say(
        "Raise {option}={old} to at least {new}G by the count ({place})",
        option=asked.option,
        old=asked.text,
        new=new,
        place=f"{asked.file}:{asked.line}",
    )
    change = Change(asked.option, asked.text, f"{new}G", asked.file, asked.line, not_written())
    return replace(step, title=title, changes=(change,), host_limit=new * asked.times * GIB)
