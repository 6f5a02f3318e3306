"""Orders the proposals and selects the cheapest set that fits, training results first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations, islice

from msgspec import Struct
from msgspec.structs import replace

from advisor.diagnosis.fact import all_hold
from advisor.knowledge.schema import Cause, Remedy
from advisor.memory.batches import far_beyond_a_row
from advisor.memory.fit import PLACES, capacity_of, counted, limit_of
from advisor.memory.inputs import SHARE
from advisor.memory.predict import Overrides
from advisor.plan.cheapest import Corner, PricedOption, Search
from advisor.plan.propose import Proposal, beyond_a_card, propose, taking
from advisor.plan.situation import LOGITS, Situation
from advisor.run.constraints import newly_broken
from advisor.run.natives import default_of
from advisor.run.values import parse_value
from advisor.words import Phase

MOST_NEAREST = 3
"""Changes selected where none are enough: a plan that ticks everything says nothing."""
WORTH_SELECTING = 0.2
"""Fraction of what is missing that a change must take away to be selected where none are enough."""
MOST_AT_ONCE = 6
"""Changes selected where no smaller set is enough: more are another run."""
LEADERS = 2
"""Changes around which a set is looked for where the cheapest search found none."""
GUESSED = ("batch-or-states", "batch-too-big", "host-too-small")
"""Causes that are taken where nothing tells another."""
LIMIT = "host-limit"
FAR_MORE = 2
"""Times what a set saves: then one change that saves so much stands in its place."""
TIERS = ("free", "slower", "host_ram", "changes_results", "version", "hardware")


def ordered(proposals: Sequence[Proposal], situation: Situation, cause: Cause) -> list[Proposal]:
    """In the order in which they are tried: the cure; what helps where it died; of that what leaves the results alone;
    of that what is enough alone, else the cheapest kind, within a kind the larger saving. `proposals` come in the
    cause's own order, which decides between equals; where nothing can be computed what somebody ran with goes first."""
    ledger, phase = situation.now.ledger, situation.fullest
    other_known = (ledger.host_limit if situation.place == "gpu" else ledger.gpu_capacity) is not None

    def place(one: Proposal) -> tuple[int, ...]:
        changes = one.results == "changed" and one.remedy.id not in cause.leads
        cure, saved = is_cure(one, cause, situation), one.saves.get(phase, 0)
        if one.fits is None:
            return (not one.confirmed, not cure, changes)
        taken = other_known or min(one.other_saves.values(), default=0) >= 0
        alone = (0, 0) if one.confirmed or (one.fits and taken) else (1 + TIERS.index(one.remedy.tier), -saved)
        return (not cure, not (saved > 0 or one.lifts_limit), changes, *alone)

    return sorted(proposals, key=place)


def is_cure(proposal: Proposal, cause: Cause, situation: Situation) -> bool:
    """The cause's own first remedy, free, the same results, and of a kind that no ledger can count."""
    remedy = proposal.remedy
    first = bool(cause.remedies) and remedy.id == cause.remedies[0]
    uncounted = remedy.kind == "environment" or situation.predictor.limit == "share"
    return first and uncounted and remedy.tier == "free" and proposal.results == "unchanged"


def _shown_together(proposals: Sequence[Proposal], situation: Situation) -> list[Proposal]:
    """What the best matching case confirms, taken together as it was there; [] where that costs anything."""
    free = {p.remedy.id: p for p in proposals if p.remedy.tier == "free" and p.results == "unchanged" and p.overrides}
    confirmed = (case.remedies for case in situation.cases if case.grade == "confirmed" and len(case.remedies) > 1)
    return next(([free[one] for one in shown] for shown in confirmed if {*shown} <= {*free}), [])


USUAL_LEVER = {"pass": "batch", "rows": "length", "states": "shard", "engine": "engine"}
"""What it relieves → what most remedies of it do."""


def lever_of(remedy: Remedy) -> str:
    """What kind of step it is."""
    return remedy.lever or USUAL_LEVER.get(remedy.relieves, remedy.id)


class Selected(Struct, frozen=True):
    """What is switched on: of the proposals by remedy id, and changes of other phases or places that they need."""

    own: Mapping[str, Proposal]
    companions: tuple[Proposal, ...] = ()
    too_little: bool = False
    """By the ledger it does not fit with them, and no other set would."""


def select(proposals: Sequence[Proposal], situation: Situation, cause: Cause, only_same_results: bool) -> Selected:
    """The cure or what a case shows, then the cheapest set that fits; where none does, the few that come nearest."""
    if situation.cause == LIMIT and situation.now.ledger.gpu_capacity is None:  # it is raised before a card is filled
        filling = {p.remedy.id for p in proposals if min(p.other_saves.values(), default=0) < 0}
        situation = replace(situation, barred=situation.barred | filling)
    allowed = [p for p in proposals if p.remedy.id not in situation.barred and not p.remedy.last_resort]
    allowed = [p for p in allowed if (not p.blind or p.confirmed) and not beyond_a_card(p.other_saves, situation)]
    allowed = [
        p
        for p in allowed
        if lever_of(p.remedy) not in situation.in_vain and (p.fits or not gives_hardly(p.remedy, situation))
    ]
    allowed = [p for p in allowed if not situation.fills_other(p.other_saves)]
    if situation.refuted:  # whatever the sums: a smaller number of the user's own makes the pass smaller
        smaller = [p for p in allowed if p.is_set and lever_of(p.remedy) == "batch" and p.results == "unchanged"]
        return Selected({p.remedy.id: _until_enough(p, situation) for p in _best_known(smaller, situation, cause)})
    cures = [p for p in allowed if is_cure(p, cause, situation)] or _shown_together(allowed, situation)
    rest, base = [p for p in allowed if p not in cures], together(cures)
    if situation.now.enough is None:
        picked = cures or (_best_known(rest, situation, cause) if cause.counted else [])
        return Selected({p.remedy.id: p for p in picked})
    found = _aimed(rest, situation, cause, base)
    if found is None and not cause.counted:
        return Selected({p.remedy.id: p for p in cures})
    rest = [p for p in rest if touches(p.remedy, situation)]
    found = found or cheapest_of(rest, situation, base, only_same_results)
    if not cures and found and (decisive := _decisive(rest, found, situation)) is not None:
        found = [(decisive, True)]
    found = _asleep(found, rest, situation, base) or found
    if found is None:
        found = _around_the_strongest(rest, situation, base) or _all_needed(rest, situation, base)
    if found is None:
        picked = [*cures, *_nearest(rest, situation, base)]
        return Selected({p.remedy.id: p for p in picked}, too_little=shortage(situation, together(picked)) > 0)
    found = _made_sure(found, rest, situation, base)
    own = [*cures, *(p for p, mine in found if mine)]
    return Selected({p.remedy.id: p for p in own}, tuple(p for p, mine in found if not mine))


def gives_hardly(remedy: Remedy, situation: Situation) -> bool:
    """Whether the knowledge says that it gives hardly anything in a run of this kind."""
    return bool(remedy.last_when) and all_hold(remedy.last_when, situation.facts) is not None


def touches(remedy: Remedy, situation: Situation) -> bool:
    """Whether a change of the pass makes that smaller which the cause names: recomputing layers lowers no logits."""
    if situation.cause != LOGITS or remedy.relieves != "pass":
        return True
    return any(cause.id == LOGITS and remedy.id in cause.remedies for cause in situation.knowledge.tree.causes)


def acts_on(remedy: Remedy, held: Collection[str], cause: Cause, situation: Situation) -> bool:
    """Whether it makes smaller what the cause says was `held`; of what no holder is named for, the cause's own remedies
    do, and where none is named at all."""
    own = remedy.id in cause.remedies
    if not held or remedy.relieves == "other":
        return own or cause.id in GUESSED
    return remedy.relieves in held and touches(remedy, situation)


def _decisive(
    proposals: Sequence[Proposal], found: Sequence[tuple[Proposal, bool]], situation: Situation
) -> Proposal | None:
    """The best ranked that is enough alone where it saves far more than the set does, at the price of time only: sums
    are estimates, and what leaves little room may be too little.
    """
    phase = situation.fullest
    saved = sum(p.saves.get(phase, 0) for p, _ in found)
    if any(p.remedy.tier == "host_ram" or p.results == "changed" for p, _ in found):
        return None
    quiet = (p for p in proposals if p.fits and p.results == "unchanged" and p.remedy.tier in ("free", "slower"))
    best = next((p for p in quiet if not p.spills and not p.remedy.rests_on_data), None)
    return best if best is not None and best.saves.get(phase, 0) > FAR_MORE * saved else None


def _asleep(
    found: Sequence[tuple[Proposal, bool]] | None, proposals: Sequence[Proposal], situation: Situation, base: Overrides
) -> list[tuple[Proposal, bool]] | None:
    """What puts engine and states to sleep, in place of a share with which the run only may fit, where it then does."""
    predictor, chosen = situation.predictor, {**base, **together([p for p, _ in found or ()])}
    shared = any(p.remedy.knob == SHARE for p, _ in found or ())
    if not shared or predictor.predict(chosen).fit.verdict != "may_not_fit":
        return None
    every = [*proposals, *elsewhere(proposals, situation, base)]
    asleep = [p for p in every if lever_of(p.remedy) == "sleep" and p.results == "unchanged"]
    for one in (set_ for count in (1, 2) for set_ in combinations(asleep, count)):
        if predictor.predict({**base, **together(one)}).fit.verdict == "fits":
            return [(p, p in proposals) for p in one]
    return None


def _until_enough(proposal: Proposal, situation: Situation) -> Proposal:
    """At the mildest of its values with which it fits by the sums, at the furthest where none does: sums that the log
    refutes count too much."""
    values = [one for one in proposal.options if one.same_results and one.overrides]
    enough = [one for one in values if not shortage(situation, one.overrides)]
    option = enough[0] if enough else min(values, key=lambda one: shortage(situation, one.overrides), default=None)
    return proposal if option is None else taking(option, proposal.remedy, situation, {})


def _made_sure(
    found: list[tuple[Proposal, bool]], proposals: Sequence[Proposal], situation: Situation, base: Overrides
) -> list[tuple[Proposal, bool]]:
    """What surely fits at the price of time only, where the set only may fit: one of the user's own numbers alone, a
    further value of what is in the set, or one change more; the set itself where none does. How the states are laid out
    stays: checkpoints depend on it."""
    predictor, chosen = situation.predictor, {**base, **together([p for p, _ in found])}
    if predictor.predict(chosen).fit.verdict != "may_not_fit":
        return found
    quiet = [p for p in proposals if p.results == "unchanged" and p.remedy.tier in ("free", "slower")]
    quiet = [p for p in quiet if not (p.blind or p.spills or p.remedy.rests_on_data or p.remedy.relieves == "states")]
    quiet.sort(key=lambda p: (all(p.remedy.id != one.remedy.id for one, _ in found), not p.is_set))
    tried = [(p, False) for p in quiet if p.is_set] + [(p, True) for p in quiet]
    for one, together_with in tried:
        others = [(p, mine) for p, mine in found if together_with and p.remedy.id != one.remedy.id]
        beside = {**base, **together([p for p, _ in others])}
        for option in (each for each in one.options if each.same_results and not beside.keys() & each.overrides):
            after = predictor.predict({**beside, **option.overrides})
            if after.fit.verdict == "fits" and not newly_broken(situation.now.built, after.built):
                return [*others, (taking(option, one.remedy, situation, beside), True)]
    return found


def _aimed(
    proposals: Sequence[Proposal], situation: Situation, cause: Cause, base: Overrides
) -> list[tuple[Proposal, bool]] | None:
    """The cheapest set of what the cause itself names, where one fits that costs neither results nor RAM.

    Where the size that was asked for names the pass, or its budget is many rows, its rows come first: they are what it
    is made of.
    """
    own = [p for p in proposals if p.remedy.id in cause.remedies]
    search, made = Search(situation, base, only_same_results=True), situation.value("attribution")
    if made == "logits" or far_beyond_a_row(situation.now.run, situation.fullest) is not None:
        rows = [p for p in own if lever_of(p.remedy) == "batch" and not p.unseen]
        mine = [p for p in rows if p.is_set]  # the user's own numbers first, those of other passes beside them
        beside = [p for p in elsewhere(mine, situation, base) if lever_of(p.remedy) == "batch" and p.is_set]
        for tried, offered in ((mine, len(mine)), ([*mine, *beside], len(mine)), (rows, len(rows))):
            if found := search.cheapest(tried):
                return _taken(found, offered, situation, base)
    found = search.cheapest(own)
    if not found or any(choice.price == "host_ram" for choice in found):
        return None
    return _taken(found, len(own), situation, base)


def cheapest_of(
    proposals: Sequence[Proposal], situation: Situation, base: Overrides, only_same_results: bool
) -> list[tuple[Proposal, bool]] | None:
    """The cheapest set, each with whether it is one of `proposals`; None where none fits.

    What other phases and the other place have to offer is looked at where it may make the set cheaper.
    """
    search = Search(situation, base, only_same_results)
    found = search.cheapest(proposals)
    if found is None or len(found) > 1 or any(c.price in ("host_ram", "changes_results") for c in found):
        found = search.cheapest([*proposals, *elsewhere(proposals, situation, base)])
    return None if found is None else _taken(found, len(proposals), situation, base)


def _taken(
    found: Iterable[PricedOption], offered: int, situation: Situation, base: Overrides
) -> list[tuple[Proposal, bool]]:
    """Each choice at its value, on top of those before it, with whether it is one of the first `offered`."""
    taken = dict(base)
    picked: list[tuple[Proposal, bool]] = []
    for choice in sorted(found, key=lambda c: c.position):
        remedy, own = choice.proposal.remedy, choice.position < offered
        seen = situation if own else seen_from(remedy, situation)
        picked.append((taking(choice.option, remedy, seen, taken), own))
        taken.update(choice.option.overrides)
    return picked


def elsewhere(proposals: Sequence[Proposal], situation: Situation, base: Overrides) -> list[Proposal]:
    """Changes that leave the results alone, for phases that the failed one hid and for the other place."""
    known = {p.remedy.id for p in proposals} | situation.barred
    keys = {key for p in proposals for key in p.overrides} | set(base)
    knobs = {
        r.knob for r in situation.remedies if r.id in situation.barred
    }  # what has no place has none under another name
    remedies = [r for r in situation.remedies if r.id not in known and r.value is not None and r.knob not in knobs]
    remedies = [r for r in remedies if r.results == "unchanged" and r.kind == "setting" and r.memory in ("gpu", "host")]
    remedies = [r for r in remedies if touches(r, situation)]
    made = [propose(r, seen_from(r, situation), base) for r in sorted(remedies, key=lambda r: TIERS.index(r.tier))]
    found = [p for p in made if isinstance(p, Proposal) and not p.blind and p.results == "unchanged"]
    return [p for p in found if not keys & set(p.overrides) and not situation.fills_other(p.other_saves)]


def seen_from(remedy: Remedy, situation: Situation) -> Situation:
    """The situation as a remedy of the other place sees it: nothing ran out there, and nothing caused it."""
    if remedy.memory == situation.place:
        return situation
    return replace(situation, place="host" if remedy.memory == "host" else "gpu", phase="unknown", cause="")


def _around_the_strongest(
    proposals: Sequence[Proposal], situation: Situation, base: Overrides
) -> list[tuple[Proposal, bool]] | None:
    """A set around a change that relieves much in some phases: what it takes in others, more give back on top of it.

    Weights sharded over all cards are gathered whole for the sync, unless that goes in pieces.
    """
    known = [p for p in [*proposals, *elsewhere(proposals, situation, base)] if p.results == "unchanged"]
    tight = {place: situation.predictor.predict(base).unfit(place) or [] for place in PLACES}
    gains = [
        (sum(max(0, p.saves.get(phase, 0)) for phase in tight["host" if p.remedy.memory == "host" else "gpu"]), p)
        for p in known
    ]
    for gain, leader in sorted(gains, key=lambda each: -each[0])[:LEADERS]:
        if not gain:
            break
        chosen = {**base, **leader.overrides}
        found = cheapest_of(elsewhere([leader], situation, chosen), situation, chosen, only_same_results=True)
        if found is not None:
            own = {p.remedy.id for p in proposals}
            return [(p, p.remedy.id in own) for p in (leader, *(p for p, _ in found))]
    return None


def all_that_helps(proposals: Sequence[Proposal], situation: Situation, base: Overrides) -> list[tuple[Proposal, bool]]:
    """Every change that leaves the results alone and takes anything of what is missing, on top of each other, each with
    whether it is one of `proposals`.
    """
    chosen, own = dict(base), {p.remedy.id for p in proposals}
    picked: list[tuple[Proposal, bool]] = []
    for proposal in [*proposals, *elsewhere(proposals, situation, base)]:
        again = propose(proposal.remedy, seen_from(proposal.remedy, situation), chosen)
        if isinstance(again, Proposal) and again.results == "unchanged" and not set(again.overrides) & set(chosen):
            more = {**chosen, **again.overrides}
            if shortage(situation, more) < shortage(situation, chosen):
                picked.append((again, proposal.remedy.id in own))
                chosen = more
    return picked


def _all_needed(
    proposals: Sequence[Proposal], situation: Situation, base: Overrides
) -> list[tuple[Proposal, bool]] | None:
    """All that helps where together it is enough, without what is not needed for that; None where it is not enough, or
    more than anybody would change at once.
    """
    picked = all_that_helps(proposals, situation, base)
    if shortage(situation, {**base, **together([p for p, _ in picked])}):
        return None
    for one in list(picked):
        rest = [each for each in picked if each is not one]
        if not shortage(situation, {**base, **together([p for p, _ in rest])}):
            picked = rest
    return picked if 0 < len(picked) <= MOST_AT_ONCE else None


def _nearest(proposals: Sequence[Proposal], situation: Situation, base: Overrides) -> list[Proposal]:
    """Where nothing suffices: the few that leave the results alone and take most of what is missing, nothing more.

    None of them moves the failure to the other place.
    """
    picked: list[Proposal] = []
    rest = [p for p in proposals if p.results == "unchanged"]
    while rest and len(picked) < MOST_NEAREST:
        chosen = {**base, **together(picked)}
        before = shortage(situation, chosen)
        left = {p.remedy.id: shortage(situation, {**chosen, **p.overrides}) for p in rest}
        best = min(rest, key=lambda p: left[p.remedy.id])
        rest.remove(best)
        if not before or left[best.remedy.id] > before * (1 - WORTH_SELECTING):
            break
        again = propose(best.remedy, situation, chosen) if chosen else best
        if isinstance(again, Proposal) and not again.spills:
            picked.append(again)
    return picked


def _best_known(proposals: Sequence[Proposal], situation: Situation, cause: Cause) -> list[Proposal]:
    """Where nothing can be computed: the first whose present value was read, or that a case of this kind shows to help.

    One at most; where neither phase nor cause is known, none but what a case shows. What relieves another holder than
    the cause's is none.
    """
    if held := cause.holds if cause.id not in GUESSED else ():
        proposals = [p for p in proposals if p.remedy.relieves in (*held, "other") or p.documented or p.cases]
    if situation.engine_asleep:
        proposals = [p for p in proposals if p.remedy.relieves != "engine"]
    quiet = [p for p in proposals if p.remedy.results == "unchanged" and not _is_default(p, situation)]
    anywhere = situation.phase == "unknown" and situation.cause in GUESSED
    aimed = situation.cause not in GUESSED
    told = [p for p in quiet if p.documented or p.cases or not p.unseen or (aimed and not p.blind)]
    if anywhere:
        told = [p for p in told if not p.remedy.phases and (p.documented or p.cases)]
    return list(islice(told, 1))


def _is_default(proposal: Proposal, situation: Situation) -> bool:
    """Whether it only sets what the framework sets by itself, and nothing shows that this run has it otherwise."""
    values, era = situation.now.built.natives.values, situation.predictor.inputs.recognised.era
    known = {key: values.get(key) for key in proposal.overrides}
    return bool(known) and all(
        one is not None and not one.given and one.fact is not None and text is not None
        and parse_value(str(default_of(one.fact, era)), one.fact.type) == parse_value(text, one.fact.type)
        for text, one in zip(proposal.overrides.values(), known.values(), strict=True)
    )  # fmt: skip


def shortage(situation: Situation, chosen: Overrides) -> float:
    """How much is missing in all, each too full phase as a fraction of its place; 0 where everything fits."""
    return sum(_shortages(situation, chosen).values())


def _shortages(situation: Situation, chosen: Overrides) -> dict[Corner, float]:
    predictor = situation.predictor
    after, walls = predictor.predict(chosen), predictor.walls
    engine = {(f.place, f.phase): f.short for f in after.fit.findings if f.reason == "engine"}
    found: dict[Corner, float] = {}
    for place in PLACES:
        capacity, unfit = capacity_of(after.ledger, place), after.unfit(place) or []
        for each in (one for one in after.ledger.sums(place) if one.phase in unfit and capacity):
            over = counted(each, walls) - limit_of(each, capacity or 0, walls)
            found[place, each.phase] = max(over, engine.get((place, each.phase), 0), 1) / (capacity or 1)
    return found


def together(proposals: Sequence[Proposal]) -> dict[str, str | None]:
    """All their overrides, the later ones on top."""
    return {key: text for proposal in proposals for key, text in proposal.overrides.items()}


def tight(situation: Situation, chosen: Overrides) -> list[Phase]:
    """Phases of the place that do not fit yet."""
    return situation.predictor.predict(chosen).unfit(situation.place) or []


def exclusions(proposals: Sequence[Proposal], situation: Situation) -> Mapping[str, tuple[str, ...]]:
    """Remedy id → ids of those that the framework refuses beside it."""
    found: dict[str, tuple[str, ...]] = {}
    if situation.now.built.natives.framework is None:
        return found
    for one, other in combinations(proposals, 2):
        both = together([one, other])
        alone = {*_broken(one.overrides, situation), *_broken(other.overrides, situation)}
        if set(_broken(both, situation)) - alone:
            found[one.remedy.id] = (*found.get(one.remedy.id, ()), other.remedy.id)
            found[other.remedy.id] = (*found.get(other.remedy.id, ()), one.remedy.id)
    return found


def _broken(overrides: Overrides, situation: Situation) -> list[str]:
    return newly_broken(situation.now.built, situation.predictor.built(overrides))
