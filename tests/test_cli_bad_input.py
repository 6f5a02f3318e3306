"""Files that cannot be used: one sentence naming the file, the contract's exit code, no output, nothing written."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from advisor import cli
from advisor.demo import demo_files
from advisor.exits import Exit

DEMO = demo_files()
GOOD_LOG = DEMO.log
SCRIPT_COMMANDS = {
    "diagnose": ["diagnose", "{file}"],
    "fix": ["fix", "{file}", "--log", str(GOOD_LOG)],
    "settings": ["settings", "{file}"],
    "set": ["set", "{file}", "trainer.nnodes=2"],
    "estimate": ["estimate", "{file}"],
}
LOG_COMMANDS = {"diagnose": ["diagnose", "--log", "{file}"], "scan": ["scan", "{file}"]}


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def advisor(*arguments: str, cwd: Path, apart: bool = False) -> Done:
    """Through the program's door in this process; `apart`: in one of its own, as users run it."""
    if apart:
        done = subprocess.run(
            [sys.executable, "-m", "advisor", *arguments],
            cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)
    out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(cwd)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = cli.main(arguments)
    finally:
        os.chdir(before)
    return Done(code, out.getvalue(), err.getvalue())


def refused(done: Done, name: str, code: int = Exit.UNUSABLE) -> None:
    """One sentence, on stderr, that names the file."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("rl-oom-advisor: ")
    assert done.stderr.count("\n") == 1
    assert name in done.stderr
    assert "fault of the program" not in done.stderr


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


SCRIPTS: dict[str, tuple[str, bytes | None]] = {
    "missing": ("gone.sh", None),
    "binary": ("run.sh", bytes(range(256)) * 40),
    "empty": ("run.sh", b""),
    "unbalanced quotes": (
        "run.sh",
        b"python3 -m verl.trainer.main_ppo data.train_batch_size='8 \\\n  trainer.nnodes=1\n",
    ),
    "yaml with tabs": ("conf.yaml", b"data:\n\ttrain_batch_size: 8\n"),
    "broken json": ("ds.json", b'{"train_batch_size": 8,}\n'),
    "broken python": ("exp.py", b"class Conf(:\n    n: int = 8\n"),
}


@pytest.mark.parametrize("command", SCRIPT_COMMANDS)
@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_script_that_cannot_be_read(kind, command, tmp_path):
    name, data = SCRIPTS[kind]
    if data is not None:
        (tmp_path / name).write_bytes(data)
    before = everything_in(tmp_path)
    words, apart = SCRIPT_COMMANDS[command], (command, kind) == ("diagnose", "binary")
    refused(advisor(*(word.format(file=name) for word in words), cwd=tmp_path, apart=apart), name)
    assert everything_in(tmp_path) == before


@pytest.mark.parametrize("kind", ["unbalanced quotes", "yaml with tabs", "broken json", "broken python"])
def test_beside_a_log_a_script_that_cannot_be_parsed_is_told_and_the_log_is_read(kind, tmp_path):
    name, data = SCRIPTS[kind]
    assert data is not None
    (tmp_path / name).write_bytes(data)
    (tmp_path / "train.log").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    done = advisor("diagnose", name, "--log", "train.log", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("GPU memory ran out")
    assert f"{name}, line" in done.stdout or f"{name}:" in done.stdout


@pytest.mark.parametrize("kind", ["unbalanced quotes", "yaml with tabs", "broken json", "broken python"])
def test_what_cannot_be_parsed_is_located_by_line(kind, tmp_path):
    name, data = SCRIPTS[kind]
    assert data is not None
    (tmp_path / name).write_bytes(data)
    assert any(mark in advisor("settings", name, cwd=tmp_path).stderr for mark in ("line ", f"{name}:"))


@pytest.mark.parametrize("command", SCRIPT_COMMANDS)
def test_a_folder_is_no_script(command, tmp_path):
    (tmp_path / "scripts").mkdir()
    refused(advisor(*(word.format(file="scripts") for word in SCRIPT_COMMANDS[command]), cwd=tmp_path), "scripts")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("arguments", [["diagnose", "secret"], ["scan", "secret"], ["settings", "secret"]])
def test_a_file_that_may_not_be_read(arguments, tmp_path):
    (tmp_path / "secret").write_text("python3 -m verl.trainer.main_ppo\n")
    (tmp_path / "secret").chmod(0)
    refused(advisor(*arguments, cwd=tmp_path), "secret")


LOGS: dict[str, bytes | None] = {
    "missing": None,
    "binary": b"\x00\x01\x02" * 9000,
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(999),
}


@pytest.mark.parametrize("command", LOG_COMMANDS)
@pytest.mark.parametrize("kind", LOGS)
def test_a_log_that_cannot_be_read(kind, command, tmp_path):
    data = LOGS[kind]
    if data is not None:
        (tmp_path / "train.log").write_bytes(data)
    words, apart = LOG_COMMANDS[command], (command, kind) == ("diagnose", "binary")
    refused(advisor(*(word.format(file="train.log") for word in words), cwd=tmp_path, apart=apart), "train.log")


@pytest.mark.parametrize("command", LOG_COMMANDS)
@pytest.mark.parametrize("text", ["", "step 1 loss 0.4\nstep 2 loss 0.3\nall done\n"], ids=["empty", "no crash"])
def test_a_log_without_a_crash_has_nothing_to_diagnose(command, text, tmp_path):
    (tmp_path / "train.log").write_text(text)
    done = advisor(*(word.format(file="train.log") for word in LOG_COMMANDS[command]), "--format", "json", cwd=tmp_path)
    assert done.returncode in ({Exit.NOTHING_FOUND} if text else {Exit.NOTHING_FOUND, Exit.UNUSABLE}), done.stderr
    assert done.stderr.count("\n") == 1
    assert "train.log" in done.stderr
    if done.returncode == Exit.NOTHING_FOUND:
        assert json.loads(done.stdout)["crash"]["verdict"] == "unclear"


def test_a_log_without_a_crash_changes_no_script(tmp_path):
    (tmp_path / "train.log").write_text("all done\n")
    (tmp_path / "run.sh").write_bytes(b"python3 -m verl.trainer.main_ppo data.train_batch_size=8\n")
    before = everything_in(tmp_path)
    done = advisor("fix", "run.sh", "--log", "train.log", cwd=tmp_path)
    assert done.returncode == Exit.NOTHING_FOUND, done.stderr
    assert everything_in(tmp_path) == before


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--gpus", "many"], "--gpus"),
        (["--host-ram", "lots"], "--host-ram"),
        (["--shm", "-3"], "--shm"),
        (["--nodes", "0"], "--nodes"),
        (["--lib", "deepspeed"], "deepspeed"),
        (["--machine", "gone.json"], "gone.json"),
        (["--machine", "broken.json"], "broken.json"),
        (["--answer", "no-such-question=yes"], "no-such-question"),
        (["--launch", "7"], "7"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_a_flag_that_cannot_be_understood_is_named(flags, named, tmp_path):
    (tmp_path / "broken.json").write_text("{")
    refused(advisor("fix", str(DEMO.script), "--log", str(GOOD_LOG), "--diff", *flags, cwd=tmp_path), named)


def test_jsonl_goes_on_at_a_script_that_cannot_be_read(tmp_path):
    (tmp_path / "good.sh").write_bytes(b"python3 -m verl.trainer.main_ppo data.train_batch_size=8\n")
    (tmp_path / "bad.sh").write_bytes(bytes(range(256)) * 40)
    done = advisor("settings", "bad.sh", "gone.sh", "good.sh", "--format", "jsonl", cwd=tmp_path)
    assert done.returncode == 0
    bad, gone, good = (json.loads(line) for line in done.stdout.splitlines())
    assert "bad.sh" in bad["error"]
    assert "gone.sh" in gone["error"]
    assert [s["value"] for s in good["launches"][0]["settings"]] == ["8"]


def test_set_refuses_what_is_there_unless_forced(tmp_path):
    original = b"python3 -m verl.trainer.main_ppo data.train_batch_size=8\n"
    (tmp_path / "run.sh").write_bytes(original)
    assert advisor("set", "run.sh", "data.train_batch_size=4", cwd=tmp_path).returncode == 0
    refused(advisor("set", "run.sh", "data.train_batch_size=2", cwd=tmp_path), "run.fits.sh")
    refused(advisor("set", "run.sh", "data.train_batch_size=2", "-o", "run.sh", cwd=tmp_path), "run.sh")
    assert (tmp_path / "run.sh").read_bytes() == original
    assert b"data.train_batch_size=4" in (tmp_path / "run.fits.sh").read_bytes()
    assert advisor("set", "run.sh", "data.train_batch_size=2", "--force", cwd=tmp_path).returncode == 0
    assert b"data.train_batch_size=2" in (tmp_path / "run.fits.sh").read_bytes()


def test_fix_writes_script_and_report_once(tmp_path):
    done = advisor("fix", str(DEMO.script), "--log", str(GOOD_LOG), "-o", "fits.sh", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(everything_in(tmp_path)) == {"fits.sh", "fits.md"}
    before = everything_in(tmp_path)
    refused(advisor("fix", str(DEMO.script), "--log", str(GOOD_LOG), "-o", "fits.sh", cwd=tmp_path), "fits.sh")
    assert everything_in(tmp_path) == before


def test_a_name_with_control_characters_is_said_without_them(tmp_path):
    done = advisor("diagnose", "\x1b[31mred\x07.sh", cwd=tmp_path)
    assert done.returncode == Exit.UNUSABLE
    assert not set("\x1b\x07") & set(done.stderr)
