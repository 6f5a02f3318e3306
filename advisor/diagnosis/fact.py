"""Holds one named fact and its source."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from advisor.diagnosis.diagnosis import AnsweredBy

FactValue = str | int | float | bool


class Fact(Struct, frozen=True):
    """A named fact. Facts that are not known are absent, never false."""

    value: FactValue
    source: AnsweredBy
    because: str
    evidence: tuple[int, ...] = ()


Facts = Mapping[str, Fact]
