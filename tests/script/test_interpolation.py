"""OmegaConf's `${key}` in config files and overrides: what it stands for, and what moves with what."""

from __future__ import annotations

import pytest

from advisor.script.document import EditRequest
from advisor.script.edit import rewrite
from advisor.script.proof import check
from tests.script.conftest import Read, values

TEXT = """mb: 8
long: 4096
actor:
  mb: ${mb}
  own: 3
  twice: ${.mb}
  above: ${..long}
  inner: {near: "${..own}", text: "x-${mb}-${long}"}
list: [{a: 1}]
first: ${list[0].a}
out: ${nowhere.set}
env: ${oc.env:ROOT,/data}
home: ${oc.env:HOME_OF_NOBODY}
made: ${now:%Y}
self: ${self}
"""


def test_a_reference_is_read_as_what_it_stands_for(read: Read) -> None:
    found = values(read(TEXT, "a.yaml").launches[0])
    assert [found[key] for key in ("actor.mb", "actor.twice", "actor.above")] == ["8", "8", "4096"]
    assert (found["actor.inner.near"], found["actor.inner.text"]) == ("3", "x-8-4096")
    assert (found["first"], found["env"]) == ("1", "/data")


@pytest.mark.parametrize("key", ["out", "home", "made", "self"])
def test_what_the_file_does_not_tell_is_unresolved_with_a_reason(read: Read, key: str) -> None:
    setting = read(TEXT, "a.yaml").launches[0].effective()[key]
    assert (setting.resolved, setting.value) == (False, None)
    assert setting.reason


def test_what_follows_a_changed_setting_is_no_side_effect_and_is_replaced_alone(read: Read) -> None:
    script = read(TEXT, "a.yaml")
    for key, followed in (("mb", "2"), ("actor.mb", "8")):
        wanted = [EditRequest(key, "2")]
        done = rewrite(script, 0, wanted)
        assert all(item.held for item in check(script, 0, wanted, done))
        (again,) = read(done[0].new.decode(), "a.yaml").launches
        assert (values(again)["actor.mb"], values(again)["actor.inner.text"]) == ("2", f"x-{followed}-4096")


def test_an_override_of_the_launch_moves_what_follows_it(read: Read, tmp_path) -> None:
    (tmp_path / "c.yaml").write_text("policy:\n  length: 4096\n  engine:\n    length: ${policy.length}\n")
    (launch,) = read("python run_grpo.py --config c.yaml policy.length=8192\n", "run.sh").launches
    assert values(launch)["policy.engine.length"] == "8192"


def test_an_option_takes_its_text_as_it_is(read: Read) -> None:
    (launch,) = read(
        "python train.py --per_device_train_batch_size 3 --output_dir '${per_device_train_batch_size}'\n", "run.sh"
    ).launches
    assert values(launch)["--output_dir"] == "${per_device_train_batch_size}"


def test_a_reference_to_a_table_stands_for_all_of_it(read: Read) -> None:
    text = "zero3: {stage: 3, offload: {device: none}}\nactor: {config: '${zero3}', n: '${mul:4, 2}'}\n"
    (launch,) = read(text, "run.yaml").launches
    held = values(launch)
    assert (held["actor.config.stage"], held["actor.config.offload.device"], held["actor.n"]) == ("3", "none", "8")
    assert "actor.config" not in held
