"""Searches the cheapest set of changes with which every phase fits on GPU and host: of all sets, not step by step.

Costs are compared from the left: how many changes give up results; the effort of all of them, so that one decisive
change comes before several small ones; how many take host RAM, cost time, are free; how far those that change results
move; the order the cause gives; how far all of them move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import Literal

from msgspec import Struct

from advisor.memory.cells import Ledger, Place
from advisor.memory.fit import PLACES, capacity_of, counted, limit_of
from advisor.memory.predict import Overrides, Prediction
from advisor.plan.options import Option
from advisor.plan.plan import Tier
from advisor.plan.propose import Proposal
from advisor.plan.situation import Situation
from advisor.run.constraints import newly_broken
from advisor.words import Phase

Price = Tier | Literal["shown"]
COUNTED: tuple[Price, ...] = ("changes_results", "host_ram", "slower", "free", "shown")
"""The dearest first. "shown": free, and a case of this kind shows that it helped."""
EFFORT: Mapping[Price, int] = {"host_ram": 5, "slower": 3, "free": 2}
"""What a change costs whoever makes and watches it: two slower ones are more than one that takes host RAM. What
somebody ran with comes before what is only computed."""
MOST_TOGETHER = 4
"""Changes in a set: a plan that needs more of them is another run, and is said to be."""
MOST_LOOKED_AT = 150
"""Sets computed before the search gives up, and the plan is made step by step; where one was found, 40 were enough."""
Corner = tuple[Place, Phase]
Cost = tuple[tuple[int, ...], float, tuple[int, ...], float]
Counts = tuple[int, ...]
"""How many of each price, as in COUNTED."""


class PricedOption(Struct, frozen=True):
    """One value of one remedy, and the bytes of room it gives by itself where room is needed."""

    proposal: Proposal
    option: Option
    position: int
    price: Price
    room: Mapping[Corner, int]

    @property
    def distance(self) -> float:
        """0 for a value that somebody reported: it is no further than it was shown to work."""
        return 0.0 if self.option.documented is not None else self.option.distance


ChosenOptions = tuple[PricedOption, ...]


def cost_of(chosen: Sequence[PricedOption]) -> Cost:
    """What a set costs; smaller is better."""
    counts = _in_order(tuple(sum(c.price == price for c in chosen) for price in COUNTED))
    moved = sum(c.distance for c in chosen if c.price == "changes_results")
    return counts, moved, tuple(sorted(c.position for c in chosen)), sum(c.distance for c in chosen)


def _in_order(counts: Counts) -> tuple[int, ...]:
    """What puts counts in order, the cheapest first."""
    return counts[0], sum(EFFORT.get(price, 0) * n for price, n in zip(COUNTED, counts, strict=True)), *counts


def together(chosen: Sequence[PricedOption]) -> dict[str, str | None]:
    """All their overrides."""
    return {key: text for choice in chosen for key, text in choice.option.overrides.items()}


class Search:
    """Sets of choices on top of `base`, each computed only where by the room of its members it could fit at all."""

    def __init__(self, situation: Situation, base: Overrides, only_same_results: bool = False) -> None:
        self.situation = situation
        self.base = base
        self.only_same_results = only_same_results
        self.looked_at = 0
        self.pairs: dict[tuple[int, int], Mapping[Corner, int]] = {}
        """Positions of two remedies → the room they give only together."""

    def cheapest(self, proposals: Sequence[Proposal]) -> ChosenOptions | None:
        """The cheapest set that fits; () where nothing is needed; None where none fits or the search gave up."""
        self.pairs.clear()
        remedies = self.choices(proposals)
        if not self._promising(remedies):
            return None  # not even all of them
        every = product(*(range(len(_priced(remedies, price)) + 1) for price in COUNTED))
        for counts in sorted((c for c in every if sum(c) <= MOST_TOGETHER), key=_in_order):
            best = self._best_of(remedies, counts) if self._so_many_could(remedies, counts) else None
            if best is not None or self.looked_at > MOST_LOOKED_AT:
                return best
        return None

    def _so_many_could(self, remedies: Sequence[Sequence[PricedOption]], counts: Sequence[int]) -> bool:
        """Whether as many of each price as are counted could be enough, each the best of its price in every corner."""
        beyond = self._beyond(remedies)
        best: list[Mapping[Corner, int]] = []
        for price, count in zip(COUNTED, counts, strict=True):
            rooms = [_most(choices) for choices in _priced(remedies, price)]
            corners = {corner for room in rooms for corner in room}
            ranked = {c: sorted((room.get(c, 0) for room in rooms), reverse=True) for c in corners}
            best.append({corner: sum(sizes[:count]) for corner, sizes in ranked.items()})
        return self._adds_up(beyond, best)

    def _best_of(self, remedies: Sequence[Sequence[PricedOption]], counts: Sequence[int]) -> ChosenOptions | None:
        """The cheapest of the sets with so many changes of each price, none of which would do with fewer of its own."""
        best: ChosenOptions | None = None
        enough: list[set[int]] = []
        settled = not counts[0]  # then the first in order is the best
        for subset in _subsets(remedies, counts):
            positions = {choices[0].position for choices in subset}
            if self.looked_at > MOST_LOOKED_AT or any(fewer <= positions for fewer in enough):
                continue
            found = self.mildest(subset)
            if found is not None:
                enough.append(positions)
                best = found if best is None or cost_of(found) < cost_of(best) else best
                if settled:
                    break
        return best

    def choices(self, proposals: Sequence[Proposal]) -> list[list[PricedOption]]:
        """Per remedy its values that give room where it is tight, or where another one would make it so."""
        needed = self.needed(proposals)
        found = [
            [self._priced(proposal, option, number, needed) for option in proposal.options]
            for number, proposal in enumerate(proposals)
        ]
        useful = [[c for c in choices if self._is_useful(c)] for choices in found]
        if self.only_same_results:
            useful = [[c for c in choices if c.price != "changes_results"] for choices in useful]
        return [sorted(choices, key=lambda c: c.distance) for choices in useful if choices]

    def _is_useful(self, choice: PricedOption) -> bool:
        """It gives room where that is or may be wanting, or lets an engine start."""
        starts = self._at_start[1] - _unfit(self._with(choice.option))
        return bool(starts) or any(size > 0 for size in choice.room.values())

    def fits(self, chosen: Sequence[PricedOption]) -> bool:
        """Whether these together break no rule of the framework and leave room everywhere."""
        keys = [key for choice in chosen for key in choice.option.overrides]
        if len(keys) != len(set(keys)):
            return False
        changed = {**self.base, **together(chosen)}
        if newly_broken(self.situation.predictor.built(self.base), self.situation.predictor.built(changed)):
            return False
        self.looked_at += 1
        return not _unfit(self.situation.predictor.predict(changed))

    def needed(self, proposals: Sequence[Proposal]) -> frozenset[Corner]:
        """Where room is or may be wanting: with the base alone, or with one of the values."""
        outcomes = [self._with(option) for proposal in proposals for option in proposal.options]
        return frozenset().union(*map(_unfit, [self.situation.predictor.predict(self.base), *outcomes]))

    def _priced(self, proposal: Proposal, option: Option, position: int, needed: frozenset[Corner]) -> PricedOption:
        before, after = self._at_start[0], self._room(self._with(option).ledger)
        room = {corner: after[corner] - before[corner] for corner in needed if corner in after and corner in before}
        return PricedOption(proposal, option, position, _price(proposal, option), room)

    @cached_property
    def _at_start(self) -> tuple[Mapping[Corner, int], frozenset[Corner]]:
        """Room in every corner and the tight ones with the base alone."""
        base = self.situation.predictor.predict(self.base)
        return self._room(base.ledger), _unfit(base)

    def _with(self, option: Option) -> Prediction:
        return self.situation.predictor.predict({**self.base, **option.overrides})

    def _room(self, ledger: Ledger) -> dict[Corner, int]:
        """Bytes left in every corner once the margin is kept; negative where it is too full."""
        walls = self.situation.predictor.walls
        return {
            (place, each.phase): limit_of(each, capacity, walls) - counted(each, walls)
            for place in PLACES
            if (capacity := capacity_of(ledger, place)) is not None
            for each in ledger.sums(place)
        }

    def mildest(self, subset: Sequence[Sequence[PricedOption]]) -> ChosenOptions | None:
        """The cheapest values of these remedies with which everything fits; None where none do."""
        if not self._promising(subset) or not self._strongest_do(subset):
            return None
        for chosen in sorted(product(*subset), key=cost_of):
            if self._promising([[choice] for choice in chosen]) and self.fits(chosen):
                return chosen
        return None

    def _promising(self, subset: Sequence[Sequence[PricedOption]]) -> bool:
        """Whether the most room that each gives by itself, and pairs give beyond that, adds up to what is missing."""
        most = [_most(choices) for choices in subset]
        if self._adds_up({}, most):
            return True
        return self._adds_up(self._beyond(subset), most)

    def _adds_up(self, beyond: Mapping[Corner, int], most: Sequence[Mapping[Corner, int]]) -> bool:
        room, tight = self._at_start
        return all(
            room[corner] + beyond.get(corner, 0) + sum(each.get(corner, 0) for each in most) >= 0 for corner in tight
        )

    def _beyond(self, subset: Sequence[Sequence[PricedOption]]) -> dict[Corner, int]:
        """Room that pairs of the same role give together and neither gives alone, summed up.

        A cache fills whatever an engine's share leaves: splitting its weights frees nothing until the share falls, too.
        """
        sums: dict[Corner, int] = {}
        for one, other in combinations(subset, 2):
            if _role(one[0]) == _role(other[0]) != "":
                for corner, size in self._pair(one, other).items():
                    sums[corner] = sums.get(corner, 0) + size
        return sums

    def _pair(self, one: Sequence[PricedOption], other: Sequence[PricedOption]) -> Mapping[Corner, int]:
        strongest = (max(one, key=_total), max(other, key=_total))
        key = (strongest[0].position, strongest[1].position)
        if key not in self.pairs:
            before = self._at_start[0]
            after = self._room(self.situation.predictor.predict({**self.base, **together(strongest)}).ledger)
            alone = [_most(one), _most(other)]
            gained = {corner: after[corner] - before[corner] for corner in alone[0] if corner in after}
            self.pairs[key] = {c: max(0, size - sum(each.get(c, 0) for each in alone)) for c, size in gained.items()}
        return self.pairs[key]

    def _strongest_do(self, subset: Sequence[Sequence[PricedOption]]) -> bool:
        """Whether the strongest values together are enough where room is wanting; True where none is the strongest."""
        tight = frozenset(corner for corner in self._at_start[1] if self._at_start[0].get(corner, 0) < 0)
        leading = [_leading(choices, tight) for choices in subset]
        strongest = [choice for choice in leading if choice is not None]
        if len(strongest) < len(subset):
            return True
        self.looked_at += 1
        return not tight & _unfit(self.situation.predictor.predict({**self.base, **together(strongest)}))


def _unfit(prediction: Prediction) -> frozenset[Corner]:
    return frozenset((place, phase) for place in PLACES for phase in prediction.unfit(place) or ())


def _most(choices: Sequence[PricedOption]) -> Mapping[Corner, int]:
    """The most room that any value of a remedy gives, corner by corner; none where it only takes."""
    corners = {corner for choice in choices for corner in choice.room}
    return {corner: max(0, *(c.room.get(corner, 0) for c in choices)) for corner in corners}


def _total(choice: PricedOption) -> int:
    return sum(choice.room.values())


def _role(choice: PricedOption) -> str:
    """Whose setting it is: "actor" of "actor.micro_batch"."""
    return (choice.proposal.remedy.knob or "").partition(".")[0]


def _leading(choices: Sequence[PricedOption], corners: frozenset[Corner]) -> PricedOption | None:
    """The value that gives the most room in each of the corners; None where no single one does."""
    most = {corner: max(c.room.get(corner, 0) for c in choices) for corner in corners}
    return next((c for c in choices if all(c.room.get(corner, 0) == size for corner, size in most.items())), None)


def _price(proposal: Proposal, option: Option) -> Price:
    """A value that moves the results costs that, whatever else its remedy does."""
    if proposal.remedy.results == "changed" or not option.same_results:
        return "changes_results"
    if proposal.remedy.rests_on_data and proposal.remedy.tier == "free":
        return "slower"
    return "shown" if proposal.remedy.tier == "free" and proposal.cases else proposal.remedy.tier


def _priced(remedies: Sequence[Sequence[PricedOption]], price: Price) -> list[tuple[PricedOption, ...]]:
    """The remedies that have values of a price, with those."""
    return [own for choices in remedies if (own := tuple(c for c in choices if c.price == price))]


def _subsets(
    remedies: Sequence[Sequence[PricedOption]], counts: Sequence[int]
) -> list[tuple[tuple[PricedOption, ...], ...]]:
    """Every way to take so many remedies of each price, the earlier first."""
    counted = [combinations(_priced(remedies, price), n) for price, n in zip(COUNTED, counts, strict=True)]
    found = [tuple(choices for part in parts for choices in part) for parts in product(*counted)]
    return sorted(found, key=lambda subset: sorted(choices[0].position for choices in subset))
