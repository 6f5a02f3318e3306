"""Signatures made ready to match: regexes compiled, printed sizes as bytes, the literals to search a long log for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ahocorasick_rs

from advisor.knowledge.schema import Signature, Signatures
from advisor.units import parse_size

_SIZE = r"\d{1,20}(?:\.\d{1,20})? ?(?:bytes|[KMGTPE]i?B)"
_NUM = r"\d{1,20}(?:\.\d{1,20})?"
_CLASS = re.compile(r"\[(?:\\.|[^\]\\])*\]|\\.")
Field = int | float | str


@dataclass(frozen=True, slots=True)
class Ready:
    """A signature and its regex, which is compiled when it is first needed."""

    signature: Signature
    pattern: str

    @property
    def regex(self) -> re.Pattern[str]:
        return _compiled(self.pattern)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All signatures, look-alikes first, and the smallest set of literals that covers their anchors."""

    ready: tuple[Ready, ...]
    triggers: tuple[bytes, ...]
    _anchors: Any
    """Automaton over all anchors."""
    _owners: tuple[tuple[int, ...], ...]
    """For each anchor of the automaton, the places in `ready` of the signatures that have it."""

    def candidates(self, text: str) -> list[Ready]:
        """Signatures whose anchors the text holds, in the order they are to be tested."""
        hits = {anchor for anchor, _, _ in self._anchors.find_matches_as_indexes(text, overlapping=True)}
        return [self.ready[place] for place in sorted({place for hit in hits for place in self._owners[hit]})]

    def unanchored(self) -> list[Ready]:
        """Signatures that are looked for only at the beginning and the end of a log."""
        return [ready for ready in self.ready if not ready.signature.anchors]


def catalogue(signatures: Signatures) -> Catalogue:
    """The knowledge base's signatures in the order they are tested."""
    ordered = sorted(signatures.signatures, key=lambda signature: signature.rank)
    ready = tuple(Ready(signature, expand(signature)) for signature in ordered)
    owners: dict[str, list[int]] = {}
    for place, signature in enumerate(ordered):
        for anchor in signature.anchors:
            owners.setdefault(anchor, []).append(place)
    automaton = ahocorasick_rs.AhoCorasick(list(owners), matchkind=ahocorasick_rs.MatchKind.Standard)
    return Catalogue(ready, trigger_set(owners), automaton, tuple(map(tuple, owners.values())))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def trigger_set(anchors: Iterable[str]) -> tuple[bytes, ...]:
    """The anchors without those that contain another one."""
    every = set(anchors)
    least = (anchor for anchor in every if not any(other != anchor and other in anchor for other in every))
    return tuple(sorted(anchor.encode() for anchor in least))


def expand(signature: Signature) -> str:
    """The regex with `{size}` and `{num}` filled in; where a message may wrap, spaces match any white space or none."""
    pattern = signature.pattern.replace("{size}", _SIZE).replace("{num}", _NUM)
    return _stretch(pattern) if signature.span_lines > 1 else pattern


def _stretch(pattern: str) -> str:
    parts: list[str] = []
    last = 0
    for kept in _CLASS.finditer(pattern):
        parts += [_stretch_spaces(pattern[last : kept.start()]), kept.group()]
        last = kept.end()
    return "".join([*parts, _stretch_spaces(pattern[last:])])


def _stretch_spaces(part: str) -> str:
    return part.replace(" ?", r"\s{0,9}").replace(" ", r"\s{0,9}")


def fields_of(signature: Signature, match: re.Match[str]) -> dict[str, Field]:
    """What the message printed: sizes as bytes under their field names, numbers as numbers, the rest as text."""
    found: dict[str, Field] = {}
    for group, text in match.groupdict().items():
        if text is None:
            continue
        rule = signature.sizes.get(group)
        name = rule.split()[0] if rule else group.rstrip("_")
        found[name] = _bytes(text, rule) if rule else _scalar(text)
    return found


def _bytes(text: str, rule: str) -> int:
    unit = rule.partition(" ")[2]
    compact = re.sub(r"\s+", "", text)
    return parse_size(compact + unit)


def _scalar(text: str) -> Field:
    compact = text.strip()
    if compact.isascii() and compact.isdigit() and len(compact) < 19:
        return int(compact)
    if re.fullmatch(r"\d{1,15}\.\d{1,15}", compact):
        return float(compact)
    return compact


def first_group(match: re.Match[str]) -> str:
    """The first group that took part, or the whole match."""
    return next((group for group in match.groups() if group), match.group())


def as_text(value: Any) -> str:
    """A configuration value as its file would spell it: true, false, null, 0.6, a comma-separated list in brackets."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(as_text(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{as_text(item)}" for key, item in value.items()) + "}"
    return str(value)
