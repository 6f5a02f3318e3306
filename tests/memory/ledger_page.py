"""Constants in docs/ledger.md, from the code: `python -m tests.memory.ledger_page`; `--write` puts them there."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs" / "ledger.md"
CONSTANTS = ROOT / "advisor" / "memory" / "constants.py"
HEAD = """\
## Constants

Written by `python -m tests.memory.ledger_page --write` from advisor/memory/constants.py; a test holds this file to it.
Sources named "torch", "deepspeed", "vllm", "verl", "OpenRLHF" are those projects' own code; "judgement" says that no
source gives the number, and names what it rests on.
"""
_TITLE = re.compile(r"^# --- (.*?) -*$")


def text() -> str:
    """The section, from its heading on."""
    out, title = [HEAD], ""
    for heading, names, why in _described():
        if heading != title:
            title = heading
            out += [f"### {heading[0].upper()}{heading[1:]}\n", "| constants | what, and from where |", "| --- | --- |"]
        out.append(f"| {names} | {why} |")
        if heading != title:
            out.append("")
    return re.sub(r"\n(### )", r"\n\n\1", "\n".join(out)).replace("\n\n\n", "\n\n") + "\n"


def _described() -> Iterator[tuple[str, str, str]]:
    """(title of the block, names with their values, the words below them)"""
    source = CONSTANTS.read_text(encoding="utf-8")
    titles = {number: found[1] for number, line in enumerate(source.splitlines(), 1) if (found := _TITLE.match(line))}
    waiting: list[str] = []
    heading = ""
    for node in ast.parse(source).body:
        above = (
            titles[max(number for number in titles if number < node.lineno)]
            if titles and node.lineno > min(titles)
            else ""
        )
        if above != heading and waiting:
            yield heading, "<br>".join(waiting), ""
            waiting = []
        heading = above
        if isinstance(node, ast.Assign):
            waiting += _named(node)
        elif heading and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and waiting:
            yield heading, "<br>".join(waiting), " ".join(str(node.value.value).split()).replace("|", "\\|")
            waiting = []
    if waiting:
        yield heading, "<br>".join(waiting), ""


def _named(node: ast.Assign) -> list[str]:
    target = node.targets[0]
    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        pairs = zip(target.elts, node.value.elts, strict=True)
        return [f"`{ast.unparse(name)}` {ast.unparse(value)}" for name, value in pairs]
    return [f"`{ast.unparse(target)}` {ast.unparse(node.value)}"]


def main(arguments: list[str]) -> None:
    """Print the section, or put it into the file."""
    if "--write" in arguments:
        before = FILE.read_text(encoding="utf-8").partition("## Constants\n")[0]
        FILE.write_text(before + text(), encoding="utf-8")
    else:
        print(text(), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
