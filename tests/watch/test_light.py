"""What a watcher weighs: modules, memory, processor time."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.watch.test_without_terminal import HERE

CODE = """
import json, resource, sys
from advisor.cli import main
main(["watch", "-o", sys.argv[1], "--", "sleep", "2"])
used = resource.getrusage(resource.RUSAGE_SELF)
peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])  # ru_maxrss is the parent's at first
print(json.dumps([sorted(sys.modules), peak, used.ru_utime + used.ru_stime]))
"""
HEAVY = {
    "textual",
    "rich",
    "yaml",
    "psutil",
    "tree_sitter",
    "packaging",
    "advisor.session",
}


def test_a_watcher_loads_no_screen_and_no_knowledge_and_takes_little(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "r")],
        env=HERE, capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    modules, memory, seconds = json.loads(done.stdout.splitlines()[-1])
    assert HEAVY & set(modules) == set()
    assert memory < 50_000  # KiB
    assert seconds < 1.0  # a fifth of it on a machine at peace; a loop that does not wait takes twice that


EARLY = """
import sys
import advisor.commands.watch, advisor.watch.launcher, advisor.watch.pty_relay, advisor.watch.spawn
print(sorted({"msgspec", "advisor.watch.recorder", "advisor.watch.sampler", "advisor.redact"} & set(sys.modules)))
"""


def test_a_command_starts_before_anything_large_is_loaded():
    done = subprocess.run([sys.executable, "-c", EARLY], env=HERE, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


CALM = """
import resource, sys
from advisor.cli import main
main(["watch", "-o", sys.argv[1], "--", "sleep", "4"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw)
"""


def test_a_watcher_wakes_ten_times_a_second_and_no_oftener(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CALM, str(tmp_path / "r")],
        env=HERE, capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    assert int(done.stdout.split()[-1]) < 4 * 10 + 60  # and some at start and end; two wakes a reading would be 80 more
