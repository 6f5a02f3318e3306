"""Whose line it is, and of which launch: an engine's, the system's log, a rank's own exception, another launch's."""

from __future__ import annotations

from pathlib import Path

from advisor.crash.evidence import Reading
from advisor.crash.read import read_logs
from advisor.diagnosis.course_facts import rising_course
from advisor.run.natives import same_text
from advisor.units import GIB
from tests.crash.known import SIGNATURES, judge

STEPS = "".join(f"(TaskRunner pid=100) step:{n} - actor/kl_loss:0.01 - training/global_step:{n}\n" for n in range(1, 7))
ENGINE = (
    "(SGLangEngine pid=2103) [torch_memory_saver.cpp] CUresult error: 2 (out of memory)  file=csrc/utils.h "
    "func=cu_mem_create line=104\n"
)
DRIVER = (
    "Traceback (most recent call last):\n"
    '  File "/verl/verl/trainer/ppo/ray_trainer.py", line 1130, in fit\n'
    "    actor_output = self.actor_rollout_wg.update_actor(batch)\n"
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
)
KERNEL = (
    "[Tue Jul 15 06:22:39 2025] ray::WorkerDict invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n"
    "[Tue Jul 15 06:22:39 2025] memory: usage 943718400kB, limit 943718400kB, failcnt 48213\n"
    "[Tue Jul 15 06:22:39 2025] Memory cgroup out of memory: Killed process 2380111 (ray::WorkerDict) "
    "total-vm:192853644kB, anon-rss:109788012kB, file-rss:211200kB, shmem-rss:3211264kB, UID:0\n"
)


def test_what_an_engine_failed_of_is_no_phase_of_the_trainer() -> None:
    mark = "(MegatronTrainRayActor pid=5101) timer.py:24 - Timer actor_train start\n"
    assert judge(f"slime/train.py\n{mark}{ENGINE}").phase == "unknown"


def test_the_system_s_log_proves_and_the_run_s_own_places(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(STEPS + DRIVER)
    (tmp_path / "dmesg.txt").write_text(KERNEL)
    crash = read_logs([tmp_path / "train.log", tmp_path / "dmesg.txt"], SIGNATURES)
    assert (crash.verdict, crash.memory, crash.phase, crash.steps_done) == ("oom", "host", "actor_update", 6)
    assert (Path(crash.evidence[0].file).name, crash.evidence[0].line, crash.counts["job_ram"]) == (
        "dmesg.txt",
        3,
        900 * GIB,
    )


def test_a_launch_begins_again_behind_its_launcher_s_end() -> None:
    begin = (
        "[INFO|2025-06-30 20:00:0{}] llamafactory.cli:143 >> Initializing 8 distributed tasks at: 127.0.0.1:4321{}\n"
    )
    oom = "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.62 GiB.\n"
    over = "subprocess.CalledProcessError: Command '['torchrun']' returned non-zero exit status 1.\n"
    stop = '[rank0]: Traceback (most recent call last):\n[rank0]:   File "a", line 1, in f\n[rank0]: KeyboardInterrupt'
    crash = judge(f"{begin.format(1, 1)}{oom}{over}{begin.format(9, 2)}{STEPS}{stop}")
    assert (crash.verdict, crash.signature) == ("not_oom", "interrupted")
    assert [one.signature for one in crash.evidence if one.runs_ago] == ["torch-oom"]


def test_the_message_is_quoted_and_not_the_statement_that_raises() -> None:
    quoted = '    raise ValueError("No available memory for the cache blocks. "\n'
    crash = judge(
        f"Traceback (most recent call last):\n{quoted}ValueError: No available memory for the cache blocks.\n"
    )
    assert crash.evidence[0].line == 3


def test_a_run_that_ended_well_is_shown_by_its_end() -> None:
    crash = judge(f"{STEPS}We run out of memory of the rule, so compute: 2\n{{'train_runtime': 4051.9}}\n")
    assert crash.is_well
    assert crash.finished
    assert "run-finished" in [one.signature for one in crash.evidence]


def test_preemption_is_no_time_limit() -> None:
    line = "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2025-06-01T00:31:12 DUE TO {} ***\n"
    assert [judge(STEPS + line.format(why)).signature for why in ("PREEMPTION", "TIME LIMIT")] == [
        "job-preempted",
        "time-limit",
    ]


def test_one_jump_is_no_growth() -> None:
    def course(*sizes: int) -> list[Reading]:
        return [Reading(line, "unknown", "allocated", size * GIB, "", "", "") for line, size in enumerate(sizes)]

    assert rising_course(course(44, 44, 44, 44, 44, 62), "allocated") is None
    assert rising_course(course(44, 48, 51, 55, 58, 62), "allocated") is not None


def test_a_list_is_the_same_with_commas_and_without() -> None:
    assert same_text("[full_shard,auto_wrap]", "full_shard auto_wrap")
    assert not same_text("[full_shard]", "full_shard auto_wrap")
