"""What is foreign to the launcher, the date or the library in use is no step."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, open_session
from advisor.state import State

POOL = "[torch_memory_saver.cpp] CUresult error: 2 (out of memory) file=csrc/utils.h func=cu_mem_create line=187\n"
OLD = "[2022-05-15 00:12:57,785] [INFO] [launch.py:178:sigkill_handler] Killing subprocess 97277\n"


def opened(folder: Path, log: str, script: str = "", **given: object) -> State:
    (folder / "train.log").write_text(log)
    (folder / "run.sh").write_text(script)
    run = folder / "run.sh" if script else None
    return open_session(SessionRequest(run, logs=(folder / "train.log",), **given))  # type: ignore[arg-type]


def test_a_pool_that_finds_no_room_is_made_smaller_and_not_put_to_sleep(tmp_path: Path) -> None:
    state = opened(tmp_path, POOL, gpus="16xH20-96GB", answers={"memory": "gpu", "framework": "slime"})
    names = [step.id for step in state.plan.steps]
    assert names[0] == "lower-rollout-share"
    assert "engine-sleep" not in names


def test_no_version_of_years_later_where_nothing_proves_a_cause(tmp_path: Path) -> None:
    state = opened(tmp_path, OLD, answers={"framework": "transformers"}, libraries=("transformers=4.20.0",))
    assert not [step for step in state.plan.steps if step.id.startswith("use-transformers")]


def test_fsdp_is_not_added_under_deepspeed(tmp_path: Path) -> None:
    file = '{"train_micro_batch_size_per_gpu": "auto", "gradient_clipping": "auto"}\n'
    log = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB\n"
    answers = {"memory": "gpu", "framework": "transformers"}
    state = opened(tmp_path, log, file, gpus="4xA100-80GB", model="Qwen/Qwen2.5-32B", answers=answers)
    keys = {change.key.lstrip("-") for step in state.plan.steps for change in step.changes}
    assert keys
    assert not [key for key in keys if key.startswith("fsdp")]


def test_a_framework_without_a_dialect_is_told_no_words_of_another(tmp_path: Path) -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total of 79.15 GiB\n"
    state = opened(tmp_path, oom, answers={"framework": "megatron"})
    assert not any("TrainingArguments" in step.example for step in state.plan.steps)
    assert next(step for step in state.plan.steps if step.id == "lower-actor-micro-batch").example.endswith(
        "(Megatron)"
    )


def test_a_launch_that_a_parser_would_refuse_is_another_programs(tmp_path: Path) -> None:
    words = "--model_name_or_path m --interleave_probs 0.5,0.5 --ignore_pad_token_for_loss --do_train --output_dir o"
    script = f"python run_llmmt.py {words} --oscar_data_path /d --learning_rate 2e-5\n"
    assert opened(tmp_path, "", script).run.framework == "unknown"
