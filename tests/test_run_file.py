"""Run files: sizing a run that has no launch script."""

from __future__ import annotations

import io
import json
import subprocess
from contextlib import redirect_stderr, redirect_stdout

import pytest

from advisor.cli import main
from advisor.exits import Exit
from advisor.run_file import size_run_file
from advisor.session import SessionRequest
from advisor.units import GIB

RUN = """\
framework: easyr1
model: Qwen/Qwen2.5-7B-Instruct
gpus: 8xA100-40GB
host_ram: 760GB
settings:
  trainer.n_gpus_per_node: 8
  worker.rollout.gpu_memory_utilization: 0.5
"""


def written(tmp_path, text):
    file = tmp_path / "run.yaml"
    file.write_text(text)
    return file


def estimate(file, *arguments):
    """Exit code and both streams of the command, through the door in this process."""
    words, out, err = ["estimate", "--run", str(file), *arguments], io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def test_it_is_sized_like_a_script_with_these_settings(tmp_path):
    sizing = size_run_file(written(tmp_path, RUN), SessionRequest())
    assert (sizing.run.framework, sizing.run.model.name) == ("easyr1", "Qwen2.5-7B")
    assert sizing.run.number("rollout.memory_share") == 0.5
    assert len(sizing.machine.gpus) == 8
    assert sizing.machine.host.total_bytes == 760 * GIB
    assert sizing.ledger.peak("gpu").expected > 10 * GIB


def test_the_command_line_wins_over_the_file(tmp_path):
    sizing = size_run_file(written(tmp_path, RUN), SessionRequest(gpus="4xH100-80GB", model="Qwen/Qwen2.5-3B-Instruct"))
    assert len(sizing.machine.gpus) == 4
    assert sizing.run.model.parameters < 4e9


def test_cards_may_be_listed_with_their_bytes(tmp_path):
    listed = RUN.replace("8xA100-40GB", "[{name: Odd Card, total_bytes: 12345678912}]")
    assert size_run_file(written(tmp_path, listed), SessionRequest()).machine.gpu_bytes == 12345678912


def test_knobs_are_taken_in_our_own_words(tmp_path):
    sizing = size_run_file(written(tmp_path, RUN + "knobs: {actor.micro_batch: 3}\n"), SessionRequest())
    assert sizing.run.number("actor.micro_batch") == 3


def test_what_does_not_fit_ends_with_3(tmp_path):
    small = RUN.replace("8xA100-40GB", "8xT4-16GB")
    done = estimate(written(tmp_path, small), "--format", "json")
    assert done.returncode == Exit.DOES_NOT_FIT, done.stderr
    assert json.loads(done.stdout)["fits"] is False


def test_an_unknown_framework_is_said_and_not_sized(tmp_path):
    done = estimate(written(tmp_path, "framework: nobody\ngpus: 8xA100-40GB\n"), "--format", "json")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert told["fits"] is None
    assert told["memory"]["missing"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("framework: easyr1\n\tmodel: x\n", "line 2"),
        ("- a\n- b\n", "mapping"),
        ("model: x\n", "framework"),
        ("framework: easyr1\nsettigns: {}\n", "settigns"),
        ("framework: easyr1\nsettings: 3\n", "settings"),
        ("framework: easyr1\ngpus: many\n", "many"),
        ("framework: easyr1\nnodes: two\n", "nodes"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(text, named, tmp_path):
    done = estimate(written(tmp_path, text))
    assert (done.returncode, done.stdout) == (Exit.UNUSABLE, "")
    assert done.stderr.count("\n") == 1
    assert "run.yaml" in done.stderr
    assert named in done.stderr
