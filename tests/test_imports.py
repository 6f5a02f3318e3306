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


def loaded(*arguments: str) -> set[str]:
    """Modules in memory after a command has run."""
    code = (
        "import sys, io, json\n"
        "from advisor.cli import main\n"
        "kept, sys.stdout = sys.stdout, io.TextIOWrapper(io.BytesIO(), 'utf-8')\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(json.dumps(sorted(sys.modules)), file=kept)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return set(json.loads(done.stdout))


LIGHT = ["--version", "--help", *(f"{name} --help" for name in COMMANDS), "completion bash"]


@pytest.mark.parametrize("words", LIGHT)
def test_version_help_and_completion_load_nothing_heavy(words):
    modules = loaded(*words.split())
    assert "advisor.cli" in modules
    assert modules & (HEAVY | {"advisor.session", "advisor.knowledge"}) == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ["diagnose", str(DEMO.script), "--log", str(DEMO.log)],
        ["estimate", str(DEMO.script)],
        ["fix", str(DEMO.script), "--log", str(DEMO.log), "--diff"],
        ["settings", str(DEMO.script)],
        ["set", str(DEMO.script), "trainer.nnodes=1", "-o", "-"],
        ["scan", str(DEMO.log)],
        ["machine"],
        ["explain", "rollout.memory_share"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_headless_commands_never_load_the_screen(arguments):
    modules = loaded(*arguments)
    assert "advisor.commands" in modules
    assert modules & SCREEN == set()
