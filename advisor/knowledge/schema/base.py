"""Defines what every kind of fact shares: scalars, grades, and strictness."""

from __future__ import annotations

from typing import Literal

import msgspec

from advisor.language import mark

Scalar = str | int | float | bool | None
Grade = Literal["confirmed", "plausible", "reported", "failed", "folklore"]
"""confirmed: someone ran it and it helped, and the mechanism supports it · plausible: the mechanism supports it
· reported: only said · failed: tried without success · folklore: the mechanism contradicts it."""


OWN_MARK = mark(" [yours]")
"""Behind the title of everything that a user's own knowledge brought; said, as titles are."""


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base: immutable, and a misspelt key is an error."""
