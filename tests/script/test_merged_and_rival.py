"""Keys that YAML merges in from elsewhere, and configs of which a Python file makes several: exact, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from advisor.script.document import EditRefused, EditRequest
from advisor.script.edit import rewrite
from advisor.script.reader import read_script

MERGED = {
    "one": "a: &a {mb: 8}\nc:\n  <<: *a\n  y: 2\n",
    "one, behind an own key": "a: &a {mb: 8}\nc:\n  mb: 4\n  <<: *a\n",
    "several": "a: &a {mb: 8}\nb: &b {mb: 16, x: 1}\nc:\n  <<: [*a, *b]\n  y: 2\n",
    "several, the other way": "a: &a {mb: 8}\nb: &b {mb: 16, x: 1}\nc:\n  <<: [*b, *a]\n  y: 2\n",
    "in braces": "a: &a {mb: 8}\nc: {<<: *a, y: 2}\n",
}


def read(folder: Path, text: str, name: str = "run.yaml"):
    (folder / name).write_text(text)
    return read_script(folder / name)


@pytest.mark.parametrize("name", MERGED)
def test_a_merged_key_has_the_value_that_a_loader_gives_it(name: str, tmp_path: Path) -> None:
    (launch,) = read(tmp_path, MERGED[name]).launches
    told = {s.key: s.value for s in launch.settings if s.effective}
    loaded = yaml.safe_load(MERGED[name])["c"]
    if name.startswith("several"):  # of several the first wins, by YAML's word and by PyYAML except 6.0.4
        loaded["mb"] = {"several": 8, "several, the other way": 16}[name]
    assert {key: told[f"c.{key}"] for key in loaded} == {key: str(value) for key, value in loaded.items()}
    assert not [key for key in told if key.startswith(("c.0", "c.1"))]


@pytest.mark.parametrize("name", MERGED)
def test_a_merged_key_is_set_by_a_key_of_its_own(name: str, tmp_path: Path) -> None:
    (done,) = rewrite(read(tmp_path, MERGED[name]), 0, [EditRequest("c.mb", "2")])
    before, after = yaml.safe_load(MERGED[name]), yaml.safe_load(done.new)
    assert after == {**before, "c": {**before["c"], "mb": 2}}


CONFIGS = """from trl import GRPOConfig, GRPOTrainer
a = GRPOConfig(output_dir="x", per_device_train_batch_size=8)
b = GRPOConfig(output_dir="y", per_device_train_batch_size=4)
"""


def test_of_several_configs_nobody_guesses_which_one_the_run_gets(tmp_path: Path) -> None:
    with pytest.raises(EditRefused, match=r"set in lines 2, 3, and nothing tells"):
        rewrite(read(tmp_path, CONFIGS, "run.py"), 0, [EditRequest("per_device_train_batch_size", "2")])


def test_a_trainer_tells_which_config_it_gets(tmp_path: Path) -> None:
    script = read(tmp_path, CONFIGS + "GRPOTrainer(args=a)\n", "run.py")
    (done,) = rewrite(script, 0, [EditRequest("per_device_train_batch_size", "2")])
    assert b'"x", per_device_train_batch_size=2' in done.new
    assert b'"y", per_device_train_batch_size=4' in done.new


TWICE = {
    "run.yaml": "a:\n  mb: 4\n  x: 1\na:\n  mb: 8\n",
    "flow.yaml": "a: {mb: 4, x: 1}\na: {mb: 8}\n",
    "then.yaml": "a: {x: 1}\na: 8\n",
    "run.json": '{"a": {"mb": 4, "x": 1}, "a": {"mb": 8}}',
}


@pytest.mark.parametrize("name", TWICE)
def test_of_a_mapping_that_stands_twice_the_last_one_counts_whole(name: str, tmp_path: Path) -> None:
    script = read(tmp_path, TWICE[name], name)
    assert "a.x" not in script.launches[0].effective()
    if name != "then.yaml":
        (done,) = rewrite(script, 0, [EditRequest("a.new", "2"), EditRequest("a.mb", "3")])
        assert yaml.safe_load(done.new) == {"a": {"mb": 3, "new": 2}}


def test_a_value_with_a_type_of_its_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EditRefused, match="a type of its own"):
        rewrite(read(tmp_path, 'mb: !!int "8"\nx: 1\n'), 0, [EditRequest("mb", "2")])
