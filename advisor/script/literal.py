"""Finds the literal that decides a value, and what else the same literal decides."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from advisor.bash.state import Use
from advisor.bash.text import ByteRange, ShellValue

_BUCKET = 64


class Target(Struct, frozen=True):
    """The bytes to replace so that a value changes. `quotes`: they include the quotes around them."""

    place: ByteRange
    quotes: bool = False


def target(pieces: ShellValue, data: Sequence[bytes]) -> Target | None:
    """The literal that alone decides a value; None where it is composed, computed or from outside. `data` are the bytes
    of the documents."""
    if len(pieces) == 1:  # nearly all
        only = pieces[0]
        return None if only.reason or only.place is None else Target(only.place)
    parts = [piece for piece in pieces if piece.text or piece.reason] or list(pieces[:1])
    places = [piece.place for piece in parts]
    if not parts or any(piece.reason for piece in parts):
        return None
    first, last = places[0], places[-1]
    if first is None or last is None or any(place is None or place.doc != first.doc for place in places):
        return None
    found = [place for place in places if place is not None]
    if any(b.start < a.end for a, b in itertools.pairwise(found)):
        return None
    same = all(place.context == first.context for place in found)
    if same and all(a.end == b.start for a, b in itertools.pairwise(found)):
        return Target(ByteRange(first.doc, first.start, last.end, first.context))
    return _mixed(found, data[first.doc])


def _mixed(places: list[ByteRange], data: bytes) -> Target | None:
    """Literals in different quotes, side by side in one word: `'a'"b"c`."""
    if any(place.context not in ("plain", "single", "double") for place in places):
        return None
    for left, right in itertools.pairwise(places):
        if data[left.end : right.start].strip(b"'\""):
            return None
    start, end = places[0].start, places[-1].end
    if places[0].context != "plain":
        start -= 1
        if data[start : start + 1] not in (b"'", b'"'):
            return None
    if places[-1].context != "plain":
        if data[end : end + 1] not in (b"'", b'"'):
            return None
        end += 1
    return Target(ByteRange(places[0].doc, start, end, "plain"), quotes=True)


class Uses(Struct):
    buckets: dict[tuple[int, int], list[Use]] = field(default_factory=dict)
    wide: list[Use] = field(default_factory=list)

    def add(self, uses: Iterable[Use]) -> None:
        """Index uses by where their literals stand."""
        for use in uses:
            first, last = use.place.start // _BUCKET, use.place.end // _BUCKET
            if last - first > 100:
                self.wide.append(use)
                continue
            for bucket in range(first, last + 1):
                self.buckets.setdefault((use.place.doc, bucket), []).append(use)

    def of(self, place: ByteRange) -> list[Use]:
        """Uses of literals that an edit of this place would move."""
        out = [use for use in self.wide if use.place.overlaps(place)] if self.wide else []
        for bucket in range(place.start // _BUCKET, place.end // _BUCKET + 1):
            out += [use for use in self.buckets.get((place.doc, bucket), ()) if use.place.overlaps(place)]
        return list(dict.fromkeys(out)) if len(out) > 1 else out
