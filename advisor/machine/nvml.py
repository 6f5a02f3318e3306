"""Reads GPUs through NVML, by one gate for every call, and survives whatever the driver answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Any

from advisor.hostile import clean_line
from advisor.language import Sayings, mark, say
from advisor.machine import tool
from advisor.machine.inventory import Gpu, GpuProcess, bytes_held

NAME_LIMIT = 96
SHARED_WITH_HOST = mark(
    "NVML gives no memory size: this card shares its memory with the host (unified memory), or the driver hides it."
)
EMPTY_MIG = mark("MIG mode is on but no instance exists, so CUDA sees no device here; create one or turn MIG off.")
NONSENSE = mark("NVML tells a memory size that no card has; the driver or what stands in its place is broken.")
_MOST_CARDS, _MOST_BYTES = 1024, 1 << 46
"""No node has more cards, no card as many bytes (64 TiB): a driver that says so is not believed."""
_CELSIUS, _WATTS, _ERRORS = (-50, 200), (0, 10_000), (0, 1 << 53)
"""What a card can be, from least to most."""
_ECC_UNCORRECTED, _ECC_VOLATILE, _TEMPERATURE_CORE = 1, 0, 0
_THROTTLES = Sayings(
    {
        0x04: "power cap",
        0x08: "hardware slowdown",
        0x10: "clocks tied to other cards",
        0x20: "temperature (driver)",
        0x40: "temperature (hardware)",
        0x80: "power brake",
    }
)
"""Bits of nvmlClocksEventReasons that slow work down; idle and chosen clocks do not count. Source: nvml.h."""


class Trouble(Enum):
    """Why NVML gave no answer. The value is NVML's own return code (nvmlReturn_t); negative ones are ours."""

    BINDINGS_MISSING = -1
    UNINITIALIZED = 1
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    VERSION_MISMATCH = 18
    UNKNOWN = 999


SENTENCES: Sayings[Trouble] = Sayings(
    {
        Trouble.BINDINGS_MISSING: ("NVML: the Python module pynvml is missing; install nvidia-ml-py to see GPUs here."),
        Trouble.UNINITIALIZED: "NVML was shut down while it was in use; it is opened again at the next reading.",
        Trouble.NOT_SUPPORTED: "The driver does not offer this reading on this card.",
        Trouble.NO_PERMISSION: (
            "NVML: this user may not read the GPUs; check the rights of /dev/nvidia* and the container's device list."
        ),
        Trouble.NOT_FOUND: "NVML does not know this device.",
        Trouble.DRIVER_NOT_LOADED: (
            "NVML: the NVIDIA kernel driver is not loaded; `nvidia-smi` will say the same, load the module or reboot."
        ),
        Trouble.TIMEOUT: "NVML: the driver did not answer in time; the GPU may hang, look for Xid lines in `dmesg`.",
        Trouble.LIBRARY_NOT_FOUND: (
            "NVML: no driver library (libnvidia-ml.so.1) on this machine; on a GPU node, start the container with the "
            "GPUs passed in, elsewhere describe the GPUs with --gpus."
        ),
        Trouble.FUNCTION_NOT_FOUND: "The installed driver is too old for this reading.",
        Trouble.GPU_IS_LOST: (
            "GPU is lost: it fell off the bus and answers nothing; look for Xid 79 in `dmesg`, reset or reboot the "
            "node."
        ),
        Trouble.RESET_REQUIRED: "GPU needs a reset before it can be used again (`nvidia-smi --gpu-reset`, or reboot).",
        Trouble.VERSION_MISMATCH: (
            "NVML: the driver library and the loaded kernel module differ in version; the driver was upgraded, "
            "reload the module or reboot."
        ),
        Trouble.UNKNOWN: "NVML: the driver answered with an unknown error; `nvidia-smi` and `dmesg` may say more.",
    }
)


@dataclass(frozen=True, slots=True)
class Refused:
    """NVML's answer where it gave no value."""

    trouble: Trouble
    call: str
    """The function asked, "nvmlDeviceGetMemoryInfo"."""

    @property
    def says(self) -> str:
        return SENTENCES[self.trouble]

    @property
    def is_lost(self) -> bool:
        """The card itself is gone; nothing else need be asked of it."""
        return self.trouble in (Trouble.GPU_IS_LOST, Trouble.RESET_REQUIRED)


def query(nvml: Any, call: str, *arguments: Any, **options: Any) -> Any:
    """What `nvml.call(…)` returns, or a `Refused`: the only place where NVML is called."""
    function: Callable[..., Any] | None = getattr(nvml, call, None)
    if function is None:  # an older nvidia-ml-py
        return Refused(Trouble.FUNCTION_NOT_FOUND, call)
    try:
        return function(*arguments, **options)
    except Exception as error:  # noqa: BLE001 - NVML's own, or pynvml's: an older driver, garbage, a library that fails
        code = getattr(error, "value", None)
        if type(error).__name__ == "NVMLLibraryMismatchError":  # the driver may have the function's second form
            code, older = Trouble.FUNCTION_NOT_FOUND.value, f"{call}_v2"
            if hasattr(nvml, older):
                return query(nvml, older, *arguments, **options)
        return Refused(next((known for known in Trouble if known.value == code), Trouble.UNKNOWN), call)


def _known(answer: Any) -> Any:
    return None if isinstance(answer, Refused) else answer


def _text(answer: Any) -> str:
    if isinstance(answer, bytes):  # nvidia-ml-py before 12
        answer = answer.decode("utf-8", "replace")
    return clean_line(answer, NAME_LIMIT) if isinstance(answer, str) else ""


@dataclass(frozen=True, slots=True)
class _Device:
    """A card (or MIG instance). `handle` None: NVML does not give one."""

    gpu: Gpu
    """What of it never changes, read once."""
    handle: Any
    parent_handle: Any = None
    """Temperature and power exist on the whole card only."""


def _silent(index: int, trouble: Trouble) -> _Device:
    return _Device(Gpu(index, f"GPU {index}", None, problem=SENTENCES[trouble], vendor="nvidia"), None)


@dataclass(slots=True)
class NvmlReader:
    """Reads every card NVML knows. `nvml` None: pynvml, imported at `open`. Not thread-safe: one thread owns it."""

    nvml: Any = None
    patience: float = 10.0
    """Seconds to start, as many to list the cards, and as many for one reading of them all: each takes a fraction of
    one, but cards that sleep have to wake first."""
    driver: str = ""
    refused: Trouble | None = None
    """Why the last `open` gave no NVML."""
    _devices: tuple[_Device, ...] = ()
    _slow: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Readings that cost the driver time and change little, by the place of the device."""
    _processes: dict[int, tuple[GpuProcess, ...] | None] = field(default_factory=dict)
    _is_open: bool = False

    def open(self) -> str | None:
        """Start NVML and list the cards. Returns None, or the sentence that says why there is no NVML."""
        if self.nvml is None:
            if not tool.has_nvidia():
                return self._refuse(Refused(Trouble.LIBRARY_NOT_FOUND, "nvmlInit"))
            try:
                import pynvml
            except ImportError:
                return self._refuse(Refused(Trouble.BINDINGS_MISSING, "import"))
            self.nvml = pynvml
        answers = tool.call_with_timeout(self.patience, lambda: [query(self.nvml, "nvmlInit")])
        started = answers[0] if answers else Refused(Trouble.TIMEOUT, "nvmlInit")
        if isinstance(started, Refused):
            return self._refuse(started)
        self._is_open = True
        count = query(self.nvml, "nvmlDeviceGetCount")
        if isinstance(count, Refused):
            self.close()
            return self._refuse(count)
        self.refused = None
        self.driver = _text(query(self.nvml, "nvmlSystemGetDriverVersion"))
        finding = [partial(self._find, index) for index in range(min(count, _MOST_CARDS))]
        found = enumerate(tool.all_within(self.patience, finding))
        self._devices = tuple(one for index, here in found for one in here or [_silent(index, Trouble.TIMEOUT)])
        return None

    def _refuse(self, refused: Refused) -> str:
        self.refused = refused.trouble
        return refused.says

    def snapshot(self, slow: bool = True, processes: bool = True) -> tuple[Gpu, ...]:
        """All cards now. `slow` or `processes` False: those fields repeat their last reading."""
        readings = [partial(self._read, place, one, slow, processes) for place, one in enumerate(self._devices)]
        read = zip(self._devices, tool.all_within(self.patience, readings), strict=True)
        hangs = SENTENCES[Trouble.TIMEOUT]  # a card that does once is not asked again
        pairs = [(one, gpu) if gpu else (replace(one, gpu=replace(one.gpu, problem=hangs)), None) for one, gpu in read]
        self._devices = tuple(one for one, _ in pairs)
        return tuple(gpu or one.gpu for one, gpu in pairs)

    def used(self) -> list[int | None]:
        answers = (None if device.handle is None else _known(self._memory(device.handle)) for device in self._devices)
        return [None if answer is None else answer[1] for answer in answers]

    def holders(self) -> dict[tuple[int, int], int]:
        answering = (device for device in self._devices if device.handle is not None)
        return bytes_held((device.gpu.index, self._read_processes(device.handle)) for device in answering)

    def close(self) -> None:
        """Let go of NVML, unless a card hangs in it; the reader can be opened again."""
        if self._is_open and SENTENCES[Trouble.TIMEOUT] not in [device.gpu.problem for device in self._devices]:
            query(self.nvml, "nvmlShutdown")
        self._is_open = False
        self._devices, self._slow, self._processes = (), {}, {}

    # --- finding the cards -----------------------------------------------------------------------------------------

    def _find(self, index: int) -> list[_Device]:
        handle = query(self.nvml, "nvmlDeviceGetHandleByIndex", index)
        if isinstance(handle, Refused):
            return [_silent(index, handle.trouble)]
        name = query(self.nvml, "nvmlDeviceGetName", handle)
        uuid = _text(query(self.nvml, "nvmlDeviceGetUUID", handle))
        card = Gpu(index, _text(name) or f"GPU {index}", None, uuid=uuid, vendor="nvidia")
        if isinstance(name, Refused) and name.is_lost:
            return [_Device(replace(card, problem=name.says), handle)]
        mode = _known(query(self.nvml, "nvmlDeviceGetMigMode", handle))
        if not mode or not mode[0]:
            return [_Device(card, handle)]
        return self._instances(_Device(card, handle)) or [_Device(replace(card, problem=say(EMPTY_MIG)), handle)]

    def _instances(self, card: _Device) -> list[_Device]:
        slots = _known(query(self.nvml, "nvmlDeviceGetMaxMigDeviceCount", card.handle)) or 0
        found = []
        for slot in range(min(slots, _MOST_CARDS)):
            handle = query(self.nvml, "nvmlDeviceGetMigDeviceHandleByIndex", card.handle, slot)
            if isinstance(handle, Refused):  # an empty slot
                continue
            name = _text(query(self.nvml, "nvmlDeviceGetName", handle)) or card.gpu.name
            profile = name.rpartition(" MIG ")[2] if " MIG " in name else f"instance {slot}"
            index, uuid = card.gpu.index, _text(query(self.nvml, "nvmlDeviceGetUUID", handle))
            part = Gpu(index, name, None, uuid=uuid, mig=profile, parent=index, vendor="nvidia")
            found.append(_Device(part, handle, card.handle))
        return found

    # --- one reading -----------------------------------------------------------------------------------------------

    def _read(self, place: int, device: _Device, slow: bool, processes: bool) -> Gpu:
        bare = device.gpu
        if device.handle is None or bare.problem:
            return bare
        memory = self._memory(device.handle)
        if isinstance(memory, Refused):
            if memory.trouble is not Trouble.NOT_SUPPORTED:
                return replace(bare, problem=memory.says)
            bare = replace(bare, problem=say(SHARED_WITH_HOST))
        elif memory is None:
            bare = replace(bare, problem=say(NONSENSE))
        else:
            bare = replace(bare, total_bytes=memory[0], used_bytes=memory[1], reserved_bytes=memory[2])
        if slow or place not in self._slow:
            self._slow[place] = self._read_slow(device)
        if processes or place not in self._processes:
            self._processes[place] = self._read_processes(device.handle)
        processes_now, total = self._processes[place], bare.total_bytes
        if processes_now is not None and total is not None:  # no process holds more than its card has
            processes_now = tuple(replace(p, used_bytes=_within(p.used_bytes, (0, total))) for p in processes_now)
        rates = _known(query(self.nvml, "nvmlDeviceGetUtilizationRates", device.handle))
        return replace(
            bare,
            utilisation=None if rates is None else _within(int(rates.gpu), (0, 100)),
            temperature=_within(self._whole_card("nvmlDeviceGetTemperature", device, _TEMPERATURE_CORE), _CELSIUS),
            power_watts=_watts(self._whole_card("nvmlDeviceGetPowerUsage", device)),
            processes=processes_now,
            **self._slow[place],
        )

    def _memory(self, handle: Any) -> tuple[int, int | None, int | None] | Refused | None:
        """(total, used, reserved) in bytes, None: no card is so; v2 first, since v1 counts the reserve as used."""
        version = getattr(self.nvml, "nvmlMemory_v2", None)
        if version is not None:
            newer = query(self.nvml, "nvmlDeviceGetMemoryInfo", handle, version=version)
            if not isinstance(newer, Refused):
                return _sizes(int(newer.total), int(newer.used), int(newer.reserved))
        older = query(self.nvml, "nvmlDeviceGetMemoryInfo", handle)
        return older if isinstance(older, Refused) else _sizes(int(older.total), int(older.used), None)

    def _whole_card(self, call: str, device: _Device, *arguments: Any) -> Any:
        return query(self.nvml, call, device.parent_handle or device.handle, *arguments)

    def _read_slow(self, device: _Device) -> dict[str, Any]:
        ecc = self._whole_card("nvmlDeviceGetTotalEccErrors", device, _ECC_UNCORRECTED, _ECC_VOLATILE)
        reasons = self._whole_card("nvmlDeviceGetCurrentClocksEventReasons", device)
        if isinstance(reasons, Refused):  # the older name, before driver 535
            reasons = self._whole_card("nvmlDeviceGetCurrentClocksThrottleReasons", device)
        bits = _known(reasons) or 0
        return {
            "power_limit_watts": _watts(self._whole_card("nvmlDeviceGetEnforcedPowerLimit", device)),
            "ecc_errors": _within(ecc, _ERRORS),
            "throttle": tuple(_THROTTLES[bit] for bit in _THROTTLES if bits & bit),
        }

    def _read_processes(self, handle: Any) -> tuple[GpuProcess, ...] | None:
        """Processes by pid, compute and graphics together; None where the driver does not let us see them."""
        compute = query(self.nvml, "nvmlDeviceGetComputeRunningProcesses", handle)
        if isinstance(compute, Refused):
            return None
        graphics = _known(query(self.nvml, "nvmlDeviceGetGraphicsRunningProcesses", handle)) or []
        used: dict[int, int | None] = {}
        for process in [*compute, *graphics]:  # one process may be on both lists with the same memory
            size = _within(process.usedGpuMemory, (0, _MOST_BYTES))
            used[process.pid] = max((s for s in (used.get(process.pid), size) if s is not None), default=None)
        return tuple(GpuProcess(pid=pid, used_bytes=size) for pid, size in used.items())


def _watts(answer: Any) -> float | None:
    watts: float | None = _within(None if isinstance(answer, Refused) or answer is None else answer / 1000, _WATTS)
    return watts


def _within(answer: Any, bounds: tuple[int, int]) -> Any:
    """A number that can be; None for what the driver refused, and for the nonsense that drivers have answered."""
    known = isinstance(answer, (int, float)) and bounds[0] <= answer <= bounds[1]
    return answer if known else None


def _sizes(total: int, used: int, reserved: int | None) -> tuple[int, int | None, int | None] | None:
    if not 0 < total < _MOST_BYTES:
        return None
    return total, _within(used, (0, total)), _within(reserved, (0, total - 1))
