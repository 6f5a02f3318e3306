"""How many launch scripts are read in a second, and how long the worst five megabytes take.

`SCRIPTS=folder` reads every shell script below a folder; without it, the scripts of the documented runs.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from advisor.script.document import ScriptError
from advisor.script.reader import read_script

RUNS = Path(__file__).parent.parent / "runs"
LEAST = 500
"""Scripts a second."""
SIZE = 5_000_000
LAUNCH = b"python3 -m verl.trainer.main_ppo a.b=1 \\\n  c.d=2\n"
UNITS = {
    "launches": LAUNCH,
    "comments": b"# a comment\n",
    "assignments": b"V=value\n",
    "conditions": b'if [ -z "$A" ]; then B=1; else B=2; fi\n',
    "commands": b'echo "something" "$HOME"\n',
}


def _scripts() -> list[Path]:
    folder = Path(os.environ.get("SCRIPTS") or RUNS)
    found = sorted(path for path in folder.rglob("*.sh") if path.is_file() and path.stat().st_size < 200_000)
    return found * (1 + 500 // max(len(found), 1))


def _seconds_of_the_grammar(scripts: list[Path]) -> float:
    """What a public parser takes for the same files, disk included: the floor that values are worked out on."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    parser = Parser(Language(tree_sitter_bash.language()))
    started = time.perf_counter()
    for path in scripts:
        parser.parse(path.read_bytes())
    return time.perf_counter() - started


@pytest.mark.benchmark
def test_launch_scripts_are_read_at_five_hundred_a_second() -> None:
    scripts = _scripts()
    assert scripts
    read_script(scripts[0])
    started = time.perf_counter()
    launches = 0
    for path in scripts:
        try:
            launches += len(read_script(path).launches)
        except ScriptError:
            continue
    rate = len(scripts) / (time.perf_counter() - started)
    grammar = len(scripts) / _seconds_of_the_grammar(scripts)
    print(f"\n{len(scripts)} scripts, {launches} launches: {rate:.0f} scripts/s")
    print(f"tree-sitter-bash alone, which knows no values: {grammar:.0f} scripts/s")
    assert rate >= LEAST


@pytest.mark.benchmark
@pytest.mark.parametrize("name", sorted(UNITS))
def test_five_megabytes_are_answered_within_two_seconds(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_bytes(b"#!/bin/bash\n" + UNITS[name] * (SIZE // len(UNITS[name])) + LAUNCH)
    started = time.perf_counter()
    script = read_script(path)
    seconds = time.perf_counter() - started
    print(f"\n{name}: {seconds:.2f} s, {len(script.launches)} launches, {' '.join(script.notes)}")
    assert seconds < 2
