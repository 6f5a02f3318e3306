"""The stories, and how they are told headless: each in a copy of its folder, on a described machine."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from advisor import request, run_file
from advisor.cli import main
from advisor.session import SessionRequest, State, open_session
from tests.machine import fake_nvml

RUNS = Path(__file__).parent.parent / "runs"
A100_80, A100_40 = "4xA100-80GB", "8xA100-40GB"


@dataclass(frozen=True)
class Story:
    """One documented crash: its files and what is known of the machine. `machine` are command-line words."""

    name: str
    folder: str
    script: str
    log: str
    machine: tuple[str, ...]

    def words(self, command: str, *more: str) -> list[str]:
        return [command, self.script, "--log", self.log, *self.machine, *more]

    @property
    def fits(self) -> str:
        stem, dot, suffix = self.script.rpartition(".")
        return f"{stem}.fits{dot}{suffix}"


ORZ_LIBRARIES = [
    w for lib in ("torch=2.5.1", "deepspeed=0.16.3", "vllm=0.7.2", "flash-attn=2.7.0") for w in ("--lib", lib)
]
STORIES = {
    story.name: story
    for story in (
        Story("logic-rl-stage1", "logic-rl", "stage1.sh", "stage1.log", ("--gpus", A100_80)),
        Story("logic-rl-stage2", "logic-rl", "stage2.sh", "stage2.log", ("--gpus", A100_80)),
        Story(
            "open-reasoner-zero",
            "open-reasoner-zero",
            "orz_1p5b_ppo.py",
            "train.log",
            ("--gpus", A100_80, *ORZ_LIBRARIES),
        ),
        Story(
            "openrlhf",
            "openrlhf",
            "train_ppo_llama3_70b.sh",
            "train.log",
            ("--gpus", "8xA800-80GB", "--nodes", "9", "--lib", "deepspeed=0.16.3"),
        ),
        Story("easyr1", "easyr1", "qwen2_5_vl_7b.sh", "train.log", ("--gpus", A100_40, "--host-ram", "760GB")),
        Story("ms-swift", "ms-swift", "grpo.sh", "train.log", ("--gpus", A100_80, "--lib", "ms-swift=3.1.1")),
        Story("unknown", "unknown", "train.sh", "train.log", ("--gpus", "8xA100-80GB")),
    )
}
DOCUMENTED = [name for name in STORIES if name != "unknown"]


def enter(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh copy of the story's folder as the working folder, with an environment that has no libraries."""
    folder = tmp_path / story.folder
    shutil.copytree(RUNS / story.folder, folder, ignore=shutil.ignore_patterns("expected*"))
    monkeypatch.chdir(folder)
    empty = tmp_path / "venv"
    (empty / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    (empty / "bin").mkdir()
    (empty / "bin" / "python3").touch(mode=0o755)
    (empty / "pyvenv.cfg").write_text("home = /nowhere\n")
    monkeypatch.setenv("VIRTUAL_ENV", str(empty))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    box = tmp_path / "box"
    (box / "proc").mkdir(parents=True)
    (box / "proc" / "meminfo").write_text("MemTotal: 67108864 kB\nMemAvailable: 60000000 kB\n")
    monkeypatch.setattr(request, "measure", partial(request.measure, nvml=fake_nvml.FakeNvml(init_error=12), root=box))
    monkeypatch.setenv("PATH", f"{empty / 'bin'}:/usr/bin:/bin")
    return folder


def tell(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Run the program on these words: exit code, standard output, standard error."""
    capsys.readouterr()
    try:
        code = main(words)
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err


def tell_both(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str, set[int]]:
    """JSON and text of one session, opened and sized once, and the exit codes: both are made of the same state."""
    opened: dict[str, State] = {}
    sized: list[run_file.Sizing] = []
    sizing_of = run_file.sizing_of

    def once(asked: SessionRequest, **how: bool) -> State:
        key = repr((asked, how))
        return opened[key] if key in opened else opened.setdefault(key, open_session(asked, **how))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("advisor.session.open_session", once)
        patch.setattr(run_file, "sizing_of", lambda state: (sized or sized.append(sizing_of(state)) or sized)[0])
        code, out, err = tell([*words, "--format", "json"], capsys)
        other, text, _ = tell(words, capsys)
    assert out, err
    return json.loads(out), text, {code, other}


def diagnosis(story: Story, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    """The diagnosis of an untouched copy of a story: the same bytes wherever it lies, so that it is made once."""
    words = tuple(story.words("diagnose", "--format", "json", *more))
    if words not in _DIAGNOSED:
        code, _DIAGNOSED[words], err = tell([*words], capsys)
        assert code == 0, err
    answer: dict[str, Any] = json.loads(_DIAGNOSED[words])
    return answer


_DIAGNOSED: dict[tuple[str, ...], str] = {}
"""Words → what the command printed."""


def changes(answer: dict[str, Any], selected: bool | None = None) -> dict[str, tuple[Any, Any]]:
    """Key without dashes → (old, new) over the plan's steps, all or only the selected ones."""
    steps = [s for s in answer["plan"] if selected is None or s["selected"] is selected]
    return {c["key"].lstrip("-"): (c["old"], c["new"]) for s in steps for c in s["changes"]}


def stable(text: str) -> str:
    """Text without what differs from build to build: versions of tool and knowledge, digests."""
    text = re.sub(r"(Written by rl-oom-advisor) \S+ knowledge \w+", r"\1 X, knowledge X", text)
    return re.sub(r"(由 rl-oom-advisor) \S+ (生成，知识库) \w+", r"\1 X \2 X", text)


def beginning(text: str, lines: int = 99) -> str:
    """What a person reads of a long text: its first lines."""
    return "\n".join(text.split("\n")[:lines]) + "\n"
