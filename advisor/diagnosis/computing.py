"""Tells what a run computes on, whose cards these are, and whether it is one process; and puts NVIDIA's names of
variables and tools into another vendor's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Literal, get_args

from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.crash.phase import frame_words
from advisor.diagnosis.fact import Fact, Facts
from advisor.diagnosis.frame_facts import frame_facts
from advisor.knowledge.schema import Framework, GpuFact, PlatformMark, Tree
from advisor.language import rename, say
from advisor.machine.inventory import Machine
from advisor.regex import regex
from advisor.run.run import Run
from advisor.words import Platform

_OF_A_CARD = regex(r"\b(?:CUDA|HIP|NPU|XPU) out of memory")
"""torch's own message about a card, whatever else the log speaks of."""
_ON_THE_CPU = "cpu-allocator"


def platform_of(crash: Crash, marks: Sequence[PlatformMark], launch: str = "", machine: str = "") -> Platform:
    """What computes: by the failing message and frame, else by words of its own software in the log, else by the launch
    file, else by what the user calls the `machine`. Of a TPU and the library that drives it the TPU decides.
    """
    first = crash.evidence[0] if crash.evidence else None
    if first is not None and _OF_A_CARD.search(first.text):
        return "cuda"
    said = next((one.platform for one in marks if one.machine and re.search(one.machine, machine)), None)
    if crash.platform != "cuda":
        return said if said == "tpu" and crash.platform in ("jax", "tensorflow") else crash.platform
    if crash.signature == _ON_THE_CPU and crash.frames and frame_facts(crash.frames)["frame.pass"].value is True:
        return "cpu"  # a pass that a card computes takes no host RAM
    written = (one.platform for one in marks if one.launch and re.search(one.launch, launch))
    return said if said == "tpu" else next(written, said or "cuda")


def computing_facts(crash: Crash) -> dict[str, Fact]:
    """`platform`, where it is not torch on cards: nobody is told of CUDA there."""
    platform = crash.platform
    if platform == "cpu" and crash.signature == _ON_THE_CPU and crash.frames:
        return {"platform": Fact(platform, "log", frame_words(crash.frames[-1]))}
    return {} if platform == "cuda" else {"platform": Fact(platform, "log", say("words of its own software"))}


def process_facts(run: Run, crash: Crash, machine: Machine, facts: Facts) -> dict[str, Fact]:
    """`one_process`, true or false; nothing where nobody knows.

    The launch says it, or the log counts the processes; else what has one device alone has one.
    """
    counted, seen = crash.counts.get("gpus"), max(crash.counts.get("gpus", 0), crash.counts.get("ranks", 0))
    launched = (run.framework != "unknown" and bool(run.settings)) or bool(run.unsharded)  # a log alone does not say it
    launched = launched or (run.framework == "unknown" and run.topology.asked is not None)
    trained = run.topology.actor_gpus if run.topology.known else None
    if launched and trained == 1:
        return {"one_process": Fact(True, "script", say("the launch starts one process"))}
    if seen > 1:
        return {"one_process": Fact(False, "log", say("the log counts {count} processes", count=seen))}
    if counted == 1:
        return {"one_process": Fact(True, "log", say("the log counts one process"))}
    stage = float(crash.engine_figures.get("actor.zero_stage", 0))
    if stage >= 1:  # it shares something out
        return {"one_process": Fact(False, "log", say("ZeRO stage {stage:g}", stage=stage))}
    if launched and trained is not None:
        return {"one_process": Fact(False, "script", say("the launch's topology"))}
    if (platform := facts.get("platform")) is not None and platform.value in ("mps", "cpu"):
        return {"one_process": Fact(True, platform.source, platform.because)}
    if (met := facts.get("gpu.others_alike")) is not None and met.value is True:
        return {"one_process": replace(met, value=False)}
    one_card = len(machine.usable) == 1 and not machine.more_gpus and machine.nodes in (None, 1)
    if one_card and run.topology.actor_gpus == 1:
        return {"one_process": Fact(True, "machine", say("the machine has one card"))}
    return {}


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


@lru_cache(maxsize=4096)
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
    return re.compile(rf"(?<![A-Z_])(?:{'|'.join(map(re.escape, longest_first))})(?![A-Z_])")


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
