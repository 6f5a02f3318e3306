# ruff: noqa: E501  (log lines as they are printed)
"""Refusals that name no memory are known in other words, too, and none of them flips a real shortage."""

import pytest

from tests.loops import each

from .known import judge

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free.\n"


@each(
    ("line", "signature"),
    [
        ("AssertionError: only support equal chunk. Got size of DataProto 512 and chunk 6.", "settings-refused"),
        (
            "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size 256 != 2 * 18 * 7",
            "settings-refused",
        ),
        (
            "AssertionError: real_train_batch_size (30) must be divisible by minimal possible batch size (8)",
            "settings-refused",
        ),
        ("ValueError: num_generations 6 must be a multiple of the number of processes 4", "settings-refused"),
        ("AssertionError: rollout_batch_size must be divisible by dp_size", "settings-refused"),
        ("GRPO train batchsize (7x1) not divided by 8", "settings-refused"),
        ("TypeError: GRPOConfig.__init__() got an unexpected keyword argument 'vllm_mode'", "arguments-disagree"),
        ("TypeError: forward() missing 1 required positional argument: 'position_ids'", "arguments-disagree"),
        ("OSError: libcudart.so.12: cannot open shared object file: No such file or directory", "library-missing"),
        ("OSError: /opt/x/libhccl.so: cannot open shared object file: No such file or directory", "library-missing"),
        (
            "ValueError: We need an `offload_dir` to dispatch this model according to this `device_map`, the following submodules need to be offloaded: layers.3",
            "device-map-spills",
        ),
        (
            "ImportError: cannot import name 'CheckpointPolicy' from 'torch.utils.checkpoint' (/usr/lib/x.py)",
            "import-refused",
        ),
        ("ImportError: accelerate>=0.26 is required for this module, but found accelerate==0.20", "import-refused"),
        (
            "ValueError: DeepSpeed Zero-3 is not compatible with `low_cpu_mem_usage=True` or with passing a `device_map`.",
            "options-clash",
        ),
        ("ValueError: `padding_free` and `use_liger_kernel` are mutually exclusive.", "options-clash"),
        (
            "AssertionError: max_token_len must be greater than the sequence length. Got max_token_len=6144 and max_seq_len=8096",
            "budget-below-a-row",
        ),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/train.parquet'", "path-missing"),
        ("ValueError: zero-size array to reduction operation minimum which has no identity", "empty-batch"),
        (
            "E40024: 2025-02-20-14:05:46.947.014 Failed call Python Func/Meathod [get_binfile_sha256_hash_from_c],",
            "npu-compile",
        ),
        ("HW Exception by GPU node-2 (Agent handle: 0x55e) reason :GPU Hang", "rocm-gpu-hang"),
        ("GPU Hang HW Exception by GPU", "rocm-gpu-hang"),
    ],
)
def test_the_line_is_the_cause_and_no_memory_was_short(line: str, signature: str) -> None:
    crash = judge(f'Traceback (most recent call last):\n  File "/w/run.py", line 3, in main\n    go()\n{line}\n')
    assert (crash.verdict, crash.memory, crash.signature) == ("not_oom", "none", signature)


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: the eval batch size is not divisible by 8, the last batch will be smaller",
        "Unsloth: We now expect `per_device_train_batch_size` to be a multiple of `num_generations`.",
        "INFO: tried libcudart.so.12, fell back: got an unexpected keyword argument",
    ],
)
def test_a_warning_of_such_words_ends_nothing(line: str) -> None:
    crash = judge(line + "\n" + "step: {}\n" * 3 + OOM)
    assert (crash.verdict, crash.memory) == ("oom", "gpu")


def test_which_library_is_missing_is_read() -> None:
    crash = judge(
        "Could not find the bitsandbytes CUDA binary at PosixPath('/opt/bitsandbytes/libbitsandbytes_hip.so')\n"
    )
    assert crash.evidence[0].fields["library"] == "libbitsandbytes_hip.so"


def test_a_log_that_ends_on_a_nearly_full_disk_says_so_also_where_it_is_cut() -> None:
    line = "(raylet) [2024-12-30 05:28:51,682 E 12 90] (raylet) file_system_monitor.cc:111: /tmp/ray/session is over 95% full, available space: 133932761088; capacity: 3998267736064. Object creation will fa"
    crash = judge("INFO worker.py:1429 -- Using address\n" + line)
    assert (crash.verdict, crash.signature) == ("unclear", "disk-nearly-full")
    done = judge(line + "\n" + "".join(f"step:{i} - loss:0.1\n" for i in range(1, 12)))
    assert done.verdict == "not_oom"
