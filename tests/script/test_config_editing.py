"""YAML, JSON and Python files: edits in place, comments and layout untouched."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.script.document import EditRefused, EditRequest, apply_edits
from advisor.script.edit import rewrite
from advisor.script.proof import check
from tests.heavy import examples
from tests.script.conftest import Edited, Read, values

YAML = """# 配置
data:
  batch: 512   # prompts
  name: "a b"
  files: [x, 'y']
worker:
  offload:
    params: true
flow: {a: 1, b: "2"}
"""
JSON = '{\n  "zero_optimization": {\n    "stage": 2,\n    "cpu": "none"\n  },\n  "list": [1, "é"]\n}\n'
PYTHON = '''"""doc"""
import os
DEBUG_MODE = False if os.environ.get("DEBUG_MODE", "False") == "False" else True

@dataclass
class PPOExpConfig(BasePPOExpConfig):
    total: int = 32 if not DEBUG_MODE else 8  # 数量
    ref: int = total
    use_grpo: bool = False
    share: float = 0.75 if use_grpo else 0.7 if not DEBUG_MODE else 0.5
    name: str = 'x'
    longest: int = total + 8
    stop: ListConfig = ListConfig(["a", "b"])
    path: str = f"{'debug_' if DEBUG_MODE else ''}run"
'''


def test_nested_keys_are_flattened(read: Read) -> None:
    (launch,) = read(YAML, "a.yaml").launches
    assert values(launch) == {
        "data.batch": "512",
        "data.name": "a b",
        "data.files": ("x", "y"),
        "worker.offload.params": "true",
        "flow.a": "1",
        "flow.b": "2",
    }
    assert values(read(JSON, "a.json").launches[0]) == {
        "zero_optimization.stage": "2",
        "zero_optimization.cpu": "none",
        "list": ("1", "é"),
    }


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("data.batch", "256", "512", "256"),
        ("data.name", "c", '"a b"', '"c"'),
        ("data.files", ("z",), "[x, 'y']", "[z]"),
        ("worker.offload.params", "false", "true", "false"),
        ("flow.a", "7", "a: 1", "a: 7"),
        ("data.new", "1", "  files: [x, 'y']\n", "  files: [x, 'y']\n  new: 1\n"),
        ("worker.ref.deep", "true", "    params: true\n", "    params: true\n  ref:\n    deep: true\n"),
        ("top", "1", 'b: "2"}\n', 'b: "2"}\ntop: 1\n'),
        ("flow.c", "3", '"2"}', '"2", "c": 3}'),
        ("data.name", None, '  name: "a b"\n', ""),
    ],
)
def test_yaml_is_edited_in_place(edited: Edited, key: str, value: str | None, old: str, new: str) -> None:
    assert edited(YAML, EditRequest(key, value), name="a.yaml") == YAML.replace(old, new)


@pytest.mark.parametrize(
    ("stood", "given", "written"),
    [
        ("1.0e-5", "5e-7", "5.0e-7"),
        ("1.0e-5", "1e6", "1.0e+6"),
        ("5e-6", "5e-7", "5e-7"),
        ("null", "5e-7", "5.0e-7"),
        ("4096", "1e6", "1000000"),
        ("8", "010", "10"),
        ("bf16", "no", '"no"'),
        ("true", "no", "no"),
        ("auto", "4", "4"),
        ("auto", "true", "true"),
        ("run1", "2024-01-02", '"2024-01-02"'),
        ("run1", "1:30", '"1:30"'),
        ("4096", "null", "null"),
    ],
)
def test_a_value_in_yaml_is_of_the_type_that_stood_there(edited: Edited, stood: str, given: str, written: str) -> None:
    assert edited(f"k: {stood}\n", EditRequest("k", given), name="a.yaml") == f"k: {written}\n"


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("zero_optimization.stage", "3", "2", "3"),
        ("zero_optimization.cpu", "gpu", "none", "gpu"),
        ("zero_optimization.pin", "true", '"none"', '"none",\n    "pin": true'),
        ("list", ("2",), '[1, "é"]', "[2]"),
    ],
)
def test_json_is_edited_in_place(edited: Edited, key: str, value: str, old: str, new: str) -> None:
    assert edited(JSON, EditRequest(key, value), name="a.json") == JSON.replace(old, new)


def test_python_fields_are_what_the_run_without_debugging_gets(read: Read) -> None:
    (launch,) = read(PYTHON, "orz.py").launches
    assert launch.program == "orz"
    assert launch.bases == ("BasePPOExpConfig",)
    assert launch.notes == ("$DEBUG_MODE is taken as not set in the environment.",)
    assert values(launch) == {
        "total": "32",
        "ref": "32",
        "use_grpo": "False",
        "share": "0.7",
        "name": "x",
        "longest": "40",
        "stop": ("a", "b"),
        "path": "run",
    }
    assert launch.effective()["ref"].shared_with == ("total", "longest")


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("share", "0.5", "0.7 if", "0.5 if"),
        ("total", "16", "32 if", "16 if"),
        ("ref", "4", "= total\n", "= 4\n"),
        ("name", "it's", "'x'", "'it\\'s'"),
        ("use_grpo", "false", "bool = False", "bool = False"),
        ("stop", ("c",), '["a", "b"]', '["c"]'),
        ("zero_stage", "3", "''}run\"\n", "''}run\"\n    zero_stage: int = 3\n"),
    ],
)
def test_python_is_edited_in_the_branch_that_counts(edited: Edited, key: str, value: str, old: str, new: str) -> None:
    assert edited(PYTHON, EditRequest(key, value), name="orz.py") == PYTHON.replace(old, new)


def test_keyword_literals_of_config_calls_are_settings(edited: Edited, read: Read) -> None:
    text = "from trl import GRPOConfig\nargs = GRPOConfig(\n    per_device_train_batch_size=8,\n    bf16=True,\n)\n"
    (launch,) = read(text, "t.py").launches
    assert values(launch) == {"per_device_train_batch_size": "8", "bf16": "True"}
    assert edited(text, EditRequest("per_device_train_batch_size", "4"), name="t.py") == text.replace("=8", "=4")


def test_comments_go_behind_the_line_or_above_a_commented_one(edited: Edited) -> None:
    assert "params: false  # rl-oom-advisor: why\n" in edited(
        YAML, EditRequest("worker.offload.params", "false", "why"), name="a.yaml"
    )
    assert "  # rl-oom-advisor: why\n  batch: 1   # prompts" in edited(
        YAML, EditRequest("data.batch", "1", "why"), name="a.yaml"
    )
    assert "    # rl-oom-advisor: why\n    total: int = 1 if" in edited(
        PYTHON, EditRequest("total", "1", "why"), name="orz.py"
    )


def test_what_a_file_has_no_place_for_is_refused(read: Read) -> None:
    with pytest.raises(EditRefused, match="starts no command"):
        rewrite(read(YAML, "a.yaml"), 0, [EditRequest("X", "1", kind="environment")])
    with pytest.raises(EditRefused, match="plain value"):
        rewrite(read(YAML, "a.yaml"), 0, [EditRequest("data.batch.deeper", "1")])


FILES = {
    "a.yaml": (YAML, ["data.batch", "data.name", "data.files", "flow.a", "flow.b", "data.added", "new.deep.key"]),
    "a.json": (JSON, ["zero_optimization.stage", "zero_optimization.cpu", "zero_optimization.added", "new.key"]),
    "a.py": (PYTHON, ["total", "share", "name", "longest", "ref", "added"]),
}
texts = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Cf", "Co", "Cn", "Zl", "Zp")), min_size=1, max_size=12)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_value_reads_back_in_every_kind_of_file(read: Read, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(FILES)))
    text, keys = FILES[name]
    wanted = [EditRequest(data.draw(st.sampled_from(keys)), data.draw(texts), data.draw(st.sampled_from(["", "why"])))]
    script = read(text, name)
    try:
        rewrites = rewrite(script, 0, wanted)
    except EditRefused:
        assert name == "a.py"  # only Python has values (True, 007) that do not read back as their own text
        return
    assert all(item.held for item in check(script, 0, wanted, rewrites))
    for item in rewrites:
        assert apply_edits(item.document.data, item.edits) == item.new


NESTED = "worker:\n  actor:\n    mb: 8\n    model: {p: q}\nactors:\n  - mb: 4\n    x: 1\n"


@pytest.mark.parametrize("key", ["worker.actor", "worker", "actors", "actors.foo", "actors.0"])
def test_a_key_that_holds_others_is_neither_replaced_nor_written_twice(edited: Edited, key: str) -> None:
    with pytest.raises(EditRefused):
        edited(NESTED, EditRequest(key, "2"), name="a.yaml")
