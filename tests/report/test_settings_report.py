"""Settings as JSON, text and run files."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from advisor.report.json_report import encode
from advisor.report.settings_report import Read, error_json, run_file, script_json, settings_json, settings_text
from advisor.script.document import Document, Setting, Span
from advisor.script.launch import Launch, Script
from tests.loops import each


def read() -> Read:
    settings = (
        Setting("actor.lr", "1e-6", "file", span=Span("conf.yaml", 3, 40, 44), effective=False),
        Setting("actor.lr", "2e-6", "command", span=Span("run.sh", 4, 60, 64)),
        Setting("model.path", "Qwen/Qwen2.5-7B", "command", span=Span("run.sh", 5, 80, 95)),
        Setting("n", "8", "command"),
        Setting("offload", "true", "command"),
        Setting("share", "0.6", "command"),
        Setting("--bf16", (), "command"),
        Setting("--targets", ("q_proj", "v_proj"), "command"),
        Setting("data.files", None, "command", resolved=False, reason="$DATA is not set"),
    )
    launch = Launch(0, "verl.trainer.main_ppo", ("python3", "-m", None), {"A": "1"}, settings, Span("run.sh", 4, 0, 9))
    script = Script((Document(Path("run.sh"), b"", "shell"),), (launch,))
    return Read("run.sh", script, ("verl",), ("model.path",))


def test_json_and_jsonl_keep_the_contract(validate):
    validate(json.loads(encode(settings_json([read(), read()]))), "settings")
    validate(json.loads(encode(script_json(read()))), "settings_line")
    validate(json.loads(encode(error_json("gone.sh", "gone.sh: no such file"))), "settings_line")


def test_both_places_of_a_key_are_listed_and_the_one_in_force_is_marked():
    (launch,) = settings_json([read()])["launches"]
    assert [(s["value"], s["effective"]) for s in launch["settings"][:2]] == [("1e-6", False), ("2e-6", True)]
    assert (launch["argv0"], launch["framework"], launch["environment"]) == ("python3", "verl", {"A": "1"})


@each(
    "said",
    [
        "launch 1: verl.trainer.main_ppo (verl, line 4)",
        "actor.lr = 1e-6 conf.yaml:3 (overridden)",
        "data.files = unresolved ($DATA is not set)",
        "--targets = q_proj v_proj",
        "A=1",
    ],
)
def test_text_says_value_and_place(said):
    assert said in " ".join(settings_text([read()]).split())


def test_a_script_without_a_launch_says_so():
    empty = Read("notes.sh", Script((Document(Path("notes.sh"), b"", "shell"),), ()), (), ())
    assert "no training command was found" in settings_text([empty])


def test_a_run_file_holds_what_is_in_force_as_yaml_would_have_it():
    stated = yaml.safe_load(run_file(read()))
    assert stated == {
        "framework": "verl",
        "program": "verl.trainer.main_ppo",
        "model": "Qwen/Qwen2.5-7B",
        "settings": {
            "actor.lr": "2e-6",
            "model.path": "Qwen/Qwen2.5-7B",
            "n": 8,
            "offload": True,
            "share": 0.6,
            "bf16": True,
            "targets": ["q_proj", "v_proj"],
        },
    }
