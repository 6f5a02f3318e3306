"""TOML files are read to the byte and edited exactly, as the standard parser reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.script.document import Document, EditRefused, EditRequest, ScriptError
from advisor.script.edit import rewrite
from advisor.script.reader import read_script
from advisor.script.toml_file import read_toml
from tests.loops import each

CONFIG = """\
seq_len = 4_096  # one row

[trainer.model]
ep = "auto"
ac = { freq = 1 }
name = 'a\\b'

[trainer.model.lora]
target_modules = [
    "q_proj",  # the first
    "k_proj",
]

[[orchestrator.train.source]]
name = "math"

[orchestrator.train.source.env]
id = "x.y"

[[orchestrator.train.source]]
name = "code"
prompt = \"\"\"
two
lines\"\"\"

[inference."vllm"]
share = 0.9
"""


def edited(tmp_path: Path, text: str, **wanted: str | None) -> str:
    file = tmp_path / "rl.toml"
    file.write_text(text)
    requests = [EditRequest(key.replace("__", "."), value) for key, value in wanted.items()]
    (done,) = rewrite(read_script(file), 0, requests)
    return done.new.decode()


def entries(text: str) -> dict[str, Any]:
    return {entry.key: entry.value for entry in read_toml(Document(Path("x.toml"), text.encode(), "toml")).entries}


def test_every_value_is_found_under_its_dotted_key() -> None:
    assert entries(CONFIG) == {
        "seq_len": "4096",
        "trainer.model.ep": "auto",
        "trainer.model.ac.freq": "1",
        "trainer.model.name": "a\\b",
        "trainer.model.lora.target_modules": ("q_proj", "k_proj"),
        "orchestrator.train.source.0.name": "math",
        "orchestrator.train.source.0.env.id": "x.y",
        "orchestrator.train.source.1.name": "code",
        "orchestrator.train.source.1.prompt": "two\nlines",
        "inference.vllm.share": "0.9",
    }


def test_only_the_literals_that_were_asked_for_change(tmp_path: Path) -> None:
    new = edited(tmp_path, CONFIG, seq_len="2048", trainer__model__ep="4", trainer__model__ac__freq="2")
    expected = CONFIG.replace("4_096", "2048").replace('"auto"', '"4"').replace("freq = 1", "freq = 2")
    assert new == expected


def test_a_new_key_stands_in_its_own_table_or_below_a_header_at_the_end(tmp_path: Path) -> None:
    new = edited(tmp_path, CONFIG, trainer__model__cp="2", trainer__optim__type="sgd")
    assert new == CONFIG.replace("name = 'a\\b'\n", "name = 'a\\b'\ncp = 2\n") + '\n[trainer.optim]\ntype = "sgd"\n'


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[a]\nb.c = 1\n", "a__b__d"),  # `a.b` is defined by a dotted key: a header of its own is not allowed
        ("[[a]]\nx = 1\n", "a__1__x"),
        ("a = 1\n", "a__b"),
    ],
)
def test_a_key_without_a_place_is_refused(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(EditRefused):
        edited(tmp_path, text, **{key: "1"})


@each(
    "text",
    ["a = 1\na = 2\n", "a = \n", "[a\n", "[a]\n[a]\n", 'a = "x\n', "a 1\n", "a = 1 2\n", "a = [1\n", "a = {b=1\n"],
)
def test_a_mistake_is_told_with_its_line(text: str) -> None:
    with pytest.raises(ScriptError, match="line"):
        entries(text)


@given(st.text(max_size=40))
def test_a_text_that_is_written_is_read_as_the_standard_parser_reads_it(text: str) -> None:
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    from advisor.script.document import Changes
    from advisor.script.toml_file import TomlEditor

    document = Document(Path("x.toml"), b'a = "b"\n', "toml")
    shown = TomlEditor(read_toml(document), document, 0, Changes([document])).text(text, "double", False)
    assert tomllib.loads(f"a = {shown}\n")["a"] == text
    assert entries(f"a = {shown}\n") == {"a": text}
