"""Reads the config that the Python program of a launch gets by a call of its own: hydra's, or OmegaConf's."""

from __future__ import annotations

import ast

from msgspec.structs import replace

from advisor.run.natives import native
from advisor.run.program_options import program_of
from advisor.script.config_files import groups, read_config
from advisor.script.document import Document, ScriptError, Setting, effective
from advisor.script.files import Files, load
from advisor.script.interpolation import interpolated
from advisor.script.launch import Launch, Script
from advisor.script.python_calls import once_set
from advisor.script.python_file import parsed
from advisor.script.python_tree import calls, every, text


def call_of_config(program: Document) -> ast.Call | None:
    """The call by which a program gets its config, of which each word of its command may change a key: `hydra.main`, or
    `OmegaConf.load` beside `from_cli`."""
    tree = parsed(program.data)
    decorators = (d for n in every(tree, ast.FunctionDef) for d in n.decorator_list)
    loads = calls(tree, "load") if calls(tree, "from_cli") else []
    return next(
        (d for d in decorators if isinstance(d, ast.Call) and ast.unparse(d.func).endswith("hydra.main")),
        loads[0] if len(loads) == 1 else None,
    )


def own_config(program: Document, launch: Launch) -> Document | None:
    """The config that a program gets: what its command names, else its own call names."""
    call, given = call_of_config(program), launch.effective()
    if call is None:
        return None
    told = {k.arg: k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)}
    once = dict(once_set(parsed(program.data)))
    parts = (once.get(one.id, one) if isinstance(one, ast.Name) else one for one in call.args)
    loaded = "/".join(text(one) for part in parts for one in every(part, ast.Constant) if text(one))
    named = next((given[key].text for key in ("--config-name", "-cn") if key in given), "")
    name = named or told.get("config_name") or loaded
    if not name or not isinstance(name, str):
        return None
    folder = program.path.parent / str(told.get("config_path") or "")
    try:
        return load(folder / (name if name.endswith((".yaml", ".yml")) else f"{name}.yaml"), "yaml")
    except ScriptError:
        return None


def composed(script: Script, index: int) -> list[Setting] | None:
    """The config that the program of a launch gets by a call of its own, under the words of the command, with all that
    is interpolated; None where it has none that is there and well-formed."""
    launch, program = script.launches[index], program_of(script, index)
    config = own_config(program, launch) if program is not None else None
    given = [replace(one, key=native(one.key)) for one in launch.settings if one.origin == "command"]
    try:
        read = read_config(Files([config]), 0, composed=True, chosen=groups(given)) if config is not None else None
    except ScriptError:
        return None
    if read is None or read.notes:
        return None
    return interpolated(effective([*read.settings, *given]), launch.environment)


def values_of(script: Script, index: int) -> dict[str, str]:
    """Every setting of a launch, with those of that config."""
    every_one = (*(composed(script, index) or ()), *script.launches[index].settings)
    return {one.key: one.text for one in every_one if one.effective}


def own_keys(script: Script, index: int) -> frozenset[str] | None:
    """The keys of that config, with its tables."""
    keys = [one.key for one in composed(script, index) or ()]
    return frozenset(key.rsplit(".", depth)[0] for key in keys for depth in range(key.count(".") + 1)) or None
