"""What a log says on the way: library versions, GPU names, framework marks, Ray's table of the largest processes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from advisor.crash.evidence import TopUser
from advisor.crash.lines import Line
from advisor.units import GIB

_WHEEL = re.compile(r"site-packages/(?P<name>[A-Za-z][\w.]{1,60})-(?P<version>\d[\w.+]{0,30})\.(?:dist-info|egg)")
_PIP = re.compile(r"^(?P<name>[A-Za-z][\w.-]{1,40})(?:==| {2,}|: )(?P<version>\d{1,4}\.\d[\w.+]{0,25})\s*$")
_PIP_NAMES = frozenset(
    (
        "torch vllm sglang ray deepspeed transformers trl ms-swift swift verl openrlhf flash-attn flash_attn accelerate peft"
        " xformers triton liger-kernel megatron-core nvidia-nccl-cu12 numpy bitsandbytes unsloth"
    ).split()
)
_GPU = re.compile(
    r"\b(?:NVIDIA )?(?:Tesla |GeForce |Quadro |Graphics )?"
    r"(?P<name>(?:A100|A800|H100|H200|H800|H20|GH200|B200|B300|A10G?|A30|A40|A6000|A5000|L4|L40S?|T4|V100|P100|RTX ?(?:A?\d{4})(?: ?Ti| Ada)?"
    r")(?:[- ](?:SXM\d?|PCIe|PCIE|HBM3e?|NVL|\d{2,3} ?GB)){1,4}|(?:RTX (?:PRO )?A?\d{4}(?: Ti| Ada(?: Generation)?)?)|(?<=Tesla )\w{2,4}|(?<=NVIDIA )(?:L4|L40S?|A10G?|A40|H20|T4|A30|RTX A\d{4}))\b"
)  # fmt: skip
_ROW = re.compile(r"^\s*(?P<pid>\d{1,10})\s+(?P<mem>\d{1,6}\.\d{1,4})\s+(?P<command>\S.{0,300})$")
_HEADER = "MEM(GB)"
_ROWS = 12


def libraries_in(text: str, patterns: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Distribution name → version, first met first. `patterns`: (library, regex with one group)."""
    found: dict[str, str] = {}
    for name, pattern in patterns:
        match = re.search(pattern, text)
        if match:
            found.setdefault(name, match.group(1).rstrip("."))
    for match in _WHEEL.finditer(text):
        found.setdefault(match["name"].lower().replace("_", "-"), match["version"])
    return found


def pip_lines(lines: Iterable[Line]) -> dict[str, str]:
    """Versions from lines that look like `pip list` or `pip freeze`."""
    found: dict[str, str] = {}
    for line in lines:
        match = _PIP.match(line.text)
        if match and match["name"].lower() in _PIP_NAMES:
            found.setdefault(match["name"].lower().replace("_", "-"), match["version"])
    return found


def gpu_names_in(text: str) -> tuple[str, ...]:
    """Cards named in the log, each once."""
    return tuple(dict.fromkeys(match["name"].strip() for match in _GPU.finditer(text)))[:8]


def frameworks_in(text: str, marks: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Frameworks whose marks the text bears, in the order of the marks (most specific first)."""
    return tuple(dict.fromkeys(name for name, pattern in marks if re.search(pattern, text)))


def top_users(lines: Sequence[Line]) -> tuple[tuple[TopUser, ...], tuple[Line, ...]]:
    """Rows of the first table under a "PID MEM(GB) COMMAND" header, largest first, and the lines they stand on."""
    begin = next((i for i, line in enumerate(lines) if _HEADER in line.text), None)
    if begin is None:
        return (), ()
    users: list[TopUser] = []
    rows: list[Line] = []
    for line in lines[begin + 1 : begin + 60]:
        match = _ROW.match(line.text)
        if match:
            users.append(TopUser(int(match["pid"]), round(float(match["mem"]) * GIB), match["command"].strip()))
            rows.append(line)
        elif users and line.process == rows[-1].process:
            break
        if len(users) == _ROWS:
            break
    return tuple(sorted(users, key=lambda user: -user.used_bytes)), tuple(rows)
