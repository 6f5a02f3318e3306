"""Python configs, told and edited, beside what Python makes of them: exact, or said to be unknown, or refused."""

from __future__ import annotations

import sys
import types
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from advisor.script.document import EditRefused, EditRequest
from advisor.script.edit import rewrite
from advisor.script.reader import read_script

KEY = "batch_size"
HEAD = "import dataclasses, os\nfrom trl import GRPOConfig, GRPOTrainer\n"
TAIL = "\nGRPOTrainer(model='org/M-1B', args=cfg).train()\n"
MAKE = "cfg = GRPOConfig(output_dir='x', batch_size=n)"
KNOWN = {
    "a variable": f"n = 8\n{MAKE}",
    "set anew before": f"n = 8\nn = 4\n{MAKE}",
    "set anew behind": f"n = 8\n{MAKE}\nn = 4",
    "halved": f"n = 8\nn //= 2\n{MAKE}",
    "two at once": f"m, n = 4, 8\n{MAKE}",
    "one function's and another's": "n = 8\ndef f(n):\n    return n\n" + MAKE,
    "of its own function": "n = 8\ndef f():\n    n = 4\n    cfg = GRPOConfig(batch_size=n)\n    return cfg\ncfg = f()",
    "only there": f"if True:\n    n = 8\n{MAKE}",
    "in the program's own part": "n = 8\nif __name__ == '__main__':\n    n = 4\n    " + MAKE,
    "an attribute behind": "cfg = GRPOConfig(batch_size=8)\ncfg.batch_size = 4",
    "an attribute twice": "cfg = GRPOConfig(batch_size=8)\ncfg.batch_size = 4\ncfg.batch_size = 16",
    "an attribute alone": "cfg = GRPOConfig(output_dir='x')\ncfg.batch_size = 4",
    "spread": "common = dict(batch_size=8)\ncfg = GRPOConfig(output_dir='x', **common)",
    "spread as it stands": "cfg = GRPOConfig(output_dir='x', **{'batch_size': 8})",
}
OPEN = {
    "under a condition": f"n = 8\nif os.environ.get('NOTHING'):\n    n = 4\n{MAKE}",
    "in a loop": f"n = 1\nfor _ in range(3):\n    n *= 2\n{MAKE}",
    "of a loop": f"for n in (8, 4):\n    pass\n{MAKE}",
    "global": f"n = 8\ndef f():\n    global n\n    n = 4\nf()\n{MAKE}",
    "tried": f"n = 8\ntry:\n    n = int('4')\nexcept ValueError:\n    n = 2\n{MAKE}",
    "an attribute under a condition": "cfg = GRPOConfig(batch_size=8)\nif cfg:\n    cfg.batch_size = 4",
    "an attribute halved": "cfg = GRPOConfig(batch_size=8)\ncfg.batch_size //= 2",
    "setattr": "cfg = GRPOConfig(batch_size=8)\nsetattr(cfg, 'batch_size', 4)",
    "setattr of anything": "cfg = GRPOConfig(batch_size=8)\nfor k in ('batch_size',):\n    setattr(cfg, k, 4)",
    "replaced": "cfg = GRPOConfig(batch_size=8)\ncfg = dataclasses.replace(cfg, batch_size=4)",
    "spread and changed": "common = dict(batch_size=8)\ncommon.update(batch_size=4)\ncfg = GRPOConfig(**common)",
    "by a trainer's args": "cfg = GRPOConfig(batch_size=8)\nt = GRPOTrainer(args=cfg)\nt.args.batch_size //= 2",
}


def run(text: str) -> int | None:
    """What the trainer that trains last gets, by running the file with made-up classes."""
    got: list[int | None] = []

    @__import__("dataclasses").dataclass
    class GRPOConfig:
        output_dir: str = ""
        batch_size: int | None = None

    class GRPOTrainer:
        def __init__(self, model: str = "", args: GRPOConfig | None = None) -> None:
            self.args = args

        def train(self) -> None:
            got.append(self.args.batch_size if self.args else None)

    trl = types.ModuleType("trl")
    trl.GRPOConfig, trl.GRPOTrainer = GRPOConfig, GRPOTrainer  # type: ignore[attr-defined]
    before, sys.modules["trl"] = sys.modules.get("trl"), trl
    try:
        exec(compile(text, "run.py", "exec"), {"__name__": "__main__"})
    finally:
        sys.modules.pop("trl")
        if before is not None:
            sys.modules["trl"] = before
    return got[-1]


def read(folder: Path, body: str):
    (folder / "run.py").write_text(HEAD + body + TAIL)
    return read_script(folder / "run.py")


@pytest.mark.parametrize("name", [*KNOWN, *OPEN])
def test_what_is_told_is_what_the_trainer_gets(name: str, tmp_path: Path) -> None:
    body = {**KNOWN, **OPEN}[name]
    setting = read(tmp_path, body).launches[0].effective().get(KEY)
    if name in KNOWN:
        assert setting is not None
        assert setting.value == str(run(HEAD + body + TAIL))
    else:
        assert setting is None or not setting.resolved


@pytest.mark.parametrize("name", [*KNOWN, *OPEN])
def test_what_is_set_is_what_the_trainer_gets(name: str, tmp_path: Path) -> None:
    script = read(tmp_path, {**KNOWN, **OPEN}[name])
    with suppress(EditRefused) if name in OPEN else nullcontext():
        (done,) = rewrite(script, 0, [EditRequest(KEY, "2")])
        assert run(done.new.decode()) == 2


def test_of_two_trainers_with_a_config_each_nobody_guesses(tmp_path: Path) -> None:
    body = "a = GRPOConfig(batch_size=8)\ncfg = GRPOConfig(batch_size=4)\nGRPOTrainer(args=a).train()"
    with pytest.raises(EditRefused, match="nothing tells which of them"):
        rewrite(read(tmp_path, body), 0, [EditRequest(KEY, "2")])
    body = "cfg = GRPOConfig(batch_size=8)\nGRPOTrainer(args=cfg).train()"
    assert rewrite(read(tmp_path, body), 0, [EditRequest(KEY, "2")])
