"""A running Ray cluster asked for what its nodes have, through Ray itself, in a process that can be given up.

Ray is asked in a child (`cluster_ask`), which writes one JSON line for each node as it answers: whatever hangs or dies
there, what was answered by then is kept, and after `PATIENCE` seconds the rest is told to be silent.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from advisor.hostile import clean_line
from advisor.language import mark, say, spoken
from advisor.machine.inventory import Machine
from advisor.machine.inventory_json import from_json

NODE_SECONDS = 6.0
"""Within which each node has to answer, all at once."""
JOIN_SECONDS = 12.0
"""Within which the cluster has to let us in."""

_SILENT = mark("{node}: {because}; what the other nodes told is shown.")
_NO_ANSWER = mark("Ray did not answer within {seconds:.0f} s: is the cluster running, and the address right?")


class ClusterError(ValueError):
    """A cluster that cannot be asked: one sentence saying why."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Nodes that answered, and a sentence for each that did not."""

    nodes: tuple[Machine, ...]
    problems: tuple[str, ...] = ()
    seconds: float = 0.0
    logs: tuple[tuple[str, str, str], ...] = ()
    """(node, file name, text): the ends of the logs of the workers that were asked for."""


@lru_cache(maxsize=4)
def ask_cluster(address: str, node_seconds: float = NODE_SECONDS, workers: tuple[str, ...] = ()) -> Answers:
    """Every node of the cluster at `address` ("auto", "10.0.0.1:6379", "ray://…"). Raises ClusterError.

    `workers`: Ray's ids of workers whose logs are wanted too.
    """
    words = [sys.executable, "-m", "advisor.machine.cluster_ask", address, str(node_seconds), spoken(), *workers]
    nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
    environ = {**os.environ, "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    with subprocess.Popen(words, stdin=nothing, stdout=pipe, stderr=nothing, env=environ) as child:  # noqa: S603
        try:
            return _Asking(child, node_seconds).answers()
        finally:
            child.kill()


@dataclass(slots=True)
class _Asking:
    """One question to a cluster, and what was answered so far."""

    child: subprocess.Popen[bytes]
    node_seconds: float
    nodes: list[Machine] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    logs: list[tuple[str, str, str]] = field(default_factory=list)
    awaited: dict[str, str] = field(default_factory=dict)
    """Node id → name, of those that have not answered."""
    began: float = field(default_factory=time.monotonic)
    until: float = 0.0
    done: bool = False

    def answers(self) -> Answers:
        """What came in time. Raises ClusterError where nobody let us in."""
        self.until = self.began + JOIN_SECONDS
        for told in self._lines():
            self._take(told)
            if self.done:
                break
        if not self.done and not self.nodes and not self.awaited:
            raise ClusterError(say(_NO_ANSWER, seconds=JOIN_SECONDS))
        late = say("no answer within {seconds:.0f} s", seconds=self.node_seconds)
        self.problems += [say(_SILENT, node=name, because=late) for name in self.awaited.values()]
        return Answers(tuple(self.nodes), tuple(self.problems), time.monotonic() - self.began, tuple(self.logs))

    def _take(self, told: dict[str, Any]) -> None:
        kind = told.get("kind")
        if kind == "refused":
            raise ClusterError(clean_line(str(told.get("because")), 400))
        if kind == "nodes":
            self.awaited = {str(key): clean_line(str(name), 80) for key, name in dict(told["names"]).items()}
            self.until = time.monotonic() + self.node_seconds + 1.0
        elif kind == "node":
            self.awaited.pop(str(told.get("id")), None)
            self.nodes.append(from_json(told["machine"]))
        elif kind == "silent":
            name = self.awaited.pop(str(told.get("id")), clean_line(str(told.get("name")), 80))
            because = clean_line(str(told.get("because")), 200).rstrip(".。")
            self.problems.append(say(_SILENT, node=name, because=because))
        elif kind == "log":
            self.logs.append(
                (clean_line(str(told["node"]), 80), os.path.basename(str(told["name"])), str(told["text"]))
            )
        elif kind == "done":
            self.done = True

    def _lines(self) -> Iterator[dict[str, Any]]:
        """What the child writes, until it ends or time is up."""
        assert self.child.stdout is not None
        pipe, rest = self.child.stdout.fileno(), b""
        while (left := self.until - time.monotonic()) > 0:
            if not select.select([pipe], [], [], left)[0]:
                return
            data = os.read(pipe, 1 << 16)
            if not data:
                return
            *whole, rest = (rest + data).split(b"\n")
            yield from (json.loads(line) for line in whole if line.startswith(b"{"))
