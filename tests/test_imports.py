"""What a command loads. Static contracts cannot see late imports that happen too early; sys.modules can."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from advisor.commands import COMMANDS
from advisor.demo import demo_files

HEAVY = {"textual", "rich", "tree_sitter", "pynvml", "psutil", "msgspec", "yaml", "packaging", "ahocorasick_rs"}
SCREEN = {"textual", "rich", "advisor.tui"}
DEMO = demo_files()


def loaded(*commands: list[str]) -> dict[str, set[str]]:
    """First word of a command → modules in memory after it has run; a process for all of them."""
    code = (
        "import sys, io, json\n"
        "from advisor.cli import main\n"
        "kept, sys.stdout, after = sys.stdout, io.TextIOWrapper(io.BytesIO(), 'utf-8'), {}\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    try:\n        main(words)\n    except SystemExit:\n        pass\n"
        "    after[words[0]] = sorted(sys.modules)\n"
        "print(json.dumps(after), file=kept)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(commands)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return {name: set(modules) for name, modules in json.loads(done.stdout).items()}


LIGHT = ["--version", "--help", *(f"{name} --help" for name in COMMANDS), "completion bash"]


@pytest.mark.parametrize("words", LIGHT)
def test_version_help_and_completion_load_nothing_heavy(words):
    (modules,) = loaded(words.split()).values()
    assert "advisor.cli" in modules
    assert modules & (HEAVY | {"advisor.session", "advisor.knowledge"}) == set()


HEADLESS = (
    ["set", str(DEMO.script), "trainer.nnodes=1", "-o", "-"],
    ["settings", str(DEMO.script)],
    ["scan", str(DEMO.log)],
    ["machine"],
    ["explain", "rollout.memory_share"],
    ["estimate", str(DEMO.script)],
    ["fix", str(DEMO.script), "--log", str(DEMO.log), "--diff"],
    ["diagnose", str(DEMO.script), "--log", str(DEMO.log)],
)


def test_headless_commands_never_load_the_screen():
    """One after the other in one process: what the first of them loads is there for the others."""
    after = loaded(*HEADLESS)
    assert "advisor.commands" in after["set"]
    assert {name: modules & SCREEN for name, modules in after.items() if modules & SCREEN} == {}
