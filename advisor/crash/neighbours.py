"""Which of the processes that torch lists on a full card are the run's own engine, by the names of its lines."""

from __future__ import annotations

import re
from collections.abc import Iterable

from advisor.crash.patterns import Field
from advisor.units import read_size

_LISTED = re.compile(r"Process(\d{1,10})has(\d[\d.]*(?:bytes|[KMGTPE]iB))memoryinuse")
_NAMED = re.compile(r"(\S.*?) ?pid=(\d{1,10})")
"""A label is a chain: "RolloutRayActor pid=7 EngineCore_DP0 pid=12"."""
_ENGINE = re.compile(r"LLM(?:Ray)?Actor|RolloutRayActor|vllm|sglang|EngineCore", re.IGNORECASE)
"""Ray classes of OpenRLHF and Open-Reasoner-Zero; verl's, slime's and NeMo-RL's servers; vLLM's own processes."""


def lists_processes(message: str) -> bool:
    """Whether torch's message names processes by their id at all."""
    return _LISTED.search(_joined(message)) is not None


def engine_processes(message: str, labels: Iterable[str]) -> dict[str, Field]:
    """`engine_process_bytes` and `engine_process` (its label) of the listed processes that are engines; else nothing.

    `labels`: who printed the lines of the run ("LLMRayActor pid=347860"). Ids of a container that the driver does not
    share match none of them.
    """
    engines = {pid: f"{name} pid={pid}" for label in labels for name, pid in _NAMED.findall(label) if _engine(name)}
    found = [(engines[pid], read_size(size)) for pid, size in _LISTED.findall(_joined(message)) if pid in engines]
    sizes = [size for _, size in found if size is not None]
    return {"engine_process_bytes": sum(sizes), "engine_process": found[0][0]} if sizes else {}


def _engine(name: str) -> bool:
    return _ENGINE.search(name) is not None


def _joined(message: str) -> str:
    """Without blanks: a message may be wrapped anywhere, also inside a number."""
    return re.sub(r"\s+", "", message)
