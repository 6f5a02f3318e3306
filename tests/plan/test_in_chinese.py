"""A plan in Chinese: the same steps, every sentence of them translated and filled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from advisor.language import CHINESE, ENGLISH, speak
from advisor.plan.patch import make_patch
from advisor.plan.plan import PlanStep
from advisor.session import SessionRequest, State, open_session
from tests.heavy import sampled
from tests.plan.generated import made_up
from tests.test_session_following import FOREIGN, OOM

_CHINESE = re.compile("[\u4e00-\u9fff]")
_WORDS = re.compile(r"[a-z]{3,} [a-z]{2,} [a-z]{2,}")
_QUOTED = re.compile("`[^`]*`")


def planned(seed: int, folder: Path) -> State:
    run = made_up(seed)
    (folder / "run.sh").write_text(run.script)
    (folder / "train.log").write_text(run.log)
    files = SessionRequest(script=folder / "run.sh", logs=(folder / "train.log",), gpus=run.gpus, host_ram=run.host_ram)
    return open_session(files)


def prose(step: PlanStep) -> Iterator[str]:
    yield from (step.title, step.why, step.costs, *step.caveats, *(change.how for change in step.changes))


@pytest.mark.parametrize("seed", sampled([1, 7, 4, 11], 2))
def test_a_plan_has_the_same_steps_and_says_them_in_chinese(seed: int, tmp_path: Path) -> None:
    speak(ENGLISH)
    english = planned(seed, tmp_path)
    speak(CHINESE)
    chinese = planned(seed, tmp_path)
    assert [decided(step) for step in chinese.plan.steps] == [decided(step) for step in english.plan.steps]
    assert not [text for step in english.plan.steps for text in prose(step) if _CHINESE.search(text)], "read only now"
    assert [each.id for each in chinese.plan.not_proposed] == [each.id for each in english.plan.not_proposed]
    refused = [text for each in chinese.plan.not_proposed for text in (each.title, each.because)]
    texts = [text for step in chinese.plan.steps for text in prose(step)]
    for text in filter(None, (*texts, *refused, chinese.plan.shortfall, *chinese.run.notes)):
        assert _CHINESE.search(text), text
        assert not _WORDS.search(_QUOTED.sub("", text)), text
        assert "{" not in text, text


def decided(step: PlanStep) -> tuple[Any, ...]:
    """All of a step but its words."""
    changes = [(change.key, change.old, change.new, change.line) for change in step.changes]
    return step.id, step.kind, step.tier, changes, step.results, dict(step.saves), step.selected, step.no_place


def test_a_step_without_a_place_is_known_by_its_value_not_by_its_caveat(tmp_path: Path) -> None:
    speak(CHINESE)
    (tmp_path / "run.sh").write_text(FOREIGN)
    (tmp_path / "train.log").write_text(OOM)
    state = open_session(SessionRequest(tmp_path / "run.sh", (tmp_path / "train.log",), gpus="4xA100-80GB"))
    without = [step for step in state.plan.steps if step.no_place]
    assert without
    assert not any(step.selected for step in without)
    assert all(any(caveat.startswith("没有地方可写：") for caveat in step.caveats) for step in without)
    assert all(change.how == "不写入脚本" for step in without for change in step.changes)


def test_what_a_patch_refuses_is_said_in_chinese(tmp_path: Path) -> None:
    speak(CHINESE)
    state = planned(1, tmp_path)
    assert make_patch(state.plan, None, 0).refused == "没有可写的启动脚本"
