# ruff: noqa: E501  (lines as they are printed)
"""Settings that a log prints as YAML, as a table or in the Trainer's banner are what the run has."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, open_session
from tests.loops import each

from .known import judge

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
BANNER = (
    "***** Running training *****\n  Instantaneous batch size per device = 4\n  Total train batch size (w. parallel, "
    "distributed & accumulation) = 128\n  Gradient Accumulation steps = 4\n"
)
UNSLOTH = "O^O/ \\_/ \\    Batch size per device = 2 | Gradient accumulation steps = 8\n\\        /    Data Parallel GPUs = 1\n"
YAML = "actor:\n  optim:\n    lr: 1.0e-06\n  betas:\n  - 0.9\n  - 0.95\n  micro_batch: 4\nrollout:\n  n: 8\n"


@each(
    ("log", "settings"),
    [
        (BANNER, {"per_device_train_batch_size": "4", "gradient_accumulation_steps": "4"}),
        (UNSLOTH, {"per_device_train_batch_size": "2", "gradient_accumulation_steps": "8"}),
        (YAML, {"actor.optim.lr": "1.0e-06", "actor.micro_batch": "4", "rollout.n": "8"}),
        ("batch_size: 2\nbf16: true\nmax_seq_len: 4096\n", {"batch_size": "2", "bf16": "true", "max_seq_len": "4096"}),
        ("| per_device_train_batch_size | 8 |\n| bf16 | True |\n| num_generations | 16 |\n", {"bf16": "True", "num_generations": "16"}),
        ("│ lr │ 1e-6 │\n│ max_length │ 2048 │\n│ model │ 'x/y' │\n", {"max_length": "2048", "model": "x/y"}),
        ("- seq_len = 2048\n- batch = 8\n- bf16 = True\n", {"seq_len": "2048"}),
    ],
)  # fmt: skip
def test_a_list_of_settings_is_read(log: str, settings: dict[str, str]) -> None:
    found = judge(log + OOM).settings
    assert settings.items() <= found.items()


@each(
    "log",
    [
        "WARNING: something happened\nloading: done\n",
        "loss: 0.123456\ngrad_norm: 1.234567\nlr: 0.00000123\n",
        "one: 1\nplain words between\ntwo: 2\nplain words again\nthree: 3\n",
    ],
)
def test_sentences_and_results_are_no_settings(log: str) -> None:
    assert not judge(log + OOM).settings


def test_the_banner_tells_the_number_of_cards_and_whose_settings_they_are(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(BANNER + OOM)
    state = open_session(SessionRequest(None, logs=(tmp_path / "run.log",)))
    assert judge(BANNER + OOM).counts == {"gpus": 8}
    assert state.run.framework == "transformers"
    assert state.run.number("actor.micro_batch") == 4


def test_a_program_with_options_of_its_own_is_not_taken_for_the_library_below_it(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(BANNER + OOM)
    (tmp_path / "run.sh").write_text("python my_trainer.py --bs 4 --ctx 2048 --width 512 --layers 8\n")
    state = open_session(SessionRequest(tmp_path / "run.sh", logs=(tmp_path / "run.log",)))
    assert state.run.framework == "unknown"


def test_printed_settings_are_of_the_framework_that_knows_most_of_them(tmp_path: Path) -> None:
    printed = "Namespace(per_device_train_batch_size=8, gradient_accumulation_steps=2, gradient_checkpointing=False)\n"
    (tmp_path / "run.log").write_text(printed + OOM)
    assert open_session(SessionRequest(None, logs=(tmp_path / "run.log",))).run.framework == "transformers"


def test_a_dictionary_that_is_printed_in_part_is_read_by_its_columns() -> None:
    text = """(main_task pid=7)                'lam': 1.0,
(main_task pid=7)  'critic': {'grad_clip': 1.0,
(main_task pid=7)             'model': {'fsdp_config': {'param_offload': False,
(main_task pid=7)                                       'wrap_policy': {'min': 0}},
(main_task pid=7)                       'path': 'm'},
"""
    found = judge(text).settings
    assert found["critic.model.fsdp_config.param_offload"] == "false"
    assert (found["critic.model.path"], "lam" in found) == ("m", False)
