"""Where counts, sizes or the log's own figures decide, they are the cause, with their number."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.crash.evidence import Crash, Reading
from advisor.diagnosis.course_facts import left_facts, peak_facts
from advisor.diagnosis.size_remarks import scores_of
from advisor.session import SessionRequest, State, open_session
from advisor.units import GIB

GPU = {"memory": "gpu"}


def diagnosed(folder: Path, script: str, log: str = "", **asked: object) -> State:
    file = folder / "run.sh"
    file.write_text(script)
    logs = ()
    if log:
        (folder / "crash.log").write_text(log)
        logs = (folder / "crash.log",)
    return open_session(SessionRequest(file if script else None, logs=logs, **asked))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tried", "heads", "width", "rows", "tokens"),
    [(64 * GIB, 32, 4, 2, 16384), (8 * GIB, 32, 2, 2, 8192), (25136296427, 16, 2, 1, 28026)],
)
def test_a_size_is_read_as_attention_scores(tried: int, heads: int, width: int, rows: int, tokens: int) -> None:
    assert scores_of(tried, heads, width) == (rows, tokens)


def test_states_that_no_card_holds_are_told_with_their_number(tmp_path: Path) -> None:
    script = "llamafactory-cli train --stage sft --do_train --finetuning_type full --model_name_or_path m\n"
    state = diagnosed(tmp_path, script, gpus="1xA100-80GB", model="mistral-7b", answers=GPU)
    assert state.diagnosis.cause in ("states-too-big", "states-beyond-cards")
    assert "GiB" in state.diagnosis.explains or "GiB" in state.diagnosis.path[-1].because


def test_pictures_without_a_limit_are_what_is_left(tmp_path: Path) -> None:
    script = "swift sft --model Qwen2-VL-7B-Instruct --train_type lora --dataset d --per_device_train_batch_size 1\n"
    state = diagnosed(tmp_path, script, gpus="8xA800", model="Qwen2-VL-7B-Instruct", answers={**GPU, "images": "yes"})
    assert (state.diagnosis.cause, "pictures" in state.diagnosis.title) == ("batch-too-big", True)


def test_a_run_that_only_evaluates_has_no_training_step(tmp_path: Path) -> None:
    script = "python src/train_bash.py --stage sft --do_eval --finetuning_type lora --per_device_eval_batch_size 8\n"
    state = diagnosed(
        tmp_path, script, gpus="1xRTX-3090", model="Llama-2-7b-hf", answers={**GPU, "phase": "validation"}
    )
    assert [one.phase for one in state.ledger.gpu] == ["model_load", "validation"]
    assert "lower-evaluation-batch" in {step.id for step in state.plan.steps}


def test_the_peak_of_a_step_and_what_sleep_leaves_are_evidence() -> None:
    def read(kind: str, size: float, line: int) -> Reading:
        return Reading(line, "unknown", kind, round(size * GIB), file="a.log")  # type: ignore[arg-type]

    peaks = Crash("oom", "gpu", "unknown", readings=(read("allocated", 10, 1), read("peak", 74, 1)))
    assert peak_facts(peaks, 80 * GIB)["gpu.peak_of_pass"].value is True
    assert not peak_facts(peaks, None)
    left = tuple(read("still_used", size, number) for number, size in enumerate((4, 11, 25), 1))
    assert "sleep.left_grows" in left_facts(Crash("oom", "gpu", "unknown", readings=left))
    level = tuple(read("still_used", size, number) for number, size in enumerate((4, 11, 11, 11), 1))
    for readings in (left[:2], level):
        assert "sleep.left_grows" not in left_facts(Crash("oom", "gpu", "unknown", readings=readings))
    assert not left_facts(Crash("oom", "host", "unknown", readings=left))


def test_lines_that_break_off_do_not_speak_of_a_kill_where_the_user_knows_better(tmp_path: Path) -> None:
    from advisor.report.short_report import short_report

    told = short_report(diagnosed(tmp_path, "", "step 1: loss 0.5\nstep 2: loss 0.4\nstep 3: loss 0.3\n", answers=GPU))
    assert "killed from outside" not in told


def test_the_arrow_of_a_notebook_is_the_failing_line(tmp_path: Path) -> None:
    log = (
        "    519 # Dequantize\n--> 520 output = linear(A, F.dequantize_4bit(B, state).to(A.dtype).t(), bias)\n"
        "    522 # Save\n\nOutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB. GPU\n"
    )
    state = diagnosed(tmp_path, "", log)
    assert state.crash.source_line.startswith("output = linear(")
    assert state.diagnosis.cause == "batch-too-big"


def test_a_softmax_of_attention_goes_before_memory_in_pieces_and_words_beside_the_launch_are_read(
    tmp_path: Path,
) -> None:
    log = (
        'Traceback of TorchScript (most recent call last):\n  File "<string>", line 83, in <backward op>\n'
        "            result = torch.softmax(self, dim, dtype)\n"
        "                grad_self = torch._softmax_backward_data(grad_output, result, dim, self.dtype)\n"
        "                            ~~~~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE\n"
        "RuntimeError: CUDA out of memory. Tried to allocate 12.00 GiB (GPU 2; 79.15 GiB total capacity; 56.66 GiB "
        "already allocated; 9.54 GiB free; 68.85 GiB reserved in total by PyTorch)\n"
    )
    state = diagnosed(
        tmp_path, "", log, gpus="8xA100-80GB", model="starcoder with 8k context, and it runs out of memory"
    )
    assert (state.diagnosis.cause, state.run.model and state.run.model.name) == ("batch-too-big", "StarCoder")
    assert any("1 × 8,192" in remark for remark in state.diagnosis.remarks)
    assert state.plan.steps[0].id == "flash-attention"


@pytest.mark.parametrize(
    ("line", "function", "of_logits"),
    [
        ('state["exp_avg_sq"] = torch.zeros_like(p)', "_init_group", False),
        ("found = compute(inputs)", "update_policy", True),
    ],
)
def test_a_size_is_not_told_as_logits_where_the_optimizer_steps(
    tmp_path: Path, line: str, function: str, of_logits: bool
) -> None:
    script = (
        "python3 -m verl.trainer.main_ppo data.max_response_length=4096 actor_rollout_ref.model.path=Qwen/Qwen3-8B "
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.rollout.name=vllm "
        "trainer.n_gpus_per_node=4 trainer.nnodes=1\n"
    )
    log = (
        f'Traceback (most recent call last):\n  File "/x/a.py", line 150, in {function}\n    {line}\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 298.00 MiB. GPU 0 has a total capacity of "
        "79.25 GiB of which 120.00 MiB is free. Of the allocated memory 76.21 GiB is allocated by PyTorch\n"
    )
    told = diagnosed(tmp_path, script, log).diagnosis.remarks
    assert any("size of logits" in remark for remark in told) is of_logits
