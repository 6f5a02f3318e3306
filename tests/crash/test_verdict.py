# ruff: noqa: E501  (log lines as they are printed)
"""Look-alikes first, host and GPU told apart, the first failure before its echoes, bare kills left unclear."""

import pytest

from advisor.units import GIB
from tests.loops import each

from .healthy import HEALTHY
from .known import judge

RAY_KILL = """\
ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.
Memory on the node (IP: 10.0.0.1, ID: ca4d) where the task (task ID: 13a8, name=main_task, pid=108824, memory used=0.87GB) \
was running was 726.33GB / 760.00GB (0.955697), which exceeds the memory usage threshold of 0.95. Ray killed this worker \
(ID: 4039) because it was the most recently scheduled task. Top 10 memory users:
PID\tMEM(GB)\tCOMMAND
109333\t88.60\tray::WorkerDict.actor_rollout_generate_sequences
109327\t86.55\tray::WorkerDict.actor_rollout_generate_sequences
108824\t0.87\tray::main_task
"""
DIED = (
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker "
    "unexpectedly exits with a connection error code 2. End of file. There are some potential root causes. (1) The process "
    "is killed by SIGKILL by OOM killer due to high memory usage."
)
GPU = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 39.39 GiB of which 1.00 GiB is free."


@each("log", HEALTHY.values())
def test_a_healthy_run_is_not_out_of_memory_and_has_no_cause(log):
    crash = judge(log)
    assert (crash.verdict, crash.memory) == ("not_oom", "none")
    assert not any(one.role == "cause" and one.memory != "none" for one in crash.evidence)


@each("name", [name for name in HEALTHY if "tools" not in name])
def test_a_healthy_run_names_no_signature(name):
    assert judge(HEALTHY[name]).signature == ""


def test_rays_kill_is_host_memory_with_its_sizes_and_the_killed_task_is_a_victim():
    crash = judge(RAY_KILL)
    assert (crash.verdict, crash.memory, crash.signature) == ("oom", "host", "ray-memory-kill")
    fields = crash.evidence[0].fields
    assert fields["node_used_bytes"] == round(726.33 * GIB)
    assert fields["node_total_bytes"] == 760 * GIB
    assert (fields["threshold"], fields["fraction"]) == (0.95, 0.955697)
    victim = next(one for one in crash.evidence if one.role == "victim")
    assert victim.fields["task"] == "main_task"
    assert crash.top_users[0].used_bytes == round(88.60 * GIB)
    assert crash.phase == "rollout_generate"


def test_a_table_with_literal_tabs_and_line_breaks_is_read():
    crash = judge(RAY_KILL.replace("\n", "\\n").replace("\t", "\\t"))
    assert (crash.memory, len(crash.top_users)) == ("host", 3)


@each(
    ("task", "memory"),
    [
        ("TaskRunner.run()", "unknown"),  # it waits for others, of which Ray may have killed one
        ("ActorModelRayActor.fit()", "unknown"),
        ("WorkerDict.actor_rollout_update_actor()", "gpu"),  # it waits for none: what it raised was torch's
        ("DTensorPolicyWorkerV2.get_logprobs()", "gpu"),
    ],
)
def test_rays_wrapper_tells_the_memory_only_of_a_task_that_waits_for_no_other(task: str, memory: str) -> None:
    crash = judge(f"ray.exceptions.RayTaskError(OutOfMemoryError): ray::{task} (pid=1)")
    assert (crash.verdict, crash.memory) == ("oom", memory)


@pytest.mark.parametrize("index", ["", "\x02", "\ufffd"])
def test_the_sizes_are_read_where_torch_prints_no_index_that_can_be_read(index: str) -> None:
    crash = judge(
        f"CUDA out of memory. Tried to allocate 1.16 GiB. GPU {index} has a total capacity of 15.77 GiB of which"
        " 1012.69 MiB is free. Process 15788 has 456.00 MiB memory in use."
    )
    fields = crash.evidence[0].fields
    assert (fields["total_bytes"], "gpu" in fields) == (round(15.77 * 2**30), False)


@each(
    "line",
    [
        DIED,
        "failed (exitcode: -9) local_rank: 0 (pid: 1) of binary: /usr/bin/python",
        "run.sh: line 3:  77 Killed                  python3 train.py",
        "command terminated with exit code 137",
    ],
)
def test_a_bare_kill_proves_nothing_and_says_what_would(line):
    crash = judge(line)
    assert (crash.verdict, crash.memory) == ("unclear", "unknown")
    assert crash.unclear_because
    assert any("dmesg" in step or "kubectl" in step for step in crash.settle_by)


@each(
    "witness",
    [
        "slurmstepd: error: Detected 1 oom_kill event in StepId=18835145.batch.",
        "      Reason:       OOMKilled",
        "[9.1] Out of memory: Killed process 4242 (ray::WorkerDict) total-vm:41kB, anon-rss:19kB, file-rss:1kB",
        "(raylet) node_manager.cc:3007: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed",
    ],
)
def test_a_second_witness_turns_a_kill_into_host_memory(witness):
    crash = judge(f"{DIED}\n{witness}\n")
    assert (crash.verdict, crash.memory) == ("oom", "host")
    assert any(one.role == "hint" for one in crash.evidence)


def test_no_worker_killed_for_memory_is_no_witness():
    assert (
        judge("0 Workers (tasks / actors) killed due to memory pressure (OOM), 1 Workers crashed due to other").verdict
        != "oom"
    )


def test_docker_saying_not_oom_killed_is_no_witness():
    assert judge('"OOMKilled": false, "ExitCode": 137').verdict == "unclear"


def test_a_time_limit_explains_the_kill():
    crash = judge(
        "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2025-01-01T00:00:00 DUE TO TIME LIMIT ***\nexitcode: -9 (pid: 1)"
    )
    assert (crash.verdict, crash.signature) == ("not_oom", "time-limit")


def test_followers_of_an_out_of_memory_rank_do_not_hide_it():
    log = f"[rank3]: {GPU}\n[rank0]: [E1225 12:58:32 x.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL\n"
    crash = judge(log + "Sending process 1 closing signal SIGTERM\nexitcode: -9 (pid: 2)")
    assert (crash.verdict, crash.memory, crash.evidence[0].process) == ("oom", "gpu", "rank3")


def test_the_same_failure_of_other_ranks_is_folded_into_the_first():
    crash = judge("\n".join(f"[rank{rank}]: {GPU.replace('GPU 0', f'GPU {rank}')}" for rank in range(8)))
    assert crash.evidence[0].repeats == 7
    assert [one.role for one in crash.evidence].count("cause") == 1


def test_a_message_with_sizes_stands_for_the_bare_one_above_it():
    crash = judge(f"ray.exceptions.RayTaskError(OutOfMemoryError): ray::X.y() (pid=1)\n{GPU}\n")
    assert crash.signature == "torch-oom"
    assert crash.evidence[0].line == 2


@pytest.mark.parametrize(
    ("frame", "memory"), [("pin_memory", "host"), ("_configure_zero_optimizer", "unknown"), ("forward", "gpu")]
)
def test_the_frame_tells_which_memory_the_driver_meant(frame, memory):
    crash = judge(
        f'  File "/x/deepspeed/runtime/engine.py", line 3, in {frame}\n    x()\nRuntimeError: CUDA error: out of memory\n'
    )
    assert (crash.verdict, crash.memory) == ("oom", memory)


@each(
    ("line", "verdict", "memory"),
    [
        ("OSError: [Errno 28] No space left on device: '/dev/shm/torch_1'", "oom", "shm"),
        ("OSError: [Errno 28] No space left on device: '/data/ckpt/a.pt'", "not_oom", "none"),
        ("OSError: [Errno 28] No space left on device", "unclear", "unknown"),
        ("NCCL WARN Error while creating shared memory segment /dev/shm/nccl-W (size 9637888)", "oom", "shm"),
    ],
)
def test_no_space_left_is_judged_by_its_path(line, verdict, memory):
    crash = judge(line)
    assert (crash.verdict, crash.memory) == (verdict, memory)


def test_another_exception_is_not_memory():
    crash = judge('Traceback (most recent call last):\n  File "/x/a.py", line 1, in f\n    d["k"]\nKeyError: \'k\'\n')
    assert (crash.verdict, crash.memory, crash.evidence[0].fields["exception"]) == ("not_oom", "none", "KeyError")


def test_a_traceback_without_its_last_line_is_unclear():
    crash = judge(
        'Traceback (most recent call last):\n  File "/x/dp_actor.py", line 1, in update_policy\n    loss.backward()\n'
    )
    assert (crash.verdict, crash.phase) == ("unclear", "actor_update")
    assert crash.settle_by


@each(
    "line",
    [
        "INFO model_runner.py:1430] If out-of-memory error occurs during cudagraph capture, consider decreasing it",
        "Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.9 -> 1.0",
        "        except torch.cuda.OutOfMemoryError:",
        "To avoid CUDA error: out of memory you can lower the batch size",
        "    except MemoryError:",
    ],
)
def test_words_about_memory_are_not_a_shortage(line):
    crash = judge(line)
    assert crash.verdict != "oom"
    assert not any(one.role == "cause" for one in crash.evidence)


def test_an_empty_log_is_unclear_and_says_so():
    crash = judge("")
    assert (crash.verdict, crash.signature, crash.lines_read) == ("unclear", "", 0)
    assert "empty" in crash.unclear_because


def test_a_log_without_any_crash_or_progress_is_unclear_without_a_signature():
    crash = judge("hello\nworld\n")
    assert (crash.verdict, crash.signature, crash.evidence) == ("unclear", "", ())


@each(
    ("line", "signature"),
    [
        (
            "RuntimeError: The size of tensor a (1024) must match the size of tensor b (1000) at non-singleton dimension 1",
            "wrong-tensor",
        ),
        (
            "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
            "wrong-tensor",
        ),
        ("hydra.errors.OverrideParseException: mismatched input", "other-exception"),
        (
            "(pid=9) ../aten/src/ATen/native/cuda/Indexing.cu:1255: f: block: [4,0,0], thread: [64,0,0] Assertion `i < n` failed.",
            "kernel-assertion",
        ),
        (
            "NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-x (size 0), error: No such file or directory (2)",
            "nccl-shm-attach",
        ),
        ("*** SIGFPE received at time=1751967829 on cpu 14 ***", "native-crash"),
    ],
)
def test_what_it_is_instead_is_told(line, signature):
    crash = judge(f'Traceback (most recent call last):\n  File "/x/a.py", line 3, in f\n    g()\n{line}\n')
    assert (crash.verdict, crash.memory, crash.signature) == ("not_oom", "none", signature)
    assert crash.settle_by == ()


@each(
    "line",
    [
        "RuntimeError: Engine core initialization failed. See root cause above.",
        "(raylet) The node with node id: 4be2 has been marked dead because the detector has missed too many heartbeats from it.",
        "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker exits unexpectedly. Worker exits with an exit code None. The worker may have exceeded K8s pod memory limits.",
        "srun: error: n1: task 3: Killed",
        "Root Cause (first observed failure):",
        "*** SIGABRT received at time=1741659001 on cpu 30 ***",
    ],
)
def test_what_only_points_elsewhere_is_unclear_and_says_what_would_settle_it(line):
    crash = judge(line + "\n")
    assert (crash.verdict, crash.memory) == ("unclear", "unknown")
    assert crash.evidence[0].text == line
    assert crash.settle_by


def test_an_old_ray_names_the_task_and_the_node():
    line = "(raylet) node_manager.cc:2963: System memory low at node with IP 172.17.0.2. Used memory (23.63GB) / total capacity (33.28GB) (0.709971) exceeds threshold 0.7, killing latest task with name the_real_oom_actor:Leaker.__init__ and actor ID dc0d"
    crash = judge(line)
    assert (crash.verdict, crash.memory, crash.evidence[0].fields["task"]) == (
        "oom",
        "host",
        "the_real_oom_actor:Leaker.__init__",
    )
    assert crash.evidence[0].fields["node_total_bytes"] == round(33.28 * GIB)


def test_a_notebook_that_shows_only_the_head_of_its_traceback_proves_the_class():
    log = "OutOfMemoryError                          Traceback (most recent call last)\n[/x/trl/trainer/grpo_trainer.py](https://localhost:8080/#) in compute_loss(self, model)\n    779 \n--> 781         return loss\n    782 \n\nOutOfMemoryError: CUDA out of memory. \nTried to allocate 9.47 GiB. GPU 0 has a total capacity of 14.75 GiB of which 3.78 GiB is free."
    assert judge(log.partition("\n")[0]).verdict == "oom"
    crash = judge(log)
    assert (crash.phase, crash.frames[0].line) == ("actor_update", 781)
    assert crash.evidence[0].fields["free_bytes"] == round(3.78 * GIB)


@pytest.mark.parametrize(
    "log",
    [
        'Traceback (most recent call last):\n  File "/opt/torch/serialization.py", line 379, in save\n'
        "    _save(obj, zip_file)\nOSError: [Errno 28] No space left on device\n",
        "safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 28, kind: StorageFull, "
        'message: "No space left on device" })\n',
    ],
)
def test_no_space_while_a_checkpoint_is_written_is_a_full_disk(log: str) -> None:
    crash = judge(log)
    assert (crash.verdict, crash.memory) == ("not_oom", "none")


def test_no_space_that_nobody_says_where_stays_open() -> None:
    assert judge("OSError: [Errno 28] No space left on device\n").verdict == "unclear"


def test_what_cuda_itself_printed_below_xlas_allocator_is_read() -> None:
    crash = judge(
        "E1103 18:23:55.1 34 gpu_cudamallocasync_allocator.cc:361] gpu_async_0 cuMemAllocAsync failed to allocate"
        " 25769803776 bytes: RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"
        " Reported by CUDA: Free memory/Total memory: 8589934592/85899345920\n"
    )
    fields = crash.evidence[0].fields
    assert (crash.verdict, crash.memory) == ("oom", "gpu")
    assert [fields[name] / 2**30 for name in ("tried_bytes", "free_bytes", "total_bytes")] == [24, 8, 80]
