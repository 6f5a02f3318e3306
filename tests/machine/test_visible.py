"""CUDA_VISIBLE_DEVICES as CUDA reads it."""

from __future__ import annotations

import pytest

from advisor.machine.inventory import Gpu
from advisor.machine.visible import visible_gpus

ALIKE = tuple(Gpu(index, "A100", 40, uuid=f"GPU-{index}f00") for index in range(4))


def seen(value: str) -> list[int]:
    return [gpu.index for gpu in visible_gpus(ALIKE, {"CUDA_VISIBLE_DEVICES": value}).gpus]


@pytest.mark.parametrize(
    ("value", "indices"),
    [
        ("0,1,2,3", [0, 1, 2, 3]),
        ("2, 0", [2, 0]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("0,-1,1", [0]),
        ("1,9,2", [1]),
        ("1,1", []),
        ("GPU-3f", [3]),
        ("gpu-0f00,2", [0, 2]),
        ("GPU-", []),
        ("zero", []),
    ],
)
def test_each_entry_picks_the_cards_that_cuda_would_pick(value: str, indices: list[int]):
    assert seen(value) == indices


def test_without_the_variable_every_card_is_seen():
    assert visible_gpus(ALIKE, {}).gpus == ALIKE


def test_an_entry_that_names_nothing_is_said_and_cleaned():
    problem = visible_gpus(ALIKE, {"CUDA_VISIBLE_DEVICES": "0,\x1b[31m7"}).problem
    assert "'7'" in problem
    assert "\x1b" not in problem


def test_a_mig_instance_is_named_by_its_uuid():
    instances = (
        Gpu(0, "A100 MIG", 20, mig="3g.20gb", uuid="MIG-aa"),
        Gpu(0, "A100 MIG", 20, mig="3g.20gb", uuid="MIG-bb"),
    )
    assert visible_gpus(instances, {"CUDA_VISIBLE_DEVICES": "MIG-bb"}).gpus == instances[1:]


def test_mixed_cards_have_an_uncertain_order():
    mixed = (Gpu(0, "T4", 15), Gpu(1, "A100", 40))
    assert "CUDA_DEVICE_ORDER" in visible_gpus(mixed, {}).problem
    assert visible_gpus(mixed, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}).problem == ""
    assert visible_gpus(ALIKE, {}).problem == ""
