"""A node in memory that answers like amdsmi: the same function names, the same exceptions, no library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

GIB = 2**30


class AmdSmiException(Exception):  # noqa: N818 - amdsmi's own name
    """As amdsmi."""


class AmdSmiLibraryException(AmdSmiException):
    """As amdsmi: the code of the library."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code

    def get_error_code(self) -> int:
        return self.code


@dataclass
class Card:
    """One card; `errors` maps a function's name to the code it fails with."""

    name: str = "AMD Instinct MI300X"
    total: int = 192 * GIB
    used: int = 3 * GIB
    processes: list[tuple[int, int]] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)


class FakeAmdsmi:
    """Pass it where amdsmi is expected."""

    AmdSmiException = AmdSmiException
    AmdSmiLibraryException = AmdSmiLibraryException
    AmdSmiMemoryType = SimpleNamespace(VRAM=0)
    AmdSmiTemperatureType = SimpleNamespace(HOTSPOT=1)
    AmdSmiTemperatureMetric = SimpleNamespace(CURRENT=0)

    def __init__(self, *cards: Card, init_error: int | None = None) -> None:
        self.cards, self.init_error, self.is_open = list(cards), init_error, False

    def amdsmi_init(self) -> None:
        if self.init_error is not None:
            raise AmdSmiLibraryException(self.init_error)
        self.is_open = True

    def amdsmi_shut_down(self) -> None:
        self.is_open = False

    def amdsmi_get_processor_handles(self) -> list[Card]:
        return self.cards

    def __getattr__(self, call: str) -> Callable[..., Any]:
        plain: dict[str, Callable[..., Any]] = {
            "amdsmi_get_gpu_driver_info": lambda card: {"driver_version": "6.8.5"},
            "amdsmi_get_gpu_asic_info": lambda card: {"market_name": card.name},
            "amdsmi_get_gpu_memory_total": lambda card, kind: card.total,
            "amdsmi_get_gpu_memory_usage": lambda card, kind: card.used,
            "amdsmi_get_gpu_activity": lambda card: {"gfx_activity": 87},
            "amdsmi_get_power_info": lambda card: {"current_socket_power": "N/A", "average_socket_power": 512},
            "amdsmi_get_temp_metric": lambda card, kind, metric: 61,
            "amdsmi_get_gpu_total_ecc_count": lambda card: {"uncorrectable_count": 0},
            "amdsmi_get_gpu_device_uuid": lambda card: "9aff74a1",
            "amdsmi_get_gpu_process_list": lambda card: [
                {"pid": pid, "mem": size, "name": "python3"} for pid, size in card.processes
            ],
        }
        if call not in plain:
            raise AttributeError(call)

        def answer(card: Card, *more: Any) -> Any:
            if call in card.errors:
                raise AmdSmiLibraryException(card.errors[call])
            return plain[call](card, *more)

        return answer
