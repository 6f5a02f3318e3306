"""A Ray cluster is asked in a process that can be given up; partial answers are kept and told."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time

import pytest

from advisor.machine import cluster
from advisor.machine.cluster import ClusterError, ask_cluster
from advisor.machine.cluster_ask import _modules, _versions
from advisor.machine.cluster_probe import probe
from advisor.machine.inventory import Machine
from advisor.machine.inventory_json import from_json, to_json
from advisor.machine.trouble import SENTENCES


@pytest.fixture
def answering(monkeypatch):
    """Stands in for the child: a Python text that writes what the child would."""

    def set_up(text):
        real = subprocess.Popen
        monkeypatch.setattr(
            cluster.subprocess, "Popen", lambda words, **options: real([sys.executable, "-c", text], **options)
        )
        ask_cluster.cache_clear()

    yield set_up
    ask_cluster.cache_clear()


def says(*lines):
    return "import time\n" + "\n".join(f"print({json.dumps(json.dumps(line))}, flush=True)" for line in lines)


NAMES = {"kind": "nodes", "names": {"a": "node-a", "b": "node-b"}}
NODE = {"kind": "node", "id": "a", "machine": to_json(Machine(1, libraries={"torch": "2.5.1"}, name="node-a"))}


def test_all_answers_are_nodes(answering):
    answering(says(NAMES, NODE, {**NODE, "id": "b"}, {"kind": "done"}))
    answers = ask_cluster("auto")
    assert len(answers.nodes) == 2
    assert answers.problems == ()


def test_a_node_that_hangs_costs_its_time_and_a_sentence(answering):
    answering(says(NAMES, NODE) + "\ntime.sleep(60)")
    began = time.monotonic()
    answers = ask_cluster("auto", 0.3)
    assert time.monotonic() - began < 5
    assert [one.name for one in answers.nodes] == ["node-a"]
    assert answers.problems == ("node-b: no answer within 0 s; what the other nodes told is shown.",)


def test_a_node_that_died_is_named_with_its_reason(answering):
    answering(
        says(
            NAMES, NODE, {"kind": "silent", "id": "b", "because": "the node died while it was asked"}, {"kind": "done"}
        )
    )
    assert ask_cluster("auto").problems[0].startswith("node-b: the node died while it was asked")


def test_a_child_that_dies_leaves_what_it_had_told(answering):
    answering(says(NAMES, NODE) + "\nimport os; os._exit(6)")
    answers = ask_cluster("auto")
    assert len(answers.nodes) == 1
    assert "node-b" in answers.problems[0]


def test_a_refusal_is_one_sentence(answering):
    answering(says({"kind": "refused", "because": "no Ray cluster answers at auto"}))
    with pytest.raises(ClusterError, match="no Ray cluster answers"):
        ask_cluster("auto")


def test_another_version_of_ray_is_told_with_the_one_to_install():
    said = (
        "Version mismatch: The cluster was started with: Ray: 2.9.3 Python: 3.10.12 This process on node 10.0.0.2 was "
        "started with: Ray: 2.60.0 Python: 3.11.7"
    )
    assert "pip install ray==2.9.3" in _versions(said, "2.60.0")
    assert "Python 3.10.12" in _versions(said, "2.9.3")


def probed(language, words):
    """What a probe finds that has nothing but the texts it carries."""
    code = (
        "import json, sys\n"
        "source, modules = json.load(sys.stdin)\n"
        "space = {'__name__': 'carried'}\n"
        "exec(compile(source, 'probe', 'exec'), space)\n"
        "print(json.dumps(space['probe'](modules, [])))\n"
    )
    import inspect

    carried = [inspect.getsource(sys.modules[probe.__module__]), (_modules(), language, words)]
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(carried),
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
        timeout=30,
    )
    return from_json(json.loads(done.stdout))


def test_a_probe_measures_with_nothing_but_the_texts_it_carries():
    assert probed("en", {}).host.total_bytes


def test_a_probe_speaks_the_language_of_who_asks():
    words = {text: f"说 {text}" for text in SENTENCES.values()}
    machine = probed("zh", words)
    assert machine.gpus or any(problem.startswith("说 ") for problem in machine.problems)


# --- a real cluster ------------------------------------------------------------------------------------------------


@pytest.fixture
def made_cluster():
    """Nodes of a real Ray cluster on this machine; only where Ray is installed."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    ask_cluster.cache_clear()
    yield made
    made.shutdown()
    ask_cluster.cache_clear()


@pytest.mark.parametrize("count", [2, 4])
def test_a_real_cluster_tells_of_all_its_nodes(made_cluster, count):
    for _ in range(count - 1):
        made_cluster.add_node(num_cpus=1)
    answers = ask_cluster(made_cluster.address, 30.0)
    assert len(answers.nodes) == count
    assert answers.problems == ()
    assert all(node.host.total_bytes and node.libraries["ray"] for node in answers.nodes)
    assert answers.seconds < 20  # a machine at peace takes 2


def test_a_node_killed_meanwhile_leaves_the_others_answers_and_a_sentence(made_cluster):
    made_cluster.add_node(num_cpus=1)
    doomed = made_cluster.add_node(num_cpus=1)
    threading.Timer(0.8, lambda: made_cluster.remove_node(doomed, allow_graceful=False)).start()
    began = time.monotonic()
    answers = ask_cluster(made_cluster.address, 3.0)
    assert time.monotonic() - began < 20
    assert len(answers.nodes) >= 2
    assert len(answers.nodes) + len(answers.problems) >= 3


def test_the_log_of_a_worker_that_died_comes_with_the_answers(made_cluster, tmp_path):
    import ray

    ray.init(address=made_cluster.address, log_to_driver=False)
    note = tmp_path / "worker"

    @ray.remote(max_retries=0)
    def dying():
        import os

        note.write_text(ray.get_runtime_context().get_worker_id())
        print("torch.OutOfMemoryError: CUDA out of memory.", file=sys.stderr, flush=True)
        time.sleep(0.5)
        os._exit(1)

    with pytest.raises(ray.exceptions.WorkerCrashedError):
        ray.get(dying.remote())
    ray.shutdown()
    answers = ask_cluster(made_cluster.address, 30.0, workers=(note.read_text(),))
    assert any("OutOfMemoryError" in text for _, _, text in answers.logs)


def test_nobody_listens_where_a_raylet_died_and_a_slow_one_is_waited_for():
    import socket

    from advisor.machine.cluster_ask import closed_doors

    slow, dead = socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0))
    doors = {"slow": slow.getsockname(), "dead": dead.getsockname(), "hidden": (None, 0)}
    dead.close()
    began = time.monotonic()
    assert closed_doors(doors) == {"dead"}
    assert time.monotonic() - began < 2
    slow.close()
