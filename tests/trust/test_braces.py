"""Texts of strangers that look like templates: told as they stand, in every language, and never looked into.

A sentence is a template of ours and its fields are theirs; a field is not read as a template again. And no text of
theirs is ever the template: whatever is said is looked up in the catalogue first, which remembers what it lacks.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from advisor.cli import main
from advisor.language import CHINESE, ENGLISH, LANGUAGES, _Spoken, read_catalogue, say, say_count, speak
from advisor.words import filled
from tests.loops import each
from tests.stories.told import STORIES

RUNS = Path(__file__).parents[1] / "runs"
STORY = STORIES["easyr1"]
TEMPLATES = (
    "{0.__class__.__mro__}", "{count.__class__.__init__.__globals__}", "{}", "{0}", "{size:>99999999999}", "{key!r}",
    "{", "}", "{{x}}", "%(x)s", "%s", "${x}",
)  # fmt: skip
MARK = "{x.__class__}"
REMEDY = """\
- id: optimizer-offload-off
  title: "Ours {x.__class__}"
  kind: setting
  knob: actor.optimizer_offload
  memory: host
  value: {to: false}
  tier: free
  results: unchanged
  costs: "nothing {x.__class__}"
  says: "Switch it {new.__class__} {new:>99999999999} {0} {new!r} { from {old} to {new}."
  source: a wiki
"""


@pytest.fixture(autouse=True)
def _english() -> object:
    yield
    speak(ENGLISH)


@pytest.mark.parametrize("text", TEMPLATES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_field_is_told_as_it_stands(text, language):
    speak(language)
    assert text in say("{name} x", name=text)
    assert text in say("{file}: {why}", file="a", why=text)
    assert text in say_count("{number} line of {name}", "{number} lines of {name}", 2, name=text)
    assert say(text) == text, "without fields nothing is a template"
    assert text in filled("from {old} to {new}", {"old": text, "new": "1"})
    assert filled(text, {"x": "1"}).count("class") == text.count("class")


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose files, names and values are templates."""
    folder = tmp_path / f"run {MARK}"
    shutil.copytree(RUNS / STORY.folder, folder, ignore=shutil.ignore_patterns("expected*"))
    monkeypatch.chdir(folder)
    script, log = folder / STORY.script, folder / STORY.log
    told = script.read_text().rstrip("\n")
    values = "".join(f" \\\n    '+trainer.extra{place}={text}'" for place, text in enumerate(TEMPLATES) if text != "}")
    (folder / f"{MARK}.sh").write_text(
        f"{told}{values} \\\n    'trainer.experiment_name={MARK}' 'worker.{MARK}={MARK}'\n"
    )
    lines = log.read_text().replace("main_task", MARK).replace("WorkerDict.actor_update_actor", f"Worker{MARK}.update")
    extra = "\n".join(f"ValueError: {text} CUDA out of memory. {text}" for text in TEMPLATES)
    (folder / f"{MARK}.log").write_text(f"{MARK}\n{lines}\n{extra}\n")
    machine = {"nodes": 1, "gpus": [{"index": 0, "name": MARK, "total_bytes": 2**36, "problem": MARK}], "host": {}}
    (folder / f"{MARK}.json").write_text(json.dumps(machine | {"libraries": {MARK: MARK}, "problems": [MARK]}))
    (folder / "own").mkdir()
    (folder / "own" / "remedies.yaml").write_text(REMEDY)
    return folder


SCRIPT, LOG, BOX = f"{MARK}.sh", ["--log", f"{MARK}.log"], ["--machine", f"{MARK}.json"]
COMMANDS = (
    ["scan", f"{MARK}.log"],
    ["settings", SCRIPT],
    ["diagnose", SCRIPT, *LOG, *BOX],
    ["diagnose", SCRIPT, *LOG, "--gpus", "8xA100-40GB", "--knowledge", "own", "--format", "markdown"],
    ["diagnose", SCRIPT, *LOG, "--lib", f"vllm={MARK}", "--answer", f"{MARK}={MARK}"],
    ["estimate", SCRIPT, *BOX],
    ["fix", SCRIPT, *LOG, "--gpus", "8xA100-40GB", "--diff"],
    ["machine", *BOX],
    ["explain", MARK],
    ["set", SCRIPT, f"trainer.experiment_name=b{MARK}", "-o", "-"],
    ["diagnose", f"no{MARK}.sh"],
    ["diagnose", SCRIPT, "--gpus", MARK],
    ["diagnose", SCRIPT, "--host-ram", MARK],
)


BOTH = [*((words, CHINESE) for words in COMMANDS), *((words, ENGLISH) for words in COMMANDS[::2])]
"""Whatever is said goes through the catalogue in Chinese; in English there is none to go through."""


@pytest.mark.parametrize(("words", "language"), BOTH)
def test_no_command_takes_a_strangers_text_for_a_template(words, language, hostile, capsys):
    try:
        code = main([*words, "--lang", language])
    except SystemExit as refused:  # a usage that argparse refuses
        code = refused.code
    out, err = capsys.readouterr()
    assert code in (0, 2, 3, 4), err
    assert "<class" not in out + err
    assert MARK in out + err
    if language == CHINESE:
        assert [text for text in _Spoken.unsaid if "__class__" in text] == []


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_a_remedy_of_somebody_elses_is_filled_by_its_names_alone(form, hostile, capsys):
    words = [*STORY.words("diagnose"), "--all", "--knowledge", "own", "--format", form]
    assert main(words) == 0
    out = " ".join(capsys.readouterr().out.replace("\\", "").split())
    assert "Switch it {new.__class__} {new:>99999999999} {0} {new!r} { from true to false." in out


@each("damaged", ["在此 {", "{nobody}", "{name.nothing}", "{0}", "{name[0][9]}"])
def test_a_damaged_translation_is_said_in_english(damaged):
    speak(CHINESE, {"{name} is here": damaged, "{number} lines of {name}": damaged})
    assert say("{name} is here", name="ana") == "ana is here"
    assert say_count("{number} line of {name}", "{number} lines of {name}", 2, name="ana") == "2 lines of ana"


@pytest.mark.parametrize("data", [b"[1]", b"null", b'{"a": 1, "b": ["c"]}', b"\xff", b"[" * 100_000, b""])
def test_a_damaged_catalogue_is_left_out(data, tmp_path):
    (tmp_path / "a.json").write_bytes(data)
    (tmp_path / "b.json").write_text('{"yes": "是"}')
    assert read_catalogue(tmp_path) == {"yes": "是"}
