"""Tells whose cards a run has, and puts NVIDIA's names of variables and tools into that vendor's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Literal, get_args

from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.knowledge.schema import Framework, GpuFact, Tree
from advisor.language import rename
from advisor.machine.inventory import Machine

Vendor = Literal["nvidia", "amd", "ascend", "apple"]
VENDORS: tuple[Vendor, ...] = get_args(Vendor)

_NAMES: Mapping[Vendor, Mapping[str, str]] = {
    "amd": {
        "PYTORCH_CUDA_ALLOC_CONF": "PYTORCH_HIP_ALLOC_CONF",
        "CUDA_VISIBLE_DEVICES": "HIP_VISIBLE_DEVICES",
        "nvidia-smi": "rocm-smi --showpids",
        "CUDA context": "HIP context",
        "8xA100-80GB": "8xMI300X-192GB",
        "NCCL": "RCCL",
    },
    "ascend": {
        "PYTORCH_CUDA_ALLOC_CONF": "PYTORCH_NPU_ALLOC_CONF",
        "CUDA_VISIBLE_DEVICES": "ASCEND_RT_VISIBLE_DEVICES",
        "nvidia-smi": "npu-smi info",
        "torch.cuda.": "torch.npu.",
        "8xA100-80GB": "8xAscend-910B-64GB",
        "CUDA_LAUNCH_BLOCKING": "ASCEND_LAUNCH_BLOCKING",
        "NCCL_BUFFSIZE": "HCCL_BUFFSIZE",
        "NCCL_SOCKET_IFNAME": "HCCL_SOCKET_IFNAME",
        "NCCL_DEBUG=WARN": "ASCEND_GLOBAL_LOG_LEVEL=2",
        "NCCL_DEBUG=INFO": "ASCEND_GLOBAL_LOG_LEVEL=1",
        "CUDA": "NPU",
        "NCCL": "HCCL",
    },
    "apple": {
        "nvidia-smi": "Activity Monitor",
        "torch.cuda.memory_allocated": "torch.mps.current_allocated_memory",
        "torch.cuda.": "torch.mps.",
        "dmesg -T | grep -i -E 'oom|killed process'": "ls -t /Library/Logs/DiagnosticReports/JetsamEvent*",
        "dmesg -T | grep -i oom": "ls -t /Library/Logs/DiagnosticReports/JetsamEvent*",
        "ps aux --sort -rss": "top -o mem -l 1",
        "ps -eo pid,rss,cmd --sort -rss": "top -o mem -l 1",
    },
}
"""Vendor → NVIDIA's name → its own (pytorch docs/source/notes/hip.rst; vllm-project/vllm-ascend docs, environment;
Ascend/pytorch README: torch.npu has the functions of torch.cuda; CANN's log levels: 1 INFO, 2 WARNING). RCCL reads the
NCCL_ variables under their own names (ROCm/rccl README), HCCL does not. On a Mac torch.mps
has two of torch.cuda's figures (torch docs, torch.mps), and macOS's ps and top are BSD's (man 1 top: -o mem)."""


_MARKS: Mapping[Vendor, re.Pattern[str]] = {
    "ascend": re.compile(
        r"\b(?:torch|vllm)[-_](?:npu|ascend)\b|(?m:^cann \d)|/Ascend/|\bAscend-?9\d|\bEL\d{4}\b|\bHCCL\b|\baclrt\w+"
        r"|\bNPU out of memory"
    ),
    "amd": re.compile(
        r"\bHIP (?:error|out of memory)|\bhipError\w+|/opt/rocm|\+rocm\d|_hip\.so|\bRCCL\b|\bHSA_STATUS\w+"
    ),
}
"""Words of a vendor's own software in lines of evidence, files of frames and versions of libraries."""
_SET: Mapping[Vendor, re.Pattern[str]] = {
    "ascend": re.compile(r"\bASCEND_RT_VISIBLE_DEVICES\b|\btrainer\.device[=: ]+[\"']?npu\b|\bimport torch_npu\b"),
    "amd": re.compile(r"\b(?:HIP|ROCR)_VISIBLE_DEVICES *=|\bHSA_[A-Z_]+ *=|\bPYTORCH_ROCM_ARCH\b"),
}
"""What only launches on cards of this vendor set."""


def vendor_of(crash: Crash, machine: Machine, cards: Sequence[GpuFact], launch: str = "") -> Vendor:
    """Whose card it is: by what computes, by the message of the crash, else by the name of the machine's card, else by
    words of the vendor's own software in log and launch."""
    if crash.platform == "mps":
        return "apple"
    for evidence in crash.evidence:
        if evidence.signature.startswith("npu-"):
            return "ascend"
        if evidence.fields.get("device") == "HIP":
            return "amd"
    told = {gpu.vendor for gpu in machine.usable}
    if len(told) == 1 and (found := next((one for one in VENDORS if one in told), None)) is not None:
        return found
    names = {gpu.name for gpu in machine.usable}
    named: Vendor | None = next((card.vendor for card in cards if card.name in names), None)
    if named is not None:
        return named
    versions = [f"{name} {version}" for name, version in {**crash.libraries, **machine.libraries}.items()]
    lines = [one.text for one in crash.evidence]
    said = "\n".join((*lines, *(frame.file for frame in crash.frames), *versions, *crash.gpu_names))
    told_by = ((_MARKS, said), (_SET, launch))
    return next((one for marks, text in told_by for one, mark in marks.items() if mark.search(text)), "nvidia")


def speak_of_cards(vendor: Vendor) -> None:
    """Say everything in the names of this vendor's software from now on."""
    rename(None if vendor == "nvidia" else partial(in_names_of, vendor))


def in_names_of(vendor: Vendor, text: str) -> str:
    """The text with this vendor's names; what is a name of its own already stays."""
    names = _NAMES.get(vendor)
    if names is None:
        return text
    return _pattern(vendor).sub(lambda found: names[found.group()], text)


@lru_cache(maxsize=4)
def _pattern(vendor: Vendor) -> re.Pattern[str]:
    """Any of NVIDIA's names as a word of its own: NCCL is none in NCCL_IB_HCA."""
    longest_first = sorted(_NAMES[vendor], key=len, reverse=True)
    return re.compile("|".join(rf"(?<![A-Z_]){re.escape(name)}(?![A-Z_])" for name in longest_first))


def dialect_of(vendor: Vendor, framework: Framework | None) -> Framework | None:
    """The dialect with the variables that this vendor's libraries read: torch_npu reads its allocator's settings under
    its own name alone (torch for AMD reads NVIDIA's, too), so what a framework sets for CUDA is not on there.
    """
    if vendor != "ascend" or framework is None:
        return framework
    own = {
        in_names_of(vendor, name): replace(fact, default=None, default_when=()) if name in _NAMES[vendor] else fact
        for name, fact in framework.environment.items()
    }
    read = {name: fact for name, fact in framework.environment.items() if name not in _NAMES[vendor]}
    return replace(framework, environment={**own, **read})


def tree_of(vendor: Vendor, tree: Tree) -> Tree:
    """The decision tree in words for this vendor's cards."""
    if vendor == "nvidia":
        return tree

    def own(text: str) -> str:
        return in_names_of(vendor, text)

    questions = tuple(
        replace(one, asks=own(one.asks), why=own(one.why), if_unknown=own(one.if_unknown)) for one in tree.questions
    )
    causes = tuple(
        replace(
            one,
            title=own(one.title),
            explains=own(one.explains),
            proof=own(one.proof),
            counter=own(one.counter),
            record_next_time=own(one.record_next_time),
            narrower=tuple(replace(w, title=own(w.title), explains=own(w.explains)) for w in one.narrower),
        )
        for one in tree.causes
    )
    return replace(tree, questions=questions, causes=causes)
