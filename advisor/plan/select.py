"""The order of the proposals, and which of them are switched on: the smallest set that fits, results first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from advisor.knowledge.schema import Cause
from advisor.memory.ledger import difference
from advisor.plan.fit import died_in
from advisor.plan.propose import Proposal, propose
from advisor.plan.what_if import Overrides, Situation
from advisor.run.constraints import violations
from advisor.words import Phase

TIERS = ("free", "slower", "host_ram", "changes_results", "version", "hardware")


def ordered(proposals: Sequence[Proposal], situation: Situation, cause: Cause) -> list[Proposal]:
    """Best first. `proposals` come in the cause's own order, which decides between equals."""
    ledger = situation.outcome({}).ledger
    phase = died_in(ledger, situation.place, situation.phase)
    host_known = (ledger.host_limit if situation.place == "gpu" else ledger.gpu_capacity) is not None
    return sorted(proposals, key=lambda p: _order(p, phase, host_known, is_cure(p, cause, situation)))


def _order(proposal: Proposal, phase: Phase, other_known: bool, cure: bool) -> tuple[int, ...]:
    """The cure; then what helps where it died, of that what leaves the results alone, of that what is enough alone.

    What is not enough alone: cheapest kind first, within a kind the larger saving where it died.
    """
    if proposal.fits is None:  # nothing can be computed: what somebody ran with comes first
        return (not proposal.confirmed, not cure, proposal.results == "changed")
    helps = proposal.saves.get(phase, 0) > 0 or proposal.lifts_limit
    blind = not other_known and min(proposal.other_saves.values(), default=0) < 0
    enough = proposal.confirmed or (proposal.fits and not blind)
    alone = (0, 0, 0) if enough else (1, TIERS.index(proposal.remedy.tier), -proposal.saves.get(phase, 0))
    return (not cure, not helps, proposal.results == "changed", *alone)


def is_cure(proposal: Proposal, cause: Cause, situation: Situation) -> bool:
    """The cause's own first remedy, free, the same results, and of a kind that no ledger can count."""
    remedy = proposal.remedy
    first = bool(cause.remedies) and remedy.id == cause.remedies[0]
    uncounted = remedy.kind == "environment" or situation.limit == "share"
    return first and uncounted and remedy.tier == "free" and proposal.results == "unchanged"


def select(
    proposals: Sequence[Proposal], situation: Situation, cause: Cause, only_same_results: bool
) -> dict[str, Proposal]:
    """Remedy id → the proposal as selected. In order until it fits; then whatever proved unnecessary goes again."""
    picked: list[Proposal] = []
    for proposal in proposals:
        chosen = together(picked)
        if picked and not tight(situation, chosen):
            break
        if proposal.remedy.id in situation.barred or (only_same_results and proposal.results == "changed"):
            continue
        if is_cure(proposal, cause, situation) or _wanted(proposal, situation, chosen):
            again = propose(proposal.remedy, situation, chosen) if chosen else proposal
            picked += [again] if isinstance(again, Proposal) else []
    return {p.remedy.id: p for p in _counted_anew(_eased(_pruned(picked, situation, cause), situation), situation)}


def together(proposals: Sequence[Proposal]) -> dict[str, str | None]:
    """All their overrides, the later ones on top."""
    return {key: text for proposal in proposals for key, text in proposal.overrides.items()}


def tight(situation: Situation, chosen: Overrides) -> list[Phase]:
    """Phases of the place that do not fit yet."""
    return situation.unfit(situation.outcome(chosen).ledger, situation.place) or []


def exclusions(proposals: Sequence[Proposal], situation: Situation) -> Mapping[str, tuple[str, ...]]:
    """Remedy id → ids of those that the framework refuses beside it."""
    found: dict[str, tuple[str, ...]] = {}
    if situation.outcome({}).built.natives.framework is None:
        return found
    for one, other in combinations(proposals, 2):
        both = together([one, other])
        alone = {*_broken(one.overrides, both, situation), *_broken(other.overrides, both, situation)}
        if set(_broken(both, both, situation)) - alone:
            found[one.remedy.id] = (*found.get(one.remedy.id, ()), other.remedy.id)
            found[other.remedy.id] = (*found.get(other.remedy.id, ()), one.remedy.id)
    return found


def _broken(overrides: Overrides, keys: Overrides, situation: Situation) -> list[str]:
    return violations(situation.outcome(overrides).built, list(keys))


def _wanted(proposal: Proposal, situation: Situation, chosen: Overrides) -> bool:
    """Worth selecting while the run does not fit yet: it relieves a tight phase, and the host has the room."""
    if proposal.fits is None:
        return not chosen and proposal.remedy.results == "unchanged"
    return proposal.relieves(tight(situation, chosen)) and not _spills(proposal, situation, chosen)


def _spills(proposal: Proposal, situation: Situation, chosen: Overrides) -> bool:
    """Whether a remedy for the card asks more of the host than that is known to have."""
    if situation.place != "gpu":
        return False
    before = situation.unfit(situation.outcome(chosen).ledger, "host") or []
    after = situation.unfit(situation.outcome({**chosen, **proposal.overrides}).ledger, "host") or []
    return bool(set(after) - set(before))


def _pruned(picked: list[Proposal], situation: Situation, cause: Cause) -> list[Proposal]:
    """Without those that the rest fits without; the least preferred are tried first."""
    if situation.fits(situation.outcome({}).ledger) is None or tight(situation, together(picked)):
        return picked
    kept = list(picked)
    for proposal in reversed(picked):
        rest = [p for p in kept if p is not proposal]
        if rest and not is_cure(proposal, cause, situation) and not tight(situation, together(rest)):
            kept = rest
    return kept


def _eased(picked: list[Proposal], situation: Situation) -> list[Proposal]:
    """Each as mild as the others allow, once all of them together are enough."""
    if len(picked) < 2 or tight(situation, together(picked)):
        return picked
    eased = list(picked)
    for place, proposal in enumerate(eased):
        others = [p for p in eased if p is not proposal]
        again = propose(proposal.remedy, situation, together(others))
        if isinstance(again, Proposal) and again.fits:
            eased[place] = again
    return eased


def _counted_anew(picked: list[Proposal], situation: Situation) -> list[Proposal]:
    """Each with what it saves on top of those before it, now that some are gone."""
    counted: list[Proposal] = []
    for proposal in picked:
        before = situation.outcome(together(counted)).ledger
        after = situation.outcome(together([*counted, proposal])).ledger
        saves = difference(before, after, situation.place)
        other = difference(before, after, "host" if situation.place == "gpu" else "gpu")
        counted.append(replace(proposal, saves=saves, other_saves=other))
    return counted
