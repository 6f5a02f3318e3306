"""Settings that a project calls by names of its own are its levers, and what they switch on is not offered again."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session

OOM = (
    'Traceback (most recent call last):\n  File "/w/train.py", line 9, in main\n    loss.backward()\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 1.20 GiB is free. Including non-PyTorch memory, this process has 77.94 GiB memory in use. Of the "
    "allocated memory 75.10 GiB is allocated by PyTorch, and 1.41 GiB is reserved by PyTorch but unallocated.\n"
)
OWN = "torchrun --nproc_per_node 4 train_rl.py --model_path Qwen/Qwen2.5-7B-Instruct "
VERL = "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B trainer.n_gpus_per_node=8 "
LOADED = 'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B-Instruct")\n'


def steps(folder: Path, text: str) -> dict[str, tuple[str, str | None]]:
    """Remedy → the first key that it changes, and the value that the key has."""
    script = folder / ("train.py" if "from_pretrained" in text else "run.sh")
    script.write_text(text)
    (folder / "log").write_text(OOM)
    plan = open_session(SessionRequest(script, logs=(folder / "log",), gpus="8xA100-80GB")).plan
    return {s.id: (s.changes[0].key, s.changes[0].old) if s.changes else ("", None) for s in plan.steps}


@pytest.mark.parametrize(
    ("text", "remedy", "change"),
    [
        (OWN + "--local_batch_size 8", "lower-actor-micro-batch", ("--local_batch_size", "8")),
        (OWN + "--sequence_length 16384 --micro_bs 1", "shorten-sequences", ("--sequence_length", "16384")),
        (OWN + "--max_gen_len 9000", "shorten-responses", ("--max_gen_len", "9000")),
        (VERL + "data.max_response_len=9000", "shorten-responses", ("data.max_response_len", "9000")),
        (
            VERL + "actor_rollout_ref.actor.ppo_micro_batch_size_per_device=8",
            "lower-actor-micro-batch",
            ("actor_rollout_ref.actor.ppo_micro_batch_size_per_device", "8"),
        ),
        (
            VERL + "actor_rollout_ref.rollout.gpu_mem_util=0.7",
            "lower-rollout-share",
            ("actor_rollout_ref.rollout.gpu_mem_util", "0.7"),
        ),
        (LOADED + "local_batch_size = 4\n", "lower-actor-micro-batch", ("local_batch_size", "4")),
        (
            LOADED + "rows = DataLoader(data, batch_size=4)\n",
            "lower-actor-micro-batch",
            ("DataLoader.batch_size", "4"),
        ),
    ],
)
def test_a_key_of_the_projects_own_is_the_lever(
    tmp_path: Path, text: str, remedy: str, change: tuple[str, str]
) -> None:
    assert steps(tmp_path, text)[remedy] == change


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (OWN + "--use_liger true", "fused-loss"),
        (OWN + "--recompute full", "gradient-checkpointing"),
        ("python -m lib.train_rl optim.offload=true train.micro_bs=4", "optimizer-offload"),
        (LOADED + "model.gradient_checkpointing_enable()\n", "gradient-checkpointing"),
        (OWN + "--attn_implementation sdpa", "flash-attention"),
    ],
)
def test_what_is_on_by_a_name_of_its_own_is_not_offered(tmp_path: Path, text: str, remedy: str) -> None:
    assert remedy not in steps(tmp_path, text)


def test_what_a_log_prints_is_in_force_where_no_dialect_is_known(tmp_path: Path) -> None:
    printed = "Namespace(lr=1, micro_batch_size=1, max_seq_length=2048, gradient_checkpointing=True)\n"
    dumped = (
        "{'out_dir': PosixPath('out'),\n 'precision': 'bf16-true',\n 'train': TrainArgs(save_interval=1000,\n"
        "                    micro_batch_size=1,\n                    max_seq_length=2048)}\n"
    )
    for text, on in ((printed, "gradient-checkpointing"), (dumped, "bf16-compute")):
        (tmp_path / "log").write_text(text + OOM)
        plan = open_session(SessionRequest(None, logs=(tmp_path / "log",), gpus="8xA100-80GB")).plan
        changes = {step.id: step.changes for step in plan.steps}
        assert not {"lower-actor-micro-batch", on} & changes.keys(), text
        (change,) = changes["shorten-sequences"]
        assert (change.key, change.old, change.new) == ("max_seq_length", "2048", "1024")


def test_a_project_of_its_own_loop_is_told_its_own_settings(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(OOM.replace("/w/train.py", "/w/torchtitan/torchtitan/train.py"))
    session = open_session(SessionRequest(None, logs=(tmp_path / "log",), gpus="8xA100-80GB", model="Qwen2.5-7B"))
    told = " ".join(step.title + step.example for step in session.plan.steps)
    assert "--training.local_batch_size" in told
    assert "TrainingArguments" not in told
    assert "accelerate" not in told


def test_a_name_without_a_size_is_the_one_of_the_launch(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("torchrun sft.py --checkpoint_dir c/meta-llama/Meta-Llama-3-8B --lr 1\n")
    told = {said: open_session(SessionRequest(tmp_path / "run.sh", model=said)).run.model for said in ("Llama3", "T9")}
    assert told["Llama3"] is not None
    assert (told["Llama3"].parameters // 10**9, told["T9"]) == (8, None)
