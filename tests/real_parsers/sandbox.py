"""Runs a launch script in bash with stand-ins for every program, and says which commands it would have started."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
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


class Started(Struct, frozen=True):
    """One command that a script starts."""

    argv: tuple[str, ...]
    cwd: str
    environment: dict[str, str]


def started(script: Path, cwd: Path) -> list[Started]:
    """What `bash SCRIPT` in `cwd` starts, in its order; nothing of it runs. Raises RuntimeError where bash cannot."""
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
        }
        unshare = shutil.which("unshare")  # its own numbers of processes: nobody else's can be ended
        apart = [unshare, "--user", "--map-root-user", "--pid", "--fork"] if unshare is not None else []
        done = subprocess.run(
            [*apart, bash, str(script)], cwd=cwd, env=environment, capture_output=True, timeout=_LIMIT, check=False
        )
        if done.returncode != 0 and not record.exists():
            raise RuntimeError(done.stderr.decode("utf-8", "replace")[-300:])
        own = {*environment, "PWD", "OLDPWD", "SHLVL", "_"}
        lines = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
        return [Started(tuple(a), c, {k: v for k, v in e.items() if k not in own}) for a, c, e in lines]


def main() -> None:
    """Print what a script starts."""
    for command in started(Path(sys.argv[1]), Path(os.getcwd())):
        print(json.dumps([command.argv, command.environment]))


if __name__ == "__main__":
    main()
