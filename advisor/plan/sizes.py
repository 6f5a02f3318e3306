"""How far a run can go on its machine, one setting at a time, and the smallest card on which it fits as it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import NOTHING
from advisor.knowledge.schema import GpuFact
from advisor.machine.inventory import Machine
from advisor.memory.cells import Ledger, Place
from advisor.memory.ledger import build_ledger
from advisor.plan.partners import forms
from advisor.run.bound import Native
from advisor.run.build import BuiltRun, RunInputs, build_run
from advisor.run.constraints import newly_broken
from advisor.run.run import Knob
from advisor.run.values import spell
from advisor.words import Phase

RESPONSE_STEP = 256
"""Tokens: finer than anyone sets a response length."""
MOST_RESPONSE = 1 << 18
"""Tokens: longer than any model's window."""
DOUBLINGS = tuple(1 << exponent for exponent in range(13))
"""Sequences, up to more than any batch has."""
MOST_ASKED = 100
"""Values checked one by one against the framework's rules: a length has too many, and hardly any rule."""
PLACES: tuple[Place, ...] = ("gpu", "host")


ASKED: Mapping[str, Sequence[int]] = {
    "data.response_tokens": range(RESPONSE_STEP, MOST_RESPONSE + 1, RESPONSE_STEP),
    "rollout.samples_per_prompt": [*range(1, 64), *DOUBLINGS[6:]],
    "actor.micro_batch": DOUBLINGS,
    "logprob.micro_batch": DOUBLINGS,
}
"""Knobs people size a run by, with the values worth trying."""


class Reach(Struct, frozen=True):
    """How far one setting goes with all others as they are."""

    knob: str
    key: str
    """The native key; the knob where none carries it."""
    now: int
    most: int | None
    """The largest value that fits; None: not even the smallest does."""
    stopped_by: tuple[Place, Phase] | None
    """What is too full with the next larger value; None: the framework takes no larger one, or it fills nothing."""
    is_open: bool = False
    """Even the largest value tried fits."""


class Sizes(Struct, frozen=True):
    """Answers for sizing ahead. `card` None: not even the largest known card holds the run, or nothing is known."""

    reaches: tuple[Reach, ...]
    card: GpuFact | None
    gpu_bytes: int
    """What each card needs, the margin kept free."""
    host_bytes: int
    """What each node needs, likewise."""


def sizes_of(inputs: RunInputs, machine: Machine, cards: Sequence[GpuFact], margin: float) -> Sizes | None:
    """The answers for a run on a machine; None where its memory cannot be computed."""
    here = _Bench(inputs, machine, margin)
    built, ledger = here.try_({})
    if ledger.missing or not ledger.gpu:
        return None
    peaks = {place: peak.expected if (peak := ledger.peak(place)) is not None else 0 for place in PLACES}
    need = {place: int(size / (1 - margin)) for place, size in peaks.items()}
    known = ledger.gpu_capacity is not None
    reaches = [r for knob in ASKED if (r := here.reach(knob, built)) is not None] if known else []
    one_each = {reach.key: reach for reach in reversed(reaches)}  # a key that carries two knobs is told once
    return Sizes(tuple(reversed(one_each.values())), here.smallest(cards), need["gpu"], need["host"])


class _Bench(Struct, frozen=True):
    """A run on a machine, computed with other values."""

    inputs: RunInputs
    machine: Machine
    margin: float

    def try_(
        self, overrides: Mapping[str, str | None], knobs: Mapping[str, Knob] | None = None
    ) -> tuple[BuiltRun, Ledger]:
        """The run and its ledger with these values."""
        merged = {**self.inputs.overrides, **overrides}
        built = build_run(replace(self.inputs, overrides=merged, knobs={**self.inputs.knobs, **(knobs or {})}))
        return built, build_ledger(built.run, self.machine, NOTHING)

    def reach(self, knob: str, built: BuiltRun) -> Reach | None:
        """How far a knob goes; None where the run has no number for it."""
        native, stated = built.natives.carrier(knob), built.run.number(knob)
        given = native is not None and isinstance(native.value, int) and not isinstance(native.value, bool)
        if stated is None or not (given or knob in self.inputs.knobs):
            return None
        now = int(native.value) if given and native is not None else int(stated)  # type: ignore[arg-type]
        tries = ASKED[knob]
        if len(tries) <= MOST_ASKED:  # what the framework refuses may not even be computed right
            tries = [value for value in tries if self._allowed(knob, native, value, built)]
        fitting = _how_many_hold(lambda value: self._full(knob, native, value, built) is None, tries)
        stopped = self._full(knob, native, tries[fitting], built) if fitting < len(tries) else None
        most = tries[fitting - 1] if fitting else None
        key = native.key if given and native is not None else knob
        return Reach(knob, key, now, most, stopped, most == ASKED[knob][-1])

    def smallest(self, cards: Sequence[GpuFact]) -> GpuFact | None:
        """The card with the least memory on which the run fits as it is; the first of several alike."""
        present = {card.vendor for card in cards for gpu in self.machine.gpus if gpu.name == card.name} or {"nvidia"}
        alike = [card for card in cards if card.vendor in present]
        for card in sorted(alike, key=lambda card: card.total_bytes):
            gpus = tuple(
                dataclasses.replace(g, name=card.name, total_bytes=card.total_bytes, reserved_bytes=None)
                for g in self.machine.gpus
            )
            other = dataclasses.replace(self.machine, gpus=gpus)
            if gpus and _Bench(replace(self.inputs, machine=other), other, self.margin).try_({})[1].fits(
                "gpu", self.margin
            ):
                return card
        return None

    def _changed(
        self, knob: str, native: Native | None, value: int, built: BuiltRun
    ) -> tuple[dict[str, str | None], dict[str, Knob]]:
        if native is None or native.fact is None or not isinstance(native.value, int):
            return {}, {knob: replace(self.inputs.knobs[knob], value=value)}
        ways = forms(native, {native.key: spell(value, native.fact, native.text)}, built.natives)
        return (dict(ways[0].overrides) if ways else {}), {}

    def _allowed(self, knob: str, native: Native | None, value: int, built: BuiltRun) -> bool:
        overrides, _ = self._changed(knob, native, value, built)
        if not overrides:
            return knob in self.inputs.knobs
        merged = build_run(replace(self.inputs, overrides={**self.inputs.overrides, **overrides}))
        return not newly_broken(built, merged)

    def _full(self, knob: str, native: Native | None, value: int, built: BuiltRun) -> tuple[Place, Phase] | None:
        """What is too full with a value, the fullest first; None where all fits."""
        overrides, knobs = self._changed(knob, native, value, built)
        _, ledger = self.try_(overrides, knobs)
        over = [
            (place, peak.phase)
            for place in PLACES
            if ledger.fits(place, self.margin) is False and (peak := ledger.peak(place))
        ]
        return over[0] if over else None


def _how_many_hold(holds: Callable[[int], bool], values: Sequence[int]) -> int:
    """Of values in rising order, how many hold; what holds for one holds for every smaller one."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if holds(values[middle]):
            low = middle + 1
        else:
            high = middle
    return low
