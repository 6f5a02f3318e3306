"""Machines that are seldom at hand, each as the driver, /proc and the environment show it, and what must be said of it.

python -m tests.trust.strange_machines          prints what `machine` and the gauges show of each
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.machine.host import read_host
from advisor.machine.inventory import Machine
from advisor.machine.live import Gauges, GaugeSnapshot
from advisor.machine.measure import measure
from advisor.machine.nvml import NvmlReader
from advisor.report.machine_report import machine_report
from advisor.tui.gauges_view import gauge_rows
from advisor.tui.ui_text import texts
from advisor.units import GIB
from tests.machine.fake_nvml import MIB, Card, FakeNvml
from tests.machine.test_host import V1_MOUNT, V2_MOUNT, Tree

NOT_SUPPORTED, NO_PERMISSION, NO_LIBRARY, MISMATCH = 3, 4, 12, 18
ELSEWHERE = 2**22 + 5
"""A process id of the host's, which does not exist here."""
PROCESSES = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses")


def refusing(*calls: str, **more: Any) -> Card:
    """A card whose driver does not offer these."""
    return Card(errors=dict.fromkeys(calls, NOT_SUPPORTED), **more)


def _bare(_: Tree) -> None:
    pass


def _limit_v2(tree: Tree) -> None:
    tree.cgroups("0::/job\n", V2_MOUNT.format(root="/"))
    tree.group_v2("/job", 64 * GIB, current=40 * GIB, inactive=8 * GIB, kills=2)


def _limit_v1(tree: Tree) -> None:
    tree.cgroups("4:memory:/docker/abc\n", V1_MOUNT.format(root="/docker/abc"))
    tree.group_v1("", 64 * GIB, usage=41 * GIB)


def _wsl(tree: Tree) -> None:
    tree.write("proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n")


@dataclass(frozen=True)
class Strange:
    """One machine. `says`: what `machine` has to say; `gauges`: what the app's gauges have to show."""

    name: str
    cards: tuple[Card, ...] = ()
    init_error: int | None = None
    prepare: Callable[[Tree], None] = _bare
    says: tuple[str, ...] = ()
    gauges: tuple[str, ...] = ()
    ram: int = 760 * GIB
    usable: int | None = None
    """Cards a run can have, where they are not all."""

    def nvml(self) -> FakeNvml:
        return FakeNvml(*self.cards, init_error=self.init_error)

    def root(self, folder: Path) -> Path:
        self.prepare(Tree(folder, ram=self.ram, available=self.ram // 2))
        return folder

    def measured(self, root: Path) -> Machine:
        return measure(nvml=self.nvml(), environ={}, root=root)

    def polled(self, root: Path, *moments: float) -> GaugeSnapshot:
        gauges = Gauges(NvmlReader(self.nvml()), host=lambda: read_host(root))
        return [gauges.poll(moment) for moment in moments or (1.0,)][-1]


def shown(snapshot: GaugeSnapshot, width: int = 100) -> str:
    """The gauges' view as one line of text."""
    return " ".join(texts(gauge_rows(snapshot, "", 1000.0, width)).split())


_MIG = Card(
    name="NVIDIA A100-SXM4-80GB",
    total=81920 * MIB,
    mig=[
        Card(name="NVIDIA A100-SXM4-80GB MIG 3g.40gb", total=40192 * MIB, used=11000 * MIB, uuid="MIG-1"),
        Card(name="NVIDIA A100-SXM4-80GB MIG 4g.40gb", total=40192 * MIB, used=37 * MIB, uuid="MIG-2"),
    ],
)
MACHINES = (
    Strange(
        "no NVML library",
        init_error=NO_LIBRARY,
        says=("No GPUs", "no driver library (libnvidia-ml.so.1) on this machine", "760.00 GiB"),
        gauges=("no driver library", "380/760G"),
    ),
    Strange(
        "driver and library differ",
        init_error=MISMATCH,
        says=("No GPUs", "the driver library and the loaded kernel module differ in version"),
        gauges=("differ in version",),
    ),
    Strange(
        "no rights to the devices",
        init_error=NO_PERMISSION,
        says=("No GPUs", "this user may not read the GPUs"),
        gauges=("this user may not read the GPUs",),
    ),
    Strange(
        "one lost GPU of eight",
        tuple(Card(uuid=f"GPU-{index}", lost=index == 3) for index in range(8)),
        says=("8 GPUs, driver 550.54.15", "3 GPU 3 unknown", "GPU 3: GPU is lost", "7 NVIDIA A100-SXM4-40GB"),
        gauges=("GPU is lost", "7 ▕", "2.0/40.0G"),
        usable=7,
    ),
    Strange(
        "MIG, and a card in MIG mode without an instance",
        (_MIG, Card(name="NVIDIA A100-SXM4-80GB", mig=[])),
        says=("3g.40gb", "4g.40gb", "10.74 GiB of 39.25 GiB", "GPU 1: MIG mode is on but no instance exists"),
        gauges=("10.7/39.2G", "3g.40gb", "MIG mode is on but no instance exists"),
        usable=2,
    ),
    Strange(
        "vGPU",
        (
            refusing(
                *PROCESSES,
                *("nvmlDeviceGetTemperature", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetTotalEccErrors"),
                *("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetMigMode"),
                name="GRID A100-10C",
                total=10240 * MIB,
                reserved=600 * MIB,
            ),
        ),
        says=("1 GPU", "GRID A100-10C", "1.95 GiB of 10.00 GiB"),
        gauges=("2.0/10.0G", "97%", "the driver does not say which processes"),
    ),
    Strange(
        "unified memory: no size, no use",
        (refusing("nvmlDeviceGetMemoryInfo", "v2", name="NVIDIA GB200"),),
        says=("NVIDIA GB200", "unknown", "GPU 0: NVML gives no memory size: this card shares its memory with the host"),
        gauges=("????", "?/?G", "97%", "gives no memory size"),
    ),
    Strange(
        "WSL",
        (refusing(*PROCESSES, "nvmlDeviceGetTotalEccErrors", name="NVIDIA GeForce RTX 4090", total=24564 * MIB),),
        prepare=_wsl,
        says=("This is WSL", ".wslconfig", "1.95 GiB of 23.99 GiB", "15.50 GiB"),
        gauges=("2.0/24.0G", "the driver does not say which processes"),
        ram=15 * GIB + GIB // 2,
    ),
    Strange(
        "a container that does not see the GPUs' processes",
        (Card(used=30_000 * MIB, uuid="GPU-a"), Card(used=20_000 * MIB, uuid="GPU-b")),
        says=("GPU 0, 1: up to 29.30 GiB on each are held by processes that cannot be seen from here",),
        gauges=(
            "GPU 0, 1: up to 29.30 GiB on each are held by processes that cannot be seen from here",
            "no process on the GPUs",
        ),
    ),
    Strange(
        "a container that sees the host's process ids",
        (Card(processes=[(ELSEWHERE, 1500 * MIB)], uuid="a"), Card(processes=[(ELSEWHERE, 1500 * MIB)], uuid="b")),
        says=(f"Processes hold GPU memory now (pid {ELSEWHERE});",),
        gauges=(str(ELSEWHERE), "unknown process"),
    ),
    Strange(
        "a container with a memory limit (cgroup v2)",
        prepare=_limit_v2,
        says=(
            "RAM 760.00 GiB",
            "limited to 64.00 GiB by cgroup v2 /sys/fs/cgroup/job/memory.max",
            "killed 2 processes",
        ),
        gauges=("32.0/64.0G", "limit: cgroup v2", "the kernel has killed 2 times"),
    ),
    Strange(
        "a container with a memory limit (cgroup v1)",
        prepare=_limit_v1,
        says=("RAM 760.00 GiB", "limited to 64.00 GiB by cgroup v1"),
        gauges=("40.0/64.0G", "limit: cgroup v1"),
    ),
    Strange(
        "512 MB of RAM",
        says=("RAM 512.00 MiB, available 256.00 MiB",),
        gauges=("0.2/0.5G", "50 %"),
        ram=512 * MIB,
    ),
    Strange(
        "512 GPUs",
        tuple(Card(used=30_000 * MIB, uuid=f"GPU-{index}") for index in range(512)),
        says=("512 GPUs", "511 NVIDIA A100-SXM4-40GB", "GPU 0–511: up to 29.30 GiB on each are held"),
        gauges=("511 ▕", "GPU 0–511: up to 29.30 GiB on each are held"),
    ),
)


def main() -> None:
    """Print every machine."""
    for strange in MACHINES:
        with tempfile.TemporaryDirectory() as folder:
            root = strange.root(Path(folder))
            print(f"\n=== {strange.name}\n{machine_report(strange.measured(root))}\n--- the gauges")
            print(texts(gauge_rows(strange.polled(root), "", 1000.0, 100)))


if __name__ == "__main__":
    main()
