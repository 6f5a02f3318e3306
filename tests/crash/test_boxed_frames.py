"""Frames in the box that rich draws, whose heads it breaks where a path is longer than the box is wide."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.traceback import Traceback

from advisor.crash.read import read_text
from advisor.knowledge import load_knowledge

SOURCE = "def kernel(told):\n    raise RuntimeError(told)\n\n\ndef forward(told):\n    return kernel(told)\n"
OOM = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free."
)


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_frames_are_read_whatever_the_box_broke(tmp_path: Path, width: int) -> None:
    file = tmp_path / "lib/python3.12/site-packages/a_package_of_a_long_name/with_one_more_part/modeling_of_it.py"
    file.parent.mkdir(parents=True)
    file.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("modeling", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    printed = io.StringIO()
    try:
        module.forward(OOM)
    except RuntimeError:
        Console(file=printed, width=width).print(Traceback(), soft_wrap=False)
    log = printed.getvalue().partition("╯\n")[0] + "╯\nRuntimeError: " + OOM + "\n"
    crash = read_text(log, "log", load_knowledge().signatures)
    inner = [(frame.file, frame.line, frame.function, frame.text) for frame in crash.frames[-2:]]
    assert inner == [
        (str(file), 6, "forward", "return kernel(told)"),
        (str(file), 2, "kernel", "raise RuntimeError(told)"),
    ]


def test_frames_are_read_as_pytest_shows_them() -> None:
    shown = (
        f"FAILED tests/test_sft.py::test_pads - torch.OutOfMemoryError: {OOM}\n\n>       trainer.train()\n\n"
        "tests/test_sft.py:52: \n_ _ _ _\n.venv/lib/python3.12/site-packages/transformers/trainer.py:1742: in train\n"
        "    loss = self.training_step(model, inputs)\nsrc/mine/model.py:9: in forward\n    return x @ y\n"
    )
    crash = read_text(shown, "log", load_knowledge().signatures)
    assert [(frame.line, frame.function) for frame in crash.frames] == [(1742, "train"), (9, "forward")]
