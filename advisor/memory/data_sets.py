"""Tells how long the rows of published data sets are, from the names that a run gives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import inf, log, sqrt

from msgspec import Struct

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import DataSetFact
from advisor.memory.constants import (
    FILL_GIVEN_LOW,
    LONGEST_GIVEN,
    PATCH_PIXELS,
    PATCHES_OF_TOKEN,
    PUBLISHED_HIGH,
    TYPICAL_IMAGE_PIXELS,
    USUAL_CAP,
)
from advisor.run.run import Run


class RowLengths(Struct, frozen=True):
    """Tokens of the rows of a run's data."""

    mean: float
    longest: float
    """Of so many rows as the run takes."""
    most: float
    """Of all rows that are published, with the largest images."""


@lru_cache(maxsize=1)
def _by_name() -> Mapping[str, DataSetFact]:
    facts = load_knowledge().data_sets
    return {name.lower(): fact for fact in facts for name in (fact.name, fact.also) if name}


def row_lengths(run: Run) -> RowLengths | None:
    """Rows of the data sets that the run names together; None where it names none, or one that is not known, or images
    whose tokens are not: towers other than Qwen's cut them into tiles."""
    names = str(run.value("data.sets") or "").replace(",", " ").split()
    known = _known(tuple(names))
    tower = run.model is not None and run.model.vision_parameters > 0
    if not known or (not tower and any(fact.images for fact, _ in known)):
        return None
    counts = [count for _, count in known]
    images = [_image_tokens(run) if fact.images else (0.0, 0.0) for fact, _ in known]
    longest = max(_longest(fact, count) + image[0] for (fact, count), image in zip(known, images, strict=True))
    most = max(PUBLISHED_HIGH * fact.longest + image[1] for (fact, _), image in zip(known, images, strict=True))
    means = [(fact.mean + image[0]) * count for (fact, count), image in zip(known, images, strict=True)]
    return RowLengths(sum(means) / sum(counts), longest, most)


@lru_cache(maxsize=16)
def _known(names: tuple[str, ...]) -> tuple[tuple[DataSetFact, int], ...]:
    """The facts and the rows taken; empty where one of them is not known. "owner/name:subset#rows" (ms-swift)."""
    found = []
    for name in names:
        path, _, taken = name.partition("#")
        fact = _by_name().get(path.rpartition("::")[2].partition(":")[0].lower())
        if fact is None:
            return ()
        found.append((fact, max(1, min(int(taken), fact.rows) if taken.isdigit() else fact.rows)))
    return tuple(found)


def _longest(fact: DataSetFact, rows: int) -> float:
    """The longest of so many rows, if lengths are log-normal and the longest of all rows is the published one: extremes
    of a normal distribution grow with the root of the logarithm of their number."""
    if rows >= fact.rows or fact.rows < 2:
        return fact.longest
    return float(fact.mean * (fact.longest / fact.mean) ** sqrt(log(max(rows, 2)) / log(fact.rows)))


def _image_tokens(run: Run) -> tuple[float, float]:
    """Tokens of a usual image, and of one at the cap on pixels; without one the row's own cap is all there is."""
    cap, of_token = run.number("data.max_pixels") or inf, PATCH_PIXELS * PATCHES_OF_TOKEN
    return min(cap, TYPICAL_IMAGE_PIXELS) / of_token, cap / of_token


def usual_longest(run: Run, cap: int) -> float:
    """Part of the cap that the longest row of data of unknown lengths is taken to have: less where the cap makes room
    for an image whose size is bounded."""
    pixels = _bounded_pixels(run)
    if not pixels:
        return LONGEST_GIVEN
    return min(LONGEST_GIVEN, (pixels / (PATCH_PIXELS * PATCHES_OF_TOKEN) + LONGEST_GIVEN * USUAL_CAP) / cap)


def least_longest(run: Run, cap: int) -> float:
    """The least part of the cap that it may have: of the usual cap, where the rest is room for an image, which may be
    a small one."""
    return FILL_GIVEN_LOW * (min(1, USUAL_CAP / cap) if _bounded_pixels(run) else 1)


def _bounded_pixels(run: Run) -> float | None:
    return run.number("data.max_pixels") if run.model is not None and run.model.vision_parameters else None
