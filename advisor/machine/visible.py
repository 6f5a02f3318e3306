"""Which cards a program sees: CUDA_VISIBLE_DEVICES, and the order in which CUDA counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.machine.inventory import Gpu

_STRANGE = mark("CUDA_VISIBLE_DEVICES names {entry!r}, which is no card here; CUDA stops there.")
_TWICE = mark("CUDA_VISIBLE_DEVICES names card {entry!r} twice; CUDA then sees none.")
_ORDER = mark(
    "The cards differ and CUDA counts the fastest first; CUDA_DEVICE_ORDER=PCI_BUS_ID counts as nvidia-smi does."
)


@dataclass(frozen=True, slots=True)
class Visible:
    """The cards in CUDA's own order: `gpus[0]` is what a program calls cuda:0."""

    gpus: tuple[Gpu, ...]
    problem: str = ""
    """Why this is less, or less certain, than what was asked for."""


def visible_gpus(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> Visible:
    """The cards that a program with this environment sees.

    As CUDA reads it: unset shows all; numbers or prefixes of UUIDs, comma separated; the first entry that names no card
    ends the list; a card named twice gives none at all. Source:
    CUDA C++ Programming Guide, "CUDA Environment Variables".
    """
    asked = environ.get("CUDA_VISIBLE_DEVICES")
    if asked is None:
        return Visible(tuple(gpus), _order_problem(gpus, environ))
    chosen: list[Gpu] = []
    problem = ""
    for entry in (part.strip() for part in asked.split(",")):
        gpu = _named(entry, gpus)
        if gpu is None:
            if entry not in ("", "-1", "NoDevFiles"):
                problem = say(_STRANGE, entry=clean_line(entry, 60))
            break
        if any(gpu is other for other in chosen):
            return Visible((), say(_TWICE, entry=clean_line(entry, 60)))
        chosen.append(gpu)
    return Visible(tuple(chosen), problem or _order_problem(gpus, environ))


def _named(entry: str, gpus: Sequence[Gpu]) -> Gpu | None:
    if entry.isascii() and entry.isdigit():
        whole = [gpu for gpu in gpus if gpu.index == int(entry)]
        return whole[0] if whole else None
    if entry[:4].upper() in ("GPU-", "MIG-"):
        matches = [gpu for gpu in gpus if gpu.uuid.lower().startswith(entry.lower())]
        return matches[0] if len(matches) == 1 else None
    return None


def _order_problem(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> str:
    if len({gpu.name for gpu in gpus if not gpu.mig}) < 2 or environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return ""
    return say(_ORDER)
