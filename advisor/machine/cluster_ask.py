"""The child of `cluster`: `python -m advisor.machine.cluster_ask ADDRESS SECONDS EVERY LANGUAGE WORKER…`.

Writes JSON lines. EVERY 0: asks once; else again every so many seconds, until nobody reads.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from advisor.language import mark, say, speak
from advisor.machine.cluster_doors import TOKEN, nobody_at, wants_token

_MISSING = mark("--ray needs the Python package ray, in the version of the cluster: pip install 'rl-oom-advisor[ray]'")
_NO_CLUSTER = mark("no Ray cluster answers at {address}; `ray status` on one of its nodes shows the address")
_OTHER_RAY = mark("the cluster runs Ray {theirs} and here is Ray {ours}: pip install ray=={theirs} makes them alike")
_OTHER_PYTHON = mark("the cluster runs Python {theirs} and here is Python {ours}: use the cluster's")
_OTHER_PATCH = mark(
    "the cluster runs Python {theirs} and here is Python {ours}: use the cluster's, or let Ray overlook that with "
    "RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL=minor"
)


def main(arguments: Sequence[str]) -> int:
    """Ask, and write what is answered as it comes."""
    address, seconds, every = arguments[0], float(arguments[1]), float(arguments[2])
    speak(arguments[3])
    out = os.dup(1)
    os.dup2(2, 1)  # whatever Ray prints is not ours

    def tell(**line: Any) -> None:
        os.write(out, json.dumps(line).encode() + b"\n")

    refusal = nobody_at(address)
    if not refusal:
        try:
            import ray
        except ImportError:
            refusal = say(_MISSING)
    if not refusal:
        refusal = _join(ray, address)
    if refusal:
        tell(kind="refused", because=refusal)
        return 0
    from advisor.machine.cluster_rounds import Rounds

    rounds = Rounds(ray, seconds, tell, tuple(arguments[4:]))
    while True:
        began = time.monotonic()
        rounds.ask()
        tell(kind="done")
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
    if "version mismatch" in said.lower():
        return _versions(said, ours)
    if wants_token(said):
        return say(TOKEN, address=address)
    return say("Ray at {address} refused: {error}", address=address, error=said[:200])


def _versions(said: str, ours: str) -> str:
    import re

    found = re.findall(r"Ray: (\S+)", said)
    pythons = re.findall(r"Python: (\S+)", said)
    if found and found[0] != ours:
        return say(_OTHER_RAY, theirs=found[0], ours=ours)
    if len(pythons) > 1 and pythons[0] != pythons[1]:
        alike = pythons[0].split(".")[:2] == pythons[1].split(".")[:2]
        return say(_OTHER_PATCH if alike else _OTHER_PYTHON, theirs=pythons[0], ours=pythons[1])
    return say("the versions of Ray or Python differ from the cluster's: {error}", error=said[:160])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
