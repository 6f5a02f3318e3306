"""Tells by a traceback's frames, or by who failed, what shards the states, where no launch says it."""

from __future__ import annotations

import re

from advisor.crash.evidence import Crash
from advisor.crash.phase import frame_words
from advisor.diagnosis.fact import Fact
from advisor.hostile import clean_line

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


_WORKERS = (
    ("megatron", re.compile(r"Megatron\w*(?:PolicyWorker|TrainRayActor)")),
    ("fsdp", re.compile(r"(?:DTensor\w*PolicyWorker|FSDP\w*TrainRayActor)")),
)
"""Trainer → Ray classes that train with it (NVIDIA-NeMo/RL@7ea279abf nemo_rl/models/policy/workers;
THUDM/slime@624b824a8 slime/backends/megatron_utils/actor.py)."""


def backend_facts(crash: Crash) -> dict[str, Fact]:
    """trainer and zero3, each only where a frame lies in code that runs with one of them alone, or the process that
    failed is of a class that trains so."""
    facts: dict[str, Fact] = {}
    failed = crash.evidence[0].process if crash.evidence else ""
    for trainer, names in _WORKERS:
        if names.match(failed):
            facts.setdefault("trainer", Fact(trainer, "log", clean_line(failed, 80)))
    for frame in crash.frames:
        path = frame.file.replace("\\", "/")
        where = frame_words(frame)
        for trainer, pattern in _TRAINERS:
            if pattern.search(path):
                facts.setdefault("trainer", Fact(trainer, "log", where))
        for stage_three, pattern in _STAGES:
            if pattern.search(path):
                facts.setdefault("zero3", Fact(stage_three, "log", where))
    return facts
