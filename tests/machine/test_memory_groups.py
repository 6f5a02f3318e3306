"""The control groups of a process, found once and read again and again."""

from __future__ import annotations

import pytest

from advisor.machine.host import memory_groups

GIB = 1 << 30
V2 = ("cgroup2", "cgroup2 rw", "0::/job/step\n", "memory.max", "memory.current", "memory.events", "inactive_file")
V1 = (
    "cgroup", "cgroup rw,memory", "4:memory:/job/step\n", "memory.limit_in_bytes", "memory.usage_in_bytes",
    "memory.oom_control", "total_inactive_file",
)  # fmt: skip


@pytest.fixture(params=[V2, V1], ids=["v2", "v1"])
def root(tmp_path, request):
    """A machine whose process 77 is in /job/step, limited to 8 GiB at /job."""
    kind, options, own, limit, usage, events, _ = request.param
    process = tmp_path / "proc/77"
    process.mkdir(parents=True)
    (process / "cgroup").write_text(own)
    (process / "mountinfo").write_text(f"30 23 0:26 / /sys/fs/cgroup rw - {kind} {options}\n")
    for folder, size in (("job/step", "max" if kind == "cgroup2" else str(2**63 - 4096)), ("job", str(8 * GIB))):
        group = tmp_path / "sys/fs/cgroup" / folder
        group.mkdir(parents=True, exist_ok=True)
        (group / limit).write_text(f"{size}\n")
        (group / usage).write_text("1024\n")
        (group / events).write_text("oom_kill 2\n")
        (group / "memory.stat").write_text("inactive_file 512\ntotal_inactive_file 512\n")
    return tmp_path, request.param


def test_a_processs_own_group_comes_first_and_the_limit_of_its_parent_is_seen(root):
    folder, (*_, usage, _events, cache) = root
    own, parent = memory_groups(folder, 64 * GIB, pid=77)[:2]
    assert own.folder.endswith("job/step")
    assert (own.limit, parent.limit) == (None, 8 * GIB)
    assert own.usage.name == usage
    assert own.cache_word == cache


def test_the_counter_of_kills_is_read_anew_each_time(root):
    folder, param = root
    group = memory_groups(folder, 64 * GIB, pid=77)[0]
    assert group.oom_kills() == 2
    (group.usage.parent / param[5]).write_text("low 0\noom_kill 5\n")
    assert group.oom_kills() == 5


def test_a_process_that_is_gone_has_no_groups(tmp_path):
    assert memory_groups(tmp_path, 64 * GIB, pid=1) == []
