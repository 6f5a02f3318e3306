"""Finds the settings that a person names in a sentence: `key=8`, "key set to 8", "8 key", `key` 为 8.

A sentence counts where it tells what was run; one that proposes what could be set names nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from advisor.regex import regex

_KEY = rb"(?=\w*[._]\w)[A-Za-z]\w*(?:\.\w+)*"
_VALUE = rb"-?\d(?:[\w.]*\w)?|[Tt]rue|[Ff]alse|zero\d\w*|\"[^\"$`\n]*\""
_LINK = (
    rb"(?:[ \t]+(?=\d)|[ \t]+(?:is|was|to|of|at|as|set[ \t]+to|=)[ \t]+|[ \t]*(?:=|:)[ \t]*|[ \t]*(?:%s)[ \t]*)"
    % "|".join(("设置为", "设为", "设成", "改为", "改成", "调到", "降到", "降低到", "为", "是")).encode()
)
_NAMED = regex(
    rb"(?<![\w./$-])(?:--([A-Za-z][\w.-]*)(?:=|[ \t]+)|[`\"']?(" + _KEY + rb")[`\"']?(?:={1,2}|" + _LINK + rb"))"
    rb"[`\"']?(" + _VALUE + rb")(?![\w(/])"
)
_LENGTH = rb"(?:prompt|completion|response|sequence|seq|context|input|token|cutoff)s?[- ]?len(?:gth)?"
_PHRASE = (
    rb"(?:per[- ]device[- ]|train(?:ing)?[- ]|micro[- ]?|eval(?:uation)?[- ])?batch[- ]?size"
    rb"(?:[- ]per[- ](?:device|gpu))?|num[- ]workers|gradient[- ]accumulation(?:[- ]steps)?"
    rb"|num(?:ber[- ]of)?[- ]generations"
    rb"|(?:max(?:imum)?[- ])?" + _LENGTH + rb"|max(?:imum)?[- ](?:new[- ])?tokens"
    rb"|(?:vllm[- ])?gpu[- ]mem(?:ory)?[- ]util(?:i[sz]ation)?"
)
"""Names of settings as people say them: keys of no framework, which their spelling tells."""
_SAID = regex(
    rb"(?<![\w-])("
    + _PHRASE
    + rb")(?:[ \t]*(?:=|:)[ \t]*|[ \t]*(?:is|was|(?:set )?to|of|at|as)?[ \t]+|"
    + _LINK
    + rb")"
    rb"(\d+(?:\.\d+)?)(?![\w%.]*\w)",
    re.IGNORECASE,
)
_STAGE = regex(rb"(?i)(?<![a-z_])zero[- ]?(?:stage[- ]?)?([123])(?!\d)")
_COUNTED = regex(rb"(?<![\w.=:/-])(\d+(?:\.\d+)?)[ \t]+[`\"']?(" + _KEY + rb")(?![\w(=./])")
"""A number before its key: "0.32 gpu_memory_utilization"."""
_FILE = regex(rb"\.(?:py|sh|jsonl?|ya?ml|toml|log|txt|md|c|cc|cpp|cu|so|bin|pt|pth|safetensors|parquet|com|org|io)\Z")
_SENTENCE = regex(rb"[^\n]+?(?:[.!?;](?=\s)|\xe3\x80\x82|\xef\xbc\x9b|\n|\Z)")
_PROPOSES = regex(
    rb"\b(?:try|should|would|could|recommend\w*|suggest\w*|instead|if|consider|please|need(?:s)? to)\b"
    rb"|\xe5\xbb\xba\xe8\xae\xae|\xe8\xaf\x95\xe8\xaf\x95|\xe5\xa6\x82\xe6\x9e\x9c",
    re.IGNORECASE,
)
"""Words of a sentence that speaks of what could be set, not of what is (建议, 试试, 如果 as the last three)."""
_MAY_PROPOSE = regex(
    rb"\b(?:set(?! to)|setting|use|using|defaults?|increase|decrease|reduce|lower|raise|e\.g|example|adjust)\b",
    re.IGNORECASE,
)
_CAUSED = regex(
    rb"(?i)(?:\b(?:caus|lead|result|giv|trigger)\w*|\b(?:goes|went|gets?|got|runs?|ran)\b|\bif (?:i|we)\b).{0,60}"
    rb"\b(?:ooms?|out of memory)\b|" + "(?:就|会|导致|直接).{0,12}(?:OOM|oom|爆|显存不足|内存不足)".encode()
)
_AVERTS = regex(rb"(?i)\b(?:avoid|prevent|without|try|should|recommend\w*|suggest\w*|please|instead)\b")
"""A sentence in which a value made it run out tells what was run, whatever its mood; not where it says what to do."""
_IS_SO = regex(
    rb"\bI\b|\b(?i:we|my|our|even|only|currently|still|started?|starts|runs?|ran|was)\b"
    + "|我|目前|现在|已经|即使|仍然|还是".encode()
)
"""Words of a sentence that tells what was done, whatever else it holds."""
_SIZED = r"\d[\d.]*(?: ?billion|[bB](?![A-Za-z0-9]))(?:-[A-Za-z0-9-]+)?"
_WORD = regex(rf"[A-Za-z][A-Za-z0-9._-]+|(?<![\w.])(?:{_SIZED}|\d\.\d)")
"""Words, sizes of models ("7B", "15 billion") and versions ("3.1")."""
MOST_WORDS = 1_000


class SentenceSetting(NamedTuple):
    """A setting in a sentence: its key, where its value stands, and both together."""

    key: str
    start: int
    end: int
    whole: tuple[int, int]


def named_in_sentences(data: bytes) -> Iterator[SentenceSetting]:
    """The settings that the sentences of one line or text say are in force, in order."""
    for sentence in _SENTENCE.finditer(data):
        text = sentence[0]
        proposes = _PROPOSES.search(text) or (_MAY_PROPOSE.search(text) and not _IS_SO.search(text))
        caused = _CAUSED.search(text) and not _AVERTS.search(text)
        if (proposes and not caused) or text.lstrip().startswith(b"#"):
            continue
        yield from settings_named(text, sentence.start())


def settings_named(text: bytes, at: int = 0) -> Iterator[SentenceSetting]:
    """The settings that a sentence names with their values, whatever it says of them, in order. `at`: its place."""
    found = {one.start(3): _of(at, one[1] or one[2].lower(), one, 3) for one in _NAMED.finditer(text)}
    for one in _COUNTED.finditer(text):
        found.setdefault(one.start(1), _of(at, one[2].lower(), one, 1))
    for one in _SAID.finditer(text):
        key = re.sub(rb"[- ]+", b" ", one[1].lower()).replace(b"maximum", b"max").replace(b"number of", b"num")
        found.setdefault(one.start(2), _of(at, key, one, 2))
    for one in _STAGE.finditer(text):
        found.setdefault(one.start(1), _of(at, b"zero_stage", one, 1))
    yield from (named for _, named in sorted(found.items()) if not _FILE.search(named.key.encode()))


def words_in(data: bytes) -> tuple[str, ...]:
    """The words of a text, each once, the first `MOST_WORDS` of them."""
    found = dict.fromkeys(word.rstrip(".-") for word in _WORD.findall(data.decode("utf-8", "replace")))
    return tuple(islice(found, MOST_WORDS))


def _of(at: int, key: bytes, found: re.Match[bytes], value: int) -> SentenceSetting:
    start, end = found.span(value)
    whole = at + found.start(), at + found.end()
    return SentenceSetting(key.rstrip(b".").decode("utf-8", "replace"), at + start, at + end, whole)
