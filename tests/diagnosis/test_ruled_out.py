"""What is ruled out, by a proof, and what is only less likely for an answer: told as a clause, with its question."""

from advisor.diagnosis.facts import Fact
from advisor.diagnosis.tree import leaves_after, less_likely, ruled_out, walk
from advisor.knowledge import load_knowledge

TREE = load_knowledge().tree


def fact(value: str | bool) -> Fact:
    return Fact(value, "log", "line 7 of train.log", (0,))


UPDATE = {"verdict": fact("oom"), "memory": fact("gpu"), "framework": fact("verl"), "phase": fact("actor_update")}


def test_a_cause_says_which_question_led_away_from_it_and_why() -> None:
    facts = dict(UPDATE)
    found = {out.cause: out for out in less_likely(TREE, walk(TREE, facts, {}), facts)}
    assert found["checkpoint-gather"].question == "phase"
    assert found["checkpoint-gather"].because.endswith(" Model update: line 7 of train.log")


def test_a_branch_not_taken_is_never_ruled_out() -> None:
    facts = dict(UPDATE)
    walked = walk(TREE, facts, {"holder": "batch"})
    assert ruled_out(TREE, walked.cause.id, facts) == ()


def test_an_answer_of_the_user_rules_nothing_out() -> None:
    facts = {"gpu.fragmented": Fact(False, "user", "you said so")}
    assert ruled_out(TREE, "batch-too-big", facts) == ()
    printed = {"gpu.fragmented": Fact(False, "log", "line 7 of train.log", (0,))}
    assert [out.cause for out in ruled_out(TREE, "batch-too-big", printed)] == ["fragmentation"]


def test_a_cause_that_a_later_question_still_leads_to_is_not_set_aside_by_an_earlier_one() -> None:
    facts = dict(UPDATE)
    walked = walk(TREE, facts, {"holder": "batch"})
    assert walked.cause.id == "batch-too-big"
    found = {out.cause: out for out in less_likely(TREE, walked, facts)}
    assert "states-too-big" in leaves_after(TREE, "regression")
    assert (found["states-too-big"].question, found["states-too-big"].because) == (
        "holder",
        "you answered Activations of one pass of the batch",
    )


def test_a_plain_no_is_told_with_its_question() -> None:
    facts = {**UPDATE, "phase": fact("optimizer_step"), "first_step": fact(True)}
    found = {out.cause: out for out in less_likely(TREE, walk(TREE, facts, {}), facts)}
    assert found["states-too-big"].because == "Was it the first optimizer step? Yes: line 7 of train.log"


def test_a_cause_that_an_advisory_proves_is_not_less_likely_for_an_answer() -> None:
    facts = {**UPDATE, "advisory.cause.library-regression": fact(True)}
    walked = walk(TREE, facts, {"regression": "no"})
    assert "library-regression" not in {out.cause for out in less_likely(TREE, walked, facts)}


def test_where_nothing_is_proved_nothing_is_set_aside() -> None:
    facts = {"verdict": fact("unclear")}
    assert less_likely(TREE, walk(TREE, facts, {}), facts) == ()
    assert ruled_out(TREE, "unclear", facts) == ()
