"""Optimizers by their names: what they keep, where, and whether they step in backward."""

from __future__ import annotations

import pytest

from advisor.memory.cells import Ledger
from advisor.memory.ledger import build_ledger
from advisor.run.run import KnobValue, Topology
from tests.loops import each
from tests.measured.published import ledger_of

from .runs import DEEPSPEED, FSDP, box, make_run

Knobs = dict[str, KnobValue | None]
PARAMETERS = 7_615_616_512


def ledger(optimizer: str | None, gpus: int = 1, **more: KnobValue) -> Ledger:
    knobs: Knobs = {
        "actor.load_precision": "bfloat16",
        "actor.optimizer": optimizer,
        "actor.gradient_checkpointing": True,
        "actor.micro_batch": 1,
        "data.total_tokens": 1024,
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    mechanics = FSDP if gpus > 1 else DEEPSPEED
    return build_ledger(make_run("Qwen2.5-7B", mechanics, Topology(1, gpus, gpus, 0), knobs, "sft"), box(gpus, 80))


def held(found: Ledger, owner: str, phase: str = "actor_update") -> tuple[int, int]:
    """Expected and high bytes."""
    summed = found.phase("gpu", phase)  # type: ignore[arg-type]
    assert summed is not None
    cells = [cell for cell in summed.cells if cell.owner == owner]
    return sum(cell.expected for cell in cells), sum(cell.high for cell in cells)


@each(
    ("optimizer", "per"),
    [
        (None, 4),
        ("adamw_torch", 4),
        ("adamw_bnb_8bit", 2),
        ("lion_32bit", 2),
        ("lion_8bit", 1),
        ("adamw_bf16", 6),
        ("sgd", 0),
        ("adafactor", 0),
        ("lomo", 0),
    ],
)
def test_moments_are_those_of_the_optimizer(optimizer: str | None, per: float) -> None:
    assert held(ledger(optimizer), "optimizer")[0] == per * PARAMETERS


def test_paged_moments_leave_a_full_card_and_are_no_need() -> None:
    found = ledger("paged_adamw_8bit")
    assert held(found, "optimizer") == (0, 2 * PARAMETERS)
    node = found.phase("host", "actor_update")
    assert node is not None
    assert [cell.high for cell in node.cells if cell.owner == "offloaded_optimizer"] == [2 * PARAMETERS]


@pytest.mark.parametrize("optimizer", ["adalomo", "galore_adamw_layerwise"])
def test_where_the_optimizer_steps_in_backward_only_one_gradient_waits(optimizer: str) -> None:
    assert held(ledger(optimizer), "gradients", "optimizer_step")[0] == 2 * 152064 * 3584
    assert held(ledger("adamw_torch"), "gradients", "optimizer_step")[0] == 2 * PARAMETERS


def test_a_setting_may_say_so_too_and_a_shard_of_the_gradient_waits() -> None:
    alone, sharded = (ledger("adamw_torch", gpus, actor__optimizer_in_backward=True) for gpus in (1, 4))
    whole, shard = (held(found, "gradients", "optimizer_step")[0] for found in (alone, sharded))
    assert shard == whole / 4


def test_the_step_then_needs_room_for_one_matrix() -> None:
    late, early = ledger("adamw_torch"), ledger("adamw_torch", actor__optimizer_in_backward=True)
    assert held(late, "buffers", "optimizer_step")[0] == 2 * PARAMETERS
    assert held(early, "buffers", "optimizer_step")[0] == 2 * 152064 * 3584


def test_low_rank_moments_are_said_to_be_an_estimate() -> None:
    assert any("projections" in said for said in ledger("galore_adamw").assumed)
    assert ledger("galore_adamw").basis == "estimated"


@each(
    ("torch", "transformers", "extra"),
    [
        ("2.7.1", "4.55.0", 2),
        ("2.8.0", "4.53.3", 2),
        ("2.8.0", "4.54.0", 0),
        ("2.9.1+cu128", None, 0),
        (None, "4.57", 2),
    ],
)
def test_the_default_is_fused_where_both_libraries_are_new(
    torch: str | None, transformers: str | None, extra: int
) -> None:
    libraries = {name: version for name, version in (("torch", torch), ("transformers", transformers)) if version}
    run = {
        "framework": "trl",
        "model": "Qwen/Qwen2.5-7B",
        "gpus": "1xH100-80GB",
        "libraries": {"trl": "1.0.0", **libraries},
        "settings": {"dtype": "bfloat16", "per_device_train_batch_size": 1},
    }
    assert held(ledger_of(run), "buffers", "optimizer_step")[0] == pytest.approx(extra * PARAMETERS, abs=10**8)
