"""Host memory from fake /proc and cgroup trees."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from advisor.machine.host import read_host
from advisor.machine.nodes import free_for_a_run
from advisor.units import GIB, KIB, MIB

NO_LIMIT_V1 = 9223372036854771712
MEMINFO = (
    "MemTotal: {0} kB\nMemFree: 1 kB\nMemAvailable: {1} kB\nSwapTotal: 1024 kB\nSwapFree: 1000 kB\nHugePages_Total: 0\n"
)
V2_MOUNT = "31 23 0:28 {root} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNT = "35 31 0:32 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
V1_CPU = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
UNIFIED = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"


def space(total: int = 64 * MIB, free: int = 60 * MIB):
    def of(folder: str) -> os.statvfs_result:
        assert folder.endswith("dev/shm")
        return os.statvfs_result((4096, 4096, total // 4096, free // 4096, free // 4096, 0, 0, 0, 0, 255))

    return of


class Tree:
    """A fake root."""

    def __init__(self, root: Path, ram: int = 760 * GIB, available: int = 100 * GIB) -> None:
        self.root = root
        self.write("proc/meminfo", MEMINFO.format(ram // KIB, available // KIB))

    def write(self, path: str, text: object) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(text))

    def cgroups(self, own: str, mounts: str) -> None:
        self.write("proc/self/cgroup", own)
        self.write("proc/self/mountinfo", "22 27 0:21 / /proc rw - proc proc rw\n" + mounts)

    def group_v2(self, path: str, limit: object, current: int = 0, inactive: int = 0, kills: int = 0) -> None:
        folder = f"sys/fs/cgroup{path}"
        self.write(f"{folder}/memory.max", f"{limit}\n")
        self.write(f"{folder}/memory.current", current)
        self.write(f"{folder}/memory.stat", f"anon 1\ninactive_file {inactive}\n")
        self.write(f"{folder}/memory.events", f"low 0\nmax 9\noom 3\noom_kill {kills}\noom_group_kill 0\n")

    def group_v1(self, path: str, limit: int, usage: int = 0, above: int = NO_LIMIT_V1, kills: int = 0) -> None:
        folder = f"sys/fs/cgroup/memory{path}"
        self.write(f"{folder}/memory.limit_in_bytes", limit)
        self.write(f"{folder}/memory.usage_in_bytes", usage)
        self.write(f"{folder}/memory.stat", f"hierarchical_memory_limit {above}\ntotal_inactive_file {GIB}\n")
        self.write(f"{folder}/memory.oom_control", f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n")

    def read(self):
        return read_host(self.root, space())


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_ram_swap_and_shm_without_any_cgroup(tree: Tree):
    host = tree.read()
    assert (host.total_bytes, host.available_bytes, host.used_bytes) == (760 * GIB, 100 * GIB, 660 * GIB)
    assert (host.swap_total_bytes, host.swap_used_bytes) == (MIB, 24 * KIB)
    assert (host.shm_bytes, host.shm_used_bytes) == (64 * MIB, 4 * MIB)
    assert (host.limit_bytes, host.oom_kills, host.ceiling_bytes) == (None, None, 760 * GIB)


def test_nothing_readable_is_unknown_not_zero(tmp_path: Path):
    host = read_host(tmp_path / "nowhere")
    assert (host.total_bytes, host.used_bytes, host.limit_bytes, host.shm_bytes, host.swap_total_bytes) == (None,) * 5


def test_v2_limit_of_the_own_group(tree: Tree):
    tree.cgroups("0::/\n", V2_MOUNT.format(root="/"))
    tree.group_v2("", 96 * GIB, current=90 * GIB, inactive=10 * GIB, kills=2)
    host = tree.read()
    assert (host.limit_bytes, host.limit_used_bytes, host.oom_kills) == (96 * GIB, 80 * GIB, 2)
    assert host.limit_source == "cgroup v2 /sys/fs/cgroup/memory.max"
    assert host.ceiling_bytes == 96 * GIB


def test_v2_takes_the_least_limit_of_all_ancestors(tree: Tree):
    tree.cgroups("0::/system.slice/slurmstepd.scope/job_7/step_0\n", V2_MOUNT.format(root="/"))
    tree.group_v2("/system.slice/slurmstepd.scope/job_7/step_0", "max")
    tree.group_v2("/system.slice/slurmstepd.scope/job_7", 230 * GIB, kills=1)
    tree.group_v2("/system.slice", 500 * GIB)
    host = tree.read()
    assert (host.limit_bytes, host.oom_kills) == (230 * GIB, 1)
    assert "job_7/memory.max" in host.limit_source


def test_v2_max_means_no_limit_but_kills_are_still_counted(tree: Tree):
    tree.cgroups("0::/user.slice\n", V2_MOUNT.format(root="/"))
    tree.group_v2("/user.slice", "max", kills=4)
    host = tree.read()
    assert (host.limit_bytes, host.limit_source, host.oom_kills) == (None, "", 4)


def test_a_limit_above_the_ram_does_not_bind(tree: Tree):
    tree.cgroups("0::/\n", V2_MOUNT.format(root="/"))
    tree.group_v2("", 800 * GIB)
    assert tree.read().limit_bytes is None


def test_container_without_cgroup_namespace_uses_the_mount_point(tree: Tree):
    tree.cgroups("0::/kubepods/pod1/c9\n", V2_MOUNT.format(root="/kubepods/pod1/c9"))
    tree.group_v2("", 315 * GIB)
    assert tree.read().limit_bytes == 315 * GIB


def test_path_that_does_not_exist_here_falls_back_to_the_mount_point(tree: Tree):
    tree.cgroups("0::/docker/abc\n", V2_MOUNT.format(root="/"))
    tree.group_v2("", 200 * GIB)
    assert tree.read().limit_bytes == 200 * GIB


def test_path_outside_the_namespace_never_leaves_the_mount(tree: Tree):
    tree.cgroups("0::/../../etc\n", V2_MOUNT.format(root="/"))
    tree.group_v2("", 200 * GIB)
    tree.write("sys/etc/memory.max", 1 * GIB)
    assert tree.read().limit_bytes == 200 * GIB


def test_v1_limit_and_working_set(tree: Tree):
    tree.cgroups("5:cpu,cpuacct:/docker/a\n4:memory:/docker/a\n", V1_CPU + V1_MOUNT.format(root="/"))
    tree.group_v1("/docker/a", 96 * GIB, usage=91 * GIB, kills=3)
    host = tree.read()
    assert (host.limit_bytes, host.limit_used_bytes, host.oom_kills) == (96 * GIB, 90 * GIB, 3)
    assert host.limit_source == "cgroup v1 /sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes"


def test_v1_unlimited_number_is_no_limit(tree: Tree):
    tree.cgroups("4:memory:/\n", V1_MOUNT.format(root="/"))
    tree.group_v1("", NO_LIMIT_V1)
    assert tree.read().limit_bytes is None


def test_v1_unlimited_number_is_no_limit_even_without_meminfo(tmp_path: Path):
    tree = Tree(tmp_path)
    (tmp_path / "proc/meminfo").unlink()
    tree.cgroups("4:memory:/\n", V1_MOUNT.format(root="/"))
    tree.group_v1("", NO_LIMIT_V1)
    assert tree.read().limit_bytes is None


def test_v1_knows_a_limit_of_an_ancestor_that_is_not_mounted(tree: Tree):
    tree.cgroups("4:memory:/kubepods/p/c\n", V1_MOUNT.format(root="/kubepods/p/c"))
    tree.group_v1("", NO_LIMIT_V1, above=128 * GIB)
    host = tree.read()
    assert host.limit_bytes == 128 * GIB
    assert "hierarchical_memory_limit" in host.limit_source


def test_hybrid_host_reads_v1_where_v2_has_no_memory_controller(tree: Tree):
    tree.cgroups("4:memory:/job\n0::/job\n", V1_MOUNT.format(root="/") + UNIFIED)
    tree.write("sys/fs/cgroup/unified/job/cgroup.procs", "1\n")
    tree.group_v1("/job", 64 * GIB)
    host = tree.read()
    assert (host.limit_bytes, host.limit_source.split()[1]) == (64 * GIB, "v1")


def test_of_nested_limits_the_one_with_the_least_room_binds_and_the_least_is_the_ceiling(tree: Tree):
    tree.cgroups("0::/pod/container\n", V2_MOUNT.format(root="/"))
    tree.group_v2("/pod/container", 200 * GIB, current=115 * GIB)
    tree.group_v2("/pod", 220 * GIB, current=212 * GIB)
    tree.write("sys/fs/cgroup/pod/container/memory.swap.max", 0)
    host = tree.read()
    assert (host.limit_bytes, host.limit_used_bytes, host.ceiling_bytes) == (220 * GIB, 212 * GIB, 200 * GIB)
    assert (free_for_a_run(host), host.swap_total_bytes) == (8 * GIB, 0)


def test_huge_pages_are_no_room(tree: Tree):
    tree.write("proc/meminfo", MEMINFO.format(512 * 2**20, 250 * 2**20) + f"Hugetlb: {200 * 2**20} kB\n")
    assert (tree.read().total_bytes, tree.read().ceiling_bytes) == (512 * GIB, 312 * GIB)


def test_of_equal_limits_the_fuller_group_binds_and_version_1_shows_the_usage_of_the_one_that_has_it(tree: Tree):
    tree.cgroups("0::/job/step\n", V2_MOUNT.format(root="/"))
    tree.group_v2("/job/step", 240 * GIB, current=100 * GIB)
    tree.group_v2("/job", 240 * GIB, current=170 * GIB)
    tree.write("sys/fs/cgroup/job/memory.high", 200 * GIB)
    host = tree.read()
    assert (host.limit_bytes, host.limit_used_bytes) == (240 * GIB, 170 * GIB)
    assert host.limit_source.endswith("job/memory.max (memory.high 200.00 GiB)")
    tree.cgroups("4:memory:/user/session\n", V1_MOUNT.format(root="/"))
    tree.group_v1("/user/session", NO_LIMIT_V1, usage=11 * GIB, above=32 * GIB, kills=3)
    tree.group_v1("/user", 32 * GIB, usage=23 * GIB, above=32 * GIB)
    host = tree.read()
    assert (host.limit_bytes, host.limit_used_bytes, host.oom_kills) == (32 * GIB, 22 * GIB, 3)


def test_where_nothing_is_killed_a_run_may_stall(tree: Tree):
    tree.cgroups("0::/\n", V2_MOUNT.format(root="/"))
    tree.group_v2("", "max")
    tree.write("sys/fs/cgroup/memory.high", 48 * GIB)
    host = tree.read()
    assert (host.limit_bytes, host.limit_source) == (48 * GIB, "cgroup v2 /sys/fs/cgroup/memory.high")


def test_the_memory_of_a_grace_superchips_gpu_is_no_ram(tree: Tree):
    for node, cpus in ((0, "0-71"), (1, "")):
        tree.write(f"sys/devices/system/node/node{node}/cpulist", cpus + "\n")
        tree.write(
            f"sys/devices/system/node/node{node}/meminfo",
            f"Node {node} MemTotal: {96 * MIB} kB\nNode {node} MemFree: {MIB} kB\n",
        )
    assert tree.read().total_bytes == 760 * GIB, "a node without processors elsewhere is RAM: CXL"
    tree.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  570.133.20\n")
    host = tree.read()
    assert (host.total_bytes, host.available_bytes) == (664 * GIB, 99 * GIB)


def test_mount_points_with_spaces_are_understood(tree: Tree):
    tree.cgroups("0::/\n", "31 23 0:28 / /sys/my\\040groups rw - cgroup2 cgroup2 rw\n")
    tree.write("sys/my groups/memory.max", 50 * GIB)
    assert tree.read().limit_bytes == 50 * GIB


def test_garbage_in_proc_is_survived(tree: Tree):
    tree.cgroups("::::\nnonsense\n0::\n", "- - -\nshort line\n 1 2 3 4 5 6 - \n")
    tree.write("proc/meminfo", "MemTotal:\nMemAvailable: many kB\n\x00\n")
    host = tree.read()
    assert (host.total_bytes, host.limit_bytes) == (None, None)
