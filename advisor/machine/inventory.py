"""The machine as the advice sees it: measured here, described by the user, or read in the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from advisor.words import Source


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process on a GPU. `used_bytes` None: the driver does not say. Text fields are already clean."""

    pid: int
    used_bytes: int | None
    user: str | None = None
    started: float | None = None
    """Epoch seconds."""
    host_rss_bytes: int | None = None
    command: str = ""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card, or one MIG instance of it. None = unknown, never 0."""

    index: int
    name: str
    total_bytes: int | None
    used_bytes: int | None = None
    uuid: str = ""
    utilisation: int | None = None
    """Percent."""
    temperature: int | None = None
    """Degrees Celsius."""
    power_watts: float | None = None
    power_limit_watts: float | None = None
    processes: tuple[GpuProcess, ...] | None = None
    """None: not permitted or not known; () : none."""
    problem: str = ""
    """One sentence where the card cannot be read ("GPU is lost")."""


@dataclass(frozen=True, slots=True)
class Host:
    """Host memory of one node. `limit_bytes` is the least of all limits that bind (cgroup), None where there is none."""

    total_bytes: int | None = None
    available_bytes: int | None = None
    used_bytes: int | None = None
    limit_bytes: int | None = None
    limit_used_bytes: int | None = None
    limit_source: str = ""
    """Which limit it is: "cgroup v2 /sys/fs/cgroup/…/memory.max"."""
    oom_kills: int | None = None
    """The cgroup's own counter of kernel OOM kills."""
    swap_total_bytes: int | None = None
    swap_used_bytes: int | None = None
    shm_bytes: int | None = None
    shm_used_bytes: int | None = None

    @property
    def ceiling_bytes(self) -> int | None:
        """What may be used before something is killed: the limit, else all of the RAM."""
        known = [size for size in (self.limit_bytes, self.total_bytes) if size is not None]
        return min(known, default=None)


@dataclass(frozen=True, slots=True)
class Machine:
    """Everything known of the box (or boxes: `nodes` alike). `gpus` are those of one node."""

    nodes: int | None = None
    gpus: tuple[Gpu, ...] = ()
    host: Host = field(default_factory=Host)
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Distribution name, normalised ("deepspeed", "flash-attn") → version, of the environment that trains."""
    environment: str = ""
    """Where the libraries were read: "/opt/conda/envs/verl (python named by the script)"."""
    driver: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)
    """Field ("gpus", "host.total", "host.limit", "shm", "nodes", "libraries.deepspeed") → how it is known."""
    problems: tuple[str, ...] = ()
    """One sentence for each thing that could not be read ("NVML: no driver library (libnvidia-ml.so.1) on this machine")."""

    @property
    def gpu_bytes(self) -> int | None:
        """Capacity of the smallest card: the one that decides."""
        sizes = [gpu.total_bytes for gpu in self.gpus if gpu.total_bytes is not None]
        return min(sizes, default=None)
