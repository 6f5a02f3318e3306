"""The reports in Chinese: width, punctuation, and what has to stay as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from advisor.demo import demo_files
from advisor.hostile import cells
from advisor.knowledge import load_knowledge
from advisor.language import speak, spoken, unsaid
from advisor.report.json_report import diagnose_json, encode
from advisor.report.layout import spelled
from advisor.report.machine_report import machine_report
from advisor.report.markdown_report import markdown_report
from advisor.report.phrases import printed, savings
from advisor.report.text_report import estimate_report, scan_report, text_report
from advisor.report.ticket import COLUMNS, ticket
from advisor.run_file import sizing_of
from advisor.session import SessionRequest, open_session
from tests.loops import each
from tests.replacing import replace
from tests.report.sitting import crash, machine, sitting, unknown_sitting
from tests.tui.made_state import step

DEMO = demo_files()
ENDS = "。！？"


@pytest.fixture(autouse=True)
def _chinese() -> None:
    speak("zh")


@pytest.mark.parametrize("state", [sitting(), unknown_sitting()], ids=["known", "unknown"])
@pytest.mark.parametrize(
    "report",
    [
        text_report,
        lambda state: estimate_report(sizing_of(state)),
        lambda state: scan_report(state.crash),
        lambda state: machine_report(state.machine),
    ],
    ids=["text", "estimate", "scan", "machine"],
)
def test_no_line_is_wider_than_78_columns(report, state):
    assert [line for line in report(state).splitlines() if cells(line) > 78] == []


def test_every_text_of_the_reports_is_translated():
    state = sitting()
    for report in (text_report, markdown_report, lambda one: estimate_report(sizing_of(one))):
        report(state)
    scan_report(crash())
    machine_report(machine())
    assert unsaid() == frozenset()


def test_the_verdict_stands_first_and_ends_in_a_chinese_full_stop():
    assert text_report(sitting()).splitlines()[0] == "在 actor 更新时，主机内存耗尽。"


def test_no_sentence_ends_in_two_full_stops():
    for said in (text_report(sitting()), markdown_report(sitting())):
        assert not [line for line in said.splitlines() if "。." in line or ".。" in line or "。。" in line]


def test_columns_stand_one_under_the_other():
    lines = text_report(sitting()).splitlines()
    head = next(place for place, line in enumerate(lines) if "低–高" in line)
    rows = [line for line in lines[head : head + 3] if line.strip()]
    ends = {cells(row[: row.index("低–高") + 3]) if "低–高" in row else _range_end(row) for row in rows}
    assert len(ends) == 1


def _range_end(row: str) -> int:
    """Columns up to the end of the word that holds an en dash between two numbers."""
    at = row.index("–")
    return cells(row[: at + len(row[at:].split(" ", 1)[0])])


def test_phases_are_listed_as_chinese_lists_things():
    gib = 2**30
    saves = {"actor_update": 4 * gib, "optimizer_step": 4 * gib, "log_prob": -gib}
    assert savings(step("x", "key", "1", "2", saves=saves, place="gpu")) == [
        "每张卡少用显存 4.00 GiB（actor 更新、优化器更新）",
        "每张卡多用显存 1.00 GiB（计算 log-prob）",
    ]


def test_every_size_that_a_line_may_print_is_named():
    sizes = [size for signature in load_knowledge().signatures.signatures for size in signature.sizes.values()]
    fields = {field for size in sizes if (field := size.split(" ")[0]).endswith("_bytes")}
    assert fields
    for field in fields:
        entry = replace(crash().evidence[0], fields={field: 2**30})
        assert re.search("[\u4e00-\u9fff]", printed(entry)), field


def test_json_keeps_the_contract(validate):
    validate(json.loads(encode(diagnose_json(sitting()))), "diagnose")


def test_an_unclear_log_is_told_once():
    unclear = replace(crash(), verdict="unclear", unclear_because="日志过早结束", settle_by=("查看 dmesg。",))
    told = ("日志过早结束。如何确认：查看 dmesg。", "另一件事。")
    state = replace(sitting(), crash=unclear, diagnosis=replace(sitting().diagnosis, remarks=told))
    assert text_report(state).count("日志过早结束") == 1
    assert "另一件事。" in text_report(state)


# --- the ticket ---------------------------------------------------------------------------------------------------


def test_the_ticket_is_english_whatever_is_spoken():
    def told(language: str) -> str:
        speak(language)
        text = ticket(open_session(SessionRequest(DEMO.script, (DEMO.log,), machine_files=(DEMO.machine,))))
        assert spoken() == language
        return text

    assert told("zh") == told("en")
    speak("zh")
    own = ticket(
        open_session(SessionRequest(DEMO.script, (DEMO.log,), machine_files=(DEMO.machine,))), in_english=False
    )
    assert "可能的原因：" in own
    assert "Changes" not in own
    assert max(map(cells, own.splitlines())) <= COLUMNS
    assert "10.0.4.17" not in own


def test_the_ticket_of_a_plan_that_does_not_fit_is_english():
    asked = SessionRequest(DEMO.script, (DEMO.log,), gpus="8xA100-40GB", host_ram="100GB")
    state = open_session(asked)
    assert any("\u4e00" <= sign <= "\u9fff" for sign in state.plan.shortfall)
    text = ticket(state)
    assert text.isascii()
    assert "?" not in text.split("Changes:")[-1]


# --- terminals that cannot show it --------------------------------------------------------------------------------


@each(
    ("encoding", "shown"),
    [
        ("utf-8", "−4.00 GiB → 显存"),
        ("gbk", "-4.00 GiB → 显存"),
        ("ascii", "-4.00 GiB -> ??"),
        ("latin-1", "-4.00 GiB -> ??"),
    ],
)
def test_only_the_signs_that_an_encoding_lacks_are_spelled(encoding: str, shown: str) -> None:
    assert spelled("−4.00 GiB → 显存", encoding) == shown


def test_a_report_is_written_in_utf_8(tmp_path: Path) -> None:
    from advisor.saving import save_report

    file = save_report(sitting(), tmp_path / "run.fits.md", force=False)
    assert "在 actor 更新时，主机内存耗尽。" in file.read_text("utf-8")
