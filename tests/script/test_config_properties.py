"""Any YAML or JSON file, any set of edits: what is read back is what was asked, and nothing else has moved."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.script.document import EditRefused, EditRequest, Value, apply_edits
from advisor.script.edit import as_list, rewrite
from advisor.script.launch import Script
from advisor.script.reader import read_again
from tests.heavy import examples
from tests.script.conftest import Read, values

NAMES = st.sampled_from(["lr", "batch_size", "model", "actor", "n", "use_kl", "offload", "max_len"])
TEXTS = st.text(st.sampled_from("abz09 .:#-_/'\"{}[],&*!|>%@é中"), max_size=12)
SCALARS = st.one_of(st.integers(-5, 10**6), st.booleans(), st.none(), TEXTS, st.sampled_from([0.5, 1e-6]))
TABLES = st.recursive(
    st.dictionaries(NAMES, st.one_of(SCALARS, st.lists(st.integers(0, 9), min_size=1, max_size=3)), min_size=1),
    lambda inner: st.dictionaries(NAMES, st.one_of(SCALARS, inner), min_size=1, max_size=4),
    max_leaves=12,
)
CASES = settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _edited(script: Script, wanted: list[EditRequest]) -> Script | None:
    """The file after the edits, which must be all that moved; None where one is refused."""
    try:
        rewrites = rewrite(script, 0, wanted)
    except EditRefused:
        return None
    for item in rewrites:
        assert apply_edits(item.document.data, item.edits) == item.new
        assert item.new.count(b"\r\n") - item.new.count(b"\n") in (0, -item.new.count(b"\n"))
    return read_again(script, rewrites) if rewrites else script


def _draw(data: st.DataObject, keys: list[str]) -> list[EditRequest]:
    """Changes, additions and removals, each of another key."""
    chosen = data.draw(st.lists(st.sampled_from([*keys, "added", "actor.added"]), min_size=1, max_size=4, unique=True))
    new = st.one_of(st.none(), TEXTS.filter(bool), st.sampled_from(["7", "true", "1e-5"]))
    return [EditRequest(key, data.draw(new), data.draw(st.sampled_from(["", "why"]))) for key in chosen]


def _expected(script: Script, wanted: list[EditRequest]) -> dict[str, Value | None]:
    out = values(script.launches[0])
    for item in wanted:
        if item.value is None:
            out.pop(item.key, None)
        else:
            out[item.key] = as_list(item, out.get(item.key)).value  # `[a, b]` is a list where no text stood
    return out


def _alike(found: dict[str, Value], wanted: dict[str, Any]) -> bool:
    """Whether all is as it was asked; a number in YAML in whatever spelling loaders take for it: 1.0e-5 for 1e-5."""

    def plain(one: Any) -> Any:
        return float(one) if isinstance(one, str) and re.fullmatch(r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?", one) else one

    return {key: plain(one) for key, one in found.items()} == {key: plain(one) for key, one in wanted.items()}


@CASES
@given(TABLES, st.sampled_from([None, 2, 4]), st.data())
def test_any_json_file_reads_back_as_it_was_asked(
    read: Read, table: dict[str, Any], indent: int | None, data: st.DataObject
) -> None:
    script = read(json.dumps(table, indent=indent, ensure_ascii=False), "a.json")
    wanted = _draw(data, list(values(script.launches[0])))
    after = _edited(script, wanted)
    if after is not None:
        json.loads(after.documents[0].data)
        assert values(after.launches[0]) == _expected(script, wanted)


@CASES
@given(TABLES, st.booleans(), st.sampled_from(["\n", "\r\n"]), st.data())
def test_any_yaml_file_reads_back_and_keeps_its_comments(
    read: Read, table: dict[str, Any], flow: bool, newline: str, data: st.DataObject
) -> None:
    text = yaml.safe_dump(table, sort_keys=False, allow_unicode=True, default_flow_style=flow or None, width=500)
    lines = ["# on top", *text.splitlines(), "# at the end"]
    script = read((newline.join(lines) + newline).encode(), "a.yaml")
    wanted = _draw(data, list(values(script.launches[0])))
    after = _edited(script, wanted)
    if after is not None:
        new = after.documents[0].data
        yaml.safe_load(new)
        assert _alike(values(after.launches[0]), _expected(script, wanted))
        assert new.startswith(b"# on top")
        assert b"# at the end" in new
        assert (b"\r\n" in new) == (newline == "\r\n")
        assert not re.search(rb"\r(?!\n)", new)


PLAIN = st.one_of(
    st.integers(-5, 10**6), st.booleans(), st.text(st.sampled_from("abz09 .:#-_"), min_size=1, max_size=8)
)
VALUES = st.one_of(TEXTS.filter(bool), st.sampled_from(["7", "00", "007", "true", "1e-5", "null", "-0"]))


@CASES
@given(st.dictionaries(NAMES, PLAIN, min_size=2), st.sampled_from(["json", "yaml", "py"]), st.data())
def test_one_change_of_a_plain_value_is_never_refused_and_moves_only_its_bytes(
    read: Read, table: dict[str, Any], kind: str, data: st.DataObject
) -> None:
    written = {
        "json": json.dumps(table, indent=2),
        "yaml": "# kept\n" + yaml.safe_dump(table, sort_keys=False, width=500),
        "py": "# kept\nargs = GRPOConfig(\n" + "".join(f"    {k}={v!r},  # of {k}\n" for k, v in table.items()) + ")\n",
    }[kind]
    script = read(written, f"a.{kind}")
    key, value = data.draw(st.sampled_from(sorted(table))), data.draw(VALUES)
    (item,) = rewrite(script, 0, [EditRequest(key, value)]) or [None]
    span = script.launches[0].effective()[key].span
    before = values(script.launches[0])
    as_python = {"true": "True", "null": "None", "-0": "0"}
    assert span is not None
    if item is None:
        assert before[key] in (value, as_python.get(value))
        return
    after = values(read_again(script, [item]).launches[0])
    if kind != "py":
        assert after == {**before, key: value} or (kind == "yaml" and _alike(after, {**before, key: value}))
    else:  # a number is written as one: 007 is a text there, 1e-5 a number
        assert after.keys() == before.keys()
        assert after[key] in (value, as_python.get(value), repr(float(value)) if value == "1e-5" else value)
    (edit,) = item.edits
    assert (edit.start, edit.end) == (span.start, span.end)
    compile(item.new, "a.py", "exec") if kind == "py" else yaml.safe_load(item.new)


@CASES
@given(st.dictionaries(NAMES, PLAIN, min_size=1), st.sampled_from([None, 2]), st.data())
def test_any_set_of_json_keys_can_be_taken_away_at_once(
    read: Read, table: dict[str, Any], indent: int | None, data: st.DataObject
) -> None:
    taken = data.draw(st.lists(st.sampled_from(sorted(table)), min_size=1, unique=True))
    script = read(json.dumps(table, indent=indent), "a.json")
    (item,) = rewrite(script, 0, [EditRequest(key, None) for key in taken])
    assert json.loads(item.new) == {key: value for key, value in table.items() if key not in taken}


BLOCKS = "a:\n  text: |\n    one\n    two\n\n  # kept\n  b: 1\nfolded: >-\n  x\n  y\n"


@CASES
@given(st.lists(st.text(st.sampled_from("ab :#'\"-"), max_size=6), min_size=1, max_size=4), st.booleans())
def test_a_text_of_several_lines_takes_any_other_text(read: Read, lines: list[str], ending: bool) -> None:
    value = "\n".join(lines) + ("\n" if ending else "") or "x"
    script = read(BLOCKS, "a.yaml")
    after = _edited(script, [EditRequest("a.text", value), EditRequest("folded", value)])
    found = values(after.launches[0])
    assert found == {"a.text": value, "a.b": "1", "folded": value}
    assert b"  # kept\n" in after.documents[0].data
