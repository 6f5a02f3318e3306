"""Reads which devices a process may use from the variables of its environment, as CUDA, HIP and CANN do."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from advisor.regex import regex

_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES")
_DEVICE = regex(r"\d{1,3}|(?:MIG-)?(?:GPU-)?[0-9a-fA-F][\w/-]*")


def visible_ids(environment: Mapping[str, str]) -> tuple[str, ...] | None:
    """Numbers, or (the beginnings of) UUIDs, up to the first that is none, as the driver reads them; (): no device is
    visible; None: no variable says."""
    told = next((environment[name] for name in _VARIABLES if name in environment), None)
    if told is None:
        return None
    return tuple(dict.fromkeys(takewhile(_DEVICE.fullmatch, (one.strip() for one in told.strip(" []").split(",")))))
