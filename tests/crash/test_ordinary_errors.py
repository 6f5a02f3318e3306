# ruff: noqa: E501  (log lines as they are printed)
"""An error that says nothing of memory is none of memory, and what only points at it does not hide it."""

import pytest

from tests.loops import each

from .known import judge

ACTOR = "ray.exceptions.RayTaskError(ActorDiedError): ray::TaskRunner.run() (pid=1, ip=10.0.0.1)\n"
TRACE = 'Traceback (most recent call last):\n  File "/x/a.py", line 3, in f\n    g()\n'
NCCL = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"


@pytest.mark.parametrize("before", [TRACE, ""])
@pytest.mark.parametrize(
    "text",
    [
        "Tensors must be CUDA and dense",
        "start_weight_update called while another update is active",
        "element 0 of tensors does not require grad",
    ],
)
def test_a_runtime_error_without_a_word_of_memory_is_not_memory(before, text):
    crash = judge(f"{before}RuntimeError: {text}\n")
    assert (crash.verdict, crash.memory) == ("not_oom", "none")


@each(
    "text",
    [
        "CUDA driver failed to allocate a context",
        "DataLoader worker (pid 77) exited unexpectedly",
        "[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:1234",
        "NCCL communicator was aborted on rank 3.",
        "Worker process 3 died with code 1",
    ],
)
def test_a_runtime_error_that_may_follow_from_a_shortage_stays_open(text):
    assert judge(f"{TRACE}RuntimeError: {text}\n").verdict == "unclear"


@each(
    "line",
    [
        "RuntimeError: HIP error: invalid device function",
        "RuntimeError: CUDA error: OS call failed or operation not supported on this OS",
        "Ray does not have enough resources to launch workers. Required: 107.42 GB memory. Available: 39.60 GB memory.",
        "[gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32770)",
        "amdgpu: GCVM_L2_PROTECTION_FAULT_STATUS:0x00801031",
        "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasGemmEx( handle )`",
        "RuntimeError: ACL stream synchronize failed, error code:507035",
        "Training hangs at random steps, all cards show 0% utilization.",
        "跑到第 30 步就卡住了，没有任何报错",
    ],
)
def test_a_fault_of_device_or_driver_and_a_hang_are_not_memory(line):
    assert (judge(f"step 3/100\n{line}\n").verdict, judge(f"{line}\n").memory) == ("not_oom", "none")


@each(
    "line",
    [
        "this can cause the process to hang",
        "if it hangs, set NCCL_P2P_DISABLE=1",
        "RuntimeError: HIP error: operation failed due to a previous error during capture",
    ],
)
def test_a_warning_of_hangs_and_an_error_without_a_name_prove_nothing(line):
    assert judge(f"{line}\n").verdict != "not_oom"


def test_frames_do_not_push_an_exception_away_from_the_end():
    frames = "".join(f'  File "/x/a{n}.py", line {n}, in f\n    g()\n' for n in range(20))
    assert (
        judge(f"It fails with\nAssertionError: size 0\n\nTraceback (most recent call last):\n{frames}{ACTOR}").verdict
        == "not_oom"
    )


def test_an_exception_above_the_line_that_only_points_at_it_is_the_verdict():
    log = f"(EngineCore_0 pid=77) AssertionError: data parallel size mismatch\n{TRACE}RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}\n"
    crash = judge(log)
    assert (crash.verdict, crash.signature, crash.evidence[0].line) == ("not_oom", "other-exception", 1)
    below = "\n".join([*log.splitlines()[1:], log.splitlines()[0]])
    assert judge(below).verdict == "unclear"


def test_an_assertion_against_an_allocator_option_is_known_by_its_source_line():
    log = 'Traceback (most recent call last):\n  File "/vllm/device_allocator/cumem.py", line 148, in __init__\n    assert "expandable_segments:True" not in conf, \\\n'
    assert judge(log).signature == "expandable-segments"


@pytest.mark.parametrize(
    "reason",
    [
        "Cuda failure 999 'unknown error'",
        "Cuda failure 700 'an illegal memory access was encountered'",
        "Cuda failure 1 'invalid argument'",
    ],
)
def test_a_reason_that_nccl_prints_and_that_is_no_shortage_is_not_memory(reason):
    crash = judge(NCCL + reason + "\n")
    assert (crash.verdict, crash.memory) == ("not_oom", "none")


@pytest.mark.parametrize("reason", ["Cuda failure 2 'out of memory'", "Failed to CUDA calloc async 608 bytes"])
def test_a_reason_that_is_a_shortage_is_memory(reason):
    crash = judge(NCCL + reason + "\n")
    assert (crash.verdict, crash.memory) == ("oom", "gpu")


def test_without_its_reason_nccls_error_is_unclear():
    assert judge(NCCL).verdict == "unclear"


def test_nccls_watchdog_is_told_by_name():
    crash = judge(
        "Exception raised from ncclCommWatchdog at ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1418 (most recent call first):\n"
    )
    assert (crash.verdict, crash.signature) == ("unclear", "nccl-watchdog")


def test_a_network_card_that_fails_in_a_collective_is_not_memory():
    crash = judge(
        "n1:77:99 [3] NCCL WARN NET/IB : Got completion from peer 10.0.0.2<1> with status=12 opcode=0 len=0 vendor err 129\n"
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a network error\n"
    )
    assert (crash.verdict, crash.signature) == ("not_oom", "nccl-network")


def test_memory_that_a_network_card_could_not_register_is_left_open():
    assert judge("NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory\n").verdict != "not_oom"


def test_the_newest_class_of_a_cuda_error_is_a_full_card():
    crash = judge(f"{TRACE}torch.AcceleratorError: CUDA error: out of memory\n")
    assert (crash.verdict, crash.memory) == ("oom", "gpu")
