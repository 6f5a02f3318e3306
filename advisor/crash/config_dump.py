"""The resolved configuration that training logs print, as flat native keys: what really ran, whatever the script says.

Read: verl's pprint of a dict, EasyR1's JSON dump, hydra's "overrides: […]", commands (command_lines.py), DeepSpeed's
"key ...... value" lines, `Arguments(key=value, …)` blocks of transformers-based trainers, what their Trainer says of a
pass as it begins, and lists (printed_lists.py); apart from that, what a person who pasted the log says that it ran
with. Nothing is executed: only literals are parsed, and only up to a bounded size.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from advisor.crash.command_lines import commands_in, words_of
from advisor.crash.lines import LogLine
from advisor.regex import regex
from advisor.script.document import Document
from advisor.script.pasted import blocks_in, named_in_sentences, variables_in

_LITERAL_LIMIT = 200_000
_BLOCK_LINES = 1_500
_KEYS = 3_000
_OVERRIDES = regex(r"Error executing job with overrides: (\[.*\])")
_DEEPSPEED = regex(r"^ {0,4}([a-z_][\w.]{1,60}) \.{3,60} (.{0,200})$")
_TRACED = regex(r"^\++ (?:\w+=\S* )*(?:\S*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|swift|ray)\b")
_PAIR = regex(r"^\s*([A-Za-z_][\w.]{0,60})=(.{0,400}?),?\s*\)?\}?$")
_CLASS = r"(?:\w{0,40}(?:Arguments|Args|Config|Namespace)|args: ?\w{0,40})\("
_ARGUMENTS = regex(rf"^(?:\[INFO:\w{{1,20}}\] )?{_CLASS}$")
_WITHIN = regex(rf"^\{{?\s*(?:['\"]\w{{1,60}}['\"]: )?{_CLASS}(?P<pair>[A-Za-z_]\w{{0,60}}=.*)$")
"""A block that begins on the line of its first pair, as pprint breaks it."""
_PLAIN = r"'[^'\n]{0,300}'|-?[\d.]{1,20}(?:e-?\d{1,3})?|True|False"
_ENTRY = regex(r"\s{0,200}\{?(?P<quote>['\"])(?P<key>[A-Za-z_]\w{0,60})(?P=quote): ")
_ENDS = regex(rf"({_PLAIN}|None)[\s,}}\]]*$")
"""A key of a dictionary that pprint breaks over lines, and a plain value to the end of its line."""
_LEAST = 3
"""Such lines of one process, or of a list, that are a configuration; fewer are sentences (judgement)."""
_ON_ONE_LINE = regex(r"\b(\w{0,40}(?:Arguments|Config|Namespace)\([A-Za-z_]\w*=.*\))\s*$")
_HYDRA = regex(r"^[+~]{0,2}([A-Za-z_][\w./@-]{0,200})=(.*)$", re.DOTALL)
_ASKED = regex(r"^--?([A-Za-z][\w.-]{1,80})(?:=(.*))?$", re.DOTALL)
_BANNER_KEYS = {
    "instantaneous batch size per device": "per_device_train_batch_size",
    "batch size per device": "per_device_train_batch_size",
    "gradient accumulation steps": "gradient_accumulation_steps",
}
_BANNER = regex(rf"(?i)\b({'|'.join(_BANNER_KEYS)}) = ([1-9]\d{{0,5}})(?=\s*(?:\||$))")
"""transformers trainer.py _inner_training_loop, unsloth models/_utils.py; the keys are TrainingArguments'."""
_IN_PERSON = regex(r"^(?=.{0,200}(?:\bI(?:['’](?:m|ve))? |\b[Ww]e(?:['’](?:re|ve))? |\b[Mm]y |我))[^\[({|+/\\]")
"""A sentence in the first person, which no library prints."""
_BEGINS = regex(rf"{_IN_PERSON.pattern}|(?=(?:\S+ ){{6}})[A-Za-z`][^\[({{|/\\:]{{30}}")
_GOES_ON = regex(r"[A-Za-z\u4e00-\u9fff`-](?:[^\[({|+/\\]{0,40} |[^\[({|+/\\]{0,40}\Z)")
"""A line of words."""
_CHINESE, _A_FEW = re.compile(r"[\u4e00-\u9fff]"), 4
"""Characters that a person's line has: what trains prints none (judgement)."""
_OMITTED = frozenset(("[...]", "{...}"))


def settings_in(lines: Sequence[LogLine]) -> dict[str, str]:
    """Flat native keys → text. A full dump outranks overrides, overrides outrank a traced command line."""
    found: dict[str, str] = {}
    for source in (_dumps, _by_columns, _argument_blocks, _own_lines, _overrides, _command_lines, listed_settings):
        for key, value in source(lines):
            if len(found) < _KEYS:
                found.setdefault(key, value)
    return found


def _dumps(lines: Sequence[LogLine]) -> Iterator[tuple[str, str]]:
    """Python or JSON dictionaries printed over several lines by one process."""
    index = 0
    while index < len(lines):
        text = lines[index].text.strip()
        opens = text == "{" or text.startswith(("{'", '{"')) or text.endswith("= {")
        end, literal = _balanced(lines, index) if opens else (index, "")
        held = _parsed(literal) if opens else None
        # a metrics line is a flat dictionary on one line; a configuration is nested or spans many
        nested = isinstance(held, Mapping) and any(isinstance(v, Mapping) for v in held.values())
        if isinstance(held, Mapping) and held and (end - index > 2 or nested):
            yield from flatten(held)
            index = max(end, index)
        index += 1


def _by_columns(lines: Sequence[LogLine]) -> Iterator[tuple[str, str]]:
    """The plain pairs of a dictionary that pprint breaks over lines, which holds more than literals, or of which the
    log shows a part: a key belongs to the one before it that stands further to the left."""
    open_rows: dict[str, list[tuple[int, str, str | None]]] = {}
    for line in lines:
        within = line.text[:1].isspace() or line.text.startswith("{")
        if (row := list(_row(line.text))) and (row[-1][2] is not None or len(row) > 1 or within):
            open_rows.setdefault(line.process, []).extend(row)
        elif open_rows and not line.text[:1].isspace():
            yield from _of_rows(open_rows.pop(line.process, ()))
    for rows in open_rows.values():
        yield from _of_rows(rows)


def _row(text: str) -> Iterator[tuple[int, str, str | None]]:
    """(column, key, value) of each key on a line; None for the value where it is a dictionary or no plain one."""
    at = 0
    while found := _ENTRY.match(text, at):
        at = found.end()
        value = _ENDS.match(text, at)
        yield found.start("quote"), found["key"], value and value[1]


def _of_rows(rows: Sequence[tuple[int, str, str | None]]) -> Iterator[tuple[str, str]]:
    """What stands deeper than any key that is seen above it has lost its section."""
    for key, value in _joined(rows, min((column for column, _, _ in rows), default=0)):
        yield key, _as_text(_parsed(value))


def _joined(rows: Sequence[tuple[int, str, str | None]], top: int | None = None) -> Iterator[tuple[str, str]]:
    """Names joined with dots, of rows enough to be a configuration. `top`: the column of those that need no section."""
    above = list[tuple[int, str]]()
    for column, key, value in rows if len(rows) >= _LEAST else ():
        while above and above[-1][0] >= column:
            above.pop()
        if top is not None and column > top and not above:
            continue
        if value is None:
            above.append((column, key))
        else:
            yield ".".join([*(name for _, name in above), key]), value


_MODEL_CONFIG = regex(r"^(?!.*(?i:critic|reward|generat)).*\b[A-Z]\w{1,40}Config \{\s*$")
_WIDTHS = ("hidden_size", "n_embd", "d_model", "n_embed")


def model_config_in(lines: Sequence[LogLine]) -> str:
    """The first "Model config Qwen2Config {…}" of transformers, as JSON; "" where the log has none."""
    for index, line in enumerate(lines):
        if line.text.rstrip().endswith("{") and _MODEL_CONFIG.match(line.text):
            held = _parsed(_balanced(lines, index)[1])
            text = held.get("text_config", held) if isinstance(held, dict) else None
            if isinstance(text, dict) and any(isinstance(text.get(width), int) for width in _WIDTHS):
                return json.dumps(held)
    return ""


def _balanced(lines: Sequence[LogLine], index: int) -> tuple[int, str]:
    """The text of a block from its first brace to the one that closes it, lines of other processes left out."""
    process, first = lines[index].process, lines[index].text
    parts = [first[first.index("{") :]]
    depth, size = _depth(parts[0]), len(parts[0])
    for at in range(index + 1, min(index + _BLOCK_LINES, len(lines))):
        if depth <= 0 or size > _LITERAL_LIMIT:
            return at - 1, "\n".join(parts)
        if lines[at].process == process:
            parts.append(lines[at].text)
            depth += _depth(lines[at].text)
            size += len(lines[at].text)
    return (index if depth > 0 else len(lines) - 1), "\n".join(parts)


_STRINGS = regex(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


def _depth(text: str) -> int:
    bare = _STRINGS.sub("", text)
    return bare.count("{") - bare.count("}")


def _parsed(literal: str) -> Any:
    """A dict or list from JSON or Python literals; None where it is neither, too large or too deep."""
    if len(literal) > _LITERAL_LIMIT:
        return None
    with suppress(ValueError, RecursionError):
        return json.loads(literal)
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "invalid escape sequence" in a stranger's strings
        return ast.literal_eval(literal)
    return None


def flatten(tree: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """{"a": {"b": 1}} → ("a.b", "1"); empty dictionaries and what pprint left out are skipped."""
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flatten(value, name + ".")
        elif (text := _as_text(value)) not in _OMITTED:
            yield name, text


def _argument_blocks(lines: Sequence[LogLine]) -> Iterator[tuple[str, str]]:
    """`RLHFArguments(` … `)` with one `key=value,` a line, or all of it on one."""
    inside: str | None = None
    for line in lines:
        text = line.text.strip()
        if text.endswith(")") and (whole := _ON_ONE_LINE.search(text)):
            yield from _keywords(whole[1])
        elif _ARGUMENTS.match(text):
            inside = line.process
        elif begun := _WITHIN.match(text):
            inside = line.process if (pair := _PAIR.match(begun["pair"])) else inside
            yield from [(pair[1], pair[2].strip("'\""))] if pair else []
        elif inside is not None and line.process == inside:
            match = _PAIR.match(text)
            if match and not match[2].startswith("{"):  # what a file's name was read into is not the setting's text
                yield match[1], match[2].strip("'\"")
            if text.startswith(")") or (match and text.count(")") > text.count("(")):
                inside = None


def _keywords(call: str) -> Iterator[tuple[str, str]]:
    """`Namespace(a=1, b='x')` → its literals; what is none (`dtype=torch.bfloat16`) is left out."""
    try:
        tree = ast.parse(call[:_LITERAL_LIMIT], mode="eval").body
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return
    for keyword in tree.keywords if isinstance(tree, ast.Call) else ():
        try:
            value = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, RecursionError):
            continue
        if keyword.arg is not None and not isinstance(value, Mapping):
            yield keyword.arg, _as_text(value)


def _own_lines(lines: Sequence[LogLine]) -> Iterator[tuple[str, str]]:
    """DeepSpeed's lines, then the batch of a pass as transformers' Trainer prints it under "Running training"."""
    for line in lines:
        if " ..." in line.text and (match := _DEEPSPEED.match(line.text)):
            yield match[1], match[2].strip()
    for line in lines:
        yield from ((_BANNER_KEYS[match[1].lower()], match[2]) for match in _BANNER.finditer(line.text))


def _overrides(lines: Sequence[LogLine]) -> Iterator[tuple[str, str]]:
    for line in lines:
        match = _OVERRIDES.search(line.text) if "overrides: [" in line.text else None
        held = _parsed(match[1]) if match else None
        if isinstance(held, list):
            yield from _assignments([item for item in held if isinstance(item, str)])


def is_launch(text: str) -> bool:
    """Whether a line is a launch as `set -x` traces it."""
    return _TRACED.match(text) is not None


def _command_lines(lines: Sequence[LogLine]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if line.text.startswith("+") and is_launch(line.text):
            yield from _assignments(words_of(line.text.lstrip("+ ")))
    for command in commands_in(lines):
        yield from _assignments(words_of(command.text))


def described_in(lines: Sequence[str]) -> dict[str, str]:
    """The settings that a person's sentences name, as they name them; the first of each counts."""
    found: dict[str, str] = {}
    for line in lines:
        data = line.encode()
        for one in named_in_sentences(data):
            found.setdefault(one.key, data[one.start : one.end].decode().strip('"'))
    return found


def settings_in_blocks(lines: Sequence[LogLine]) -> dict[str, str]:
    """The settings that the lists, tables and objects of a page name; variables of the environment bear a $."""
    found: dict[str, str] = {}
    page = "\n".join(line.printed for line in lines if not (line.stamp or line.process)).encode()
    for entry in blocks_in(Document(Path(), page, "shell")):
        if isinstance(entry.value, str):
            found.setdefault(entry.key, entry.value)
    for name, text in variables_in(page).items():
        found.setdefault(f"${name}", text)
    return found


def lines_in_person(lines: Sequence[LogLine]) -> Iterator[str]:
    """The lines in the first person, and those right below one: a person's page goes on. A page may begin without."""
    goes_on = False
    for number, line in enumerate(lines):
        pattern = _GOES_ON if goes_on else _IN_PERSON if number else _BEGINS
        goes_on = pattern.match(line.text) is not None or len(_CHINESE.findall(line.text)) >= _A_FEW
        goes_on = goes_on and not line.process and not line.stamp
        if goes_on:
            yield line.text


def _assignments(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """`a.b=c`, `+a.b=c`, `--flag value`, `--flag=value`, a bare `--flag` as "true"; of a repeated key the last."""
    found: dict[str, str] = {}
    for index, word in enumerate(words):
        asked = _ASKED.match(word)
        if asked:
            after = words[index + 1] if index + 1 < len(words) else "--"
            found[asked[1]] = asked[2] if asked[2] is not None else ("true" if after.startswith("-") else after)
        elif hydra := _HYDRA.match(word):
            found[hydra[1]] = hydra[2].strip("'\"")
    yield from found.items()


def _as_text(value: Any) -> str:
    """A configuration value as its file would spell it: true, false, null, 0.6, a comma-separated list in brackets."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_as_text(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_as_text(item)}" for key, item in value.items()) + "}"
    return str(value)


_VALUE = r"(?P<value>[^\s=:]\S{0,300}|\[[^\n]{0,300}\]|'[^'\n]{0,300}'|\"[^\"\n]{0,300}\")"
"""One word, or what brackets or quotes hold: a sentence is no setting."""
_KEY = r"(?P<key>[a-z_][a-z\d_./-]{0,80})"
_YAML = regex(rf"^(?P<indent> {{0,40}}){_KEY} {{0,40}}:(?: +{_VALUE})?,?\s*$")
"""One line of YAML, or of an aligned list: a key, and a value or a section below it."""
_ITEM = regex(r"^ {0,40}- ")
_TABLE = regex(rf"^(?:wandb: ?)?\s*[|│┃║]\s*{_KEY}\s*[|│┃║]\s*{_VALUE}\s*[|│┃║]\s*$")
_POINT = regex(rf"^(?:wandb: ?)?\s*(?:[-*•+] )?{_KEY} ?(?:=|:|->) ?{_VALUE}\s*$")
_METRICS = regex(r"^-?\d+\.\d{4,}$")
"""Values of results."""
_QUOTES = "'\""


def listed_settings(lines: Sequence[LogLine]) -> Iterator[tuple[str, str]]:
    """(key, text) of every list of at least three lines of one process; a section's keys are joined with dots."""
    rows, process = list[tuple[int, str, str | None]](), ""
    for line in lines:
        row = _listed_row(line.text)
        if row is None and line.process == process and _ITEM.match(line.text):
            continue  # an item of a list that is some key's value
        if row is None or line.process != process:
            yield from _listed(rows) if rows else ()
            rows, process = [], line.process
        if row is not None:
            rows.append(row)
        elif (pairs := _PAIRS.match(line.text)) is not None:
            told = [pair.rstrip(",").partition("=") for pair in pairs[1].split()]
            yield from ((key, value) for key, _, value in told if _OF_MEMORY.search(key))
    yield from _listed(rows)


_PAIRS = regex(r"^(?:\[[^\]]{1,60}\] ?|INFO:? ?)*((?:[a-z_][\w.]{1,60}=[^\s=,]{1,80}(?:, ?| |$)){2,40})\s*$")
"""A line of pairs and nothing else behind a logger's head."""
_OF_MEMORY = regex(r"(?:dtype|precision|attn\w*|checkpointing|batch_size|workers|offload)$")
"""What is taken of them: names that many a trainer has, and that tell none."""


def _listed_row(text: str) -> tuple[int, str, str | None] | None:
    """(indent, key, value or None) of one line of a list."""
    found = _TABLE.match(text) or _YAML.match(text) or _POINT.match(text)
    return None if found is None else (len(found.groupdict().get("indent", "")), found["key"], found["value"])


def _listed(rows: Sequence[tuple[int, str, str | None]]) -> Iterator[tuple[str, str]]:
    for key, value in _joined(rows):
        if not _METRICS.match(value):
            yield key, value.strip().rstrip(",").strip(_QUOTES)
