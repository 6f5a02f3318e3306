"""What a dialect does not say of memory is assumed, and every assumption is printed."""

from __future__ import annotations

from pathlib import Path

from advisor.run.recipe import USUAL, assumed_mechanics
from advisor.session import SessionRequest, State, open_session
from tests.loops import each

DIALECT = """
framework: foo
title: Foo
package: foo
syntax: argparse
source: "example/foo@0 train.py"
recognised_by: [{programs: ["foo.train"]}]
algorithm: {fixed: grpo}
topology: {nodes: 1, gpus_per_node: --nproc_per_node, known: known(--nproc_per_node)}
settings:
  model: {knob: model.path, source: "example/foo@0 train.py"}
  rows: {knob: actor.micro_batch, type: int, default: 8, source: "example/foo@0 train.py"}
"""


def sitting(folder: Path, mechanics: str = "") -> State:
    (folder / "mine" / "frameworks").mkdir(parents=True)
    (folder / "mine" / "frameworks" / "foo.yaml").write_text(DIALECT + mechanics)
    script = folder / "run.sh"
    script.write_text("torchrun --nproc_per_node 8 -m foo.train --model Qwen/Qwen2.5-7B-Instruct --rows 4\n")
    return open_session(SessionRequest(script, gpus="8xA100-80GB", knowledge=(folder / "mine",)))


def test_a_dialect_without_mechanics_is_counted_by_assumptions_that_are_printed(tmp_path: Path) -> None:
    state = sitting(tmp_path)
    assert state.ledger.basis == "estimated"
    said = [text for text in state.ledger.assumed if "the dialect does not say" in text]
    assert len(said) == 1
    assert "trainer" in said[0]
    assert "weight_bytes" in said[0]


def test_only_what_a_dialect_leaves_out_is_assumed(tmp_path: Path) -> None:
    run = sitting(tmp_path, "mechanics: {trainer: deepspeed, weight_bytes: 2, engine_sleeps: false}\n").run
    assert not {"trainer", "weight_bytes", "engine_sleeps"} & set(run.assumed_mechanics)
    assert "gradient_bytes" in run.assumed_mechanics
    assert run.mechanics.gradient_bytes == USUAL["deepspeed"]["gradient_bytes"]
    assert run.mechanics.engine_sleeps is False


@each("trainer", USUAL)
def test_every_kind_of_trainer_has_its_habits(trainer: str) -> None:
    assert assumed_mechanics(trainer).trainer == trainer
