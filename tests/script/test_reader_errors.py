"""Bad input: one sentence that names the file, and the line where there is one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from advisor.script.document import ScriptError
from advisor.script.reader import read_script
from tests.script.conftest import Read


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.sh", b"", "is empty"),
        ("a.sh", b"echo 1\n\x00\x01", "binary file: line 2"),
        ("a.sh", b"A=1\npython3 train.py --x 'abc\n--y 2\n", "line 2: a single quote opens here and never closes"),
        ("a.sh", b'A=1\n\nB="x\n', "line 3: a double quote opens here and never closes"),
        ("a.yaml", b"a:\n\tb: 1\n", "line 2: a tab"),
        ("a.yaml", b"a: [1, 2\nb: 3\n", "line 2"),
        ("a.json", b'{"a": 1,\n "b" 2}', "line 2: not valid JSON"),
        ("a.py", b"x = 1\ny = (\n", "line 2"),
        ("a.yaml", b"[" * 5000, "nest"),  # libyaml says it in its own words
        ("a.json", b"[" * 5000, "nested too deeply"),
        (
            "a.yaml",
            b"a: &a [1,2]\n"
            + b"".join(b"%c: &%c [*%c%s]\n" % (98 + i, 98 + i, 97 + i, b", *%c" % (97 + i) * 9) for i in range(9)),
            "aliases",
        ),
    ],
)
def test_a_malformed_file_is_refused_in_one_sentence(read: Read, name: str, data: bytes, says: str) -> None:
    with pytest.raises(ScriptError) as caught:
        read(data, name)
    assert says in str(caught.value)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_a_directory_and_a_large_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="does not exist"):
        read_script(tmp_path / "none.sh")
    (tmp_path / "d.sh").mkdir()
    with pytest.raises(ScriptError, match="is a directory"):
        read_script(tmp_path / "d.sh")
    with (tmp_path / "big.sh").open("wb") as file:
        file.truncate(20_000_000)
    with pytest.raises(ScriptError, match="at most"):
        read_script(tmp_path / "big.sh")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.sh"
    path.write_text("echo\n")
    path.chmod(0)
    with pytest.raises(ScriptError, match="permission denied"):
        read_script(path)
