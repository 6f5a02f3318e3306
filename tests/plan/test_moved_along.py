"""A word that moves more than the setting that is meant says all that it moves, and what that costs."""

from pathlib import Path

from advisor.request import SessionRequest
from advisor.session import open_session

LAUNCH = """swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B-Instruct --use_vllm true --vllm_mode colocate \\
    --vllm_gpu_memory_utilization 0.6 --train_type full --torch_dtype bfloat16 --deepspeed zero3 \\
    --per_device_train_batch_size 1 --num_generations 8 --max_completion_length 1024
"""
LOG = """[rank2]: Traceback (most recent call last):
[rank2]:   File "/usr/lib/python3/site-packages/vllm/device_allocator/cumem.py", line 78, in create_and_map
[rank2]:     python_create_and_map(*allocation_handle)
[rank2]: RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62
"""


def test_an_offload_of_weights_by_a_word_that_takes_the_optimizer_along_says_so(tmp_path: Path) -> None:
    script, log = tmp_path / "run.sh", tmp_path / "train.log"
    script.write_text("NPROC_PER_NODE=4 " + LAUNCH)
    log.write_text(LOG)
    state = open_session(SessionRequest(script=script, logs=(log,), gpus="4xA100-80GB", host_ram="900GB"))
    (step,) = [one for one in state.plan.steps if any(each.new == "zero3_offload" for each in one.changes)]
    assert "optimizer state" in step.title
    assert "on the CPU" in step.costs
    assert "gradients" in step.why


def test_a_cache_that_the_log_made_smaller_counts_no_tokens_of_its_old_size(tmp_path: Path) -> None:
    script, log = tmp_path / "run.sh", tmp_path / "train.log"
    script.write_text("NPROC_PER_NODE=4 " + LAUNCH)
    log.write_text("INFO 09-20 14:22:31 [gpu_worker.py:298] Available KV cache memory: 21.07 GiB\n" + LOG)
    state = open_session(SessionRequest(script=script, logs=(log,), gpus="4xA100-80GB", host_ram="900GB"))
    assert state.plan.after is not None
    caches = [cell for of in state.plan.after.gpu for cell in of.cells if cell.owner == "kv_cache"]
    moved = [cell for cell in caches if "by the log" in cell.formula and "predicted by" in cell.formula]
    assert moved
    assert not any("room for" in cell.formula for cell in moved)
