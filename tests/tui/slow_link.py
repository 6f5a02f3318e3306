"""An ssh ProxyCommand for a slow line: `python slow_link.py PORT SECONDS` passes every byte on so much later."""

from __future__ import annotations

import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable


def late(read: Callable[[], bytes], write: Callable[[bytes], object], delay: float) -> threading.Thread:
    """Pass on what `read` gives, each piece `delay` seconds after it came, until it gives b""."""
    pieces: queue.Queue[tuple[float, bytes]] = queue.Queue()

    def take() -> None:
        while data := read():
            pieces.put((time.monotonic() + delay, data))
        pieces.put((time.monotonic() + delay, b""))

    def give() -> None:
        while True:
            due, data = pieces.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if not data:
                return
            write(data)

    threading.Thread(target=take, daemon=True).start()
    giver = threading.Thread(target=give, daemon=True)
    giver.start()
    return giver


def main(port: int, delay: float) -> None:
    """Both ways between our own standard streams and the port of this machine."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        late(lambda: os.read(0, 65536), line.sendall, delay)
        late(lambda: line.recv(65536), lambda data: os.write(1, data), delay).join()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
