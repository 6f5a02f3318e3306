"""A framework with a topology that no other has, as one YAML file and no code: recognised, counted, patched.

The file is that of docs/adding-a-framework.md, section 5.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor.knowledge import open_knowledge
from advisor.rules.functions import FUNCTIONS
from advisor.session import SessionRequest, State, open_session
from tests.plan.planned import Planned, changes, out_of_memory, planned

__all__ = ["planned"]
DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = (
    "python3 -m foo.train --model Qwen/Qwen2.5-7B-Instruct --world_size {world} --learners {learners} "
    "--engine_width {width} --rows 64 --group 8\n"
)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    page = (DOCS / "adding-a-framework.md").read_text(encoding="utf-8")
    text = next(block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "framework: foo\n" in block)
    (tmp_path / "mine" / "frameworks").mkdir(parents=True)
    (tmp_path / "mine" / "frameworks" / "foo.yaml").write_text(text)
    return tmp_path / "mine"


def opened(mine: Path, world: int, learners: int, width: int) -> State:
    script = mine.parent / "run.sh"
    script.write_text(SCRIPT.format(world=world, learners=learners, width=width))
    return open_session(SessionRequest(script, gpus="8xA100-80GB", knowledge=(mine,)))


@pytest.mark.parametrize(
    ("world", "learners", "width", "nodes", "rollout", "colocated"),
    [(8, 4, 2, 1, 4, False), (16, 6, 4, 2, 8, False), (24, 8, 1, 3, 16, False), (8, 8, 1, 1, 8, True)],
)
def test_its_gpus_are_counted_as_its_file_says(
    mine: Path, world: int, learners: int, width: int, nodes: int, rollout: int, colocated: bool
) -> None:
    assert open_knowledge([mine]).refused == ()
    run = opened(mine, world, learners, width).run
    placed = run.topology
    assert run.framework == "foo"
    assert (placed.nodes, placed.actor_gpus, placed.rollout_gpus) == (nodes, learners, rollout)
    assert (placed.tensor_parallel, placed.colocated, placed.asked) == (width, colocated, world)
    assert run.knobs["actor.micro_batch"].value == 64 * 8 // learners


def test_its_rows_are_lowered_in_its_script(mine: Path, planned: Planned) -> None:
    script = SCRIPT.format(world=8, learners=4, width=2)
    steps = planned(script, out_of_memory("foo/learner.py"), "--knowledge", str(mine))
    (change,) = changes(steps["lower-actor-micro-batch"]).items()
    assert change[0] == "rows"
    assert change[1][0] == "64"
    assert int(change[1][1] or 0) < 64


def test_every_function_is_on_the_page_of_the_rules() -> None:
    page = (DOCS / "rules.md").read_text(encoding="utf-8")
    assert [name for name in FUNCTIONS if f"| `{name}(" not in page] == []
