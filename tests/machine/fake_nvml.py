"""A node in memory that answers like pynvml: the same function names, the same error classes, no driver."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

MIB = 2**20


class NVMLError(Exception):
    """As pynvml: one class an error code, the code in `value`."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


class NVMLError_NotSupported(NVMLError):  # noqa: N801, N818 - pynvml's own spelling
    def __init__(self) -> None:
        super().__init__(3)


class NVMLError_GpuIsLost(NVMLError):  # noqa: N801, N818
    def __init__(self) -> None:
        super().__init__(15)


@dataclass
class Card:
    """One card; `errors` maps a function's name to the code it fails with."""

    name: Any = "NVIDIA A100-SXM4-40GB"
    total: int = 40960 * MIB
    reserved: int = 433 * MIB
    used: int = 2000 * MIB
    uuid: str = "GPU-0000"
    processes: list[tuple[int, int | None]] = field(default_factory=list)
    graphics: list[tuple[int, int | None]] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)
    lost: bool = False
    throttle: int = 0
    mig: list[Card] | None = None
    utilisation: int = 97


class FakeNvml:
    """Pass it where pynvml is expected. `calls` records every function asked, in order."""

    NVMLError = NVMLError
    nvmlMemory_v2: int | None = 0x2000028  # noqa: N815

    def __init__(self, *cards: Card, init_error: int | None = None) -> None:
        self.cards = list(cards)
        self.init_error = init_error
        self.calls: list[str] = []
        self.is_open = False

    def _ask(self, call: str, card: Card | None = None) -> None:
        self.calls.append(call)
        if not self.is_open:
            raise NVMLError(1)
        if card is not None and card.lost:
            raise NVMLError_GpuIsLost
        if card is not None and call in card.errors:
            raise NVMLError(card.errors[call])

    def nvmlInit(self) -> None:  # noqa: N802
        self.calls.append("nvmlInit")
        if self.init_error is not None:
            raise NVMLError(self.init_error)
        self.is_open = True

    def nvmlShutdown(self) -> None:  # noqa: N802
        self._ask("nvmlShutdown")
        self.is_open = False

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        self._ask("nvmlDeviceGetCount")
        return len(self.cards)

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        self._ask("nvmlSystemGetDriverVersion")
        return "550.54.15"

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:  # noqa: N802
        self._ask("nvmlDeviceGetHandleByIndex")
        return self.cards[index]

    def nvmlDeviceGetMemoryInfo(self, card: Card, version: int | None = None) -> SimpleNamespace:  # noqa: N802
        self._ask("nvmlDeviceGetMemoryInfo", card)
        if version is None:
            return SimpleNamespace(total=card.total, used=card.used + card.reserved)
        if "v2" in card.errors:
            raise NVMLError(card.errors["v2"])
        return SimpleNamespace(total=card.total, used=card.used, reserved=card.reserved)

    def nvmlDeviceGetMigMode(self, card: Card) -> list[int]:  # noqa: N802
        self._ask("nvmlDeviceGetMigMode", card)
        if "MIG" in str(card.name):
            raise NVMLError_NotSupported
        return [0, 0] if card.mig is None else [1, 1]

    def nvmlDeviceGetMaxMigDeviceCount(self, card: Card) -> int:  # noqa: N802
        self._ask("nvmlDeviceGetMaxMigDeviceCount", card)
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, card: Card, slot: int) -> Card:  # noqa: N802
        self._ask("nvmlDeviceGetMigDeviceHandleByIndex", card)
        if card.mig is None or slot >= len(card.mig):
            raise NVMLError(6)
        return card.mig[slot]

    def nvmlDeviceGetUtilizationRates(self, card: Card) -> SimpleNamespace:  # noqa: N802
        self._ask("nvmlDeviceGetUtilizationRates", card)
        return SimpleNamespace(gpu=card.utilisation, memory=10)

    def nvmlDeviceGetComputeRunningProcesses(self, card: Card) -> list[SimpleNamespace]:  # noqa: N802
        self._ask("nvmlDeviceGetComputeRunningProcesses", card)
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in card.processes]

    def nvmlDeviceGetGraphicsRunningProcesses(self, card: Card) -> list[SimpleNamespace]:  # noqa: N802
        self._ask("nvmlDeviceGetGraphicsRunningProcesses", card)
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in card.graphics]

    def __getattr__(self, call: str) -> Any:
        plain = {
            "nvmlDeviceGetName": lambda card: card.name,
            "nvmlDeviceGetUUID": lambda card: card.uuid,
            "nvmlDeviceGetTemperature": lambda card, sensor: 63,
            "nvmlDeviceGetPowerUsage": lambda card: 318_000,
            "nvmlDeviceGetEnforcedPowerLimit": lambda card: 400_000,
            "nvmlDeviceGetTotalEccErrors": lambda card, kind, counter: 0,
            "nvmlDeviceGetCurrentClocksEventReasons": lambda card: card.throttle,
        }.get(call)
        if plain is None:
            raise AttributeError(call)

        def answer(card: Card, *arguments: int) -> Any:
            self._ask(call, card)
            return plain(card, *arguments)

        return answer
