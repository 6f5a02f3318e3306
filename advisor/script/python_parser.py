"""Says why a Python program would not take an option where it stands in the command: by its own argparse parser."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from msgspec import Struct

from advisor.hostile import clean_line
from advisor.language import listed, say
from advisor.regex import regex
from advisor.script.python_calls import called

_REST = ("...", "A...")
"""`nargs` of an argument that takes all that is left as it is (argparse.REMAINDER, PARSER)."""
_GATHERS = ("append", "append_const", "extend", "count")
"""Actions that add to what was given before."""
_NUMBERS = {
    "int": regex(r"\s*[-+]?\d+(?:_\d+)*\s*\Z"),
    "float": regex(r"\s*[-+]?(?:(?:[\d_]+\.?[\d_]*|\.\d+)(?:[eE][-+]?\d+)?|inf|nan)\s*\Z"),
}


class _ParserOption(Struct, frozen=True):
    names: tuple[str, ...]
    """Without dashes, as fields are spelled; its `dest` among them."""
    owner: str
    """The subcommand that has it; "": the program itself."""
    call: ast.Call

    def told(self, name: str) -> ast.expr | None:
        return next((keyword.value for keyword in self.call.keywords if keyword.arg == name), None)


def refuses(tree: ast.Module, key: str, value: str | tuple[str, ...], words: Sequence[str | None]) -> str:
    """Why a program stops at an option, or gathers it, in a sentence; "" where nothing speaks against it.

    `words`: those of the command once the option stands in it.
    """
    name, owners = key.lstrip("-").replace("-", "_"), _owners(tree)
    options = [*_options(tree, owners)]
    named = [option for option in options if name in option.names]
    mine = [at for at, word in enumerate(words) if word is not None and _bare(word) == name]
    chosen = {owner: words.index(owner) for owner in owners.values() if owner and owner in words}
    sub = min(chosen, key=lambda owner: chosen[owner], default="")
    if not named:
        return ""
    told = {"key": clean_line(key), "command": clean_line(sub)}
    here = [option for option in named if option.owner == sub] or [option for option in named if not option.owner]
    if not here:
        return say("{key} is an option of {other}, not of {command}.", other=clean_line(named[0].owner), **told)
    if sub and not here[0].owner and any(at > chosen[sub] for at in mine):
        return say("{key} is an option of the program itself: set it before {command}.", **told)
    if any(
        _text(option.told("nargs")) in _REST or _is_rest(option.told("nargs")) for option in options
    ) and _behind_a_word(words, mine):
        return say("The program takes what stands behind its own options as it is: set {key} before it.", **told)
    return _refuses_value(here[-1], told["key"], value, len(mine))


def _refuses_value(option: _ParserOption, key: str, value: str | tuple[str, ...], times: int) -> str:
    if _text(option.told("action")) in _GATHERS and times > 1:
        return say("{key} adds to what was given before: change it by hand.", key=key)
    texts = (value,) if isinstance(value, str) else value
    choices = option.told("choices")
    if isinstance(choices, (ast.List, ast.Tuple, ast.Set)) and all(
        isinstance(one, ast.Constant) for one in choices.elts
    ):
        known = [str(one.value) for one in choices.elts if isinstance(one, ast.Constant)]
        if not set(texts) <= {*known}:
            return say("{key} takes one of {choices}.", key=key, choices=listed(clean_line(one, 40) for one in known))
    kind = option.told("type")
    shape = _NUMBERS.get(kind.id) if isinstance(kind, ast.Name) else None
    wrong = [text for text in texts if shape is not None and not shape.match(text)]
    if wrong and isinstance(kind, ast.Name):
        told = {"key": key, "kind": kind.id, "value": clean_line(wrong[0], 40)}
        return say("{key} takes a number of type {kind}, which {value} is not.", **told)
    count = option.told("nargs")
    if isinstance(count, ast.Constant) and isinstance(count.value, int) and count.value != len(texts):
        return say("{key} takes {count} values.", key=key, count=count.value)
    return ""


def names_of(tree: ast.Module) -> frozenset[str]:
    """Every name by which an option of the file's argparse parsers goes, and each start of one that no other has."""
    return frozenset(name for option in _options(tree, _owners(tree)) for name in option.names)


def _owners(tree: ast.Module) -> dict[str, str]:
    """Name of a parser or a group → the subcommand it belongs to."""
    owners: dict[str, str] = {}
    sets = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]
    for node in sorted(sets, key=lambda node: node.lineno):
        call = node.value
        assert isinstance(call, ast.Call)
        parent = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        for target in node.targets:
            if called(call) == "add_parser" and call.args:
                owners[ast.unparse(target)] = _text(call.args[0])
            elif called(call) in ("add_argument_group", "add_mutually_exclusive_group"):
                owners[ast.unparse(target)] = owners.get(parent, "")
    return owners


def _options(tree: ast.Module, owners: dict[str, str]) -> Iterator[_ParserOption]:
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and called(node) == "add_argument"):
        words = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        dest = [_text(keyword.value) for keyword in call.keywords if keyword.arg == "dest"]
        owner = owners.get(ast.unparse(call.func.value), "") if isinstance(call.func, ast.Attribute) else ""
        yield _ParserOption(tuple(_bare(word) for word in (*words, *dest) if word), owner, call)


def _bare(word: str) -> str:
    return word.partition("=")[0].lstrip("-").replace("-", "_")


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_rest(node: ast.expr | None) -> bool:
    return node is not None and ast.unparse(node).rpartition(".")[2] in ("REMAINDER", "PARSER")


def _behind_a_word(words: Sequence[str | None], mine: Sequence[int]) -> bool:
    """Whether an option stands behind an argument that is neither an option nor, as far as can be seen, its value."""
    loose = [
        at
        for at, word in enumerate(words)
        if at and word is not None and not word.startswith("-") and not (words[at - 1] or "").startswith("-")
        and not word.endswith(".py")
    ]  # fmt: skip
    program = next((at for at, word in enumerate(words) if word is not None and word.endswith(".py")), 0)
    return any(program < other < at for at in mine for other in loose)
