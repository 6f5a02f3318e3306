"""Builds the machine that the user describes, and merges it with what was measured here and what the log printed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from advisor.hostile import clean_line
from advisor.language import listed, mark, say
from advisor.machine import gpu_spec
from advisor.machine.card_words import MOST_OF_A_NODE, CardsTold
from advisor.machine.inventory import Gpu, Host, Machine, known_fields
from advisor.machine.inventory_json import from_json
from advisor.machine.libraries import normalised
from advisor.machine.nodes import free_for_a_run, join_nodes
from advisor.machine.processes import leftovers
from advisor.machine.ram_words import Ram, ram_beside, ram_told
from advisor.regex import regex
from advisor.units import parse_size, show_bytes
from advisor.words import Source

T = TypeVar("T")
_FILE_LIMIT = 64 * 2**20
"""Bytes."""
_LIMIT = ("limit_bytes", "limit_used_bytes", "limit_source", "least_limit_bytes")
_SAME_GPU = 0.1
"""What drivers report for one kind of card differs by a few hundred MiB, never by this share."""
_PLAIN_COUNT = regex(r"\s*\d+\s*[xX×*]\s*\S+(?:[ -]\d+ ?Gi?B)?\s*$", re.IGNORECASE)
"""A count as a description gives it: "8xA100-40GB", no sentence."""
_LIBRARY = regex(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*==?\s*([0-9A-Za-z][0-9A-Za-z.+!_-]*)\s*$")
_LABEL = regex(r"^\d{1,6}: (?=[\s{}\[\]\"])", re.MULTILINE)
_SPACE = regex(r"\s*")
_NO_PAIR = mark("{flag}: {pair!r} is not NAME=VERSION (write it like deepspeed=0.16.3)")
_NO_JSON = mark("{path}: not JSON (write it with `rl-oom-advisor machine --format json`)")
_OF_HOST = regex(r"\b(?:d?ram|ddr\d|host|system|cpu|node)\b|内存", re.IGNORECASE)
"""Words beside a size that is no card's."""
NAMELESS = mark("GPU in the log")
"""What a card is called that a log gives no name."""
_NOT_COUNTED = mark("The run's GPUs are not in this box, so its {size} of RAM are not counted; give --host-ram.")
_LITTLE, _MUCH = 0.02, 0.1
"""Parts of the RAM: what any system holds, and what others hold that may be what a run misses."""
_LEFT_NOW = mark("Others leave {left} of the {whole} of RAM here now: the run is counted with that.")
_LEFT_THEN = mark("Others leave {left} of the {whole} of RAM here now; as long as they do, a run has no more.")
_OTHER_CARD = mark("The log's GPU has {theirs}, this box's {ours}: if the run was elsewhere, describe it with --gpus.")


def described(
    facts: Sequence[gpu_spec.KnownGpu],
    *,
    gpus: str | None = None,
    nodes: int | None = None,
    host_ram: str | None = None,
    shm: str | None = None,
    libraries: Sequence[str] = (),
    machine_files: Sequence[Path] = (),
    asked: Sequence[Machine] = (),
    problems: Sequence[str] = (),
    named: bool = True,
) -> Machine:
    """What `--machine FILE`, `--gpus`, `--nodes`, `--host-ram`, `--shm` and `--lib` say; flags override files.

    `asked`: nodes of a running cluster that told of themselves, beside those of the files; `problems`: of those that
    did not. Without `named`, words of --gpus that name no card are a problem of the machine, and no error.

    Raises ValueError with one sentence that names the flag or the file, OSError where a file cannot be read.
    """
    given = [machine for path in machine_files for machine in read_machine_files(path)]
    base = join_nodes([*given, *asked]) if given or asked else Machine()
    if nodes is not None and nodes < 1:
        raise ValueError(say("--nodes {nodes}: a run has at least one node", nodes=nodes))
    host = base.host
    ram = ram_beside(gpus or "") if host_ram is None else _ram(host_ram)
    if host_ram is not None or ram.total is not None:
        source = "--host-ram" if ram.limit is not None else ""
        host = replace(host, total_bytes=ram.total, limit_bytes=ram.limit, limit_source=source)
    if shm is not None:
        host = replace(host, shm_bytes=_size("--shm", shm))
    told = gpus or ""
    reading = gpu_spec.read_cards if named else gpu_spec.cards_named
    cards, read = ((), CardsTold()) if gpus is None else _flag("--gpus", lambda: reading(told, facts))
    unknown = [card for card in cards if not (card.vendor or card.problem)]
    if (named or _PLAIN_COUNT.match(told)) and (strangers := gpu_spec.unsized(unknown)):
        raise ValueError(say("{flag}: {error}", flag="--gpus", error=strangers[0]))
    if nodes and nodes > 1 and len(cards) > MOST_OF_A_NODE and len(cards) % nodes == 0:
        cards = cards[: len(cards) // nodes]  # those of all nodes were named
    own = any(_alike(card.total_bytes, ram.total) for card in cards)
    if own and host_ram is None and not _OF_HOST.search(told):  # "8 A100 (memory 40G)"
        host = base.host
    assumed = (say("{name}: {problem}", name=card.name, problem=card.problem) for card in cards if card.problem)
    return _sourced(
        replace(
            base,
            nodes=nodes or read.nodes or base.nodes,
            gpus=cards or base.gpus,
            worded=bool(cards) and _PLAIN_COUNT.match(told) is None,
            host=host,
            libraries={**base.libraries, **named_versions("--lib", libraries)},
            problems=(*problems, *base.problems, *dict.fromkeys((*read.notes, *assumed))),
        ),
        "described",
    )


def from_log(
    *,
    gpu_bytes: int | None = None,
    gpu_names: Sequence[str] = (),
    gpu_count: int | None = None,
    gpus_seen: int | None = None,
    nodes: int | None = None,
    host_bytes: int | None = None,
    host_limit: int | None = None,
    libraries: Mapping[str, str] | None = None,
) -> Machine:
    """What a log printed of its machine; sizes in bytes. `gpu_count`: cards of a node; where it is None, a node has at
    least `gpus_seen` of them."""
    name = clean_line(gpu_names[0], 80) if gpu_names else say(NAMELESS)
    count = gpu_count or max(1, gpus_seen or 1, len(gpu_names))
    card = Gpu(0, name, gpu_bytes, vendor=gpu_spec.vendor_by_name(name))
    cards = tuple(replace(card, index=index) for index in range(count)) if gpu_bytes or gpu_names or gpu_count else ()
    versions = {normalised(name): version for name, version in (libraries or {}).items()}
    machine = Machine(
        nodes,
        cards,
        Host(host_bytes, limit_bytes=host_limit, limit_source=say("a limit that the log prints") if host_limit else ""),
        versions,
        more_gpus=bool(cards) and gpu_count is None,
        worded=bool(cards),
    )
    return _sourced(machine, "log")


def as_many(machine: Machine, count: int) -> Machine:
    """The machine with so many cards of its one kind."""
    cards = tuple(replace(machine.gpus[0], index=index) for index in range(count))
    return replace(machine, gpus=cards) if len(cards) > len(machine.gpus) else machine


def _flag(flag: str, parse: Callable[[], T]) -> T:
    """What `parse` makes of a flag's text. Raises ValueError naming the flag."""
    try:
        return parse()
    except ValueError as error:
        raise ValueError(say("{flag}: {error}", flag=flag, error=error)) from error


def _ram(text: str) -> Ram:
    """A number alone is GB; of words, the one size that they tell."""
    try:
        return ram_told(text)
    except ValueError:
        return Ram(_size("--host-ram", text))


def _size(flag: str, text: str) -> int:
    whole = f"{text}GB" if text.strip().replace(".", "", 1).isdecimal() else text  # nobody counts RAM in bytes
    size = _flag(flag, lambda: parse_size(whole))
    if size <= 0:
        raise ValueError(say("{flag}: {text!r} is no memory at all (write it like 760GB)", flag=flag, text=text))
    return size


def named_versions(flag: str, pairs: Sequence[str]) -> dict[str, str]:
    """Library → version of texts like "deepspeed=0.16.3". Raises ValueError with one sentence that names the flag."""
    versions = {}
    for pair in pairs:
        match = _LIBRARY.match(pair)
        if match is None:
            raise ValueError(say(_NO_PAIR, flag=flag, pair=clean_line(pair, 80)))
        versions[normalised(match.group(1))] = match.group(2)
    return versions


def _sourced(machine: Machine, source: Source) -> Machine:
    """The same machine with every known field marked as coming from `source`."""
    return replace(machine, sources=dict.fromkeys(known_fields(machine), source))


# --- files ---------------------------------------------------------------------------------------------------------


def read_machine_files(path: Path) -> list[Machine]:
    """The machines of a file that `machine --format json` wrote, or of the `machine` block of a diagnosis.

    Several nodes may have written it one after the other (`srun … machine --format json > FILE`). Every field counts as
    described. Raises ValueError naming the file and the flaw, OSError.
    """
    if path.is_dir():
        raise ValueError(say("{path}: is a folder, not a machine file", path=path))
    with path.open("rb") as file:
        data = file.read(_FILE_LIMIT + 1)
    if len(data) > _FILE_LIMIT:
        raise ValueError(say("{path}: too large for a machine file", path=path))
    try:
        return [_sourced(from_json(stated), "described") for stated in _values(data.decode())]
    except json.JSONDecodeError as error:
        said = say("{path}, line {line}: not JSON ({error})", path=path, line=error.lineno, error=error.msg)
        raise ValueError(said) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError(say(_NO_JSON, path=path)) from error
    except ValueError as error:
        raise ValueError(say("{file}: {error}", file=path, error=error)) from error


def _values(text: str) -> Iterator[object]:
    """JSON values one after the other; `srun --label` puts "3: " before each line. At least one."""
    text = _LABEL.sub("", text)
    decoder, at = json.JSONDecoder(), 0
    while True:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        value, at = decoder.raw_decode(text, at)
        yield value
        if not text[at:].strip():
            return


# --- joining what is known -----------------------------------------------------------------------------------------


def merge(
    measured: Machine, description: Machine, log: Machine | None = None, known: Sequence[gpu_spec.KnownGpu] = ()
) -> Machine:
    """One machine from three sources: described over measured over the log, field by field.

    `log`: what the log of a run says of it; None where no run is asked about. Where the training ran elsewhere (this
    box has no such cards), the log counts before this box: its host memory is not the run's and is left out, with a
    problem that says so; its libraries only fill what the log does not print. `known`: among these the log's size tells
    which card a name means that was described without one.
    """
    of_run = log is not None
    log = log or Machine()
    if (size := log.gpu_bytes) is not None:  # the cards of that size where their name leaves it open ("8xA100")
        description = _with_cards(description, [gpu_spec.of_size(card, size, known) for card in description.gpus])
    elsewhere = _ran_elsewhere(measured, description, of_run)
    here = replace(measured, gpus=(), host=Host()) if elsewhere else measured
    if elsewhere or log.nodes is not None:  # a box can count no node but itself
        here = replace(here, nodes=None)
    order = [description, log, here] if elsewhere else [description, here, log]
    gpus_of = next((machine for machine in order if machine.gpus), Machine())
    if gpus_of is description and size is not None:  # of described cards of which nobody knows it
        cards = (card if card.total_bytes else replace(card, total_bytes=size) for card in gpus_of.gpus)
        gpus_of = replace(gpus_of, gpus=tuple(cards))
    host = _merged_host([machine.host for machine in order])
    return Machine(
        nodes=next((machine.nodes for machine in order if machine.nodes is not None), None),
        gpus=gpus_of.gpus,
        more_gpus=gpus_of.more_gpus,
        worded=gpus_of.worded,
        host=host,
        libraries={name: version for machine in reversed(order) for name, version in machine.libraries.items()},
        environment=next((machine.environment for machine in order if machine.environment), ""),
        driver=gpus_of.driver,
        sources=_merged_sources(order),
        members=description.members,
        problems=(
            *description.problems,
            *_strangers(description, log),
            *_problems_here(measured, log, gpus_of, host, elsewhere),
            *log.problems,
        ),
    )


def beside_others(machine: Machine, here: Machine, to_come: bool) -> Machine:
    """The machine, with what others hold of the RAM where it is this box's (`here`, as it was measured): less for a run
    that is `to_come`. What holds the cards has to go before a run anyway, and its RAM with it; Slurm keeps a job's."""
    free, whole, job = free_for_a_run(machine.host), machine.host.ceiling_bytes, machine.asked_memory
    here_now = machine.sources.get("host.total") == "measured" and not (job is not None and job.of_slurm)
    if not here_now or free is None or whole is None:
        return machine
    on_cards = {left.process.pid: left.process.host_rss_bytes or 0 for left in leftovers(here.gpus, 0)}
    host = replace(machine.host, held_bytes=max(0, whole - free - sum(on_cards.values())), to_come=to_come)
    return replace(machine, host=host, problems=(*machine.problems, *filter(None, (held_words(host),))))


def held_words(host: Host) -> str:
    """A sentence on what others hold of the RAM; "" where it is little."""
    held, whole = host.held_bytes or 0, host.ceiling_bytes or 0
    told, little = (_LEFT_NOW, _LITTLE) if host.to_come else (_LEFT_THEN, _MUCH)
    return say(told, left=show_bytes(whole - held), whole=show_bytes(whole)) if held > whole * little else ""


def with_room(machine: Machine, needed: int, known: Sequence[gpu_spec.KnownGpu]) -> Machine:
    """The machine, with cards of more than `needed` bytes where their name leaves the size open; itself elsewhere."""
    cards = [gpu_spec.roomier(card, needed, known) for card in machine.gpus]
    return machine if tuple(cards) == tuple(machine.gpus) else _with_cards(machine, cards)


def _with_cards(machine: Machine, cards: Sequence[Gpu]) -> Machine:
    """The machine with these cards in place of its own, and what is to be said of them."""
    before, now = (
        dict.fromkeys(say("{name}: {problem}", name=one.name, problem=one.problem) for one in each if one.problem)
        for each in (machine.gpus, cards)
    )
    problems = [problem for problem in machine.problems if problem not in before or problem in now]
    more = [problem for problem in now if problem not in problems]
    return replace(machine, gpus=tuple(cards), problems=(*problems, *more))


def _strangers(description: Machine, log: Machine) -> list[str]:
    """A sentence on each kind of described card of which nobody knows the memory: whether the log tells it."""
    unknown = gpu_spec.unsized(description.gpus)
    if not unknown or log.gpu_bytes is None:
        return unknown
    names = listed(dict.fromkeys(gpu.name for gpu in description.gpus if gpu.total_bytes is None))
    told = mark("The GPU {names} is not known here; its memory is what the log prints, {size}.")
    return [say(told, names=names, size=show_bytes(log.gpu_bytes))]


def _ran_elsewhere(measured: Machine, description: Machine, of_run: bool) -> bool:
    """`of_run`: a run is asked about, which no box without GPUs can be the machine of."""
    if not measured.gpus:
        told = of_run or bool(description.gpus) or description.host.total_bytes is not None
        return told and not measured.mute
    if not description.gpus:
        return False
    return len(description.gpus) != len(measured.gpus) or not _alike(description.gpu_bytes, measured.gpu_bytes)


def _alike(one: int | None, other: int | None) -> bool:
    """Whether two sizes are of the same kind of card."""
    return one is not None and other is not None and abs(one - other) <= _SAME_GPU * other


def _merged_host(hosts: Sequence[Host]) -> Host:
    """The best host as a whole, holes filled from the next; a described total also lifts the limits measured here."""
    first = next((host for host in hosts if host.total_bytes is not None), Host())
    shm = next((host for host in hosts if host.shm_bytes is not None), Host())
    limit = next((host for host in hosts if host is first or host.limit_bytes is not None), first)
    return replace(
        first,
        **{name: getattr(limit, name) for name in _LIMIT},
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
    said = [problem for problem in measured.problems if not gpus_of.gpus or gpus_of is measured or measured.mute]
    if elsewhere and measured.host.total_bytes is not None and host.total_bytes is None:
        said.append(say(_NOT_COUNTED, size=show_bytes(measured.host.ceiling_bytes)))
    if gpus_of is measured and log.gpu_bytes is not None and not _alike(log.gpu_bytes, measured.gpu_bytes):
        theirs, ours = show_bytes(log.gpu_bytes), show_bytes(measured.gpu_bytes)
        said.append(say(_OTHER_CARD, theirs=theirs, ours=ours))
    return said
