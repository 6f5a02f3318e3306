"""Several logs: those of one run are told together; of several runs the newest crash is told, older ones are listed."""

import os
from pathlib import Path

import pytest

from advisor.crash.evidence import Crash
from advisor.crash.read import read_logs

from .known import SIGNATURES
from .test_runs import GPU, HOST, crashed, run


def told(folder: Path, logs: dict[str, str], ages: dict[str, float] | None = None) -> Crash:
    paths = []
    for name, text in logs.items():
        path = folder / name
        path.write_text(text)
        if ages is not None:
            os.utime(path, (1e9 - ages[name], 1e9 - ages[name]))
        paths.append(path)
    return read_logs(paths, SIGNATURES)


def stamped(day: str, text: str) -> str:
    return "".join(f"{day} 10:00:{i % 60:02d} {line}\n" for i, line in enumerate(text.splitlines()))


@pytest.mark.parametrize("order", [("a.log", "b.log"), ("b.log", "a.log")])
def test_of_two_drivers_logs_the_one_written_last_is_told(tmp_path, order):
    texts = {"a.log": crashed(GPU, driver=11), "b.log": crashed(HOST, driver=22)}
    crash = told(tmp_path, {name: texts[name] for name in order}, {"a.log": 9_000.0, "b.log": 60.0})
    assert (crash.memory, crash.evidence[0].file.rsplit("/", 1)[-1]) == ("host", "b.log")
    older = [one for one in crash.evidence if one.runs_ago]
    assert [(one.signature, one.file.rsplit("/", 1)[-1], one.runs_ago) for one in older] == [("torch-oom", "a.log", 1)]


def test_the_times_in_the_logs_count_for_more_than_those_of_the_files(tmp_path):
    texts = {"new.log": stamped("2026-03-02", crashed(HOST, 5)), "old.log": stamped("2026-03-01", crashed(GPU, 4))}
    assert told(tmp_path, texts, {"new.log": 900.0, "old.log": 1.0}).memory == "host"


def test_launches_on_two_days_are_two_runs_whoever_the_driver_is(tmp_path):
    launch = "+ python3 -m openrlhf.cli.train_ppo_ray --a 1\n"
    texts = {"1.log": stamped("2026-03-01", launch + GPU), "2.log": stamped("2026-03-02", launch + HOST)}
    assert told(tmp_path, texts).memory == "host"


def test_a_newer_run_that_only_began_does_not_hide_the_crash(tmp_path):
    texts = {"a.log": crashed(GPU, 11), "b.log": run(22, 32, steps=0)}
    assert told(tmp_path, texts, {"a.log": 900.0, "b.log": 1.0}).signature == "torch-oom"


def test_the_logs_of_one_run_are_told_together(tmp_path):
    """The driver's, and those of helpers that start nothing; and those of nodes that ran at the same time."""
    with_helpers = told(tmp_path, {"driver.log": run(11, 64, steps=2), "worker.err": GPU, "raylet.out": HOST})
    assert with_helpers.signature == "torch-oom"
    assert not [one for one in with_helpers.evidence if one.runs_ago]
    launch = "+ torchrun --nnodes 2 train.py\n"
    nodes = {"n0.log": stamped("2026-03-01", launch + "x\n" * 9 + GPU), "n1.log": stamped("2026-03-01", launch + "x")}
    assert not [one for one in told(tmp_path, nodes).evidence if one.runs_ago]


def test_settings_and_progress_are_those_of_the_newest_run(tmp_path):
    texts = {"a.log": crashed(GPU, 11, batch=64), "b.log": crashed(GPU, 22, batch=16)}
    crash = told(tmp_path, texts, {"a.log": 900.0, "b.log": 1.0})
    assert crash.settings["data.train_batch_size"] == "16"
