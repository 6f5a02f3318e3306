"""What NVML refuses, in words: each failure its own sentence, with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from advisor.language import Sayings


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
        """One sentence, with what to do."""
        return SENTENCES[self.trouble]

    @property
    def is_lost(self) -> bool:
        """The card itself is gone; nothing else need be asked of it."""
        return self.trouble in (Trouble.GPU_IS_LOST, Trouble.RESET_REQUIRED)


def from_code(code: object, call: str) -> Refused:
    """The refusal that an NVML return code means; codes without a sentence of their own are UNKNOWN."""
    try:
        return Refused(Trouble(code), call)
    except ValueError:
        return Refused(Trouble.UNKNOWN, call)
