# ruff: noqa: E501  (log lines as they are printed)
"""The error that ends a run is judged by what it says, whatever library raised it: no list of exceptions is complete."""

import pytest

from tests.loops import each

from .known import judge

TRACE = 'Traceback (most recent call last):\n  File "/x/lib/python3.11/site-packages/some/module.py", line 3, in run\n    step()\n'

NO_SHORTAGE = [
    # torch, CUDA, NCCL
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cuda:1!",
    "RuntimeError: mat1 and mat2 must have the same dtype, but got Float and BFloat16",
    "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
    "RuntimeError: GET was unable to find an engine to execute this computation",
    "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",
    "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
    "RuntimeError: CUDA error: device-side assert triggered",
    "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx( handle, opa, opb, m, n, k)`",
    "RuntimeError: use_libuv was requested but PyTorch was build without libuv support",
    "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: ALLREDUCE",
    "NotImplementedError: No operator found for `memory_efficient_attention_forward` with inputs:",
    "torch._dynamo.exc.Unsupported: call_function BuiltinVariable(setattr)",
    "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, invalid usage, NCCL version 2.19.3\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU detected : rank 3 and rank 0 both on CUDA device e000",
    # transformers, data, files
    "OSError: Can't load tokenizer for 'meta-llama/Llama-2-7b'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name.",
    "huggingface_hub.errors.GatedRepoError: 401 Client Error.",
    "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /api/models (Caused by NewConnectionError)",
    "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='cdn-lfs.huggingface.co', port=443): Read timed out. (read timeout=10)",
    "wandb.errors.CommError: Run initialization has timed out after 90.0 sec.",
    "wandb.errors.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])",
    "modelscope.hub.errors.NotExistError: The request model: x does not exist!",
    "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
    "_pickle.UnpicklingError: invalid load key, 'v'.",
    "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset",
    "pyarrow.lib.ArrowInvalid: JSON parse error: Column() changed from object to string in row 0",
    "jinja2.exceptions.UndefinedError: 'dict object' has no attribute 'role'",
    "socket.gaierror: [Errno -2] Name or service not known",
    "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed",
    "FileExistsError: [Errno 17] File exists: '/tmp/ray'",
    "OSError: [Errno 116] Stale file handle",
    "OSError: [Errno 5] Input/output error",
    "OSError: [Errno 28] No space left on device: '/root/.cache/huggingface/hub/tmp123'",
    "OSError: /usr/lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.30' not found",
    "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xe4 in position 12: invalid continuation byte",
    # DeepSpeed, Megatron
    "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size 32 != 4 * 1 * 4",
    "deepspeed.ops.op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 12.4 does not match the version torch was compiled with 12.1",
    "pydantic_core._pydantic_core.ValidationError: 1 validation error for DeepSpeedZeroConfig",
    "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
    "RuntimeError: Error building extension 'cpu_adam'",
    "megatron.core.dist_checkpointing.core.CheckpointingException: Object shard not found",
    "ValueError: Must flatten tensors with uniform dtype but got torch.bfloat16 and torch.float32",
    # vLLM, SGLang
    "ValueError: User-specified max_model_len (32768) is greater than the derived max_model_len (max_position_embeddings=4096)",
    "ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (8).",
    "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0.",
    "RuntimeError: Failed to infer device type",
    "triton.compiler.errors.CompilationError: at 1:0: def kernel",
    # Ray, hydra
    "ray.exceptions.RayTaskError(KeyError): ray::main_task() (pid=1234, ip=10.0.0.1)",
    "ray.exceptions.RaySystemError: System error: No module named 'verl'",
    "ray.exceptions.RuntimeEnvSetupError: Failed to set up runtime environment.",
    "ValueError: Total available GPUs 4 is less than total desired GPUs 8",
    "OSError: AF_UNIX path length cannot exceed 107 bytes: '/very/long/path/session/sockets/plasma_store'",
    "omegaconf.errors.MissingMandatoryValue: Missing mandatory value: data.train_files",
    "hydra.errors.ConfigCompositionException: Could not override 'actor.x'.",
    "yaml.scanner.ScannerError: mapping values are not allowed here",
    # native code
    "free(): invalid pointer",
    "malloc(): corrupted top size",
    "double free or corruption (!prev)",
    "Illegal instruction (core dumped)",
    "Segmentation fault (core dumped)",
    "some_new_library.errors.NobodyKnowsThisYetError: the wheel has five corners",
]

REFUSED = [
    "usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --max_lenght 2048",
    "train.py: error: argument --bf16: expected one argument",
    "ValueError: Some specified arguments are not used by the HfArgumentParser: ['--foo', '1']",
    "bash: python3: command not found",
    "run.sh: line 3: syntax error near unexpected token `('",
    "python: can't open file '/root/train.py': [Errno 2] No such file or directory",
    "/usr/bin/python3: No module named verl.trainer",
    "/bin/bash^M: bad interpreter: No such file or directory",
    "sbatch: error: Batch job submission failed: Requested node configuration is not available",
    "srun: error: Unable to create step for job 1234: Invalid generic resource (gres) specification",
    'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
    "ERROR: Could not build wheels for flash-attn, which is required to install pyproject.toml-based projects",
]


@each("text", NO_SHORTAGE)
def test_an_error_that_says_nothing_of_memory_is_named_as_no_shortage(text):
    crash = judge(f"INFO starting\n{TRACE}{text}\n")
    assert (crash.verdict, crash.memory) == ("not_oom", "none")
    assert crash.signature


@each("text", REFUSED)
def test_a_command_that_was_refused_is_named_as_no_shortage(text):
    crash = judge(f"INFO starting\n{text}\n")
    assert (crash.verdict, crash.memory) == ("not_oom", "none")
    assert crash.signature in ("launch-refused", "other-exception")


GPU, HOST = "gpu", "host"


@pytest.mark.parametrize("before", [TRACE, ""])
@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("RuntimeError: CUDA error: out of memory", GPU),
        ("RuntimeError: CUDA driver error: out of memory", GPU),
        ("RuntimeError: HIP error: out of memory", GPU),
        ("RuntimeError: MUSA error: out of memory", GPU),
        ("RuntimeError: Triton Error [HIP]:  Code: 2, Message: out of memory", GPU),
        ("hipErrorOutOfMemory", GPU),
        ("RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)", GPU),
        ("torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB.", GPU),
        ("RuntimeError: NPU error, error code is 207001. [Error]: Failed to allocate memory.", GPU),
        ("torch_memory_saver CUresult error: 2 (out of memory) file=csrc/utils.h func=cu_mem_create line=104", GPU),
        ("Error 2: out of memory at /src/csrc/ops.cu:12", GPU),
        (
            'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":830, please report a bug to PyTorch.',
            GPU,
        ),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", GPU),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasGemmEx( handle, opa)`", GPU),
        ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 12.0 GiB for an array", HOST),
        ("memory allocation of 34359738368 bytes failed", HOST),
        ("=>> PBS: job killed: mem 123456789kb exceeded limit 100000000kb", HOST),
        ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", HOST),
        ("kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=abc,mems_allowed=0", HOST),
        ("OSError: [Errno 12] Cannot allocate memory", HOST),
        ("MemoryError", HOST),
        ("RuntimeError: unable to write to file </torch_123_1>: No space left on device (28)", "shm"),
    ],
)
def test_a_shortage_is_one_in_any_wording(before, text, memory):
    crash = judge(f"{before}{text}\n")
    assert (crash.verdict, crash.memory) == ("oom", memory)


@each(
    "text",
    [
        "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 7/8 clients joined.",
        "torch.distributed.DistBackendError: [3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Connection reset by peer",
        "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
        "aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host 127.0.0.1:30000 ssl:default [Connect call failed ('127.0.0.1', 30000)]",
        "openai.APIConnectionError: Connection error.",
        "urllib3.exceptions.ProtocolError: ('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))",
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -3). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer.",
    ],
)
def test_who_lost_the_process_it_talked_to_says_so_and_where_to_look(text):
    crash = judge(f"{TRACE}{text}\n")
    assert crash.verdict == "unclear"
    assert crash.signature in ("peer-lost", "engine-scheduler-died")
    assert crash.evidence[0].line == 4
    assert crash.settle_by


def test_a_caught_error_and_a_retry_do_not_outrank_a_shortage_that_follows():
    log = f"run.sh: line 12: --deepspeed: command not found\n{TRACE}requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /x\nretrying\n{TRACE}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert judge(log).verdict == "oom"


def test_a_kill_after_a_command_that_was_not_found_stays_open():
    assert (
        judge("run.sh: line 2: nvidia-smi: command not found\nrun.sh: line 9: 77 Killed   python train.py\n").verdict
        == "unclear"
    )
