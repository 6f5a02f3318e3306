"""Reads descriptions of cards, of people, clouds, Slurm or nvidia-smi, into kinds: how many, which, how large.

A text is clauses of tokens. A clause tells a count, a name, a size, nodes; one that names no card tells more of the
last that was named ("A100 80GB, 8 GPUs"; "8 GPUs, each with 24GB").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.regex import regex

EXAMPLES = "8xA100-40GB, 4xH100, 2xRTX-3090-24GB"
MOST_OF_A_NODE = 8
_LONGEST = 8000
"""Characters that are read; 64 lines of `nvidia-smi -L` have fewer, and of its table few have any."""
FORMS = {"sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "pcie", "pci", "nvl", "oam", "rtx"}
FORMS |= {"hbm", "hbm2", "hbm2e", "hbm3", "hbm3e", "gddr6", "gddr6x", "gddr7"}
SIZE = regex(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)\s*([gmt]i?b|gi?)\b", re.IGNORECASE)
_NUMBERS = "one=1 single=1 dual=2 two=2 three=3 four=4 quad=4 five=5 six=6 seven=7 eight=8 sixteen=16 一张=1张 一块=1块"
_NUMBERS += " 一台=1台 单=1 两=2 双=2 三=3 四=4 六=6 八=8 九=9"
_WORDS = {"_": " ", **dict(pair.split("=") for pair in _NUMBERS.split())}
_WORD = regex(rf"\b(?:{'|'.join(filter(str.isascii, _WORDS))})\b|_|一[张块台]|[单两双三四六八九]", re.IGNORECASE)
_ONE = regex(r"\b(?:an?|my|the|this)\s+(?=\S)", re.IGNORECASE)
_SCRIPTS = regex(r"(?<=[a-z0-9])(?=[\u4e00-\u9fff])|(?<=[\u4e00-\u9fff])(?=[a-z0-9])", re.IGNORECASE)
_HEADER = regex(r"^(?!.*\d)(?=.*,)(?:.*,)?\W*(?:gpu_)?name\W*(?:,|$)", re.IGNORECASE)
_PCI = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.\d\s"
_OF_LIST = regex(
    r"^\W*(?:(?:gpu|npu|device|card|cuda)s?\s*[#\[:]?(\d+(?:\s*,\s*\d+)*)\]?\s*[:：(](?:\s*card series\s*:)?"
    rf"|(?<=\[)\d+\](?=.*[|])|{_PCI}(?!.*(?:bridge|intel))[^:]*:(?=.*\[.*\d.*\]))\s*(?=\S)",
    re.IGNORECASE,
)
"""A line of `nvidia-smi -L`, or of several cards alike, of gpustat, of lspci."""
_ROW = regex(r"^\s*(\d{1,3})\s*,\s*(?=\D)")
"""A line of a table whose first column counts."""
_DRAWN = regex(
    r"^\s*[|+](?:\s*(\d{1,3})\s+(?:(?P<name>[^|]*[a-z][^|]*)\|(?=[^|]+\|)|[\d ]+\|\s*\d+MiB\s*/\s*(?P<part>\d+)MiB))?",
    re.IGNORECASE,
)
"""A line of nvidia-smi's drawn table, with the number of a card, and its name or the memory of a MIG instance."""
_ASIDE = regex(rf"\b\d\d:\d\d:\d\d\b|^\W*{_PCI}|^gpu\[\d+\]\s*:(?!\s*card series)", re.IGNORECASE)
"""A tool's heading, what other device lspci lists, and what else rocm-smi tells."""
_VIRTUAL = regex(r"(?<=[a-z0-9])-(\d{1,2})[cq](?![\w-])", re.IGNORECASE)
"""The part of a card that a virtual machine has: "A100-20C"."""
_ALIEN = (
    r"(?:amd\s+(?=epyc|ryzen)|intel\s+(?=xeon|core|i\d)|xeon|core\si\d|epyc|ryzen|threadripper)\b[^,;，；()（）|\n]*"
)
_NOISE = regex(
    rf"""(?:\d+\s*[x×*]?\s*)?\b{_ALIEN}
    | \d+\s*[x×*]?\s*-?(?:v?cpus?\b|(?:cpu\s+)?(?:cores?|threads?)\b|核)[^,;，；()（）|\n]*
    | (?:\d+\s*[x×*]\s*)?\d[\d.,]*\s*[gt]i?b?\s+(?:of\s+)?(?:(?:system|host|cpu|main|server|node)\s+)*
      (?:(?:ddr\d|ram)\b(?:\s+ram\b)?|(?:nvme|ssd|hdd|disk|storage|swap)\w*)
    | (?<!v)(?<!gpu\s)(?:\bram\b|内存|[硬磁]盘|\b(?:disk|nvme|ssd|storage)\b)\s*[:：=]?\s*\d[\d.,]*\s*[gt]i?b?(?!\w)
    | \b(?:cuda|driver|torch|python|rocm|cann|gen)\s*(?:version)?\s*[:=]?\s*v?\d[\w.]*
    | \b\d{{1,2}}\s*[-–~]\s*(?=\d{{1,2}}\s*(?:[x×*]|gpus?\b|cards?\b|[张卡块]))
    | \b(?:GPU|MIG)-[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}\b | \bmem=\d+[gmt]\b
    | (?:--)?\b(?:gres[=/:]gpu:|gpus=)(?=[a-z]\w*\s+[1-7]g\.)
    | \d[\d.]*\s*(?:mi?b?)?\s*/\s*(?=\d[\d.]*\s*mi?b\b) | \d[\d.]*\s*(?:%|°\s?[cf]?)
    | (?<=\d)\s+of\s+(?:(?:the|my|our|its)\s+)?\d{{1,3}}(?=\s+[a-z])
    | \#sbatch\b | \bnvidia\.com/ | \bml\.(?=[a-z]\d) | \bstandard\s(?=n[cd]\d)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Numbers of processors, RAM, disks, versions and devices; the beginning of a range; what is in use, or all there is,
beside what is meant; what stands before names."""
_NO_WORD = r"\s,;，；：、。()（）\[\]{}\"'|\n*×"
_BEHIND = r"""[:=：]\s*["']?\d{1,3}["']?(?=\s*(?:[,;，；)）\]}|\n]|$))"""
"""A number that ends a clause behind a colon: "A100-80GB:8", "count: 8"."""
_TOKEN = regex(
    rf"""(?P<part>[,;，；、。|\n]|[:：](?=\s*\d{{1,2}}\s*[x×*]\s*(?:[a-z]|\d{{4}}))
      |\s[+&]\s|\s(?:and|plus|和)\s(?=\s*\d)) | (?P<open>[(（\[]) | (?P<close>[)）\]])
    | (?P<either>\s(?:or|then|vs\.?)\s|\s/\s|或者?|还是)
    | -?(?P<mig>(?:mig[-\s])?\b(?:[1-7]c\.)?[1-7]g\.\d{{1,3}}gb(?:\+\w+)?|mig\s[\d.]+gb)
      (?:["']?\s*[:=]\s*["']?(?P<slices>\d{{1,2}})(?![\w.]))?
    | (?:--)?(?:gres[=/:])?\b(?:gpus?|npus?)(?:[-\s]per[-\s](?:node|task)|[.\s-]count)?["']?\s*[:=：]\s*["']?
      (?:(?P<kind>[a-z][\w.-]*)[:=])?(?P<asked>\d{{1,3}})(?![\w.]|\s*(?:nodes?\b|machines?\b|[台机\d]))["']?
    | \b(?:gpus?|npus?|cards?|devices?)\s*\#?(?P<first>\d{{1,3}})\s*(?:-|–|~|to|至|到)\s*(?:gpu|npu)?\s*
      (?P<last>\d{{1,3}})(?![\w.])[:：]?
    | (?:--nodes|--nnodes|\s-n|^-n|\bn?nodes["']?)\s*[=:\s]\s*(?P<in_nodes>\d{{1,4}})(?![\w.])
    | (?P<nodes>\d{{1,4}})\s*[-x×*]?\s*(?:(?:nodes?|machines?|servers?|hosts?|vms?|boxes)\b|[台机]|个?节点)
    | (?P<count>\d{{1,3}})\s*-?\s*(?:x\s*)?
      (?:(?:graphics\s+)?(?:gpus?|npus?|cards?)(?![\w-])|of\s(?:them|these|those)\b|[张块片颗枚]\s*(?:显?卡|gpu)?|显?卡)
    | (?P<behind>{_BEHIND})
    | \b[a-z]\d[a-z]?-[a-z]*gpu[a-z]*-(?P<cloud>\d{{1,2}})g\b
    | (?P<size>\d+(?:\.\d+)?\s*(?:[gmt]i?b|gi?))(?:(?![a-z0-9/.-])|(?=x\s*\d))
    | (?P<times>[×*]|(?<=\d)\s*x(?![\w])|(?<=\d)x|\bx(?=\s*\d)|(?<=[a-z])x(?=\d)|(?<!\w)x(?!\w))
    | (?P<number>\d{{1,9}})(?:(?![a-z0-9.])|(?=x[a-z0-9])|(?<!\d\d\d)(?=x))
    | (?P<word>[^{_NO_WORD}]*?\d[^{_NO_WORD}]*?(?=x\d{{1,3}}(?![a-z0-9.])|-mig-\d)
      |(?!-\d)(?:(?!{_BEHIND})[^{_NO_WORD}])+)""",
    re.IGNORECASE | re.VERBOSE,
)
_ENDS = {"part": 0, "either": 0, "open": 1, "close": -1}
"""What ends a clause, and how much deeper in parentheses the next one is."""
_TOKENS = ("mig", "nodes", "in_nodes", "count", "asked", "last", "cloud", "behind", "size", "times", "number", "word")
_MEANS = {"in_nodes": "nodes", "asked": "count", "last": "count", "cloud": "count"}
_COUNTED = regex(
    r"(?:count|quantity|qty|num(?:ber)?|amount|[gn]pus?|cards?|devices?|accelerators?|数量|个数|卡数?)$", re.IGNORECASE
)
_FILLERS = {"", "mig", "gpu", "gpus", "npu", "npus", "cards", "each", "with", "of"}
_MAKERS = {"nvidia", "rtx", "gtx", "tesla", "quadro", "titan", "vgpu", "amd", "radeon", "instinct", "ascend", "昇腾"}
_MAKERS |= {"intel", "gaudi", "apple", "jetson", "tpu"}
_NODES_WORD = regex(r"(?:nodes|machines|servers|hosts|boxes|节点)$", re.IGNORECASE)
_ROLE = regex(
    r"\b(?:train\w*|infer\w*|roll-?outs?|vllm|sglang|generat\w*|serv(?:e|ing)\b|judges?|rewards?|actors?|critics?|"
    r"host|system|peak|used|usage|occupied|free|idle|left|available|for)\b|内存|已用|空闲|训练|推理",
    re.IGNORECASE,
)
"""What a clause says that tells what some of the cards named beside it do, or of memory that is no card's whole."""
_EACH = regex(r"\b(?:each|every|per (?:gpu|card|node)|apiece)\b|每|/\s*(?:gpu|card|node)", re.IGNORECASE)
_IN_ALL = regex(
    r"\b(?:total|altogether|overall|in all|across|spread|over \d+ nodes?)\b|[共计](?!\s*\d*\s*[台机个节])",
    re.IGNORECASE,
)
_CARDS_OWN = regex(r"v-?ram|显存|\b(?:hbm|gddr)\w*", re.IGNORECASE)
_STORAGE = regex(r"\b(?:disks?|ssd|nvme|storage|swap)\b|[硬磁]盘", re.IGNORECASE)
_NOT_A_CARD = regex(
    r"(?:nvlink|pcie|ddr|cuda|cu|py|zero|gen|v|ib|nvl|sxm|hbm|gddr|-)-?\d{0,3}\w?|\d{1,2}\w?", re.IGNORECASE
)
_SHORT_NAME = regex(r"[abhlptv]\d+s?", re.IGNORECASE)
_AS_MANY = mark("{text!r} tells {one} cards and {other}: {one} are counted, write it like {examples}")
_DIVIDED = mark("{count} cards in {nodes} nodes are read as {each} on each: --gpus and --nodes say it otherwise.")
_UNREAD = mark("Of the cards that were told, {words!r} is left out; write them like {examples}")


class CardNames(NamedTuple):
    """What the grammar asks of the names that are known."""

    cards: Callable[[str], frozenset[str]]
    """The cards that a phrase may name."""
    numbers: frozenset[str]
    """Those that are part of a card's name: "4090"."""
    boxes: Mapping[str, tuple[int, str]]
    """Instance of a cloud, or a maker's box, as `box_key` gives it → how many cards of which name it has."""


@dataclass(slots=True)
class CardKind:
    """What a clause tells of cards of one kind; None and "": nothing."""

    text: str
    count: int | None = None
    name: str = ""
    size: str = ""
    mig: str = ""
    """Profile of a part of a card: "3g.20gb"."""
    nodes: int | None = None
    each: bool = False
    """The count is surely that of one node."""
    inside: bool = False
    """In parentheses."""
    other: bool = False
    """Behind an "or": what might be meant instead."""
    bare: bool = False
    """A number and a sign of multiplication alone, "8x": a count where a name is near."""


@dataclass(slots=True)
class CardsTold:
    """What a text tells of the cards of a node."""

    kinds: list[CardKind] = field(default_factory=list)
    nodes: int | None = None
    each: bool = False
    counted: bool = False
    """It says how many cards there are: "3090" does not, "a 3090" and "2x3090" do."""
    notes: list[str] = field(default_factory=list)
    """A sentence on each thing that was left out or may be meant otherwise."""


_GLUED = regex(r"(?<![a-wyz\d.])([a-z]{1,3}\d{2,4}[a-z]?|\d{4})(\d{2,3}gi?b?)\b", re.IGNORECASE)
"""A name and its size without a joint: "A10080GB"."""
_Token = tuple[str, str]
"""A name of `_TOKENS`, or "box", and what stands there."""


def read_told(text: str, names: CardNames) -> CardsTold:
    """The kinds of cards that a text tells, one node's. Counts are as told; whether they can be is the caller's."""
    lines = "\n".join(_lines(text))[:_LONGEST]
    plain = _VIRTUAL.sub(r" \1GB", _WORD.sub(lambda found: _WORDS[found[0].lower()], lines))
    plain = _NOISE.sub(" ", _SCRIPTS.sub(" ", plain))
    plain = _GLUED.sub(lambda found: f"{found[1]} {found[2]}" if names.cards(found[1]) else found[0], plain)
    told = CardsTold()
    for clause in _clauses(plain, names):
        _take(told, clause, names)
    told.kinds = [kind for kind in told.kinds if kind.name or kind.size or not kind.bare]
    known = [kind for kind in told.kinds if names.cards(kind.name)]
    others = [kind for kind in told.kinds if known and kind.name and kind not in known and not kind.size]
    others = [kind for kind in others if kind.count is None or "!" in kind.name]  # "8xA100, NVLink3"; "ERR!"
    told.kinds = [kind for kind in told.kinds if kind not in others]
    told.notes += [say(_UNREAD, words=clean_line(kind.name, 60), examples=EXAMPLES) for kind in others]
    counted = len(told.kinds) > 1 or any(kind.count is not None for kind in told.kinds)
    told.counted = counted or _ONE.search(plain) is not None
    _divide(told, plain)
    return told


def box_key(text: str) -> str:
    return re.sub(r"[-_.\s]+", " ", text.lower()).strip()


def size_in(name: str) -> str:
    found = SIZE.search(name)
    return found[0] if found else ""


def _lines(text: str) -> list[str]:
    """Lines, those of a list or a table without what is no card's name or size; MIG instances below their card."""
    lines = [clean_line(line, 600) for line in text.splitlines()[:256]]
    rows = [int(found[1]) for line in lines if (found := _ROW.match(line))]
    is_table = rows == sorted(set(rows)) and (len(rows) > 1 or rows == [0])
    columns, read, at = list[str](), list[str](), dict[str, int]()
    for line in lines:
        cells, drawn = line.split(","), _DRAWN.match(line)
        if len(lines) > 1 and _ASIDE.search(line) and (line[:4].lower() == "gpu[" or not _OF_LIST.match(line)):
            continue
        if _HEADER.search(line):
            columns = [cell.split("[")[0].strip(" #'\"").lower() for cell in cells]
        elif len(cells) == len(columns):
            row = dict(zip(columns, map(str.strip, cells), strict=True))
            size = row.get("memory.total", "")
            read.append(f"1 x {row.get('name') or row.get('gpu_name')} {size}{' MiB' * size.isdecimal()}")
        elif drawn is None:
            named = _ROW.sub("1 x ", line) if is_table else line
            read.append(_OF_LIST.sub(lambda ids: f"{(ids[1] or '').count(',') + 1} x ", named))
        elif drawn["name"]:
            at[drawn[1]] = len(read)
            read.append(f"1 x {drawn['name']}")
        elif drawn["part"] and drawn[1] in at:
            read[at[drawn[1]]] += f"\nMIG {int(drawn['part']) / 1024:.2f}gb"
    return read


def _clauses(text: str, names: CardNames) -> Iterator[CardKind]:
    tokens: list[_Token] = []
    begins, inside, at, other = 0, 0, 0, False
    while (found := _TOKEN.search(text, at)) is not None:
        box, at = _box_at(text, found.start(), names) or ("", found.end())
        end = next((what for what in _ENDS if found[what]), None)
        if end is not None:
            yield replace(_clause(text[begins : found.start()], tokens, names), inside=inside > 0, other=other)
            begins, tokens, other, inside = found.end(), [], end == "either", max(0, inside + _ENDS[end])
        elif box:
            tokens.append(("box", box))
        else:
            if found["kind"] and any(map(str.isdigit, found["kind"])):  # "gpu:a100:4"
                tokens.append(("word", found["kind"]))
            what = next(what for what in _TOKENS if found[what])
            said = str(int(found["last"]) - int(found["first"]) + 1) if what == "last" else found[what]
            tokens.append((_MEANS.get(what, what), said))
            if found["slices"]:
                tokens.append(("count", found["slices"]))
    yield replace(_clause(text[begins:], tokens, names), inside=inside > 0, other=other)


def _box_at(text: str, at: int, names: CardNames) -> tuple[str, int] | None:
    """The longest name of a box that begins here, and where it ends."""
    if not names.boxes or (at and text[at - 1].isalnum()):
        return None
    ends = [at + found.end() for found in re.finditer(r"(?<=\w)(?!\w)", text[at : at + 40])]
    return next(((key, end) for end in reversed(ends) if (key := box_key(text[at:end])) in names.boxes), None)


def _clause(text: str, tokens: list[_Token], names: CardNames) -> CardKind:
    """What a clause tells: each number is a factor (beside a sign), a count, nodes, or part of a name."""
    kind, box = CardKind(text.strip()), None
    words, factors, loose = dict[int, str](), dict[int, int](), dict[int, int]()
    units, ahead = list[int](), list[int]()
    for at, (what, said) in enumerate(tokens):
        card, counted = any(map(_is_card, words.values())), all(map(_COUNTED.match, words.values()))
        signs = [place for place in (at - 1, at + 1) if 0 <= place < len(tokens) and tokens[place][0] == "times"]
        others = [tokens[place][0] for place in (2 * sign - at for sign in signs) if 0 <= place < len(tokens)]
        is_name = said in names.numbers or not signs or "number" in others or "count" in others  # "3090 x 2"
        if what == "box":
            box = names.boxes[said]
            words[at] = box[1]
        elif what == "number" and len(said) > 2 and is_name:
            words[at] = said
        elif what in ("number", "count") and signs:
            factors[at] = int(said)
        elif what == "count" or (what == "behind" and (kind.size or kind.mig or card or counted)):
            units.append(int(re.sub(r"\D", "", said)))
        elif what == "number" and _card_follows(tokens[at + 1 :]):
            ahead.append(int(said))
        elif what == "number":
            loose[at] = int(said)
        elif what == "nodes":
            kind.nodes = int(said)
        elif what == "mig":
            kind.mig = said.lower().removeprefix("mig").strip(" -")
        elif what == "size":
            kind.size = said
        elif what == "word" and _NODES_WORD.match(said) and loose and kind.nodes is None:
            kind.nodes = loose.pop(min(loose))  # "2 8xA100 nodes"
        elif what == "word" and said.lower().strip(":：-") not in _FILLERS:
            words[at] = said
    if len(factors) == 2:  # "2 x 8 x A100", "A100 x 8 x 2"
        first, second = factors
        kind.nodes, kind.each = factors.pop(first if not words or max(words) > second else second), True
    numbers = [*ahead, *factors.values()]
    if loose and not numbers and not units:  # "8", "A100 8"
        at, name = max(loose), " ".join(words[place] for place in sorted(words))
        if len(tokens) == 1 or (at == len(tokens) - 1 and names.cards(name) and not names.cards(f"{name} {loose[at]}")):
            units.append(loose.pop(at))
    words |= {} if box else {at: str(number) for at, number in loose.items()}
    name = " ".join(words[at] for at in sorted(words))
    of_maker = kind.size and not _MAKERS.isdisjoint(name.lower().split())
    named = any(map(_is_card, name.split())) or bool(of_maker or names.cards(name) or (factors and not kind.size))
    kind.name = name if named and not _STORAGE.search(text) else ""
    kind.count = next(iter([*units, *([box[0]] if box else []), *numbers]), None)
    if box and kind.nodes is None and numbers and numbers[0] != kind.count:  # "4x DGX H100"
        kind.nodes = numbers[0]
    kind.bare = bool(factors) and tokens[0][0] == "number" and not (kind.name or kind.size or kind.mig or kind.nodes)
    return kind


def _card_follows(tokens: list[_Token]) -> bool:
    """Whether a size comes next, or the next few words have a card's among them, before another number."""
    for place, (what, said) in enumerate(tokens[:5]):
        if what in ("number", "count", "times", "nodes"):
            return what == "number" and len(said) > 2
        is_card = what == "word" and (_is_card(said) or said.lower() in {*_MAKERS, "gpu", "gpus"})
        if is_card or what in ("box", "mig") or (what == "size" and place == 0):
            return True
    return False


def _is_card(word: str) -> bool:
    """Whether a word looks like a card's name, known or not."""
    bare = word.strip(":：.")
    if bare.isdecimal():
        return len(bare) > 2
    return _SHORT_NAME.fullmatch(bare) is not None or (
        any(map(str.isdigit, bare)) and _NOT_A_CARD.fullmatch(bare) is None
    )


def _take(told: CardsTold, kind: CardKind, names: CardNames) -> None:
    """Add a clause to what was told before it."""
    last, known = told.kinds[-1] if told.kinds else None, names.cards(kind.name)
    of_role = _ROLE.search(kind.text) is not None  # of the cards told before, "8 GPUs: 4x A100", "8xA100 (2x 40GB)"
    more = last and (kind.name if not last.name else kind.size if kind.inside and not kind.name else "")
    if kind.other and last is not None and (kind.count or known):
        told.notes.append(say(_UNREAD, words=kind.text, examples=EXAMPLES))
        if last.name or not kind.name:
            return
        kind.count = kind.nodes = None
    if not of_role:
        told.nodes, told.each = told.nodes or kind.nodes, told.each or kind.each
    if last is None:
        told.kinds += [kind] if kind.name or kind.size or kind.mig or kind.count is not None else []
    elif (
        told.nodes
        and kind.count
        and last.count == kind.count * told.nodes
        and not (of_role or (kind.name and last.name))
    ):
        last.name, last.size = last.name or kind.name, last.size or kind.size  # "16 GPUs (2 nodes x 8)"
        last.count, last.bare, told.each = kind.count, False, True
    elif more and not last.size and not kind.nodes and 0 < (kind.count or 0) < (last.count or 0):
        told.kinds.insert(-1, replace(kind, name=kind.name or last.name))
        last.count = (last.count or 0) - (kind.count or 0)
    elif kind.name:
        if not last.name and kind.count in (None, last.count) and (known or kind.size or not kind.inside):
            told.kinds[-1] = replace(kind, count=last.count, size=last.size or kind.size, mig=last.mig or kind.mig)
        elif kind.inside and (kind.count is None or known & names.cards(last.name)):  # "A10G (g5.12xlarge)"
            last.count, last.size = last.count or kind.count, last.size or kind.size or size_in(kind.name)
            last.name = kind.name if known and not names.cards(last.name) else last.name  # "GH100 [H100 SXM5 80GB]"
        else:
            told.kinds.append(kind)
    elif kind.mig and last.mig and not (kind.inside and kind.mig == last.mig):
        told.kinds.append(replace(kind, name=last.name, size=last.size))
    elif kind.mig:
        last.mig, last.count = kind.mig, kind.count or last.count
    elif kind.count is None or of_role:
        alone = re.search(r"[^\W\d]{2}", _CARDS_OWN.sub("", SIZE.sub("", kind.text))) is None
        if not of_role and (alone or kind.inside or _EACH.search(kind.text)):
            last.size = last.size or kind.size
    elif last.count in (None, kind.count):
        last.count, last.size = kind.count, last.size or kind.size
    elif kind.size and last.name:  # "two 40G A100 and one 80G"
        told.kinds.append(replace(kind, name=SIZE.sub("", last.name)))
    else:
        told.notes.append(say(_AS_MANY, text=kind.text, one=last.count, other=kind.count, examples=EXAMPLES))


def _divide(told: CardsTold, text: str) -> None:
    """Share out among the nodes what was told of all: by a word for it, or because no node has as many."""
    counts = [kind.count or 1 for kind in told.kinds]
    of_all = sum(counts) > MOST_OF_A_NODE or _IN_ALL.search(text)
    if told.nodes in (None, 0, 1) or told.each or _EACH.search(text) or not of_all:
        return
    nodes = told.nodes or 1
    if any(count % nodes for count in counts):
        told.nodes = None
        told.notes.append(say(_UNREAD, words=say("{count} nodes", count=nodes), examples=EXAMPLES))
        return
    for kind, count in zip(told.kinds, counts, strict=True):
        kind.count = count // nodes
    told.notes.append(say(_DIVIDED, count=sum(counts), nodes=nodes, each=sum(counts) // nodes))
