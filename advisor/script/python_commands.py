"""Reads the words of the command with which a Python file starts a training: `subprocess.run([…])`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from advisor.regex import regex
from advisor.script.launcher import find_launcher
from advisor.script.python_calls import once_set
from advisor.script.python_tree import calls, every

_STARTS = regex(
    r"(?:subprocess\.|sp\.)?(?:run|call|check_call|check_output|Popen)\Z|os\.(?:system|popen|exec\w+|spawn\w+)\Z"
)
_SHOWS = ("print", "join", "info", "debug")


def command_settings(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Option and value of the one training command that the file starts as a list of words."""
    starting = [call for call in calls(tree) if _STARTS.match(ast.unparse(call.func))]
    lists = [call.args[0] for call in starting if call.args]
    shown_only = {id(arg) for call in (*starting, *calls(tree, *_SHOWS)) for arg in call.args}
    made = [_told_once(tree, one, shown_only) for one in lists]
    commands = [one.elts for one in made if isinstance(one, ast.List)]
    texts = [[str(word.value) if isinstance(word, ast.Constant) else "" for word in words] for words in commands]
    found = [find_launcher(words) for words in texts]
    training = [n for n, one in enumerate(found) if one is not None and one.trains]
    if len(commands) != len(lists) or len(training) != 1 or (own := found[training[0]]) is None:
        return
    words, shown = commands[training[0]], texts[training[0]]
    if any(isinstance(word, ast.Starred) for word in words):
        return
    for at in range(own.arguments, len(words) - 1):
        if shown[at].startswith("--") and "=" not in shown[at] and not shown[at + 1].startswith("--"):
            yield shown[at], words[at + 1]


def _told_once(tree: ast.Module, node: ast.expr, shown_only: Collection[int] = ()) -> ast.expr | None:
    """What an expression stands for, where nothing else can change it: itself, or what its name is set to."""
    if not isinstance(node, ast.Name):
        return node
    read = (one for one in every(tree, ast.Name) if one.id == node.id and isinstance(one.ctx, ast.Load))
    alone = all(one is node or id(one) in shown_only for one in read)
    return dict(once_set(tree)).get(node.id) if alone else None
