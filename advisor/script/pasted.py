"""Reads settings out of a text that is no well-formed file: YAML or JSON without head or end, assignments, sentences.

Each line is looked at by itself, so nothing that stands around a setting hides it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from advisor.hostile import clean
from advisor.regex import regex
from advisor.script.document import Document, Setting
from advisor.script.keyed import KeyedEntry, read_json_part, settings_of
from advisor.script.launcher import find_launcher

_LINE = regex(rb"[^\n]*\n?")
_LEAD = rb"[ \t>]*(?:(?:[-*+]|\d{1,2}[.)])[ \t]+)?"
"""What stands before a line that is quoted, or an item of a list."""
_KEYED = regex(rb"(" + _LEAD + rb")[\"']?([A-Za-z_][\w.-]*)[\"']?[ \t]*:(?:[ \t]+|(?=\r?\n|\Z))([^\n]*)")
_VALUE = regex(rb"(\"[^\"\n]*\"|'[^'\n]*'|\[[^\]\n]*\]|[^\s#,;{}\"'`]+),?[ \t]*(?:#[^\n]*)?\r?\n?\Z")
_NO_VALUE = regex(rb"[ \t]*(?:#[^\n]*)?\r?\n?\Z")
_ASSIGNED = regex(
    rb"(" + _LEAD + rb")(?:export[ \t]+)?`?([A-Za-z_][\w.]*)([ \t]*)={1,2}[ \t]*"
    rb"(\"[^\"$`\n]*\"|'[^'\n]*'|[^\s,;#$`()'\"=]+)`?[ \t]*,?[ \t\\]*(?:#[^\n]*)?\r?\n?\Z"
)
_LITERAL = regex(rb"-?[\d.]+(?:e[-+]?\d+)?|true|false|none|null|\"[^\n]*\"|'[^\n]*'", re.IGNORECASE)
_OBJECT = regex(rb"\{\s*(?:\"[^\"\n]+\"|'[^'\n]+')\s*:")
_OF_PYTHON = regex(rb"\{\s*'")
_TO_JSON = {b"'": b'"', b"True": b"true", b"False": b"false", b"None": b"null"}
"""Spellings of Python and of JSON, of one length."""
_PYTHON_WORD = regex(rb"'|\b(?:True|False|None)\b")
_HEAD = regex(rb"(?:^|\n)" + _LEAD + rb"[`\"']?([A-Za-z_]\w*_config)[`\"']?[ \t]*[:=][ \t]*\Z")
"""The name before an object that is a part of a config."""
_ROW = regex(
    rb"[ \t]*\|[ \t]*[`*]*([A-Za-z]\w*(?:[._]\w+)+)[`*]*[ \t]*"
    rb"\|[ \t]*[`*]*(\"[^\"|\n]*\"|[^\s|`*]+)[`*]*[ \t]*(?=\||\r?\n|\Z)"
)
"""A row of a Markdown table: a setting and its value."""
_ITEM = regex(rb"[ \t>]*(?:[-*+]|\d{1,2}[.)])[ \t]+")
_NAME, _TEXT = r"[\"'`]([A-Z][A-Z0-9]*_[A-Z0-9_]+)[\"'`]", r"[\"'`]([^\"'`\n]*)[\"'`]"
_SET_VARIABLE = regex(
    (
        rf"\benviron(?:\[|\.setdefault\(|\.update\(\{{)[ \t]*{_NAME}\]?[ \t]*[=,:][ \t]*{_TEXT}"
        rf"|\bputenv\([ \t]*{_NAME},[ \t]*{_TEXT}"
        r"|(?:^|(?<=[\s`]))(?:export|%env)[ \t]+([A-Z][A-Z0-9]*_[A-Z0-9_]+)=[\"']?([\w.:,/-]*)"
    ).encode(),
    re.MULTILINE,
)
"""A variable of the environment that a line of Python, of a notebook or of a shell sets."""
_LONGEST_HEAD = 120
"""Bytes in which the name before an object is looked for."""
FEWEST = 2
"""Settings that make a text one of settings."""


class _Found(Struct):
    """What is read so far: entries, and the bytes that are spoken for."""

    entries: list[KeyedEntry]
    taken: list[tuple[int, int]]

    def is_free(self, at: int) -> bool:
        return not any(start <= at < end for start, end in self.taken)


def pasted_settings(document: Document) -> tuple[Setting, ...]:
    """Every setting that the text names with its value; of a key that stands twice the first is in force. Assignments
    of a text that runs something are its own variables, and no settings."""
    found = _Found([], [])
    _objects(document, found)
    _rows(document.data, found)
    _keyed_lines(document.data, found)
    if not _runs(document.data):
        _assignments(document.data, found)
        _in_sentences(document.data, found)
    first: dict[str, KeyedEntry] = {}
    for entry in found.entries:
        first.setdefault(entry.key, entry)
    return tuple(settings_of(document, sorted(first.values(), key=lambda entry: entry.start)))


def blocks_in(document: Document) -> tuple[KeyedEntry, ...]:
    """What a page names as settings in blocks: objects, lists and tables of settings, keys below their heads."""
    found = _Found([], [])
    _objects(document, found)
    _rows(document.data, found)
    lines = _Found([], found.taken)
    _keyed_lines(document.data, lines)
    for entry in lines.entries:
        line = document.data.rfind(b"\n", 0, entry.start) + 1
        if "." in entry.key or ("_" in entry.key and _ITEM.match(document.data, line)):
            found.entries.append(entry)
    return tuple(found.entries)


ENGINE_CALL = "LLM"
"""The call that makes vLLM's engine, before the names of its arguments."""
_ENGINE = regex(rb"^[ \t]*(?:\w[\w.]*[ \t]*=[ \t]*)?(?:\w+\.)*LLM(?=\()", re.MULTILINE)
_HERE = regex(rb"<<-?[ \t]*[\"'\\]?\w")
_LONGEST_CALL, _MOST_BRACKETS = 4_000, 40
"""Bytes of a call, and brackets that may close it."""


def engine_arguments(data: bytes) -> list[Setting]:
    """The literal arguments of an engine that is made in Python, where such a call was pasted beside a command."""
    call = _ENGINE.search(data) if _HERE.search(data) is None else None
    if call is None:
        return []
    text = data[call.end() : call.end() + _LONGEST_CALL].decode("utf-8", "replace")
    ends = (at + 1 for at, character in enumerate(text) if character == ")")
    for end in islice(ends, _MOST_BRACKETS):
        with suppress(SyntaxError, ValueError, RecursionError):
            tree = ast.parse(f"f{text[:end]}", mode="eval").body
            given = [(one.arg, one.value) for one in tree.keywords if one.arg] if isinstance(tree, ast.Call) else []
            known = {name: str(value.value) for name, value in given if isinstance(value, ast.Constant)}
            known.pop("model", "")
            return [Setting(f"{ENGINE_CALL}.{clean(name)}", clean(text), "file") for name, text in known.items()]
    return []


def variables_in(data: bytes) -> dict[str, str]:
    """The variables of the environment that a text says are set; of one that is set twice the first counts."""
    found: dict[str, str] = {}
    for one in _SET_VARIABLE.finditer(data):
        name, text = (part.decode("utf-8", "replace") for part in one.groups() if part is not None)
        found.setdefault(name, text)
    return found


def keyed_lines(document: Document) -> list[Setting]:
    """The lines `key: value` of a text that also runs something: a config that was pasted behind its command."""
    found = _Found([], [])
    _keyed_lines(document.data, found)
    return settings_of(document, found.entries)


def _runs(data: bytes) -> bool:
    """Whether a line is a command that runs something."""
    lines = (line.split() for line in data.decode("utf-8", "replace").splitlines())
    return any(find_launcher(words) is not None for words in lines if words)


def _objects(document: Document, found: _Found) -> None:
    """Objects of JSON or Python, as far as they go, those of Python below their names."""
    for opening in _OBJECT.finditer(document.data):
        if not found.is_free(opening.start()):
            continue
        of_python = _OF_PYTHON.match(document.data, opening.start()) is not None
        head = _HEAD.search(document.data[: opening.start()][-_LONGEST_HEAD:]) if of_python else None
        prefix = f"{head[1].decode()}." if head is not None else ""
        text = _as_json(document) if of_python else document
        keyed, end = read_json_part(text, opening.start())
        found.entries += [replace(entry, key=prefix + entry.key) for entry in keyed.entries]
        found.taken.append((opening.start(), end))


def _as_json(document: Document) -> Document:
    """The text with Python's quotes and words spelled as JSON spells them, every byte at its place."""
    data = _PYTHON_WORD.sub(lambda word: _TO_JSON[word[0]], document.data)
    return replace(document, data=data)


def _rows(data: bytes, found: _Found) -> None:
    """The rows of tables that have a setting and its value."""
    for line in _LINE.finditer(data):
        row = _ROW.match(line.group()) if found.is_free(line.start()) else None
        if row is not None:
            start, end = (line.start() + at for at in row.span(2))
            found.entries.append(_entry(row[1].decode("utf-8", "replace"), data, start, end))
            found.taken.append((line.start(), line.end()))


class _KeyedLine(Struct, frozen=True):
    """A line `key: value`; `value` None: a head."""

    at: int
    indent: int
    name: str
    value: tuple[int, int] | None


def _keyed_lines(data: bytes, found: _Found) -> None:
    """Lines `key: value` that stand together, under the heads that they are indented below."""
    block: list[_KeyedLine] = []
    for line in _LINE.finditer(data):
        if not line.group().strip() or line.group().lstrip(b" \t>").startswith(b"#"):
            continue
        one = _keyed_line(line) if found.is_free(line.start()) else None
        if one is None:
            _take(block, data, found)
            block = []
        else:
            block.append(one)
    _take(block, data, found)


def _keyed_line(line: re.Match[bytes]) -> _KeyedLine | None:
    named = _KEYED.match(line.group())
    if named is None:
        return None
    lead, name, text = named.groups()
    indent = len(lead.expandtabs()) if not lead.strip(b" \t>") else 0
    key = name.decode("utf-8", "replace")
    if _NO_VALUE.match(text):
        return _KeyedLine(line.start(), indent, key, None)
    value = _VALUE.match(text)
    if value is None:
        return None
    start = line.start() + named.start(3)
    return _KeyedLine(line.start(), indent, key, (start, start + len(value.group(1))))


def _take(block: list[_KeyedLine], data: bytes, found: _Found) -> None:
    """The settings of a block; none of one whose names are those of prose ("Platform: Linux")."""
    if not any("_" in one.name for one in block):
        return
    heads: list[tuple[int, str]] = []
    for one in block:
        while heads and heads[-1][0] >= one.indent:
            heads.pop()
        if one.value is None:
            heads.append((one.indent, one.name))
            continue
        key = ".".join((*(name for _, name in heads), one.name))
        found.entries.append(_entry(key, data, *one.value))
        found.taken.append((one.at, one.value[1]))


def _entry(key: str, data: bytes, start: int, end: int) -> KeyedEntry:
    text = data[start:end].decode("utf-8", "replace")
    return KeyedEntry(key, text.strip("'\""), start, end, "plain", start)


def _assignments(data: bytes, found: _Found) -> None:
    """Lines `name = value`: arguments of a call, or variables of a script; names in small letters."""
    for line in _LINE.finditer(data):
        named = _ASSIGNED.match(line.group()) if found.is_free(line.start()) else None
        if named is None or (named.group(3) and not _LITERAL.fullmatch(named.group(4))):
            continue
        start, end = (line.start() + at for at in named.span(4))
        found.entries.append(_entry(named.group(2).decode("utf-8", "replace").lower(), data, start, end))
        found.taken.append((line.start(), line.end()))


def _in_sentences(data: bytes, found: _Found) -> None:
    """Settings amid other words, outside of what is read already."""
    for line in _LINE.finditer(data):
        if found.is_free(line.start()):
            at = line.start()
            named = (one for one in named_in_sentences(line.group()) if found.is_free(at + one.start))
            found.entries += [_entry(one.key, data, at + one.start, at + one.end) for one in named]


_KEY = rb"(?=\w*[._]\w)[A-Za-z]\w*(?:\.\w+)*"
_SAID_VALUE = rb"-?\d(?:[\w.]*\w)?|[Tt]rue|[Ff]alse|zero\d\w*|\"[^\"$`\n]*\""
_LINK = (
    rb"(?:[ \t]+(?=\d)|[ \t]+(?:is|was|to|of|at|as|set[ \t]+to|=)[ \t]+|[ \t]*(?:=|:)[ \t]*|[ \t]*(?:%s)[ \t]*)"
    % "|".join(("设置为", "设为", "设成", "改为", "改成", "调到", "降到", "降低到", "为", "是")).encode()
)
_NAMED = regex(
    rb"(?<![\w./$-])(?:--([A-Za-z][\w.-]*)(?:=|[ \t]+)|[`\"']?(" + _KEY + rb")[`\"']?(?:={1,2}|" + _LINK + rb"))"
    rb"[`\"']?(" + _SAID_VALUE + rb")(?![\w(/])"
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
    """The words of a text, each once, the first `MOST_WORDS` of them; no call's name, "model.compile()"."""
    text = data.decode("utf-8", "replace")
    named = (word for word in _WORD.finditer(text) if not text.startswith("()", word.end()))
    found = dict.fromkeys(word[0].rstrip(".-") for word in named)
    return tuple(islice(found, MOST_WORDS))


def _of(at: int, key: bytes, found: re.Match[bytes], value: int) -> SentenceSetting:
    start, end = found.span(value)
    whole = at + found.start(), at + found.end()
    return SentenceSetting(key.rstrip(b".").decode("utf-8", "replace"), at + start, at + end, whole)
