"""One `replace` for both kinds of nouns: structs, and the dataclasses of the machine room."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def replace(noun: T, /, **changes: Any) -> T:
    """A copy of `noun` with these fields changed."""
    if isinstance(noun, msgspec.Struct):
        return msgspec.structs.replace(noun, **changes)
    return dataclasses.replace(noun, **changes)  # type: ignore[type-var]
