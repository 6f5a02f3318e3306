"""Writing is atomic, keeps the mode, and never replaces a file unasked."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

from advisor.script.document import Document, EditRefused
from advisor.script.write import refuse_changed, write_file


def test_the_mode_is_kept_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_file(tmp_path / "a.sh", b"x\n", mode=0o755, force=False)
    assert (tmp_path / "a.sh").read_bytes() == b"x\n"
    assert (tmp_path / "a.sh").stat().st_mode & 0o777 == 0o755
    assert [path.name for path in tmp_path.iterdir()] == ["a.sh"]


def test_an_existing_file_is_replaced_only_when_forced(tmp_path: Path) -> None:
    path = tmp_path / "a.sh"
    path.write_text("old")
    with pytest.raises(FileExistsError, match="--force"):
        write_file(path, b"new", force=False)
    assert path.read_text() == "old"
    write_file(path, b"new", force=True)
    assert path.read_text() == "new"


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"."):
        write_file(tmp_path / "nowhere" / "a.sh", b"x", force=False)
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_followed_to_its_end_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "real.sh").write_text("old")
    (tmp_path / "link.sh").symlink_to("real.sh")
    (told,) = write_file(tmp_path / "link.sh", b"new", force=True)
    assert (tmp_path / "real.sh").read_bytes() == b"new"
    assert (tmp_path / "link.sh").is_symlink()
    assert "is a link" in told


def test_attributes_are_kept_and_those_that_cannot_be_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "run.sh"
    source.write_text("old")
    try:
        os.setxattr(source, "user.team", b"rl")
    except OSError:
        pytest.skip("this file system keeps no attributes")
    assert write_file(tmp_path / "run.fits.sh", b"new", force=False, like=source) == ()
    assert os.getxattr(tmp_path / "run.fits.sh", "user.team") == b"rl"

    def refused(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "no attributes here")

    monkeypatch.setattr(os, "setxattr", refused)
    for place in (tmp_path / "other.sh", source):
        (told,) = write_file(place, b"new", force=True, like=source)
        assert "user.team" in told


@pytest.mark.skipif(os.getuid() != 0, reason="only the administrator gives files away")
def test_the_owner_is_kept_where_that_is_permitted(tmp_path: Path) -> None:
    source = tmp_path / "run.sh"
    source.write_text("old")
    os.chown(source, 1234, 1235)
    assert write_file(tmp_path / "run.fits.sh", b"new", force=False, like=source) == ()
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

    def no_links(*_: object, **__: object) -> None:
        if taken:  # somebody was quicker
            target.write_text("theirs")
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", no_links)
    if taken:
        with pytest.raises(FileExistsError, match="--force"):
            write_file(target, b"ours", force=False)
    else:
        write_file(target, b"ours", force=False)
    assert target.read_text() == ("theirs" if taken else "ours")
    assert [path.name for path in tmp_path.iterdir()] == ["a.sh"]


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("call", ["fdopen", "fchmod", "fsync", "replace", "link"])
def test_whatever_fails_is_told_of_the_file_itself_the_old_one_stays_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, force: bool
) -> None:
    target = tmp_path / "a.sh"
    if force:
        target.write_text("old")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device", str(tmp_path / ".hidden"))

    monkeypatch.setattr(os, call, full)
    told = str(target)
    try:
        write_file(target, b"new", force=force)
    except OSError as error:
        told = error.filename
    monkeypatch.undo()
    assert told == str(target)
    assert [path.name for path in tmp_path.iterdir()] in ([["a.sh"]] if force else [["a.sh"], []])
    assert not target.exists() or target.read_text() in ("old", "new")


def _race(folder: Path, name: str, won: Any) -> None:
    for number in range(60):
        with contextlib.suppress(FileExistsError):
            write_file(folder / f"{number}.sh", name.encode() * 1000, force=False)
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
            write_file(there, b"x", force=force)
    assert there.stat().st_mode == before
    assert [one.name for one in tmp_path.iterdir()] == ["there"]


def _access_list(group: int, named: int) -> bytes:
    """An access list as the kernel has it: rights of the owner, of uid 65534, of the group, and the mask."""
    rows = ((1, 6, -1), (2, named, 65534), (4, group, -1), (16, group | named, -1), (32, 0, -1))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *row) for row in rows)


@pytest.mark.parametrize("same", [True, False])
def test_an_access_list_is_kept_and_its_mask_becomes_nobodys_right(tmp_path: Path, same: bool) -> None:
    source = tmp_path / "run.sh"
    source.write_text("old")
    wanted = _access_list(4, 6)
    try:
        os.setxattr(source, "system.posix_acl_access", wanted)
    except OSError:
        pytest.skip("this file system keeps no access lists")
    place = source if same else tmp_path / "run.fits.sh"
    assert write_file(place, b"new", force=same, like=source) == ()
    assert os.getxattr(place, "system.posix_acl_access") == wanted


def test_a_file_that_is_replaced_keeps_its_mode_and_a_new_one_gets_that_of_its_pattern(tmp_path: Path) -> None:
    script, there = tmp_path / "run.sh", tmp_path / "there.sh"
    script.write_text("old")
    there.write_text("old")
    script.chmod(0o4754)
    there.chmod(0o640)
    write_file(there, b"new", force=True, like=script)
    write_file(tmp_path / "new.sh", b"new", force=True, like=script)
    assert [each.stat().st_mode & 0o7777 for each in (there, tmp_path / "new.sh")] == [0o640, 0o754]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_what_is_no_copy_of_a_file_follows_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_file(tmp_path / "report.md", b"new", force=False)
    finally:
        os.umask(before)
    assert (tmp_path / "report.md").stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.skipif(os.getuid() != 0, reason="only the administrator gives files to groups")
def test_a_folder_that_hands_its_group_on_does_so(tmp_path: Path) -> None:
    source, shared = tmp_path / "run.sh", tmp_path / "shared"
    source.write_text("old")
    shared.mkdir()
    os.chown(shared, 0, 4321)
    shared.chmod(0o2775)
    assert write_file(shared / "run.sh", b"new", force=False, like=source) == ()
    assert (shared / "run.sh").stat().st_gid == 4321


def test_other_names_of_a_file_keep_what_was_in_it_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("old")
    os.link(tmp_path / "run.sh", tmp_path / "other.sh")
    (told,) = write_file(tmp_path / "run.sh", b"new", force=True)
    assert "hard links" in told
    assert (tmp_path / "other.sh").read_text() == "old"


def test_where_no_file_without_a_name_can_be_made_one_with_a_name_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_TMPFILE")
    for force in (False, True):
        write_file(tmp_path / "run.sh", b"new", force=force)
    assert [each.name for each in tmp_path.iterdir()] == ["run.sh"]
