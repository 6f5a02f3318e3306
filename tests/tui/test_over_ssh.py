"""The installed program over a real ssh connection to this machine, every byte 150 ms late each way."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_in_tmux import COMMAND, PROGRAM, RUNS, VERDICT, Terminal

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
TOOLS = (SSHD, shutil.which("ssh"), shutil.which("ssh-keygen"), shutil.which("tmux"))
pytestmark = [
    pytest.mark.skipif(not all(tool and os.access(tool, os.X_OK) for tool in TOOLS), reason="no ssh server or tmux"),
    pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not installed beside this Python"),
]
ONE_WAY = 0.15


@pytest.fixture
def ssh(tmp_path: Path) -> Iterator[str]:
    """The command that logs into this machine over the slow line; a server of its own behind it."""
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / key)], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/user.pub\n"
        f"PidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd's own folder, which its package makes when the service starts
    server = subprocess.Popen([SSHD, "-D", "-f", str(tmp_path / "sshd_config")], stderr=subprocess.DEVNULL)
    relay = f"{sys.executable} {Path(__file__).parent}/slow_link.py {port} {ONE_WAY}"
    options = (
        f"-i {tmp_path}/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "
        f"-o IdentitiesOnly=yes -o BatchMode=yes -o 'ProxyCommand={relay}'"
    )
    command = f"ssh -tt -F /dev/null {options} {getpass.getuser()}@localhost"
    for _ in range(50):
        if server.poll() is not None:
            pytest.skip("an ssh server cannot be started here")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    yield command
    server.terminate()
    server.wait(10)


def test_the_plan_is_reached_over_a_slow_line(ssh: str, tmp_path: Path) -> None:
    shutil.copytree(RUNS / "easyr1", tmp_path / "case", ignore=shutil.ignore_patterns("expected*"))
    terminal = Terminal(tmp_path, "xterm-256color")
    remote = tmp_path / "remote.sh"
    own = f"export XDG_STATE_HOME={tmp_path}/state XDG_CONFIG_HOME={tmp_path} LANG=C.UTF-8"
    remote.write_text(f"{own}\ncd {tmp_path}/case && env -u NO_COLOR {COMMAND}\necho ended $?\n")
    try:
        terminal.start(f'{ssh} "sh {remote}"')
        terminal.until(VERDICT)
        terminal.keys(*["Enter"] * 6)  # typed ahead, as one does on such a line
        assert "[x] worker.actor.offload" in terminal.until("space toggle")
        begun = time.monotonic()
        terminal.keys("Space")
        terminal.until("2 changes on")
        assert time.monotonic() - begun > 2 * ONE_WAY  # the line is as slow as it is meant to be
        terminal.keys("q")
        terminal.until("ended 0")
    finally:
        terminal.tmux("kill-server")
