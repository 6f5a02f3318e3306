# ruff: noqa: E501  (log lines as they are printed)
"""A client that never reached the other side has an address or a network at fault; one that lost it proves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, State, open_session

from .known import judge


def opened(folder: Path, log: str) -> State:
    (folder / "train.log").write_text(log)
    return open_session(SessionRequest(logs=(folder / "train.log",)))


@pytest.mark.parametrize(
    "line",
    [
        "torch.distributed.DistNetworkError: The client socket has timed out after 1800000ms while trying to connect to ({host}, {port}).",
        "RuntimeError: The client socket has timed out after 900s while trying to connect to ({host}, {port}).",
        "[E socket.cpp:957] [c10d] The client socket has failed to connect to any network address of ({host}, {port}).",
    ],
)  # fmt: skip
@pytest.mark.parametrize(("host", "port"), [("node-7.cluster", 23456), ("0.0.0.0", 51216)])
def test_a_client_that_never_connected_is_no_shortage(tmp_path: Path, line: str, host: str, port: int) -> None:
    state = opened(tmp_path, line.format(host=host, port=port) + "\n")
    assert (state.crash.verdict, state.crash.memory) == ("not_oom", "none")
    assert state.plan.steps[0].id == "check-address"
    (told,) = [one for one in state.diagnosis.remarks if f"{host}:{port}" in one]
    assert ("listens on" in told) == (host == "0.0.0.0")


@pytest.mark.parametrize(
    "line",
    [
        "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 3/4 clients joined.",
        "RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Connection reset by peer",
    ],
)  # fmt: skip
def test_a_peer_that_was_lost_later_leaves_it_open(line: str) -> None:
    assert judge(line + "\n").verdict == "unclear"


def test_a_warning_of_another_address_family_is_no_failure() -> None:
    warning = (
        "[W socket.cpp:601] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 97 - Address "
        "family not supported by protocol).\n"
    )
    assert judge(warning + "step:1 - loss:1.0\nstep:2 - loss:1.0\nstep:3 - loss:1.0\n").signature == ""
