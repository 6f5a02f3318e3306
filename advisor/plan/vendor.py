"""Speaks of AMD's and Ascend's variables and tools where the card is one of theirs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec.structs import replace

from advisor.plan.plan import PlanStep
from advisor.plan.situation import Situation

Vendor = Literal["nvidia", "amd", "ascend"]

_NAMES: Mapping[Vendor, Mapping[str, str]] = {
    "amd": {
        "PYTORCH_CUDA_ALLOC_CONF": "PYTORCH_HIP_ALLOC_CONF",
        "CUDA_VISIBLE_DEVICES": "HIP_VISIBLE_DEVICES",
        "nvidia-smi": "rocm-smi --showpids",
    },
    "ascend": {
        "PYTORCH_CUDA_ALLOC_CONF": "PYTORCH_NPU_ALLOC_CONF",
        "CUDA_VISIBLE_DEVICES": "ASCEND_RT_VISIBLE_DEVICES",
        "nvidia-smi": "npu-smi info",
    },
}
"""Vendor → NVIDIA's name → its own (pytorch docs/source/notes/hip.rst; vllm-project/vllm-ascend docs, environment)."""


def vendor_of(situation: Situation) -> Vendor:
    """Whose card it is: by the message of the crash, else by the name of the machine's card."""
    for evidence in situation.predictor.crash.evidence:
        if evidence.signature.startswith("npu-"):
            return "ascend"
        if evidence.fields.get("device") == "HIP":
            return "amd"
    names = {gpu.name for gpu in situation.predictor.inputs.machine.usable}
    return next((card.vendor for card in situation.knowledge.gpus if card.name in names), "nvidia")


def in_words_of(vendor: Vendor, step: PlanStep) -> PlanStep:
    """The step with the names that this vendor's software has for variables and tools."""
    names = _NAMES.get(vendor)
    if names is None:
        return step
    pattern = re.compile("|".join(names))

    def renamed(text: str) -> str:
        return pattern.sub(lambda found: names[found.group()], text)

    changes = tuple(replace(change, key=renamed(change.key)) for change in step.changes)
    caveats = tuple(map(renamed, step.caveats))
    return replace(step, changes=changes, why=renamed(step.why), costs=renamed(step.costs), caveats=caveats)


def in_force(step: PlanStep, situation: Situation) -> bool:
    """Whether a step sets variables only, and the launch exports them just so already."""
    launch = situation.predictor.inputs.launch
    if launch is None or step.kind != "environment" or not step.changes:
        return False
    return all(launch.environment.get(change.key) == change.new for change in step.changes)
