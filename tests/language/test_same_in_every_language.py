"""The language changes words and nothing else: what is decided, counted and written is the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.language import CHINESE, ENGLISH, speak
from advisor.script.reader import read_script
from advisor.watch.measured import measured_in
from advisor.watch.recording import read_record
from tests.language.test_nothing_english_is_left import forget
from tests.watch.made_record import made_record


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    forget()
    yield
    speak(ENGLISH)
    forget()


SCRIPT = """\
source nowhere.sh
BS=${BS:-8}
if [ "$X" = 1 ]; then LR=1; else LR=2; fi
if [ -z "$GIVEN" ]; then N=4; fi
A[1]=$(hostname)
D=$(basename "$0")
python3 -m verl.trainer.main_ppo data.train_batch_size=$BS actor.lr=$LR trainer.nnodes=$N a.b=${A[1]} c.d=$D \\
  e.f=$(dirname $(dirname "$0"))/x g.h=$((BS*2)) i.j=$UNKNOWN --config-name gone $MORE
"""


def test_a_script_is_read_the_same(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(SCRIPT)
    read = {}
    for language in (ENGLISH, CHINESE):
        speak(language)
        launch = read_script(tmp_path / "run.sh").launches[0]
        read[language] = [(s.key, s.value, s.resolved, s.span, s.ending, bool(s.reason)) for s in launch.settings]
        assert launch.leaves_open
    assert read[ENGLISH] == read[CHINESE]
    values = {key: value for key, value, *_ in read[ENGLISH]}
    assert (values["trainer.nnodes"], values["data.train_batch_size"]) == ("4", "8")


def test_a_record_holds_no_language_and_is_shown_in_any(tmp_path: Path) -> None:
    speak(CHINESE)
    record = made_record(tmp_path / "record")
    assert b"host RAM" in (record / "samples.jsonl").read_bytes()
    assert [one.gauge.name for one in read_record(record).of_kind("host")] == ["host RAM"]
    chinese = measured_in(record)
    speak(ENGLISH)
    english = measured_in(record)
    assert {one.gauge for one in english.peaks} == {"host RAM", "GPU 0 A100"}
    assert {one.gauge for one in chinese.peaks} == {"主机内存", "GPU 0 A100"}
    assert [(one.phase, one.bytes) for one in english.peaks] == [(one.phase, one.bytes) for one in chinese.peaks]
    assert english.first is not None
    assert chinese.first is not None
    assert (english.first.steps, english.first.phase) == (chinese.first.steps, chinese.first.phase)
