"""Writing is atomic, keeps the mode, and never replaces a file unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.script.write import write_file


def test_the_mode_is_kept_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_file(tmp_path / "a.sh", b"x\n", 0o755, force=False)
    assert (tmp_path / "a.sh").read_bytes() == b"x\n"
    assert (tmp_path / "a.sh").stat().st_mode & 0o777 == 0o755
    assert [path.name for path in tmp_path.iterdir()] == ["a.sh"]


def test_an_existing_file_is_replaced_only_when_forced(tmp_path: Path) -> None:
    path = tmp_path / "a.sh"
    path.write_text("old")
    with pytest.raises(FileExistsError, match="--force"):
        write_file(path, b"new", 0o644, force=False)
    assert path.read_text() == "old"
    write_file(path, b"new", 0o644, force=True)
    assert path.read_text() == "new"


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"."):
        write_file(tmp_path / "nowhere" / "a.sh", b"x", 0o644, force=False)
    (tmp_path / "d").mkdir()
    with pytest.raises(OSError, match=r"."):
        write_file(tmp_path / "d", b"x", 0o644, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["d"]
