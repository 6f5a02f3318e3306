"""Says how the Python program that a launch runs takes a setting: by which of its options, and in which words."""

from __future__ import annotations

import ast

from advisor.knowledge.schema import Framework
from advisor.run.natives import native
from advisor.run.unknown_keys import has_key
from advisor.script.document import Document, EditRequest, ScriptError, refused
from advisor.script.files import load
from advisor.script.launch import Script
from advisor.script.python_file import parsed, read_python, takes_option
from advisor.script.python_options import decided_by, switches
from advisor.script.python_parser import spellings
from advisor.script.python_value import FileEnvironment
from advisor.script.reader import module_file

DEEPEST = 150
"""Nodes within nodes of a Python file that is asked; the deepest of a sample of upstream's has 40 (judgement)."""


def program_of(script: Script, index: int) -> Document | None:
    """The Python file that a launch of a shell script runs, where that is there and can be read."""
    launch = script.launches[index]
    file = module_file(launch, script.documents[0].path)
    try:
        document = read_python(load(file, "python")).document if file is not None else None
    except ScriptError:
        return None
    return document if document is not None and _depth(parsed(document.data)) <= DEEPEST else None


def _depth(tree: ast.AST) -> int:
    level, depth = [tree], 0
    while level:
        level, depth = [child for node in level for child in ast.iter_child_nodes(node)], depth + 1
    return depth


def as_its_program_spells(script: Script, index: int, key: str, framework: Framework | None = None) -> str:
    """A field of the program's options as the command gives it: `--ng` with `dest="generations"`, click's dashes; what
    the program hands on under the key from an option, or a variable ("NAME"), of its own."""
    program, there = program_of(script, index), script.launches[index].effective()
    if program is None:
        kebab = native(key).replace("_", "-")
        return key if framework is None or has_key(framework, native(key)) or not has_key(framework, kebab) else kebab
    tree, bare = parsed(program.data), native(key)
    if takes_option(program, key) is not True:
        key = _handed_on(program, bare) or key
    names = spellings(tree, key)
    return next((name for name in names if name in there), names[0] if names else key)


def _handed_on(program: Document, key: str) -> str:
    """What the command decides a setting of a Python file by, alone; "" where it does not."""
    try:
        reading = read_python(program)
    except ScriptError:
        return ""
    deciding = {one.key: decided_by(parsed(program.data), one.own) for one in reading.fields}
    ends = [name for own, name in deciding.items() if own == key or own.endswith(f".{key}")]
    if len(ends) != 1 or [*deciding.values()].count(ends[0]) > 1 or reading.rivals or "" in reading.changed:
        return ""
    own = isinstance(reading.environment, FileEnvironment) and reading.environment.sets(ends[0][1:])
    return "" if own else ends[0].removeprefix("$")


def as_switch(
    script: Script, index: int, keys: tuple[str, str], value: str, framework: Framework | None
) -> tuple[list[EditRequest], bool]:
    """A value as the options without one by which the launch's program takes it, and whether that is all there is to
    do. `keys`: as asked for, and as the program spells it. Raises EditRefused where no option says it."""
    program, there, key = program_of(script, index), script.launches[index].effective(), keys[1]
    found = (switches(parsed(program.data), one) for one in keys) if program is not None else iter(())
    options = next(filter(None, found), None)
    fact = framework.settings.get(native(key)) if framework is not None and framework.syntax == "argparse" else None
    if options is None and fact is not None and fact.type == "flag" and native(key) not in map(native, there):
        options = {"true": (f"--{key.lstrip('-')}",), "false": ()}
    if options is None or (program is None and value.lower() not in options):
        spelled = {f"no_{native(key).replace('-', '_')}"} if value.lower() == "true" else set()
        against = [one for one in there if native(one).replace("-", "_") in spelled and there[one].value == ()]
        return [EditRequest(one, None) for one in against], False
    told = options.get(value.lower())
    if told is None:
        raise refused("No option of {program} sets {key} to {value}: change its default.", key, value=value,
                      program=program.path.name if program is not None else "")  # fmt: skip
    if told and there.keys().isdisjoint(told):
        return [EditRequest(told[0], ())], True  # the last one counts
    others = {word for words in options.values() if words != told for word in words}
    return [EditRequest(one, None) for one in there if one in others], True
