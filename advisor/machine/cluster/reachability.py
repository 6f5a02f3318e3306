"""Checks over the network whether a cluster or its nodes accept connections, before Ray is asked or beside it."""

from __future__ import annotations

import errno
import select
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from advisor.language import mark, say

PROBE_TIMEOUT_S = 0.3
"""Seconds that a check of all nodes may take."""
_CONNECT_TIMEOUT_S = 3.0
"""Seconds within which the network has to reach the address that the user gave."""
_CLOSED = mark("nobody listens at {address}; `ray status` on one of the cluster's nodes shows the address")
_UNREACHED = mark("{address} cannot be reached from here within {seconds:.0f} s: {why}")
TOKEN = mark(
    "the cluster at {address} wants another token than it got, or any: set RAY_AUTH_MODE=token, with the cluster's own "
    "token in ~/.ray/auth_token or where RAY_AUTH_TOKEN_PATH says"
)


def wants_token(said: str) -> bool:
    """Whether Ray's words are about the cluster's token."""
    return "unauthenticated" in said.lower() or "authentication token" in said.lower()


def unreachable_nodes(addresses: Mapping[str, tuple[Any, Any]]) -> set[str]:
    """Nodes on whose address and port nobody listens any more: their raylet is dead, which Ray itself notices late. All
    are tried at once, within `PROBE_TIMEOUT_S`. A node that does not answer is not counted: a network may hide it."""
    tried: dict[int, tuple[str, socket.socket]] = {}
    poll = select.poll()
    for node, (address, port) in addresses.items():
        if not isinstance(address, str) or not isinstance(port, int) or not port:
            continue
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        one = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        tried[one.fileno()] = node, one
        with suppress(OSError):  # a refusal at once is found by the poll, too
            one.connect_ex((address, port))
        poll.register(one, select.POLLOUT)
    closed: set[str] = set()
    until = time.monotonic() + PROBE_TIMEOUT_S
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


def why_unreachable(address: str) -> str:
    """Why "10.0.0.1:6379" or "ray://head:10001" leads nowhere; "" where somebody listens, or it is no such address."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit() or int(port) >= 1 << 16:
        return ""
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
    except ConnectionRefusedError:
        return say(_CLOSED, address=address)
    except (OSError, UnicodeError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        return say(_UNREACHED, address=address, seconds=_CONNECT_TIMEOUT_S, why=why)
    return ""
