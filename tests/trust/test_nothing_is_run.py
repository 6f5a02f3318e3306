"""Nothing that the user gave is run, nobody is called: every command over every sample, with the interpreter watched.

A hook of the interpreter reports each program that is started, each connection, each piece of code that is compiled or
imported from the folder of the samples, and each class that a pickle asks for.
"""

import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

RUNS = Path(__file__).parents[1] / "runs"
WATCHED = """
import json, os, sys
folder, found = os.path.realpath(sys.argv[1]), []
def hook(event, details):
    if event in ("subprocess.Popen", "os.posix_spawn"):  # from 3.13 on the one uses the other
        words = [os.path.basename(os.fsdecode(details[0])), *map(os.fsdecode, details[1][1:])]
        found.append(["started", words])
    elif event.startswith(("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "urllib.")):
        found.append([event, [str(details[1:])]])
    elif event in ("os.system", "os.exec", "os.spawn", "os.fork", "pty.spawn", "pickle.find_class"):
        found.append([event, [str(details)]])
    elif event in ("exec", "compile"):
        name = getattr(details[0], "co_filename", None) if event == "exec" else details[1]
        name = os.fsdecode(name or "<>")
        if not name.startswith("<") and os.path.realpath(name).startswith(folder):
            found.append([event, [name]])
sys.addaudithook(hook)
os.chdir(folder)
sys.stdout = open(os.devnull, "w")
sys.stderr = open(os.devnull, "w")
from advisor.cli import main
codes = {}
for words in json.load(open(sys.argv[2])):
    codes[" ".join(words)] = main(words)
json.dump([codes, found], open(sys.argv[3], "w"))
"""
MARK = "touch run_by_the_advisor"
EVIL_SHELL = f"""\
#!/bin/bash
{MARK}
X=$({MARK}) ; Y=`{MARK}` ; cat <({MARK}) ; eval "{MARK}" ; trap '{MARK}' EXIT ; . ./evil_env.sh
PROMPT_COMMAND='{MARK}' A=${{B:-$({MARK})}} python3 -m verl.trainer.main_ppo data.train_batch_size=$((4+8)) \\
    actor_rollout_ref.rollout.n='${{oc.env:HOME}}' trainer.name="$({MARK})" {{a,b}}$({MARK})
"""
EVIL_PYTHON = (
    "import os\nos.system('touch run_by_the_advisor')\n@dataclass\nclass PPOExpConfig:\n    total_num_nodes: int = 4\n"
)
EVIL_YAML = "model: !!python/object/apply:os.system ['touch run_by_the_advisor']\nper_device_train_batch_size: 8\n"


class _Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        import os

        return os.system, (MARK,)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    for run in RUNS.iterdir():
        shutil.copytree(run, folder / run.name, ignore=shutil.ignore_patterns("expected*"))
    hostile = folder / "hostile"
    hostile.mkdir()
    for name in ("run.py", "advisor.py", "yaml.py", "sitecustomize.py"):
        (hostile / name).write_text(EVIL_PYTHON)
    (hostile / "run.sh").write_text(EVIL_SHELL)
    (hostile / "evil_env.sh").write_text(f"{MARK}\nexport HF_HOME=/x\n")
    (hostile / "run.yaml").write_text(EVIL_YAML)
    (hostile / "snapshot.pickle").write_bytes(pickle.dumps({"segments": [_Evil()], "device_traces": [_Evil()]}))
    (hostile / "config.json").write_text('{"architectures": ["x"], "auto_map": {"AutoModel": "run.PPOExpConfig"}}')
    return folder


def commands(samples: Path) -> Iterator[list[str]]:
    for folder in sorted(samples.iterdir()):
        logs = sorted(str(log.relative_to(samples)) for log in (*folder.glob("*.log"), *folder.glob("*.pickle")))
        for log in logs:
            yield ["scan", log]
        scripts = [file for pattern in ("*.sh", "*.py", "*.yaml") for file in sorted(folder.glob(pattern))]
        for script in (str(script.relative_to(samples)) for script in scripts):
            with_log = [word for log in logs[:1] for word in ("--log", log)]
            yield ["settings", script, "--format", "json"]
            if folder.name == "hostile":  # `fix` opens the same session of the others
                yield ["diagnose", script, *with_log, "--gpus", "4xA100-80GB", "--format", "json"]
                yield ["estimate", script, "--gpus", "4xA100-80GB", "--model", str(Path(script).parent)]
            yield ["fix", script, *with_log, "--gpus", "4xA100-80GB", "-o", f"{script}.fits.sh"]
            yield ["set", script, "data.train_batch_size=4", "-o", f"{script}.set.sh"]


def test_no_command_runs_what_it_reads_or_calls_anybody(samples: Path, tmp_path: Path) -> None:
    asked, told = tmp_path / "asked.json", tmp_path / "told.json"
    plain = [["diagnose", "--demo"], ["machine"], ["explain", "easyr1"]]
    asked.write_text(json.dumps([*commands(samples), *plain, [*plain[0], "--lang", "zh"]]))
    words = [sys.executable, "-c", WATCHED, str(samples), str(asked), str(told)]
    subprocess.run(words, check=True, timeout=170, cwd=samples.parent)
    codes, found = json.loads(told.read_text())
    assert sum(code == 0 for code in codes.values()) > 25
    assert set(codes.values()) <= {0, 2, 3, 4}, {name: code for name, code in codes.items() if code == 1}
    started = [event for event in found if event != ["started", ["bash", "--noprofile", "--norc", "-n"]]]
    assert started == []  # `bash -n` reads the patched script on standard input and runs nothing
    assert not list(samples.rglob("run_by_the_advisor"))
