"""Reads what a Python file starts a training with: the words of a command (`subprocess.run([…])`), hydra's overrides
(`compose(overrides=[…])`), and what a launcher hands to a function of the file (`notebook_launcher(train, (8, 4))`).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from advisor.regex import regex
from advisor.script.launcher import find_launcher
from advisor.script.python_calls import once_set
from advisor.script.python_tree import called, calls, every, is_one, parameters, text
from advisor.script.python_value import NameValues

_STARTS = regex(
    r"(?:subprocess\.|sp\.)?(?:run|call|check_call|check_output|Popen)\Z|os\.(?:system|popen|exec\w+|spawn\w+)\Z"
)
_SHOWS = ("print", "join", "info", "debug")
_OVERRIDE = regex(r"\+{0,2}([\w./@-]+)=(.*)\Z")
_CHANGES_WHOLE = ("update", "merge", "merge_with", "merge_with_dotlist", "setattr", "set", "unsafe_merge", "modify")
"""Functions and methods that change any key of a config of OmegaConf's."""
_BEFORE = {"notebook_launcher": 0, "debug_launcher": 0, "Process": 0, "spawn": 1, "start_processes": 1}
"""Launchers (accelerate, torch.multiprocessing) that call a function with `args`, and how many come before those."""


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


def overrides(tree: ast.Module, source: bytes) -> Iterator[tuple[str, ast.expr]]:
    """Key and value of the overrides that the file's one `compose` hands to hydra: the value is a part of its text."""
    given = [each.value for call in calls(tree, "compose") for each in call.keywords if each.arg == "overrides"]
    words = _told_once(tree, given[0]) if len(given) == len(calls(tree, "compose")) == 1 else None
    entries = (one for one in every(tree, ast.AST) if isinstance(one, (ast.Attribute, ast.Subscript)))
    if calls(tree, *_CHANGES_WHOLE) or not all(isinstance(one.ctx, ast.Load) for one in entries):
        return
    out: dict[str, ast.expr] = {}
    for word in words.elts if isinstance(words, ast.List) else ():
        found = _OVERRIDE.match(text(word.values[0] if isinstance(word, ast.JoinedStr) and word.values else word))
        if found is None:
            return
        out.pop(found[1], None)
        if ast.get_source_segment(source.decode(), word) in (f'"{found[0]}"', f"'{found[0]}'"):
            out[found[1]] = value = ast.copy_location(ast.Constant(found[2]), word)
            value.end_col_offset = (word.end_col_offset or 0) - 1
            value.col_offset = value.end_col_offset - len(found[2].encode())
    yield from out.items()


def _told_once(tree: ast.Module, node: ast.expr, shown_only: Collection[int] = ()) -> ast.expr | None:
    """What an expression stands for, where nothing else can change it: itself, or what its name is set to."""
    if not isinstance(node, ast.Name):
        return node
    read = (one for one in every(tree, ast.Name) if one.id == node.id and isinstance(one.ctx, ast.Load))
    alone = all(one is node or id(one) in shown_only for one in read)
    return dict(once_set(tree)).get(node.id) if alone else None


def handed_on(tree: ast.Module, values: NameValues) -> Iterator[tuple[str, ast.expr]]:
    """Parameter, or key that it is read by, and value of what a launcher hands to the one function that it calls."""
    functions = {node.name: node for node in every(tree, ast.FunctionDef)}
    names = [node.id for node in every(tree, ast.Name)]
    for call in calls(tree):
        named = {each.arg or "": each.value for each in call.keywords}
        taking = [functions.get(ast.unparse(one)) for one in (*call.args[:1], *named.values())]
        function, before = next(filter(None, taking), None), _BEFORE.get(called(call))
        once = values.loop(call) is None and values.is_certain(call)
        if function is None or names.count(function.name) != 1 or not once:
            continue
        given = [*filter(None, (named.get("train_loop_config"), named.get("args"))), *call.args[1:2]]
        made, taken = _told_once(tree, given[0]) if given else None, parameters(function)
        if before is not None and isinstance(made, (ast.Tuple, ast.List)):
            changed = {one.id for one in every(function, ast.Name) if not isinstance(one.ctx, ast.Load)}
            starred = any(isinstance(one, ast.Starred) for one in made.elts)
            pairs = zip(taken[before:], () if starred else made.elts, strict=False)
            yield from ((name, value) for name, value in pairs if name not in changed)
        elif "train_loop_config" in named and isinstance(made, ast.Dict) and taken:
            read = _entries_read(function, taken[0])
            yield from ((text(key), one) for key, one in zip(made.keys, made.values, strict=True) if text(key) in read)


def _entries_read(function: ast.FunctionDef, name: str) -> set[str]:
    """The entries of a parameter that a function reads by their keys; none where it does anything else to it."""
    inside = (one for one in every(function, ast.Subscript) if isinstance(one.ctx, ast.Load))
    keys = [one.slice for one in inside if is_one(one.value, [name])]
    got = ((call.args[0], call.func) for call in calls(function, "get") if call.args)
    keys += [key for key, asked in got if isinstance(asked, ast.Attribute) and is_one(asked.value, [name])]
    names = [one for one in every(function, ast.Name) if one.id == name]
    return {*map(text, keys)} - {""} if len(keys) == len(names) else set()
