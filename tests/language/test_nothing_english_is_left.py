"""The whole program in Chinese: every text was in a catalogue, and no line is English but what was given to it."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from advisor.commands import COMMANDS
from advisor.demo import demo_files
from advisor.knowledge import load_knowledge
from advisor.language import unsaid
from advisor.machine import measure as measuring
from tests.heavy import sampled
from tests.machine.fake_nvml import Card, FakeNvml
from tests.stories.told import DOCUMENTED, RUNS, STORIES, enter, tell
from tests.watch.made_record import made_record

Patch = pytest.MonkeyPatch

_WORD = re.compile(r"[A-Za-z][a-z']*")
_RUN = re.compile(r"(?<![\w./=-])[A-Za-z][a-z']*(?:[,;:]? [A-Za-z][a-z']*){3,}(?![\w/=-])")
"""Four words or more one after the other; keys, flags, paths and names with digits or capitals inside end a run."""
_QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|‘[^’]*’|(?<!\w)'[^'\n]*'(?!\w)|https?://\S+")
_CUT = re.compile(r"[\w']*(?:…|\.\.\.)")
"""The last word of what was cut."""
_AS_THEY_ARE = ("source", "sample", "pattern")
"""Of the knowledge: where a fact comes from and what logs look like stand in the words of others."""


def forget() -> None:
    """Drop whatever was kept in a language: every cache of the program's."""
    for name, module in list(sys.modules.items()):
        if name.startswith("advisor"):
            for value in list(vars(module).values()):
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()


def fours(text: str) -> set[tuple[str, ...]]:
    """Every four words that follow one another, whatever stands between them."""
    words = _WORD.findall(text.lower())
    return {tuple(words[at : at + 4]) for at in range(len(words) - 3)}


def given_texts() -> Iterator[str]:
    """What stands in the files that the commands read, which is quoted as it is."""
    demo = demo_files()
    for file in (*RUNS.rglob("*"), demo.script, demo.log, demo.machine):
        if file.is_file() and not file.name.startswith("expected"):
            yield file.read_text("utf-8", "replace")
    yield from quoted_by(msgspec.to_builtins(load_knowledge(), enc_hook=str))


@functools.lru_cache(maxsize=1)
def given() -> set[tuple[str, ...]]:
    """The same in fours."""
    return {four for text in given_texts() for four in fours(text)}


def quoted_by(knowledge: object) -> Iterator[str]:
    """The texts of the knowledge that are shown as they are."""
    if isinstance(knowledge, dict):
        for key, value in knowledge.items():
            if key in _AS_THEY_ARE and isinstance(value, str):
                yield value
            else:
                yield from quoted_by(value)
    elif isinstance(knowledge, (list, tuple)):
        for value in knowledge:
            yield from quoted_by(value)


def english_in(text: str, quoted: str = "") -> Iterator[str]:
    """The lines of `text` that hold English of ours."""
    known = given() | fours(quoted)
    for line in text.splitlines():
        if any(not fours(run) <= known for run in _RUN.findall(_CUT.sub(" | ", _QUOTED.sub(" | ", line)))):
            yield line.strip()


class Spoken:
    """Runs the program in Chinese, and keeps what was not."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.left: list[str] = []

    def __call__(self, *words: str, code: int | None = None, quoted: str = "") -> None:
        """Run one command. `quoted`: English of the user's that may be in what it prints."""
        ended, out, err = tell([*words, "--lang", "zh"], self.capsys)
        shown = " ".join(words)
        assert code is None or ended == code, f"{shown}: {ended} {err}"
        assert "--diff" in words or re.search("[\u4e00-\u9fff]", out + err), f"{shown} says nothing in Chinese"
        self.left += [f"{shown}: no catalogue has {text!r}" for text in sorted(unsaid())]
        self.read(out + err, shown, quoted + shown)

    def read(self, text: str, where: str, quoted: str = "") -> None:
        """Look for English in a text."""
        self.left += [f"{where}: prints {line!r}" for line in english_in(text, quoted)]

    def json(self, *words: str) -> None:
        """The prose of what it prints as JSON."""
        out = tell([*words, "--format", "json", "--lang", "zh"], self.capsys)[1]
        self.left += [f"{' '.join(words)} --format json: no catalogue has {text!r}" for text in sorted(unsaid())]
        self.read("\n".join(prose(json.loads(out))), " ".join(words) + " --format json", " ".join(words))


def prose(value: object) -> Iterator[str]:
    """The texts of a JSON value; the names in a formula's tree are for programs."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from prose(inner) if key != "tree" else ()
    elif isinstance(value, list):
        for inner in value:
            yield from prose(inner)
    elif isinstance(value, str):
        yield value


@pytest.fixture
def chinese(capsys: pytest.CaptureFixture[str]) -> Iterator[Spoken]:
    """The program, with nothing kept from before; fails with all the English that was found."""
    forget()
    spoken = Spoken(capsys)
    yield spoken
    forget()
    assert not spoken.left, "\n".join(dict.fromkeys(spoken.left))


@pytest.fixture
def bare_box(tmp_path: Path, monkeypatch: Patch) -> Path:
    """An empty working folder, on a box of two cards of which nothing else is known."""
    box, here = tmp_path / "box", tmp_path / "here"
    (box / "proc").mkdir(parents=True)
    (box / "proc" / "meminfo").write_text("MemTotal: 67108864 kB\nMemAvailable: 60000000 kB\n")
    here.mkdir()
    monkeypatch.chdir(here)
    cards = FakeNvml(Card(processes=[(999_999_99, 30 * 2**30)]), Card(errors={"nvmlDeviceGetName": 999}))
    stubbed = functools.partial(measuring.measure, nvml=cards, root=box)
    monkeypatch.setattr(measuring, "measure", stubbed)
    return here


@pytest.mark.parametrize("name", sampled(DOCUMENTED, (0, 4)))
def test_a_documented_crash_is_told_in_chinese_alone(
    name: str, tmp_path: Path, monkeypatch: Patch, chinese: Spoken
) -> None:
    story = STORIES[name]
    folder = enter(story, tmp_path, monkeypatch)
    chinese(*story.words("diagnose"))
    chinese(*story.words("fix"))
    chinese("settings", story.script)
    chinese("scan", story.log)
    if name == "openrlhf":  # what is in JSON is in the text, too: one will do
        chinese.json(*story.words("diagnose"))
        chinese("estimate", story.script, *story.machine)
    for file in (*folder.glob("*.md"), folder / story.fits):
        if file.is_file():
            chinese.read(file.read_text(), file.name)


def test_the_demo_is_told_in_chinese_alone(chinese: Spoken, bare_box: Path) -> None:
    chinese("diagnose", "--demo")
    chinese("fix", "--demo", "--diff")
    chinese("estimate", "--demo")


def test_a_recorded_run_is_told_in_chinese_alone(chinese: Spoken, bare_box: Path) -> None:
    record = made_record(bare_box / "record")
    (record / "output.log").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    chinese("diagnose", "--record", str(record), "--gpus", "1xA100-80GB", quoted="CUDA out of memory Tried to allocate")


def test_the_machine_is_told_in_chinese_alone(chinese: Spoken, bare_box: Path) -> None:
    chinese("machine")
    chinese.json("machine")


def test_what_the_program_knows(chinese: Spoken, bare_box: Path) -> None:
    for name in (
        "rollout.memory_share", "actor.micro_batch", "activations", "torch-oom", "lower-micro-batch", "verl", "trl",
        "easyr1", "ray-oom", "cpu-adam-versions",
    ):  # fmt: skip
        chinese("explain", name)


def test_every_help_is_in_chinese_alone(chinese: Spoken) -> None:
    chinese("--help")
    for name in COMMANDS:
        chinese(name, "--help")


def test_what_cannot_be_done(chinese: Spoken, bare_box: Path) -> None:
    here = bare_box
    (here / "run.sh").write_text("python3 -m verl.trainer.main_ppo data.train_batch_size=8 \\\n  trainer.nnodes=$N\n")
    (here / "open.sh").write_text("python3 -m verl.trainer.main_ppo data.x='8 \\\n")
    (here / "tabs.yaml").write_text("data:\n\ttrain_batch_size: 8\n")
    (here / "bad.json").write_text('{"train_batch_size": 8,}\n')
    (here / "bad.py").write_text("class Conf(:\n    n: int = 8\n")
    (here / "empty.log").write_text("")
    (here / "well.log").write_text("all done\n")
    (here / "binary.log").write_bytes(b"\x00\x01\x02" * 9000)
    (here / "own").mkdir()
    (here / "own" / "remedies.yaml").write_text("- id: x\n  nonsense: 1\n")
    chinese("diagnose", code=4)
    chinese("settings", "run.sh")
    for name in ("gone.sh", "open.sh", "tabs.yaml", "bad.json", "bad.py", "own"):
        chinese("settings", name, code=2)
    for name in ("gone.log", "empty.log", "well.log", "binary.log"):
        chinese("scan", name)
        chinese("diagnose", "run.sh", "--log", name)
    chinese("set", "run.sh", "trainer.nnodes", code=2)
    chinese("set", "run.sh", "trainer.nnodes=2", "--launch", "3", code=2)
    chinese("set", "run.sh", "trainer.nnodes=2")
    chinese("explain", "no-such-thing", code=2)
    chinese("estimate", code=2)
    chinese("estimate", "run.sh", "--gpus", "many", code=2)
    chinese("estimate", "run.sh", "--gpus", "2xA100-80GB", "--host-ram", "much", code=2)
    chinese("fix", "run.sh", "--nonsense", code=2)
    chinese("diagnose", "run.sh", "--knowledge", "own")
    chinese("diagnose", "run.sh", "--knowledge", "nowhere")
    chinese("diagnose", "--record", "own", code=2)
    chinese("config")
