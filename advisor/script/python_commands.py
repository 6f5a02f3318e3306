"""Reads what a Python file starts a training with: the words of a command (`subprocess.run([…])`), hydra's overrides
(`compose(overrides=[…])`), and what a launcher hands to a function of the file (`notebook_launcher(train, (8, 4))`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from advisor.regex import regex
from advisor.script.launcher import find_launcher
from advisor.script.python_calls import once_set
from advisor.script.python_names import NameValues
from advisor.script.python_tree import called, calls, every, parameters, text

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
    once = dict(once_set(tree))
    lists = [call.args[0] for call in starting if call.args]
    shown_only = {id(arg) for call in (*starting, *calls(tree, *_SHOWS)) for arg in call.args}
    read = (node for node in every(tree, ast.Name) if isinstance(node.ctx, ast.Load))
    changed = {node.id for node in read if id(node) not in shown_only}
    made = [once.get(one.id) if isinstance(one, ast.Name) and one.id not in changed else one for one in lists]
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
    composed, changing = calls(tree, "compose"), calls(tree, *_CHANGES_WHOLE)
    given = [each.value for call in composed for each in call.keywords if each.arg == "overrides"]
    words = _read_once(tree, given[0]) if len(composed) == len(given) == 1 else None
    out: dict[str, ast.expr] = {}
    computed = not isinstance(words, ast.List) or changing or any(map(_is_set, every(tree, ast.AST)))
    for word in words.elts if isinstance(words, ast.List) and not computed else ():
        first = word.values[0] if isinstance(word, ast.JoinedStr) and word.values else word
        found = _OVERRIDE.match(text(first))
        if found is None:
            return
        out.pop(found[1], None)
        if ast.get_source_segment(source.decode(), word) in (f'"{found[0]}"', f"'{found[0]}'"):
            value = ast.Constant(found[2])
            ast.copy_location(value, word).col_offset = word.col_offset + 1 + len(found[0].encode()) - len(found[2].encode())
            value.end_col_offset = (word.end_col_offset or 0) - 1
            out[found[1]] = value
    yield from out.items()


def _is_set(node: ast.AST) -> bool:
    """Whether a node sets an entry or an attribute of something."""
    return isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)


def _read_once(tree: ast.Module, node: ast.expr) -> ast.expr | None:
    """What an expression stands for, where nothing else can have changed it: itself, or what its name is set to."""
    if not isinstance(node, ast.Name):
        return node
    read = [one for one in every(tree, ast.Name) if one.id == node.id and isinstance(one.ctx, ast.Load)]
    return dict(once_set(tree)).get(node.id) if len(read) == 1 else None


def handed_on(tree: ast.Module, values: NameValues) -> Iterator[tuple[str, ast.expr]]:
    """Parameter, or key that it is read by, and value of what a launcher hands to the one function that it calls."""
    functions = {node.name: node for node in every(tree, ast.FunctionDef)}
    names = [node.id for node in every(tree, ast.Name)]
    for call in calls(tree):
        named = {each.arg or "": each.value for each in call.keywords}
        taken = [one.id for one in (*call.args[:1], *named.values()) if isinstance(one, ast.Name) and one.id in functions]
        if len(taken) != 1 or names.count(taken[0]) != 1 or values.loop(call) is not None or not values.is_certain(call):
            continue
        function, before = functions[taken[0]], _BEFORE.get(called(call))
        stored = {node.id for node in every(function, ast.Name) if not isinstance(node.ctx, ast.Load)}
        given = named.get("train_loop_config") or named.get("args") or (*call.args[1:2], None)[0]
        made = _read_once(tree, given) if given is not None else None
        if before is not None and isinstance(made, (ast.Tuple, ast.List)):
            starred = any(isinstance(one, ast.Starred) for one in made.elts)
            pairs = zip(parameters(function)[before:], () if starred else made.elts, strict=False)
            yield from ((name, value) for name, value in pairs if name not in stored)
        elif "train_loop_config" in named and isinstance(made, ast.Dict) and parameters(function)[:1]:
            read = _entries_read(function, parameters(function)[0])
            yield from ((text(key), one) for key, one in zip(made.keys, made.values, strict=True) if text(key) in read)


def _entries_read(function: ast.FunctionDef, name: str) -> set[str]:
    """The entries of a parameter that a function reads by their keys; none where it does anything else to it."""
    found, others = set[str](), [one for one in every(function, ast.Name) if one.id == name]
    for node in ast.walk(function):
        match node:
            case ast.Subscript(value=ast.Name(id=one), slice=key, ctx=ast.Load()) if one == name and text(key):
                found.add(text(key))
                others.remove(node.value)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=one) as held, attr="get"), args=[key, *_]):
                if one == name and text(key):
                    found.add(text(key))
                    others.remove(held)
    return found if not others else set()
