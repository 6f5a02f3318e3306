"""Reads knowledge/keys/FRAMEWORK.json: every key that a framework reads, by era, of which a dialect speaks of few."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from advisor.folders import knowledge_folder
from advisor.knowledge.schema.base import Strict


class KeyEra(Strict, frozen=True):
    """What an era's keys have more and less than those of the one before."""

    era: str
    source: str
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class KeySpace(Strict, frozen=True):
    """All keys of one framework, from its own parsers, classes and files (tests/knowledge/write_keys.py)."""

    refuses: bool
    """Whether the framework refuses a key that it does not know."""
    open: tuple[str, ...] = ()
    """Keys (fnmatch) that it hands on to a library, or takes from an open dictionary."""
    eras: tuple[KeyEra, ...] = ()
    """From the oldest to the newest."""

    def ever(self) -> frozenset[str]:
        """The keys of all eras."""
        return frozenset(key for era in self.eras for key in era.new)

    def at(self, era: str) -> frozenset[str]:
        """The keys of one era; of all where it is not among them."""
        here: set[str] = set()
        for change in self.eras:
            here = (here - set(change.gone)) | set(change.new)
            if change.era == era:
                return frozenset(here)
        return self.ever()


@lru_cache(maxsize=32)
def keys_ever(framework: str) -> frozenset[str]:
    """The keys of all versions of a framework; none where nobody listed them."""
    space = key_space(framework)
    return space.ever() if space is not None else frozenset()


@lru_cache(maxsize=128)
def keys_at(framework: str, era: str) -> frozenset[str]:
    """The keys that one era of a framework reads; none where nobody listed them."""
    space = key_space(framework)
    return space.at(era) if space is not None else frozenset()


@lru_cache(maxsize=32)
def key_space(framework: str) -> KeySpace | None:
    """The keys of a framework; None where nobody listed them (a dialect of the user's own)."""
    file = knowledge_folder() / "keys" / f"{framework}.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=KeySpace)
    except FileNotFoundError:
        return None
