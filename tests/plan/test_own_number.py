"""A number of the user's own in a step of the plan: what it leads to, what is refused, and which numbers fit."""

from pathlib import Path

import pytest

from advisor import session, session_store
from advisor.plan.plan import PlanStep
from advisor.session import SessionRequest, State

ACTOR = "actor_rollout_ref.actor"
LOG = """\
  File "/site-packages/verl/trainer/ppo/ray_trainer.py", line 1010, in fit
    actor_output = self.actor_rollout_wg.update_actor(batch)
  File "/site-packages/verl/workers/actor/dp_actor.py", line 260, in update_policy
    entropy, log_prob = self._forward_micro_batch(micro_batch=data, temperature=temperature)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 14.31 GiB. GPU 3 has a total capacity of 79.15 GiB of \
which 6.10 GiB is free. Including non-PyTorch memory, this process has 73.04 GiB memory in use.
"""
SCRIPT = f"""\
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=1024 \\
    data.max_prompt_length=1024 data.max_response_length=4096 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct {ACTOR}.ppo_mini_batch_size=256 \\
    {ACTOR}.ppo_micro_batch_size_per_gpu=40 actor_rollout_ref.rollout.name=vllm \\
    actor_rollout_ref.model.use_remove_padding=True actor_rollout_ref.model.enable_gradient_checkpointing=True \\
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8 \\
    actor_rollout_ref.rollout.gpu_memory_utilization=0.6 actor_rollout_ref.rollout.n=5 trainer.n_gpus_per_node=8
"""
MICRO = "lower-actor-micro-batch"


@pytest.fixture(scope="module")
def verl(tmp_path_factory: pytest.TempPathFactory) -> State:
    folder = tmp_path_factory.mktemp("verl")
    script, log = folder / "run.sh", folder / "train.log"
    script.write_text(SCRIPT)
    log.write_text(LOG)
    state = session.open_session(SessionRequest(script, (log,), gpus="8xA100-80GB", host_ram="1000GB"))
    for step in state.plan.selected():  # so that the step alone decides
        state = session.toggle(state, step.id, False)
    return state


def step_of(state: State, step_id: str) -> PlanStep:
    return next(step for step in state.plan.steps if step.id == step_id)


def test_the_number_is_written_where_the_plans_would_be_and_counts_in_every_sum(verl: State) -> None:
    now = session.give_number(verl, MICRO, "4")
    step = step_of(now, MICRO)
    assert (step.selected, step.own, step.changes[0].old, step.changes[0].new) == (True, "4", "40", "4")
    assert "4 instead of 40" in step.why
    patch = session.patch(now)
    assert not patch.refused
    assert f"{ACTOR}.ppo_micro_batch_size_per_gpu=4 " in patch.rewrites[0].new.decode()
    peaks = [
        given.plan.after.phase("gpu", "actor_update")
        for given in (now, session.give_number(verl, MICRO, "8"))
        if given.plan.after is not None
    ]
    assert peaks[0] is not None
    assert peaks[1] is not None
    assert peaks[0].expected < peaks[1].expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("24", "must divide"),
        ("40", "is what it is now"),
        ("0.5", "whole number"),
        *((text, "above 0") for text in ("", "0", "-2", "four", "1e99", "nan", "9" * 40, "[red]", "\x1b[2J")),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(verl: State, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        session.give_number(verl, MICRO, text)


def test_a_share_is_at_most_all_of_it() -> None:
    from advisor.demo import demo_files

    demo = demo_files()
    state = session.open_session(SessionRequest(demo.script, (demo.log,), machine_files=(demo.machine,)))
    with pytest.raises(ValueError, match="1 is all of it"):
        session.give_number(state, "lower-rollout-share", "45")
    assert step_of(session.give_number(state, "lower-rollout-share", "0.41"), "lower-rollout-share").own == "0.41"


def test_each_number_that_is_said_to_fit_does_and_the_next_does_not(verl: State) -> None:
    found = session.numbers_of(verl, MICRO)
    below, fitting, above = found.around(20)
    assert [one.value for one in found.tried] == sorted({one.value for one in found.tried})
    assert below is None
    assert fitting
    assert above is not None
    for one in (*fitting, above):
        if one.text != "40":  # that is the run as it stands
            assert session.give_number(verl, MICRO, one.text).plan.fits is one.fits


def test_what_the_framework_moves_along_moves_with_the_users_number(tmp_path: Path) -> None:
    script, log = tmp_path / "run.sh", tmp_path / "train.log"
    script.write_text(
        "accelerate launch --num_processes 8 -m trl.scripts.grpo --model_name_or_path Qwen/Qwen2.5-7B "
        "--per_device_train_batch_size 8 --gradient_accumulation_steps 4 --num_generations 8 "
        "--max_completion_length 4096\n"
    )
    log.write_text(
        '  File "/site-packages/trl/trainer/grpo_trainer.py", line 900, in _compute_loss\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.00 GiB. GPU 0 has a total capacity of "
        "79.15 GiB of which 3.00 GiB is free.\n"
    )
    state = session.open_session(SessionRequest(script, (log,), gpus="8xA100-80GB"))
    step = next(s for s in state.plan.steps if s.changes and s.changes[0].key == "--per_device_train_batch_size")
    moved = {change.key: change.new for change in step_of(session.give_number(state, step.id, "2"), step.id).changes}
    assert moved == {"--per_device_train_batch_size": "2", "--gradient_accumulation_steps": "16"}


def test_it_comes_back_with_the_session_and_over_the_rest_of_a_log(verl: State, tmp_path: Path) -> None:
    now = session.give_number(verl, MICRO, "4")
    kept = session_store.SavedSession(
        session_store.current_request(now), {MICRO: True}, "plan", numbers=session.chosen_set(now).numbers
    )
    session_store.save(tmp_path / "one.json", kept)
    back = session_store.load(tmp_path / "one.json")
    again = session_store.with_switches(session.open_session(back.asked), back.switched, back.numbers)
    assert step_of(again, MICRO).own == "4"
    fuller = session.carry_over(now, session.open_session(now.asked))
    assert step_of(fuller, MICRO).own == "4"
    gone = session_store.with_switches(verl, {}, {"gone": "4", MICRO: "24"})
    assert gone == verl, "what the plan has or allows no more is passed over"


def test_a_set_is_taken_again_to_the_number_and_the_last_switch(verl: State) -> None:
    mine = session.give_number(verl, MICRO, "4")
    kept = session.chosen_set(mine)
    assert (kept.steps, kept.numbers) == ((MICRO,), {MICRO: "4"})
    elsewhere = session.with_set(mine, session.proposed_set(mine))
    assert session.chosen_set(elsewhere) == session.chosen_set(session.open_session(verl.asked)), "no number stays"
    back = session.with_set(elsewhere, kept)
    assert session.chosen_set(back) == kept
    assert (back.plan.fit, back.plan.after) == (mine.plan.fit, mine.plan.after)
    gone = session.ChosenSet(("gone",), {"gone": "3"})
    assert session.with_set(mine, gone).plan.selected() == (), "what the plan has no more is passed over"


def test_the_users_own_batch_comes_before_a_token_budget_that_was_never_set(verl: State) -> None:
    ids = [step.id for step in verl.plan.steps]
    assert ids.index(MICRO) < ids.index("token-budget")
