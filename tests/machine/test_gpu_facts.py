"""knowledge/gpus.yaml: plausible, unambiguous, sourced."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from advisor.knowledge.schema import GpuFact
from advisor.machine.gpu_spec import parse_gpus
from advisor.units import GIB
from tests.loops import each
from tests.plain_yaml import plain_yaml

FILE = Path(__file__).parents[2] / "knowledge" / "gpus.yaml"
FACTS = msgspec.convert(plain_yaml(FILE), tuple[GpuFact, ...])


@each("card", FACTS, ids=lambda card: card.name)
def test_a_card_shows_a_little_less_than_it_is_sold_with(card: GpuFact):
    sold = re.search(r"(\d+)GB$", card.name)
    assert sold is not None, "the name ends in what the card is sold with"
    assert 0.9 * int(sold.group(1)) <= card.total_bytes / GIB <= int(sold.group(1))
    assert card.source


@each("card", FACTS, ids=lambda card: card.name)
def test_a_card_is_found_by_each_of_its_names(card: GpuFact):
    assert parse_gpus(f"8x{card.name}", FACTS)[0].total_bytes == card.total_bytes
    for alias in card.aliases:
        found = parse_gpus(alias, FACTS)[0]
        assert (found.name, bool(found.problem)) == (card.name, card.unified)


def test_no_name_is_given_to_two_cards():
    names = [name.lower() for card in FACTS for name in {card.name, *card.aliases}]
    assert sorted(names) == sorted(set(names))


@each(
    ("printed", "name"),
    [
        ("NVIDIA A100-SXM4-40GB", "A100-40GB"),
        ("NVIDIA A100 80GB PCIe", "A100-80GB"),
        ("NVIDIA A800-SXM4-80GB", "A800-80GB"),
        ("NVIDIA H100 80GB HBM3", "H100-80GB"),
        ("NVIDIA H100 NVL", "H100-94GB"),
        ("NVIDIA H20", "H20-96GB"),
        ("NVIDIA H200", "H200-141GB"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090-24GB"),
        ("NVIDIA RTX A6000", "RTX-A6000-48GB"),
        ("Tesla V100-SXM2-32GB", "V100-32GB"),
        ("Quadro RTX 6000", "Quadro-RTX-6000-24GB"),
        ("NVIDIA Quadro RTX 8000", "Quadro-RTX-8000-48GB"),
        ("Tesla P100-PCIE-16GB", "P100-16GB"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX-6000-Ada-48GB"),
        ("AMD Instinct MI300X", "MI300X-192GB"),
        ("AMD Instinct MI355X", "MI355X-288GB"),
        ("NVIDIA B300 SXM6 AC", "B300-288GB"),
        ("NVIDIA GB200", "GB200-192GB"),
        ("NVIDIA GB300", "GB300-288GB"),
        ("NVIDIA GeForce RTX 5060 Ti", "RTX-5060-Ti-16GB"),
        ("Ascend 910B3", "Ascend-910B-64GB"),
        ("Ascend 910B4", "Ascend-910B4-32GB"),
        ("Ascend910", "Ascend-910C-64GB"),
    ],
)
def test_the_names_drivers_print_are_known(printed: str, name: str):
    (card,) = parse_gpus(printed, FACTS)
    assert (card.name, card.problem) == (name, "")


def test_a_name_of_several_generations_is_settled_by_its_size_alone():
    """Quadro RTX 6000 (24 GB), RTX 6000 Ada (48 GB) and RTX PRO 6000 (96 GB) are all sold as "RTX 6000"."""
    (card, *others) = parse_gpus("8xRTX-6000", FACTS)
    assert (len(others), card.total_bytes) == (7, None)
    assert "may be Quadro-RTX-6000-24GB or RTX-6000-Ada-48GB or RTX-PRO-6000-96GB" in card.problem
    assert parse_gpus("8xRTX-6000-48GB", FACTS)[0].name == "RTX-6000-Ada-48GB"
