"""More than two hundred secrets are planted in a script, its log and its config: none is told, the script keeps all."""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.bug_report import write_bug_report
from advisor.cli import main
from advisor.commands import app_parser
from advisor.commands.requests import asked_from
from advisor.language import ENGLISH, LANGUAGES, speak
from advisor.report.ticket import ticket
from advisor.tui.driver import SessionDriver
from tests.heavy import sampled
from tests.stories.told import STORIES, enter
from tests.test_redact import SECRETS
from tests.tui.screen_text import opened, press, screen_text

STORY = STORIES["easyr1"]
IN_LOG, IN_SCRIPT = 5, 4
"""How often each kind of secret is planted in each."""


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    yield
    speak(ENGLISH)


class Garden:
    """Makes secrets that are each told apart, and remembers them."""

    def __init__(self) -> None:
        self.chance = random.Random(7)
        self.planted: list[str] = []

    def line(self, kind: str) -> str:
        template, sample = SECRETS[kind]
        begin = 4 if len(sample) > 12 else 0  # what its shape is known by
        pattern = sample + "a1b2c3d4e5"[: max(10 - len(sample), 0)]
        secret = pattern[:begin] + "".join(self._like(character) for character in pattern[begin:])
        self.planted.append(secret)
        return template.format(secret)

    def _like(self, character: str) -> str:
        if character.isdigit():
            return self.chance.choice("0123456789")
        if character.isalpha():
            letters = "abcdef" if character.lower() in "abcdef" else "ghjkmnpqrstuvwxyz"
            picked = self.chance.choice(letters)
            return picked.upper() if character.isupper() else picked
        return character


@pytest.fixture
def garden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Garden]:
    folder, garden = enter(STORY, tmp_path, monkeypatch), Garden()
    script, log = folder / STORY.script, folder / STORY.log
    comments = "".join(
        f"# {garden.line(kind)}\n".replace("\n  ", "\n#   ") for _ in range(IN_SCRIPT) for kind in SECRETS
    )
    head, launch = script.read_text().split("python3 -m", 1)
    exported = "".join(f"export {name}={_quoted(garden)}\n" for name in ("HF_TOKEN", "WANDB_API_KEY", "MY_SECRET"))
    lines = launch.rstrip("\n").split("\n")
    lines.insert(2, f"    +trainer.wandb_api_key={_quoted(garden)} \\")
    script.write_text(f"{head}{comments}{exported}python3 -m" + "\n".join(lines) + "\n")
    told = log.read_text().splitlines()
    for _ in range(IN_LOG):
        for kind in SECRETS:
            told.insert(garden.chance.randrange(len(told) + 1), f"(WorkerDict pid=7) {garden.line(kind)}")
    told.insert(1, f"+ python3 -m verl.trainer.main trainer.wandb_api_key={_quoted(garden)}")
    told.append(f"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB, token={_quoted(garden)}")
    log.write_text("\n".join(told) + "\n")
    return folder, garden


def _quoted(garden: Garden) -> str:
    return shlex.quote(garden.line("an exported token").split("=", 1)[1])


def told_secrets(garden: Garden, text: str) -> list[str]:
    """Those whose telling part stands in the text, whatever stands in its place at the ends."""
    return [secret for secret in garden.planted if secret in text or (len(secret) > 12 and secret[4:] in text)]


COMMANDS = [
    ["scan", STORY.log],
    ["scan", STORY.log, "--format", "json"],
    ["settings", STORY.script],
    ["settings", STORY.script, "--format", "json"],
    ["settings", STORY.script, "--format", "jsonl"],
    ["settings", STORY.script, "--log", STORY.log],
    *([*STORY.words("diagnose"), "--format", form] for form in ("text", "json", "markdown")),
    [*STORY.words("estimate"), "--format", "json"],
    STORY.words("fix", "--diff"),
]


def test_enough_secrets_are_planted_to_prove_anything(garden):
    assert len(garden[1].planted) >= 200


@pytest.mark.parametrize("language", sampled(LANGUAGES, 1))
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:1] + words[-2:]))
def test_no_command_tells_a_secret(garden, capsys, words, language):
    assert main([*words, "--lang", language]) in (0, 3)
    out, err = capsys.readouterr()
    assert told_secrets(garden[1], out + err) == []
    assert len(out) > 200


def test_the_report_tells_none_and_the_patched_script_keeps_all(garden, capsys):
    folder, garden = garden
    assert main(["fix", STORY.script, "--log", STORY.log, *STORY.machine]) == 0
    script, patched = (folder / STORY.script).read_text(), (folder / STORY.fits).read_text()
    assert told_secrets(garden, patched) == told_secrets(garden, script)
    reports = list(folder.glob("*.md"))
    assert reports
    assert told_secrets(garden, "".join(report.read_text() for report in reports) + capsys.readouterr().out) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_neither_a_ticket_nor_what_is_kept_of_a_fault_tells_one(garden, tmp_path, monkeypatch, language):
    asked = asked_from(app_parser().parse_args([STORY.script, "--log", STORY.log, *STORY.machine]))
    state = SessionDriver(asked).open(lambda _: None)
    speak(language)
    told = [ticket(state)]
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("advisor.bug_report._packages", list)
    lines = (garden[0] / STORY.log).read_text().splitlines()
    for text in (*lines, "\n".join(lines)):
        told.append(write_bug_report(ValueError(text), ["diagnose", "--answer", text]))
    files = list(tmp_path.glob("rl-oom-advisor-*.txt"))
    told += [file.read_text() for file in files]
    assert len(files) > 100
    assert told_secrets(garden[1], "\n".join(told)) == []


@pytest.mark.parametrize("name", sampled(reversed(STORIES), 3))
def test_nothing_else_is_hidden(name, tmp_path, monkeypatch, capsys):
    from advisor.redact import show_secrets

    enter(STORIES[name], tmp_path, monkeypatch)
    told = []
    for shown in ("", "--no-redact"):
        main([*STORIES[name].words("diagnose"), "--format", "json", *shown.split()])
        told.append(capsys.readouterr().out)
    show_secrets(False)
    assert told[0] == told[1]


def test_they_are_told_where_that_was_asked_for(garden, capsys):
    from advisor.redact import show_secrets

    try:
        main(["settings", STORY.script, "--no-redact"])
    finally:
        show_secrets(False)
    assert told_secrets(garden[1], capsys.readouterr().out)


@pytest.mark.parametrize("language", sampled(LANGUAGES, 1))
async def test_no_screen_tells_a_secret(garden, monkeypatch, language):
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    speak(language)
    asked = asked_from(app_parser().parse_args([STORY.script, "--log", STORY.log, *STORY.machine]))
    seen = []
    async with opened(size=(140, 50), driver=SessionDriver(asked)) as pilot:
        for keys in ("", "o", "pageup pageup", "escape", "s", "enter", "pagedown", "pagedown", "escape", "m", "escape"):
            await press(pilot, *keys.split())
            seen.append(screen_text(pilot.app))
        for _ in range(8):
            await press(pilot, "enter")
            seen.append(screen_text(pilot.app))
    assert len(set(seen)) > 6
    assert told_secrets(garden[1], "".join(seen)) == []
