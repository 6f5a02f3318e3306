"""What an answer rules out: only what no later answer can bring back, told as a clause, with its question."""

from advisor.diagnosis.facts import Fact
from advisor.diagnosis.tree import leaves_after, ruled_out, walk
from advisor.knowledge import load_knowledge

TREE = load_knowledge().tree


def fact(value: str | bool) -> Fact:
    return Fact(value, "log", "line 7 of train.log", (0,))


UPDATE = {"verdict": fact("oom"), "memory": fact("gpu"), "framework": fact("verl"), "phase": fact("actor_update")}


def test_a_cause_says_which_question_led_away_from_it_and_why() -> None:
    facts = dict(UPDATE)
    found = {out.cause: out for out in ruled_out(TREE, walk(TREE, facts, {}), facts)}
    other = found["not-memory"]
    assert (other.question, other.because) == ("memory", "the log says GPU memory, line 7 of train.log")
    assert found["checkpoint-gather"].question == "phase"


def test_a_cause_that_a_later_question_still_leads_to_is_not_ruled_out_by_an_earlier_one() -> None:
    facts = dict(UPDATE)
    walked = walk(TREE, facts, {"holder": "batch"})
    assert walked.cause.id == "batch-too-big"
    found = {out.cause: out for out in ruled_out(TREE, walked, facts)}
    assert "states-too-big" in leaves_after(TREE, "regression")
    assert (found["states-too-big"].question, found["states-too-big"].because) == (
        "holder",
        "you answered Activations of one pass of the batch",
    )


def test_a_plain_no_is_told_with_its_question() -> None:
    facts = {**UPDATE, "advisory.checked": fact(True)}
    found = {out.cause: out for out in ruled_out(TREE, walk(TREE, facts, {}), facts)}
    assert found["library-regression"].because.startswith("Does a library version here leak")
    assert "? No: line 7" in found["library-regression"].because


def test_where_nothing_is_proved_nothing_is_ruled_out() -> None:
    facts = {"verdict": fact("unclear")}
    assert ruled_out(TREE, walk(TREE, facts, {}), facts) == ()
