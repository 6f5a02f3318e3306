# ruff: noqa: E501  (log lines as they are printed)
"""A run that dies as it takes up a checkpoint is told what lies on the card twice, and no other run is."""

from __future__ import annotations

from advisor.crash.evidence import Frame
from advisor.diagnosis.event_facts import _restoring
from tests.crash.known import judge
from tests.loops import each

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.20 GiB is free.\n"
LIB = "/opt/lib/python3.11/site-packages/"


@each(
    "frames",
    [
        [("transformers/trainer.py", "_load_optimizer_and_scheduler", ""), ("torch/optim/optimizer.py", "load_state_dict", "")],
        [("deepspeed/runtime/engine.py", "_get_all_zero_checkpoints", ""), ("torch/serialization.py", "load", "")],
        [("deepspeed/checkpoint/universal_checkpoint.py", "load_hp_checkpoint_state", "")],
        [("accelerate/utils/fsdp_utils.py", "load_fsdp_optimizer", ""), ("torch/distributed/fsdp/fully_sharded_data_parallel.py", "optim_state_dict_to_load", "")],
        [("w/train.py", "main", 'ckpt = torch.load(args.resume, map_location="cuda")'), ("torch/serialization.py", "_load", "")],
        [("w/train.py", "main", 'optimizer.load_state_dict(ckpt["optimizer"])'), ("torch/optim/optimizer.py", "_process_value_according_to_param_policy", "")],
        [("verl/utils/checkpoint/fsdp_checkpoint_manager.py", "load_checkpoint", "self.model.load_state_dict(x)")],
    ],
)  # fmt: skip
def test_frames_that_bring_a_checkpoint_back_are_known(frames: list[tuple[str, str, str]]) -> None:
    made = [Frame(LIB + file, 7, function, 3, text) for file, function, text in frames]
    assert _restoring(made) is not None


@each(
    "frames",
    [
        [("w/run.py", "resume", "trainer.fit()"), ("w/run.py", "fit", "step()"), ("w/model.py", "forward", "x @ y")],
        [("transformers/modeling_utils.py", "from_pretrained", ""), ("torch/serialization.py", "load", "")],
        [("sglang/srt/model_executor.py", "resume_memory_occupation", "")],
        [("verl/utils/fsdp_utils.py", "load_fsdp_optimizer", "state.to(device)")],
    ],
)
def test_frames_that_train_load_a_model_or_wake_an_engine_resume_nothing(frames: list[tuple[str, str, str]]) -> None:
    made = [Frame(LIB + file, 7, function, 3, text) for file, function, text in frames]
    assert _restoring(made) is None


@each(
    ("log", "resumed"),
    [
        ("Resuming from checkpoint out/checkpoint-1500\n 25%|##5   | 1500/6000 [00:00<?, ?it/s]\n", True),
        ("***** Running training *****\n  Continuing training from checkpoint, will skip to saved global_step\n", True),
        ("(TaskRunner pid=7) Setting global step to 100\n", True),
        ("It fits from scratch, but when I resume from my checkpoint it dies at once.\n", True),
        ("从断点继续训练后立刻爆显存\n", True),
        ("(TaskRunner pid=7) Setting global step to 0\n", False),
        ("resume_from_checkpoint=None\n", False),
        ("Resuming from checkpoint out/checkpoint-1500\nstep:1501 - loss:1\nstep:1502 - loss:1\n", False),
        ("step:1 - loss:1\nstep:2 - loss:1\nsaved; you can resume from checkpoint 2\n", False),
        ("step:7 - loss:1\n", False),
    ],
)  # fmt: skip
def test_words_of_resuming_count_where_no_step_was_done(log: str, resumed: bool) -> None:
    assert (judge(log + OOM).resumed is not None) == resumed
