"""The nodes of a Ray cluster in the gauges: a line each, who is silent, and where they differ."""

from __future__ import annotations

import pytest

from advisor.machine.cluster.live import ClusterSnapshot, NodeGauge
from advisor.machine.inventory import Gpu, Host, Machine
from advisor.tui.cluster_rows import cluster_rows, gpu_heights
from advisor.tui.ui_text import texts, width_of

from .made_state import G

NOW = 1000.0


def node(name: str, *used: int | None, driver: str = "550.54.15", **more: object) -> NodeGauge:
    cards = tuple(
        Gpu(index, "H100", 80 * G, None if size is None else size * G, utilisation=50 + index)
        for index, size in enumerate(used)
    )
    host = Host(2000 * G, available_bytes=1500 * G, used_bytes=500 * G)
    return NodeGauge(name, Machine(1, cards, host, driver=driver, name=name), NOW - 1, **more)  # type: ignore[arg-type]


def shown(*nodes: NodeGauge, problem: str = "", width: int = 78, asked: bool = True) -> str:
    return texts(cluster_rows(ClusterSnapshot(nodes, problem, asked), NOW, width))


def test_a_line_a_node_shows_each_card_and_the_fullest_in_numbers() -> None:
    row = shown(node("n01", 0, 40, 80, None)).splitlines()[1]
    assert row.split()[:3] == ["n01", "▁▄█?", "80.0/80.0G"]
    assert "53%" in row
    assert "500/2000G  25 %" in row


@pytest.mark.parametrize("width", [58, 78, 118])
def test_no_line_is_wider_than_the_screen_however_long_a_name(width: int) -> None:
    nodes = [node("a-node-with-a-very-long-name.cluster.example", *[10] * 40), node("节点" * 12, 1), node("c")]
    rows = cluster_rows(ClusterSnapshot(tuple(nodes), "", True), NOW, width)
    assert all("500/2000G" in text for text in texts(rows).splitlines() if "80.0G" in text)
    assert max(width_of(row.line) for row in rows) <= width


def test_many_cards_end_in_a_plus_and_ascii_has_signs_of_its_own() -> None:
    cards = tuple(Gpu(index, "H100", 80 * G, 40 * G) for index in range(40))
    assert len(gpu_heights(cards, 16)) <= 16
    assert gpu_heights(cards, 16).endswith("+")
    assert gpu_heights(cards[:3], 16, plain_ascii=True).isascii()


def test_silent_nodes_keep_their_last_numbers_and_one_sentence_says_why() -> None:
    late = [node(f"n{place}", 10, problem="no answer within 6 s") for place in range(3)]
    text = " ".join(shown(node("n9", 10), *late).split())
    assert text.count("no answer within 6 s.") == 1
    assert "n0, n1, n2: no answer within 6 s. Last read 1 second ago." in text


def test_differences_between_nodes_are_pointed_out_below() -> None:
    text = " ".join(shown(node("n1", 10), node("n2", 10), node("n3", 10, driver="535.54.03")).split())
    assert "The nodes differ in the driver: 535.54.03 on n3; 550.54.15 on the 2 others." in text


def test_not_asked_yet_refused_and_gone_silent_are_told_apart() -> None:
    assert "asking the cluster" in shown(asked=False)
    assert "no Ray cluster answers" in shown(problem="no Ray cluster answers at auto")
    assert "has not answered yet" in shown(NodeGauge("n1"), asked=False)
    old = NodeGauge("n1", Machine(1, name="n1"), NOW - 60)
    assert "Ray has told nothing for 60 seconds." in shown(old)


def test_a_hundred_and_twenty_eight_nodes_are_drawn_quickly() -> None:
    from time import perf_counter

    nodes = [node(f"n{place:03d}", *[place % 80] * 8) for place in range(128)]
    began = perf_counter()
    text = shown(*nodes)
    assert perf_counter() - began < 0.5
    assert len([row for row in text.splitlines() if row.strip().startswith("n")]) >= 128
