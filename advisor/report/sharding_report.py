"""Reports a run on several nodes: GPUs of each role, nodes over which one copy is spread, what a GPU holds."""

from __future__ import annotations

from typing import Any

from advisor.crash.evidence import Crash
from advisor.language import Sayings, say
from advisor.machine.inventory import Machine
from advisor.memory.ledger import GroupRole, RoleGroup, groups_of
from advisor.report.layout import fields_of, section, table, wrap_each
from advisor.run.run import Run
from advisor.units import show_gib

_ROLES: Sayings[GroupRole] = Sayings(
    {"actor": "actor", "critic": "critic", "reference": "reference", "rollout": "rollout"}
)


def sharding_section(run: Run, machine: Machine, crash: Crash | None = None) -> list[str]:
    """With its heading; [] on one node."""
    groups = groups_of(run, machine, crash)
    head = [say("role"), say("GPUs"), say("nodes"), say("one copy over"), say("weights")]
    head += [say("gradients"), say("optimizer"), say("host")]
    lines = table([head, *map(_row, groups)], right=frozenset({1, 2, 4, 5, 6, 7})) if groups else []
    lines += wrap_each(_said(groups), 2, 4)
    return section(say("Across nodes, GiB a GPU (host: GiB of the role's states in the RAM of a node)"), lines)


def _row(group: RoleGroup) -> list[str]:
    weights, gradients, optimizer = (
        show_gib(size) if size is not None else "" for size in (group.weights, group.gradients, group.optimizer)
    )
    return [
        _ROLES[group.role],
        str(group.gpus),
        str(group.nodes),
        _over(group),
        weights,
        gradients,
        say("on the host") if group.steps_on_host else optimizer,
        show_gib(group.on_node) if group.on_node else "",
    ]


def _over(group: RoleGroup) -> str:
    told = {"gpus": group.over, "nodes": group.spans, "copies": group.copies}
    if group.over == 1:
        return say("each GPU its own")
    if group.spans > 1:
        return say("{gpus} GPUs on {nodes} nodes", **told)
    if group.copies > 1:
        return say("{gpus} GPUs of a node, {copies} copies", **told)
    return say("{gpus} GPUs", **told)


def _said(groups: tuple[RoleGroup, ...]) -> list[str]:
    """What follows for a change of nodes."""
    found = []
    for group in groups:
        if group.role == "rollout" or group.beside:
            continue
        name = _ROLES[group.role]
        if group.spans > 1:
            found.append(
                say(
                    "{role}: one copy of the states spans {nodes} nodes, so more nodes make each share smaller, and "
                    "each collected layer crosses the network.",
                    role=name,
                    nodes=group.spans,
                )
            )
        elif group.copies > 1:
            found.append(
                say(
                    "{role}: shards stay within {gpus} GPUs of a node, so more nodes add copies and make no share "
                    "smaller.",
                    role=name,
                    gpus=group.over,
                )
            )
    beside = [_ROLES[group.role] for group in groups if group.beside]
    if beside:
        found.append(say("On the actor's cards, too: {roles}.", roles=say(", ").join(beside)))
    return found


def sharding_json(run: Run, machine: Machine, crash: Crash | None = None) -> list[dict[str, Any]]:
    """The same for programs; [] on one node."""
    return [
        {
            **fields_of(group, "role gpus nodes"),
            "one_copy_over_gpus": group.over,
            "one_copy_over_nodes": group.spans,
            "copies": group.copies,
            "on_cards_of": group.beside or group.role,
            "weights_bytes": group.weights,
            "gradients_bytes": group.gradients,
            "optimizer_bytes": group.optimizer,
            "optimizer_stays_on_host": group.steps_on_host,
            "host_bytes_a_node": group.on_node,
        }
        for group in groups_of(run, machine, crash)
    ]
