"""Own knowledge: merged over ours, marked as theirs wherever it speaks; a bad file is left out and the rest works."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.cli import main
from advisor.folders import knowledge_folder
from advisor.knowledge import load_knowledge, open_knowledge
from advisor.knowledge.own import own_folders
from advisor.knowledge.schema import OWN_MARK as MARK
from advisor.language import speak
from advisor.report.explain_report import explain_report

CASE = """\
id: acme-7
title: Acme's 760 GB nodes
source: https://wiki.acme.example/7
situation: {framework: easyr1, memory: host, signature: ray-memory-kill}
reported: {worked: [offload off]}
mechanism: Ours.
grade: confirmed
remedies: [optimizer-offload-off]
"""
ADVISORY = """\
- id: acme-ray
  library: ray
  versions: ">=2.10,<2.11"
  title: Ray of our image keeps memory
  says: Take the image of May. Nothing else changes.
  source: wiki page 12
"""
DIALECT = """\
framework: acme-rl
title: Acme RL
package: acme-rl
syntax: hydra
recognised_by:
  - {programs: [acme.train], priority: 1}
settings:
  engine.share:
    knob: rollout.memory_share
    type: float
    default: 0.8
    source: acme-rl@1 config.py:3
"""


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        file = folder / (name.replace("__", "/") + ".yaml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def test_an_own_case_advisory_and_dialect_are_merged_and_marked(tmp_path: Path) -> None:
    own = written(tmp_path, cases__acme=CASE, advisories=ADVISORY, frameworks__acme=DIALECT)
    knowledge = open_knowledge([own])
    assert knowledge.refused == ()
    assert len(knowledge.cases) == len(load_knowledge().cases) + 1
    for wanted, said in (
        ("acme-7", f"Acme's 760 GB nodes{MARK}"),
        ("acme-ray", "source: your"),
        ("engine.share", f"Acme RL{MARK}"),
    ):
        assert said in explain_report(knowledge, wanted)
    assert str(own / "cases" / "acme.yaml") in explain_report(knowledge, "acme-7").replace("\n", "").replace("    ", "")


def test_a_framework_of_ours_is_not_replaced_as_a_whole(tmp_path: Path) -> None:
    ours = (knowledge_folder() / "frameworks" / "slime.yaml").read_text()
    knowledge = open_knowledge([written(tmp_path, frameworks__slime=ours)])
    assert [refused.split(": ", 1)[1] for refused in knowledge.refused] == [
        "slime comes with the program; one of your own takes another name"
    ]
    assert knowledge.frameworks == load_knowledge().frameworks


def test_an_own_entry_of_the_same_id_replaces_ours(tmp_path: Path) -> None:
    remedy = """\
- id: raise-shm
  title: Ask the cluster team for /dev/shm
  kind: machine
  memory: shm
  tier: free
  results: unchanged
  costs: a ticket
  says: Write to them. They raise it the same day.
  source: wiki page 3
"""
    knowledge = open_knowledge([written(tmp_path, remedies=remedy)])
    found = [one for one in knowledge.remedies if one.id == "raise-shm"]
    assert [one.title for one in found] == [f"Ask the cluster team for /dev/shm{MARK}"]
    assert len(knowledge.remedies) == len(load_knowledge().remedies)


@pytest.mark.parametrize(
    ("bad", "line", "reason"),
    [
        (CASE.replace("grade: confirmed", "grade: sure"), 7, "Invalid enum value 'sure'"),
        (CASE.replace("framework: easyr1", "colour: red"), 4, "nothing here is called 'colour'"),
        (CASE.replace("optimizer-offload-off", "no-such-thing"), 8, "there is no remedy no-such-thing"),
        (CASE + "more: 1\n", 9, "unknown field `more`"),
        ("id: [", 1, "not YAML"),
    ],
)
def test_a_bad_file_is_refused_with_file_line_and_reason_and_the_rest_works(
    bad: str, line: int, reason: str, tmp_path: Path
) -> None:
    own = written(tmp_path, cases__bad=bad.replace("acme-7", "acme-8"), cases__good=CASE)
    knowledge = open_knowledge([own])
    assert len(knowledge.refused) == 1
    assert f"{own / 'cases' / 'bad.yaml'}:{line}: " in knowledge.refused[0]
    assert reason in knowledge.refused[0]
    assert "acme-7" in {case.id for case in knowledge.cases}
    assert "acme-8" not in {case.id for case in knowledge.cases}


def test_a_file_that_leans_on_a_refused_one_is_refused_too(tmp_path: Path) -> None:
    remedy = "- id: acme-only\n  title: x\n"
    own = written(tmp_path, remedies=remedy, cases__a=CASE.replace("optimizer-offload-off", "acme-only"))
    knowledge = open_knowledge([own])
    assert sorted(Path(sentence.split(":")[0]).name for sentence in knowledge.refused) == ["a.yaml", "remedies.yaml"]
    assert knowledge.cases == load_knowledge().cases


def test_the_standing_folder_is_read_before_the_folders_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    standing = written(tmp_path / "config" / "rl-oom-advisor" / "knowledge", cases__a=CASE)
    given = written(tmp_path / "lab", cases__a=CASE.replace("Acme's 760 GB nodes", "The lab's own"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert own_folders([given]) == (standing, given)
    assert [case.title for case in open_knowledge([given]).cases if case.id == "acme-7"] == [f"The lab's own{MARK}"]
    assert [case.title for case in open_knowledge().cases if case.id == "acme-7"] == [f"Acme's 760 GB nodes{MARK}"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("&a [*a]\n", "an alias stands for what it is part of"),
        (
            "".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}' if n else 'x'] * 10)}]\n" for n in range(9)),
            "more values than a config file has",
        ),
    ],
)
def test_a_file_that_has_no_end_is_refused(text: str, said: str, tmp_path: Path) -> None:
    knowledge = open_knowledge([written(tmp_path, cases__a=text, cases__good=CASE)])
    assert said in knowledge.refused[0]
    assert "acme-7" in {case.id for case in knowledge.cases}


@given(text=st.text(alphabet=st.sampled_from("abc:-[]{}&*!|>'\"# \n\t0"), max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    with TemporaryDirectory() as folder:
        own = written(Path(folder), cases__a=text, advisories=text)
        assert len(open_knowledge([own]).refused) <= 2


def test_control_codes_of_own_files_do_not_reach_the_terminal(tmp_path: Path) -> None:
    own = written(tmp_path, cases__a=CASE.replace("Acme's 760 GB nodes", '"Acme \\e]0;x\\a\\e[31mred"'))
    said = explain_report(open_knowledge([own]), "acme-7")
    assert "\x1b" not in said
    assert "\x07" not in said


def test_a_missing_folder_is_said_and_stops_nothing(tmp_path: Path) -> None:
    knowledge = open_knowledge([tmp_path / "nothing"])
    assert "no such folder" in knowledge.refused[0]
    assert knowledge.cases == load_knowledge().cases


def test_own_knowledge_speaks_in_the_diagnosis_and_says_whose_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alike = CASE.replace("situation: {", "situation: {model: Qwen2.5-VL-7B, gpu: A100, ")
    own = written(tmp_path, cases__acme=alike, cases__bad="id: [")
    assert main(["diagnose", "--demo", "--all", "--knowledge", str(own)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"Acme's 760 GB nodes{MARK} (acme-7): 5 of 5 facts agree" in told
    assert "Left out of your knowledge" in told
    assert "bad.yaml:1" in told.replace(" ", "")


@pytest.mark.parametrize(("language", "mark"), [("en", " [yours]"), ("zh", " [自有]")])
def test_of_cases_alike_ones_own_goes_first_whatever_the_language(
    language: str, mark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alike = CASE.replace("situation: {", "situation: {model: Qwen2.5-VL-7B, gpu: A100, ")
    own = written(tmp_path, cases__acme=alike)
    assert main(["diagnose", "--demo", "--knowledge", str(own), "--format", "json", "--lang", language]) == 0
    found = json.loads(capsys.readouterr().out)["diagnosis"]["case_matches"]
    assert (found[0]["id"], found[0]["title"]) == ("acme-7", f"Acme's 760 GB nodes{mark}")
    assert found[1]["agree"] == found[0]["agree"]


def test_what_does_not_fit_is_told_in_the_users_language(tmp_path: Path) -> None:
    own = written(tmp_path, cases__bad=f"{CASE}nonsense: 1\n", gpus="- name: 5\n")
    speak("zh")
    told = " ".join(open_knowledge([own]).refused)
    assert "bad.yaml:9: 对象含有未知字段 `nonsense`" in told
    assert "gpus.yaml:1: 应为 `str`，实为 `int`（在 [0].name 中）" in told


def test_explain_tells_on_stderr_what_was_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = written(tmp_path, cases__acme=CASE, cases__bad="id: [")
    assert main(["explain", "acme-7", "--knowledge", str(own)]) == 0
    out, err = capsys.readouterr()
    assert MARK in out
    assert "left out of your knowledge" in err
