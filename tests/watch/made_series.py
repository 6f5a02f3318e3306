"""Memory over the steps of runs that do not exist, with and without a leak, and how often the detector is right.

`python -m tests.watch.made_series` prints the rates.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from advisor.watch.growth import growth_of

LEVEL = 40e9
STEPS = 50
Noise = Callable[[random.Random, int], list[float]]


def white(chance: random.Random, count: int) -> list[float]:
    """Sequences of other lengths at each step: independent, up to 8 % of the level."""
    size = chance.uniform(0.002, 0.08)
    return [chance.gauss(0, size) for _ in range(count)]


def wandering(chance: random.Random, count: int) -> list[float]:
    """An allocator's cache: each value near the last, always drawn back."""
    tie, size = chance.uniform(0.3, 0.85), chance.uniform(0.005, 0.03)
    values, now = [], 0.0
    for _ in range(count):
        now = tie * now + chance.gauss(0, size)
        values.append(now)
    return values


def sawtooth(chance: random.Random, count: int) -> list[float]:
    """Garbage that is collected every few steps, up to 40 % of the level."""
    period, height, begin = chance.randint(2, 16), chance.uniform(0.05, 0.4), chance.randint(0, 15)
    return [height * ((place + begin) % period) / period + chance.gauss(0, 0.01) for place in range(count)]


def spikes(chance: random.Random, count: int) -> list[float]:
    """Validation or a checkpoint every so many steps."""
    every, height = chance.randint(4, 20), chance.uniform(0.1, 0.6)
    return [(height if place % every == every - 1 else 0.0) + chance.gauss(0, 0.02) for place in range(count)]


def jump(chance: random.Random, count: int) -> list[float]:
    """A pool that grows once and stays."""
    at, height = chance.randint(1, count - 1), chance.uniform(0.05, 0.4)
    return [(height if place >= at else 0.0) + chance.gauss(0, 0.01) for place in range(count)]


def warm_up(chance: random.Random, count: int) -> list[float]:
    """A cache that fills up in the first steps."""
    pace, height = chance.uniform(1, 6), chance.uniform(0.05, 0.3)
    return [height * (1 - 2.718 ** (-place / pace)) + chance.gauss(0, 0.01) for place in range(count)]


NOISES: tuple[Noise, ...] = (white, wandering, sawtooth, spikes, jump, warm_up)
WITH_A_LEAK: tuple[Noise, ...] = (white, wandering, sawtooth, spikes, jump)


def series(noise: Noise, chance: random.Random, growth: float, count: int = STEPS) -> list[float]:
    """Bytes at each step; `growth` is the share of the first level that each step adds."""
    return [LEVEL * (1 + growth * place + rest) for place, rest in enumerate(noise(chance, count))]


def rate(noise: Noise, growth: float, tries: int, seed: int, count: int = STEPS) -> float:
    """Share of the series in which a leak is seen."""
    chance = random.Random(seed)
    return sum(growth_of(series(noise, chance, growth, count)).leaks for _ in range(tries)) / tries


if __name__ == "__main__":
    print(f"{'series':12}{'false alarms':>14}{'1 %/step found':>16}{'0.5 %/step':>12}{'2 %, 25 steps':>15}")
    for noise in NOISES:
        row = (
            rate(noise, 0, 1000, 1),
            rate(noise, 0.01, 1000, 2),
            rate(noise, 0.005, 1000, 3),
            rate(noise, 0.02, 1000, 4, 25),
        )
        print(
            f"{noise.__name__:12}"
            + "".join(f"{one:>{width}.1%}" for one, width in zip(row, (14, 16, 12, 15), strict=True))
        )
