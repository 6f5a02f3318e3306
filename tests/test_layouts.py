"""How many cards a run needs of which there is no script: documented starting scripts, tried on layouts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Start
from advisor.layouts import filled
from advisor.request import SessionRequest
from advisor.session import open_session
from tests.stories.told import tell

CONTRACT = json.loads((Path(__file__).parents[1] / "docs" / "contract.schema.json").read_text("utf-8"))
STARTS = load_knowledge().starts


@pytest.mark.parametrize("start", STARTS, ids=lambda one: one.id)
def test_every_start_is_read_as_the_framework_and_method_that_it_stands_for(start: Start, tmp_path: Path) -> None:
    for name, text in start.files.items():
        (tmp_path / name).write_text(filled(text, start, "Qwen3-8B", 2, 4))
    launch = tmp_path / next(iter(start.files))
    package = next(one.package for one in load_knowledge().frameworks if one.framework == start.framework)
    libraries = (f"{package}={start.version}",)
    asked = SessionRequest(launch, gpus="4xH100-80GB", nodes=2, libraries=libraries, planned=False)
    run = open_session(asked).run
    assert (run.framework, run.algorithm) == (start.framework, start.method)
    assert run.model is not None
    assert (run.topology.actor_gpus, run.era_assumed) == (8, False)
    assert run.seen_whole
    assert not run.unknown_keys
    assert not run.topology.asked or run.topology.asked == 8


def test_each_start_has_a_method_of_its_own_that_is_known() -> None:
    methods = {recipe.id for recipe in load_knowledge().recipes}
    pairs = [(start.framework, start.method) for start in STARTS]
    assert len(set(pairs)) == len(pairs)
    assert {method for _, method in pairs} <= methods


def test_the_fewest_cards_are_told_with_what_to_change_and_without(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["estimate", "--framework", "openrlhf", "--method", "dpo", "--model", "Qwen3-8B", "--gpus", "H100-80GB"]
    code, out, err = tell(words, capsys)
    assert (code, err) == (0, "")
    assert out.startswith("Qwen3-8B fits 1 × H100-80GB with 1 change of this script")
    assert "as it stands it needs 4 × H100-80GB" in " ".join(out.split())
    assert "--ds.adam_offload" in out.partition("run.sh")[2]


def test_json_has_every_layout_that_was_tried(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--framework", "llamafactory", "--model", "Qwen3-8B", "--gpus", "H100-80GB"]
    code, out, _ = tell(["estimate", *asked, "--format", "json"], capsys)
    assert code == 0
    answer = json.loads(out)
    Draft202012Validator({**CONTRACT, "$ref": "#/$defs/estimate"}).validate(answer)
    assert [(one["gpus_per_node"], one["fits_as_written"], one["fits"]) for one in answer["layouts"]] == [
        (1, False, True),
        (2, True, True),
    ]
    assert answer["start"]["id"] == "llamafactory-sft"
    assert answer["run"]["algorithm"] == "sft"


def test_what_no_layout_holds_is_said_and_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--model", "Qwen3-235B-A22B", "--gpus", "2xT4-16GB", "--nodes", "1"]
    code, out, _ = tell(["estimate", "--framework", "verl", *asked], capsys)
    assert code == 3
    assert "does not fit 2 × T4-16GB" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--framework", "verl", "--gpus", "H100-80GB"], "name the model"),
        (["--framework", "verl", "--model", "Qwen3-8B"], "name the card"),
        (["--framework", "nothing", "--model", "Qwen3-8B", "--gpus", "H100-80GB"], "no framework 'nothing' is known"),
        (["--framework", "verl", "--method", "kto", "--model", "Qwen3-8B", "--gpus", "H100-80GB"], "there is grpo"),
        (["--method", "grpo", "--model", "Qwen3-8B"], "name the framework"),
        (["--framework", "verl", "--model", "a; rm -rf b", "--gpus", "H100-80GB"], "name the model"),
    ],
)
def test_what_is_missing_is_asked_for(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = tell(["estimate", *words], capsys)
    assert code == 2
    assert said in err
