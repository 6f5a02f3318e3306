"""Counts to what the memory limit of a job has to be raised, and writes that into the step that raises it."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from msgspec.structs import replace

from advisor.language import mark, say
from advisor.machine.inventory import BatchMemory
from advisor.memory.fit import counted
from advisor.memory.predict import Prediction, Predictor
from advisor.plan.patch import not_written
from advisor.plan.plan import Change, PlanStep
from advisor.plan.situation import Situation
from advisor.units import GIB, show_bytes


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
    step = replace(step, why=_why(asked, situation) or step.why)
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
    launch = predictor.inputs.launch
    written = asked.is_editable and launch is not None and bool(launch.argv)  # a Python file is started under no limit
    change = Change(asked.option, asked.text, f"{new}G", asked.file, asked.line, not_written())
    step = replace(step, title=title, changes=(change,), host_limit=new * asked.times * GIB)
    return replace(step, kind="job") if written else step


def _why(asked: BatchMemory | None, situation: Situation) -> str:
    """Whose limit it is and how it is raised; "" where nobody knows."""
    if asked is not None and not asked.of_slurm:
        told = mark("The kernel kills at {option}, however much more the machine has. Raise it, to no more than that.")
        return say(told, option=asked.option)
    if asked is None and not situation.predictor.crash.signature.startswith("slurm"):
        return ""
    option = asked.option if asked is not None else "--mem"
    told = mark(
        "Slurm ends a job that uses more than it asked for, however much more the node has. Ask for more with "
        "{option}, but for no more than a node has: `sinfo -N -o '%N %m'` lists the MB of each."
    )
    return say(told, option=option)


def at_limit(step: PlanStep, text: str, situation: Situation) -> PlanStep:
    """The step with a limit that the user wrote, in GiB. Raises ValueError, one sentence."""
    asked, change = situation.predictor.machine.asked_memory, step.changes[0]
    if asked is None or not text.isascii() or not text.isdecimal() or int(text) == 0:
        raise ValueError(say("{key} takes a number above 0", key=change.key))
    limit, total = int(text) * asked.times * GIB, situation.predictor.machine.host.total_bytes
    if total is not None and limit > total:
        raise ValueError(say("a node has {size}", size=show_bytes(total)))
    if limit == asked.limit_bytes:
        raise ValueError(say("{value} is what it is now; space switches the change off", value=text))
    return replace(step, changes=(replace(change, new=f"{int(text)}G"),), host_limit=limit, own=text)


def limits_around(step: PlanStep, situation: Situation) -> Iterator[tuple[str, int]]:
    """Limits to be tried around the step's own: the text of each, and the bytes of a node that it stands for."""
    asked, own = situation.predictor.machine.asked_memory, int(step.number)
    if asked is None:
        return
    total = situation.predictor.machine.host.total_bytes
    for text in sorted({own, *(max(1, ceil(own * eighths / 8)) for eighths in range(4, 17))}):
        if total is None or text * asked.times * GIB <= total:
            yield str(text), text * asked.times * GIB
