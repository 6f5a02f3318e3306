"""Every node of a cluster asked at once, through Ray, each within its time; once, or again and again.

Each node runs this program's own reading of a machine, as a task pinned to it that asks for no CPU and no GPU slot. The
program need not be installed there: its few modules travel with the task and live in its memory only.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from advisor.language import mark, say, sentences, spoken
from advisor.machine.cluster_carried import catalogue, packed_code
from advisor.machine.cluster_doors import closed_doors

KNOCK_AFTER = 0.8
"""Seconds of silence after which silent nodes are looked up, again and again."""
_CLOSED = mark("the node died while it was asked, or just before: nobody listens where its raylet was")
_DEAD = mark("the node died while it was asked")
_DRIVER_SHARE = 0.6
"""Of a node's time, what its GPU driver gets: where it hangs, there is time left to tell the rest."""

Tell = Callable[..., None]


class Rounds:
    """One driver's questions to all nodes. A node that does not answer in time is not asked again until it does."""

    def __init__(self, ray: Any, seconds: float, tell: Tell, workers: Sequence[str] = ()) -> None:
        self.ray, self.seconds, self.tell = ray, seconds, tell
        self.waiting: dict[Any, str] = {}
        """Answer to come → id of the node."""
        self.late: set[str] = set()
        self.names: dict[str, str] = {}
        self._probe = ray.remote(num_cpus=0, num_gpus=0, max_retries=0)(travelling_probe())
        self._arguments = packed_code(), spoken(), catalogue(), list(workers), seconds * _DRIVER_SHARE

    def ask(self) -> None:
        """One round: tells the nodes, then each as it answers, and at the end those that were silent."""
        nodes = self.ray.nodes()
        alive = [node for node in nodes if node.get("Alive")]
        self.names = names_of(nodes)
        self.tell(kind="nodes", names={node["NodeID"]: self.names[node["NodeID"]] for node in alive})
        for node in nodes:
            if not node.get("Alive"):
                why = str(node.get("DeathReasonMessage") or node.get("DeathReason") or "")[:150]
                self._silent(node["NodeID"], sentences([say("Ray counts it as dead."), why]))
        self._send(alive)
        self._collect({node["NodeID"]: (node.get("NodeManagerAddress"), node.get("NodeManagerPort")) for node in alive})
        self.late = set(self.waiting.values())
        for node in self.late:
            self._silent(node, say("no answer within {seconds:.0f} s", seconds=self.seconds))

    def _send(self, alive: Sequence[Mapping[str, Any]]) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        busy = set(self.waiting.values())
        for node in alive:
            if node["NodeID"] not in busy:
                there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                self.waiting[self._probe.options(scheduling_strategy=there).remote(*self._arguments)] = node["NodeID"]

    def _collect(self, doors: Mapping[str, tuple[Any, Any]]) -> None:
        """What is answered in time. Nodes that were late before are not waited for, but heard."""
        until, knock = time.monotonic() + self.seconds, time.monotonic() + KNOCK_AFTER
        while any(node not in self.late for node in self.waiting.values()) and time.monotonic() < until:
            patience = max(0.01, min(until, knock) - time.monotonic())
            for answer in self.ray.wait(list(self.waiting), num_returns=1, timeout=patience)[0]:
                self._answered(answer, self.waiting.pop(answer))
            if time.monotonic() >= knock:
                knock = time.monotonic() + KNOCK_AFTER
                self._give_up(closed_doors({node: doors.get(node, (None, 0)) for node in self.waiting.values()}))

    def _give_up(self, closed: set[str]) -> None:
        for answer, node in list(self.waiting.items()):
            if node in closed:
                del self.waiting[answer]
                self._silent(node, say(_CLOSED))

    def _answered(self, answer: Any, node: str) -> None:
        try:
            machine = json.loads(zlib.decompress(self.ray.get(answer, timeout=1)))
        except self.ray.exceptions.RayError as error:
            said = " ".join(str(error).split())
            is_gone = "died" in said or "unschedulable" in said.lower()
            self._silent(node, f"{type(error).__name__}, {say(_DEAD) if is_gone else said[:150]}")
            return
        name = self.names.get(node, node[:6])
        for file, text in machine.pop("worker_logs", {}).items():
            self.tell(kind="log", node=name, name=file, text=text)
        self.tell(kind="node", id=node, machine={**machine, "name": name})

    def _silent(self, node: str, because: str) -> None:
        self.tell(kind="silent", id=node, name=self.names.get(node, node[:6]), because=because)


def travelling_probe() -> Callable[..., bytes]:
    """The probe as a function of no module, so that Ray sends it by value."""
    name = "advisor.machine.cluster_probe"
    spec = find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    space: dict[str, Any] = {"__name__": "rl_oom_advisor_probe"}
    exec(spec.loader.get_code(name), space)  # type: ignore[attr-defined] # noqa: S102 - our own
    found: Callable[..., bytes] = space["probe"]
    return found


def names_of(nodes: Sequence[Any]) -> dict[str, str]:
    """Node id → host name, with the node's id where several have the same."""
    plain = {node["NodeID"]: str(node.get("NodeManagerHostname") or node.get("NodeManagerAddress")) for node in nodes}
    counts = list(plain.values())
    return {key: name if counts.count(name) == 1 else f"{name} {key[:6]}" for key, name in plain.items()}
