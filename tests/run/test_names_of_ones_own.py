"""A file of one's own whose keys are none of the framework's is read by the last part of them."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, State, open_session

OWN = """\
training:
  max_seq_length: 4096
  batch_size: 1
  eval_batch_size: 16
  gradient_accumulation_steps: 32
  eval_steps: 2000
lora:
  lora_r: 32
"""


def opened(folder: Path, text: str = OWN) -> State:
    script = folder / "run.yaml"
    script.write_text(text)
    answers = {"memory": "gpu", "framework": "unsloth", "first_step": "no"}
    return open_session(SessionRequest(script, gpus="1xRTX-4090-24GB", model="Qwen/Qwen3-4B", answers=answers))


def test_each_key_is_the_setting_that_it_spells(tmp_path: Path) -> None:
    run = opened(tmp_path).run
    assert run.number("actor.micro_batch") == 1
    assert run.number("actor.accumulation") == 32
    assert run.number("data.total_tokens") == 4096
    assert run.quoted
    assert any("no setting of the launch has a name of unsloth's" in note for note in run.notes)


def test_it_is_changed_under_its_own_name(tmp_path: Path) -> None:
    changed = {change.key for step in opened(tmp_path).plan.steps for change in step.changes}
    assert "training.max_seq_length" in changed
    assert "from_pretrained.max_seq_length" not in changed


def test_a_file_with_a_key_of_the_framework_is_not_guessed_at(tmp_path: Path) -> None:
    run = opened(tmp_path, "per_device_train_batch_size: 2\nbatch_size: 64\n").run
    assert run.number("actor.micro_batch") == 2
    assert not any("no setting of the launch" in note for note in run.notes)


def test_an_evaluation_with_more_rows_than_training_is_looked_at_once_steps_were_done(tmp_path: Path) -> None:
    steps = {step.id for step in opened(tmp_path).plan.steps}
    assert "lower-evaluation-batch" in steps
    never = {step.id for step in opened(tmp_path, OWN.replace("  eval_steps: 2000\n", "")).plan.steps}
    assert "lower-evaluation-batch" not in never


def test_a_large_batch_counts_the_rows_of_a_step(tmp_path: Path) -> None:
    run = opened(tmp_path, OWN.replace("batch_size: 1\n", "batch_size: 1024\n", 1)).run
    assert run.number("actor.micro_batch") != 1024


def test_a_group_of_the_trained_model_is_its_own_whatever_stands_around_it(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("actor_rollout_ref.actor.x.param_offload=True\nreward_ref.x.optimizer_offload=True\n")
    state = open_session(SessionRequest(script, answers={"memory": "host", "framework_host": "easyr1"}))
    knob = state.run.knobs["actor.param_offload"]
    assert (knob.value, knob.source) == (True, "script")
    assert state.run.knobs["actor.optimizer_offload"].source == "default"
