"""Holds the machine as the advice sees it: measured here, described by the user, or read in the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from advisor.words import Source

_HOST_FIELDS = {"total_bytes": "host.total", "limit_bytes": "host.limit", "shm_bytes": "shm"}


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
    """One sentence where the card cannot be read ("GPU is lost"), or where its size was assumed."""
    reserved_bytes: int | None = None
    """What the driver keeps of `total_bytes` for itself (NVML memory info v2)."""
    mig: str = ""
    """Profile, where this is a MIG instance: "3g.20gb"."""
    parent: int | None = None
    """NVML index of the card a MIG instance is cut from."""
    ecc_errors: int | None = None
    """Uncorrected memory errors since the driver was loaded."""
    throttle: tuple[str, ...] = ()
    """Why the clocks are held down, in words; () where they are not or the driver does not say."""
    vendor: str = ""
    """nvidia, amd or ascend, where driver or description tells; "" where only a log names the card."""

    @property
    def usable_bytes(self) -> int | None:
        """What CUDA programs can have: the total less what the driver keeps; torch prints this as "total capacity"."""
        return None if self.total_bytes is None else self.total_bytes - (self.reserved_bytes or 0)

    @property
    def is_silent(self) -> bool:
        """The card gave nothing. One without a size (unified memory) still tells its temperature and load."""
        told = (self.total_bytes, self.utilisation, self.temperature)
        return bool(self.problem) and all(reading is None for reading in told)


def bytes_held(listed: Iterable[tuple[int, Sequence[GpuProcess] | None]]) -> dict[tuple[int, int], int]:
    """(card, process id) → bytes, for the processes of which the driver tells both."""
    held: Counter[tuple[int, int]] = Counter()
    for card, processes in listed:
        for one in processes or ():
            if one.used_bytes is not None:
                held[card, one.pid] += one.used_bytes
    return held


@dataclass(frozen=True, slots=True)
class Host:
    """Host memory of one node. `limit_bytes`: of all limits that bind (cgroup), the one with the least room left."""

    total_bytes: int | None = None
    available_bytes: int | None = None
    used_bytes: int | None = None
    limit_bytes: int | None = None
    limit_used_bytes: int | None = None
    """Working set charged to that limit: usage less the file cache that can be dropped."""
    limit_source: str = ""
    """Which limit it is: "cgroup v2 /sys/fs/cgroup/…/memory.max"."""
    oom_kills: int | None = None
    """The cgroup's own counter of kernel OOM kills."""
    swap_total_bytes: int | None = None
    swap_used_bytes: int | None = None
    shm_bytes: int | None = None
    shm_used_bytes: int | None = None
    least_limit_bytes: int | None = None
    """The least of all limits, which has more room where others fill a wider one."""
    reserved_bytes: int | None = None
    """Huge pages, set aside whether used or not: no usual allocation gets them."""
    held_bytes: int | None = None
    """What others hold now of what a run here may use."""
    to_come: bool = False
    """The run has yet to start, so it finds that held; one that ended had it otherwise."""

    @property
    def ceiling_bytes(self) -> int | None:
        """What may be used before something is killed: the limit, else all of the RAM but huge pages."""
        ram = None if self.total_bytes is None else self.total_bytes - (self.reserved_bytes or 0)
        return min((size for size in (self.limit_bytes, self.least_limit_bytes, ram) if size is not None), default=None)

    @property
    def taken_bytes(self) -> int:
        """What of it a run does not get."""
        return (self.held_bytes or 0) * self.to_come


@dataclass(frozen=True, slots=True)
class BatchMemory:
    """The RAM that a batch script asks of each node for the job, and the option that says so."""

    limit_bytes: int
    source: str
    """As it is written, with its place: "#SBATCH --mem=160G (dpo.sbatch:7)"."""
    option: str
    """ "--mem", "--mem-per-gpu"."""
    text: str
    """Its value: "160G"."""
    times: int = 1
    """How often a node has it."""
    file: str = ""
    line: int | None = None
    by: str = "#SBATCH"
    """What sets it: the script's own lines for Slurm, or the command that starts another one ("docker run", "srun")."""
    is_editable: bool = True
    """Whether its literal alone can be changed: it stands in the launch file, and no other option is tied to it."""

    @property
    def of_slurm(self) -> bool:
        """Whether Slurm ends the job there."""
        return self.by in ("#SBATCH", "srun")


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
    """One sentence for each thing that could not be read ("NVML: no driver library … on this machine")."""
    members: tuple[Machine, ...] = ()
    """The nodes this was joined from, each with its name; () for a single one."""
    name: str = ""
    """What the node is called."""
    asked_memory: BatchMemory | None = None
    """The option of the batch script that sets the limit of the host, where it is one that does."""
    more_gpus: bool = False
    """`gpus` are those that a log names: a node may have more."""
    mute: bool = False
    """A driver is loaded here, and tells no card: what is described may be this box all the same."""
    worded: bool = False
    """How many `gpus` there are was read out of somebody's words."""

    @property
    def usable(self) -> tuple[Gpu, ...]:
        """The cards a run can have, which a lost one is not; all of them where none answers."""
        return tuple(gpu for gpu in self.gpus if not gpu.is_silent) or self.gpus

    @property
    def gpu_bytes(self) -> int | None:
        """Usable capacity of the smallest card: the one that decides."""
        sizes = [gpu.usable_bytes for gpu in self.gpus if gpu.usable_bytes is not None]
        return min(sizes, default=None)


def known_fields(machine: Machine) -> list[str]:
    """Names, as in `Machine.sources`, of what is known of this machine."""
    fields = ["nodes"] if machine.nodes is not None else []
    fields += ["gpus"] if machine.gpus else []
    fields += [name for attribute, name in _HOST_FIELDS.items() if getattr(machine.host, attribute) is not None]
    return fields + [f"libraries.{name}" for name in machine.libraries]
