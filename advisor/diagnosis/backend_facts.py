"""Tells by a traceback's frames what shards the states, where no launch says it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from advisor.crash.evidence import Frame
from advisor.crash.phase import frame_words
from advisor.diagnosis.fact import Fact

_TRAINERS = (
    ("deepspeed", re.compile(r"(?:^|/)deepspeed/(?:runtime|ops)/")),
    (
        "megatron",
        re.compile(
            r"(?:^|/)megatron/core/|/megatron_(?:workers|actor|critic)\.py$|/(?:engine/megatron|backends/megatron_utils)/"
        ),
    ),
    (
        "fsdp",
        re.compile(
            r"(?:^|/)torch/distributed/(?:fsdp|_composable/fsdp)/|/(?:fsdp_workers|dp_actor|dp_critic)\.py$|/(?:engine/fsdp|backends/fsdp_utils)/"
        ),
    ),
)
"""Trainer → code of its own that runs only where it trains (deepspeedai/DeepSpeed, NVIDIA/Megatron-LM, pytorch;
verl-project/verl@v0.7.0 verl/workers, THUDM/slime@v0.3.1 slime/backends)."""
_STAGES = (
    (True, re.compile(r"/zero/(?:stage3|partition_parameters|partitioned_param_coordinator|parameter_offload)\.py$")),
    (False, re.compile(r"/zero/stage_1_and_2\.py$")),
)
"""Whether it is ZeRO-3 → files of deepspeed/runtime/zero that run only then (deepspeedai/DeepSpeed@v0.16.0)."""


def backend_facts(frames: Sequence[Frame]) -> dict[str, Fact]:
    """trainer and zero3, each only where a frame lies in code that runs with one of them alone."""
    facts: dict[str, Fact] = {}
    for frame in frames:
        path = frame.file.replace("\\", "/")
        where = frame_words(frame)
        for trainer, pattern in _TRAINERS:
            if pattern.search(path):
                facts.setdefault("trainer", Fact(trainer, "log", where))
        for stage_three, pattern in _STAGES:
            if pattern.search(path):
                facts.setdefault("zero3", Fact(stage_three, "log", where))
    return facts
