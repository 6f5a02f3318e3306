"""Joins several nodes into one machine: the smallest of each thing decides, and differences are named by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from advisor.language import clauses, listed, mark, say
from advisor.machine.inventory import Host, Machine
from advisor.units import GIB, show_bytes

NAMES_SHOWN = 4
"""Nodes named in a sentence; of more, how many."""
_BARELY = 0.02
"""Host memory of nodes alike differs by less: firmware and kernels reserve a little more or less."""
_BUSY = GIB
"""So much of a card in use before a run, and somebody else holds it."""
_DIFFER = mark("The nodes differ in {what}: {values}.")
_DIFFER_TAKEN = mark("The nodes differ in {what}: {values}; the smallest node is taken.")
_LEAST = mark(
    "{node} has the least host memory for a run, {size} ({others} and more elsewhere): with equal shares it dies first."
)


def join_nodes(machines: Sequence[Machine]) -> Machine:
    """One description of several nodes, each measured on its own: the smallest of each thing, since it decides.

    Nodes are added up. Where they differ, the smaller is taken and a problem says which nodes. ValueError without
    machines. A machine that is a merge itself counts with its members.
    """
    if not machines:
        raise ValueError(say("no machine was given"))
    if len(machines) == 1:
        return machines[0]
    members = named([member for machine in machines for member in (machine.members or (machine,))])
    weakest = min(machines, key=lambda machine: (len(machine.usable), machine.gpu_bytes or 0))
    tightest = min(machines, key=lambda machine: _room(machine.host))
    shm = min((m.host.shm_bytes for m in machines if m.host.shm_bytes is not None), default=None)
    return replace(
        weakest,
        nodes=sum(machine.nodes or 1 for machine in machines),
        host=replace(tightest.host, shm_bytes=shm),
        problems=tuple(dict.fromkeys((*_own_problems(members), *differences(members)))),
        members=members,
        name="",
    )


def _own_problems(members: Sequence[Machine]) -> Iterator[str]:
    """What all nodes say once; what only some say, with their names."""
    who: dict[str, list[str]] = {}
    for member in members:
        for problem in member.problems:
            who.setdefault(problem, []).append(member.name)
    for problem, names in who.items():
        everybody = len(names) == len(members)
        yield problem if everybody else say("{nodes}: {problem}", nodes=some_of(names), problem=problem)


def named(machines: Sequence[Machine]) -> tuple[Machine, ...]:
    """Each with a name of its own: what it is called, else its place; two alike are numbered."""
    taken: Counter[str] = Counter()
    found = []
    for place, machine in enumerate(machines, 1):
        name = machine.name or say("node {place}", place=place)
        taken[name] += 1
        found.append(replace(machine, name=name if taken[name] == 1 else f"{name} ({taken[name]})"))
    return tuple(found)


def differences(members: Sequence[Machine]) -> list[str]:
    """Where nodes are not alike, a sentence each: what most have, which others have what."""
    unknown, none = say("unknown"), say("none")
    limits = _sizes([member.host.limit_bytes for member in members], none)
    said = [
        *_unlike(members, say("the driver"), [member.driver or unknown for member in members]),
        *_unlike(members, say("GPUs"), [_gpus_of(member) or none for member in members], _DIFFER_TAKEN),
        *_unlike(members, say("host memory"), _sizes([m.host.total_bytes for m in members], unknown), _DIFFER_TAKEN),
        *_unlike(members, say("the memory limit"), limits),
        *_unlike(members, say("shared memory"), _sizes([member.host.shm_bytes for member in members], unknown)),
    ]
    for name in sorted({name for member in members for name in member.libraries}):
        said += _unlike(members, name, [member.libraries.get(name, none) for member in members])
    if (first := first_to_die(members)) is not None:
        (size, *_), (others, *_), *_ = _by_free_memory(members)
        said.append(say(_LEAST, node=first.name, size=show_bytes(size), others=show_bytes(others)))
    return [*said, *_busy(members)]


def _unlike(members: Sequence[Machine], what: str, values: Sequence[str], sentence: str = _DIFFER) -> list[str]:
    """ "The nodes differ in torch: 2.4.0 on n3, n7; 2.5.1 on the 14 others." """
    counts = Counter(values)
    if len(counts) < 2:
        return []
    usual = max(counts, key=lambda value: (counts[value], value))
    parts = []
    for value in sorted(counts, key=lambda value: (value == usual, counts[value], value)):
        names = [member.name for member, has in zip(members, values, strict=True) if has == value]
        others = value == usual and len(names) > 1
        where = say("the {count} others", count=len(names)) if others else some_of(names)
        parts.append(say("{value} on {nodes}", value=value, nodes=where))
    return [say(sentence, what=what, values=clauses(parts))]


def _sizes(sizes: Sequence[int | None], nothing: str) -> list[str]:
    """In words; sizes that barely differ get the same words, those of the first."""
    told: list[int] = []
    words = []
    for size in sizes:
        if size is None:
            words.append(nothing)
            continue
        told.append(next((one for one in told if abs(one - size) <= _BARELY * one), size))
        words.append(show_bytes(told[-1]))
    return words


def some_of(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown, more = listed(names[:NAMES_SHOWN]), len(names) - NAMES_SHOWN
    return say("{names} and {count} more", names=shown, count=more) if more > 0 else shown


def _gpus_of(machine: Machine) -> str:
    counts = Counter((gpu.name, gpu.total_bytes) for gpu in machine.gpus)
    return listed(
        say("{count} x {name} ({size})", count=count, name=name, size=show_bytes(size))
        for (name, size), count in sorted(counts.items(), key=str)
    )


def free_for_a_run(host: Host) -> int | None:
    """Bytes that a run may still take on a node: what is available, or left below its limit."""
    below = None if host.limit_bytes is None else max(0, host.limit_bytes - (host.limit_used_bytes or 0))
    return min((size for size in (below, host.available_bytes, host.ceiling_bytes) if size is not None), default=None)


def _room(host: Host) -> tuple[int, int]:
    """What decides between hosts: the most a node can ever give, then what it has left now."""
    free = free_for_a_run(host)
    return host.ceiling_bytes or 2**63, 2**63 if free is None else free


def first_to_die(members: Sequence[Machine]) -> Machine | None:
    """The node with the least host memory for a run, where it has clearly less than the others; else None."""
    free = _by_free_memory(members)
    return free[0][2] if len(free) > 1 and free[0][0] <= free[1][0] * (1 - 2 * _BARELY) else None


def _by_free_memory(members: Sequence[Machine]) -> list[tuple[int, str, Machine]]:
    known = [(free_for_a_run(member.host), member) for member in members]
    return sorted(((size, member.name, member) for size, member in known if size is not None), key=lambda one: one[:2])


def _busy(members: Sequence[Machine]) -> Iterator[str]:
    held = [
        (gpu.used_bytes or 0, f"{member.name} GPU {gpu.index} {show_bytes(gpu.used_bytes)}")
        for member in members
        for gpu in member.gpus
        if (gpu.used_bytes or 0) >= _BUSY
    ]
    cards = sum(len(member.gpus) for member in members)
    if held and len(held) < cards:  # all of them: a run is going
        held.sort(reverse=True)
        yield say("Cards in use already: {cards}.", cards=some_of([words for _, words in held]))
