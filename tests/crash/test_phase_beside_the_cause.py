# ruff: noqa: E501  (log lines as they are printed)
"""The phase of a failure that shows no frame of its own: the driver's traceback, the last lines before it."""

import pytest

from tests.loops import each

from .known import judge

KILLED = "slurmstepd: error: Detected 1 oom_kill event in StepId=18835145.batch.\n"
RAYLET = "(raylet) Memory on the node (IP: 10.0.0.1, ID: ca4d) was 950.00GB / 1000.00GB (0.95), which exceeds the memory usage threshold of 0.95\n"
DRIVER = """\
Traceback (most recent call last):
  File "/verl/trainer/ppo/ray_trainer.py", line 1000, in fit
    gen_batch_output = self.async_rollout_manager.generate_sequences(gen_batch)
  File "/verl/experimental/agent_loop/agent_loop.py", line 812, in generate_sequences
    outputs = ray.get(
ray.exceptions.RayTaskError(OutOfMemoryError): ray::X() (pid=1)
"""


def test_the_drivers_own_traceback_keeps_its_phase_beside_rays_line():
    crash = judge(RAYLET + DRIVER)
    assert (crash.memory, crash.signature, crash.phase) == ("host", "ray-memory-kill", "rollout_generate")
    assert "driver" in crash.phase_because


def test_rays_wrapper_beside_the_line_that_decides_is_only_a_pointer():
    wrapper = next(one for one in judge(RAYLET + DRIVER).evidence if one.signature == "torch-oom-bare")
    assert (wrapper.role, wrapper.memory) == ("pointer", "unknown")


@each(
    ("line", "phase"),
    [
        ("Saving model and optim state...", "checkpoint"),
        ("Saving checkpoint to /data/step_20", "checkpoint"),
        ("[INFO] [utils.py:781:see_memory_usage] After creating fp16 partitions: 2", "model_load"),
        ("[INFO] [utils.py:781:see_memory_usage] Before initializing optimizer states", "model_load"),
        ("(EngineCore pid=7) ERROR EngineCore failed to start.", "rollout_init"),
        ("KV cache pool is full. Retract requests. #retracted_reqs: 12", "rollout_generate"),
        ("make_experience:  50%|█████     | 4/8 [00:10<00:10,  2.5s/it]", "rollout_generate"),
        ("make_experience: 100%|██████████| 8/8 [00:20<00:00,  2.5s/it]", "unknown"),
        ("Loading checkpoint shards: 100%|██████████| 8/8 [00:20<00:00,  2.5s/it]", "model_load"),
    ],
)
def test_the_line_right_before_a_kill_names_the_phase(line, phase):
    assert judge(f"start\n{line}\n{KILLED}").phase == phase


@pytest.mark.parametrize(("function", "phase"), [("resume", "weight_sync"), ("cu_mem_create", "unknown")])
def test_only_the_waking_itself_proves_that_an_engine_woke(function, phase):
    crash = judge(
        f"[torch_memory_saver.cpp] CUresult error: 2 (out of memory)  file=csrc/utils.h func={function} line=194\n"
    )
    assert (crash.verdict, crash.memory, crash.phase) == ("oom", "gpu", phase)


@pytest.mark.parametrize(
    ("file", "function"),
    [
        ("vllm/model_executor/layers/linear.py", "create_weights"),
        ("vllm/model_executor/models/qwen2.py", "__init__"),
        ("sglang/srt/model_loader/loader.py", "_initialize_model"),
    ],
)
def test_an_engine_that_makes_its_weights_is_starting(file, function):
    log = f'Traceback (most recent call last):\n  File "/x/{file}", line 5, in {function}\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n'
    assert judge(log).phase == "rollout_init"


def test_a_request_that_got_no_answer_tells_what_was_waited_for():
    failed = "(SGLangHttpServer pid=7) [torch_memory_saver.cpp] CUresult error: 2 (out of memory)  file=csrc/utils.h func=cu_mem_create line=194\n"
    waited = "(WorkerDict pid=9) WARNING:2025-11-28 16:00:45,396:Async request to resume_memory_occupation timed out (attempt 1)\n"
    assert judge(failed + waited).phase == "weight_sync"


def test_a_message_printed_before_it_was_raised_has_the_frames_it_was_raised_with():
    message = "CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62\n"
    crash = judge(
        f"(WorkerDict pid=99) {message}(WorkerDict pid=99) Traceback (most recent call last):\n"
        "ray.exceptions.RayTaskError(RuntimeError): ray::WorkerDict.actor_rollout_generate_sequences() (pid=99, ip=10.0.0.1)\n"
        '  File "/verl/verl/workers/fsdp_workers.py", line 702, in generate_sequences\n    with self.rollout_sharding_manager:\n'
        '  File "/verl/verl/workers/sharding_manager/fsdp_vllm.py", line 201, in __enter__\n    self.inference_engine.wake_up()\n'
        f"RuntimeError: {message}"
    )
    assert (crash.phase, crash.evidence[0].line) == ("weight_sync", 1)
