"""Reads the nodes of a Ray cluster at intervals, only while their screen is open."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any

from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.machine.cluster import NODE_SECONDS, machine_told, start_child
from advisor.machine.inventory import Machine

EVERY = 2.0
"""Seconds from one round of questions to the next."""
UNSEEN = 15.0
"""Seconds after which nobody looks any more; the cluster is left then."""
_ENDED = mark("the cluster is not asked any more; close this view and open it again to try once more")


@dataclass(frozen=True, slots=True)
class NodeGauge:
    """One node's row."""

    name: str
    machine: Machine | None = None
    """The last it told; None: nothing yet."""
    read_at: float | None = None
    """When, on `time.monotonic`."""
    problem: str = ""
    """Why there is nothing newer."""


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """All nodes at one moment, by name."""

    nodes: tuple[NodeGauge, ...] = ()
    problem: str = ""
    """Why the cluster cannot be asked at all."""
    asked_before: bool = False
    """A round was finished: who is not among the nodes is not in the cluster."""


@dataclass(slots=True)
class ClusterGauges:
    """Asks from the first `look` on, in a child, and stops by itself `UNSEEN` seconds after the last one."""

    address: str
    every: float = EVERY
    clock: Callable[[], float] = time.monotonic
    _child: subprocess.Popen[bytes] | None = None
    _nodes: dict[str, NodeGauge] = field(default_factory=dict)
    _problem: str = ""
    _asked_before: bool = False
    _looked: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    def look(self) -> ClusterSnapshot:
        """The nodes as last told. Does not wait; the first look begins to ask."""
        now = self.clock()
        with self._lock:
            is_back = now - self._looked > UNSEEN
            self._looked = now
            if self._child is None and (is_back or not self._problem):
                self._problem = ""
                self._child = start_child(self.address, NODE_SECONDS, self.every)
                Thread(target=self._listen, args=(self._child,), daemon=True).start()
            nodes = tuple(sorted(self._nodes.values(), key=lambda node: node.name))
            return ClusterSnapshot(nodes, self._problem, self._asked_before)

    def close(self) -> None:
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()

    def _listen(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout is not None
        for line in child.stdout:
            told = json.loads(line) if line.startswith(b"{") and line.endswith(b"\n") else {}
            with self._lock:
                self._take(told)
                unseen = self.clock() - self._looked > UNSEEN
            if unseen:
                break
        child.kill()
        child.wait()
        with self._lock:
            if self._child is child:
                self._child = None
                if self.clock() - self._looked <= UNSEEN:  # it ended, not we
                    self._problem = self._problem or say(_ENDED)

    def _take(self, told: dict[str, Any]) -> None:
        kind, key = told.get("kind"), str(told.get("id"))
        if kind == "refused":
            self._problem = clean_line(str(told.get("because")), 400)
        elif kind == "nodes":
            names = {str(node): clean_line(str(name), 80) for node, name in dict(told["names"]).items()}
            new = {node: NodeGauge(name) for node, name in names.items() if node not in self._nodes}
            self._nodes = {**self._nodes, **new}  # those that died stay, with the reason
        elif kind == "node" and key in self._nodes:
            before, machine = self._nodes[key], machine_told(told)
            if isinstance(machine, Machine):
                self._nodes[key] = NodeGauge(machine.name, machine, self.clock())
            else:
                self._nodes[key] = NodeGauge(before.name, before.machine, before.read_at, machine)
        elif kind == "silent" and key in self._nodes:
            before = self._nodes[key]
            because = clean_line(str(told.get("because")), 200)
            self._nodes[key] = NodeGauge(before.name, before.machine, before.read_at, because)
        elif kind == "done":
            self._asked_before = True
