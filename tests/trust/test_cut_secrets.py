"""A secret that a cut goes through, or that stands among the words of a command, is hidden as any other is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.bug_report import LIMIT, write_bug_report
from advisor.cli import main
from advisor.hostile import clean, clean_line
from advisor.redact import HIDDEN, redact, redact_value, redact_words
from tests.loops import each
from tests.trust.secret_forms import FORMS, HEX40, WORD

_TOLD = 6
"""Characters of a secret's beginning that tell something of it, beyond what its shape is known by."""


def _told(secret: str, text: str) -> str:
    begin = secret[: max(_TOLD, len(secret) // 2)]
    return begin if begin in text else ""


@each("form", FORMS)
def test_wherever_a_text_is_cut_no_half_of_a_secret_is_shown(form: tuple[str, str]) -> None:
    text = form[0].format(form[1])
    at = text.find(form[1])
    shown = [redact(clean(text, at + kept + 2)) for kept in range(len(form[1]))]
    assert [cut for cut in shown if _told(form[1], cut)] == []


def test_what_is_kept_of_a_fault_tells_none_where_its_front_is_cut(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("advisor.bug_report._packages", list)
    for behind in range(LIMIT - len(WORD) - 30, LIMIT + 10, 3):
        write_bug_report(ValueError(f"HF_TOKEN={WORD} " + "x" * behind), [])
    kept = [path.read_text() for path in tmp_path.iterdir()]
    assert len(kept) > 10
    assert [text for text in kept if WORD in text] == []


def test_what_is_cut_keeps_its_length_and_its_ordinary_words() -> None:
    assert clean_line("a" * 30, 10) == "a" * 9 + "…"
    assert clean_line("max_tokens=512 " * 4, 30) == "max_tokens=512 max_tokens=512" + "…"


@each("name", ["use_wandb", "--use_wandb", "trainer.wandb_api_key", "hub_token", "--password"])
def test_a_setting_hides_what_the_same_words_in_a_text_hide(name: str) -> None:
    assert redact_value(name, HEX40) == HIDDEN
    assert redact_value("trainer.lr", "1e-6") == "1e-6"


@each(
    "words",
    [
        ("python3", "train.py", "--hub_token", WORD, "--lr", "1"),
        ("python3", "train.py", "--password", f"two {WORD}"),
        ("sshpass", "-p", WORD, "ssh", "host"),
        ("wandb", "login", HEX40),
        ("bash", "-c", f"export HF_TOKEN='{WORD}'; python3 train.py"),
        ("x", f"it's --api-key={WORD}"),
    ],
)
def test_words_of_a_command_are_hidden_as_the_command_is(words: tuple[str, ...]) -> None:
    told = redact_words(words)
    assert len(told) == len(words)
    assert WORD not in " ".join(told)
    assert HEX40 not in " ".join(told)


def test_neither_a_record_nor_the_list_of_records_tells_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.watch.test_without_terminal import finished

    finished(tmp_path, "true", "--hub_token", WORD, "--use_wandb", HEX40)
    (record,) = (each.parent for each in tmp_path.rglob("samples.jsonl"))
    assert main(["records", str(record.parent), "--format", "json"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out)
    kept = "".join(each.read_text(errors="replace") for each in record.iterdir())
    assert [secret for secret in (WORD, HEX40) if secret in kept + out] == []
