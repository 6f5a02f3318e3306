"""Asks a running Ray cluster what its nodes have, through Ray itself, in a child process that can be killed.

The child (`child`) writes one JSON line for each node as it answers: whatever hangs or dies there, what was answered by
then is kept, and after `NODE_SECONDS` the rest counts as silent. `live` asks again and again.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from advisor.hostile import clean_line
from advisor.language import mark, say, spoken
from advisor.machine.cluster.reachability import TOKEN, wants_token
from advisor.machine.inventory import Machine
from advisor.machine.inventory_json import from_json
from advisor.machine.nodes import some_of

NODE_SECONDS = 6.0
"""Within which each node has to answer, all at once."""
JOIN_SECONDS = 12.0
"""Within which the cluster has to let us in."""
_CHECK_SECONDS = 1.0
"""From one check of what Ray prints to the next."""

_SILENT = mark("{node}: {because}; what the other nodes told is shown.")
UNREADABLE = mark("it answered what cannot be read ({error})")
_NO_ANSWER = mark("Ray did not answer within {seconds:.0f} s: is the cluster running, and the address right?")
_BROKEN = mark("Ray could not be asked, its last words: {words}")
_NO_ADDRESS = mark("--ray needs auto or the address of a cluster, like 10.0.0.1:6379")


class ClusterError(ValueError):
    """A cluster that cannot be asked: one sentence saying why."""


@dataclass(frozen=True, slots=True)
class ClusterAnswers:
    """Nodes that answered, and a sentence for those that did not."""

    nodes: tuple[Machine, ...]
    problems: tuple[str, ...] = ()
    seconds: float = 0.0
    logs: tuple[tuple[str, str, str], ...] = ()
    """(node, file name, text): the ends of the logs of the workers that were asked for."""


OnAnswer = Callable[[int, int], None]
"""Called with how many nodes have answered or will not, and of how many."""
_ANSWERED: dict[tuple[str, tuple[str, ...]], ClusterAnswers] = {}


def ask_cluster(
    address: str, node_seconds: float = NODE_SECONDS, workers: tuple[str, ...] = (), heard: OnAnswer | None = None
) -> ClusterAnswers:
    """Every node of the cluster at `address` ("auto", "10.0.0.1:6379", "ray://…"), asked once. Raises ClusterError.
    `workers`: Ray's ids of workers whose logs are wanted too."""
    if (address, workers) not in _ANSWERED:
        if not address.strip():
            raise ClusterError(say(_NO_ADDRESS))
        with tempfile.TemporaryFile() as words, start_child(address, node_seconds, 0.0, workers, words) as child:
            try:
                answers = _Query(address, child, node_seconds, words.fileno(), heard).answers()
            finally:
                child.kill()
        _ANSWERED[address, workers] = _ANSWERED[address, ()] = answers
    return _ANSWERED[address, workers]


def forget() -> None:
    """Empties the cache of `ask_cluster`, so that clusters are asked anew."""
    _ANSWERED.clear()


def machine_told(told: Mapping[str, Any]) -> Machine | str:
    """The machine in what a node told, or why it cannot be read: anybody may answer there."""
    try:
        return from_json(told.get("machine"))
    except (ValueError, RecursionError) as error:
        return say(UNREADABLE, error=clean_line(str(error), 120).rstrip("."))


def start_child(
    address: str, node_seconds: float, every: float, workers: tuple[str, ...] = (), words: IO[bytes] | int | None = None
) -> subprocess.Popen[bytes]:
    """The child that asks, once or `every` so many seconds; what Ray prints goes to `words`."""
    command = [sys.executable, "-m", "advisor.machine.cluster.child", address, str(node_seconds), str(every), spoken()]
    environ = {**os.environ, "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    nothing, errors = subprocess.DEVNULL, subprocess.DEVNULL if words is None else words
    return subprocess.Popen(  # noqa: S603
        [*command, *workers], stdin=nothing, stdout=subprocess.PIPE, stderr=errors, env=environ
    )


@dataclass(slots=True)
class _Query:
    """One question to a cluster, and what was answered so far."""

    address: str
    child: subprocess.Popen[bytes]
    node_seconds: float
    words: int
    """File of what Ray prints; the child writes where it ends, so it is read without moving there."""
    heard: OnAnswer | None = None
    nodes: list[Machine] = field(default_factory=list)
    silent: dict[str, list[str]] = field(default_factory=dict)
    """Why → names of the nodes."""
    logs: list[tuple[str, str, str]] = field(default_factory=list)
    count: int = 0
    """Nodes that live."""
    awaited: dict[str, str] = field(default_factory=dict)
    """Node id → name, of those that have not answered."""
    began: float = field(default_factory=time.monotonic)
    until: float = 0.0
    done: bool = False

    def answers(self) -> ClusterAnswers:
        """What came in time. Raises ClusterError where nobody let us in."""
        self.until = self.began + JOIN_SECONDS
        for told in self._lines():
            self._take(told)
            if self.done:
                break
            if self.heard is not None and self.count:
                self.heard(self.count - len(self.awaited), self.count)
        if not self.done and not self.nodes and not self.awaited:
            raise ClusterError(self._why_nothing())
        if self.awaited:
            late = say("no answer within {seconds:.0f} s", seconds=self.node_seconds)
            self.silent.setdefault(late, []).extend(self.awaited.values())
        problems = tuple(say(_SILENT, node=some_of(names), because=why) for why, names in self.silent.items())
        return ClusterAnswers(tuple(self.nodes), problems, time.monotonic() - self.began, tuple(self.logs))

    def _why_nothing(self) -> str:
        """The child ended or was not let in; where it left words, they say more than we know."""
        if self._is_locked_out():
            return say(TOKEN, address=self.address)
        if time.monotonic() >= self.until:
            return say(_NO_ANSWER, seconds=JOIN_SECONDS)
        return say(_BROKEN, words=clean_line((self._said().strip().splitlines() or ["?"])[-1], 200))

    def _said(self) -> str:
        return os.pread(self.words, 1 << 20, 0).decode("utf-8", "replace")

    def _is_locked_out(self) -> bool:
        """Ray itself asks the same again for half a minute."""
        return not self.count and wants_token(self._said())

    def _take(self, told: dict[str, Any]) -> None:
        kind = told.get("kind")
        if kind == "refused":
            raise ClusterError(clean_line(str(told.get("because")), 400))
        if kind == "nodes":
            self.awaited = {str(key): clean_line(str(name), 80) for key, name in dict(told["names"]).items()}
            self.until, self.count = time.monotonic() + self.node_seconds + 1.0, len(self.awaited)
        elif kind == "node":
            name = self.awaited.pop(str(told.get("id")), "")
            machine = machine_told(told)
            if isinstance(machine, Machine):
                self.nodes.append(machine)
            else:
                self.silent.setdefault(machine, []).append(name)
        elif kind == "silent":
            name = self.awaited.pop(str(told.get("id")), clean_line(str(told.get("name")), 80))
            because = clean_line(str(told.get("because")), 200).rstrip(".。")
            self.silent.setdefault(because, []).append(name)
        elif kind == "log":
            node, file = clean_line(str(told["node"]), 80), clean_line(os.path.basename(str(told["name"])), 100)
            self.logs.append((node, file, str(told["text"])))
        elif kind == "done":
            self.done = True

    def _lines(self) -> Iterator[dict[str, Any]]:
        """What the child writes, until it ends or time is up."""
        assert self.child.stdout is not None
        pipe, rest = self.child.stdout.fileno(), b""
        while (left := self.until - time.monotonic()) > 0:
            if not select.select([pipe], [], [], min(left, _CHECK_SECONDS))[0]:
                if self._is_locked_out():
                    return
                continue
            data = os.read(pipe, 1 << 16)
            if not data:
                return
            *whole, rest = (rest + data).split(b"\n")
            yield from (json.loads(line) for line in whole if line.startswith(b"{"))
