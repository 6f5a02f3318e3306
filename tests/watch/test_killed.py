"""Runs that really die, of a cgroup limit, of an address-space limit, with torch's words: diagnosed from the record."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.watch.memory_group import memory_group
from tests.watch.test_without_terminal import HERE, finished

EATER = "x = []\nwhile True: x.append(bytearray(b'x' * (16 << 20)))"
TORCH = """
import sys
print("Update policy:  10%|#         | 1/10 [00:01<00:09]", flush=True)
sys.exit('''Traceback (most recent call last):
  File "/opt/verl/verl/workers/actor/dp_actor.py", line 300, in update_policy
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 39.38 GiB of \
which 1.10 GiB is free. Including non-PyTorch memory, this process has 38.27 GiB memory in use.''')
"""


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A memory control group of 200 MiB of our own, of version 1 or 2, where this machine lets us make one."""
    with ExitStack() as kept:
        try:
            group = kept.enter_context(memory_group(200 << 20))
        except OSError:
            pytest.skip("control groups with a limit cannot be made here")
        yield group.folder


def test_a_run_killed_by_a_real_limit_is_diagnosed_with_the_kernels_own_counter_or_words(tmp_path, small_group):
    inner = f"echo 'Update policy:  10%|#'; {sys.executable} -c \"{EATER}\""
    argv = ["bash", "-c", f'echo $$ > {small_group}/cgroup.procs && exec "$@"', "-"]
    argv += [
        sys.executable,
        "-m",
        "advisor",
        "watch",
        "-o",
        str(tmp_path / "r"),
        "--",
        "bash",
        "-c",
        f"{inner}; exit $?",
    ]
    done = subprocess.run(argv, env=HERE, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 137
    assert "Host RAM ran out during the actor update" in done.stderr
    assert "kernel.log" in done.stderr
    kernel = (tmp_path / "r/kernel.log").read_text()
    assert "oom_kill 1" in kernel or "Killed process" in kernel
    assert '"oom_kills":1' in (tmp_path / "r/samples.jsonl").read_text()


LATE = """
import sys, time
import advisor.watch.recorder as recorder
from advisor.cli import main
made = recorder._sampler
recorder._sampler = lambda *given: (time.sleep(1), made(*given))[1]
sys.exit(main(sys.argv[1:]))
"""


def test_a_kill_before_the_watcher_has_loaded_is_known_all_the_same(tmp_path, small_group):
    argv = ["bash", "-c", f'echo $$ > {small_group}/cgroup.procs && exec "$@"', "-", sys.executable, "-c", LATE]
    argv += ["watch", "-o", str(tmp_path / "r"), "--", "bash", "-c", f'{sys.executable} -c "{EATER}"; exit $?']
    done = subprocess.run(argv, env=HERE, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 137
    assert '"oom_kills":1' in (tmp_path / "r/samples.jsonl").read_text()
    assert "Host RAM ran out" in done.stderr


def test_a_run_without_address_space_is_diagnosed_from_its_own_words(tmp_path):
    code, _, err = finished(tmp_path, "bash", "-c", f'ulimit -v 400000; exec {sys.executable} -c "{EATER}"')
    assert code == 1
    assert "Host RAM ran out" in err


def test_a_run_that_prints_torchs_message_is_diagnosed_with_its_phase(tmp_path):
    (tmp_path / "train.py").write_text(TORCH)
    code, _, err = finished(tmp_path, sys.executable, "train.py")
    assert code == 1
    assert "GPU memory ran out during the actor update" in err
    assert "What the watcher measured" in err


def test_a_run_that_fails_otherwise_is_not_called_a_shortage(tmp_path):
    code, _, err = finished(tmp_path, sys.executable, "-c", "raise KeyError('x')")
    assert code == 1
    assert "ran out" not in err
    assert "exit code 1; this program ends the same way" in err
    assert "--record opens it" in err
