"""A Ray cluster is asked in a process that can be given up; partial answers are kept and told."""

from __future__ import annotations

import inspect
import json
import pickle
import socket
import subprocess
import sys
import threading
import time
import zlib

import pytest

from advisor.language import speaking
from advisor.machine import cluster
from advisor.machine.cluster import ClusterError, ask_cluster, forget
from advisor.machine.cluster.child import _refused, catalogue, packed_code, unpacked
from advisor.machine.cluster.probe import probe
from advisor.machine.cluster.reachability import unreachable_nodes, why_unreachable
from advisor.machine.inventory import Machine
from advisor.machine.inventory_json import from_json, to_json
from advisor.machine.nvml import SENTENCES
from tests.loops import each


@pytest.fixture
def answering(monkeypatch):
    """Stands in for the child: a Python text that writes what the child would."""

    def set_up(text):
        real = subprocess.Popen
        monkeypatch.setattr(
            cluster.subprocess, "Popen", lambda words, **options: real([sys.executable, "-c", text], **options)
        )
        forget()

    yield set_up
    forget()


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
    assert "pip install ray==2.9.3" in _refused(said, "auto", "2.60.0")
    assert "Python 3.10.12" in _refused(said, "auto", "2.9.3")


def test_another_patch_of_python_can_be_overlooked_and_another_minor_cannot():
    said = "Version mismatch: The cluster was started with: Ray: 2.9.3 Python: {} This was started with: Python: 3.11.7"
    overlook = "RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL=minor"
    assert overlook in _refused(said.format("3.11.4"), "auto", "2.9.3")
    assert overlook not in _refused(said.format("3.10.4"), "auto", "2.9.3")


def test_a_cluster_that_wants_a_token_says_how_to_give_it():
    assert "RAY_AUTH_MODE=token" in _refused("Unauthenticated: RPC error", "10.0.0.1:6379", "2.60.0")


def probed(language, words):
    """What a probe finds that has nothing but what it carries."""
    code = (
        "import pickle, sys\n"
        "source, carried = pickle.load(sys.stdin.buffer)\n"
        "space = {'__name__': 'carried'}\n"
        "exec(compile(source, 'probe', 'exec'), space)\n"
        "twice = [space['probe'](*carried, [], 9.0) for _ in range(2)]\n"
        "sys.stdout.buffer.write(twice[1])\n"
    )
    carried = [inspect.getsource(sys.modules[probe.__module__]), (packed_code(), language, words)]
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], input=pickle.dumps(carried), capture_output=True, cwd="/", timeout=30
    )
    assert done.returncode == 0, done.stderr.decode()
    return from_json(json.loads(zlib.decompress(done.stdout)))


def test_a_probe_measures_with_nothing_but_the_texts_it_carries():
    assert probed("en", {}).host.total_bytes


def test_a_probe_speaks_the_language_of_who_asks():
    words = {text: f"说 {text}" for text in SENTENCES.values()}
    machine = probed("zh", words)
    assert machine.gpus or any(problem.startswith("说 ") for problem in machine.problems)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_a_task_carries_is_handed_over_with_it_and_not_kept_for_nodes_to_fetch(language):
    with speaking(language):
        words = catalogue()
    assert len(packed_code()) < 100 << 10  # Ray's max_direct_call_object_size
    assert len(pickle.dumps(words)) < 100 << 10
    assert bool(words) == (language == "zh")


def test_nodes_that_are_silent_for_one_reason_are_told_together(answering):
    names = {f"n{place}": f"node-{place}" for place in range(40)}
    dead = [{"kind": "silent", "id": key, "name": name, "because": "dead."} for key, name in names.items()]
    answering(says({"kind": "nodes", "names": names}, *dead, {"kind": "done"}))
    said = ask_cluster("auto").problems
    assert said == ("node-0, node-1, node-2, node-3 and 36 more: dead; what the other nodes told is shown.",)


def test_who_asks_hears_how_many_nodes_have_answered(answering):
    heard = []
    answering(says(NAMES, NODE, {**NODE, "id": "b"}, {"kind": "done"}))
    ask_cluster("auto", heard=lambda *told: heard.append(told))
    assert heard == [(0, 2), (1, 2), (2, 2)]


def test_an_asker_that_breaks_leaves_its_last_words(answering):
    answering("raise AttributeError('half installed')")
    began = time.monotonic()
    with pytest.raises(ClusterError, match="AttributeError: half installed"):
        ask_cluster("auto")
    assert time.monotonic() - began < 5


def test_a_cluster_whose_token_is_missing_is_not_waited_for(answering):
    answering("import sys, time; print('Unauthenticated: RPC error', file=sys.stderr, flush=True); time.sleep(60)")
    began = time.monotonic()
    with pytest.raises(ClusterError, match="RAY_AUTH_MODE=token"):
        ask_cluster("10.0.0.1:6379")
    assert time.monotonic() - began < 8


def test_no_address_is_no_cluster():
    with pytest.raises(ClusterError, match="--ray needs auto or the address"):
        ask_cluster(" ")


def test_an_address_where_nobody_listens_is_told_at_once():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert why_unreachable(f"127.0.0.1:{port}") == ""
        assert why_unreachable(f"ray://127.0.0.1:{port}") == ""
    assert "nobody listens at" in why_unreachable(f"127.0.0.1:{port}")
    assert "cannot be reached" in why_unreachable("no-such-host.invalid:6379")
    assert [why_unreachable(other) for other in ("auto", "host", "host:port", "host:99999", ":1")] == [""] * 5


# --- a real cluster ------------------------------------------------------------------------------------------------


@pytest.fixture
def made_cluster():
    """Nodes of a real Ray cluster on this machine; only where Ray is installed."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    forget()
    yield made
    made.shutdown()
    forget()


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
    slow, dead = socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0))
    addresses = {"slow": slow.getsockname(), "dead": dead.getsockname(), "hidden": (None, 0)}
    dead.close()
    began = time.monotonic()
    assert unreachable_nodes(addresses) == {"dead"}
    assert time.monotonic() - began < 2
    slow.close()


# --- what a node answers is a stranger's ----------------------------------------------------------------------------

ANSWERS = {
    "no machine": {"kind": "node", "id": "b"},
    "a list": {"kind": "node", "id": "b", "machine": []},
    "other words": {"kind": "node", "id": "b", "machine": {"x": 1}},
    "a huge number": {"kind": "node", "id": "b", "machine": {"nodes": 1, "gpus": [{"total_bytes": 10**40}]}},
    "a text for a number": {"kind": "node", "id": "b", "machine": {"nodes": "many"}},
    "many cards": {"kind": "node", "id": "b", "machine": {"nodes": 1, "gpus": [{}] * 5000}},
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_node_that_answers_anything_costs_nobody_elses_answer(name, answering):
    answering(says(NAMES, NODE, ANSWERS[name], {"kind": "done"}))
    answers = ask_cluster("auto")
    assert [node.libraries for node in answers.nodes] == [{"torch": "2.5.1"}]
    (problem,) = answers.problems
    assert problem.startswith("node-b: it answered what cannot be read")


def test_names_and_reasons_of_nodes_command_no_terminal(answering):
    evil = "\x1b]52;c;AAAA\x07\x1b[2J\u202eevil"
    names = {"kind": "nodes", "names": {"a": "node-a", "b": evil}}
    dead = {"kind": "silent", "id": "b", "name": evil, "because": evil}
    machine = {**to_json(Machine(1)), "name": evil, "driver": evil, "problems": [evil], "libraries": {evil: evil}}
    log = {"kind": "log", "node": evil, "name": f"../../x\0{evil}", "text": evil}
    answering(says(names, {"kind": "node", "id": "a", "machine": machine}, dead, log, {"kind": "done"}))
    answers = ask_cluster("auto")
    told = repr((answers.nodes, answers.problems, answers.logs[0][:2]))
    assert "evil" in told
    assert "\\x1b" not in told
    assert "\\u202e" not in told
    assert "\\x00" not in told


def a_bomb() -> bytes:
    """A little that becomes much: packed where it is wanted, not in every process that reads this file."""
    packing, blanks = zlib.compressobj(1), b" " * (1 << 20)
    return b"".join([*(packing.compress(blanks) for _ in range(80)), packing.compress(b"{}"), packing.flush()])


@each(
    "answer",
    [a_bomb, lambda: zlib.compress(b"[1]"), lambda: b"junk", lambda: zlib.compress(b"[" * 99_999), lambda: None],
)
def test_what_a_node_packs_is_unpacked_within_bounds(answer):
    answer = answer()
    with pytest.raises((ValueError, TypeError, RecursionError, zlib.error)):
        unpacked(answer)


def test_worker_logs_of_a_node_are_texts():
    machine, logs = unpacked(zlib.compress(json.dumps({"nodes": 1, "worker_logs": {"a": 5, "b": None}}).encode()))
    assert (machine, logs) == ({"nodes": 1}, {"a": "5", "b": "None"})
    assert unpacked(zlib.compress(json.dumps({"nodes": 1, "worker_logs": 5}).encode())) == ({"nodes": 1}, {})
