"""The child of `cluster`: `python -m advisor.machine.cluster_ask ADDRESS SECONDS LANGUAGE WORKER…`. Writes JSON lines.

Each node runs this program's own reading of a machine, as a task pinned to it that asks for no CPU and no GPU slot. The
program need not be installed there: its few modules travel with the task and live in its memory only.
"""

from __future__ import annotations

import errno
import json
import os
import select
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from advisor.language import ENGLISH, mark, read_catalogue, say, sentences, speak, spoken

_MISSING = mark("--ray needs the Python package ray, in the version of the cluster: pip install 'rl-oom-advisor[ray]'")
_NO_CLUSTER = mark("no Ray cluster answers at {address}; `ray status` on one of its nodes shows the address")
_OTHER_RAY = mark("the cluster runs Ray {theirs} and here is Ray {ours}: pip install ray=={theirs} makes them alike")
_OTHER_PYTHON = mark("the cluster runs Python {theirs} and here is Python {ours}: use the cluster's")
_CLOSED = mark("the node died while it was asked, or just before: nobody listens where its raylet was")
KNOCK_AFTER, KNOCKING = 0.8, 0.3
"""Seconds of silence after which silent nodes are looked up, again and again; and how long that may take."""
_TRAVEL = ("__init__.py", "hostile.py", "language.py", "redact.py", "units.py", "words.py")


def main(arguments: Sequence[str]) -> int:
    """Ask, and write what is answered as it comes."""
    address, seconds = arguments[0], float(arguments[1])
    speak(arguments[2])
    out = os.dup(1)
    os.dup2(2, 1)  # whatever Ray prints is not ours

    def tell(**line: Any) -> None:
        os.write(out, json.dumps(line).encode() + b"\n")

    try:
        import ray
    except ImportError:
        tell(kind="refused", because=say(_MISSING))
        return 0
    refusal = _join(ray, address)
    if refusal:
        tell(kind="refused", because=refusal)
        return 0
    _ask(ray, seconds, tell, list(arguments[3:]))
    tell(kind="done")
    os._exit(0)  # no long farewell from a cluster that may be dying


def _join(ray: Any, address: str) -> str:
    """Become a driver of the running cluster; "" or the sentence that says why that is not possible."""
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level="ERROR",
            configure_logging=False,
            include_dashboard=False,
            namespace="rl-oom-advisor",
        )
    except ConnectionError:
        return say(_NO_CLUSTER, address=address)
    except (RuntimeError, ValueError, OSError) as error:
        said = " ".join(str(error).split())
        if "Version mismatch" in said or "version mismatch" in said:
            return _versions(said, ray.__version__)
        return say("Ray at {address} refused: {error}", address=address, error=said[:200])
    return ""


def _versions(said: str, ours: str) -> str:
    import re

    found = re.findall(r"Ray: (\S+)", said)
    pythons = re.findall(r"Python: (\S+)", said)
    if found and found[0] != ours:
        return say(_OTHER_RAY, theirs=found[0], ours=ours)
    if len(pythons) > 1 and pythons[0] != pythons[1]:
        return say(_OTHER_PYTHON, theirs=pythons[0], ours=pythons[1])
    return say("the versions of Ray or Python differ from the cluster's: {error}", error=said[:160])


def _ask(ray: Any, seconds: float, tell: Callable[..., None], workers: list[str]) -> None:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = ray.nodes()
    names = _names(nodes)
    tell(kind="nodes", names={node["NodeID"]: names[node["NodeID"]] for node in nodes if node.get("Alive")})
    for node in nodes:
        if not node.get("Alive"):
            why = str(node.get("DeathReasonMessage") or node.get("DeathReason") or "")[:150]
            tell(
                kind="silent",
                id=node["NodeID"],
                name=names[node["NodeID"]],
                because=sentences([say("Ray counts it as dead."), why]),
            )
    modules = ray.put((_modules(), spoken(), _catalogue()))
    source = Path(__file__).with_name("cluster_probe.py").read_text(encoding="utf-8")
    space: dict[str, Any] = {"__name__": "rl_oom_advisor_probe"}
    exec(compile(source, "cluster_probe", "exec"), space)  # noqa: S102 - our own file; made so, it travels by value
    task = ray.remote(num_cpus=0, num_gpus=0, max_retries=0, max_calls=1)(space["probe"])
    waiting = {
        task.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(
            modules, workers
        ): node["NodeID"]
        for node in nodes
        if node.get("Alive")
    }
    doors = {node["NodeID"]: (node.get("NodeManagerAddress"), node.get("NodeManagerPort")) for node in nodes}
    until, knock = time.monotonic() + seconds, time.monotonic() + KNOCK_AFTER
    while waiting and (left := until - time.monotonic()) > 0:
        ready, _ = ray.wait(list(waiting), num_returns=1, timeout=max(0.01, min(left, knock - time.monotonic())))
        for answer in ready:
            _answered(ray, answer, waiting.pop(answer), names, tell)
        if time.monotonic() >= knock:
            knock = time.monotonic() + KNOCK_AFTER
            closed = closed_doors({node: doors[node] for node in waiting.values()})
            for answer, node in list(waiting.items()):
                if node in closed:
                    del waiting[answer]
                    tell(kind="silent", id=node, name=names[node], because=say(_CLOSED))
    for node in waiting.values():
        tell(kind="silent", id=node, name=names[node], because=say("no answer within {seconds:.0f} s", seconds=seconds))


def closed_doors(doors: Mapping[str, tuple[Any, Any]]) -> set[str]:
    """Nodes on whose address and port nobody listens any more: their raylet is dead, which Ray itself notices late.

    All are tried at once, within `KNOCKING` seconds. Who does not answer at all is not counted: a network may hide it.
    """
    tried: dict[int, tuple[str, socket.socket]] = {}
    poll = select.poll()
    for node, (address, port) in doors.items():
        if not isinstance(address, str) or not isinstance(port, int) or not port:
            continue
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        one = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        tried[one.fileno()] = node, one
        with suppress(OSError):  # a refusal at once is found by the poll, too
            one.connect_ex((address, port))
        poll.register(one, select.POLLOUT)
    closed: set[str] = set()
    until = time.monotonic() + KNOCKING
    waiting = len(tried)
    while waiting and (left := until - time.monotonic()) > 0:
        for fd, _ in poll.poll(left * 1000):
            node, one = tried[fd]
            poll.unregister(fd)
            waiting -= 1
            if one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED:
                closed.add(node)
    for _, one in tried.values():
        one.close()
    return closed


def _answered(ray: Any, answer: Any, node: str, names: dict[str, str], tell: Callable[..., None]) -> None:
    try:
        machine = ray.get(answer, timeout=1)
    except ray.exceptions.RayError as error:
        said = " ".join(str(error).split())
        is_gone = "died" in said or "unschedulable" in said.lower()
        why = say("the node died while it was asked") if is_gone else said[:150]
        tell(kind="silent", id=node, name=names[node], because=f"{type(error).__name__}, {why}")
        return
    for name, text in machine.pop("worker_logs", {}).items():
        tell(kind="log", node=names[node], name=name, text=text)
    machine["name"] = names[node]
    tell(kind="node", id=node, machine=machine)


def _names(nodes: Sequence[Any]) -> dict[str, str]:
    """Host names, with the node's id where several have the same."""
    plain = {node["NodeID"]: str(node.get("NodeManagerHostname") or node.get("NodeManagerAddress")) for node in nodes}
    counts = list(plain.values())
    return {key: name if counts.count(name) == 1 else f"{name} {key[:6]}" for key, name in plain.items()}


def _modules() -> dict[str, str]:
    """The source of what a reading needs: module name → text."""
    root = Path(__file__).resolve().parents[1]
    files = [root / name for name in _TRAVEL] + sorted((root / "machine").glob("*.py"))
    found = {}
    for file in files:
        parts = ["advisor", *file.relative_to(root).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = file.read_text(encoding="utf-8")
    return found


def _catalogue() -> dict[str, str]:
    """What the nodes need to speak as we do."""
    return {} if spoken() == ENGLISH else read_catalogue(Path(__file__).parents[1] / "languages" / spoken())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
