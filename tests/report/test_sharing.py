"""A report that is passed on names no home, no host and no address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.cli import main
from advisor.redact import show_secrets
from advisor.report.sharing import shareable


@pytest.fixture(autouse=True)
def hidden_again() -> Iterator[None]:
    yield
    show_secrets(False)


@pytest.mark.parametrize(
    ("written", "shared"),
    [
        ("/home/wei.chen/run.sh:9", "~/run.sh:9"),
        ("see /Users/anna/logs", "see ~/logs"),
        ("/root/train.log", "~/train.log"),
        ("/me/of/mine/run.sh", "~/run.sh"),
        ("/me/of/mine-too/run.sh", "/me/of/mine-too/run.sh"),
        ("(IP: 10.0.4.17, ID: 5c1d)", "(IP: …, ID: 5c1d)"),
        ("node=gpu-17.example.org, pid=3", "host=…, pid=3"),
        ("mail wei@example.org", "mail …"),
        ("volcengine/verl@v0.4.1 verl/workers", "volcengine/verl@v0.4.1 verl/workers"),
        ("fe80:0:0:0:1:2:3:4 answers", "… answers"),
        ("torch 2.5.1, driver 550.54.15", "torch 2.5.1, driver 550.54.15"),
        ("/opt/conda/lib/x.py", "/opt/conda/lib/x.py"),
    ],
)
def test_homes_hosts_and_addresses_are_shortened(written: str, shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/me/of/mine")
    assert shareable(written) == shared


def test_whoever_asks_for_everything_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    show_secrets()
    assert shareable("/root/train.log on 10.0.4.17") == "/root/train.log on 10.0.4.17"


def test_the_saved_report_holds_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["fix", "--demo", "-o", str(tmp_path / "run.fits.sh")]) == 0
    report = (tmp_path / "run.fits.md").read_text()
    assert "10.0.4.17" not in report
    assert str(tmp_path) not in report
    assert "(IP: …, ID:" in report
