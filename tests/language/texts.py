"""The texts that a translation must have: read from the source of a room, and from the knowledge."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import yaml

from advisor.folders import knowledge_folder
from advisor.knowledge.translation import PROSE, kind_of, prose

ADVISOR = Path(__file__).parents[2] / "advisor"
SAYERS = {
    "say": (0,),
    "mark": (0,),
    "refused": (0,),
    "say_count": (1,),
    "Binding": (2,),
    "quantity": (0,),
    "in_bytes": (0,),
    "assumed": (0,),
    "called": (0,),
    "of_each": (1,),
    "knob": (1,),
}
"""Name of a function → which of its arguments are texts. The words of a key are said where the key is shown."""
_SPEAKS = ("from advisor.language import", "amount import", "refused(")
"""What is in the source of a file that says something."""
NAMED = {"tooltip"}
"""Arguments by name that are texts too."""


def room_of(file: Path) -> str:
    """The catalogue of a source file: its room, or "program" for what stands beside the rooms."""
    parts = file.relative_to(ADVISOR).parts
    return parts[0] if len(parts) > 1 else "program"


def program_texts() -> dict[str, dict[str, str]]:
    """Room → text → where it stands."""
    found: dict[str, dict[str, str]] = {}
    for file in sorted(ADVISOR.rglob("*.py")):
        source = file.read_text("utf-8")
        speaks = any(word in source for word in _SPEAKS) or file.name == "language.py"
        for text, line in said_in(source) if speaks else ():
            found.setdefault(room_of(file), {}).setdefault(text, f"{file.relative_to(ADVISOR.parent)}:{line}")
    return found


def said_in(source: str) -> Iterator[tuple[str, int]]:
    """(text, line) of every literal that is said or marked."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("called", "knob"):
            name = node.func.attr
        texts = [node.args[at] for at in SAYERS.get(name, ()) if at < len(node.args)]
        for text in (*texts, *(one.value for one in node.keywords if name in SAYERS and one.arg in NAMED)):
            yield from _literals(text)
        if name == "Sayings" or (
            isinstance(node.func, ast.Subscript)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "Sayings"
        ):
            for argument in node.args:
                if isinstance(argument, ast.Dict):
                    for value in argument.values:
                        yield from _literals(value)


def _literals(node: ast.expr) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from [(node.value, node.lineno)] if node.value else []
    elif isinstance(node, ast.IfExp):
        yield from _literals(node.body)
        yield from _literals(node.orelse)
    elif isinstance(node, (ast.JoinedStr, ast.BinOp)) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format"
    ):
        raise ValueError(
            f"line {node.lineno}: a text to be said is no f-string or sum: its fields are filled afterwards"
        )


def knowledge_texts() -> dict[str, dict[str, str]]:
    """Kind of file → text → the file it stands in."""
    found: dict[str, dict[str, str]] = {}
    folder = knowledge_folder()
    for file in sorted(folder.rglob("*.yaml")):
        kind = kind_of(file)
        if PROSE.get(kind):
            data = yaml.load(file.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            for text in prose(data, kind):
                found.setdefault(kind, {}).setdefault(text, str(file.relative_to(folder.parent)))
    return found
