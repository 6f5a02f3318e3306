"""Live nodes of a cluster: asked while somebody looks; who dies or hangs stays on the list with the reason."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from advisor.machine.cluster import live as cluster_live
from advisor.machine.cluster.live import ClusterGauges
from advisor.machine.inventory import Gpu, Host, Machine
from advisor.machine.inventory_json import to_json
from advisor.units import GIB

NAMES = {"kind": "nodes", "names": {"a": "node-a", "b": "node-b"}}
DONE = {"kind": "done"}


def node(key, used=1):
    card = Gpu(0, "NVIDIA H100 80GB HBM3", 80 * GIB, used * GIB)
    return {"kind": "node", "id": key, "machine": to_json(Machine(1, (card,), Host(64 * GIB), name=f"node-{key}"))}


@pytest.fixture
def asked(monkeypatch):
    """Gauges of a cluster whose asker says these lines and then stays; they are closed in the end."""
    made = []

    def begin(*lines, then="import time; time.sleep(60)"):
        code = "".join(f"print({json.dumps(line)!r}, flush=True)\n" for line in lines) + then
        monkeypatch.setattr(
            cluster_live,
            "start_child",
            lambda *_: subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE),
        )
        made.append(ClusterGauges("auto"))
        return made[-1]

    yield begin
    for gauges in made:
        gauges.close()


def until(gauges, fits):
    end = time.monotonic() + 10
    while not fits(gauges.look()) and time.monotonic() < end:
        time.sleep(0.02)
    return gauges.look()


def test_nobody_is_asked_before_the_first_look(asked):
    gauges = asked(NAMES)
    assert gauges._child is None
    assert gauges.look().nodes == ()
    assert gauges._child is not None


def test_the_newest_reading_of_each_node_is_shown_and_a_silent_one_keeps_its_last(asked):
    late = {"kind": "silent", "id": "b", "name": "node-b", "because": "no answer within 6 s"}
    gauges = asked(NAMES, node("a"), node("b"), DONE, NAMES, node("a", used=7), late, DONE)
    shown = until(gauges, lambda told: any(one.problem for one in told.nodes)).nodes
    assert [one.name for one in shown] == ["node-a", "node-b"]
    assert shown[0].machine.gpus[0].used_bytes == 7 * GIB
    assert shown[1].machine.gpus[0].used_bytes == GIB
    assert shown[1].problem == "no answer within 6 s"


def test_a_node_that_died_stays_with_the_reason_and_a_new_one_joins(asked):
    names = {"kind": "nodes", "names": {"a": "node-a", "c": "node-c"}}
    dead = {"kind": "silent", "id": "b", "name": "node-b", "because": "Ray counts it as dead."}
    shown = until(
        asked(NAMES, node("a"), node("b"), DONE, names, dead, node("c"), DONE), lambda told: len(told.nodes) == 3
    ).nodes
    assert [one.name for one in shown] == ["node-a", "node-b", "node-c"]
    assert "dead" in shown[1].problem


def test_a_refusal_is_shown_and_not_asked_for_again_while_somebody_looks(asked):
    gauges = asked({"kind": "refused", "because": "no Ray cluster answers at auto"}, then="")
    assert until(gauges, lambda told: bool(told.problem)).problem == "no Ray cluster answers at auto"
    time.sleep(0.2)
    gauges.look()
    assert gauges._child is None


def test_the_cluster_is_left_when_nobody_looks_and_asked_again_when_somebody_does(asked, monkeypatch):
    monkeypatch.setattr(cluster_live, "UNSEEN", 0.2)
    again = "import json, time\nwhile True:\n time.sleep(0.05)\n print(json.dumps({'kind': 'done'}), flush=True)"
    gauges = asked(NAMES, node("a"), then=again)
    gauges.look()
    child = gauges._child
    assert child.wait(timeout=10) is not None
    assert until(gauges, lambda told: bool(told.nodes)).nodes
    assert gauges._child is not child


def test_an_asker_that_ends_says_so(asked):
    gauges = asked(NAMES, node("a"), then="print('{torn', end='')")
    assert "is not asked any more" in until(gauges, lambda told: bool(told.problem)).problem
    assert gauges.look().nodes[0].name == "node-a"
