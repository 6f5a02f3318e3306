# ruff: noqa: E501  (log lines as they are printed)
"""Several runs in one log: the newest crash is told, older ones are listed; and what makes a killed process a shortage."""

import pytest

from advisor.units import GIB
from tests.loops import each

from .known import judge

GPU = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.06 GiB. GPU 0 has a total capacity of 79.32 GiB of which 1.11 GiB is free."
HOST = "Memory on the node (IP: 10.0.0.4, ID: 4fd0) where the task (task ID: 5bbb, name=WorkerDict.actor_rollout_update_actor, pid=9001, memory used=181.05GB) was running was 1430.11GB / 1504.00GB (0.950871), which exceeds the memory usage threshold of 0.95."
QUIET = "".join(f"(WorkerDict pid=9) ordinary line {number}\n" for number in range(40))


def run(driver: int, batch: int, *, steps: int, end: str = "") -> str:
    launch = f"+ python3 -m verl.trainer.main_ppo data.train_batch_size={batch}\n"
    done = "".join(f"(TaskRunner pid={driver}) step:{step} - a:1\n" for step in range(1, steps + 1))
    return f"{launch}(TaskRunner pid={driver}) {{'data': {{'seed': {batch}}}}}\n{QUIET}{done}{end}"


def crashed(line: str, driver: int = 1, batch: int = 64) -> str:
    return run(driver, batch, steps=2, end=f"(WorkerDict pid=5) {line}\n")


def test_the_newest_crash_is_told_and_the_older_one_listed():
    crash = judge(crashed(GPU) + crashed(HOST, driver=100, batch=32))
    assert (crash.verdict, crash.memory, crash.signature) == ("oom", "host", "ray-memory-kill")
    older = [one for one in crash.evidence if one.runs_ago]
    assert [(one.signature, one.role, one.runs_ago) for one in older] == [("torch-oom", "warning", 1)]
    assert crash.gpu_total_bytes is None


def test_settings_are_those_of_the_run_told_of():
    assert judge(crashed(GPU) + crashed(HOST, driver=100, batch=32)).settings["data.train_batch_size"] == "32"


def test_a_run_that_only_just_began_does_not_hide_the_crash_before_it():
    assert judge(crashed(GPU) + run(100, 32, steps=0)).signature == "torch-oom"


def test_a_run_that_goes_well_since_then_leaves_nothing_to_diagnose():
    crash = judge(crashed(GPU) + run(100, 32, steps=5))
    assert (crash.verdict, crash.signature) == ("not_oom", "")
    assert [one.runs_ago for one in crash.evidence if one.signature == "torch-oom"] == [1]


@each(
    "again",
    [
        "step:1 - a:1\n",
        "+ python3 -m verl.trainer.main_ppo a=1\n",
        "Started a local Ray instance. View the dashboard at 127.0.0.1:8265\n",
        "[default0]: Worker group FAILED. 2/3 attempts left; will restart worker group\n",
        "(TaskRunner pid=2) hello\n",
    ],
)
def test_any_sign_of_another_start_separates_two_runs(again):
    first = (
        "+ python3 -m verl.trainer.main_ppo a=1\nStarted a local Ray instance. View the dashboard at 127.0.0.1:8265\n"
        f"(TaskRunner pid=1) hello\n{QUIET}step:1 - a:1\nstep:2 - a:1\n{GPU}\n"
    )
    assert judge(first + QUIET + again + HOST + "\n").memory == "host"
    assert judge(first + QUIET + HOST + "\n").memory == "gpu"


def test_processes_launched_together_are_one_run():
    launches = "".join(f"+ python3 worker.py --rank {rank}\n" for rank in range(4))
    assert judge(f"{launches}{GPU}\n{launches}{HOST}\n").memory == "gpu"


FULL = "[utils.py:839:see_memory_usage] CPU Virtual Memory:  used = 91.44 GB, percent = 97.2%\n"
ROOMY = "[utils.py:839:see_memory_usage] CPU Virtual Memory:  used = 61.44 GB, percent = 65.2%\n"
SLIME = "[Rank 0] Memory-Usage before train: {'gpu': '0', 'used_GB': 9.6, 'host_total_GB': 1979.9, 'host_available_GB': 20.2, 'host_used_GB': 1951.2, 'host_free_GB': 1.0}\n"
ABOVE = "(raylet) memory_monitor.cc:85: Node memory usage above threshold, used: 1043677052928, threshold_bytes: 1043000000000, total bytes: 1079511627776, threshold fraction: 0.95\n"
KILLS = [
    "exits with return code = -9\n",
    "  exitcode  : -9 (pid: 1234)\n",
    "Killed\n",
    "command terminated with exit code 137\n",
]


@pytest.mark.parametrize("kill", KILLS)
@pytest.mark.parametrize("witness", [FULL, ABOVE, SLIME])
def test_a_kill_right_after_memory_was_nearly_full_is_host_memory(kill, witness):
    crash = judge(ROOMY + witness + kill)
    assert (crash.verdict, crash.memory, crash.evidence[0].role) == ("oom", "host", "cause")
    assert crash.evidence[0].fields["witness_line"] == 2
    assert crash.evidence[1].text in witness


@pytest.mark.parametrize("kill", KILLS)
@pytest.mark.parametrize("reading", [ROOMY, FULL + ROOMY, ""])
def test_a_kill_with_memory_to_spare_stays_unclear(kill, reading):
    crash = judge(reading + kill)
    assert (crash.verdict, crash.memory) == ("unclear", "unknown")
    assert crash.settle_by


def test_the_group_s_own_counter_is_a_witness():
    assert judge("$ cat /sys/fs/cgroup/memory.events\nlow 0\noom 3\noom_kill 3\nKilled\n").memory == "host"
    assert judge("low 0\noom 0\noom_kill 0\nKilled\n").verdict == "unclear"


def test_rays_wrapper_is_told_by_what_stands_under_it():
    wrapper = "ray.exceptions.RayTaskError(OutOfMemoryError): ray::TaskRunner.run() (pid=8111, ip=10.0.0.4)\n"
    assert judge(wrapper).memory == "unknown"
    host = judge(f'{wrapper}  File "a.py", line 1, in fit\nray.exceptions.OutOfMemoryError: Task was killed\n{HOST}\n')
    assert (host.memory, host.evidence[0].fields["node_total_bytes"]) == ("host", 1504 * GIB)
    assert judge(f"{wrapper}{GPU}\n").evidence[0].fields["gpu"] == 0


def test_an_old_fault_in_the_driver_s_log_does_not_outrank_the_run_s_own_error():
    assert judge(f"[ 1.0] NVRM: Xid (PCI:0000:3b:00): 31, pid=77\n{GPU}\n").verdict == "oom"


def test_a_nearly_full_disk_is_only_a_warning():
    disk = "(raylet) file_system_monitor.cc:111: /tmp/ray is over 95% full, available space: 18.2 GB; capacity: 437.2 GB. Object creation will fail\n"
    assert judge(f"{disk}{GPU}\n").signature == "torch-oom"


def test_the_last_progress_line_is_evidence_of_how_far_the_run_came():
    crash = judge(f"(Runner pid=1) Compute log probs:  76%|###  | 244/320 [08:56<02:05]\n(raylet) x\n{HOST}\n")
    mark = next(one for one in crash.evidence if one.role == "progress")
    assert (mark.line, mark.phase) == (1, "log_prob")


def test_a_second_try_that_only_stumbles_does_not_hide_what_the_first_proved():
    died = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
    assert judge(crashed(GPU) + f"(main_task pid=9) hello\n{QUIET}(main_task pid=10) hello\n{died}").memory == "gpu"
    assert judge(crashed(died.strip()) + run(100, 32, steps=0, end=died)).verdict == "unclear"
