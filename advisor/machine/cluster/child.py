"""Asks every node of a Ray cluster at once, each within its time, in the child process of `cluster`.

`python -m advisor.machine.cluster.child ADDRESS SECONDS EVERY LANGUAGE WORKER…` writes JSON lines. EVERY 0: asks once;
else again every so many seconds, until nobody reads. Each node runs this program's own reading of a machine, as a task
pinned to it that asks for no CPU and no GPU slot. The program need not be installed there: its few modules travel with
the task and live in its memory only.
"""

from __future__ import annotations

import importlib.util
import json
import marshal
import os
import re
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from advisor.language import ENGLISH, mark, read_catalogue, say, sentences, speak, spoken
from advisor.machine.cluster.reachability import TOKEN, unreachable_nodes, wants_token, why_unreachable

_MISSING = mark("--ray needs the Python package ray, in the version of the cluster: pip install 'rl-oom-advisor[ray]'")
_NO_CLUSTER = mark("no Ray cluster answers at {address}; `ray status` on one of its nodes shows the address")
_OTHER_RAY = mark("the cluster runs Ray {theirs} and here is Ray {ours}: pip install ray=={theirs} makes them alike")
_OTHER_PYTHON = mark("the cluster runs Python {theirs} and here is Python {ours}: use the cluster's")
_OTHER_PATCH = mark(
    "the cluster runs Python {theirs} and here is Python {ours}: use the cluster's, or let Ray overlook that with "
    "RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL=minor"
)
CHECK_SECONDS = 0.8
"""Seconds of silence after which silent nodes are looked up, again and again."""
_CLOSED = mark("the node died while it was asked, or just before: nobody listens where its raylet was")
_DEAD = mark("the node died while it was asked")
_LONGEST_ANSWER = 64 << 20
"""Bytes of an answer, unpacked: a few KiB, and the ends of logs."""
_DRIVER_SHARE = 0.6
"""Of a node's time, what its GPU driver gets: where it hangs, there is time left to tell the rest."""

SendLine = Callable[..., None]
"""Writes one JSON line of these fields."""


def main(arguments: Sequence[str]) -> int:
    address, seconds, every = arguments[0], float(arguments[1]), float(arguments[2])
    speak(arguments[3])
    out = os.dup(1)
    os.dup2(2, 1)  # whatever Ray prints is not ours

    def send(**line: Any) -> None:
        os.write(out, json.dumps(line).encode() + b"\n")

    refusal = why_unreachable(address)
    if not refusal:
        try:
            import ray
        except ImportError:
            refusal = say(_MISSING)
    if not refusal:
        refusal = _join(ray, address)
    if refusal:
        send(kind="refused", because=refusal)
        return 0
    rounds = Rounds(ray, seconds, send, tuple(arguments[4:]))
    while True:
        began = time.monotonic()
        rounds.ask()
        send(kind="done")
        if not every:
            os._exit(0)  # no long farewell from a cluster that may be dying
        time.sleep(max(0.0, began + every - time.monotonic()))


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
    except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        return _refused(" ".join(str(error).split()), address, ray.__version__)
    return ""


def _refused(said: str, address: str, ours: str) -> str:
    """Ray's refusal in a sentence that says what to do. `ours`: the version of Ray here."""
    if "version mismatch" not in said.lower():
        if wants_token(said):
            return say(TOKEN, address=address)
        return say("Ray at {address} refused: {error}", address=address, error=said[:200])
    found, pythons = re.findall(r"Ray: (\S+)", said), re.findall(r"Python: (\S+)", said)
    if found and found[0] != ours:
        return say(_OTHER_RAY, theirs=found[0], ours=ours)
    if len(pythons) > 1 and pythons[0] != pythons[1]:
        alike = pythons[0].split(".")[:2] == pythons[1].split(".")[:2]
        return say(_OTHER_PATCH if alike else _OTHER_PYTHON, theirs=pythons[0], ours=pythons[1])
    return say("the versions of Ray or Python differ from the cluster's: {error}", error=said[:160])


def unpacked(answer: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    """A node's machine and the ends of its workers' logs. Raises ValueError, TypeError, zlib.error."""
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(answer, _LONGEST_ANSWER)
    if unpacking.unconsumed_tail:
        raise ValueError(f"more than {_LONGEST_ANSWER} bytes")
    machine = json.loads(data)
    if not isinstance(machine, dict):
        raise TypeError(type(machine).__name__)
    logs = machine.pop("worker_logs", None)
    return machine, {str(name): str(text) for name, text in (logs if isinstance(logs, dict) else {}).items()}


class Rounds:
    """One driver's questions to all nodes. A node that does not answer in time is not asked again until it does."""

    def __init__(self, ray: Any, seconds: float, send: SendLine, workers: Sequence[str] = ()) -> None:
        self.ray, self.seconds, self.send = ray, seconds, send
        self.waiting: dict[Any, str] = {}
        """Answer to come → id of the node."""
        self.late: set[str] = set()
        self.names: dict[str, str] = {}
        """Node id → host name."""
        self._probe = ray.remote(num_cpus=0, num_gpus=0, max_retries=0)(travelling_probe())
        self._arguments = packed_code(), spoken(), catalogue(), list(workers), seconds * _DRIVER_SHARE

    def ask(self) -> None:
        """One round: tells the nodes, then each as it answers, and at the end those that were silent."""
        nodes = self.ray.nodes()
        alive = [node for node in nodes if node.get("Alive")]
        plain = {one["NodeID"]: str(one.get("NodeManagerHostname") or one.get("NodeManagerAddress")) for one in nodes}
        count = Counter(plain.values())  # where several nodes have one name, their ids tell them apart
        self.names = {key: name if count[name] == 1 else f"{name} {key[:6]}" for key, name in plain.items()}
        self.send(kind="nodes", names={node["NodeID"]: self.names[node["NodeID"]] for node in alive})
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

    def _collect(self, addresses: Mapping[str, tuple[Any, Any]]) -> None:
        """What is answered in time. Nodes that were late before are not waited for, but heard."""
        until, check = time.monotonic() + self.seconds, time.monotonic() + CHECK_SECONDS
        while any(node not in self.late for node in self.waiting.values()) and time.monotonic() < until:
            patience = max(0.01, min(until, check) - time.monotonic())
            for answer in self.ray.wait(list(self.waiting), num_returns=1, timeout=patience)[0]:
                self._answered(answer, self.waiting.pop(answer))
            if time.monotonic() >= check:
                check = time.monotonic() + CHECK_SECONDS
                closed = unreachable_nodes({node: addresses.get(node, (None, 0)) for node in self.waiting.values()})
                for answer, node in [pair for pair in self.waiting.items() if pair[1] in closed]:
                    del self.waiting[answer]
                    self._silent(node, say(_CLOSED))

    def _answered(self, answer: Any, node: str) -> None:
        try:
            machine, logs = unpacked(self.ray.get(answer, timeout=1))
        except (ValueError, TypeError, RecursionError, zlib.error) as error:  # anybody may answer there
            told = f"{type(error).__name__}: {error}"[:120]
            self._silent(node, say("it answered what cannot be read ({error})", error=told))
            return
        except self.ray.exceptions.RayError as error:
            said = " ".join(str(error).split())
            is_gone = "died" in said or "unschedulable" in said.lower()
            self._silent(node, f"{type(error).__name__}, {say(_DEAD) if is_gone else said[:150]}")
            return
        name = self.names.get(node, node[:6])
        for file, text in logs.items():
            self.send(kind="log", node=name, name=file, text=text)
        self.send(kind="node", id=node, machine={**machine, "name": name})

    def _silent(self, node: str, because: str) -> None:
        self.send(kind="silent", id=node, name=self.names.get(node, node[:6]), because=because)


# --- the modules and texts that a task takes along: this program need not be installed on a node ----------------------

_GROUND = ("hostile", "language", "redact", "regex", "units", "words")
_READING = (
    "amd", "ascend", "cards", "host", "inventory", "inventory_json", "libraries", "measure", "nvml",
    "processes", "ray_session", "tool",
)  # fmt: skip
MODULES = (
    "advisor",
    *(f"advisor.{name}" for name in _GROUND),
    "advisor.machine",
    *(f"advisor.machine.{name}" for name in _READING),
)
"""All that `measure` imports of ours."""


def packed_code() -> bytes:
    """Module name → its compiled code, packed; below 100 KiB, which Ray hands over with a task. What is larger lies in
    the object store of the node that asks, and to get it from there every node must be able to call back."""
    return zlib.compress(marshal.dumps({name: _compiled(name) for name in MODULES}), 6)


def _compiled(module: str) -> CodeType:
    """Without its docstrings, which nobody reads there: an eighth of it."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    code: CodeType = compile(Path(spec.origin).read_bytes(), spec.origin, "exec", optimize=2, dont_inherit=True)
    return code


def travelling_probe() -> Callable[..., bytes]:
    """The probe as a function of no module, so that Ray sends it by value."""
    space: dict[str, Any] = {"__name__": "rl_oom_advisor_probe"}
    exec(_compiled("advisor.machine.cluster.probe"), space)  # noqa: S102 - our own
    found: Callable[..., bytes] = space["probe"]
    return found


def catalogue() -> dict[str, str]:
    """The translated texts of these modules in the language spoken; {} in English."""
    if spoken() == ENGLISH:
        return {}
    folder = Path(__file__).parents[2] / "languages" / spoken()
    return read_catalogue(folder, "machine.json") | read_catalogue(folder, "program.json")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
