"""Runs a launch script in bash with stand-ins for every program, and says which commands it would have started."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

RECORDED = ("python3", "python", "torchrun", "accelerate", "deepspeed", "ray", "swift", "megatron", "trl", "uv", "srun")
"""Programs that start a training; everything else that is not harmless does nothing."""
HARMLESS = (
    *("cat", "echo", "dirname", "basename", "date", "tr", "sed", "awk", "grep", "seq", "wc", "head", "tail", "cut"),
    *("realpath", "readlink", "expr", "sort", "uniq", "printf", "true", "false", "env", "paste", "xargs", "ls", "id"),
)
_RECORDER = """#!{python} -S
import json, os, sys
if sys.argv[1:] == ["-c", "import torch_npu"]:
    sys.exit(1)
with open({record!r}, "a") as out:
    told = dict(os.environ)
    out.write(json.dumps([[os.path.basename(sys.argv[0]), *sys.argv[1:]], os.getcwd(), told]) + "\\n")
"""
_LIMIT = 60
_TRIES = 12


class Started(Struct, frozen=True):
    """One command that a script starts."""

    argv: tuple[str, ...]
    cwd: str
    environment: dict[str, str]


_WANTED = re.compile(
    r"(?:: line \d+: |^)(\w+)(?:: unbound variable|: (?:must |please )?set | is not set)", re.IGNORECASE | re.MULTILINE
)
"""A variable without which a script does not go on."""
_ARGUMENTS = re.compile(r"usage:", re.IGNORECASE)
_SOURCE = """() {
    local file="$1" rest="${1#/}"; shift
    while [ ! -e "$file" ] && [ "$rest" != "${rest#*/}" ]; do rest="${rest#*/}"; file="$CHECKOUT/$rest"; done
    builtin source "$file" "$@"
}"""
"""Files of the image that upstream's scripts run in (/root/slime/scripts/models/...) are those of the checkout."""


def started(script: Path, cwd: Path) -> list[Started]:
    """What `bash SCRIPT` in `cwd` starts, in its order; nothing of it runs. Raises RuntimeError where bash cannot.

    A script that asks for variables or arguments is given some, as its user would.
    """
    given: dict[str, str] = {}
    words: tuple[str, ...] = ()
    for _ in range(_TRIES):
        found, said = _started(script, cwd, given, words)
        wanted, usage = _WANTED.search(said), _ARGUMENTS.search(said)
        if wanted is not None and wanted[1] not in given:
            counts = "NUM" in wanted[1] or wanted[1].startswith("N")
            given[wanted[1]] = "8" if counts else f"/data/{wanted[1].lower()}"
        elif usage is not None and not words:
            words = ("8", "/data/out")
        elif said and not found:
            raise RuntimeError(said)
        else:
            return found
    raise RuntimeError(f"{script.name} asks for more than {_TRIES} variables")


def _started(script: Path, cwd: Path, given: Mapping[str, str], words: Sequence[str]) -> tuple[list[Started], str]:
    """What it starts, and what it said where it failed."""
    with tempfile.TemporaryDirectory() as folder:
        tools, record = Path(folder, "bin"), Path(folder, "record")
        tools.mkdir()
        for name in HARMLESS:
            if (found := shutil.which(name)) is not None:
                (tools / name).symlink_to(found)
        for name in RECORDED:
            (tools / name).write_text(_RECORDER.format(python=sys.executable, record=str(record)))
            (tools / name).chmod(0o755)
        bash = str(shutil.which("bash"))
        for name, real in (("tee", str(shutil.which("cat"))), ("bash", bash), ("sh", bash)):
            (tools / name).symlink_to(real)
        environment = {
            "PATH": str(tools),
            "HOME": "/home/someone",
            "USER": "someone",
            "BASH_FUNC_command_not_found_handle%%": "() { return 0; }",
            "BASH_FUNC_sleep%%": "() { return 0; }",
            "BASH_FUNC_kill%%": "() { return 0; }",
            "BASH_FUNC_ulimit%%": "() { return 0; }",
            "BASH_FUNC_source%%": _SOURCE,
            "CHECKOUT": str(cwd),
        }
        unshare = shutil.which("unshare")  # its own numbers of processes: nobody else's can be ended
        apart = [unshare, "--user", "--map-root-user", "--pid", "--fork"] if unshare is not None else []
        command = [*apart, bash, str(script), *words]
        told = {**environment, **given}
        done = subprocess.run(command, cwd=cwd, env=told, capture_output=True, timeout=_LIMIT, check=False)
        said = (done.stdout + done.stderr).decode("utf-8", "replace")[-600:] if done.returncode != 0 else ""
        own = {*environment, "PWD", "OLDPWD", "SHLVL", "_"}
        lines = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
        return [Started(tuple(a), c, {k: v for k, v in e.items() if k not in own}) for a, c, e in lines], said


def main() -> None:
    """Print what a script starts."""
    for command in started(Path(sys.argv[1]), Path(os.getcwd())):
        print(json.dumps([command.argv, command.environment]))


if __name__ == "__main__":
    main()
