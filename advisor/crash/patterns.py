"""Makes signatures ready to match: regexes compiled, printed sizes as bytes, the literals to search a long log for."""

from __future__ import annotations

import re
from functools import lru_cache

import ahocorasick_rs
from msgspec import Struct

from advisor.crash.literals import trigger_set
from advisor.knowledge.schema import Signature, Signatures
from advisor.regex import compiled, regex
from advisor.units import read_size

_SIZE = r"\d{1,20}(?:\.\d{1,20})? ?(?:bytes|[KMGTPE]i?B)"
_NUM = r"\d{1,20}(?:\.\d{1,20})?"
_BLANK = regex(r"(\[(?:\\.|[^\]\\])*\]|\\.)| \??")
"""A character class or an escaped character, which stays, or a blank of a pattern."""
FieldValue = int | float | str
_ANYWHERE = 1 << 20
_LONGEST_NUMBER = 24
"""Digits of a size; what is longer is none."""
_BILLION = "e9"
"""The unit of sizes that a program divided by 10^9, where "GB" is read as 2^30 elsewhere."""


class Ready(Struct, frozen=True, eq=False):
    """A signature and its regex, which is compiled when it is first needed."""

    signature: Signature
    pattern: str

    @property
    def regex(self) -> re.Pattern[str]:
        return compiled(self.pattern)

    @property
    def edges(self) -> tuple[tuple[str, int, int], ...]:
        """(anchor, most characters before it, most after it on its line) where a wrap may have split the message.

        Further from both ends of its line, the anchor would stand in a message that is complete or none.
        """
        return _edges(self.pattern, self.signature.sample, self.signature.anchors)


class Catalogue:
    """All signatures, look-alikes first, and the few literals that cover their anchors."""

    def __init__(self, signatures: Signatures) -> None:
        self.signatures = signatures
        ordered = sorted(signatures.signatures, key=lambda signature: signature.rank)
        self.ready = tuple(Ready(signature, expand(signature)) for signature in ordered)
        owners: dict[str, list[Ready]] = {}
        for ready in self.ready:
            for anchor in ready.signature.anchors:
                owners.setdefault(anchor, []).append(ready)
        self.triggers = trigger_set(owners)
        self._owners = list(owners.values())
        self._anchors = ahocorasick_rs.BytesAhoCorasick(
            [anchor.encode() for anchor in owners], matchkind=ahocorasick_rs.MatchKind.Standard
        )
        self._known: dict[frozenset[int], tuple[Ready, ...]] = {}

    def candidates(self, raw: bytes) -> tuple[Ready, ...]:
        """Signatures whose anchors the bytes hold, in the order they are to be tested."""
        found = self._anchors.find_matches_as_indexes(raw, overlapping=True)
        if not found:
            return ()
        hits = frozenset([anchor for anchor, _, _ in found])
        known = self._known.get(hits)
        if known is None:
            owners = {id(ready) for hit in hits for ready in self._owners[hit]}
            known = self._known[hits] = tuple(ready for ready in self.ready if id(ready) in owners)
        return known


_last: list[Catalogue] = []
"""The catalogue that was made last: a log is read up to four times (its end, its whole, both unwrapped)."""


def catalogue_of(signatures: Signatures) -> Catalogue:
    """The catalogue of these signatures; made once where one reading follows another."""
    if not _last or _last[0].signatures is not signatures:
        _last[:] = [Catalogue(signatures)]
    return _last[0]


@lru_cache(maxsize=1024)
def _edges(pattern: str, sample: str, anchors: tuple[str, ...]) -> tuple[tuple[str, int, int], ...]:
    begin, end = _core(compiled(pattern), sample)
    edges = []
    for anchor in anchors:
        at = sample.find(anchor, begin)
        inside = 0 <= at < end
        up = 16 + (at - begin) * 5 // 4 if inside else _ANYWHERE
        edges.append((anchor, up, 24 + (end - at - len(anchor)) * 5 // 4 if inside else _ANYWHERE))
    return tuple(edges)


def _core(regex: re.Pattern[str], sample: str) -> tuple[int, int]:
    """The shortest beginning of the sample's message that the pattern knows: what must be there of any message."""
    low, high = 1, len(sample)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if regex.search(sample[:middle]) else (middle + 1, high)
    match = regex.search(sample[:low])
    return (match.start() if match else 0), low


def expand(signature: Signature) -> str:
    """The regex with `{size}` and `{num}` filled in; where a message may wrap, spaces match any white space or none."""
    pattern = signature.pattern.replace("{size}", _SIZE).replace("{num}", _NUM)
    return _BLANK.sub(lambda kept: kept[1] or r"\s{0,9}", pattern) if signature.span_lines > 1 else pattern


def fields_of(signature: Signature, match: re.Match[str]) -> dict[str, FieldValue]:
    """What the message printed: sizes as bytes under their field names, numbers as numbers, the rest as text."""
    found: dict[str, FieldValue] = {}
    for group, text in match.groupdict().items():
        if text is None:
            continue
        rule = signature.sizes.get(group)
        name = rule.split()[0] if rule else group.rstrip("_")
        value = _bytes(text, rule) if rule else _scalar(text)
        if value is not None:
            found[name] = value
    return found


def _bytes(text: str, rule: str) -> int | None:
    unit = rule.partition(" ")[2]
    compact = re.sub(r"\s+", "", text)
    if unit == _BILLION:
        return round(float(compact) * 10**9) if len(compact) < _LONGEST_NUMBER else None
    return read_size(compact + unit)


def _scalar(text: str) -> FieldValue:
    compact = text.strip()
    if compact.isascii() and compact.isdigit() and len(compact) < 19:
        return int(compact)
    if re.fullmatch(r"\d{1,15}\.\d{1,15}", compact):
        return float(compact)
    return compact
