"""A few cards, so that the tests of the machine room do not depend on knowledge/."""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.units import GIB


@dataclass(frozen=True)
class Fact:
    name: str
    aliases: tuple[str, ...]
    total_bytes: int
    vendor: str = "nvidia"
    unified: bool = False
    boxes: dict[str, int] = field(default_factory=dict)


A100_40 = Fact("A100-40GB", ("A100-SXM4-40GB",), 42_294_752_543, boxes={"DGX-A100": 8, "p4d.24xlarge": 8})
A100_80 = Fact("A100-80GB", ("A100-SXM4-80GB", "A100-80GB-PCIe"), 84_986_665_370, boxes={"DGX-A100": 8})
H100 = Fact("H100-80GB", ("H100", "H100-80GB-HBM3"), 84_943_715_697)
H100_NVL = Fact("H100-94GB", ("H100-NVL",), 93 * GIB)
GH200 = Fact("GH200-96GB", ("GH200", "GH200-480GB"), 94 * GIB)
RTX_3090 = Fact("RTX-3090-24GB", ("RTX-3090", "3090"), 25_297_357_373)
T4 = Fact("T4-16GB", ("T4",), 15_633_681_121)
FACTS = (A100_40, A100_80, H100, H100_NVL, GH200, RTX_3090, T4)
