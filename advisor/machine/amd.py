"""Reads AMD GPUs through amdsmi where it is installed, else from the JSON that rocm-smi prints."""

from __future__ import annotations

import ctypes
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from advisor.hostile import clean_line
from advisor.language import Sayings
from advisor.machine.inventory import Gpu, GpuProcess, bytes_held
from advisor.machine.tool import RunTool, ToolReader, run_tool

_LIBRARY = "libamd_smi.so"
_WANTED = ("--showmeminfo", "vram", "--showproductname", "--showuse", "--showtemp", "--showpower")
_ROCM_SMI = ("rocm-smi", *_WANTED, "--json")
TROUBLES: Sayings[str] = Sayings(
    {
        "missing": (
            "AMD GPUs are here (/dev/kfd), but neither amdsmi nor rocm-smi: install ROCm's tools, or the Python "
            "package amdsmi beside libamd_smi.so."
        ),
        "hangs": "rocm-smi did not answer in time; the driver may hang, look for amdgpu in `dmesg`.",
        "unread": "rocm-smi answered nothing that lists a card; run it by hand, and see `dmesg | grep amdgpu`.",
        "no_permission": "amdsmi: this user may not read the GPUs; it must be in the groups video and render.",
        "no_driver": "amdsmi: the kernel driver amdgpu is not loaded, or no card was passed into this container.",
        "lost": "amdsmi: the card does not answer; look for amdgpu in `dmesg`.",
        "unknown": "amdsmi answered with an unknown error; `amd-smi list` and `dmesg` may say more.",
    }
)
_CODES = {8: "hangs", 10: "no_permission", 12: "lost", 18: "no_driver", 34: "no_driver", 51: "no_driver"}
"""amdsmi_status_t → trouble (ROCm/amdsmi py-interface/amdsmi_wrapper.py: TIMEOUT 8, NO_PERM 10, IO 12, INIT_ERROR 18,
DRIVER_NOT_LOADED 34, NO_DRV 51)."""


def _amdsmi(environ: Mapping[str, str]) -> Any:
    """The module amdsmi where its library loads; without it the module prints and half loads, so it is left alone."""
    roots = [environ.get("ROCM_HOME"), environ.get("ROCM_PATH"), "/opt/rocm"]
    for place in (_LIBRARY, *(os.path.join(root, "lib", _LIBRARY) for root in roots if root)):
        with suppress(OSError):
            ctypes.CDLL(place)
            break
    else:
        return None
    try:
        import amdsmi
    except Exception:  # noqa: BLE001 - a binding that does not fit its library fails in many ways
        return None
    return amdsmi


@dataclass(slots=True)
class AmdReader:
    """Reads the AMD GPUs. `amdsmi` None: the module is looked for at `open`. Not thread-safe: one thread owns it."""

    amdsmi: Any = None
    run: RunTool = run_tool
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Callable[[], float] = time.monotonic
    driver: str = ""
    _handles: tuple[Any, ...] = ()
    _last: tuple[Gpu, ...] = ()
    _smi: ToolReader = field(init=False)

    def __post_init__(self) -> None:
        self._smi = ToolReader(_ROCM_SMI, lambda text: (read_json(text), ""), TROUBLES, self.run, self.clock)

    def open(self) -> str | None:
        """Find the cards. Returns None, or the sentence that says why none is read."""
        self.amdsmi = self.amdsmi or _amdsmi(self.environ)
        if self.amdsmi is not None:
            trouble = self._open_library()
            if trouble is None or self.run(["rocm-smi", "--version"]).missing:
                return trouble
            self.amdsmi = None
        return self._smi.open()

    def _open_library(self) -> str | None:
        started = self._ask("amdsmi_init")
        if isinstance(started, _NoAnswer):
            return started.says
        handles = self._ask("amdsmi_get_processor_handles")
        if isinstance(handles, _NoAnswer):
            return handles.says
        self._handles = tuple(handles)
        if not self._handles:
            return TROUBLES["no_driver"]
        info = _known(self._ask("amdsmi_get_gpu_driver_info", self._handles[0])) or {}
        self.driver = clean_line(str(info.get("driver_version", "")), 60)
        return None

    def snapshot(self, slow: bool = True, processes: bool = True) -> tuple[Gpu, ...]:
        """All cards now. `processes` False: that list repeats its last reading."""
        if self.amdsmi is None:
            return self._smi.snapshot()
        before = {gpu.index: gpu.processes for gpu in self._last}
        self._last = tuple(
            self._read(index, handle, self._processes(handle) if processes else before.get(index))
            for index, handle in enumerate(self._handles)
        )
        return self._last

    def used(self) -> list[int | None]:
        if self.amdsmi is None:
            return self._smi.used()
        return [self._memory("amdsmi_get_gpu_memory_usage", handle) for handle in self._handles]

    def holders(self) -> dict[tuple[int, int], int]:
        handles = self._handles if self.amdsmi is not None else ()
        return bytes_held((index, self._processes(handle)) for index, handle in enumerate(handles))

    def close(self) -> None:
        if self.amdsmi is not None and self._handles:
            self._ask("amdsmi_shut_down")
        self._handles, self._last = (), ()
        self._smi.close()

    def _ask(self, call: str, *arguments: Any) -> Any:
        """What the library returns, or a `_NoAnswer`: the only place where it is called."""
        function = getattr(self.amdsmi, call, None)
        if function is None:
            return _NoAnswer("unknown")
        try:
            return function(*arguments)
        except Exception as error:  # noqa: BLE001 - the library's own, or of a binding that does not fit its library
            return _NoAnswer(_CODES.get(getattr(error, "get_error_code", int)(), "unknown"))

    def _memory(self, call: str, handle: Any) -> int | None:
        size = _known(self._ask(call, handle, self.amdsmi.AmdSmiMemoryType.VRAM))
        return None if size is None else int(size)

    def _read(self, index: int, handle: Any, processes: tuple[GpuProcess, ...] | None) -> Gpu:
        kinds, metrics = self.amdsmi.AmdSmiTemperatureType, self.amdsmi.AmdSmiTemperatureMetric
        asic = self._ask("amdsmi_get_gpu_asic_info", handle)
        name = _name(str((_known(asic) or {}).get("market_name", "")), index)
        total = self._memory("amdsmi_get_gpu_memory_total", handle)
        if total is None:
            refused = asic if isinstance(asic, _NoAnswer) else _NoAnswer("lost")
            return Gpu(index, name, None, problem=refused.says, vendor="amd")
        load = (_known(self._ask("amdsmi_get_gpu_activity", handle)) or {}).get("gfx_activity")
        power = _known(self._ask("amdsmi_get_power_info", handle)) or {}
        watts = next((v for key in ("current_socket_power", "average_socket_power", "socket_power")
                      if isinstance(v := power.get(key), (int, float)) and v), None)  # fmt: skip
        heat = _known(self._ask("amdsmi_get_temp_metric", handle, kinds.HOTSPOT, metrics.CURRENT))
        errors = (_known(self._ask("amdsmi_get_gpu_total_ecc_count", handle)) or {}).get("uncorrectable_count")
        uuid = _known(self._ask("amdsmi_get_gpu_device_uuid", handle))
        return Gpu(
            index,
            name,
            total,
            used_bytes=self._memory("amdsmi_get_gpu_memory_usage", handle),
            uuid=clean_line(uuid, 60) if isinstance(uuid, str) else "",
            utilisation=load if isinstance(load, int) and 0 <= load <= 100 else None,
            temperature=heat if isinstance(heat, int) else None,
            power_watts=float(watts) if watts is not None else None,
            ecc_errors=errors if isinstance(errors, int) else None,
            processes=processes,
            vendor="amd",
        )

    def _processes(self, handle: Any) -> tuple[GpuProcess, ...] | None:
        listed = self._ask("amdsmi_get_gpu_process_list", handle)
        if isinstance(listed, _NoAnswer):
            return None
        return tuple(
            GpuProcess(one["pid"], one["mem"] if isinstance(one.get("mem"), int) else None)
            for one in listed
            if isinstance(one, dict) and isinstance(one.get("pid"), int)
        )


@dataclass(frozen=True, slots=True)
class _NoAnswer:
    """amdsmi's answer where it gave no value."""

    trouble: str

    @property
    def says(self) -> str:
        return TROUBLES[self.trouble]


def _known(answer: Any) -> Any:
    return None if isinstance(answer, _NoAnswer) else answer


def _name(text: str, index: int) -> str:
    name = clean_line(text, 60)
    return name if name and name != "N/A" else f"GPU {index}"


def read_json(text: str) -> tuple[Gpu, ...]:
    """The cards that rocm-smi prints, {"card0": {"VRAM Total Memory (B)": "…"}}; other keys and warnings stay out."""
    start, end = text.find("{"), text.rfind("}")
    try:
        told = json.loads(text[start : end + 1]) if start >= 0 else {}
    except ValueError:
        return ()
    cards = told.items() if isinstance(told, dict) else ()
    gpus = [
        _of_json(int(key.removeprefix("card")), card)
        for key, card in cards
        if key.startswith("card") and key.removeprefix("card").isdigit() and isinstance(card, dict)
    ]
    return tuple(gpu for gpu in sorted(gpus, key=lambda one: one.index) if gpu.total_bytes)


def _of_json(index: int, card: Mapping[str, Any]) -> Gpu:
    def number(*keys: str) -> float | None:
        for key in keys:
            with suppress(TypeError, ValueError):
                return float(str(card[key]).strip()) if key in card else float("x")
        return None

    total, used = number("VRAM Total Memory (B)"), number("VRAM Total Used Memory (B)")
    load = number("GPU use (%)")
    heat = number("Temperature (Sensor junction) (C)", "Temperature (Sensor edge) (C)")
    named = next((str(card[key]) for key in ("Card Series", "Card series", "Device Name") if card.get(key)), "")
    return Gpu(
        index,
        _name(named.strip(), index),
        None if total is None else int(total),
        used_bytes=None if used is None else int(used),
        utilisation=None if load is None else int(load),
        temperature=None if heat is None else int(heat),
        power_watts=number("Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)"),
        vendor="amd",
    )
