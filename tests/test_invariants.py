"""Numbers that are shown in two places are one number: every such pair, over all stories.

| pair | test |
|---|---|
| the ledger of the session · the plan's "before" | `test_the_sessions_ledger_is_what_the_plan_starts_from` |
| JSON's sums, before and after · the ledgers | `test_json_has_the_bytes_of_the_ledgers` |
| walls before · walls after, in text, Markdown, JSON | `test_before_and_after_stand_against_the_same_walls` |
| text table · Markdown table · the app's bars · the ledger | `test_every_table_shows_the_same_sums` |
| a step's saving in the app · in text and Markdown | `test_the_app_names_the_saving_that_the_reports_name` |
| a step's saving · the difference of two ledgers | `test_a_step_saves_what_two_ledgers_differ_by` |
| verdict · headline · `fits` · exit code of `estimate` | `test_headline_exit_code_and_json_say_the_same` |
| headline · the sums below it | `test_the_headline_names_a_sum_of_the_table` |
| "how far it goes" · the ledger with that value | `test_a_size_is_what_the_ledger_holds` |
| what others hold of the RAM · every wall of a run to come | `test_what_others_hold_is_off_every_wall` |
| the plan's promise · its JSON · its fit | `test_the_promise_is_the_plans_fit` |
| the plan's promise · the word beside each bar | `test_no_bar_speaks_against_the_promise` |
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from advisor.exits import Exit
from advisor.machine.inventory import Gpu, Host, Machine
from advisor.memory.cells import Ledger
from advisor.memory.fit import PLACES, capacity_of, counted
from advisor.memory.ledger import difference
from advisor.plan.plan import PlanStep
from advisor.plan.situation import Situation
from advisor.plan.solve import overrides_of
from advisor.report.json_report import diagnose_json, encode, estimate_json
from advisor.report.markdown_report import markdown_report
from advisor.report.phrases import fit_sentence, room_word, saves_word
from advisor.report.short_report import short_report
from advisor.report.text_report import estimate_report, text_report
from advisor.run_file import Sizing, sizing_of
from advisor.session import SessionRequest, State, open_session
from advisor.tui.gauges_view import expected_of
from advisor.tui.memory_bars import fullness
from advisor.tui.memory_view import memory_rows
from advisor.tui.plan_rows import saving_words
from advisor.units import GIB, show_gib
from advisor.words import PHASE_TITLES
from tests.plan.planned import asked_of
from tests.replacing import replace
from tests.stories.told import RUNS, STORIES, tell_both

NAMES = list(STORIES)
every_story = pytest.mark.parametrize("name", NAMES)


@cache
def opened(name: str) -> State:
    story = STORIES[name]
    return open_session(asked_of(story, RUNS / story.folder))


def situation(name: str) -> Situation:
    found = opened(name).situation
    assert found is not None
    return found


def flat(text: str) -> str:
    return " ".join(text.split())


@cache
def as_json(name: str) -> dict[str, Any]:
    return dict(json.loads(encode(diagnose_json(opened(name)))))


@every_story
def test_the_sessions_ledger_is_what_the_plan_starts_from(name: str) -> None:
    state = opened(name)
    assert state.plan.before is state.ledger
    assert situation(name).now.ledger is state.ledger


@every_story
def test_json_has_the_bytes_of_the_ledgers(name: str) -> None:
    state, told = opened(name), as_json(name)
    for block, ledger in ((told["memory"], state.ledger), (told["after"], state.plan.after)):
        assert ledger is not None
        for place in PLACES:
            shown = [(p["phase"], p["low_bytes"], p["expected_bytes"], p["high_bytes"]) for p in block[place]["phases"]]
            assert shown == [(p.phase, p.low, p.expected, p.high) for p in ledger.sums(place)]
            for phase in block[place]["phases"]:
                assert sum(item["bytes"] for item in phase["items"]) == phase["expected_bytes"]


def test_what_others_hold_is_off_every_wall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, log = tmp_path / "run.sh", tmp_path / "train.log"
    script.write_text("trl sft --model_name_or_path Qwen/Qwen2.5-7B --max_length 2048\n")
    log.write_text("Signal 9 (SIGKILL) received by PID 1234\n")
    host, cards = Host(total_bytes=500 * GIB, available_bytes=20 * GIB), (Gpu(0, "H100", 80 * GIB),)
    box = Machine(1, cards, host, sources=dict.fromkeys(["nodes", "gpus", "host.total"], "measured"))
    monkeypatch.setattr("advisor.request.measure", lambda *_, **__: box)
    for asked, wall in ((SessionRequest(script=script), 20), (SessionRequest(script=script, logs=(log,)), 500)):
        state = open_session(asked)
        told = (state.plan.before or state.ledger).host_limit, expected_of(state).host_capacity
        assert told == (wall * GIB, 500 * GIB)
        assert estimate_json(sizing_of(state))["memory"]["host"]["limit_bytes"] == wall * GIB
        assert all("leave 20.00 GiB of the 500.00 GiB" in flat(report(state)) for report in (short_report, text_report))
    named = open_session(SessionRequest(script=script, host_ram="500GiB"))
    assert (named.ledger.host_limit, "leave" in " ".join(named.machine.problems)) == (500 * GIB, False)


@every_story
def test_before_and_after_stand_against_the_same_walls(name: str) -> None:
    state, told = opened(name), as_json(name)
    after = state.plan.after
    assert after is not None
    raised = any("memory_threshold" in change.key for step in state.plan.selected() for change in step.changes)
    for place, wall in (("gpu", "capacity_bytes"), ("host", "limit_bytes")):
        assert told["memory"][place][wall] == capacity_of(state.ledger, place)  # type: ignore[arg-type]
        assert raised or told["memory"][place][wall] == told["after"][place][wall]
    titles = {place: show_gib(capacity_of(state.ledger, place)) for place in PLACES if state.ledger.sums(place)}
    text, markdown = flat(text_report(state)), markdown_report(state)
    for size in titles.values():
        assert f"(of {size})" in text
        assert f"GiB of {size}:" in markdown


@every_story
def test_every_table_shows_the_same_sums(name: str) -> None:
    state = opened(name)
    lines = text_report(state).splitlines()
    rows = markdown_report(state).splitlines()
    bars = ["".join(part.text for part in row.line) for row in memory_rows(state.plan, state.diagnosis.phase, 120)]
    for each in (*state.ledger.gpu, *state.ledger.host):
        assert state.plan.after is not None
        then = state.plan.after.phase(each.place, each.phase)
        assert then is not None
        now, later, title = show_gib(each.expected), show_gib(then.expected), PHASE_TITLES[each.phase]
        assert any(line.strip().startswith(title) and now in line and later in line for line in lines)
        assert any(row.startswith(f"| {title} | {now} |") and row.endswith(f"| {later} |") for row in rows)
        assert any(_app_size(each.expected) in bar for bar in bars)


def _app_size(count: int) -> str:
    return f"{count / 2**30:.0f}" if count >= 100 * 2**30 else f"{count / 2**30:.1f}"


@every_story
def test_a_step_saves_what_two_ledgers_differ_by(name: str) -> None:
    state, predictor = opened(name), situation(name).without_latent_faults().predictor
    chosen = [step for step in state.plan.steps if step.kind in ("setting", "environment", "data")]
    for step in (one for one in chosen if not one.selected and not one.no_place):
        saved = _saved(step, predictor.predict().ledger, predictor.predict(_only(step)).ledger)
        assert saved == {phase: size for phase, size in step.saves.items() if size}, step.id


def _only(step: PlanStep) -> dict[str, str | None]:
    return overrides_of([replace(step, selected=True)])


def _saved(step: PlanStep, before: Ledger, after: Ledger) -> dict[str, int]:
    found = difference(before, after, "host" if step.place == "host" else "gpu")
    return {phase: size for phase, size in found.items() if size}


@every_story
def test_the_app_names_the_saving_that_the_reports_name(name: str) -> None:
    for step in opened(name).plan.steps:
        report, app = saves_word(step), saving_words(step)
        assert bool(report) == bool(app), step.id
        if report:
            (one, unit, _), (other, same, _) = report.split(), app.split()
            assert unit == same, step.id
            assert abs(_signed(one) - _signed(other)) <= 0.05 * abs(_signed(one)) + 0.06, step.id


def _signed(text: str) -> float:
    return float(text.replace("−", "-"))


@every_story
def test_the_selected_steps_together_give_the_ledger_after(name: str) -> None:
    state = opened(name)
    fixed = any(step.kind == "version" for step in state.plan.selected())
    found = situation(name).predictor.predict(overrides_of(state.plan.steps), fixed)
    assert state.plan.after is not None
    for place in PLACES:
        now = [(p.phase, p.low, p.expected, p.high) for p in found.ledger.sums(place)]
        assert now == [(p.phase, p.low, p.expected, p.high) for p in state.plan.after.sums(place)]
    assert found.fit == state.plan.fit


HEADS = {
    "fits": ("It fits",),
    "may_not_fit": ("It may not fit",),
    "does_not_fit": ("GPU memory does not fit", "Host RAM does not fit", "It does not fit"),
    "cannot_be_said": ("Whether it fits", "It fits on the GPUs"),
}


@pytest.mark.parametrize(("name", "log"), [*((name, True) for name in NAMES), *((name, False) for name in NAMES[1::3])])
def test_headline_exit_code_and_json_say_the_same(
    name: str, log: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    story = STORIES[name]
    monkeypatch.chdir(RUNS / story.folder)
    words = story.words("estimate") if log else ["estimate", story.script, *story.machine]
    answer, text, codes = tell_both(words, capsys)
    verdict = answer["fit"]["verdict"]
    assert codes == {Exit.DOES_NOT_FIT if verdict == "does_not_fit" else Exit.DONE}
    assert answer["fits"] is {"fits": True, "may_not_fit": True, "does_not_fit": False, "cannot_be_said": None}[verdict]
    assert text.startswith(HEADS[verdict])


@cache
def sized(name: str) -> Sizing:
    return sizing_of(opened(name))


@every_story
def test_the_headline_names_a_sum_of_the_table(name: str) -> None:
    sizing = sized(name)
    report = flat(estimate_report(sizing))
    worst = sizing.fit.worst
    if worst is not None and worst.reason == "over":
        sums = {each.phase: each for each in sizing.ledger.sums(worst.place)}
        assert worst.expected == sums[worst.phase].expected
        title, size = re.escape(PHASE_TITLES[worst.phase]), re.escape(show_gib(worst.expected))
        assert re.search(rf"{title}[^:]*: {size} \(", report)  # phases that hold the same share a heading
    assert flat(fit_sentence(sizing.fit, sizing.ledger, sizing.margin)) in report


@every_story
def test_a_size_is_what_the_ledger_holds(name: str) -> None:
    state, sizing = opened(name), sized(name)
    if sizing.sizes is None:
        return
    walls = situation(name).predictor.walls
    for place, size in (("gpu", sizing.sizes.gpu_bytes), ("host", sizing.sizes.host_bytes)):
        peak = max(counted(each, walls) for each in state.ledger.sums(place))  # type: ignore[arg-type]
        assert size == int(peak / (1 - sizing.margin))
    told = estimate_json(sizing)["sizes"]
    assert [reach["most"] for reach in told["largest"]] == [reach.most for reach in sizing.sizes.reaches]
    for reach in sizing.sizes.reaches:
        if reach.most is not None:
            assert situation(name).predictor.predict(_with(name, reach.key, reach.most)).fit.fits is not False


def _with(name: str, key: str, value: int) -> dict[str, str | None]:
    """The key at that value, with the partners that move along."""
    from advisor.plan.candidates import forms

    natives = situation(name).now.built.natives
    return dict(forms(natives.values[key], {key: str(value)}, natives)[0].overrides)


@every_story
def test_the_promise_is_the_plans_fit(name: str) -> None:
    state, told = opened(name), as_json(name)["outcome"]
    assert told["fits"] is state.plan.fits is state.plan.fit.fits
    assert told["fit"]["verdict"] == state.plan.fit.verdict
    assert told["shortfall"] == state.plan.shortfall
    promised = "is expected to fit" in flat(text_report(state))
    assert promised == (state.plan.fits is True)
    uncertain = "is expected to fit, but that is not certain" in flat(text_report(state))
    assert uncertain == (state.plan.fit.verdict == "may_not_fit")
    if state.plan.selected():
        page = flat(short_report(state))
        assert ("is expected to fit" in page) == (state.plan.fit.verdict == "fits")
        assert ("may fit; that is not certain" in page) == (state.plan.fit.verdict == "may_not_fit")


@every_story
def test_no_bar_speaks_against_the_promise(name: str) -> None:
    plan = opened(name).plan
    if plan.after is None or plan.fits is None:
        return
    for place in PLACES:
        room = capacity_of(plan.after, place)
        for phase in plan.after.sums(place):
            bar = "".join(part.text for part in fullness(plan, place, phase.phase))
            assert bar.endswith(room_word(phase, room, plan) or ("fits", "unsure", " G"))
            assert not (plan.fits and bar.endswith(("too much", "cannot start"))), (phase.phase, bar)
            assert bar.endswith("unsure") or (place, phase.phase) not in plan.fit.set_aside
