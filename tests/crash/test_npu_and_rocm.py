"""What torch_npu, CANN, HCCL, vLLM-Ascend, ROCm and RCCL print: which memory was short, or that none was."""

from __future__ import annotations

from tests.crash.known import judge
from tests.loops import each

NPU = "RuntimeError: NPU function error: "
LINES = [
    ("[E615 depend.ts:444] NPU out of memory. NPUWorkspaceAllocator tried to allocate 1.89 GiB(NPU 7; 60.96 GiB "
     "total capacity; 1.82 GiB free). If you want to reduce memory usage", "gpu"),
    ("torch.OutOfMemoryError: allocate_host_memory_slowpath:../torch_npu/csrc/core/npu/CachingHostAllocator.cpp:252 "
     "NPU function error: aclrtMallocHostWithCfg, error code is 207001", "host"),
    ("torch.OutOfMemoryError: bmm:compiler_depend.ts:24 NPU function error: call aclnnBatchMatMul failed, error code "
     "is 207001", "gpu"),
    ("RuntimeError: aclrtMallocPhysical failed with acl error code: 207001(OOM: Out of Memory, allocation failed) "
     "camem_allocator.cpp:66", "gpu"),
    ("[npu_driver.cc:1534]34603 DevMemAllocHugePageManaged:[drv api] halMemAlloc failed:size=2122688(bytes), type=2, "
     "moduleId=3, drvFlag=216172782123369479, drvRetCode=6, device_id 7, ErrCode=207001", "gpu"),
    (NPU + "c10_npu::acl::AclrtSynchronizeStreamWithTimeout(stream_), error code is 507018", "none"),
    ("EI0002: The wait execution of the Notify register times out. Reason: no record from remote rank [3].", "none"),
    ("EI0006: Getting socket times out. Reason: 1. The remote does not initiate a connect request.", "none"),
    ("EJ0001: Failed to initialize the HCCP process. Reason: Maybe the last training process is running.", "none"),
    ("AssertionError: Memory usage increased after sleeping.", "none"),
    ("HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary resources. Code: 0x1008 "
     "Available Free mem : 52 MB", "gpu"),
    ("node1:77:99 [0] NCCL WARN HIP failure 'out of memory'", "gpu"),
    ("Memory access fault by GPU node-3 (Agent handle: 0x5591c2) on address 0x7f3c0000. Reason: Unknown.", "none"),
]  # fmt: skip


@each(("line", "memory"), LINES)
def test_each_line_tells_which_memory_was_short_or_that_none_was(line: str, memory: str) -> None:
    crash = judge(f'Traceback (most recent call last):\n  File "/a/b.py", line 3, in train\n    x()\n{line}\n')
    assert (crash.verdict, crash.memory) == ("not_oom" if memory == "none" else "oom", memory)


def test_resources_that_ran_out_with_memory_left_prove_nothing() -> None:
    line = "HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary resources."
    assert judge(f"{line} Available Free mem : 40960 MB\nAborted (core dumped)\n").verdict != "oom"
