"""A plan from a script and a log as a user would have it: through the command, read back as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advisor.session import SessionRequest, State, open_session
from tests.plan.generated import made_up
from tests.stories.told import Story, tell

Step = dict[str, Any]
Planned = Callable[..., dict[str, Step]]

FRAGMENT = (
    "Of the allocated memory {held} GiB is allocated by PyTorch, and {idle} GiB is reserved by PyTorch but unallocated."
)


def out_of_memory(source: str, version: str = "", asked: str = "2.32", held: str = "75.65", idle: str = "1.05") -> str:
    """A log that ends in the update of rank 1. `source`: the path of the trainer's frame."""
    shown = f"[INFO:swift] swift.__version__: {version}\n" if version else ""
    return (
        f"{shown}Train:   0%|          | 12/4999 [03:10<22:15:01, 16.1s/it]\n"
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/x/transformers/trainer.py", line 3698, in training_step\n'
        "[rank1]:     loss = self.compute_loss(model, inputs, num_items_in_batch=num_items_in_batch)\n"
        f'[rank1]:   File "/x/{source}", line 489, in compute_loss\n'
        "[rank1]:     per_token_logps = self._get_per_token_logps(model, inputs)\n"
        f"[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked} GiB. GPU 1 has a total "
        "capacity of 79.15 GiB of which 1.31 GiB is free. Process 3211 has 77.82 GiB memory in use. "
        f"{FRAGMENT.format(held=held, idle=idle)}\n"
    )


def swift(**settings: object) -> str:
    """A `swift rlhf` launch; NPROC is the number of training processes of NPROC + 1 cards."""
    processes = int(str(settings.pop("NPROC", 8)))
    cards = ",".join(map(str, range(int(str(settings.pop("CARDS", processes))))))
    words = " ".join(f"--{key} {value}" for key, value in settings.items())
    return f"CUDA_VISIBLE_DEVICES={cards} NPROC_PER_NODE={processes} swift rlhf --rlhf_type grpo {words}\n"


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Planned:
    """(script, log, more words) → the plan's steps by id; what is not proposed under "not:ID"."""

    def plan(script: str, log: str, *more: str, name: str = "run.sh") -> dict[str, Step]:
        monkeypatch.chdir(tmp_path)
        (tmp_path / name).write_text(script)
        (tmp_path / "train.log").write_text(log)
        words = ["diagnose", name, "--log", "train.log", "--format", "json", "--gpus", "8xA100-80GB", *more]
        code, out, err = tell(words, capsys)
        assert code == 0, err
        answer = json.loads(out)
        steps = {step["id"]: step for step in answer["plan"]}
        return {**steps, **{f"not:{n['id']}": n for n in answer["not_proposed"]}}

    return plan


def asked_of(story: Story, folder: Path) -> SessionRequest:
    """What the story's words ask for, of its files in a folder."""
    given: dict[str, list[str]] = {}
    for word, value in zip(story.machine[::2], story.machine[1::2], strict=True):
        given.setdefault(word, []).append(value)
    return SessionRequest(
        script=folder / story.script,
        logs=(folder / story.log,),
        gpus=given["--gpus"][0],
        host_ram=given["--host-ram"][0] if "--host-ram" in given else None,
        nodes=int(given["--nodes"][0]) if "--nodes" in given else None,
        libraries=tuple(given.get("--lib", ())),
    )


def opened(seed: int, folder: Path) -> State:
    """The session of a made-up run."""
    run = made_up(seed)
    (folder / "run.sh").write_text(run.script)
    (folder / "train.log").write_text(run.log)
    files = SessionRequest(script=folder / "run.sh", logs=(folder / "train.log",), gpus=run.gpus, host_ram=run.host_ram)
    return open_session(files)


def changes(step: Step) -> dict[str, tuple[str | None, str | None]]:
    """Key without dashes → (old, new)."""
    return {c["key"].lstrip("-"): (c["old"], c["new"]) for c in step["changes"]}


def selected(steps: dict[str, Step]) -> list[str]:
    """Ids of what is switched on, in order."""
    return [name for name, step in steps.items() if step.get("selected")]
