"""The knowledge files agree with each other and with the rules that the code has."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import SettingFact
from tests.loops import each

K = load_knowledge()
REMEDIES = {remedy.id for remedy in K.remedies}
CASES = {case.id for case in K.cases}
CAUSES = {cause.id for cause in K.tree.causes}
QUESTIONS = {question.id for question in K.tree.questions}
KNOBS = {knob.id for knob in K.knobs}


def facts() -> Iterator[tuple[str, str, SettingFact]]:
    for framework in K.frameworks:
        for key, fact in {**framework.settings, **framework.environment}.items():
            yield framework.framework, key, fact


def test_every_framework_of_the_contract_has_a_dialect() -> None:
    assert {f.framework for f in K.frameworks} >= {
        "verl",
        "easyr1",
        "logic-rl",
        "open-reasoner-zero",
        "openrlhf",
        "ms-swift",
        "trl",
    }


def test_every_knob_named_in_a_dialect_or_remedy_exists() -> None:
    named = {knob for _, _, fact in facts() for knob in (fact.knob, *fact.also) if knob is not None}
    named |= {knob for remedy in K.remedies for knob in (remedy.knob, *remedy.also) if knob is not None}
    assert named <= KNOBS


def test_every_era_named_in_a_setting_exists_in_its_dialect() -> None:
    for framework in K.frameworks:
        eras = {era.id for era in framework.eras}
        for key, fact in {**framework.settings, **framework.environment}.items():
            assert set(fact.eras) <= eras, (framework.framework, key)
        assert set(framework.per_era) <= eras, framework.framework


def test_every_setting_has_a_source() -> None:
    assert [f"{name} {key}" for name, key, fact in facts() if not fact.source] == []


def test_every_cause_names_remedies_that_exist_and_at_least_one_where_memory_ran_out() -> None:
    for cause in K.tree.causes:
        assert set(cause.remedies) | set(cause.folklore) <= REMEDIES, cause.id
        if cause.memory in ("gpu", "host", "shm"):
            assert cause.remedies, cause.id


def test_every_answer_of_the_tree_leads_somewhere_that_exists() -> None:
    for question in K.tree.questions:
        for answer in question.answers.values():
            assert (answer.next is None) != (answer.leads_to is None), (question.id, answer.title)
            assert answer.next is None or answer.next in QUESTIONS
            assert answer.leads_to is None or answer.leads_to in CAUSES
        assert (question.unknown_next is None) != (question.unknown_leads_to is None), question.id


def test_every_question_is_reached_and_says_how_to_find_the_answer() -> None:
    reached = {K.tree.start}
    for question in K.tree.questions:
        reached |= {n for a in question.answers.values() if (n := a.next) is not None}
        reached |= {question.unknown_next} if question.unknown_next else set()
        assert question.if_unknown.strip()
        assert question.why.strip()
    assert reached == QUESTIONS


def test_the_tree_reaches_a_cause_in_at_most_seven_questions() -> None:
    questions = {question.id: question for question in K.tree.questions}

    def depth(name: str) -> int:
        ways = [a.next for a in questions[name].answers.values()] + [questions[name].unknown_next]
        asked = questions[name].asked_when != ()  # what only facts answer is nobody's to answer
        return asked + max((depth(way) for way in ways if way is not None), default=0)

    assert depth(K.tree.start) <= 7


@each("cause", sorted(CAUSES - {"not-memory", "unclear"}))
def test_every_cause_is_reached_by_some_path(cause: str) -> None:
    leaves = {a.leads_to for q in K.tree.questions for a in q.answers.values()}
    leaves |= {q.unknown_leads_to for q in K.tree.questions}
    assert cause in leaves


def test_lines_and_signatures_named_in_the_tree_exist() -> None:
    known = {signature.id for signature in K.signatures.signatures}
    named = {
        name.removeprefix("line.")
        for question in K.tree.questions
        for answer in question.answers.values()
        for rule in answer.shown_by
        for name in rule.names()
        if name.startswith("line.")
    }
    assert named
    assert named <= known


def test_cases_and_their_remedies_refer_to_things_that_exist() -> None:
    for case in K.cases:
        assert set(case.remedies) <= REMEDIES, case.id
        assert case.source.startswith("http"), case.id
    assert {e.case for r in K.remedies for e in r.evidence} <= CASES


def test_every_remedy_says_two_sentences_what_it_costs_and_where_that_is_known() -> None:
    for remedy in K.remedies:
        assert remedy.says.count(".") >= 2 or ";" in remedy.says, remedy.id
        assert remedy.costs
        assert remedy.source, remedy.id


def test_folklore_is_never_among_the_remedies_of_its_cause() -> None:
    for cause in K.tree.causes:
        assert not set(cause.remedies) & set(cause.folklore), cause.id


def test_every_dialect_is_an_answer_to_which_framework_trains() -> None:
    questions = {question.id: question for question in K.tree.questions}
    for name in ("framework", "framework_host"):
        assert {dialect.framework for dialect in K.frameworks} <= set(questions[name].answers), name
