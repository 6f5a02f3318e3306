"""What of the logs was not read, and what nothing tells, is said; it is no proof that nothing failed."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from advisor.cli import main
from advisor.crash.evidence import Crash
from advisor.crash.read import read_logs
from advisor.crash.sources import LogError

from .known import SIGNATURES

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 9.00 GiB "
    "of which 1.00 GiB is free.\n"
)
RAY = (
    "(raylet) Workers (tasks / actors) killed due to memory pressure (OOM), 1 Workers crashed due to other reasons at "
    "node (ID: a, IP: 1.1.1.1) over the last time period.\n"
)
DICE = random.Random(1)
LONG = [f"step:{number} - actor/loss:{DICE.random()}\n" for number in range(1, 6_001)]
STEPS = "".join(LONG[:2_500])


def read(*logs: Path) -> Crash:
    return read_logs(logs, SIGNATURES)


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    def write(data: bytes | str, name: str = "train.log") -> Path:
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


@pytest.mark.parametrize(
    "pack", [gzip.compress, partial(bz2.compress, compresslevel=1), lzma.compress], ids=["gz", "bz2", "xz"]
)
def test_an_archive_without_its_end_does_not_say_that_nothing_failed(pack, log) -> None:
    packed = pack(("".join(LONG) + OOM).encode())  # half of it is more than a block of bzip2
    whole, cut = read(log(packed)), read(log(packed[: len(packed) // 2], "cut.log"))
    assert (whole.verdict, whole.doubts) == ("oom", ())
    assert cut.verdict == "unclear"
    assert "cut.log is missing: it breaks off" in cut.unclear_because


def test_it_is_said_in_text_and_json_and_by_the_exit_code(log, capsys) -> None:
    packed = gzip.compress((STEPS + OOM).encode())
    words = ["scan", str(log(packed[: len(packed) // 2]))]
    assert main(words) == 4
    assert "it breaks off" in " ".join(capsys.readouterr().out.split())
    assert main([*words, "--format", "json"]) == 4
    crash = json.loads(capsys.readouterr().out)["crash"]
    assert crash["verdict"] == "unclear"
    assert len(crash["doubts"]) == 1


@pytest.mark.parametrize("text", [STEPS + OOM, "训练第 1 步：显存不足，进程被终止。\n" * 500])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32-le", "utf-32-be", "utf-32"])
def test_text_in_several_bytes_a_character_is_refused_with_or_without_a_mark(encoding: str, text: str, log) -> None:
    with pytest.raises(LogError, match=f"{encoding[:6].upper()} text"):
        read(log(text.encode(encoding)))


def test_text_with_zeros_in_it_is_text(log) -> None:
    for data in (STEPS.replace("step:50", "\0\0\0\0step:50"), STEPS.replace("\n", "\n\0", 50)):
        assert read(log(data + OOM)).signature == "torch-oom"


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_an_archive_of_several_files_without_its_end_is_said_to_break_off(name: str, tmp_path: Path, log) -> None:
    packed = tmp_path / "logs.tar"
    with tarfile.open(packed, "w") as archive:
        archive.add(log(STEPS + OOM), "train.log")
    whole = packed.read_bytes() if name == "a.tar" else gzip.compress(packed.read_bytes())
    crash = read(log(whole, name))
    assert (crash.verdict, crash.doubts) == ("oom", ())
    (doubt,) = read(log(whole[: len(whole) // 2], name)).doubts
    assert "it breaks off" in doubt


def test_a_failure_at_the_end_of_an_endless_line_is_found_and_quoted(log) -> None:
    crash = read(log("x" * 1_000_000 + " " + OOM))
    assert (crash.verdict, crash.signature) == ("oom", "torch-oom")
    assert "CUDA out of memory" in crash.evidence[0].text


def test_what_was_passed_over_in_an_endless_line_is_said(log) -> None:
    crash = read(log("CUDA out of memory? " * 150_000))
    assert any("one line of it has no end" in doubt for doubt in crash.doubts)


def test_a_hole_is_passed_over_and_what_stands_behind_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    with path.open("wb") as file:
        file.seek(1 << 36)
        file.write(OOM.encode())
    crash = read(path)
    assert (crash.signature, crash.evidence[0].line) == ("torch-oom", 1)
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert read(path).verdict == "unclear"


def test_a_device_has_no_end_and_is_refused() -> None:
    with pytest.raises(LogError, match="a device, not a log"):
        read(Path("/dev/zero"))
    assert read(Path("/dev/null")).verdict == "unclear"


def test_two_shortages_without_times_are_said_to_have_no_order(log) -> None:
    one, other = log(OOM, "rank.log"), log(RAY, "raylet.log")
    for logs in ((one, other), (other, one)):
        (doubt,) = read(*logs).doubts
        assert "no times say which came first" in doubt
        assert f"{logs[0]} is taken to" in doubt
    assert read(one).doubts == ()


def test_logs_of_a_folder_that_were_not_read_are_told_by_a_scan(tmp_path: Path, capsys) -> None:
    for number in range(70):
        (tmp_path / f"rank_{number}.log").write_text("step:1 - loss:2\n")
    main(["scan", str(tmp_path)])
    assert "6 more logs of the folder were not read" in " ".join(capsys.readouterr().out.split())
