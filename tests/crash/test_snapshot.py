"""A memory snapshot gives who held the card; no pickle can do anything, and no small one can keep the reader busy."""

import os
import pickle
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.crash.read import read_logs
from advisor.crash.snapshot import LIMIT, RefusedPickleError, is_pickle, plain_data, snapshot_text
from advisor.crash.sources import LogError
from advisor.units import GIB
from tests.heavy import examples

from .known import SIGNATURES

FRAMES = [
    {"filename": "/usr/lib/python3/site-packages/torch/nn/functional.py", "line": 2264, "name": "embedding"},
    {"filename": "/verl/workers/actor/dp_actor.py", "line": 148, "name": "_forward_micro_batch"},
    {"filename": "/verl/workers/actor/dp_actor.py", "line": 286, "name": "update_policy"},
]


def block(size, state="active_allocated", frames=FRAMES):
    return {"address": 1, "size": size, "requested_size": size, "state": state, "frames": frames}


def snapshot(**more):
    blocks = [block(12 * GIB), block(1 * GIB), block(8 * GIB, "inactive")]
    segment = {"device": 0, "total_size": 21 * GIB, "active_size": 13 * GIB, "blocks": blocks}
    oom = {"action": "oom", "device_free": 512 << 10, "size": 2 * GIB, "frames": FRAMES}
    traces = [[{"action": "alloc", "addr": 1, "size": 5, "frames": FRAMES}, oom]]
    return {"segments": [segment], "device_traces": traces, "allocator_settings": {"a": True}, **more}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_failed_allocation_is_proven_with_its_sizes_and_its_phase(tmp_path, protocol):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot(), protocol))
    crash = read_logs([path], SIGNATURES)
    assert (crash.verdict, crash.memory, crash.phase) == ("oom", "gpu", "actor_update")
    fields = crash.evidence[0].fields
    assert (fields["tried_bytes"], fields["free_bytes"], fields["gpu"]) == (2 * GIB, 512 << 10, 0)
    holder = next(one for one in crash.evidence if one.signature == "snapshot-holder")
    assert (holder.fields["held_bytes"], holder.fields["blocks"]) == (13 * GIB, 2)
    assert holder.fields["place"] == "/verl/workers/actor/dp_actor.py:148 _forward_micro_batch"
    assert [(one.kind, one.bytes) for one in crash.readings] == [("allocated", 13 * GIB), ("reserved", 21 * GIB)]


def test_a_snapshot_without_a_failure_shows_the_holders_and_proves_nothing(tmp_path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot(device_traces=[])))
    crash = read_logs([path], SIGNATURES)
    assert crash.verdict == "unclear"
    assert any(one.signature == "snapshot-holder" for one in crash.evidence)


class Runs:
    def __reduce__(self):
        return os.system, ("touch pwned",)


class Built:
    def __init__(self):
        self.value = 1


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("hostile", [Runs(), Built(), {1, 2}, os.system, bytearray(b"x"), complex(1, 2)])
def test_anything_but_plain_data_is_refused_in_one_sentence(tmp_path, monkeypatch, hostile, protocol):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "evil.pickle"
    path.write_bytes(pickle.dumps({"segments": [hostile]}, protocol))
    with pytest.raises(LogError, match="holds more than dictionaries"):
        snapshot_text(path)
    assert not (tmp_path / "pwned").exists()


def test_another_pickle_and_a_huge_one_are_refused(tmp_path):
    path = tmp_path / "other.pickle"
    path.write_bytes(pickle.dumps([1, 2, 3]))
    with pytest.raises(LogError, match="no memory snapshot"):
        snapshot_text(path)
    with path.open("wb") as file:
        file.write(b"\x80\x04")
        file.truncate(LIMIT + 1)
    with pytest.raises(LogError, match="more than 64 MiB"):
        snapshot_text(path)


def test_text_is_not_taken_for_a_pickle(tmp_path):
    path = tmp_path / "train.log"
    path.write_text("step:1\n")
    assert not is_pickle(path)
    assert not is_pickle(tmp_path)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@settings(max_examples=examples(60), deadline=None)
@given(plain, st.integers(3, 5))
def test_plain_data_comes_back_as_it_was(data, protocol):
    assert plain_data(pickle.dumps(data, protocol)) == data


@settings(max_examples=examples(150), deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_data_or_refused(data):
    with suppress(RefusedPickleError):
        plain_data(b"\x80\x04" + data)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 400), st.integers(0, 255))
def test_a_damaged_snapshot_is_told_or_refused(tmp_path_factory, at, value):
    data = bytearray(pickle.dumps(snapshot()))
    data[2 + at % (len(data) - 2)] = value
    path = tmp_path_factory.mktemp("damaged") / "snapshot.pickle"
    path.write_bytes(bytes(data))
    with suppress(LogError):
        snapshot_text(path)


def test_a_small_file_that_names_one_list_a_million_times_is_soon_done(tmp_path, monkeypatch):
    monkeypatch.setattr("advisor.crash.snapshot._VISITED", 100_000)
    blocks = [block(1, frames=[])] * 3_000
    segments = [{"device": 0, "total_size": 1, "active_size": 1, "blocks": blocks}] * 3_000
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": segments}))
    began = time.monotonic()
    assert "device 0 held 3000 bytes" in snapshot_text(path)
    assert time.monotonic() - began < 5


def test_nested_keys_and_monstrous_numbers_are_no_trap(tmp_path):
    nested = ()
    for _ in range(60):
        nested = (nested, nested)
    with pytest.raises(RefusedPickleError):
        plain_data(pickle.dumps([nested])[:-2] + b"}" + pickle.dumps(nested)[2:-1] + b"Ns.")
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": [{"device": 0, "total_size": 1 << 100_000, "blocks": None}]}))
    assert "device 0 held 0 bytes" in snapshot_text(path)
