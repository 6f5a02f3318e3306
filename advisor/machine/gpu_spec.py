"""Parses descriptions of GPUs, "8xA100-40GB", into cards with the memory that their driver reports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatch
from functools import lru_cache
from typing import Protocol

from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.machine.inventory import Gpu
from advisor.regex import regex
from advisor.units import GIB, parse_size, show_bytes

MOST_GPUS = 1024
NAME_LIMIT = 80
_COUNT = regex(
    r"(\d+)\s*(?:[x*×]|[张块]?卡|[张块])\s*"
    r"|(\d{1,3})\s+(?=(?:nvidia|tesla|geforce|rtx|gtx|quadro|g?[abhlvtp]\d{1,3}s?|mi\d{2,3}|ascend|\d+ ?gi?b?)\b)",
    re.IGNORECASE,
)
_COUNT_BEHIND = regex(
    r"(?<=\S)(?:\s*[x*×]\s*(\d{1,2})|\s+(\d{1,2})\s*(?:[张块]?卡|gpus?|cards?))$", re.IGNORECASE
)  # two digits: the X of "RTX 4090" is no count
_SIZE_ALONE = r"^\s*(?:\d+\s*[x*×]\s*)?\d+(?:\.\d+)?\s*gi?b?(?:\s*[x*×]\s*\d+)?\s*$"
_SIZE = regex(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)\s*(gib|gb|g|mib|mb|tib|tb)\b", re.IGNORECASE)
_SIZE_GLUED = regex(r"(\d+(?:\.\d+)?)\s*(gib|gb)\b", re.IGNORECASE)
_NUMBERED = regex(r"\d")
"""What the name of a card has; a word without a number is more likely a slip."""
_BARE_COUNT = regex(
    r"(?<!\S)(\d{1,3})\s*(?=\(|$)(?:\([^)]*\)?)?"
    r"|(\d{1,4})\s*(?:[x×]\s*)?(?:gpus?|(?:graphics )?cards?|[张块](?:显?卡|GPU)?|显?卡)",
    re.IGNORECASE,
)
"""How many there are, and nothing of which: "2 cards", "2张卡"."""
_INSIDE = regex(
    r"(?<![\d.])(\d{1,2})\s*(?:[x×*]|[张块]?卡|[张块])?\s*"
    r"(?=(?:(?:nvidia|tesla|geforce|amd|instinct|ascend|rtx|gtx|quadro)[ -]){0,3}"
    r"(?:[abhlvp]\d{2,3}|[lt]4|rtx|gtx|gh?\d{3}|mi\d{2,3}|[2-5]0\d0|910))",
    re.IGNORECASE,
)
"""A count before a card within a sentence: "single node with 8 NVIDIA H100 GPUs"; of "16x8 H20" the nearer one."""
_EACH = regex(r"(?<![\d.])(\d{1,3})\s*(?:gpus?|cards?)\b", re.IGNORECASE)
"""A count of cards within a sentence that names none."""
_BESIDE = regex(
    r"(?:\d+|several|multiple|single|one|two)?\s*(?:nodes?|machines?|servers?|hosts?|vms?)|.*\bv?(?:cpus?|cores?)\b.*",
    re.IGNORECASE,
)
"""A part of a description that is of nodes or processors alone."""
_NUMERALS = str.maketrans({"单": "1", "两": "2", "双": "2", "三": "3", "四": "4", "六": "6", "八": "8", "九": "9"})
_COUNT_WORDS = {"one": "1", "single": "1", "dual": "2"}
_COUNT_WORDS |= {"two": "2", "three": "3", "four": "4", "six": "6", "eight": "8", "sixteen": "16"}
_COUNT_WORD = regex(rf"\b(?:{'|'.join(_COUNT_WORDS)})\b", re.IGNORECASE)
_ONE = regex(r"^\s*1\b|\b(?:an?|my|the|this)\s+(?=\S)|[一1][张块]", re.IGNORECASE)
_PLURAL = regex(r"\b([abhv]\d{2,4}|\d{4})s\b")
"""Not the L40S."""
_PARTS = regex(r"[,;，；、]|\s\+\s|\s(?:and|plus)\s(?=\s*\d)", re.IGNORECASE)
_ASIDE = regex(
    r"\b(?:each|every|per|train\w*|infer\w*|roll-?outs?|vllm|sglang|generat\w*|serv\w*|judges?|rewards?|actors?|critics?|"
    r"memory|v?ram|host|system|total|used|occupied|peak|free|idle|for|of them)\b|内存|" + _SIZE_ALONE,
    re.IGNORECASE,
)
"""What a part says that tells more of cards named beside it: their size, or what some of them do."""
_SIZE_OF_EACH = regex(r"\b(?:each|every|per (?:gpu|card)|vram)\b|" + _SIZE_ALONE, re.IGNORECASE)
_NOT_WHOLE = regex(r"\b(?:peak|used|usage|occupied|free|idle|left|available)\b", re.IGNORECASE)
_ANOTHER_SIZE = regex(r"\s*(\d{1,3})\s+(\d+\s*gi?b?)\s*", re.IGNORECASE)
"""More cards of the kind named before, of another size: "2 40G A100 and 1 80G"."""
_GRES = regex(r"(?:--)?(?:gres=)?gpus?:(?:([a-z][\w.-]*):)?(\d{1,3})", re.IGNORECASE)
"""As Slurm asks for cards: "gpu:a100:4"."""
_NODES_AHEAD = regex(
    r"\s*(?:\d+|several|multiple)\s*(?:nodes?|machines?|servers?)\b[\s:(]*(?:[x×*]|of|with|each|having)?\s*(?=\S)",
    re.IGNORECASE,
)
_OF_NODES = regex(
    r"(?:^|[,;(])\s*(\d{1,3})\s*(?:nodes?|machines?|servers?)\b|^\s*(\d{1,3})\s+\d+\s*[x×*]\s*\S+\s+(?:nodes|machines)"
    r"|^\s*(\d{1,3})\s*(?:[台机]|个?节点|[x×*]\s*(?=\d{1,2}\s*[x×*]?\s*(?!gi?b?\b)[a-z]))",
    re.IGNORECASE,
)
MOST_OF_A_NODE = 8
_NO_CARD = regex(r"\b(?:disks?|ssd|nvme|storage|swap)\b|[硬磁]盘", re.IGNORECASE)
"""Words of a size that is no card's."""
_MAKERS = {"nvidia", "tesla", "geforce", "amd", "instinct", "huawei", "ascend", "gpu"}
_FORMS = {"sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "pcie", "pci", "nvl", "oam", "rtx"}
_FORMS |= {"hbm", "hbm2", "hbm2e", "hbm3", "hbm3e", "gddr6", "gddr7"}
_NOMINAL_SLACK = 0.1
"""Sellers' gigabytes and what the driver reports differ by less than this share."""
_LEAST_BYTES = GIB // 2
"""No GPU that trains has less memory."""
EXAMPLES = "8xA100-40GB, 4xH100, 2xRTX-3090-24GB"
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


_OF_VENDOR = {
    "ascend": regex(r"ascend|huawei|atlas|\bnpu\b|\b(?:310|910|950)(?:[a-z]|\b)", re.IGNORECASE),
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


def parse_gpus(text: str, gpus: Sequence[KnownGpu]) -> tuple[Gpu, ...]:
    """The cards of one node: "8xA100-40GB", "4xH100", "h20", "1xNVIDIA A100-SXM4-80GB", or several with commas.

    A known card gets the memory that programs see on it; an unknown name gets the size beside it, and none without.
    Raises ValueError with a sentence and examples.
    """
    cards: list[Gpu] = []
    counted = _COUNT_WORD.sub(lambda found: _COUNT_WORDS[found[0].lower()], text.translate(_NUMERALS))
    parts = [clean_line(part, 200).strip() for part in _PARTS.split(counted)]
    if any(map(_NUMBERED.search, parts)):  # "single A100 40 GB, Google Colab"
        parts = [part for part in parts if not part or _NUMBERED.search(part)]
    if len(parts) > 1:  # "2 nodes, 8 cards each, 96 CPU cores"
        parts = [part for part in parts if not _BESIDE.fullmatch(part)] or parts
    before = ""
    for part in _cards_alone(parts, gpus):
        more = _ANOTHER_SIZE.fullmatch(part) if before else None
        before = part if more is None else f"{more[1]}x {_SIZE.sub(more[2], _COUNT.sub('', before, count=1), count=1)}"
        cards += _one_kind(before, gpus, first=len(cards))
    if len(cards) > MOST_GPUS:
        raise ValueError(say(_TOO_MANY, count=len(cards)))
    return tuple(cards)


def counts_cards(text: str) -> bool:
    """Whether a description says how many cards there are: "3090" does not, "a 3090" and "2x3090" do."""
    counted = _COUNT_WORD.sub(lambda found: _COUNT_WORDS[found[0].lower()], text.translate(_NUMERALS))
    ways = (_COUNT_BEHIND, _BARE_COUNT, _INSIDE, _EACH, _ONE)
    return _COUNT.match(counted.lstrip()) is not None or any(way.search(counted) for way in ways)


def nodes_told(text: str, cards: int) -> int | None:
    """How many nodes of so many cards a description speaks of: "2 nodes x 8", "8xH100, 4 nodes", "2 8xA100 nodes".
    Behind more cards than a node mostly has, the count may have been of all of them: None."""
    found = _OF_NODES.search(text.translate(_NUMERALS))
    whole = found is not None and (found.start() > 0 or found[3] is not None)
    if found is None or (whole and cards > MOST_OF_A_NODE and not _SIZE_OF_EACH.search(text)):
        return None
    return int(next(filter(None, found.groups()))) or None


def _cards_alone(parts: Sequence[str], gpus: Sequence[KnownGpu]) -> list[str]:
    """The parts that are of cards, with the size that another part tells of each: of "8 4090s, each with 24GB; 6 train,
    2 for vLLM" the first. A count alone is of cards ("2 nodes x 8")."""
    alone = [_without_nodes(part) for part in parts]
    aside = [part for part in alone if _ASIDE.search(part) and not _names_cards(part, gpus)]
    cards = [part for part in alone if part not in aside]
    if not cards:
        return alone
    told = (_SIZE.search(part) for part in aside if _SIZE_OF_EACH.search(part) and not _NOT_WHOLE.search(part))
    size = next((one[0] for one in told if one is not None), "")
    return [f"{part} {size}" if size and not _SIZE.search(part) else part for part in cards]


def _without_nodes(part: str) -> str:
    """The cards of a part, as people write them."""
    ahead = _NODES_AHEAD.match(part)
    part = part[ahead.end() :] if ahead else part
    if ahead and part.isdecimal():
        return f"{part} gpus"
    asked = _GRES.fullmatch(part)
    if asked is None:
        return part
    named = bool(asked[1] and _NUMBERED.search(asked[1]))
    return f"{asked[2]}x{asked[1]}" if named else f"{asked[2]} gpus"


def _names_cards(part: str, gpus: Sequence[KnownGpu]) -> bool:
    counted = _COUNT.match(part)
    name = part[counted.end() :] if counted else part
    return bool(_BARE_COUNT.match(part) or _candidates(name, gpus) or _INSIDE.search(part))


def cards_named(text: str, gpus: Sequence[KnownGpu]) -> tuple[tuple[Gpu, ...], str]:
    """The same, and () with a sentence where the text names no card. Raises ValueError for a count that cannot be."""
    try:
        return parse_gpus(text, gpus), ""
    except NoCardError:
        return (), say(_NAMES_NONE, text=clean_line(text, NAME_LIMIT), examples=EXAMPLES)


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


def _one_kind(part: str, gpus: Sequence[KnownGpu], first: int) -> list[Gpu]:
    bare = _BARE_COUNT.fullmatch(_SIZE.sub("", part).strip(" ()"))
    ahead, behind = _COUNT.match(part), _COUNT_BEHIND.search(part)
    if ahead and behind and int(ahead[1] or ahead[2]) > MOST_GPUS:  # "3090*2"
        ahead = None
    counted = bare or ahead or behind
    count = int(next(filter(None, counted.groups()))) if counted else 1
    name = part[ahead.end() :] if ahead else part[: behind.start()] if behind else part
    inside = list(_INSIDE.finditer(name)) if not bare and not behind else []
    if inside and (not ahead or not _INSIDE.match(part)):  # words, or nodes, before the count of cards
        count, name = int(inside[-1][1]), name[inside[-1].end() :]
    elif not counted and (told_of := _EACH.search(part)) is not None and not _named_inside(part, gpus):
        bare, count = told_of, int(told_of[1])
    if not 1 <= count <= MOST_GPUS:
        raise ValueError(say(_COUNTED, part=part, count=count, examples=EXAMPLES))
    if bare:
        sized = _SIZE.search(part)
        size = parse_size("".join(sized.groups())) if sized else None
        told = say(_UNNAMED, examples=EXAMPLES) if size is None else ""
        return [Gpu(first + place, "GPU", size, problem=told) for place in range(count)]
    if not name or not re.search(r"[A-Za-z0-9]", name) or _NO_CARD.search(name):
        raise NoCardError(say("no GPU is named in {part!r}; write it like {examples}", part=part, examples=EXAMPLES))
    one = _gpu(first, name, gpus)
    return [replace(one, index=first + place) for place in range(count)]


def _gpu(index: int, name: str, gpus: Sequence[KnownGpu]) -> Gpu:
    shown = clean_line(name, NAME_LIMIT).strip()
    matches = _candidates(shown, gpus)
    for card in matches:
        if any(_full_key(shown) == _full_key(alias) for alias in _names(card) if _SIZE.search(alias)):
            return _known(index, card)
    relatives = [] if matches else _relatives(shown, gpus)
    sized = _SIZE.search(shown) or _SIZE_GLUED.search(shown)
    if sized is not None:
        size = parse_size("".join(sized.groups()))
        near = [card for card in matches or relatives if abs(card.total_bytes - size) <= size * _NOMINAL_SLACK]
        if size < _LEAST_BYTES:
            raise ValueError(say(_TOO_SMALL, name=shown, examples=EXAMPLES))
        if not near:
            return Gpu(index, shown, size, vendor=vendor_by_name(shown))
        nearest = min(near, key=lambda card: abs(card.total_bytes - size))
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
    near = [one for one in alike if abs(one.total_bytes - size) <= size * _NOMINAL_SLACK]
    if not near or any(one.name == card.name for one in near):
        return card
    return _known(card.index, min(near, key=lambda one: abs(one.total_bytes - size)))


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


@lru_cache(maxsize=1024)
def _full_key(name: str) -> str:
    """Everything but the maker, glued: "NVIDIA A100-SXM4-80GB" → "a100sxm480gb"."""
    return "".join(_words(name))


@lru_cache(maxsize=1024)
def _chip_key(name: str) -> str:
    """The chip alone, without maker, size and form factor: "NVIDIA A100-SXM4-80GB" → "a100"."""
    return "".join(word for word in _words(_SIZE.sub(" ", name.lower())) if word not in _FORMS)


def _names(card: KnownGpu) -> tuple[str, ...]:
    return card.name, *card.aliases


def _candidates(name: str, gpus: Sequence[KnownGpu]) -> list[KnownGpu]:
    """Cards that go by this name: by a full alias first, else by the chip."""
    key, low, chip = _full_key(name), name.lower(), _chip_key(name)
    full = [
        card
        for card in gpus
        if any(key == _full_key(alias) or ("*" in alias and fnmatch(low, alias.lower())) for alias in _names(card))
    ]
    alike = full or [card for card in gpus if chip and any(chip == _chip_key(alias) for alias in _names(card))]
    return alike or _named_inside(name, gpus)


def _named_inside(name: str, gpus: Sequence[KnownGpu]) -> list[KnownGpu]:
    """Cards of the longest name that stands in a phrase as words of its own: "a Colab T4", "single A100 40 GB"."""
    said = " ".join(["", *_words(_SIZE.sub(" ", name)), ""])
    found: dict[str, list[KnownGpu]] = {}
    for card in gpus:
        for alias in {" ".join(_words(_SIZE.sub(" ", alias))) for alias in _names(card) if "*" not in alias}:
            if any(character.isdigit() for character in alias) and f" {alias} " in said:
                found.setdefault(alias, []).append(card)
    return found[max(found, key=len)] if found else []


def _relatives(name: str, gpus: Sequence[KnownGpu]) -> list[KnownGpu]:
    """Cards whose names say more than this one, which leaves their kind out: "RTX 6000" of Quadro, Ada and PRO."""
    said = _kind_words(name)
    if not any(character.isdigit() for word in said for character in word):
        return []
    return [card for card in gpus if any(said < _kind_words(alias) for alias in _names(card))]


def _kind_words(name: str) -> set[str]:
    return {word for word in _words(_SIZE.sub(" ", name)) if word not in _FORMS}
