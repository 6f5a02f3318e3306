"""Crashes of an evaluation, a merge or a save, and states that all cards cannot hold: cause and first steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from advisor import session
from advisor.session import SessionRequest, State

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.42 GiB. GPU 0 has a total capacity of 23.56 GiB "
    "of which 3.01 GiB is free. Including non-PyTorch memory, this process has 20.10 GiB memory in use. Of the "
    "allocated memory 19.30 GiB is allocated by PyTorch, and 600.00 MiB is reserved by PyTorch but unallocated.\n"
)
COLLECTS = (
    "Traceback (most recent call last):\n"
    '  File "/lib/transformers/trainer.py", line 4200, in evaluation_loop\n    all_preds.add(logits)\n'
    '  File "/lib/transformers/trainer_pt_utils.py", line 316, in add\n    x = nested_concat(\n'
    '  File "/lib/transformers/trainer_pt_utils.py", line 130, in nested_concat\n    return pad(\n' + OOM
)
STEP = "{'loss': 2.4432, 'grad_norm': 1.64, 'learning_rate': 5e-07, 'epoch': 0.01}\n"
TRAINING = "  1%|          | 10/1042 [00:20<30:00,  1.9s/it]\n"
EVALUATION = "  5%|5         | 2/37 [00:01<00:20,  1.7it/s]\n"
Opened = Callable[..., State]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    def run(
        script: str = "", log: str = "", name: str = "run.sh", gpus: str = "", model: str = "", **answers: str
    ) -> State:
        (tmp_path / name).write_text(script)
        (tmp_path / "train.log").write_text(log)
        return session.open_session(
            SessionRequest(
                script=tmp_path / name if script else None,
                logs=(tmp_path / "train.log",) if log else (),
                gpus=gpus or None,
                model=model or None,
                answers=answers,
            )
        )

    return run


def steps(state: State) -> Mapping[str, int]:
    return {step.id: step.rank for step in state.plan.steps}


def test_an_evaluation_that_collects_logits_moves_them_off_the_card_first(opened: Opened) -> None:
    state = opened(log=COLLECTS)
    assert (state.diagnosis.phase, state.diagnosis.cause) == ("validation", "evaluation-too-big")
    assert list(steps(state))[:2] == ["evaluation-in-pieces", "keep-no-logits"]
    assert "lower-evaluation-batch" in list(steps(state))[:4]


def test_an_evaluation_batch_of_one_is_not_lowered(opened: Opened) -> None:
    state = opened("per_device_eval_batch_size = 1\n", memory="gpu", phase="validation")
    assert state.diagnosis.cause == "evaluation-too-big"
    assert "lower-evaluation-batch" not in steps(state)


@pytest.mark.parametrize(
    ("lines", "phase"),
    [
        (TRAINING + STEP + TRAINING + EVALUATION, "validation"),
        (TRAINING + STEP + TRAINING + EVALUATION + TRAINING, "unknown"),
        (EVALUATION + TRAINING + STEP + TRAINING, "unknown"),
        (TRAINING + EVALUATION, "unknown"),
    ],
)
def test_a_second_bar_after_a_logged_loss_is_an_evaluation(opened: Opened, lines: str, phase: str) -> None:
    assert opened(log=lines + OOM).crash.phase == phase


@pytest.mark.parametrize(
    "call",
    [
        'model.save_pretrained_merged("m", tokenizer, save_method="merged_16bit")\n',
        'model.push_to_hub_gguf("me/m", tokenizer)\n',
    ],
)
def test_unsloths_merge_is_answered_by_a_merge_apart_and_its_own_limit(opened: Opened, call: str) -> None:
    state = opened(call, name="run.py", memory="gpu", phase="checkpoint")
    assert state.diagnosis.cause == "merge-beside-training"
    assert list(steps(state)) == ["merge-apart", "lower-merge-share", "free-before-save"]


def test_a_merge_in_a_comment_is_none(opened: Opened) -> None:
    state = opened('x = 1\n# model.save_pretrained_gguf("m")\n', name="run.py", memory="gpu", phase="checkpoint")
    assert state.diagnosis.cause == "checkpoint-gather"
    assert steps(state)


def test_what_saves_on_the_card_is_told_apart_from_what_saves_in_ram(opened: Opened) -> None:
    on_card = opened("python train.py --a 1\n", memory="gpu", phase="checkpoint").diagnosis.cause
    in_ram = opened("python train.py --a 1\n", memory="host", phase="checkpoint").diagnosis.cause
    assert (on_card, in_ram) == ("checkpoint-gather", "checkpoint-in-ram")


def test_states_beyond_all_cards_are_not_shared_out_again(opened: Opened) -> None:
    launch = "python train.py --my_batch 2 --my_seq 16000 --tune full\n"
    state = opened(launch, gpus="4xH100-80GB", model="Qwen3-Coder-30B-A3B-Instruct", memory="gpu", course="first")
    assert state.diagnosis.cause == "states-beyond-cards"
    assert not {"higher-zero-stage", "full-shard", "gradient-checkpointing", "shorten-sequences"} & steps(state).keys()
    more = opened(launch, gpus="16xH100-80GB", model="Qwen3-Coder-30B-A3B-Instruct", memory="gpu", course="first")
    assert more.diagnosis.cause != "states-beyond-cards"


def test_plain_attention_that_the_settings_name_leads(opened: Opened) -> None:
    state = opened("attn_implementation: eager\nmax_length: 2800\nmy_own: 1\n", log=OOM, name="run.yaml")
    assert next(iter(steps(state))) == "flash-attention"
    other = opened("attn_implementation: sdpa\nmax_length: 2800\nmy_own: 1\n", log=OOM, name="run.yaml")
    assert "check-attention" not in steps(other)


def test_the_cache_that_vllm_says_fits_is_quoted(opened: Opened) -> None:
    told = (
        "INFO [gpu_worker.py:391] Replace gpu_memory_utilization config with `--kv-cache-memory=14689787392` to fit "
        "into requested memory, or `--kv-cache-memory=17049050624` to fully utilize gpu memory.\n"
        'Traceback (most recent call last):\n  File "/lib/vllm/v1/worker/gpu_model_runner.py", line 2874, in '
        "_dummy_sampler_run\n" + OOM
    )
    state = opened(log=told)
    assert next(iter(steps(state))) == "cache-as-told"
    assert any("--kv-cache-memory=14689787392 (13.68 GiB)" in one for one in state.diagnosis.remarks)
