"""Parses descriptions of GPUs, "8xA100-40GB", into cards with the memory that their driver reports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.machine.card_words import (
    EXAMPLES,
    FORMS,
    SIZE,
    CardKind,
    CardNames,
    CardsTold,
    box_key,
    read_told,
    size_in,
)
from advisor.machine.inventory import Gpu
from advisor.regex import regex
from advisor.units import GIB, parse_size, show_bytes

MOST_GPUS = 1024
NAME_LIMIT = 80
_NUMBERED = regex(r"\d")
"""What the name of a card has; a word without a number is more likely a slip."""
_PLURAL = regex(r"\b([abhv]\d{2,4}|\d{4})s\b")
"""Not the L40S."""
_MAKERS = {"nvidia", "tesla", "geforce", "amd", "instinct", "huawei", "ascend", "gpu", "昇腾", "华为"}
_SLICES = {"1": 8, "2": 4, "3": 2, "4": 2, "7": 1}
"""First figure of a MIG profile → how many such parts hold a card's memory."""
_NOMINAL_SLACK = 0.1
"""Sellers' gigabytes and what the driver reports differ by less than this share."""
_LEAST_BYTES = GIB // 2
"""No GPU that trains has less memory."""
_NO_GPUS = mark("gpus must be text like {examples}, or a list of {{name, total_bytes}}")
_COUNTED = mark("{part!r} asks for {count} GPUs; write it like {examples}")
_TOO_SMALL = mark("{name!r} is too small for a GPU; write it like {examples}")
_TOO_MANY = mark("{count} GPUs on one node are too many: give those of one node, and --nodes for the rest")
_NO_BYTES = mark("gpus[{place}].total_bytes must be a positive whole number of bytes, not {size!r}")
_STRANGER = mark("the GPU {name!r} is not known: add its memory, like {name}-24GB; known forms: {examples}")
"""Asked for where nothing else tells the memory of a card."""
_UNNAMED = mark("which cards these are is not told: name one, like {examples}")
_NAMES_NONE = mark("--gpus {text!r} names no card that is known: the GPUs count as unknown; write it like {examples}")
_SEVERAL = mark("the GPU {name!r} may be {names}: name the one that it is")
_UNIFIED = mark("its memory is the host's: what programs on the CPU hold is missing on the GPU, and the reverse.")
_ASSUMED = mark("Its memory was not given ({names}); {name} is assumed, name the other if it is that.")
_LARGER = mark(
    "Its memory was not given; {name} is assumed, for the model's weights take {size} of a card: name another if it is "
    "that."
)


_SHARES_RAM = regex(r"\bapple\b|\bm[1-9] (?:pro|max|ultra)\b|\bmacbook|\bjetson\b|\borin\b|strix|ai max", re.IGNORECASE)
"""Chips whose memory is the host's, in whatever size they are sold."""
_OF_VENDOR = {
    "ascend": regex(r"ascend|昇腾|huawei|华为|atlas|\bnpu\b|\b(?:310|910|950)(?:[a-z]|\b)", re.IGNORECASE),
    "amd": regex(r"\bamd\b|instinct|radeon|\bmi\d{2,3}", re.IGNORECASE),
    "nvidia": regex(r"nvidia|tesla|geforce|quadro|\brtx|\bgtx|titan", re.IGNORECASE),
}


class NoCardError(ValueError):
    """Words that name no card: a service, a disk, a slip."""


class KnownGpu(Protocol):
    """What knowledge knows of a card (`GpuFact`)."""

    @property
    def name(self) -> str: ...

    @property
    def aliases(self) -> tuple[str, ...]: ...

    @property
    def total_bytes(self) -> int: ...

    @property
    def vendor(self) -> str: ...

    @property
    def unified(self) -> bool: ...

    @property
    def boxes(self) -> Mapping[str, int]: ...


def parse_gpus(text: str, gpus: Sequence[KnownGpu]) -> tuple[Gpu, ...]:
    """The cards of one node: "8xA100-40GB", "4xH100", "h20", "1xNVIDIA A100-SXM4-80GB", or several with commas.

    A known card gets the memory that programs see on it; an unknown name gets the size beside it, and none without.
    Raises ValueError with a sentence and examples.
    """
    return read_cards(text, gpus)[0]


def read_cards(text: str, gpus: Sequence[KnownGpu]) -> tuple[tuple[Gpu, ...], CardsTold]:
    """The same, with what else the text tells."""
    told, shown, cards = cards_told(text, gpus), clean_line(text, NAME_LIMIT), list[Gpu]()
    for kind in told.kinds:
        count = 1 if kind.count is None else kind.count
        if not 1 <= count <= MOST_GPUS:
            raise ValueError(say(_COUNTED, part=shown, count=count, examples=EXAMPLES))
        one = _of_kind(kind, count, gpus)
        cards += [replace(one, index=len(cards) + place) for place in range(count)]
    if len(cards) > MOST_GPUS:
        raise ValueError(say(_TOO_MANY, count=len(cards)))
    if not cards:
        raise NoCardError(say("no GPU is named in {part!r}; write it like {examples}", part=shown, examples=EXAMPLES))
    return tuple(cards), told


def cards_told(text: str, gpus: Sequence[KnownGpu]) -> CardsTold:
    """What a text tells of cards, by the names that are known."""
    boxes: dict[str, tuple[int, str]] = {}
    for card in gpus:
        for key, count in ((box_key(name), count) for name, count in card.boxes.items()):
            boxes[key] = (count, card.name.split("-")[0] if key in boxes else card.name)
    numbers = {word for card in gpus for name in _names(card) for word in re.split(r"\D+", name) if len(word) > 2}
    names = CardNames(lambda name: frozenset(card.name for card in _candidates(name, gpus)), frozenset(numbers), boxes)
    return read_told(text, names)


def cards_named(text: str, gpus: Sequence[KnownGpu]) -> tuple[tuple[Gpu, ...], CardsTold]:
    """`read_cards`, and none with a note where the text names none. Raises ValueError for a count that cannot be."""
    try:
        return read_cards(text, gpus)
    except NoCardError:
        note = say(_NAMES_NONE, text=clean_line(text, NAME_LIMIT), examples=EXAMPLES)
        return (), CardsTold(nodes=cards_told(text, gpus).nodes, notes=[note])


def _of_kind(kind: CardKind, count: int, gpus: Sequence[KnownGpu]) -> Gpu:
    """One card of a kind; of a size that is that of all of them, its share."""
    part = int(float(kind.mig.partition("g.")[2].partition("gb")[0] or kind.mig[:-2]) * GIB) if kind.mig else None
    size = parse_size(kind.size) if kind.size else part
    if not kind.name:
        return Gpu(0, "GPU", size, problem=say(_UNNAMED, examples=EXAMPLES) if size is None else "", mig=kind.mig)
    alike = _candidates(kind.name, gpus)
    if part and not size_in(f"{kind.name} {kind.size}"):  # "A100 3g.40gb"
        fitting = _near(alike, part * _SLICES.get(kind.mig[:1], 0))
        kind = kind if fitting is None else replace(kind, name=fitting.name)
    share = _near(alike, size // count) if size and not kind.mig and not _near(alike, size) else None
    if share is not None:
        return _known(0, share)
    card = _gpu(0, kind.name if size_in(kind.name) else f"{kind.name} {kind.size}", gpus)
    if part is None:
        return card
    whole = size_in(card.name)
    is_told = not whole or not card.total_bytes or "g." not in kind.mig
    seen = part if is_told else int(part * (card.total_bytes or 0) / parse_size(whole))
    return replace(card, name=f"{card.name} MIG {kind.mig}", total_bytes=seen, problem="", mig=kind.mig)


def _near(cards: Sequence[KnownGpu], size: int) -> KnownGpu | None:
    """The card whose memory is nearest to a size that sellers give."""
    near = [card for card in cards if abs(card.total_bytes - size) <= size * _NOMINAL_SLACK]
    return min(near, key=lambda card: abs(card.total_bytes - size), default=None)


def gpus_from(value: object, gpus: Sequence[KnownGpu]) -> tuple[Gpu, ...]:
    """Cards as a run file gives them: a text for `parse_gpus`, or a list of {name, total_bytes}. Raises ValueError,
    also where nothing tells how much memory one has."""
    if not isinstance(value, str) and (not isinstance(value, list) or not value):
        raise ValueError(say(_NO_GPUS, examples=EXAMPLES))
    cards = (
        parse_gpus(value, gpus)
        if isinstance(value, str)
        else tuple(_from_entry(place, entry, gpus) for place, entry in enumerate(value))
    )
    if strangers := unsized(cards):
        raise ValueError(strangers[0])
    return cards


def size_of(name: str, gpus: Sequence[KnownGpu]) -> int | None:
    """Bytes of a card that a log names; None where the name may be that of several cards, or is not known."""
    try:
        (card,) = set(parse_gpus(name, gpus))
    except ValueError:
        return None
    return None if card.problem else card.total_bytes


def unsized(cards: Sequence[Gpu]) -> list[str]:
    """A sentence on each kind of card of which nothing tells the memory."""
    told = {card.name: card.problem for card in cards if card.total_bytes is None}
    return [problem or say(_STRANGER, name=name, examples=EXAMPLES) for name, problem in told.items()]


def _from_entry(place: int, entry: object, gpus: Sequence[KnownGpu]) -> Gpu:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        problem = say("gpus[{place}] needs a name, and total_bytes where the card is not a known one", place=place)
        raise ValueError(problem)  # noqa: TRY004 - one kind of error for input
    size = entry.get("total_bytes")
    if size is None:
        return _gpu(place, entry["name"], gpus)
    if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
        raise ValueError(say(_NO_BYTES, place=place, size=str(size)[:40]))
    return Gpu(place, clean_line(entry["name"], NAME_LIMIT), size)


def _gpu(index: int, name: str, gpus: Sequence[KnownGpu]) -> Gpu:
    shown = clean_line(name, NAME_LIMIT).strip()
    matches = _candidates(shown, gpus)
    for card in matches:
        if any(_words(shown) == _words(alias) for alias in _names(card) if SIZE.search(alias)):
            return _known(index, card)
    sized = SIZE.search(shown)
    relatives = _relatives(shown, gpus) if sized or not matches else []
    if sized is not None:
        size = parse_size("".join(sized.groups()))
        nearest = _near(matches, size) or _near(relatives, size)
        if size < _LEAST_BYTES:
            raise ValueError(say(_TOO_SMALL, name=shown, examples=EXAMPLES))
        if nearest is None:
            shared = say(_UNIFIED) if _SHARES_RAM.search(shown) else ""
            return Gpu(index, shown, size, problem=shared, vendor=vendor_by_name(shown))
        return _known(index, nearest)
    if len(relatives) > 1:
        told = say(_SEVERAL, name=shown, names=say(" or ").join(sorted(card.name for card in relatives)))
        return Gpu(index, shown, None, problem=told, vendor=vendor_by_name(shown))
    if not matches and not _NUMBERED.search(shown):
        raise NoCardError(say(_STRANGER, name=shown, examples=EXAMPLES))
    if not matches:
        return Gpu(index, shown, None, vendor=vendor_by_name(shown))
    smallest = min(matches, key=lambda card: card.total_bytes)
    names = sorted({card.name for card in matches})
    assumed = say(_ASSUMED, names=say(" or ").join(names), name=smallest.name) if len(names) > 1 else ""
    return _known(index, smallest, assumed)


def _known(index: int, card: KnownGpu, problem: str = "") -> Gpu:
    told = problem or (say(_UNIFIED) if card.unified else "")
    return Gpu(index, card.name, card.total_bytes, problem=told, vendor=card.vendor)


def of_size(card: Gpu, size: int, gpus: Sequence[KnownGpu]) -> Gpu:
    """The card whose size was assumed, of those that its name may mean the one of so many bytes."""
    alike = _candidates(card.name.split("-")[0], gpus) if card.problem and card.total_bytes else []
    near = _near(alike, size)
    return card if near is None or near.name == card.name else _known(card.index, near)


def left_open(card: Gpu, gpus: Sequence[KnownGpu]) -> Gpu:
    """The card without the size that was assumed, for its name may mean several."""
    chip = card.name.split("-")[0]
    names = say(" or ").join(sorted(one.name for one in _candidates(chip, gpus)))
    return replace(card, name=chip, total_bytes=None, problem=say(_SEVERAL, name=chip, names=names))


def roomier(card: Gpu, needed: int, gpus: Sequence[KnownGpu]) -> Gpu:
    """The card whose size was assumed, as the smallest of its name with more than `needed` bytes, if there is one."""
    alike = _candidates(card.name.split("-")[0], gpus) if card.problem and card.total_bytes else []
    larger = [one for one in alike if one.total_bytes > needed]
    if not larger or (card.total_bytes or 0) > needed:
        return card
    taken = min(larger, key=lambda one: one.total_bytes)
    return _known(card.index, taken, say(_LARGER, name=taken.name, size=show_bytes(needed)))


def vendor_by_name(name: str) -> str:
    """Whose card bears the name, as drivers, logs and people write it; "" where it does not say."""
    return next((vendor for vendor, words in _OF_VENDOR.items() if words.search(name)), "")


# --- names ---------------------------------------------------------------------------------------------------------


def _words(name: str) -> list[str]:
    single = _PLURAL.sub(r"\1", name.lower().rstrip("显卡 "))
    return [word for word in re.split(r"[\s_/()-]+", single) if word and word not in _MAKERS]


@lru_cache(maxsize=4096)
def _keys(name: str) -> frozenset[str]:
    """What the name without maker and size is when it is written together, with its form factor and without."""
    words = _words(SIZE.sub(" ", name.lower()))
    return frozenset(("".join(words), "".join(word for word in words if word not in FORMS))) - {""}


def _names(card: KnownGpu) -> tuple[str, ...]:
    return card.name, *card.aliases


def _candidates(name: str, gpus: Sequence[KnownGpu]) -> list[KnownGpu]:
    """Cards of the longest name that stands in a phrase as words of its own: "a Colab T4", "single A100 40 GB". Where
    the phrase tells no size, those that go by the name without one come first."""
    words, sized = _words(SIZE.sub(" ", name))[:24], SIZE.search(name) is not None
    said = {
        "".join(some[first:last])
        for some in (words, [word for word in words if word not in FORMS])
        for first in range(len(some))
        for last in range(first + 1, len(some) + 1)
    }
    found: dict[tuple[int, bool], list[KnownGpu]] = {}
    for card in gpus:
        for alias in _names(card):
            for key in _keys(alias) & said:
                if _NUMBERED.search(key) or key == "".join(words):
                    found.setdefault((len(key), not sized and key == "".join(_words(alias))), []).append(card)
    return list({card.name: card for card in found[max(found)]}.values()) if found else []


def _relatives(name: str, gpus: Sequence[KnownGpu]) -> list[KnownGpu]:
    """Cards whose names say more than this one, which leaves their kind out: "RTX 6000" of Quadro, Ada and PRO."""
    said = set(_words(SIZE.sub(" ", name))) - FORMS
    kinds = ((card, set(_words(SIZE.sub(" ", alias))) - FORMS) for card in gpus for alias in _names(card))
    found = {card.name: card for card, words in kinds if said < words}
    return list(found.values()) if _NUMBERED.search(" ".join(said)) else []
