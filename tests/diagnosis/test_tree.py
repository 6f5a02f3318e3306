"""The walk: facts answer, the user overrules, "I don't know" always leads on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.diagnosis.diagnosis import UNKNOWN
from advisor.diagnosis.fact import all_hold, holds
from advisor.diagnosis.facts import Fact
from advisor.diagnosis.tree import AnswerError, ruled_out, walk
from advisor.knowledge import load_knowledge
from advisor.rules.expression import Expression
from tests.loops import each

TREE = load_knowledge().tree


def fact(value: str | int | float | bool, because: str = "line 7") -> Fact:
    return Fact(value, "log", because, (0,))


def gpu_facts(phase: str) -> dict[str, Fact]:
    return {"verdict": fact("oom"), "memory": fact("gpu"), "framework": fact("verl"), "phase": fact(phase)}


def test_facts_answer_the_questions_and_say_by_which_line() -> None:
    walked = walk(TREE, gpu_facts("weight_sync"), {})
    assert [step.question for step in walked.steps] == ["memory", "framework", "phase", "sync"]
    assert all(step.source == "log" and step.because == "line 7" for step in walked.steps[:3])
    assert walked.cause.id == "engine-wakes-beside-states"


def test_the_users_answer_wins_over_the_log_and_the_logs_own_stays_as_a_suggestion() -> None:
    walked = walk(TREE, gpu_facts("weight_sync"), {"memory": "host"})
    first = walked.steps[0]
    assert (first.answer, first.source, first.suggested) == ("host", "user", "gpu")
    assert walked.cause.memory == "host"


@each(
    ("phase", "cause"),
    [
        ("weight_sync", "engine-wakes-beside-states"),
        ("rollout_generate", "engine-beside-trainer"),
        ("optimizer_step", "lazy-optimizer"),
        ("model_load", "states-too-big"),
        ("checkpoint", "checkpoint-gather"),
        ("log_prob", "batch-or-states"),
    ],
)
def test_the_phase_decides_the_cause(phase: str, cause: str) -> None:
    assert walk(TREE, gpu_facts(phase), {}).cause.id == cause


@pytest.mark.parametrize(
    ("line", "cause"), [("no-kv-blocks", "no-room-for-kv"), ("engine-share-not-free", "card-already-taken")]
)
def test_the_same_phase_at_engine_start_leads_to_opposite_causes_by_the_line(line: str, cause: str) -> None:
    facts = {**gpu_facts("rollout_init"), f"line.{line}": fact(True)}
    assert walk(TREE, facts, {}).cause.id == cause


LEAF: list[tuple[str, dict[str, Fact], str]] = [
    ("weight_sync", {"frame.gather": fact(True)}, "weight-gather"),
    ("weight_sync", {"line.cumem-oom": fact(True)}, "engine-wakes-beside-states"),
    ("optimizer_step", {"first_step": fact(False)}, "states-too-big"),
    ("actor_update", {"gpu.grows": fact(True), "images": fact(True)}, "encoder-cache"),
    ("actor_update", {"gpu.grows": fact(True), "images": fact(False)}, "gpu-growth"),
    ("actor_update", {"gpu.grows": fact(False), "steps_done": fact(40), "first_step": fact(False)}, "long-sequence"),
    ("actor_update", {"first_step": fact(True), "attribution": fact("logits")}, "logits-too-big"),
    ("actor_update", {"ledger.largest": fact("batch"), "ledger.logits_larger": fact(False)}, "batch-too-big"),
    ("actor_update", {"ledger.largest": fact("batch"), "ledger.logits_larger": fact(True)}, "logits-too-big"),
    ("actor_update", {"ledger.largest": fact("states"), "ledger.states_share": fact(0.6)}, "states-too-big"),
    (
        "actor_update",
        {"gpu.others_share": fact(0.4), "colocated": fact(True), "gpus": fact(8)},
        "engine-beside-trainer",
    ),
    ("actor_update", {"gpu.others_share": fact(0.4), "gpu.others_engine": fact(True)}, "engine-beside-trainer"),
    ("validation", {}, "engine-beside-trainer"),
    ("validation", {"line.cumem-oom": fact(True)}, "engine-wakes-beside-states"),
    ("validation", {"framework": fact("trl"), "frame.logits": fact(True)}, "logits-too-big"),
    (
        "validation",
        {"framework": fact("trl"), "frame.logits": fact(True), "frame.engine": fact("vllm")},  # the engine's sampler
        "engine-beside-trainer",
    ),
    ("actor_update", {"gpu.fragmented": fact(True), "gpu.others_share": fact(0.01)}, "fragmentation"),
]


@each(("phase", "more", "cause"), LEAF)
def test_a_fact_more_tells_causes_of_one_phase_apart(phase: str, more: dict[str, Fact], cause: str) -> None:
    assert walk(TREE, {**gpu_facts(phase), **more}, {}).cause.id == cause


HOST: list[tuple[dict[str, Fact], str]] = [
    ({"host.limit_below_ram": fact(True)}, "host-limit"),
    ({"host.grows": fact(True), "advisory.cause.host-library-leak": fact(True)}, "host-library-leak"),
    ({"host.grows": fact(True)}, "host-growth"),
    ({"platform": fact("cpu")}, "one-memory-host"),
    ({"platform": fact("cpu"), "host.grows": fact(True)}, "host-growth"),  # what grows has no size that fits
    ({"platform": fact("mps"), "host.grows": fact(True)}, "host-growth"),
    ({"host.grows": fact(True), "host.driver_large": fact(True)}, "object-store"),
    ({"host.driver_large": fact(True)}, "object-store"),
    ({"phase": fact("validation")}, "validation-batch"),
    ({"phase": fact("model_load")}, "loading-per-rank"),
    ({"phase": fact("checkpoint"), "knob.actor.param_offload": fact(True)}, "checkpoint-in-ram"),
    ({"knob.actor.param_offload": fact(True)}, "offload-fills-host"),
    ({"sleep_copies": fact(True), "host.largest": fact("engine_copy")}, "engine-copies"),
    ({}, "host-too-small"),
]


@each(("more", "cause"), HOST)
def test_what_fills_the_host_is_told_apart(more: dict[str, Fact], cause: str) -> None:
    facts = {"verdict": fact("oom"), "memory": fact("host"), "framework": fact("verl"), **more}
    assert walk(TREE, facts, {}).cause.id == cause


@each(
    ("answers", "cause"),
    [
        ({"phase": "model_load", "ranks": "yes"}, "wrong-device"),
        ({"phase": "rollout_generate", "ever_ran": "card"}, "leftover-processes"),
        ({"phase": "rollout_init", "engine_start": "taken", "taken_by": "judge"}, "judge-on-card"),
        ({"phase": "actor_update", "message": "others", "others": "dead"}, "leftover-processes"),
        ({"memory": "host", "host_growth": "yes", "what_grows": "engine"}, "image-cache"),
        ({"memory": "shm", "shm_holder": "ray"}, "object-store"),
        ({"memory": "unknown", "ended": "bus"}, "shm-too-small"),
    ],
)
def test_what_no_log_tells_can_be_answered(answers: dict[str, str], cause: str) -> None:
    facts = {"verdict": fact("oom"), "memory": fact("gpu"), "framework": fact("verl")}
    assert walk(TREE, facts, answers).cause.id == cause


def test_a_known_regression_is_blamed_only_where_the_advisory_holds() -> None:
    blamed = walk(TREE, {**gpu_facts("actor_update"), "advisory.cause.library-regression": fact(True)}, {})
    assert blamed.cause.id == "library-regression"
    cleared = {
        **gpu_facts("actor_update"),
        "advisory.checked": fact(True),
        "advisory.clear.library-regression": fact(True),
    }
    walked = walk(TREE, cleared, {})
    assert walked.cause.id != "library-regression"
    assert "library-regression" in {out.cause for out in ruled_out(TREE, walked.cause.id, cleared)}


def test_a_killed_process_without_a_second_witness_stays_unclear() -> None:
    assert walk(TREE, {"verdict": fact("unclear")}, {}).cause.id == "unclear"


def test_what_is_not_memory_ends_at_once() -> None:
    walked = walk(TREE, {"verdict": fact("not_oom"), "memory": fact("none")}, {})
    assert (walked.cause.id, len(walked.steps)) == ("not-memory", 1)


def test_without_any_fact_every_question_is_left_open_and_a_cause_is_still_reached() -> None:
    walked = walk(TREE, {}, {})
    assert {step.answer for step in walked.steps} == {UNKNOWN}
    assert all(step.if_unknown for step in walked.steps)


def test_answers_the_tree_does_not_have_are_refused_with_what_it_has() -> None:
    with pytest.raises(AnswerError, match="takes gpu, host"):
        walk(TREE, {}, {"memory": "cpu"})
    with pytest.raises(AnswerError, match="no question 'colour'"):
        walk(TREE, {}, {"colour": "red"})


QUESTIONS = {question.id: [*question.answers, UNKNOWN] for question in TREE.questions}


@given(st.fixed_dictionaries({}, optional={name: st.sampled_from(answers) for name, answers in QUESTIONS.items()}))
def test_every_combination_of_answers_ends_in_a_cause_within_eight_questions(answers: dict[str, str]) -> None:
    walked = walk(TREE, {}, answers)
    assert len(walked.steps) <= 8
    assert walked.cause.title


def test_conditions_hold_only_on_what_is_known() -> None:
    facts = {"a": fact(True), "n": fact(0.3), "lib": fact("0.16.3"), "off": fact(False)}
    assert holds(Expression("a"), facts)
    assert holds(Expression("off"), facts) is None
    assert holds(Expression("missing != 3"), facts) is None
    assert holds(Expression("n >= 0.3"), facts)
    assert holds(Expression("n < 0.3"), facts) is None
    assert holds(Expression('version(lib, ">=0.16,<0.16.8")'), facts)
    assert holds(Expression("missing or a"), facts)
    assert holds(Expression("not off"), facts)
    assert holds(Expression("not missing"), facts) is None
    assert holds(Expression("not known(missing)"), facts)
    assert all_hold([Expression("a"), Expression("missing")], facts) is None
    assert all_hold([], facts) == []
