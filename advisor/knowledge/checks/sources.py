"""Checks that facts say where they come from, and questions why they are asked and how they are answered."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.knowledge.checks.shelf import Shelf, found, settings
from advisor.knowledge.entries import EntryKind, Finding

_WITH_SOURCE: tuple[EntryKind, ...] = ("remedy", "advisory", "case", "signature", "gpu", "model")


def check_sources(shelf: Shelf) -> Iterator[Finding]:
    """Facts without source; texts that must not be empty."""
    for kind in _WITH_SOURCE:
        for entry in shelf.of(kind):
            if not entry.value.source.strip():
                yield from found(entry, f"{kind} {entry.id} has no source")
    for setting in settings(shelf):
        if not setting.fact.source.strip():
            yield from setting.found("no source")
    yield from _texts(shelf)


def _texts(shelf: Shelf) -> Iterator[Finding]:
    for entry in shelf.of("question"):
        for field, says in (
            ("asks", "asks nothing"),
            ("why", "does not say why it is asked"),
            ("if_unknown", "does not say how to find the answer"),
        ):
            if not getattr(entry.value, field).strip():
                yield from found(entry, f"question {entry.id} {says}", field)
    for entry in shelf.of("cause"):
        for field, says in (
            ("explains", "explains nothing"),
            ("proof", "does not say what proves it"),
            ("counter", "does not say what rules it out"),
            ("record_next_time", "does not say what to record next time"),
        ):
            if not getattr(entry.value, field).strip():
                yield from found(entry, f"cause {entry.id} {says}", field)
    for entry in shelf.of("remedy"):
        for field in ("says", "costs"):
            if not getattr(entry.value, field).strip():
                yield from found(entry, f"remedy {entry.id} has no {field!r}", field)
