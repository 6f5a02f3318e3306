"""Words the nodes of a Ray cluster, one line each: how full, how busy, who does not answer. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.language import say, say_count, sentences
from advisor.line_breaks import cut
from advisor.machine.inventory import Gpu, Machine
from advisor.machine.nodes import join_nodes, some_of
from advisor.tui.gauge_strip import gib, host_use, percent, ratio
from advisor.tui.ui_text import BLANK, Row, Tone, heading, line, pad, pad_left, paragraph, span

if TYPE_CHECKING:
    from advisor.machine.cluster.live import ClusterSnapshot, NodeGauge


_NARROW = 75
"""Columns below which names and cards get less room, and the load gets none."""
_OLD = 15.0
"""Seconds after which a reading is no longer taken for the present one."""


def cluster_rows(snapshot: ClusterSnapshot, now: float, width: int, plain_ascii: bool = False) -> list[Row]:
    """All nodes, by name; `now` on the clock of their readings."""
    name, cards, load = _columns(width)
    titles = f"{pad_left(say('fullest card'), 18)}{pad_left(say('load'), 6) if load else ''}{pad_left(say('RAM'), 18)}"
    out = [heading(pad(cut(say("Nodes of the Ray cluster"), name + cards), name + 1 + cards) + titles)]
    out += [_node_row(node, now, width, plain_ascii) for node in snapshot.nodes]
    if snapshot.problem:
        out += paragraph(snapshot.problem, width, 2, "warn")
    elif not snapshot.nodes:
        waiting = say("no node") if snapshot.asked_before else say("asking the cluster …")
        out += paragraph(waiting, width, 2, "dim")
    elif (age := now - max(node.read_at or 0.0 for node in snapshot.nodes)) > _OLD and snapshot.asked_before:
        out += paragraph(say("Ray has told nothing for {count} seconds.", count=round(age)), width, 2, "warn")
    return [*out, *_silent_rows(snapshot, now, width), *_told_rows(snapshot, width)]


def _columns(width: int) -> tuple[int, int, bool]:
    """Columns of a node's name and of its cards, a sign each; whether there is room for the load."""
    return (16, 16, True) if width >= _NARROW else (12, 9, False)


def gpu_heights(gpus: tuple[Gpu, ...], room: int, plain_ascii: bool = False) -> str:
    """A sign a card, as high as it is full; "?" where that is not known, "+" after the last that has room."""
    signs = ".:-=+*%#" if plain_ascii else "▁▂▃▄▅▆▇█"
    drawn = ""
    for gpu in gpus:
        share = ratio(gpu.used_bytes, gpu.total_bytes)
        drawn += "?" if share is None else signs[max(0, min(round(share * 8), 8) - 1)]
    return drawn if len(drawn) < room else drawn[: room - 2] + "+"


def _node_row(node: NodeGauge, now: float, width: int, plain_ascii: bool) -> Row:
    room, cards, load = _columns(width)
    name = pad(cut(node.name, room - 1), room)
    if node.machine is None:
        return Row(line(name, span(say("has not answered yet") if not node.problem else "?", "dim")))
    old = node.problem or node.read_at is None or now - node.read_at > _OLD
    tone: Tone = "dim" if old else "plain"
    drawn = gpu_heights(node.machine.gpus, cards, plain_ascii)
    text = f"{name} {pad(drawn, cards)}{_numbers(node.machine, load)}"
    return Row(line(span(cut(text, width), tone)))


def _numbers(machine: Machine, with_load: bool) -> str:
    fullest = max(machine.gpus, key=lambda gpu: ratio(gpu.used_bytes, gpu.total_bytes) or 0.0, default=None)
    loads = [gpu.utilisation for gpu in machine.gpus if gpu.utilisation is not None]
    used, ceiling = host_use(machine.host)
    card = say("no GPU") if fullest is None else _of(fullest.used_bytes, fullest.total_bytes)
    load = pad_left(f"{max(loads)}%" if loads else "", 6) if with_load else ""
    return f"{pad_left(card, 18)}{load}{pad_left(_of(used, ceiling), 18)}"


def _of(used: int | None, total: int | None) -> str:
    return f"{gib(used)}/{gib(total)}G {percent(ratio(used, total)):>5}"


def _silent_rows(snapshot: ClusterSnapshot, now: float, width: int) -> list[Row]:
    """Who does not answer, each reason once."""
    who: dict[str, list[NodeGauge]] = {}
    for node in snapshot.nodes:
        if node.problem:
            who.setdefault(node.problem, []).append(node)
    out: list[Row] = []
    for why, nodes in who.items():
        names = some_of([node.name for node in nodes])
        told = [say("{nodes}: {problem}.", nodes=names, problem=why.rstrip(".。"))]
        read = [node.read_at for node in nodes if node.read_at is not None]
        if read:
            age = round(now - max(read))
            told.append(say_count("Last read {number} second ago.", "Last read {number} seconds ago.", age))
        out += paragraph(sentences(told), width, 2, "warn")
    return out


def _told_rows(snapshot: ClusterSnapshot, width: int) -> list[Row]:
    """What the nodes complain of, and where they differ."""
    members = [node.machine for node in snapshot.nodes if node.machine is not None]
    if not members:
        return []
    problems = join_nodes(members).problems
    return [row for problem in problems for row in paragraph(problem, width, 2, "warn")] + [BLANK]
