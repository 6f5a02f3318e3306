# ruff: noqa: E501  (log lines as they are printed)
"""Longer logs of runs that are well, made of each framework's own lines with traps strewn in: whole error messages that a
model read or wrote, failures that a sandbox had and the trainer caught, warnings close to the limit, noise of teardown."""

from __future__ import annotations

from collections.abc import Callable, Iterator

TORCH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.32 GiB of which "
    "1.94 GiB is free. Including non-PyTorch memory, this process has 77.37 GiB memory in use."
)
SMI = "|   0  NVIDIA H100 80GB HBM3          On  | 00000000:1B:00.0 Off |  0 |\n| N/A   41C    P0   512W / 700W |  80612MiB / 81559MiB |     99%      Default |"


def _run(step: Callable[[int], str], traps: dict[int, str], head: str = "", tail: str = "", steps: int = 24) -> str:
    """`steps` steps as `step` prints them, a trap before the one it is numbered by."""
    parts: list[str] = [head] if head else []
    for number in range(1, steps + 1):
        if number in traps:
            parts.append(traps[number])
        parts.append(step(number))
    return "\n".join([*parts, tail] if tail else parts) + "\n"


def _verl(number: int) -> str:
    return (
        f"(TaskRunner pid=4617) step:{number} - actor/entropy:0.41 - actor/grad_norm:0.2 - perf/max_memory_allocated_gb:71.9 - "
        f"perf/max_memory_reserved_gb:78.80 - perf/cpu_memory_used_gb:1421.5 - response_length/mean:812.1\n"
        f"(TaskRunner pid=4617) \rTraining Progress:  {number}%|#         | {number}/100 [{number}:10<9:10:00, 260.3s/it]"
    )


def _dictionary(number: int) -> str:
    return (
        f"{{'loss': 0.0{number}, 'grad_norm': 0.71, 'learning_rate': 9.9e-07, 'completion_length': 811.2, 'epoch': {number / 100}}}\n"
        f"  {number}%|#         | {number}/100 [{number}:10<2:10:00, 80.3s/it]"
    )


def _swift(number: int) -> str:
    return (
        f"{{'loss': 0.01, 'token_acc': 0.98, 'grad_norm': 0.17, 'memory(GiB)': 78.9{number % 10}, 'train_speed(iter/s)': 0.05, "
        f"'epoch': 0.0{number}, 'global_step/max_steps': '{number}/221', 'elapsed_time': '3h 14m 25s'}}"
    )


def _slime(number: int) -> str:
    return (
        f"(MegatronTrainRayActor pid=32167) [2025-12-17 14:{number:02}:28] timer.py:32 - Timer actor_train start\n"
        f"(MegatronTrainRayActor pid=32167) [2025-12-17 14:{number:02}:48] model.py:649 - step {number}: {{'train/loss': -6.0e-09, 'train/step': {number}}}"
    )


def _openrlhf(number: int) -> str:
    return f"(ActorModelRayActor pid=67842) \rEpisode [1/20]:  {number}%|5         | {number}/100 [04:10<1:19:10, 250.0s/it]"


def _megatron(number: int) -> str:
    return f" [2025-06-11 03:{number:02}:11] iteration {number * 10:8}/    5000 | consumed samples: {number * 640} | lm loss: 2.1E+00"


def _prime(number: int) -> str:
    return f"12:{number:02}:44 SUCCESS Step {number} | Time: 30.21s | Loss: 0.0121 | Entropy: 0.4 | Peak Mem.: 76.8 GiB"


def _easyr1(number: int) -> str:
    return (
        "(WorkerDict pid=12) After vllm offload in sharding manager: 77.87 GB / 79.10 GB.\n"
        f"(Runner pid=11) Running step:   {number}%|          | {number}.00/80.0 [03:10<4:10:10, 190s/it]"
    )


def _orz(number: int) -> str:
    return f"(PolicyRayActorBase pid=6) Train epoch [1/1]:  {number}%|# | {number}/120 [01:00<09:00, 5.0s/it]"


def _plain(number: int) -> str:
    return f"step:{number} - train/loss:0.4 - train/lr:1e-05"


COMPLETION = f"""\
(TaskRunner pid=4617) [prompt] My training dies with the following, what should I do?
(TaskRunner pid=4617) Traceback (most recent call last):
(TaskRunner pid=4617)   File "train.py", line 40, in <module>
(TaskRunner pid=4617)     loss.backward()
(TaskRunner pid=4617) {TORCH}
(TaskRunner pid=4617) [response] You ran out of memory. Lower the batch size, or the process is
(TaskRunner pid=4617) Killed
(TaskRunner pid=4617) [ground_truth] batch size
(TaskRunner pid=4617) [score] 1.0"""
SANDBOX = """\
(RewardWorker pid=99) sandbox of sample 311:
(RewardWorker pid=99) Traceback (most recent call last):
(RewardWorker pid=99)   File "/tmp/solution.py", line 3, in <module>
(RewardWorker pid=99)     grid = [[0] * 10**9 for _ in range(10**9)]
(RewardWorker pid=99) MemoryError
(RewardWorker pid=99) container exited with exit code 137
(RewardWorker pid=99) /bin/bash: line 1: 77 Segmentation fault      (core dumped) ./a.out"""
CAUGHT = f"""\
[rank2]:[W611 03:12:15.000000 CUDACachingAllocator.cpp:1440] Warning: memory allocation failed with out of memory, the cache is emptied
WARNING:root:one batch was skipped: {TORCH}"""
HINTS = """\
INFO 03-04 10:11:12 model_runner.py:1430] If out-of-memory error occurs during cudagraph capture, consider decreasing `gpu_memory_utilization` or switching to eager mode.
INFO 03-04 10:11:14 model_runner.py:984] CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of memory, consider decreasing `gpu_memory_utilization` or enforcing eager mode.
UserWarning: expandable_segments not supported on this platform; set PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb to avoid OutOfMemoryError
[WARNING] consider calling torch.cuda.empty_cache() between steps to prevent CUDA out of memory errors"""
KV = """\
WARNING 06-11 03:12:11 scheduler.py:1554] Sequence group 4092 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. This can affect the end-to-end performance. total_num_cumulative_preemption=5951
(EngineCore_DP0 pid=553) INFO 09-17 04:55:13 [loggers.py:123] Engine 000: Avg generation throughput: 812.0 tokens/s, Running: 256 reqs, Waiting: 12 reqs, GPU KV cache usage: 99.8%, Preemptions: 41
[2025-06-11 03:13:01 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 12, #aborted_retracted_reqs: 0, #new_token_ratio: 0.4 -> 0.9"""
TUNING = """\
E0912 11:54:57.366000 1121181 torch/_inductor/select_algorithm.py:2100] [7/0] Runtime error during autotuning:
E0912 11:54:57.366000 1121181 torch/_inductor/select_algorithm.py:2100] [7/0] No valid triton configs. OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376. Reducing block sizes or `num_stages` may help..
E0912 11:54:57.366000 1121181 torch/_inductor/select_algorithm.py:2100] [7/0] Ignoring this choice."""
DISK = "(raylet) [2025-03-11 02:10:07,000 E 77 99] (raylet) file_system_monitor.cc:111: /tmp/ray/session_2025-03-11 is over 95% full, available space: 18.2 GB; capacity: 437.2 GB. Object creation will fail if spilling is required."
RETRIED = """\
(raylet) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker. Lease ID: 0300 Worker ID: 389f Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file. Some common causes include: (1) the process was killed by the OOM killer due to high memory usage, (2) ray stop --force was called.
(RewardManager pid=5) task 17 is retried (1 of 3)"""
LOADERS = """\
Filter (num_proc=8): 100%|##########| 7473/7473 [00:02<00:00, 3120.1 examples/s]
UserWarning: This DataLoader will create 64 worker processes in total. Our suggested max number of worker in current system is 32, which may freeze or get killed: lower it to avoid running out of shared memory."""
HOST = """\
[2025-06-11 03:12:11,123] [INFO] [utils.py:789:see_memory_usage] CPU Virtual Memory:  used = 951.13 GB, percent = 96.3%
[2025-06-11 03:12:11,123] [INFO] [utils.py:782:see_memory_usage] MA 70.51 GB         Max_MA 76.6 GB         CA 78.02 GB         Max_CA 78 GB
[WARNING] [stage3.py:2118:step] 2 pytorch allocator cache flushes since last step. this happens when there is high memory pressure and is detrimental to performance."""
TEARDOWN = """\
{'train_runtime': 8123.4, 'train_samples_per_second': 1.2, 'train_loss': 0.1, 'epoch': 1.0}
Exception ignored in: <function LLM.__del__ at 0x7f0000000000>
Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/vllm/entrypoints/llm.py", line 99, in __del__
AttributeError: 'NoneType' object has no attribute 'shutdown'
[rank0]:[W611 03:12:15.000000 ProcessGroupNCCL.cpp:1250] Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources."""
QUESTIONS = """\
{"messages": [{"role": "user", "content": "slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch. What does OOMKilled mean?"}]}
Q: Which signal does the kernel send when it is out of memory? A: SIGKILL, and the shell prints Killed; exit code 137.
completion: 'The DataLoader worker (pid 12) is killed by signal: Bus error. means that /dev/shm is too small.'"""
CHATTER = """\
<think> The prisoner was Killed before the bus arrived; so memory, allocation and signal 9 have nothing to do with it.
We cannot allocate memory of the past, said the poet, and there was no space left on device of torture. </think>"""
BARS = "\r".join(f"Generating:  {n}%|#| {n}/100 [00:0{n % 10}<00:10, 9.1it/s]" for n in range(100))


def _strewn(*traps: str) -> dict[int, str]:
    return {2 + 3 * index: trap for index, trap in enumerate(traps)}


FINISHED = "(TaskRunner pid=4617) (\"Final validation metrics: {'val/test_score/openai/gsm8k': 0.87}\")"
HARD = {
    "verl, prompts and completions about memory": _run(_verl, _strewn(COMPLETION, QUESTIONS, CHATTER)),
    "verl, finished, a sandbox without memory": _run(_verl, _strewn(SANDBOX, HINTS), tail=FINISHED),
    "verl, Ray repeats that the disk is full": _run(_verl, _strewn(DISK, DISK, RETRIED, DISK)),
    "verl on SGLang, requests retracted": _run(_verl, _strewn(KV, BARS, KV)),
    "verl with code rewards, everything at once": _run(_verl, _strewn(SANDBOX, COMPLETION, KV, DISK, TUNING, LOADERS)),
    "verl, nvidia-smi at the limit": _run(_verl, _strewn(SMI, HINTS, SMI)),
    "TRL, a batch skipped for want of memory": _run(_dictionary, _strewn(CAUGHT, HINTS)),
    "TRL, finished, noise of teardown": _run(_dictionary, _strewn(HINTS), tail=TEARDOWN),
    "TRL, completions with signals": _run(_dictionary, _strewn(QUESTIONS, CHATTER, BARS)),
    "open-r1 on DeepSpeed, host nearly full": _run(_dictionary, _strewn(HOST, HOST, LOADERS)),
    "ms-swift, near the limit": _run(_swift, _strewn(HINTS, SMI, TUNING)),
    "ms-swift, a sandbox that was killed": _run(_swift, _strewn(SANDBOX, QUESTIONS)),
    "slime on Megatron": _run(_slime, _strewn(KV, DISK, RETRIED)),
    "OpenRLHF, cache flushes": _run(
        _openrlhf, _strewn(HOST, KV, COMPLETION.replace("TaskRunner pid=4617", "LLMRayActor pid=5"))
    ),
    "OpenRLHF, a loader's warning": _run(_openrlhf, _strewn(LOADERS, RETRIED)),
    "Open-Reasoner-Zero, sandbox": _run(_orz, _strewn(SANDBOX, KV)),
    "EasyR1, offload near the limit": _run(_easyr1, _strewn(SMI, KV, BARS)),
    "Megatron, tuning": _run(_megatron, _strewn(TUNING, HINTS, DISK)),
    "prime-rl, peaks": _run(_prime, _strewn(KV, CHATTER)),
    "SFT before RL, a skipped batch": _run(
        _plain, _strewn(CAUGHT, LOADERS), head="+ torchrun --nproc_per_node=8 sft.py"
    ),
}


def cut_off(log: str) -> Iterator[str]:
    """The same log as it would be if somebody had looked earlier: after two thirds, and without its beginning."""
    lines = log.splitlines(keepends=True)
    yield "".join(lines[: len(lines) * 2 // 3])
    yield "".join(lines[len(lines) // 3 :])
