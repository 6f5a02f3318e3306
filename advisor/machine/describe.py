"""The machine as the user describes it, joined with what was measured here and what the log printed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from advisor.hostile import clean_line
from advisor.machine.cards import CardFact, gpus_from, parse_gpus
from advisor.machine.inventory import Gpu, Host, Machine
from advisor.machine.inventory_json import from_json
from advisor.machine.libraries import normalised
from advisor.units import parse_size, show_bytes
from advisor.words import Source

__all__ = ["described", "from_log", "gpus_from", "join_nodes", "merge", "parse_gpus", "read_machine_file"]

_FILE_LIMIT = 4 * 2**20
_LIBRARY = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*==?\s*([0-9A-Za-z][0-9A-Za-z.+!_-]*)\s*$")
_HOST_FIELDS = {"total_bytes": "host.total", "limit_bytes": "host.limit", "shm_bytes": "shm"}


def described(
    facts: Sequence[CardFact],
    *,
    gpus: str | None = None,
    nodes: int | None = None,
    host_ram: str | None = None,
    shm: str | None = None,
    libraries: Sequence[str] = (),
    machine_files: Sequence[Path] = (),
) -> Machine:
    """What `--machine FILE`, `--gpus`, `--nodes`, `--host-ram`, `--shm` and `--lib` say; flags override files.

    Raises ValueError with one sentence that names the flag or the file, OSError where a file cannot be read.
    """
    base = join_nodes([read_machine_file(path) for path in machine_files]) if machine_files else Machine()
    if nodes is not None and nodes < 1:
        raise ValueError(f"--nodes {nodes}: a run has at least one node")
    host = base.host
    if host_ram is not None:
        host = replace(host, total_bytes=_size("--host-ram", host_ram), limit_bytes=None, limit_source="")
    if shm is not None:
        host = replace(host, shm_bytes=_size("--shm", shm))
    cards = _gpus(gpus, facts) if gpus is not None else ()
    return _sourced(
        replace(
            base,
            nodes=nodes if nodes is not None else base.nodes,
            gpus=cards or base.gpus,
            host=host,
            libraries={**base.libraries, **_named_versions(libraries)},
            problems=(*base.problems, *dict.fromkeys(f"{card.name}: {card.problem}" for card in cards if card.problem)),
        ),
        "described",
    )


def from_log(
    *,
    gpu_bytes: int | None = None,
    gpu_names: Sequence[str] = (),
    gpu_count: int | None = None,
    nodes: int | None = None,
    host_bytes: int | None = None,
    libraries: Mapping[str, str] | None = None,
) -> Machine:
    """What a log printed of its machine; sizes in bytes. `gpu_count` None: one card stands for all."""
    name = clean_line(gpu_names[0], 80) if gpu_names else "GPU in the log"
    count = max(1, gpu_count or len(gpu_names) or 1)
    cards = tuple(Gpu(index, name, gpu_bytes) for index in range(count)) if gpu_bytes or gpu_names else ()
    versions = {normalised(name): version for name, version in (libraries or {}).items()}
    return _sourced(Machine(nodes=nodes, gpus=cards, host=Host(total_bytes=host_bytes), libraries=versions), "log")


def _gpus(text: str, facts: Sequence[CardFact]) -> tuple[Gpu, ...]:
    try:
        return parse_gpus(text, facts)
    except ValueError as error:
        raise ValueError(f"--gpus: {error}") from error


def _size(flag: str, text: str) -> int:
    try:
        size = parse_size(text)
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from error
    if size <= 0:
        raise ValueError(f"{flag}: {text!r} is no memory at all (write it like 760GB)")
    return size


def _named_versions(pairs: Sequence[str]) -> dict[str, str]:
    versions = {}
    for pair in pairs:
        match = _LIBRARY.match(pair)
        if match is None:
            raise ValueError(f"--lib: {clean_line(pair, 80)!r} is not NAME=VERSION (write it like deepspeed=0.16.3)")
        versions[normalised(match.group(1))] = match.group(2)
    return versions


def _sourced(machine: Machine, source: Source) -> Machine:
    """The same machine with every known field marked as coming from `source`."""
    return replace(machine, sources=dict.fromkeys(known_fields(machine), source))


def known_fields(machine: Machine) -> list[str]:
    """Names, as in `Machine.sources`, of what is known of this machine."""
    fields = ["nodes"] if machine.nodes is not None else []
    fields += ["gpus"] if machine.gpus else []
    fields += [name for attribute, name in _HOST_FIELDS.items() if getattr(machine.host, attribute) is not None]
    return fields + [f"libraries.{name}" for name in machine.libraries]


# --- files ---------------------------------------------------------------------------------------------------------


def read_machine_file(path: Path) -> Machine:
    """A machine from a file that `machine --format json` wrote, or from the `machine` block of a diagnosis.

    Every field counts as described. Raises ValueError naming the file and the flaw, OSError.
    """
    if path.is_dir():
        raise ValueError(f"{path}: is a folder, not a machine file")
    with path.open("rb") as file:
        data = file.read(_FILE_LIMIT + 1)
    if len(data) > _FILE_LIMIT:
        raise ValueError(f"{path}: too large for a machine file")
    try:
        stated = json.loads(data)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: not JSON ({error.msg})") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: not JSON (write it with `rl-oom-advisor machine --format json`)") from error
    try:
        return _sourced(from_json(stated), "described")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def join_nodes(machines: Sequence[Machine]) -> Machine:
    """One description of several nodes, each measured on its own: the smallest of each thing, since it decides.

    Nodes are added up. Where they differ, the smaller is taken and a problem says so. ValueError without machines.
    """
    if not machines:
        raise ValueError("no machine was given")
    if len(machines) == 1:
        return machines[0]
    weakest = min(machines, key=lambda machine: (len(machine.gpus), machine.gpu_bytes or 0))
    tightest = min(machines, key=lambda machine: machine.host.ceiling_bytes or 2**63)
    shm = min((m.host.shm_bytes for m in machines if m.host.shm_bytes is not None), default=None)
    joined = replace(
        weakest,
        nodes=sum(machine.nodes or 1 for machine in machines),
        host=replace(tightest.host, shm_bytes=shm),
        problems=(*weakest.problems, *_differences(machines)),
    )
    return _sourced(joined, "described")


def _differences(machines: Sequence[Machine]) -> list[str]:
    kinds: dict[str, set[object]] = {
        "GPUs": {tuple((gpu.name, gpu.total_bytes) for gpu in machine.gpus) for machine in machines},
        "host memory": {machine.host.ceiling_bytes for machine in machines},
    }
    said = [
        f"The nodes differ in {kind}; the smallest node is taken." for kind, found in kinds.items() if len(found) > 1
    ]
    for name in sorted({name for machine in machines for name in machine.libraries}):
        versions = sorted({machine.libraries.get(name, "none") for machine in machines})
        if len(versions) > 1:
            said.append(f"The nodes differ in {name}: {', '.join(versions)}.")
    return said


# --- joining what is known -----------------------------------------------------------------------------------------


def merge(measured: Machine, description: Machine, log: Machine | None = None) -> Machine:
    """One machine from three sources: described over measured over the log, field by field.

    Where the training ran elsewhere (this box has no such cards), the log counts before this box: its host memory is
    not the run's and is left out, with a problem that says so; its libraries only fill what the log does not print.
    """
    log = log or Machine()
    elsewhere = _ran_elsewhere(measured, description, log)
    here = replace(measured, gpus=(), host=Host()) if elsewhere else measured
    if elsewhere or log.nodes is not None:  # a box can count no node but itself
        here = replace(here, nodes=None)
    order = [description, log, here] if elsewhere else [description, here, log]
    gpus_of = next((machine for machine in order if machine.gpus), Machine())
    host = _merged_host([machine.host for machine in order])
    return Machine(
        nodes=next((machine.nodes for machine in order if machine.nodes is not None), None),
        gpus=gpus_of.gpus,
        host=host,
        libraries={name: version for machine in reversed(order) for name, version in machine.libraries.items()},
        environment=next((machine.environment for machine in order if machine.environment), ""),
        driver=gpus_of.driver,
        sources=_merged_sources(order),
        problems=(
            *description.problems,
            *_problems_here(measured, log, gpus_of, host, elsewhere),
            *log.problems,
        ),
    )


def _ran_elsewhere(measured: Machine, description: Machine, log: Machine) -> bool:
    if not measured.gpus:
        others = (description, log)
        return any(machine.gpus or machine.host.total_bytes is not None for machine in others)
    if not description.gpus:
        return False
    return len(description.gpus) != len(measured.gpus) or not _alike(description.gpu_bytes, measured.gpu_bytes)


def _alike(one: int | None, other: int | None) -> bool:
    """The same kind of card: what drivers report for one differs by a few hundred MiB."""
    return one is not None and other is not None and abs(one - other) <= 0.1 * other


def _merged_host(hosts: Sequence[Host]) -> Host:
    """The best host as a whole, holes filled from the next; a described total also lifts the limits measured here."""
    first = next((host for host in hosts if host.total_bytes is not None), Host())
    shm = next((host for host in hosts if host.shm_bytes is not None), Host())
    limit = first
    for host in hosts:
        if host is first or host.limit_bytes is not None:
            limit = host
            break
    return replace(
        first,
        limit_bytes=limit.limit_bytes,
        limit_used_bytes=limit.limit_used_bytes,
        limit_source=limit.limit_source,
        oom_kills=first.oom_kills if first.oom_kills is not None else limit.oom_kills,
        shm_bytes=shm.shm_bytes,
        shm_used_bytes=shm.shm_used_bytes,
    )


def _merged_sources(order: Sequence[Machine]) -> dict[str, Source]:
    sources: dict[str, Source] = {}
    for machine in reversed(order):
        known = set(known_fields(machine))
        if "host.total" in known and "host.limit" not in known:
            sources.pop("host.limit", None)
        sources.update({name: source for name, source in machine.sources.items() if name in known})
    return sources


def _problems_here(measured: Machine, log: Machine, gpus_of: Machine, host: Host, elsewhere: bool) -> list[str]:
    """What went wrong here matters less once the machine is described; what was left out is said instead."""
    said = [problem for problem in measured.problems if not gpus_of.gpus or gpus_of is measured]
    if elsewhere and measured.host.total_bytes is not None and host.total_bytes is None:
        size = show_bytes(measured.host.ceiling_bytes)
        said.append(f"The run's GPUs are not in this box, so its {size} of RAM are not counted; give --host-ram.")
    if gpus_of is measured and log.gpu_bytes is not None and not _alike(log.gpu_bytes, measured.gpu_bytes):
        theirs, ours = show_bytes(log.gpu_bytes), show_bytes(measured.gpu_bytes)
        said.append(
            f"The log's GPU has {theirs}, this box's {ours}: if the run was elsewhere, describe it with --gpus."
        )
    return said
