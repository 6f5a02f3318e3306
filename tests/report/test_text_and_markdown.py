"""Reports for people: golden files show how they read, the rest says what must hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor.crash.evidence import Crash, Evidence
from advisor.hostile import cells
from advisor.memory.fit import Fit
from advisor.report.machine_report import machine_report
from advisor.report.markdown_report import code, markdown_report, text
from advisor.report.text_report import estimate_report, scan_report, text_report
from advisor.run_file import sizing_of
from advisor.session import SessionRequest, open_session
from tests.loops import each
from tests.replacing import replace
from tests.report.sitting import crash, machine, plan, sitting, unknown_sitting

HOSTILE = "\x1b[2J\x1b]0;owned\x07 <script>alert(1)</script> [x](http://e.vil) |a| \u202egnp `tick` # 显存"


def hostile_sitting():
    known = sitting()
    entry = replace(known.crash.evidence[0], text=HOSTILE, file=HOSTILE)
    return replace(
        known,
        crash=replace(known.crash, evidence=(entry,)),
        run=replace(known.run, model_name=HOSTILE, notes=(HOSTILE,)),
        machine=replace(known.machine, problems=(HOSTILE * 40,)),
    )


def test_the_text_report_reads_like_this(golden):
    golden("diagnosis.txt", text_report(sitting()))


def test_a_report_that_knows_nothing_reads_like_this(golden):
    golden("unknown.txt", text_report(unknown_sitting()))


def test_the_markdown_report_reads_like_this(golden):
    golden("diagnosis.md", markdown_report(sitting(), "run.fits.sh"))


def test_an_estimate_reads_like_this(golden):
    golden("estimate.txt", estimate_report(sizing_of(sitting())))


def test_a_scan_reads_like_this(golden):
    golden("scan.txt", scan_report(crash()))


def test_a_machine_reads_like_this(golden):
    golden("machine.txt", machine_report(machine()))


@pytest.mark.parametrize(
    "state", [sitting(), unknown_sitting(), hostile_sitting()], ids=["known", "unknown", "hostile"]
)
@pytest.mark.parametrize(
    "report", [text_report, lambda state: estimate_report(sizing_of(state))], ids=["text", "estimate"]
)
def test_no_line_is_wider_than_78_columns(report, state):
    assert [line for line in report(state).splitlines() if cells(line) > 78] == []


def test_the_verdict_stands_first():
    assert text_report(sitting()).startswith("Host RAM ran out during the actor update.")


def test_a_phase_that_is_something_done_is_told_with_while():
    state = replace(sitting(), diagnosis=replace(sitting().diagnosis, phase="weight_sync"))
    assert text_report(state).startswith("Host RAM ran out while syncing weights into the rollout engine.")


@pytest.mark.parametrize("report", [text_report, markdown_report])
def test_why_a_log_is_unclear_is_told_once(report):
    unclear = replace(crash(), verdict="unclear", unclear_because="the log ends early", settle_by=("dmesg.",))
    told = ("The log ends early. To settle it: dmesg.", "Something else.")
    state = replace(sitting(), crash=unclear, diagnosis=replace(sitting().diagnosis, remarks=told))
    assert report(state).lower().count("the log ends early") == 1
    assert "Something else." in report(state)


def test_an_unknown_cause_claims_no_basis():
    diagnosis = replace(sitting().diagnosis, memory="unknown", title="Nothing is proven", basis="measured")
    assert "Nothing is proven (measured)" not in text_report(replace(sitting(), diagnosis=diagnosis))


def test_an_unknown_phase_is_said_and_not_guessed():
    state = replace(sitting(), diagnosis=replace(sitting().diagnosis, phase="unknown"))
    assert text_report(state).startswith("Host RAM ran out; the log does not show in which phase.")


def test_what_is_no_shortage_is_called_so():
    state = replace(sitting(), crash=replace(crash(), verdict="not_oom"))
    assert text_report(state).startswith("This is not a shortage of memory.")


def test_without_a_log_no_crash_is_claimed():
    state = replace(unknown_sitting(), asked=replace(sitting().asked, logs=()))
    assert text_report(state).startswith("No log was given")


def test_an_open_question_says_how_to_answer_it():
    said = text_report(sitting())
    assert "--answer growth=yes|no" in said
    assert "Watch RSS over ten steps." in said


def test_control_sequences_never_reach_a_report():
    for said in (text_report(hostile_sitting()), markdown_report(hostile_sitting())):
        assert not any(sign in said for sign in "\x1b\x07\u202e")


def test_markdown_from_outside_stays_text():
    without_code = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", markdown_report(hostile_sitting()))
    assert "](http" not in without_code.replace("\\]", "")
    assert "<script" not in without_code.replace("\\<", "")


@each("value", ["plain", "a`b", "``", "`x`", "a|b", ""])
def test_a_code_span_cannot_be_left_from_inside(value):
    span = code(value)
    fence = len(span) - len(span.lstrip("`"))
    assert "|" not in span
    if fence:
        assert "`" * fence not in span[fence:-fence].strip("`") or fence > value.count("`")


def test_markdown_escapes_what_would_be_markup():
    assert text("a*b_[c](d)<e>") == "a\\*b\\_\\[c\\](d)\\<e\\>"


def test_every_selected_change_is_explained_in_full():
    said = markdown_report(sitting())
    block = said.split("### 1. ")[1].split("\n## ")[0]
    for label in ("What:", "Why:", "Saves:", "Costs:", "Training results:", "How sure:", "From:", "Id:"):
        assert f"- {label}" in block
    assert "64.00 GiB less host RAM per node in the actor update" in block
    assert "8.00 GiB more GPU memory per card in generating rollouts" in block


def test_a_change_of_results_is_marked():
    said = text_report(sitting())
    assert "results CHANGES" in said
    assert "results same" in said


def test_a_plan_that_does_not_suffice_says_by_how_much():
    short = replace(plan(), fit=Fit("does_not_fit"), shortfall="3.00 GiB are missing in the actor update.")
    assert "3.00 GiB are missing" in " ".join(text_report(sitting().with_plan(short)).split())


def test_an_estimate_that_does_not_fit_names_the_phase():
    known = sitting()
    small = replace(known, ledger=replace(known.ledger, gpu_capacity=10 * 2**30))
    first = " ".join(estimate_report(sizing_of(small)).split("\n\n")[0].split())
    assert first.startswith("GPU memory does not fit: generating rollouts is expected to take 12.00 GiB of 10.00 GiB")


def test_a_scan_without_a_find_says_how_much_was_read():
    assert (
        scan_report(Crash("unclear", "unknown", "unknown", lines_read=7)) == "No sign of a memory crash in 7 lines.\n"
    )


def test_a_flood_of_evidence_is_cut_and_counted():
    many = tuple(Evidence("s", "cause", "f", n, "t") for n in range(30))
    assert "and 22 more lines" in text_report(replace(sitting(), crash=replace(crash(), evidence=many)))


def test_an_estimate_says_what_dpo_takes_beyond_sft(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    told = {}
    for method in ("dpo", "kto", "sft"):  # by module: its reference counts however the program is called
        script.write_text(f"python -m trl.scripts.{method} --model_name_or_path Qwen/Qwen2.5-7B-Instruct --bf16\n")
        state = open_session(SessionRequest(script, gpus="1xH100-80GB", planned=False))
        told[method] = " ".join(estimate_report(sizing_of(state)).split())
    assert "Each sample is 2 rows of a pass" in told["dpo"]
    assert all(
        "The reference model stands beside the one that trains: 28.37 GiB" in told[one] for one in ("dpo", "kto")
    )
    assert "rows of a pass" not in told["kto"]
    assert "More than SFT" not in told["sft"]
