"""Holds the functions that expressions may call: choosing among unknowns, rounding, and reading counts out of texts."""

from __future__ import annotations

import math
import re
from fnmatch import fnmatchcase
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from advisor.regex import regex
from advisor.rules.tree import FUNCTIONS, Branch, Name, RuleFunction, RuleValue, Scope, as_number, truth

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

_RANGE = regex(r"list\(range\((?:(\d{1,6}),)?(\d{1,6})(?:,(\d{1,6}))?\)\)\Z")
_APART = regex(r"(?<=\d)\s+(?=\d)")
"""Between the values of a list, as a setting shows them."""
_NUMBERS = regex(r"\[?\d{1,6}(?:,\d{1,6})*\]?\Z")
_SIZES = regex(r"(?:[a-z]*(?:\[\w+\])?[.:])?((?:[a-z]\d{1,5})+)\Z")
_SIZE = regex(r"([a-z])(\d+)")
_EXPERTS_APART = regex(r"(?:[a-z]*(?:\[\w+\])?[.:])?\(attn:((?:[a-z]\d{1,5})+)\|ffn:((?:[a-z]\d{1,5})+)\)\Z")
_VERSION = regex(r"(?:^|[^\w.])v?(\d+(?:\.\w+)*(?:-?(?:dev|rc|post|a|b)\d*)?)(?!\w)", re.IGNORECASE)
_LARGEST_DEVICE = 100_000
"""Ids of one list; a longer one is a mistake."""


def _first(scope: Scope, arguments: tuple[Branch, ...]) -> RuleValue | None:
    return next((value for one in arguments if (value := one.of(scope)) is not None), None)


def _on(scope: Scope, arguments: tuple[Branch, ...]) -> bool:
    return any(one.of(scope) is True for one in arguments)


def _given(scope: Scope, arguments: tuple[Branch, ...]) -> RuleValue | None:
    names = [one.name for one in arguments if isinstance(one, Name)]
    return next((value for name in names if (value := scope.given(name)) is not None), None)


def _known(scope: Scope, arguments: tuple[Branch, ...]) -> bool:
    return arguments[0].of(scope) is not None


def _below(number: float, step: float) -> float:
    """Rounded, so that 0.55 is a multiple of 0.05."""
    return round((math.ceil(round(number / step, 6)) - 1) * step, 4)


def _heads_divide(scope: Scope, arguments: tuple[Branch, ...]) -> bool | None:
    """Query heads are split evenly; key-value heads, too, or each is copied evenly (`copies` false: they are not)."""
    size, heads, kv_heads = (as_number(v) for v in (arguments[0].of(scope), *map(scope.value, _HEADS)))
    if size is None or heads is None or kv_heads is None or size < 1:
        return None
    size = int(size)
    copied = (len(arguments) < 2 or truth(arguments[1].of(scope)) is not False) and size % max(1, kv_heads) == 0
    return heads % size == 0 and (kv_heads < 1 or kv_heads % size == 0 or copied)


_HEADS = ("model.heads", "model.kv_heads")


def _like(text: object, *patterns: object) -> bool:
    return any(fnmatchcase(str(text).lower(), str(pattern).lower()) for pattern in patterns)


def _devices(scope: Scope, arguments: tuple[Branch, ...]) -> int | None:
    """Lists after the first that cannot be read count nothing."""
    first, *more = (device_ids(one.of(scope)) for one in arguments)
    return None if first is None else len(first.union(*(ids for ids in more if ids is not None)))


def _meet(one: object, other: object) -> bool | None:
    ids, others = device_ids(one), device_ids(other)
    return None if ids is None or others is None else bool(ids & others)


def _size(text: object, letter: object) -> int | None:
    sizes = parallel_sizes(text)
    return None if sizes is None else sizes.get(str(letter), 1)


def _ranks(text: object) -> int | None:
    """Experts (e) share the other ranks."""
    sizes = parallel_sizes(text)
    return None if sizes is None else prod(size for letter, size in sizes.items() if letter in "dtpc")


_MANY = 99
FUNCTIONS.update(
    {
        "first": RuleFunction("first(a, b, …): the first that is known", _first, 1, _MANY, "parts"),
        "on": RuleFunction("on(a, b, …): true where one is known to be true, else false", _on, 1, _MANY, "parts"),
        "given": RuleFunction(
            "given(NAME, …): the first that the user's files or the log set", _given, 1, _MANY, "parts"
        ),
        "known": RuleFunction("known(a): whether it is", _known, takes="parts"),
        "min": RuleFunction("min(a, b, …): the least", min, 2, _MANY, "numbers"),
        "max": RuleFunction("max(a, b, …): the largest", max, 2, _MANY, "numbers"),
        "ceil": RuleFunction("ceil(a): rounded up", math.ceil, takes="numbers"),
        "below": RuleFunction("below(a, step): the next lower multiple of the step", _below, 2, 2, "numbers"),
        "divides": RuleFunction(
            "divides(a, b): a divides b, and is not 0", lambda by, of: bool(by) and of % by == 0, 2, 2, "numbers"
        ),
        "heads_divide": RuleFunction(
            "heads_divide(a): the model's attention heads divide by it", _heads_divide, 1, 2, "parts"
        ),
        "version": RuleFunction(
            'version(a, ">=1,<2"): a version lies in a range', lambda at, spec: version_in(str(spec), str(at)), 2, 2
        ),
        "like": RuleFunction('like(a, "pattern*", …): a text fits one of the patterns', _like, 2, _MANY),
        "items": RuleFunction(
            "items(a): how many a list with commas has",
            lambda text: sum(map(bool, map(str.strip, str(text).split(",")))),
        ),
        "devices": RuleFunction(
            'devices(a, b, …): how many ids "list(range(0,8))" and "[8, 9]" name', _devices, 1, _MANY, "parts"
        ),
        "meet": RuleFunction("meet(a, b): two such lists have an id in common", _meet, 2, 2),
        "before": RuleFunction(
            'before(a, "+"): the text before the first such sign',
            lambda text, sign: str(text).split(str(sign))[0],
            2,
            2,
        ),
        "after": RuleFunction(
            'after(a, "+"): the text after the last such sign', lambda text, sign: str(text).split(str(sign))[-1], 2, 2
        ),
        "size": RuleFunction('size(a, "t"): 2 of "sglang:d4t2"; 1 where it is not named', _size, 2, 2),
        "ranks": RuleFunction('ranks(a): 8 of "sglang:d4t2"', _ranks),
    }
)


def device_ids(text: object) -> frozenset[int] | None:
    """The ids of "list(range(0,8))" (sums of such), "[0,1,2]", "0,1" or "0 1"; None where it is anything else."""
    bare = "".join(_APART.sub(",", "" if text is None else str(text)).split())
    found: set[int] = set()
    for part in bare.split("+") if bare else ():
        spread = _RANGE.match(part)
        if spread is not None and int(spread[3] or 1) and int(spread[2]) <= _LARGEST_DEVICE:
            found |= set(range(int(spread[1] or 0), int(spread[2]), int(spread[3] or 1)))
        elif _NUMBERS.match(part):
            found |= {int(number) for number in part.strip("[]").split(",")}
        else:
            return None
    return frozenset(found) or None


def parallel_sizes(text: object) -> dict[str, int] | None:
    """Letter → size of "sglang:d4p1t2", "megatron[actor]:d2" or "d8"; None where it is not such. Experts that are split
    otherwise than the other layers ("megatron:(attn:d4t2|ffn:d2e4)") add their "e", and their tensor-parallel size as
    "ffn.t"."""
    plain = "".join(str(text or "").split())
    apart = _EXPERTS_APART.match(plain)
    if apart is not None:
        attention, experts = ({letter: int(size) for letter, size in _SIZE.findall(part)} for part in apart.groups())
        return {**attention, "e": experts.get("e", 1), "ffn.t": experts.get("t", 1)}
    match = _SIZES.match(plain)
    return None if match is None else {letter: int(size) for letter, size in _SIZE.findall(match[1])}


@lru_cache(maxsize=512)
def release_of(text: str) -> Version | None:
    """The release that a version people have belongs to: 0.17.0.dev0, 0.17.0rc1, v0.17.0+cu124 and the git describe
    v0.17.0-12-gabc1234 all are 0.17.0. None where no number is in it."""
    from packaging.version import InvalidVersion, Version

    found = _VERSION.search(text.strip())
    if found is None:
        return None
    for words in (found.group(1), re.split(r"\.?[^\d.]", found.group(1))[0]):
        try:
            version = Version(words)
        except InvalidVersion:
            continue
        return Version(version.base_version if version.post is None else f"{version.base_version}.post{version.post}")
    return None


def version_in(specifier: str, version: str) -> bool:
    """Whether a version lies in a packaging specifier; a pre-release counts as the release that it leads to."""
    from packaging.specifiers import InvalidSpecifier

    release = release_of(version)
    try:
        return release is not None and _range(specifier).contains(release)
    except InvalidSpecifier:
        return False


@lru_cache(maxsize=512)
def _range(specifier: str) -> SpecifierSet:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(specifier, prereleases=True)
