"""Finds how far a run can go on its machine, one setting at a time, and the smallest card on which it fits as it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from advisor.knowledge.schema import GpuFact
from advisor.memory.cells import Place
from advisor.memory.fit import PLACES, FitFinding, counted
from advisor.memory.predict import Overrides, Predictor
from advisor.plan.candidates import forms
from advisor.run.constraints import newly_broken
from advisor.run.natives import Native
from advisor.run.run import Run
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
    gpu_most: int = 0
    """What a card may have to hold, at the upper end of what is counted."""


def sizes_of(predictor: Predictor, cards: Sequence[GpuFact]) -> Sizes | None:
    """The answers for a run; None where its memory cannot be computed."""
    now = predictor.predict()
    if now.ledger.missing or not now.ledger.gpu:
        return None
    walls, left = predictor.walls, 1 - predictor.margin
    peaks = {p: max((counted(each, walls) for each in now.ledger.sums(p)), default=0) for p in PLACES}
    known = now.ledger.gpu_capacity is not None
    reaches = [r for knob in ASKED if (r := _reach(predictor, knob)) is not None] if known else []
    one_each = {reach.key: reach for reach in reversed(reaches)}  # a key that carries two knobs is told once
    return Sizes(
        tuple(reversed(one_each.values())),
        smallest_card(predictor, cards),
        int(peaks["gpu"] / left),
        int(peaks["host"] / left),
        max(each.high for each in now.ledger.gpu),
    )


def _reach(predictor: Predictor, knob: str) -> Reach | None:
    """How far a knob goes; None where the run has no number for it."""
    built = predictor.predict().built
    native, stated = built.natives.carrier(knob), built.run.number(knob)
    whole = native is not None and isinstance(native.value, int) and not isinstance(native.value, bool)
    given = native if whole else None
    if stated is None or not (given is not None or knob in predictor.inputs.knobs):
        return None
    full, asks = partial(_full, predictor, knob, native), len(ASKED[knob]) <= MOST_ASKED
    # what the framework refuses may not even be computed right
    allowed = partial(_allowed, predictor, knob, native) if asks else lambda _: True
    most, beyond = _farthest(lambda value: full(value) is None, allowed, _worth_trying(built.run, knob))
    stopped = full(beyond) if beyond is not None else None
    now, key = (int(given.value), given.key) if given is not None else (int(stated), knob)  # type: ignore[arg-type]
    by = (stopped.place, stopped.phase) if stopped is not None else None
    return Reach(knob, key, now, most, by, most == ASKED[knob][-1])


def _worth_trying(run: Run, knob: str) -> Sequence[int]:
    """The values of a knob; of a response those that the engine's longest sequence leaves beside the prompt."""
    engine = run.number("rollout.max_model_len") if knob == "data.response_tokens" else None
    room = (engine or MOST_RESPONSE) - (run.number("data.prompt_tokens") or 0)
    return [value for value in ASKED[knob] if value <= room] if engine else ASKED[knob]


def smallest_card(predictor: Predictor, cards: Sequence[GpuFact], overrides: Overrides | None = None) -> GpuFact | None:
    """The card with the least memory on which the run fits with these overrides; the first of several alike. None is
    older than the run's bf16 or FlashAttention."""
    gpus, run = predictor.machine.gpus, predictor.predict(overrides).run
    present = {gpu.vendor for gpu in gpus if gpu.vendor} or {"nvidia"}
    newer = run.is_on("actor.bf16") or run.is_on("actor.flash_attention")
    able = (card for card in cards if card.vendor in present and (card.bf16 or not newer))
    for card in sorted(able, key=lambda one: one.total_bytes):
        as_card = partial(dataclasses.replace, name=card.name, total_bytes=card.total_bytes, reserved_bytes=None)
        other = dataclasses.replace(predictor.machine, gpus=tuple(map(as_card, gpus)))
        if gpus and predictor.on(other).predict(overrides).unfit("gpu") == []:
            return card
    return None


def _overrides(predictor: Predictor, knob: str, native: Native | None, value: int) -> dict[str, str | None] | None:
    """What gives the knob a value; {} where nothing can, None where it is a knob that no key carries."""
    if native is None or native.fact is None or not isinstance(native.value, int):
        return None
    natives = predictor.predict().built.natives
    ways = forms(native, {native.key: spell(value, native.fact, native.text)}, natives)
    return dict(ways[0].overrides) if ways else {}


def _allowed(predictor: Predictor, knob: str, native: Native | None, value: int) -> bool:
    overrides = _overrides(predictor, knob, native, value)
    if not overrides:
        return knob in predictor.inputs.knobs
    return not newly_broken(predictor.predict().built, predictor.built(overrides))


def _full(predictor: Predictor, knob: str, native: Native | None, value: int) -> FitFinding | None:
    """What is too full with a value, the GPU's fullest first; None where all fits."""
    overrides = _overrides(predictor, knob, native, value)
    knobs = {knob: replace(predictor.inputs.knobs[knob], value=value)} if overrides is None else None
    found = predictor.predict(overrides, knobs=knobs).fit
    over = [one for one in found.findings if one.reason in ("over", "engine")] if found.fits is False else []
    if knob.startswith("data.") and predictor.predict().run.is_on("actor.dynamic_batch"):  # more rows, if shorter
        over = over or [one for one in found.perhaps if one.at_cap > one.capacity]
    return min(over, key=lambda one: PLACES.index(one.place), default=None)


def _farthest(
    holds: Callable[[int], bool], allowed: Callable[[int], bool], values: Sequence[int]
) -> tuple[int | None, int | None]:
    """Of the allowed ones among values in rising order, the last that holds and the first that does not, None where
    there is none; what holds for one holds for every smaller one. Whether one is allowed is asked as it is met."""
    low, high = 0, len(values)
    most = beyond = None
    while low < high:
        middle = (low + high) // 2
        at = next((at for at in (*range(middle, high), *range(middle - 1, low - 1, -1)) if allowed(values[at])), None)
        if at is None:
            break
        if holds(values[at]):
            most, low = values[at], at + 1
        else:
            beyond, high = values[at], min(at, middle)
    return most, beyond
