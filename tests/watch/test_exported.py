"""A record opened later: the report without a screen, the table and the picture."""

from __future__ import annotations

import json

import pytest

from advisor.cli import main
from tests.watch.made_record import made_record


@pytest.fixture
def record(tmp_path):
    return made_record(tmp_path / "record", steps=12)


def test_a_record_is_reported_without_a_screen(record, capsys):
    assert main(["diagnose", "--record", str(record)]) == 0
    said = capsys.readouterr().out
    assert "What the watcher measured" in said
    assert "host RAM grows by" in said


def test_the_json_of_a_diagnosis_holds_what_was_recorded(record, capsys):
    assert main(["diagnose", "--record", str(record), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["record"]["steps"] == 11
    assert told["record"]["peaks"]


def test_table_and_picture_are_written_and_never_over_something(record, tmp_path, capsys):
    table, picture = tmp_path / "memory.csv", tmp_path / "memory.svg"
    assert main(["--record", str(record), "--csv", str(table), "--svg", str(picture)]) == 0
    assert table.read_text().startswith("seconds,phase,kind,name,pid,bytes")
    assert picture.read_text().startswith("<svg")
    assert main(["--record", str(record), "--csv", str(table)]) == 2
    assert "it is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["diagnose", "--record", "{}"], ["--record", "{}", "--svg", "-"], ["--svg", "-"]]
)
def test_what_is_no_record_is_refused_in_a_sentence(arguments, tmp_path, capsys):
    assert main([word.format(tmp_path) for word in arguments]) == 2
    assert "record" in capsys.readouterr().err


def test_the_help_of_watch_can_be_read(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["watch", "--help"])
    assert ended.value.code == 0
    assert "--attach PID" in capsys.readouterr().out


@pytest.mark.parametrize("level", ["95%", "0.95", "95"])
def test_a_level_is_a_share_however_it_is_written(level):
    from advisor.commands import parser_of

    assert parser_of("watch").parse_args(["--alert", level, "--", "true"]).alert == pytest.approx(0.95)


@pytest.mark.parametrize("level", ["0", "much", "150%", "-1"])
def test_a_level_that_is_no_share_is_refused(level, capsys):
    assert main(["watch", f"--alert={level}", "--", "true"]) == 2
    assert "share" in capsys.readouterr().err
