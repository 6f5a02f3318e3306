"""Tells what a run computes on, and whether it is one process: what shares states among processes needs several."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.crash.phase import frame_words
from advisor.diagnosis.fact import Fact, Facts
from advisor.diagnosis.frame_facts import frame_facts
from advisor.knowledge.schema import PlatformMark
from advisor.language import say
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
