"""A launch script is run with stand-ins for all programs: what it would start is told, and nothing starts."""

from __future__ import annotations

from pathlib import Path

from tests.real_parsers.__main__ import launches
from tests.real_parsers.sandbox import started


def test_the_words_of_a_training_arrive_as_bash_would_pass_them(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text('export A=b\nN=4\npkill -9 python\npython3 -m trainer.main n="$N" "two words" | tee log\n')
    (found,) = launches(started(script, tmp_path), r"(trainer\.main)")
    assert found.program == "trainer.main"
    assert found.argv == ("n=4", "two words")
    assert ("A", "b") in found.environment


def test_a_script_that_starts_nothing_is_told(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("echo done\n")
    assert started(script, tmp_path) == []
