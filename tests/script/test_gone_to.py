"""A relative file is the one in the folder that the script went to, as bash finds it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from advisor.script.reader import read_script

LAUNCH = "python3 -m verl.trainer.main_ppo data.train_batch_size=$MB\n"


def batch_size(folder: Path, script: str) -> tuple[str | None, str]:
    """The value that is read, and the file that decides it."""
    (folder / "run.sh").write_text(script)
    (setting,) = read_script(folder / "run.sh").launches[0].settings
    place = "" if setting.span is None else os.path.relpath(setting.span.path, folder)
    return str(setting.value) if setting.resolved else None, place


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """env.sh says 4, sub/env.sh 8 and sub/deep/env.sh 16; train.sh runs the launch wherever it lies."""
    for name, value in ((".", 4), ("sub", 8), ("sub/deep", 16)):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "env.sh").write_text(f"MB={value}\n")
        (tmp_path / name / "train.sh").write_text(LAUNCH.replace("$MB", str(value)))
    return tmp_path


@pytest.mark.parametrize(
    ("there", "value", "place"),
    [
        ("cd sub; source ./env.sh", "8", "sub/env.sh"),
        ("cd sub && . ./env.sh", "8", "sub/env.sh"),
        ("cd sub; cd deep; source ./env.sh", "16", "sub/deep/env.sh"),
        ("cd sub/deep; cd ..; source ./env.sh", "8", "sub/env.sh"),
        ("cd sub; cd -; source ./env.sh", "4", "env.sh"),
        ("pushd sub >/dev/null; source ./env.sh; popd", "8", "sub/env.sh"),
        ("pushd sub; pushd deep; popd; source ./env.sh", "8", "sub/env.sh"),
        ("pushd sub; popd; source ./env.sh", "4", "env.sh"),
        ("(cd sub); source ./env.sh", "4", "env.sh"),
    ],
)
def test_a_sourced_file_is_the_one_in_the_folder_gone_to(there: str, value: str, place: str, folder: Path) -> None:
    assert batch_size(folder, f"{there}\n{LAUNCH}") == (value, place)


def test_a_script_that_is_run_is_the_one_in_the_folder_gone_to(folder: Path) -> None:
    assert batch_size(folder, "cd sub && bash train.sh\n") == ("8", "sub/train.sh")
    assert batch_size(folder, "(cd sub/deep && bash ../train.sh)\n") == ("8", "sub/train.sh")


def test_a_file_beside_the_script_does_not_stand_in_for_one_that_is_not_there(folder: Path) -> None:
    (folder / "sub" / "env.sh").unlink()
    assert batch_size(folder, f"cd sub; source ./env.sh\n{LAUNCH}") == (None, "")
    assert any(
        "env.sh is run by this script and was not found" in note for note in read_script(folder / "run.sh").notes
    )


def test_a_file_that_the_script_writes_is_found_where_it_was_written(folder: Path) -> None:
    written = "cat > sub/own.sh <<EOF\nMB=32\nEOF\ncd sub; source ./own.sh\n"
    assert batch_size(folder, written + LAUNCH)[0] == "32"
    beside = "cat > env.sh <<EOF\nMB=32\nEOF\ncd sub; source ./env.sh\n"
    assert batch_size(folder, beside + LAUNCH) == ("8", "sub/env.sh")


def test_a_script_without_its_folders_is_read_as_far_as_it_lies_here(folder: Path) -> None:
    assert batch_size(folder, f"cd /workspace/verl; source ./env.sh\n{LAUNCH}") == ("4", "env.sh")
