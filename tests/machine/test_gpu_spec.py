"""GPUs described in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.machine.gpu_spec import cards_named, gpus_from, parse_gpus, read_cards, unsized
from advisor.machine.inventory import Gpu
from advisor.units import GIB
from tests.loops import each

from .facts import A100_40, A100_80, FACTS, GH200, H100, H100_NVL, RTX_3090, T4, Fact


@each(
    ("text", "count", "card"),
    [
        ("8xA100-40GB", 8, A100_40),
        ("8xa100-40gb", 8, A100_40),
        ("A100 40GB 8 GPUs", 8, A100_40),
        ("单机5张3090卡", 5, RTX_3090),
        ("3090*2", 2, RTX_3090),
        ("8 x A100 80GB", 8, A100_80),
        ("8×A100-80G", 8, A100_80),
        ("A100-80GBx8", 8, A100_80),
        ("1xNVIDIA A100-SXM4-80GB", 1, A100_80),
        ("NVIDIA A100 80GB PCIe", 1, A100_80),
        ("4xH100", 4, H100),
        ("2xH100-NVL", 2, H100_NVL),
        ("2xH100-94GB", 2, H100_NVL),
        ("NVIDIA H100 80GB HBM3", 1, H100),
        ("NVIDIA GH200 480GB", 1, GH200),
        ("2xRTX-3090-24GB", 2, RTX_3090),
        ("2x3090", 2, RTX_3090),
        ("NVIDIA GeForce RTX 3090", 1, RTX_3090),
        ("Tesla T4", 1, T4),
        ("4xT4-15GB", 4, T4),
        ("single node with 8 NVIDIA H100 GPUs (80GB HBM3 each)", 8, H100),
        ("3 sets of machines containing 8 A100s (40G)", 8, A100_40),
        ("2 nodes, 8xA100-80GB, 96 CPU cores", 8, A100_80),
        ("two H100s", 2, H100),
        ("6xH100s, 4 train 2 inference", 6, H100),
        ("8 NVIDIA 3090 GPUs, each with 24GB VRAM; peak 14GB per card", 8, RTX_3090),
        ("two 24 GB 3090s", 2, RTX_3090),
        ("8×A100 80GB; 64 vCPU; 1TB RAM", 8, A100_80),
        ("H100 80GB x 4, 2 for vLLM", 4, H100),
        ("8x A100 GPUs, 40GB each", 8, A100_40),
        ("gpu:t4:4", 4, T4),
        ("Tesla T4 ×2 (Kaggle)", 2, T4),
        ("A100 80GB x 8 per node, 4 nodes", 8, A100_80),
        ("A100x8 80G", 8, A100_80),
        ("8x H100 (SXM, 80GB), 2x AMD EPYC 7763, 1 TB RAM", 8, H100),
        ("A100 80GB, 8 GPUs", 8, A100_80),
        ("gpu_8x_a100_80gb_sxm4", 8, A100_80),
        ("DGX A100 640GB", 8, A100_80),
        ("T4 (g9.huge, 4 GPUs)", 4, T4),
        ("ml.p4d.24xlarge", 8, A100_40),
        ("16x A100 80GB in 2 nodes", 8, A100_80),
        ("4机32卡A100 80G", 8, A100_80),
        ("GPU 0-3: Tesla T4", 4, T4),
        ("--gpus-per-node=t4:4 --nodes=2", 4, T4),
        ("4x T4 or 8x T4", 4, T4),
        ("GPU 0: Tesla T4 (UUID: GPU-9d2b3a10-4c5e-8f70-a100-112233445566)\nGPU 1: Tesla T4 (UUID: x)", 2, T4),
        ("index, uuid, name, memory.total [MiB]\n0, GPU-1, Tesla T4, 15360\n1, GPU-2, Tesla T4, 15360", 2, T4),
        ("07:00.0 3D controller: NVIDIA Corporation TU104GL [Tesla T4] (rev a1)\n02:00.0 VGA: Matrox", 1, T4),
        ("n1  Fri Nov 28 09:00:00 2026\n[0] Tesla T4 | 35°C, 0 % | 12 / 15360 MB | bob(12M)", 1, T4),
        ("A100-80GB:8", 8, A100_80),
        ("name='Tesla T4', total_memory=15096MB, multi_processor_count=40", 1, T4),
        ("cuda:0 (Tesla T4, 14910MiB)\ncuda:1 (Tesla T4, 14910MiB)", 2, T4),
        ("GPU[0] : Card series: Tesla T4\nGPU[0] : Card model: 0x74a1\nGPU[1] : Card series: Tesla T4", 2, T4),
        ("CfgTRES=cpu=192,mem=2000G,gres/gpu=8,gres/gpu:t4=8", 8, T4),
        ("8 GPUs (2 nodes x 4 T4)", 4, T4),
        ("|   0  Tesla T4    On  | 00000000:07:00.0 Off |  0 |\n|  0  N/A  N/A  123  C  python  400MiB |", 1, T4),
        ('accelerators: {"T4": 4}', 4, T4),
        ("Name: Tesla T4, count: 2", 2, T4),
        ("Tesla T4, 4 of them", 4, T4),
        ("4 of the 8 T4 cards", 4, T4),
        ("|   0  Tesla T4    On  | 00000000:07:00.0 Off |  0 |\n| N/A 31C 62W / 400W | 1MiB / 15360MiB |", 1, T4),
    ],
)
def test_known_cards_get_what_programs_see_on_them(text: str, count: int, card: Fact):
    gpus = parse_gpus(text, FACTS)
    assert [gpu.index for gpu in gpus] == list(range(count))
    assert {(gpu.name, gpu.total_bytes, gpu.problem) for gpu in gpus} == {(card.name, card.total_bytes, "")}


def test_a_part_of_a_card_has_a_part_of_its_memory():
    listed = "GPU 0: A100-SXM4-80GB (UUID: x)\n  MIG 3g.40gb Device 0: (UUID: y)\n  MIG 1g.10gb Device 1: (UUID: z)"
    drawn = "| 0 A100-SXM4-80GB On | x |\n| 1 A100-SXM4-80GB On | x |\n| 0 1 0 0 | 37MiB / 40192MiB | 42 |"
    told = {
        "2x A100-SXM4-40GB MIG 3g.20gb": [20, 20], "nvidia.com/mig-3g.20gb: 2": [20, 20], "A100-20C": [20],
        "2x MIG 1g.10gb (A100 80GB)": [10, 10], "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb": [40], "A100 2g.20gb": [20],
        listed: [40, 10], listed + "\nGPU 1: A100-SXM4-80GB (UUID: x)": [40, 10, 79], drawn: [39, 79],
    }  # fmt: skip
    for text, sizes in told.items():
        assert [round((card.total_bytes or 0) / GIB) for card in parse_gpus(text, FACTS)] == sizes, text


def test_what_is_left_out_or_may_be_meant_otherwise_is_said():
    told = {
        "16x T4 in 2 nodes": "8 on each", "16 A100, 3 nodes": "3 nodes", "4x T4 or 8x T4": "8x T4",
        "8xT4, 4 GPUs": "8 cards and 4", "8xT4, NVSwitch7": "NVSwitch7",
    }  # fmt: skip
    assert {text for text, word in told.items() if word not in " ".join(read_cards(text, FACTS)[1].notes)} == set()


def test_kinds_joined_by_a_word_are_several():
    cards = parse_gpus("2xH100 + 2xA100-40GB", FACTS)
    assert [card.name for card in cards] == [H100.name, H100.name, A100_40.name, A100_40.name]
    for text in ("3xA100 (1x 40GB, 2x 80GB)", "3 GPUs: 1x A100 40GB and 2x A100 80GB"):
        assert [card.name for card in parse_gpus(text, FACTS)] == [A100_40.name, *[A100_80.name] * 2]


@each(
    ("text", "size", "nodes"),
    [
        ("8 GPUs, each of them has 16GB VRAM (one node); about 10GB occupied", 16, 1),
        ("2 nodes x 8", None, 2),
        ("4 nodes, 8 cards of 40 GB each", 40, 4),
        ("8 GPUs with 80GB, 2 nodes", 80, 2),
    ],
)
def test_a_count_with_a_size_is_of_cards_of_that_size(text: str, size: int | None, nodes: int | None):
    cards = parse_gpus(text, FACTS)
    assert [card.total_bytes for card in cards] == [size * GIB if size else None] * 8
    assert read_cards(text, FACTS)[1].nodes == nodes


def test_nodes_are_told_where_the_cards_are_those_of_each():
    told = {"2 8xA100 nodes": 2, "4*T4 (each node), 2 nodes": 2, "16 A100, 3 nodes": None, "8xA100": None}
    assert {text: read_cards(text, FACTS)[1].nodes for text in told} == told


def test_an_unknown_name_with_a_size_gives_that_size():
    (gpu,) = parse_gpus("FooCard-24GB", FACTS)
    assert (gpu.name, gpu.total_bytes) == ("FooCard-24GB", 24 * GIB)


def test_a_known_chip_with_another_size_gives_that_size():
    assert parse_gpus("A100-20GB", FACTS)[0].total_bytes == 20 * GIB


def test_a_name_that_fits_two_cards_takes_the_smaller_and_says_so():
    (gpu,) = parse_gpus("A100", FACTS)
    assert gpu.total_bytes == A100_40.total_bytes
    assert "A100-40GB or A100-80GB" in gpu.problem


def test_several_kinds_on_one_node():
    gpus = parse_gpus("2xA100-40GB, 1xT4", FACTS)
    assert [(gpu.index, gpu.name) for gpu in gpus] == [(0, "A100-40GB"), (1, "A100-40GB"), (2, "T4-16GB")]


@each("text", ["", "8x", "x", "0xA100-40GB", "9999999xA100-40GB", "FooCard", "4x-", "Foo-1MB"])
def test_what_cannot_be_understood_is_refused_with_examples(text: str):
    with pytest.raises(ValueError, match="8xA100-40GB"):
        parse_gpus(text, FACTS)


@pytest.mark.parametrize("text", ["2xB999", "2x Zeta 910X", "2xnpu-77"])
def test_an_unknown_name_with_a_number_is_a_card_of_unknown_memory(text: str):
    cards = parse_gpus(text, FACTS)
    assert [card.total_bytes for card in cards] == [None, None]
    (told,) = unsized(cards)
    assert "add its memory" in told
    with pytest.raises(ValueError, match="add its memory"):
        gpus_from(text, FACTS)


def test_a_count_of_cards_that_nobody_knows_is_refused_with_the_form_and_a_bare_count_is_of_unnamed_ones() -> None:
    from advisor.machine.describe import described

    for named in (True, False):
        with pytest.raises(ValueError, match="FOO99-24GB"):
            described(FACTS, gpus="8xFOO99", named=named)
    cards = described(FACTS, gpus="8").gpus
    assert len(cards) == 8
    assert "which cards" in cards[0].problem


def test_too_many_cards_for_a_node_point_to_nodes():
    with pytest.raises(ValueError, match="--nodes"):
        parse_gpus("1000xT4,1000xT4", FACTS)


def cards_or_sentence(text: str) -> tuple[Gpu, ...] | str:
    try:
        return parse_gpus(text, FACTS)
    except ValueError as error:
        return str(error)


@given(st.text(max_size=60))
def test_any_text_gives_cards_or_one_clean_sentence(text: str):
    answer = cards_or_sentence(text)
    assert answer
    if isinstance(answer, str):
        assert not set(answer) & set("\n\x1b\x07\x9b")
    else:
        assert all(gpu.total_bytes or gpu.name for gpu in answer)


def test_run_files_give_text_or_a_list():
    assert [gpu.name for gpu in gpus_from("2xT4", FACTS)] == ["T4-16GB", "T4-16GB"]
    listed = gpus_from([{"name": "mine", "total_bytes": 5 * GIB}, {"name": "T4"}], FACTS)
    assert [(gpu.index, gpu.name, gpu.total_bytes) for gpu in listed] == [
        (0, "mine", 5 * GIB),
        (1, "T4-16GB", T4.total_bytes),
    ]


@each("value", [None, 8, [], {}, ["T4"], [{"total_bytes": 5}], [{"name": "a", "total_bytes": -1}]])
def test_run_files_with_other_gpus_are_refused(value: object):
    with pytest.raises(ValueError, match="gpus"):
        gpus_from(value, FACTS)


@each("total", [True, 1.5, "80GB", 0])
def test_a_size_that_is_no_number_of_bytes_is_refused(total: object):
    with pytest.raises(ValueError, match="total_bytes"):
        gpus_from([{"name": "a", "total_bytes": total}], FACTS)


RTX_6000S = (
    Fact("Quadro-RTX-6000-24GB", ("Quadro-RTX-6000",), 24 * GIB),
    Fact("RTX-6000-Ada-48GB", ("RTX-6000-Ada",), 48 * GIB),
    Fact("RTX-PRO-6000-96GB", ("RTX-PRO-6000",), 96 * GIB),
)


def test_a_name_that_leaves_the_kind_out_is_asked_for_it_and_its_size_may_answer() -> None:
    (unsized,) = parse_gpus("RTX-6000", RTX_6000S)
    assert unsized.total_bytes is None
    assert "may be Quadro-RTX-6000-24GB or RTX-6000-Ada-48GB or RTX-PRO-6000-96GB" in unsized.problem
    (card,) = parse_gpus("RTX-6000-48GB", RTX_6000S)
    assert card.name == "RTX-6000-Ada-48GB"


def test_a_card_that_shares_the_hosts_memory_says_so() -> None:
    (card,) = parse_gpus("GB10", (Fact("GB10-128GB", ("GB10",), 121 * GIB, unified=True),))
    assert "host" in card.problem


@each(
    ("name", "vendor"),
    [("Ascend-950PR-112GB", "ascend"), ("910D-96GB", "ascend"), ("MI400X-432GB", "amd"), ("RTX-7090-48GB", "nvidia")],
)
def test_a_card_that_nobody_described_is_known_by_its_maker(name: str, vendor: str) -> None:
    assert parse_gpus(name, ())[0].vendor == vendor


def test_a_card_is_found_in_a_phrase_and_words_without_a_number_are_left_out() -> None:
    found = {text: [card.name for card in parse_gpus(text, FACTS)] for text in (
        "single A100 40 GB, Google Colab", "Google Colab T4", "2x NVIDIA RTX 3090 in my box", "AI MAX+395",
    )}  # fmt: skip
    assert found == {
        "single A100 40 GB, Google Colab": ["A100-40GB"],
        "Google Colab T4": ["T4-16GB"],
        "2x NVIDIA RTX 3090 in my box": ["RTX-3090-24GB"] * 2,
        "AI MAX+395": ["AI MAX+395"],
    }


@each(("text", "count"), [("2 cards", 2), ("4 GPUs", 4), ("8卡", 8), ("两张显卡", 2), ("0 cards", None)])
def test_a_bare_count_is_a_number_of_cards_of_which_nothing_is_known(text: str, count: int | None) -> None:
    found = cards_or_sentence(text)
    assert (None if isinstance(found, str) else len(found)) == count
    assert isinstance(found, str) or {card.total_bytes for card in found} == {None}


@each("text", ["Kaggle", "my own box", "73 GB disk", "1 TB NVMe", "Kaggle, 73 GB disk"])
def test_words_that_name_no_card_are_a_note_where_a_death_is_told(text: str) -> None:
    cards, told = cards_named(text, FACTS)
    assert cards == ()
    assert "names no card" in told.notes[0]
    with pytest.raises(ValueError, match="8xA100-40GB"):
        parse_gpus(text, FACTS)


def test_cards_told_twice_are_counted_once() -> None:
    cards = parse_gpus("8 GPUs, 24G*8", FACTS)
    assert [round((card.total_bytes or 0) / GIB) for card in cards] == [24] * 8
    assert [card.name for card in parse_gpus("two 40G A100 GPUs and one 80G", FACTS)] == [
        *(A100_40.name, A100_40.name),
        A100_80.name,
    ]
    assert (read_cards("8台8卡A100 80g", FACTS)[1].nodes, read_cards("8x 80G A100", FACTS)[1].nodes) == (8, None)
