"""The short report: verdict, proof, cause, the question that decides, changes; everything once, the rest by --all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor import session
from advisor.cli import main
from advisor.diagnosis.deciding import telling_questions
from advisor.exits import Exit
from advisor.hostile import cells
from advisor.language import speaking, unsaid
from advisor.report.short_report import WORDS, short_report
from advisor.report.text_report import text_report
from advisor.session import SessionRequest, State
from tests.replacing import replace
from tests.report.sitting import crash, sitting, unknown_sitting
from tests.report.test_text_and_markdown import hostile_sitting

LOG = (
    '  File "/x/verl/workers/actor/dp_actor.py", line 320, in update_policy\n'
    "    loss.backward()\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.28 GiB. GPU 0 has a total capacity of 79.11 GiB "
    "of which 3.03 GiB is free. Including non-PyTorch memory, this process has 76.06 GiB memory in use.\n"
)
SCRIPT = """\
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=256 \\
    data.max_prompt_length=1024 data.max_response_length=8192 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\
    actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \\
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \\
    trainer.n_gpus_per_node=8 trainer.nnodes=1
"""


def flat(report: str) -> str:
    return " ".join(report.split())


def opened(folder: Path, log: str = "", script: str = "", **answers: str) -> State:
    asked = SessionRequest(gpus="8xH100-80GB", host_ram="1TB", answers=answers)
    if log:
        (folder / "train.log").write_text(log)
        asked = replace(asked, logs=(folder / "train.log",))
    if script:
        (folder / "run.sh").write_text(script)
        asked = replace(asked, script=folder / "run.sh")
    return session.open_session(asked)


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> State:
    return opened(tmp_path_factory.mktemp("run"), LOG, SCRIPT)


@pytest.fixture(scope="module")
def overcounted(tmp_path_factory: pytest.TempPathFactory) -> State:
    used = LOG.replace("9.28 GiB", "38.00 GiB").replace("3.03 GiB", "37.00 GiB").replace("76.06 GiB", "42.11 GiB")
    return opened(tmp_path_factory.mktemp("run"), used, SCRIPT)


@pytest.fixture(scope="module")
def log_only(tmp_path_factory: pytest.TempPathFactory) -> State:
    return opened(tmp_path_factory.mktemp("run"), LOG.splitlines()[-1], framework="verl")


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> State:
    return opened(tmp_path_factory.mktemp("run"), script=SCRIPT, memory="host", host_growth="yes")


def test_it_reads_like_this(golden):
    golden("short.txt", short_report(sitting()))


def test_it_reads_like_this_where_nothing_is_known(golden):
    golden("short_unknown.txt", short_report(unknown_sitting()))


@pytest.mark.parametrize("name", ["proved", "log_only", "answered"])
def test_a_diagnosis_takes_at_most_450_words(name: str, request: pytest.FixtureRequest) -> None:
    state = request.getfixturevalue(name)
    assert len(short_report(state).split()) <= WORDS < len(text_report(state).split())


@pytest.mark.parametrize("name", ["proved", "log_only", "answered", "overcounted"])
def test_no_sentence_is_told_twice(name: str, request: pytest.FixtureRequest) -> None:
    told = [one for one in re.split(r"(?<=[.?]) ", flat(short_report(request.getfixturevalue(name)))) if len(one) > 30]
    assert sorted(set(told)) == sorted(told)


@pytest.mark.parametrize(
    "state", [sitting(), unknown_sitting(), hostile_sitting()], ids=["known", "unknown", "hostile"]
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_line_is_wider_than_78_columns(state: State, language: str) -> None:
    with speaking(language):
        assert [line for line in short_report(state).splitlines() if cells(line) > 78] == []
        assert unsaid() == frozenset()


def test_control_sequences_never_reach_it():
    assert not any(sign in short_report(hostile_sitting()) for sign in "\x1b\x07\u202e")


def test_the_proof_of_a_long_line_is_the_part_that_proves():
    entry = replace(crash().evidence[0], text="word " * 200 + "over the memory usage threshold of 0.95 " + "end " * 99)
    state = replace(sitting(), crash=replace(crash(), evidence=(entry,)))
    assert "memory usage threshold of 0.95" in flat(short_report(state))


def test_an_open_question_shows_both_ways_and_what_is_right_either_way(answered: State) -> None:
    told = flat(short_report(answered))
    assert "One answer decides most: Which process grows?" in told
    for way in ("engine → ", "driver → ", "workers → as above", "--answer what_grows=…", "Right whatever the answer: "):
        assert way in told
    assert "Best guess: Host memory grows with every step" in told


def test_every_way_is_where_the_answer_leads(answered: State) -> None:
    assert answered.situation is not None
    tree, facts = answered.knowledge.tree, answered.situation.facts
    asked = next(iter(telling_questions(answered.diagnosis.path, tree, facts, answered.answers)), None)
    assert asked is not None
    for outcome in asked.outcomes:
        for choice in outcome.choices:
            then = session.answer(answered, asked.step.question, choice.id)
            assert then.diagnosis.cause == outcome.cause.id
            assert asked.right_either_way(answered.knowledge.remedies) <= set(outcome.cause.remedies)


def test_a_finding_asks_nothing(proved: State) -> None:
    known = replace(proved, diagnosis=replace(proved.diagnosis, path=proved.diagnosis.path[:1]))
    assert "One answer decides most" not in short_report(known)
    assert "Best guess" not in short_report(known)


def test_holders_add_up_to_the_whole(proved: State) -> None:
    lines = short_report(proved).splitlines()
    head = next(at for at, line in enumerate(lines) if line.startswith("Memory in "))
    rows = [float(line.split()[-1]) for line in lines[head + 2 : lines.index("", head)] if "never" not in line]
    assert sum(rows[:-1]) == pytest.approx(rows[-1], abs=0.3)


def test_what_the_user_said_is_the_headline_and_not_a_proof(answered: State) -> None:
    first = flat(short_report(answered).split("\n\n")[0])
    assert first.startswith("Host RAM ran out. This is by your answers; no log was given.")


def test_other_answers_claim_no_crash(tmp_path: Path) -> None:
    assert short_report(opened(tmp_path, script=SCRIPT, phase="actor_update")).startswith("No log was given")


def test_the_exit_code_agrees_with_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.log").write_text(
        '  File "/x/torch/optim/optimizer.py", line 493, in wrapper\n    out = func(*args, **kwargs)\n'
    )
    command = ["diagnose", "--log", str(tmp_path / "train.log")]
    assert main(command) == Exit.NOTHING_FOUND
    assert "nothing here says why" in capsys.readouterr().err
    assert main([*command, "--answer", "memory=gpu"]) == Exit.DONE
    out, err = capsys.readouterr()
    assert flat(out).startswith(
        "GPU memory ran out during the optimizer step. Which memory it was is by your answers; the log"
    )
    assert err == ""


def test_all_is_one_flag_away(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "--demo"]) == Exit.DONE
    short = capsys.readouterr().out
    assert main(["diagnose", "--demo", "--all"]) == Exit.DONE
    whole = capsys.readouterr().out
    for part in ("Questions", "Documented cases", "To record next time"):
        assert f"\n{part}\n" in whole
        assert f"\n{part}\n" not in short
    assert len(short.split()) < len(whole.split()) / 2


def test_what_is_no_shortage_rests_on_no_count():
    state = replace(sitting(), crash=replace(crash(), verdict="not_oom"))
    assert "It rests on" not in short_report(state)


def test_a_chosen_step_that_is_right_either_way_is_named_by_its_number(answered: State) -> None:
    right = next(step for step in answered.plan.steps if step.id == "restart-from-checkpoint-host")
    steps = (replace(right, selected=True), *(step for step in answered.plan.steps if step is not right))
    state = answered.with_plan(replace(answered.plan, steps=steps))
    assert "Right whatever the answer: change 1" in short_report(state)


KILL = "[launch.py:325:sigkill_handler] ['python3', 'a.py'] exits with return code = -9\n"


def test_under_a_kill_that_nobody_explained_the_first_step_finds_who_killed(tmp_path: Path) -> None:
    state = opened(tmp_path, KILL, SCRIPT)
    change = flat(short_report(state)).split("Change ")[1].split("It rests on")[0]
    assert change.startswith("In this order, until it runs: 1. See first whether the kernel killed it")
    assert "`dmesg -T" in change
    assert not state.plan.selected()


def test_what_the_settings_do_not_fit_by_themselves_stands_apart_from_a_kill(tmp_path: Path) -> None:
    big = SCRIPT.replace("ppo_micro_batch_size_per_gpu=8", "ppo_micro_batch_size_per_gpu=64")
    change = flat(short_report(opened(tmp_path, KILL, big))).split("Change ")[1]
    assert change.index("1. ") < change.index("Beside that, by the settings alone: ")


def test_with_the_kernels_answer_the_steps_stand_without_a_condition(tmp_path: Path) -> None:
    change = flat(short_report(opened(tmp_path, KILL, SCRIPT, killer="kernel"))).split("Change ")[1]
    assert "Nothing, before" not in change
    assert "Right only if" not in change
