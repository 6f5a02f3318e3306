"""The linter: our own files are clean, and each kind of mistake is told with its file and line."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from advisor.folders import knowledge_folder
from advisor.knowledge import entries, load_knowledge, vocabulary
from advisor.knowledge.__main__ import main
from advisor.knowledge.checks.versions import common
from advisor.knowledge.entries import Finding, KnowledgeEntry
from advisor.knowledge.lint import lint_folder
from tests.loops import each

OURS = knowledge_folder()
READ = entries._read


def test_every_fact_that_a_file_may_ask_is_stated_somewhere_in_the_code() -> None:
    code = "".join(file.read_text() for file in (Path(vocabulary.__file__).parent.parent / "diagnosis").glob("*.py"))
    shares = {f"ledger.{name}_share" for name in ("states", "batch", "engine")}
    words = load_knowledge().signatures.statements
    told = set(words.facts) if words is not None else set()  # by the sentences of a report
    assert told <= vocabulary.FACTS
    told |= {f"helped.{lever}" for lever in words.switches} if words is not None else set()
    literal = vocabulary.FACTS - shares - told
    assert [name for name in sorted(literal) if f'"{name}"' not in code and f"'{name}'" not in code] == []
    assert 'facts[f"ledger.{name}_share"]' in code


@cache
def ours(name: Path) -> tuple[list[KnowledgeEntry], list[Finding]]:
    return READ(OURS / name, name)


def read(path: Path, name: Path) -> tuple[list[KnowledgeEntry], list[Finding]]:
    """Files that a test did not change are read once for all tests."""
    mine = OURS / name
    return ours(name) if mine.is_file() and mine.read_bytes() == path.read_bytes() else READ(path, name)


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(entries, "_read", read)
    folder = tmp_path / "knowledge"
    shutil.copytree(OURS, folder)
    return folder


Change = Callable[[str], str]


def after(old: str, new: str) -> Change:
    def change(text: str) -> str:
        assert old in text, old
        return text.replace(old, new, 1)

    return change


MISTAKES: list[tuple[str, Change, str]] = [
    (
        "signatures.yaml",
        after("(?i:cuda error: out of memory at )", "((?i:cuda error: out of"),
        "its pattern is no regex",
    ),
    ("signatures.yaml", after("|^)Workers", "|(?<!x))Workers"), "a message that may wrap cannot look behind"),
    ("remedies.yaml", after("costs: more and shorter", "cost: more and shorter"), "unknown field `cost`"),
    ("remedies.yaml", after("tier: slower", "tier: slowly"), "Invalid enum value 'slowly'"),
    (
        "remedies.yaml",
        after("knob: actor.tokens_per_gpu", "knob: actor.token_budget"),
        "there is no knob actor.token_budget",
    ),
    (
        "remedies.yaml",
        after("4 * ceil(data.total_tokens", "4 * ceil(data.total_token"),
        "there is no setting, knob or count 'data.total_token'",
    ),
    ("remedies.yaml", after("{case: orz-24", "{case: orz-2400"), "there is no case orz-2400"),
    ("decision_tree.yaml", after("next: framework\n", "next: frameworks\n"), "there is no question frameworks"),
    ("decision_tree.yaml", after("leads_to: unclear", "leads_to: unknown-cause"), "there is no cause unknown-cause"),
    (
        "decision_tree.yaml",
        after('memory == "gpu"', 'memories == "gpu"'),
        "nobody states the fact 'memories'",
    ),
    ("decision_tree.yaml", after("unknown_next: ended", "unknown_next: memory"), "its answers lead back to it"),
    (
        "decision_tree.yaml",
        after("    if_unknown: >-\n      Look for", "    if_unknown: ''\n    asks_not: >-\n      Look for"),
        "unknown field",
    ),
    ("decision_tree.yaml", after("[load-on-cpu, map-devices]", "[]"), "cause wrong-device has no remedies"),
    ("decision_tree.yaml", after("[load-on-cpu, map-devices]", "[map-device]"), "there is no remedy map-device"),
    ("decision_tree.yaml", after("start: memory", "start: nowhere"), "which is no question"),
    ("advisories.yaml", after('versions: ">=0.16.0,<0.16.8"', 'versions: "0.16 or so"'), "no range of versions"),
    ("advisories.yaml", after('safe: [">=0.16.8", "==0.15.0"]', 'safe: [">=0.16"]'), "is both bad and safe"),
    (
        "advisories.yaml",
        after("  grade: confirmed", "  grade: confirmed\n  grade: reported"),
        "grade stands there twice",
    ),
    ("frameworks/slime.yaml", after("moves: {all: host}", "moves: {al: host}"), "there is no phase al"),
    ("frameworks/slime.yaml", after("moves: {all: host}", "moves: {all: cpu}"), "'cpu' is none of gpu, gpu-, host"),
    (
        "frameworks/slime.yaml",
        after("syntax: argparse", "syntax: argpars"),
        "it is one of argparse, dataclass, dotlist",
    ),
    ("frameworks/slime.yaml", after("  - programs:", "  - program:"), "unknown field `program`; near it: programs"),
    ("frameworks/slime.yaml", after("knob: model.path,", "knob: model.pth,"), "near it: model.path"),
    ("frameworks/slime.yaml", after("default: 8,", 'default: "${rolout-batch-size}",'), "near it: rollout-batch-size"),
    (
        "frameworks/slime.yaml",
        after("settings:\n", 'settings:\n  x: {knob: model.path, default: "${hf-checkpoint}", source: x}\n'),
        "which wins where both are set: give both `only_with`",
    ),
    ("frameworks/slime.yaml", after("default: 8,", "default: eight,"), "its default 'eight' is no int"),
    ("frameworks/slime.yaml", after("slime/(?:agent", "slime/((?:agent"), "is no regex"),
    ("frameworks/slime.yaml", after(r"\bslime/(?:agent", r".|\bslime/(?:agent"), "every line would be tried"),
    ("cases/verl-302.yaml", after("framework: verl", "frame: verl"), "nothing here is called 'frame'"),
    (
        "cases/verl-302.yaml",
        after("source: https://github.com/verl-project/verl/issues/302", "source: ''"),
        "has no source",
    ),
    ("gpus.yaml", lambda text: text + "\n  - broken: [", "not YAML"),
    ("frameworks/logic_rl.yaml", after("    knob: ", "    knob: x."), "there is no knob x."),
    (
        "frameworks/logic_rl.yaml",
        after("to_knob: value // dp", "to_knob: value // dpp"),
        "there is no setting, knob or count 'dpp'",
    ),
    (
        "frameworks/logic_rl.yaml",
        after("\n    source: Unakar/Logic-RL@9d2c457 verl/trainer/config", "\n    source: ''  # "),
        "no source",
    ),
    (
        "frameworks/openrlhf.yaml",
        after("default: {v0.5.8: 0.9", "default: {v0.5.80: 0.9"),
        "openrlhf has no era v0.5.80",
    ),
    (
        "frameworks/trl.yaml",
        after("before: {knob: actor.fused_layers", "before: {knob: x"),
        "there is no knob x",
    ),
    ("knobs.yaml", lambda text: text + "- {id: actor.bf16, title: x, unit: x, type: int}\n", "two of knob actor.bf16"),
    (
        "decision_tree.yaml",
        after("if_unknown: Note the", "if_unknown: ''  # Note"),
        "does not say how to find the answer",
    ),
    ("decision_tree.yaml", after("why: Growth is", "why: ''  # Growth"), "does not say why it is asked"),
    (
        "decision_tree.yaml",
        after("record_next_time: RAM of one engine", "record_next_time: ''  # RAM"),
        "does not say what to record next time",
    ),
    (
        "decision_tree.yaml",
        after(
            "Another rank of this run, unless: one_process, leads_to: wrong-device}",
            "x, leads_to: host-growth, next: ranks}",
        ),
        "leads to one question or one cause",
    ),
    (
        "decision_tree.yaml",
        after("remedies: [smaller-validation-batch, smaller-validation,", "remedies: [smaller-validations,"),
        "there is no remedy smaller-validations",
    ),
    (
        "decision_tree.yaml",
        after('when: [phase == "validation"', 'when: [phases == "validation"'),
        "nobody states the fact 'phases'",
    ),
    (
        "decision_tree.yaml",
        after('- memory == "gpu"', "- memory"),
        "is a name: say what it is",
    ),
    (
        "decision_tree.yaml",
        after('- memory == "gpu"', '- memory == == "gpu"'),
        "'==' does not belong here",
    ),
    (
        "decision_tree.yaml",
        after('- memory == "gpu"', '- memory equals "gpu"'),
        "'equals' does not belong here",
    ),
    (
        "decision_tree.yaml",
        after("    remedies: [change-library-version-host, ", "    remedies: [lower-accumulation-host, "),
        "is both a remedy and folklore",
    ),
    (
        "remedies.yaml",
        after('frame.engine == "vllm" or line.cumem-oom', 'frame.engine == "vllm" or line.cumem-ooms'),
        "nobody states the fact 'line.cumem-ooms'",
    ),
    ("remedies.yaml", after("never_for: [", "never_for: [x-oom, "), "there is no cause or crash line x-oom"),
    (
        "cases/verl-302.yaml",
        after("remedies: [", "remedies: [raise-everything, "),
        "there is no remedy raise-everything",
    ),
    ("advisories.yaml", after("cause: host-library-leak", "cause: host-leak"), "there is no cause host-leak"),
    (
        "signatures.yaml",
        after("verdict: oom", "verdict: oomph"),
        "Invalid enum value 'oomph'",
    ),
    ("models.yaml", after("layers: ", "layer: "), "unknown field"),
]


Mistake = tuple[str, Change, str]


def untold(made: list[Mistake], copy: Path) -> list[tuple[Mistake, str]]:
    """Those of the mistakes, made all at once, that are not told near their line, and what is told in their place."""
    texts = {name: (OURS / name).read_text() for name, _, _ in made}
    changed = dict(texts)
    for name, change, _ in made:
        with suppress(AssertionError):  # another mistake took its place
            changed[name] = change(changed[name])
    for name, text in changed.items():
        (copy / name).write_text(text)
    found, missed = lint_folder(copy), []
    for name, change, said in made:
        before, after_it = texts[name].splitlines(), change(texts[name]).splitlines()
        pairs = enumerate(zip([*before, ""], after_it, strict=False), 1)
        first = next((number for number, (one, other) in pairs if one != other), len(before))
        told = [finding for finding in found if said in finding.says and finding.file == copy / name]
        if not any(abs(finding.line - first) <= 40 for finding in told):
            missed.append(((name, change, said), f"{said}, at line {first}: {told or found}"))
    for name, text in texts.items():
        (copy / name).write_text(text)
    return missed


def test_a_mistake_is_told_with_its_file_and_line(copy: Path) -> None:
    """All at once; then, without those, what they hid: of a file that cannot be read only that is told."""
    left = MISTAKES
    while left:
        missed = untold(left, copy)
        assert len(missed) < len(left), "\n".join(said for _, said in missed)
        left = [mistake for mistake, _ in missed]


def test_a_question_and_a_cause_that_nothing_leads_to_are_told(copy: Path) -> None:
    tree = copy / "decision_tree.yaml"
    tree.write_text(
        tree.read_text()
        .replace("next: who_knows", "next: x")
        .replace("leads_to: judge-on-card", "leads_to: wrong-device")
    )
    assert "cause judge-on-card: no answer leads to it" in [finding.says for finding in lint_folder(copy)]


def test_a_path_of_more_than_seven_questions_is_told(copy: Path) -> None:
    tree = copy / "decision_tree.yaml"
    before, holder, after = tree.read_text().partition("  - id: holder")
    tree.write_text(before + holder + after.replace("unknown_leads_to: batch-or-states", "unknown_next: ranks", 1))
    assert "the longest path asks 8 questions; 7 are enough" in [finding.says for finding in lint_folder(copy)]


def test_a_remedy_that_no_dialect_can_apply_is_told(copy: Path) -> None:
    for file in (copy / "frameworks").glob("*.yaml"):
        file.unlink()
    said = [finding.says for finding in lint_folder(copy)]
    assert "remedy lower-rollout-share: no dialect has a key for rollout.memory_share" in said


def test_eras_that_share_a_version_are_told(copy: Path) -> None:
    file = copy / "frameworks" / "openrlhf.yaml"
    text = file.read_text()
    assert ">=0.8.3,<0.8.6" in text
    file.write_text(text.replace(">=0.8.3,<0.8.6", ">=0.8.3,<0.9", 1))
    said = [finding.says for finding in lint_folder(copy)]
    assert any("eras v0.8.6 and v0.8.3 both have version" in says for says in said), said


def test_an_open_era_that_does_not_say_up_to_where_it_was_read_is_told(copy: Path) -> None:
    rows = {
        "slime": ("", "has no end: newest_read must say up to where it was read"),
        "verl": ('newest_read: {version: "0.3.1", date: August}', "'August' is no date like 2026-09-20"),
        "trl": ('newest_read: {date: "2026-08-06"}', "it names neither a version nor a commit"),
        "openrlhf": ('newest_read: {version: "x.3", date: "2026-08-06"}', "no era has version x.3"),
    }
    for name, (newest_read, _) in rows.items():
        file = copy / "frameworks" / f"{name}.yaml"
        file.write_text(re.sub(r"(?m)^newest_read: .*$", newest_read, file.read_text(), count=1))
    found = [(finding.file.stem, finding.says) for finding in lint_folder(copy)]
    for name, (_, said) in rows.items():
        assert any(file == name and said in says for file, says in found), (name, said)


@each(
    ("one", "other", "shared"),
    [
        (">=0.2,<0.4", ">=0.4", False),
        (">=0.2,<=0.4", ">=0.4", True),
        ("<1.0", ">0.9", True),
        (">=1.2,<1.3", "==1.2.*", True),
        ("==0.7.0", ">=0.7.1", False),
        ("<2", ">=2", False),
    ],
)
def test_ranges_are_compared_at_their_bounds(one: str, other: str, shared: bool) -> None:
    assert (common(SpecifierSet(one), SpecifierSet(other)) is not None) is shared


def test_the_command_prints_one_line_a_finding_and_leaves_with_one(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = copy.parent / "own"
    (own / "cases").mkdir(parents=True)
    (own / "cases" / "x.yaml").write_text("id: x\n")
    assert main(["--knowledge", str(own)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"{own / 'cases' / 'x.yaml'}:1: Object missing required field")
    assert main(["--knowledge", str(own / "nothing")]) == 2


def test_the_command_finds_nothing_in_our_own_knowledge_and_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    code = main([])
    assert (capsys.readouterr().out, code) == ("", 0)


def test_who_closes_the_pipe_sees_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "cases").mkdir()
    for number in range(300):  # a finding each, of more than 250 bytes: more than a pipe holds
        (tmp_path / "cases" / f"{number:0220}.yaml").write_text("id: x\n")
    command = f"{sys.executable} -m advisor.knowledge --knowledge {tmp_path} | head -c 1"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert (ended.stdout, ended.stderr) == ("/", "")
