"""Tells what a failing line was making: weights that are gathered or loaded, or logits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from advisor.crash.evidence import Frame
from advisor.regex import regex

Made = Literal["weights", "logits", ""]
GATHER = regex(r"all_?gather|GatheredParameters|summon_full_params|_unshard|full_tensor", re.IGNORECASE)
"""Functions that collect sharded weights (DeepSpeed, FSDP, DTensor)."""
GATHERED = regex(
    r"(?:numel\w*|partition_s\w*) \* [\w.]*(?:world_size|num_partitions)|"
    r"\b(?:_?get_)?_?all_gather\w*\(|\b_?unshard\(|summon_full_params\(|\bfull_tensor\("
)
"""Source lines that make the buffer of a gather: a shard's elements times the ranks (torch's FSDP, DeepSpeed)."""
LOADS = regex(
    r"^(?:from_pretrained|_?load_pretrained_model\w*|_load_state_dict_into_\w+|load_checkpoint_in_model|load_state_dict)$"
)
"""Functions that load weights before there is an optimizer (torch, transformers, accelerate)."""
LOGITS = regex(
    r"^(?:\w*log_?softmax|softmax|logsumexp|entropy_from_logits\w*|cross_entropy\w*|\w*logits_to_log_?probs\w*|"
    r"\w*log_?probs?_from_logits\w*|\w*vocab_parallel_\w+|gather_logprobs\w*|_?calculate_log_probs\w*)$"
)
"""Functions that go over the whole vocabulary (torch, verl, OpenRLHF, TRL, slime, AReaL, NeMo-RL)."""
CALLS = regex(r"\b(?!softmax\b)(\w+)\(")
CALLED = regex(r"\blogits\b(?:\[[^]]*\])?\.(?:float|to|exp|clone|contiguous|softmax|log_softmax|div_?)\(")
"""What the innermost source line calls, where the call itself has no frame, and a whole copy of the logits in it."""
ONE_ROW = regex(r"\b(?:row_logits?|logits?_row)\b|\bfor (\w+) in logits\b")
"""Source lines that go over a batch's logits row by row (TRL selective_log_softmax, verl logprobs_from_logits_v2)."""
ATTENTION = regex(r"\battn_\w+|\bscores?\b.*softmax", re.IGNORECASE)
"""A softmax of attention goes over tokens, not over words."""
NEAREST = 2
"""Innermost frames among which one of them stands where it is what failed."""


def scores(frame: Frame) -> bool:
    """Whether the source line itself goes over the whole vocabulary."""
    return CALLED.search(frame.text) is not None or any(map(LOGITS.match, CALLS.findall(frame.text)))


def gathers(frame: Frame) -> bool:
    """Whether function or source line collects sharded weights."""
    return GATHER.search(frame.function) is not None or GATHERED.search(frame.text) is not None


def made(frames: Sequence[Frame]) -> Made:
    """What the innermost frames were making; "" where they do not tell."""
    near = frames[-NEAREST:]
    if any(ATTENTION.search(frame.text) for frame in near):
        return ""
    if any(gathers(frame) for frame in near) or any(LOADS.match(frame.function) for frame in frames):
        return "weights"
    scored = any(LOGITS.match(frame.function) for frame in near) or (bool(frames) and scores(frames[-1]))
    return "logits" if scored else ""


def one_row(frames: Sequence[Frame]) -> bool:
    """Whether the innermost line takes one row of a batch at a time."""
    return bool(frames) and any(ONE_ROW.search(frame.text) for frame in frames[-NEAREST:])
