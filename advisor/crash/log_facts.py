"""Extracts what a log says on the way: versions, GPU names, frameworks, tables of processes, readings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod

from msgspec.structs import replace

from advisor.crash.command_lines import commands_in
from advisor.crash.evidence import Crash, Reading, ReadingKind, TopUser
from advisor.crash.finds import LogFind
from advisor.crash.lines import LogLine, read_line
from advisor.crash.patterns import FieldValue, first_match, lines_with
from advisor.crash.phase import ENGINE, phase_of_texts
from advisor.crash.statements import A_PAGE
from advisor.crash.tracebacks import Trace
from advisor.crash.verdict import ALLOCATOR_WARNING, Judgement, host_percent, is_pinning
from advisor.knowledge.schema import (
    CountName,
    EngineFigure,
    FrameRule,
    FrameworkMark,
    LogCount,
    PlatformMark,
    Project,
    Signatures,
    VersionMark,
)
from advisor.machine.ram_words import ram_of_page
from advisor.redact import redact
from advisor.regex import regex
from advisor.units import GIB, KIB, MIB, read_size, show_bytes
from advisor.words import Phase, Platform

_WHEEL = regex(r"site-packages/(?P<name>[A-Za-z][\w.]{1,60})-(?P<version>\d[\w.+]{0,30})\.(?:dist-info|egg)")
_WHEEL_WITHIN = ("site-packages/",)
_LISTED_VERSION = regex(
    r"\s*(?:[-*+|]\s*)?(?:\[(?:pip3?|conda)\]\s*)?[`*]*(?P<name>[A-Za-z][\w.-]{1,40})[`*]*(?:\s(?:version|info))?"
    r"(?:\s?\([^)]{0,20}\))?(?:==|\s*[:|]\s*|\s*\.{3,60}\s*|\s{2,})[`*v]*(?P<version>\d{1,4}\.\d[\w.+]{0,25})"
    r"(?:[\s,`*|@(].{0,80})?$"
)
"""A line of `pip list`, `pip freeze`, `conda list`, of the `env` commands of transformers, accelerate and others, of
`ds_report`, of torch's collect_env, or of a table."""
_BESIDE_OTHERS = regex(
    r"(?<![\w/.@-])(?P<name>[A-Za-z][A-Za-z_-]{1,20})[`*]*(?:\s+version)?\s*(?:==|[=:@\s])\s*[`*]?v?"
    r"(?P<version>\d{1,4}\.\d[\w.+]{0,25})(?![\w%])"
)
_NOT_WHAT_RUNS = regex(r"(?i)[<>!~]=|\brequires?\b|\bbut you have\b|\bincompatible\b|\b(?:from|to) v?\d")
"""A line that tells which version there should be, or was."""
_LONGEST_LIST = 600
"""Characters of a line that lists versions."""
_CARD = r"(?:RTX )?(?:GH|PRO |[ABHLTPV])\d{1,4}[GS]?|RTX \d{4}"
_SAID = r"(?:RTX )?(?:GH|[ABHPV])\d{2,4}[GS]?|T4|L4|L[24]0S?|RTX ?\d{4}"
"""As people say it beside a number or an article: no T5, no V1."""
_FORM = r"(?:[- ](?:SXM\d?|PCIe|PCIE|HBM3e?|NVL|Ti|Ada|\d{2,3} ?G(?:B|iB)?(?![A-Za-z0-9_])))"
_GPU = regex(
    rf"\b(?:NVIDIA |Tesla |GeForce ){{1,2}}(?P<named>(?:{_CARD}){_FORM}{{0,4}})\b"
    r"|\b(?P<quadro>Quadro RTX A?\d{4})\b"  # not the "RTX 6000" of two later generations
    rf"|\b(?P<bare>(?:{_CARD}){_FORM}{{1,4}})\b"
    rf"|\b\d{{1,2}} ?[xX×*] ?(?P<counted>(?:{_CARD}){_FORM}{{0,4}})\b"
    r"|(?:\b(?:[Ss]ingle|[Oo]ne|[Tt]wo|[Ff]our|[Ee]ight|[Aa]n?|[Mm]y)\s|(?<![\d.])\d{1,2}\s)"
    rf"(?P<said>(?:{_SAID}){_FORM}{{0,4}})s?\b(?!\.\d)"
    rf"|[张块卡] ?(?P<zh>(?:{_SAID}|[2-5]0[6-9]0){_FORM}{{0,4}})"
)
_DAY = regex(r"\b(20[12]\d)[-/](0[1-9]|1[0-2])[-/](0[1-9]|[12]\d|3[01])[T ]\d\d:\d\d:\d\d")
"""A time beside it tells the day of a line from one in a data set or in the name of a file."""
_TIMES = tuple(f"{sign}{model}" for sign in ("x", "x ", "X", "X ", "×", "× ", "*", "* ") for model in "ABGHLTPVR")
_SIZES = ("0G", "1G", "2G", "4G", "6G", "8G")
_CHIPS = (
    *(" A1", " A3", " A4", " A6", " A8", " B2", " B3", " H1", " H2", " H8", " GH", " L2", " L4", " P4", " P1", " V1"),
    " T4",
)
_GPU_WITHIN = (
    *("NVIDIA", "Tesla", "GeForce", "Quadro", "SXM", "PCI", "HBM", "NVL", "Ti", "Ada", "GB", "RTX", "张", "块", "卡"),
    *(*_SIZES, *_TIMES, *_CHIPS),
)
_ROW = regex(r"^\s*(?P<pid>\d{1,10})\s+(?P<mem>\d{1,6}\.\d{1,4})\s+(?P<command>\S.{0,300})$")
_SHAPE = regex(r"torch\.Size\(\[([\d, ]{1,80})\]\)")
_DTYPE = regex(r"\btorch\.(float64|float32|int64|int32|bfloat16|float16|uint8|int8)\b")
_ITEM = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "bfloat16": 2, "float16": 2, "uint8": 1, "int8": 1}
_HEADER = "MEM(GB)"
_TITLE = regex(r"\bTop (\d{1,3}) memory users")
_TITLE_LINES = 12
"""Lines above the first row in which title and head of its table stand."""
_ROWS = 12
_LISTED = regex(r"Process(\d{1,10})has(\d[\d.]*(?:bytes|[KMGTPE]iB))memoryinuse")
_NAMED = regex(r"(\S.*?) ?pid=(\d{1,10})")
"""A label is a chain: "RolloutRayActor pid=7 EngineCore_DP0 pid=12"."""
_KINDS: dict[str, ReadingKind] = {
    "allocated_bytes": "allocated",
    "reserved_bytes": "reserved",
    "used_bytes": "used",
    "available_bytes": "free",
    "kv_available_bytes": "kv_cache",
    "weights_bytes": "weights",
    "freed_bytes": "freed",
    "left_bytes": "still_used",
    "graphs_bytes": "graphs",
    "node_used_bytes": "host_used",
    "peak_bytes": "peak",
}
_PHASES: dict[ReadingKind, Phase] = {
    "kv_cache": "rollout_init",
    "weights": "rollout_init",
    "graphs": "rollout_init",
    "freed": "weight_sync",
    "still_used": "weight_sync",
}
_PART_OF_A_MESSAGE = "torch-process-list"
_NEAR_LINES = 30
"""Lines before a failed pinning on which the tensor may be printed."""
_MOST = 2_000
"""Readings given of all logs together; beyond that they are evenly thinned, and the last is kept."""


def libraries_in(text: str, marks: Sequence[VersionMark]) -> dict[str, str]:
    """Distribution name → version, first met first."""
    found: dict[str, str] = {}
    *lines, paths = lines_with(text, [*(mark.within for mark in marks), _WHEEL_WITHIN])
    for mark, of_mark in zip(marks, lines, strict=True):
        match = first_match(mark.pattern, of_mark)
        if match:
            found.setdefault(mark.library, match.group(1).rstrip("."))
    for match in (match for path in paths for match in _WHEEL.finditer(path)):
        found.setdefault(match["name"].lower().replace("_", "-"), match["version"])
    return found


def dated_in(text: str, today: str) -> str:
    """The last day on which a line was written, "2025-02-18"; "" where no line bears a time with its year. A clock that
    is ahead of `today` is a wrong one."""
    days = {"-".join(found) for found in _DAY.findall(text)}
    return max((day for day in days if day <= today), default="")


def engine_figures_in(text: str, figures: Sequence[EngineFigure]) -> dict[str, str]:
    """Knob → the value that an engine or library printed or that its line means; the first figure of a knob counts."""
    found: dict[str, str] = {}
    for figure, lines in zip(figures, lines_with(text, [figure.within for figure in figures]), strict=True):
        match = first_match(figure.pattern, lines)
        if match:
            found.setdefault(figure.knob, figure.value or match.group(1))
    return found


def counts_in(text: str, marks: Sequence[LogCount]) -> dict[CountName, int]:
    """What libraries count of the run; the first mark of each count that the text bears, at its first line."""
    found: dict[CountName, int] = {}
    for mark, lines in zip(marks, lines_with(text, [mark.within for mark in marks]), strict=True):
        if mark.distinct:
            ids = {one[1] for line in lines for one in re.finditer(mark.pattern, line)}
            found[mark.count] = max(found.get(mark.count, 0), len(ids))
        elif mark.index:
            indices = (int(one[one.lastindex or 1]) for line in lines for one in re.finditer(mark.pattern, line))
            if highest := max(indices, default=0):  # the first alone tells of no other
                found[mark.count] = max(found.get(mark.count, 0), highest + 1)
        elif match := first_match(mark.pattern, lines):
            found.setdefault(mark.count, mark.value or round(float(match.group(1).replace(",", "")) * mark.unit))
    return {count: number for count, number in found.items() if number > 0}


_TOTAL = regex(r"Total train batch size \(w\. parallel[^)\n]{0,60}\) = ([1-9]\d{0,6})\b")
"""transformers trainer.py _inner_training_loop: samples of a step over all processes."""
_DIGITS = 7
"""Digits of a batch at most."""
_FACTORS = ("per_device_train_batch_size", "gradient_accumulation_steps")


def ranks_by_batch(text: str, settings: Mapping[str, str]) -> dict[CountName, int]:
    """The number of GPUs by the Trainer's own banner: the whole batch over that of a pass and the passes of a step."""
    total, factors = _TOTAL.search(text), [settings.get(name, "") for name in _FACTORS]
    if total is None or not all(factor.isdigit() and len(factor) < _DIGITS for factor in factors):
        return {}
    each = int(factors[0]) * int(factors[1])
    return {"gpus": int(total[1]) // each} if each and int(total[1]) % each == 0 else {}


def platform_in(text: str, marks: Sequence[PlatformMark]) -> Platform:
    """What computes, by the first mark that the text bears."""
    for mark, lines in zip(marks, lines_with(text, [mark.within for mark in marks]), strict=True):
        if first_match(mark.pattern, lines):
            return mark.platform
    return "cuda"


def listed_versions(lines: Iterable[LogLine], spelled: Mapping[str, str]) -> dict[str, str]:
    """Versions from lines that list them: one a line, or several in one. `spelled`: library → how it is written."""
    found: dict[str, str] = {}
    for line in lines:
        alone = _LISTED_VERSION.match(line.text)
        if alone is None and (len(line.text) > _LONGEST_LIST or "." not in line.text):
            continue
        told = [alone] if alone is not None else list(_BESIDE_OTHERS.finditer(line.text))
        named = {name: one["version"].rstrip(".") for one in told if (name := _library(one["name"], spelled))}
        if named and (alone is not None or len(named) > 1) and not _NOT_WHAT_RUNS.search(line.text):
            for name, version in named.items():
                found.setdefault(name, version)
    return found


_INSTALLS = regex(
    r"[^#]{0,200}?\b(?:pip3?|uv|conda|mamba|poetry|pixi) [^#]{0,200}?\b(?:install|add) |\s*[\w.-]+(?:\[[\w,-]+\])?=="
)
_PINNED = regex(
    r"(?<![\w./@-])(?P<name>[A-Za-z][\w-]*)(?:\[[\w,-]+\])?==?(?P<version>\d[\w.+]*)"
    r"|/(?P<tree>[\w-]+)(?:\.git)?@v?(?P<tag>\d[\w.]*)"
)
_REMARK = regex(r"\s*#+\s*(?:for\s+)?(?P<name>[A-Za-z][\w-]*)(?:\s+version)?\s*[:=]*\s*v?(?P<version>\d+\.\d[\w.]*)\s*")


def pinned_versions(text: str, spelled: Mapping[str, str]) -> dict[str, str]:
    """Versions that a script or a list of requirements installs, else names in a remark of its own: "# verl 0.9"."""
    found: dict[str, str] = {}
    for line in (each[: 4 * _LONGEST_LIST] for each in text.replace("\\\n", " ").splitlines()):
        remark = _REMARK.fullmatch(line)
        for one in [remark] if remark is not None else _PINNED.finditer(line) if _INSTALLS.match(line) else ():
            told = one.groupdict("")
            if name := _library(told["name"] or told["tree"], spelled):
                version = (told["version"] or told["tag"]).rstrip(".")
                found[name] = found.get(name, version) if remark is not None else version
    return found


def _library(word: str, spelled: Mapping[str, str]) -> str:
    """The library that a word names; "" where it names none."""
    return next((name for name, ways in spelled.items() if re.fullmatch(ways, word, re.IGNORECASE | re.ASCII)), "")


def gpu_names_in(text: str) -> tuple[str, ...]:
    """Cards named in the log, each once."""
    (lines,) = lines_with(text, [_GPU_WITHIN])
    return tuple(dict.fromkeys(match[match.lastgroup or 0] for line in lines for match in _GPU.finditer(line)))[:8]


def frameworks_in(text: str, marks: Sequence[FrameworkMark]) -> tuple[str, ...]:
    """Frameworks whose marks the text bears, in the order of the marks (most specific first)."""
    lines = lines_with(text, [mark.within for mark in marks])
    every = zip(marks, lines, strict=True)
    return tuple(dict.fromkeys(mark.framework for mark, of_mark in every if first_match(mark.pattern, of_mark)))


def project_in(text: str, projects: Sequence[Project]) -> Project | None:
    """The project whose tree or package a text names first; None where it names none."""
    found = (
        (at.start(), project)
        for project in projects
        for name in project.names or (project.name,)
        if name in text and (at := re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)) is not None
    )
    return min(found, key=lambda one: one[0], default=(0, None))[1]


_OF_NODE = 0.25
"""Part of a node's memory in use that a list must name to tell who holds it (judgement)."""


def is_cut(lines: Sequence[LogLine], rows: Sequence[LogLine]) -> bool:
    """Whether rows are missing of a table of memory users: fewer than its title says, or a table without its head."""
    if not rows:
        return False
    first = next((i for i, line in enumerate(lines) if line is rows[0]), 0)
    above = lines[max(0, first - _TITLE_LINES) : first]
    promised = next((int(match[1]) for line in reversed(above) if (match := _TITLE.search(line.text))), None)
    return len(rows) < promised if promised is not None else not any(_HEADER in line.text for line in above)


def top_users(lines: Sequence[LogLine]) -> tuple[tuple[TopUser, ...], tuple[LogLine, ...]]:
    """Rows of the first table under a "PID MEM(GB) COMMAND" header, largest first, and the lines they stand on."""
    begin = next((i for i, line in enumerate(lines) if _HEADER in line.text), None)
    if begin is None:  # a log cut at its beginning may lack the header
        begin = next((i - 1 for i, line in enumerate(lines) if "ray::" in line.text and _ROW.match(line.text)), None)
    if begin is None:
        return (), ()
    users: list[TopUser] = []
    rows: list[LogLine] = []
    for line in lines[begin + 1 : begin + 60]:
        match = _ROW.match(line.text)
        if match:
            users.append(TopUser(int(match["pid"]), round(float(match["mem"]) * GIB), redact(match["command"].strip())))
            rows.append(line)
        elif users and line.process == rows[-1].process:
            break
        if len(users) == _ROWS:
            break
    return tuple(sorted(users, key=lambda user: -user.used_bytes)), tuple(rows)


def listed_users(printed: Iterable[Mapping[str, FieldValue]]) -> tuple[TopUser, ...]:
    """The processes of Ray's newer list (name, pid and the memory each really used), largest first, each once. None
    where they hold little of what is in use on the node: then it is the killed alone that is named."""
    users: dict[int, TopUser] = {}
    node = 0
    for fields in printed:
        pid, used, task, in_use = (fields.get(name) for name in ("pid", "task_bytes", "task", "node_used_bytes"))
        node = max(node, in_use) if isinstance(in_use, int) else node
        if isinstance(pid, int) and isinstance(used, int) and isinstance(task, str):
            users.setdefault(pid, TopUser(pid, used, redact(task)))
    if sum(user.used_bytes for user in users.values()) < _OF_NODE * node:
        return ()
    return tuple(sorted(users.values(), key=lambda user: -user.used_bytes))[:_ROWS]


def printed_tensor_bytes(lines: Sequence[LogLine]) -> int | None:
    """Size of the last tensor whose shape and dtype these lines print; None where one of the two is missing."""
    text = "\n".join(line.text for line in lines)
    shapes, dtypes = _SHAPE.findall(text), _DTYPE.findall(text)
    if not shapes or not dtypes:
        return None
    return prod(int(size) for size in shapes[-1].split(",") if size.strip()) * _ITEM[dtypes[-1]]


# --- Processes that torch lists on a full GPU ------------------------------------------------------------------------


def engine_processes(message: str, labels: Iterable[str]) -> dict[str, FieldValue]:
    """`engine_process_bytes` and `engine_process` (its label) of the engines among the processes torch lists. `labels`:
    who printed the lines of the run ("LLMRayActor pid=347860"). Ids of a container that the driver does not share match
    none of them."""
    listed = _LISTED.findall(re.sub(r"\s+", "", message))  # a message may be wrapped anywhere, also inside a number
    named = (match for label in set(labels) for match in _NAMED.findall(label)) if listed else ()
    engines = {pid: f"{name} pid={pid}" for name, pid in named if ENGINE.search(name)}
    found = [(engines[pid], read_size(size)) for pid, size in listed if pid in engines]
    sizes = [size for _, size in found if size is not None]
    return {"engine_process_bytes": sum(sizes), "engine_process": found[0][0]} if sizes else {}


# --- Memory readings -------------------------------------------------------------------------------------------------


def readings_in(finds: Iterable[LogFind], names: Sequence[str], rules: Sequence[FrameRule]) -> tuple[Reading, ...]:
    """The readings of `finds`, by log and line; `names` are those of the logs."""
    printed = [one for one in finds if one.role == "telemetry" and one.id != _PART_OF_A_MESSAGE]
    printed.sort(key=lambda one: (one.log, one.number))
    every = [reading for one in printed for reading in _readings(one, names[one.log], rules)]
    stride = -(-len(every) // _MOST) or 1
    return tuple(every[::-stride][::-1])


def _readings(one: LogFind, file: str, rules: Sequence[FrameRule]) -> Iterator[Reading]:
    find = one.find
    at = str(find.fields.get("at", ""))
    phase, _ = phase_of_texts([at] if at else [], rules, "task")
    for name, kind in _KINDS.items():
        size = find.fields.get(name)
        if not isinstance(size, int):
            continue
        if kind == "still_used" and find.signature.id == "sglang-reading":
            kind = "free"
        known = phase if phase != "unknown" else _PHASES.get(kind, find.signature.phase)
        yield Reading(find.first.number, known, kind, size, find.first.process, at, file)


def host_total(placed: Sequence[LogFind]) -> int | None:
    """RAM of a node: as printed, or as used memory and its part of all say (the finest of such readings)."""
    parts: list[tuple[float, int]] = []
    for fields in (one.find.fields for one in placed if one.memory == "host" and one.role == "telemetry"):
        total, used, percent = (fields.get(name) for name in ("node_total_bytes", "node_used_bytes", "percent"))
        if isinstance(total, int):
            return total
        if isinstance(used, int) and isinstance(percent, (int, float)) and percent > 0:
            parts.append((float(percent), round(used / percent * 100)))
    return max(parts)[1] if parts else None


def host_filled(placed: Sequence[LogFind]) -> tuple[float, int] | None:
    """Percent of the machine's RAM in use at the last of the readings that say so, and its line."""
    readings = [one for one in placed if one.memory == "host" and one.role == "telemetry"]
    filled = ((percent, one.number) for one in reversed(readings) if (percent := host_percent(one)) is not None)
    return next(filled, None)


def gpu_total(placed: Sequence[LogFind]) -> int | None:
    """Bytes of the first card of which a line tells how many it has."""
    totals = (one.find.fields.get("total_bytes") for one in placed if one.memory == "gpu")
    return next((total for total in totals if isinstance(total, int)), None)


def fields_beside(judgement: Judgement, trace: Trace, placed: Sequence[LogFind]) -> dict[str, FieldValue]:
    """What other lines show of the cause: the size of a tensor that could not be pinned, printed just before; what the
    allocator's last warning printed of the same request, where the message is cut; the reading that makes a kill a
    shortage."""
    cause, reading, fields = judgement.cause, judgement.witness, dict[str, FieldValue]()
    if cause is None:
        return fields
    if is_pinning(trace) and (size := printed_tensor_bytes(cause.find.before[-_NEAR_LINES:])) is not None:
        fields["tried_bytes"] = size
    tried = cause.find.fields.get("tried_bytes")
    before = [one for one in placed if one.id == ALLOCATOR_WARNING and one.find.offset < cause.find.offset]
    asked = before[-1].find.fields.get("tried_bytes") if before and before[-1].log == cause.log else None
    if isinstance(tried, int) and isinstance(asked, int) and abs(asked - tried) <= tried // 100:
        fields |= before[-1].find.fields
    return fields if reading is None else {**fields, **reading.find.fields, "witness_line": reading.number}


_HELD = {"rss": KIB, "res": KIB}
"""Columns of the RAM that a process holds, and the unit of a number without one (ps(1), top(1))."""
_PAGE = 4 * KIB
"""The unit of rss in the kernel's list, which also has total_vm (mm/oom_kill.c dump_tasks; pages of 4 KiB)."""
_NAMES = ("command", "cmd", "args", "name")
_HEAD = regex(r"\[?\s*pid\s*\]?", re.IGNORECASE)
_STAMPED = regex(r"^.*?(?=\[\s*(?:pid|\d+)\s*\])", re.IGNORECASE)
"""What the kernel's log writes before a row."""
_TOLD, _LINES, _LONG = 12, 60, 14
"""Rows that are told, lines that are looked at, digits of a number that is no size."""
_LEAST = 256 * MIB
"""Processes that hold less say nothing of a full node (judgement)."""
_SMI = regex(
    r"^\|\s{1,8}(?P<gpu>\d{1,2})\s+(?:(?:N/A|\d+)\s+){0,2}(?P<pid>\d{1,8})\s+(?:C|G|C\+G|M\+C)\s+(?P<name>\S.{0,200}?)\s+"
    r"(?P<used>\d{1,7})\s?MiB\s*\|"
)
"""A row of nvidia-smi's processes."""


def ram_users(lines: Sequence[LogLine]) -> tuple[tuple[TopUser, ...], tuple[LogLine, ...]]:
    """The processes of the first such table that hold much RAM, the largest first, and the lines they stand on."""
    for number, line in enumerate(lines):
        head = _columns(line.text)
        if head is None:
            continue
        found = [(user, row) for row in lines[number + 1 : number + 1 + _LINES] if (user := _user(row.text, head))]
        found.sort(key=lambda pair: -pair[0].used_bytes)
        if found:
            return tuple(user for user, _ in found[:_TOLD]), tuple(row for _, row in found[:_TOLD])
    return (), ()


def card_users(lines: Iterable[LogLine], card: int | None) -> str:
    """Who held a card by nvidia-smi, "61234 MiB python (pid 1834), …"; of several cards the one that failed."""
    rows = [found for line in lines if (found := _SMI.match(line.text)) is not None]
    cards = {int(row["gpu"]) for row in rows}
    wanted = card if card in cards else cards.pop() if len(cards) == 1 else None
    told = {
        row["pid"]: f"{show_bytes(int(row['used']) * MIB)} {redact(row['name'].strip())} (pid {row['pid']})"
        for row in rows
        if int(row["gpu"]) == wanted
    }
    return ", ".join(list(told.values())[:_TOLD])


def _words(text: str) -> list[str]:
    """The words of a row; the brackets of the kernel's list count as none, nor what its log writes before."""
    return _STAMPED.sub("", text).replace("[", " ").replace("]", " ").split()


def _columns(text: str) -> list[str] | None:
    """The names of the columns of a head; None where a line is none."""
    if _HEAD.search(text) is None:
        return None
    names = [word.lower() for word in _words(text)]
    return names if "pid" in names and set(names) & _HELD.keys() and names[-1] in _NAMES else None


def _user(text: str, head: Sequence[str]) -> TopUser | None:
    words = _words(text)
    if len(words) < len(head):
        return None
    row = dict(zip(head, (*words[: len(head) - 1], " ".join(words[len(head) - 1 :])), strict=True))
    column = next(name for name in _HELD if name in row)
    unit = _PAGE if "total_vm" in row else _HELD[column]
    size = _size(row[column], unit)
    if not row["pid"].isdigit() or size is None or size < _LEAST:
        return None
    return TopUser(int(row["pid"]), size, redact(row[head[-1]]))


def _size(text: str, unit: int) -> int | None:
    """A number in its column's unit, or with top's letter for another ("61.2g")."""
    if text.isdigit() and len(text) < _LONG:
        return int(text) * unit
    return read_size(f"{text}iB") if re.fullmatch(r"\d{1,6}(?:\.\d{1,3})?[mgtMGT]", text) else None


def with_page(crash: Crash, text: str, signatures: Signatures) -> Crash:
    """The crash, with what a page that was given in the place of a launch tells of the machine where no log does."""
    if len(text) > A_PAGE:
        return crash
    lines = [read_line(line.encode(), number) for number, line in enumerate(text.splitlines(), 1)]
    spelled = signatures.statements.libraries if signatures.statements is not None else {}
    listed_words = (one for one in commands_in(lines) if one.line.text.lstrip().startswith("["))
    return replace(
        crash,
        command=next(listed_words, crash.command),
        libraries={**listed_versions(lines, spelled), **crash.libraries},
        gpu_names=crash.gpu_names or gpu_names_in(text),
        counts={**counts_in(text, signatures.counts), **crash.counts},
        host_total_bytes=crash.host_total_bytes or ram_of_page([line.text for line in lines]),
    )
