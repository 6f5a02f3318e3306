"""The records of a folder, each with how it ended, whatever state it is in."""

from __future__ import annotations

import json
import os

import pytest

from advisor.cli import main
from advisor.watch.listing import add_told, list_records


def put(folder, *lines, tail="", attempt=None, **about):
    folder.mkdir()
    if attempt is not None:
        (folder / "attempt.json").write_text(json.dumps(attempt))
    head = {"v": 1, "began": 1.7e9, "command": ["bash", "run.sh"], **about}
    text = "".join(json.dumps(line) + "\n" for line in (head, *lines))
    (folder / "samples.jsonl").write_text(text + tail)
    return folder


@pytest.mark.parametrize(
    ("lines", "about", "words"),
    [
        ([{"t": 9, "end": {"code": 0}}], {}, "ended well"),
        ([{"t": 9, "end": {"code": 3}}], {}, "exit code 3"),
        ([{"t": 9, "end": {"signal": 9}}], {}, "killed by SIGKILL"),
        ([{"t": 9, "end": {"code": 1, "sent": 15}}], {}, "stopped by SIGTERM"),
        ([{"t": 9, "counter": "step", "count": 4}], {}, "how it ended is not known: the watcher ended first"),
        ([{"t": 9, "counter": "step", "count": 4}], {"watcher": os.getpid()}, "runs"),
        (
            [],
            {"watcher": os.getpid(), "born": 1},
            "how it ended is not known: the watcher ended first",
        ),  # another's now
    ],
)
def test_a_record_says_how_its_run_ended(tmp_path, lines, about, words):
    put(tmp_path / "r", *lines, **about)
    assert [record.ended for record in list_records(tmp_path)] == [words]


def test_what_was_found_of_a_record_is_added_to_it_and_later_words_keep_the_earlier(tmp_path):
    record = put(tmp_path / "r", {"t": 9, "counter": "step", "count": 4}, {"t": 9, "end": {"code": 1}})
    add_told(record, verdict="oom", memory="host", phase="checkpoint")
    add_told(record, memory="gpu")
    (found,) = list_records(tmp_path)
    assert (found.ended, found.step) == ("GPU memory ran out: saving a checkpoint", 4)


def test_a_cut_line_a_long_middle_and_a_folder_that_is_no_record_cost_nothing(tmp_path):
    middle = [[at, 0, at] for at in range(60_000)]
    put(tmp_path / "r", *middle, {"t": 60_010, "end": {"code": 1}}, tail='{"t": 7')
    (tmp_path / "other").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/samples.jsonl").write_text("no\n")
    (found,) = list_records(tmp_path)
    assert (found.ended, found.length) == ("exit code 1", 6001.0)


def test_the_command_lists_attempts_below_each_other(tmp_path, capsys):
    put(tmp_path / "first", {"t": 36_000, "end": {"code": 1}})
    retried = {"attempt": 2, "before": str(tmp_path / "first"), "changes": ["a 1 → 2"], "from_step": 20}
    put(tmp_path / "second", {"t": 9, "end": {"code": 0}}, attempt=retried)
    assert main(["records", str(tmp_path)]) == 0
    first, second, changed = capsys.readouterr().out.splitlines()
    assert first.startswith("first ")
    assert first.endswith("1:00:00  exit code 1")
    assert second.endswith("ended well")
    assert changed == "  attempt 2, after first: a 1 → 2"
    assert main(["records", "--format", "json", str(tmp_path)]) == 0
    listed = json.loads(capsys.readouterr().out)["records"][1]
    assert (listed["after"], listed["from_step"]) == ("first", 20)


def test_a_folder_without_records_is_told_with_the_code_for_nothing_found(tmp_path, capsys):
    assert main(["records", str(tmp_path)]) == 4
    assert "no record" in capsys.readouterr().err


@pytest.mark.parametrize("began", ["1e30", "-1e30", "NaN", "Infinity", '"x"', "null", "[]", "1e15"])
def test_a_record_of_no_time_is_no_record(began, tmp_path, capsys):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "samples.jsonl").write_text(f'{{"v":1,"began":{began},"command":["x"],"watcher":1e99}}\n')
    assert main(["records", str(tmp_path)]) == 4
    assert "fault of the program" not in capsys.readouterr().err


@pytest.mark.parametrize("line", ['{"t":1e300}', '{"t":1,"counter":"step","count":Infinity}', '{"counter":[],"t":NaN}'])
def test_a_record_tells_no_more_than_watch_writes(line, tmp_path, capsys):
    (tmp_path / "r").mkdir()
    end = '{"t":1,"end":{"code":"\\u001b[2Jevil","signal":[],"sent":true,"unknown":1,"more":"\\u001b[2J"}}'
    (tmp_path / "r" / "samples.jsonl").write_text(f'{{"v":1,"began":5,"command":["x"]}}\n{line}\n{end}\n')
    assert main(["records", str(tmp_path)]) == 0
    assert main(["records", str(tmp_path), "--format", "json"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "u001b" not in out
    assert len(out) < 1000
