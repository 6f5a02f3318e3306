"""Reads what a script asks of Slurm, Docker or systemd: the RAM of a node beyond which its job is killed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from advisor.bash.visible_devices import visible_ids
from advisor.bash.wrapped import batch_options, cards_of_node, counted, gpus_of_node, started_under
from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.machine.gpu_spec import KnownGpu, left_open, of_size, parse_gpus
from advisor.machine.inventory import BatchMemory, Gpu, Machine
from advisor.regex import regex

_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = regex(r"(\d{1,9})([KMGT]?)B?", re.IGNORECASE)
"""Megabytes where nothing else is said (sbatch(1), --mem)."""
_VISIBLE = mark("CUDA_VISIBLE_DEVICES ({ids}) leaves {left} of this box's {count} devices to the run.")


def batch_memory(script: str, file: str = "") -> BatchMemory | None:
    """The limit that the script's own #SBATCH lines set; None where they set none, or all of a node (`--mem=0`)."""
    found_at = {name: (value, line) for name, value, line in batch_options(script)}
    asked = {name: value for name, (value, _) in found_at.items()}
    for name, each_of in (("--mem", None), ("--mem-per-gpu", gpus_of_node), ("--mem-per-cpu", _cpus)):
        found = _SIZE.fullmatch(asked.get(name, ""))
        if found is None:
            continue
        count = 1 if each_of is None else each_of(asked)
        size = int(found[1]) * _UNITS[found[2].upper() or "M"] * (count or 0)
        if size:
            times = f" × {count}" if each_of is not None else ""
            place = f" ({clean_line(file, 60)}:{found_at[name][1]})" if file else ""
            source = clean_line(f"#SBATCH {name}={asked[name]}{times}", 60) + place
            return BatchMemory(size, source, name, asked[name], count or 1, file, found_at[name][1])
    return _started_under(script, file)


def _started_under(script: str, file: str) -> BatchMemory | None:
    """The limit of the one command of the script that starts the run under one; None where several do, or none."""
    data = script.encode()
    found = started_under(data)
    if found is None:
        return None
    written = found.text[-1].upper() if found.text[-1].isalpha() else found.unit
    size = int(found.text.rstrip("bkmgtBKMGT")) * _UNITS.get(written, 1)
    at = data.count(b"\n", 0, found.start) + 1
    place = f" ({clean_line(file, 60)}:{at})" if file else ""
    source = clean_line(f"{found.by} {found.option}={found.text}", 60) + place
    return BatchMemory(size, source, found.option, found.text, 1, file, at, found.by, found.is_alone) if size else None


def within(machine: Machine, asked: BatchMemory) -> Machine:
    """The machine with that limit, where it is less than is known of a node. A log that prints the limit for all the
    RAM there is (Ray does, in a container) knows the container, not the node."""
    host = machine.host
    if machine.sources.get("host.total") == "log" and host.total_bytes == asked.limit_bytes:
        host = replace(host, total_bytes=None)
    then = machine.sources.get("host.limit") == "log"  # the job that died may have asked for another
    known = host.total_bytes if then else host.ceiling_bytes
    if known is not None and known <= asked.limit_bytes:
        return machine
    host = replace(host, limit_bytes=asked.limit_bytes, limit_used_bytes=None, limit_source=asked.source)
    host = replace(host, least_limit_bytes=None)
    sources = {**machine.sources, "host.limit": "script"}
    return replace(machine, host=host, sources=sources, asked_memory=asked)


def visible(machine: Machine, environment: Mapping[str, str]) -> Machine:
    """The machine with those of its devices that a run with these variables may use: the numbers are the driver's."""
    ids = visible_ids(environment)
    if ids is None or not machine.gpus:
        return machine
    left: list[Gpu] = []
    for one in ids:
        by_index = one.isdecimal()
        chosen = [gpu for gpu in machine.gpus if (gpu.index == int(one) if by_index else gpu.uuid.startswith(one))]
        if not chosen:  # CUDA reads no further
            break
        left.append(chosen[0])
    if len(left) == len(machine.gpus):
        return machine
    told = say(_VISIBLE, ids=clean_line(", ".join(ids), 80) or '""', left=len(left), count=len(machine.gpus))
    return replace(machine, gpus=tuple(left), problems=(*machine.problems, told))


def _cpus(asked: dict[str, str]) -> int | None:
    """Processors of a node; of one task a node where nothing else is said."""
    tasks = asked.get("--ntasks-per-node") or (asked.get("--ntasks") if asked.get("--nodes", "1") == "1" else None)
    each, count = counted(asked.get("--cpus-per-task")), counted(tasks or "1")
    return each * count if each and count else None


def with_cards(machine: Machine, script: str, known: Sequence[KnownGpu]) -> Machine:
    """The machine with the GPUs of a node that the script asks Slurm for, where nothing but a log speaks of any; of a
    kind that has two sizes, of unknown size unless the log tells it."""
    told = cards_of_node(script) if machine.sources.get("gpus", "log") == "log" else ""
    try:
        cards = parse_gpus(told, known) if told else ()
    except ValueError:
        cards = parse_gpus(told.partition("x")[0], known)  # a kind of GPU that is the cluster's own word
    if not cards:
        return machine
    size = machine.gpu_bytes
    sized = [of_size(card, size, known) if size else card for card in cards]
    gpus = tuple(left_open(card, known) if card.problem and card.total_bytes else card for card in sized)
    open_ones = dict.fromkeys(card.problem for card in gpus if card.problem and not size)
    sources = {**machine.sources, "gpus": "script"}
    return replace(machine, gpus=gpus, more_gpus=False, sources=sources, problems=(*machine.problems, *open_ones))
