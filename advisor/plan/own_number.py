"""Gives a step of the plan a number that the user wrote, and tells which numbers fit beside the other steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from advisor.knowledge.schema import Remedy
from advisor.language import say
from advisor.plan.by_hand import at_limit, limits_around
from advisor.plan.cheapest import Search
from advisor.plan.options import Option, option_with
from advisor.plan.plan import Change, PlanStep
from advisor.plan.propose import Proposal, propose, taking
from advisor.plan.select import seen_from
from advisor.plan.situation import Situation
from advisor.plan.solve import overrides_of
from advisor.plan.steps import step_of
from advisor.rules.tree import as_number
from advisor.run.values import parse_value

DIGITS = 12
"""As many as any number of a setting has."""
SMALL = 65
"""Below it every whole number is tried: what must divide a batch is seldom a power of two alone."""
AROUND = 8
"""How many times smaller or larger than present and planned number those are that are tried."""


class TriedNumber(Struct, frozen=True):
    """A number that the framework allows, and whether the run fits with it; None: that cannot be computed."""

    text: str
    value: float
    fits: bool | None


class Fitting(Struct, frozen=True):
    """The numbers around a step's own, ascending, and the run of them that fits."""

    tried: tuple[TriedNumber, ...] = ()

    def around(self, value: float) -> tuple[TriedNumber | None, tuple[TriedNumber, ...], TriedNumber | None]:
        """(the next below that does not fit, those that fit, the next above that does not): the stretch of numbers that
        fit which is nearest to `value`; the middle is empty where none fits.
        """
        stretches = [tuple(each) for fits, each in groupby(self.tried, lambda one: one.fits is True) if fits]
        if not stretches:
            return None, (), None
        best = min(stretches, key=lambda each: min(abs(one.value - value) for one in each))
        at, end = self.tried.index(best[0]), self.tried.index(best[-1])
        return (
            self.tried[at - 1] if at else None,
            best,
            self.tried[end + 1] if end + 1 < len(self.tried) else None,
        )


def own_number(step: PlanStep, situation: Situation) -> Change | None:
    """The change whose number the user may choose; None where the step sets none, or has no other value."""
    first = step.changes[0] if step.changes else None
    if step.kind == "job":
        return first
    if first is None or _number(first.new) is None or _remedy(step, situation) is None:
        return None
    return first


def with_number(step: PlanStep, text: str, situation: Situation, others: Sequence[PlanStep]) -> PlanStep:
    """The step with a number that the user wrote; `others`: the steps that are on beside it.

    Raises ValueError, one sentence, for what is no number and for what the framework does not allow.
    """
    if step.kind == "job":
        return at_limit(step, text, situation)
    change, remedy = own_number(step, situation), _remedy(step, situation)
    if change is None or remedy is None:
        raise ValueError(say("it has no value that could be chosen"))
    value = _number(text) if len(text) <= DIGITS else None
    if value is None or value < 0 or (value == 0 and _number(change.new) != 0):
        raise ValueError(say("{key} takes a number above 0", key=change.key))
    if _is_share(change) and value > 1:
        raise ValueError(say("{key} is a share: 1 is all of it", key=change.key))
    if value == _number(change.old) and change.old_source != "assumed":
        raise ValueError(say("{value} is what it is now; space switches the change off", value=text))
    quiet = situation.without_latent_faults()
    option = option_with(text, remedy, quiet, overrides_of(others))
    if not isinstance(option, Option):
        raise ValueError(option)  # noqa: TRY004 - what the user wrote is at fault
    made = step_of(taking(option, remedy, seen_from(remedy, quiet), {}), quiet, selected=step.selected)
    return replace(made, rank=step.rank, conflicts=step.conflicts, group=step.group, own=text)


def sized_together(steps: Sequence[PlanStep], situation: Situation) -> dict[str, PlanStep]:
    """Id → the step at another number, where these are on together and at their own do not fit: the mildest numbers of
    all with which they do; {} where none do."""
    quiet, by_id = situation.without_latent_faults(), {one.id: one for one in steps}
    if quiet.predictor.predict(overrides_of(steps)).enough is not False:
        return {}
    known = [one for one in quiet.remedies if one.value is not None and one.id in by_id and not by_id[one.id].own]
    offered = [propose(one, seen_from(one, quiet), {}) for one in known]
    base = overrides_of([one for one in steps if one.id not in {remedy.id for remedy in known}])
    search = Search(quiet, base)
    found = search.mildest(search.choices([one for one in offered if isinstance(one, Proposal)])) or ()
    made = [taking(one.option, one.proposal.remedy, seen_from(one.proposal.remedy, quiet), {}) for one in found]
    return {
        one.remedy.id: replace(step_of(one, quiet, selected=True), conflicts=by_id[one.remedy.id].conflicts)
        for one in made
    }


def fitting_numbers(step: PlanStep, situation: Situation, others: Sequence[PlanStep]) -> Fitting:
    """Whether the run fits, beside `others`, with each number around the step's own and the present one."""
    change, remedy = own_number(step, situation), _remedy(step, situation)
    quiet, base, tried = situation.without_latent_faults(), overrides_of(others), {}
    fixed = any(other.kind == "version" for other in others)
    if step.kind == "job":
        predictor = quiet.predictor
        limits = limits_around(step, quiet)
        return Fitting(
            tuple(
                TriedNumber(text, float(text), predictor.lifted(size).predict(base, fixed).enough)
                for text, size in limits
            )
        )
    if change is None or remedy is None:
        return Fitting()
    for text in _around(change):
        option, value = option_with(text, remedy, quiet, base), _number(text)
        if isinstance(option, Option) and value is not None:
            outcome = situation.predictor.predict({**base, **option.overrides}, fixed)
            tried[value] = TriedNumber(text, value, outcome.fit.fits)
    return Fitting(tuple(tried[value] for value in sorted(tried)))


def _around(change: Change) -> list[str]:
    """Round numbers around the plan's and the present one, and these two."""
    ends = [value for text in (change.new, change.old) if (value := _number(text)) is not None]
    own = [text for text in (change.new, change.old) if text is not None and _number(text)]
    if _is_share(change):
        return [*own, *(f"{hundredths / 100:g}" for hundredths in range(5, 100, 5))]
    powers = [*range(1, SMALL), *(2**power * factor for power in range(31) for factor in (1, 1.5))]
    near = (v for v in powers if ends[0] / AROUND <= v <= max(ends) * AROUND and v == int(v))
    return [*own, *(f"{int(v)}" for v in near)]


def _is_share(change: Change) -> bool:
    """A part of the whole: written with a point, and below 1 as it stands and as the plan has it."""
    texts = [text for text in (change.new, change.old) if _number(text) is not None]
    return any("." in str(text) for text in texts) and all((_number(text) or 0) <= 1 for text in texts)


def _remedy(step: PlanStep, situation: Situation) -> Remedy | None:
    """The remedy that the step applies; None where it is another thing: a version, a case's own set of values."""
    return next((one for one in situation.remedies if one.id == step.id and one.value is not None), None)


def _number(text: str | None) -> float | None:
    found = as_number(parse_value(text, "float")) if text is not None else None
    return None if found is None else float(found)
