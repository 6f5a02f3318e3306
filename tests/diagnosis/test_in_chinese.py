"""What is concluded does not depend on the language; how it is told does."""

from __future__ import annotations

import re

import pytest

from advisor.demo import demo_files
from advisor.diagnosis.facts import DiagnosisInputs, gather_facts
from advisor.diagnosis.tree import AnswerError
from advisor.language import speak
from advisor.session import SessionRequest, State, open_session
from tests.replacing import replace

DEMO = demo_files()
HAN = re.compile("[\u4e00-\u9fff]")


def diagnosed(language: str, **answers: str) -> State:
    speak(language)
    return open_session(SessionRequest(DEMO.script, (DEMO.log,), machine_files=(DEMO.machine,), answers=answers))


def test_facts_have_the_same_values_and_reasons_of_their_own() -> None:
    told = {}
    for language in ("en", "zh"):
        state = diagnosed(language)
        facts = gather_facts(DiagnosisInputs(state.crash, state.run, state.machine, state.ledger, state.attribution))
        told[language] = facts
    english, chinese = told["en"], told["zh"]
    assert {name: fact.value for name, fact in english.items()} == {name: fact.value for name, fact in chinese.items()}
    assert HAN.search(chinese["verdict"].because)
    assert not any(HAN.search(fact.because) for fact in english.values())


def test_a_plain_no_is_told_with_its_question() -> None:
    because = [one.because for one in diagnosed("zh").diagnosis.less_likely]
    assert any(re.search(r"吗？ 否：", one) for one in because)


def test_an_answer_of_the_users_is_quoted() -> None:
    state = diagnosed("zh", memory="gpu", phase="log_prob")
    because = [one.because for one in state.diagnosis.less_likely]
    assert "你的回答是“计算 log-prob”" in because
    assert state.diagnosis.path[0].because == "你的回答"


def test_an_answer_that_the_tree_does_not_have_is_refused_in_chinese() -> None:
    with pytest.raises(AnswerError, match="没有 'nonsense' 这个问题"):
        diagnosed("zh", nonsense="yes")
    with pytest.raises(AnswerError, match="memory 可取 gpu、host"):
        diagnosed("zh", memory="nonsense")


def test_remarks_are_whole_sentences() -> None:
    remarks = diagnosed("zh").diagnosis.remarks
    assert remarks
    assert all(remark.endswith("。") and HAN.search(remark) for remark in remarks)


def test_a_log_that_proves_nothing_is_remarked_once_and_whole() -> None:
    from advisor.diagnosis.facts import DiagnosisInputs
    from advisor.diagnosis.remarks import remarks

    state = diagnosed("zh")
    crash = replace(
        state.crash, verdict="unclear", unclear_because="日志过早结束", settle_by=("看 dmesg。", "看退出码。")
    )
    known = DiagnosisInputs(crash, state.run, state.machine, state.ledger)
    assert remarks(known, {}, (), "unclear")[-1] == "日志过早结束。如何确认：看 dmesg；看退出码。"
