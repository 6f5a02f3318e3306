"""Writing is atomic, keeps the mode, and never replaces a file unasked."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from advisor.script.document import Document, EditRefused
from advisor.script.write import refuse_changed, write_file


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
    with pytest.raises(EditRefused):
        write_file(tmp_path / "d", b"x", 0o644, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


def test_a_link_is_followed_to_its_end_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "real.sh").write_text("old")
    (tmp_path / "link.sh").symlink_to("real.sh")
    (told,) = write_file(tmp_path / "link.sh", b"new", 0o644, force=True)
    assert (tmp_path / "real.sh").read_bytes() == b"new"
    assert (tmp_path / "link.sh").is_symlink()
    assert "is a link" in told


def test_attributes_that_are_not_copied_are_named(tmp_path: Path) -> None:
    source = tmp_path / "run.sh"
    source.write_text("old")
    try:
        os.setxattr(source, "user.team", b"rl")
    except OSError:
        pytest.skip("this file system keeps no attributes")
    (told,) = write_file(tmp_path / "run.fits.sh", b"new", 0o644, force=False, like=source)
    assert "user.team" in told


@pytest.mark.skipif(os.getuid() != 0, reason="only the administrator gives files away")
def test_the_owner_is_kept_where_that_is_permitted(tmp_path: Path) -> None:
    source = tmp_path / "run.sh"
    source.write_text("old")
    os.chown(source, 1234, 1235)
    assert write_file(tmp_path / "run.fits.sh", b"new", 0o644, force=False, like=source) == ()
    found = (tmp_path / "run.fits.sh").stat()
    assert (found.st_uid, found.st_gid) == (1234, 1235)


def test_a_file_that_changed_since_it_was_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("a\n")
    document = Document(path, b"a\n", "shell")
    refuse_changed(document)
    for change in (lambda: path.write_text("b\n"), path.unlink):
        change()
        with pytest.raises(EditRefused, match="changed since it was read"):
            refuse_changed(document)


@pytest.mark.parametrize("taken", [True, False])
def test_without_hard_links_a_name_is_still_never_taken_from_somebody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    target = tmp_path / "a.sh"

    def no_links(*_: object) -> None:
        if taken:  # somebody was quicker
            target.write_text("theirs")
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", no_links)
    if taken:
        with pytest.raises(FileExistsError, match="--force"):
            write_file(target, b"ours", 0o644, force=False)
    else:
        write_file(target, b"ours", 0o644, force=False)
    assert target.read_text() == ("theirs" if taken else "ours")
    assert [path.name for path in tmp_path.iterdir()] == ["a.sh"]


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("call", ["fdopen", "fchmod", "fsync", "replace", "link"])
def test_whatever_fails_the_old_file_stays_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, force: bool
) -> None:
    target = tmp_path / "a.sh"
    if force:
        target.write_text("old")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, call, full)
    with contextlib.suppress(OSError):
        write_file(target, b"new", 0o644, force=force)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] in ([["a.sh"]] if force else [["a.sh"], []])
    assert not target.exists() or target.read_text() in ("old", "new")


def _race(folder: Path, name: str, won: Any) -> None:
    for number in range(60):
        with contextlib.suppress(FileExistsError):
            write_file(folder / f"{number}.sh", name.encode() * 1000, 0o644, force=False)
            won.put((number, name))


def test_of_two_who_write_at_once_exactly_one_gets_the_name(tmp_path: Path) -> None:
    method = multiprocessing.get_context("fork")
    won = method.Queue()
    writers = [method.Process(target=_race, args=(tmp_path, name, won)) for name in ("a", "b")]
    for writer in writers:
        writer.start()
    winners = dict(won.get(timeout=20) for _ in range(60))
    for writer in writers:
        writer.join(20)
    assert won.empty()
    for number in range(60):
        assert (tmp_path / f"{number}.sh").read_text() == winners[number] * 1000


@pytest.mark.parametrize("kind", ["a pipe", "a directory", "a socket", "a device"])
def test_only_a_regular_file_is_overwritten_even_with_force(tmp_path, kind, monkeypatch):
    there = tmp_path / "there"
    if kind == "a pipe":
        os.mkfifo(there)
    elif kind == "a directory":
        there.mkdir()
    elif kind == "a socket":
        monkeypatch.chdir(tmp_path)  # a socket's path is short
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(there.name)
        listening.close()
    else:
        there.symlink_to(os.devnull)
    before = there.stat().st_mode
    for force in (True, False):
        with pytest.raises(EditRefused, match=kind):
            write_file(there, b"x", 0o644, force=force)
    assert there.stat().st_mode == before
    assert [one.name for one in tmp_path.iterdir()] == ["there"]


def test_a_full_disk_is_told_with_the_files_own_name(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as error:
        write_file(tmp_path / "run.sh", b"x", 0o644, force=False)
    assert error.value.filename == str(tmp_path / "run.sh")
    assert list(tmp_path.iterdir()) == []
