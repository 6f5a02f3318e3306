# ruff: noqa: E501  (log lines as they are printed)
"""Settings in force are read from what the engine prints itself, and processes from Ray's newer list."""

from advisor.units import GIB
from tests.loops import each

from .known import judge

CONFIG = "INFO 06-22 19:47:13 [core.py:69] Initializing a V1 LLM engine (v0.8.5) with config: model='x/y', speculative_config=None, max_seq_len=8192, download_dir=None, tensor_parallel_size=2, pipeline_parallel_size=1"


@each(
    ("line", "figures"),
    [
        (CONFIG, {"model.path": "x/y", "rollout.tensor_parallel": "2", "rollout.max_model_len": "8192"}),
        (
            "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests.",
            {"rollout.max_sequences": "1024"},
        ),
        (
            "the current vLLM instance can use total_gpu_memory (79.15GiB) x gpu_memory_utilization (0.50) = 39.58GiB",
            {"rollout.memory_share": "0.50"},
        ),
        (
            "ValueError: Free memory on device (11.11/79.15 GiB) on startup is less than desired GPU memory utilization (0.9, 71.24 GiB).",
            {"rollout.memory_share": "0.9"},
        ),
        ("an engine of 8 ranks", {}),
    ],
)
def test_an_engines_own_lines_tell_its_settings(line, figures):
    assert judge(line + "\n").engine_figures == figures


def test_rays_newer_list_is_its_table_of_memory_users():
    row = "(Actor(c92): job ID=01000000, lease ID=09000000a90e, task name={name}, required resources={{}}, pid={pid}, actual memory used={used}GB, worker ID=16)\n"
    crash = judge(
        row.format(name="WorkerDict.__init__", pid=1, used="10.25")
        + row.format(name="LLMRayActor.generate", pid=2, used="50.50")
        + "ray.exceptions.RayTaskError(OutOfMemoryError): ray::X() (pid=1)\n"
    )
    assert (crash.verdict, crash.memory) == ("oom", "host")
    assert [(user.command, user.used_bytes) for user in crash.top_users] == [
        ("LLMRayActor.generate", round(50.5 * GIB)),
        ("WorkerDict.__init__", round(10.25 * GIB)),
    ]
