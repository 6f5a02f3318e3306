# ruff: noqa: E501  (frames as they are printed)
"""A program's own frames tell the moment and what was being made, and that is the heading."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, State, open_session
from tests.loops import each

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of "
    "which 1.20 GiB is free. Of the allocated memory 75.10 GiB is allocated by PyTorch, and 1.30 GiB is reserved by "
    "PyTorch but unallocated.\n"
)
LIB = "/opt/lib/python3.11/site-packages/"


def opened(folder: Path, *frames: tuple[str, str, str]) -> State:
    lines = (f'  File "{file}", line 7, in {name}\n    {text}\n' for file, name, text in frames)
    (folder / "run.log").write_text("Traceback (most recent call last):\n" + "".join(lines) + OOM)
    return open_session(SessionRequest(None, logs=(folder / "run.log",)))


ROWS = [
    # innermost frames, phase, cause, words of the heading, a step among the first three
    (
        [("/w/train.py", "train_step", "out = model(**batch)"), ("/w/model.py", "forward", "s = q @ k.transpose(-1, -2)")],
        ("actor_update", "batch-too-big", "attention scores", "flash-attention"),
    ),
    (
        [("/w/train.py", "main", "ema = copy.deepcopy(model)"), (LIB + "torch/nn/parameter.py", "__deepcopy__", "x")],
        ("model_load", "states-too-big", "second copy", "copy-off-the-card"),
    ),
    (
        [("/w/t.py", "main", "m = DDP(m)"), (LIB + "torch/nn/parallel/distributed.py", "_ddp_init_helper", "x")],
        ("model_load", "states-too-big", "DDP's buckets", "gradient-views"),
    ),
    (
        [("/w/t.py", "main", "m.load_state_dict(torch.load(p))"), (LIB + "torch/serialization.py", "_load", "x")],
        ("model_load", "states-too-big", "read onto the card", "load-on-cpu"),
    ),
    (
        [("/w/t.py", "save_full", "x"), (LIB + "torch/distributed/checkpoint/state_dict.py", "get_model_state_dict", "x")],
        ("checkpoint", "checkpoint-gather", "", "free-before-save"),
    ),
    (
        [("/w/t.py", "validate", "logits = net(ids)"), ("/w/model.py", "forward", "h = F.silu(self.w1(x)) * self.w3(x)")],
        ("validation", "evaluation-too-big", "", "lower-evaluation-batch"),
    ),
    (
        [("/w/dpo.py", "get_batch_loss_metrics", "out = self.concatenated_forward(model, batch)"),
         ("/w/dpo.py", "get_batch_logps", "lp = torch.gather(logits.log_softmax(-1), 2, ids)")],
        ("actor_update", "logits-too-big", "", "lower-actor-micro-batch"),
    ),
    (
        [("/w/grpo_trainer.py", "_generate_and_score_completions", "with unwrap_model_for_generation(model, acc) as one:")],
        ("rollout_generate", "gather-for-generation", "", ""),
    ),
    (
        [(LIB + "trl/trainer/grpo_trainer.py", "__init__", "self.llm = LLM("),
         (LIB + "vllm/engine/llm_engine.py", "_initialize_kv_caches", "self.model_executor.initialize_cache(num_gpu_blocks, n)")],
        ("rollout_init", "engine-start-too-big", "", "lower-rollout-share"),
    ),
    (
        [(LIB + "trl/trainer/kto_trainer.py", "_compute_kl_logps", "out = model(**kwargs)")],
        ("log_prob", "logits-too-big", "", ""),
    ),
    (
        [("/w/t.py", "main", "loss.backward()"),
         ("/tmp/torchinductor_u/ab/c4.py", "call", "buf706 = empty_strided_cuda((65536, 65536), (65536, 1), torch.bfloat16)")],
        ("actor_update", "logits-too-big", "", "lower-actor-micro-batch"),
    ),
    (
        [("/w/train.py", "train_step", "out = model(**batch)"), (LIB + "accelerate/utils/operations.py", "_convert_to_fp32", "return tensor.float()")],
        ("actor_update", "logits-too-big", "", "lower-actor-micro-batch"),
    ),
]  # fmt: skip


def test_frames_name_moment_cause_and_first_steps(tmp_path: Path) -> None:
    @each(("frames", "told"), ROWS)
    def checked(frames: list[tuple[str, str, str]], told: tuple[str, str, str, str]) -> None:
        state = opened(tmp_path, *frames)
        phase, cause, words, step = told
        found = state.diagnosis
        assert (found.phase, found.cause) == (phase, cause)
        assert words in found.title
        assert not step or step in [one.id for one in state.plan.steps[:3]]

    checked()


def test_where_nothing_shows_what_filled_the_card_the_heading_says_so_and_no_guess(tmp_path: Path) -> None:
    state = opened(tmp_path)
    assert state.diagnosis.title == "The card ran full; what filled it is not shown"
    assert state.plan.steps[0].id == "lower-actor-micro-batch"
    assert all(step.results == "unchanged" for step in state.plan.steps[:2])


def test_a_loss_in_the_traceback_names_the_method(tmp_path: Path) -> None:
    @each(
        ("frame", "method"),
        [
            (("/w/losses.py", "dpo_loss", "x = a - b"), "dpo"),
            (("/w/losses.py", "compute_kto_loss", "x = a - b"), "kto"),
            (("/x/llamafactory/train/dpo/trainer.py", "get_batch_loss_metrics", "x"), "dpo"),
            (("/w/losses.py", "lm_loss", "x = a - b"), "unknown"),
        ],
    )
    def checked(frame: tuple[str, str, str], method: str) -> None:
        assert opened(tmp_path, frame).run.algorithm == method

    checked()
