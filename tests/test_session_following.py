"""From the script that was given to the file that holds the settings, and what is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session, patch, toggle

CONFIG = """\
import os
from dataclasses import dataclass
from orz.exps.examples.ppo.ppo_base_exp import BasePPOExpConfig

DEBUG_MODE = False if os.environ.get("DEBUG_MODE", "False") == "False" else True


@dataclass
class PPOExpConfig(BasePPOExpConfig):
    total_num_nodes: int = 32 if not DEBUG_MODE else 8
    actor_num_nodes: int = total_num_nodes
    actor_num_gpus_per_node: int = 1
    colocate_all: bool = True
    pretrain: str = "Qwen/Qwen2.5-7B"
    gpu_memory_utilization: float = 0.7 if not DEBUG_MODE else 0.5
    packing_max_len: int = 16384
"""
FOREIGN = """\
torchrun --nproc_per_node 4 my_grpo.py --model Qwen/Qwen2.5-7B --bs 8 --num-gen 16
"""
OOM = """\
  File "/app/trl/trainer/grpo_trainer.py", line 1100, in compute_loss
    per_token_logps = self._get_per_token_logps(model, input_ids, attention_mask, logits_to_keep)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 0 has a total capacity of 79.15 GiB of \
which 1.20 GiB is free. Including non-PyTorch memory, this process has 77.94 GiB memory in use. Of the allocated \
memory 75.00 GiB is allocated by PyTorch, and 1.50 GiB is reserved by PyTorch but unallocated.
"""


def orz(tmp_path: Path, launch: str, *, config: bool = True) -> SessionRequest:
    if config:
        (tmp_path / "playground").mkdir()
        (tmp_path / "playground" / "orz_7b_ppo.py").write_text(CONFIG)
    (tmp_path / "run.sh").write_text(f"#!/bin/bash\n{launch}\n")
    return SessionRequest(script=tmp_path / "run.sh", gpus="8xA100-80GB")


@pytest.mark.parametrize(
    "launch",
    [
        "cd /root/Open-Reasoner-Zero\nDEBUG_MODE=True python -m playground.orz_7b_ppo",
        "export DEBUG_MODE=True\npython playground/orz_7b_ppo.py",
        "cd playground\nDEBUG_MODE=True python orz_7b_ppo.py",
    ],
)
def test_a_launch_is_followed_to_its_config_class_in_the_environment_it_sets(tmp_path, launch):
    state = open_session(orz(tmp_path, launch))
    assert state.run.framework == "open-reasoner-zero"
    assert state.run.number("rollout.memory_share") == 0.5
    assert state.run.topology.actor_gpus == 8
    assert any("orz_7b_ppo.py: that file has the settings" in note for note in state.run.notes)


def test_without_the_variable_the_other_branch_counts(tmp_path):
    state = open_session(orz(tmp_path, "python -m playground.orz_7b_ppo"))
    assert state.run.number("rollout.memory_share") == 0.7


def test_a_change_goes_into_the_branch_of_the_config_file_that_the_launch_takes(tmp_path):
    from advisor.script.document import EditRequest
    from advisor.script.edit import rewrite

    state = open_session(orz(tmp_path, "DEBUG_MODE=True python -m playground.orz_7b_ppo"))
    assert state.script is not None
    (done,) = rewrite(state.script, 0, [EditRequest("gpu_memory_utilization", "0.4")])
    assert done.document.path.name == "orz_7b_ppo.py"
    assert b"0.7 if not DEBUG_MODE else 0.4" in done.new


def test_a_config_class_that_is_not_there_is_asked_for_and_nothing_goes_on_the_command_line(tmp_path):
    state = open_session(orz(tmp_path, "python -m playground.orz_7b_ppo", config=False))
    assert state.run.framework == "open-reasoner-zero"
    assert any("playground/orz_7b_ppo.py, which was not found: give that file" in note for note in state.run.notes)
    assert state.run.number("rollout.memory_share") is None
    assert not [c for step in state.plan.steps for c in step.changes if c.file]
    assert patch(state).rewrites == ()


def test_settings_are_not_added_to_a_command_that_only_the_log_connects_with_a_framework(tmp_path):
    (tmp_path / "run.sh").write_text(FOREIGN)
    (tmp_path / "train.log").write_text(OOM)
    state = open_session(SessionRequest(tmp_path / "run.sh", (tmp_path / "train.log",), gpus="4xA100-80GB"))
    assert (state.run.framework, state.run.recognised_from) == ("trl", "log")
    settings = [step for step in state.plan.steps if step.kind == "setting"]
    assert settings, "the steps are shown all the same"
    assert not any(step.selected for step in settings)
    stated = [step for step in settings if any(change.key == "--bs" for change in step.changes)]
    assert next((change.key, change.new) for step in stated for change in step.changes) == ("--bs", "2")
    others = [step for step in settings if step not in stated]
    assert all(any(c.startswith("no place to write it") for c in step.caveats) for step in others)
    assert patch(state).rewrites == ()
    now = toggle(state, others[0].id)  # what no file carries can be decided on all the same
    assert next(step.selected for step in now.plan.steps if step.id == others[0].id)
    assert patch(now).rewrites == ()
    assert "no place to write it" in patch(now).by_hand[0]


def test_which_of_two_launches_is_looked_at_is_said_until_one_is_chosen(tmp_path):
    script = tmp_path / "two.sh"
    line = "python3 -m verl.trainer.main_ppo data.train_batch_size={}\n"
    script.write_text("#!/bin/bash\n" + line.format(8) + line.format(16))
    said = open_session(SessionRequest(script, gpus="4xA100-80GB")).run.notes
    assert any("2 training commands" in n and "line 2" in n and "--launch N" in n for n in said)
    chosen = open_session(SessionRequest(script, gpus="4xA100-80GB", launch=1)).run.notes
    assert not any("training commands" in note for note in chosen)
