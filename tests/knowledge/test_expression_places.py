"""A mistake in an expression is told with its file, line and column, however the YAML writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.knowledge.lint import lint_folder

HEAD = """\
framework: foo
title: Foo
package: foo
syntax: argparse
recognised_by: [{programs: [foo]}]
settings:
  rows: {type: int, source: x}
  steps:
    type: int
    source: x
    must:
"""


@pytest.mark.parametrize(
    ("written", "line", "column", "says"),
    [
        ("      - {holds: rows % steps = 0}", 12, 30, "'=' has no place"),
        ("      - {holds: 'rows % stepz == 0'}", 12, 25, "'stepz'"),
        ('      - {holds: "rows % stepz == 0"}', 12, 25, "'stepz'"),
        ("      - holds: '''a'' == stepz'", 12, 26, "'stepz'"),
        ('      - holds: "\\"a\\" == stepz"', 12, 26, "'stepz'"),
        ("      - holds: >-\n          rows\n          % stepz == 0", 14, 13, "'stepz'"),
        ("      - holds: |\n          rows % steps == 0 and\n          stepz > 1", 14, 11, "'stepz'"),
        ("      - holds: rows\n          % stepz == 0", 13, 13, "'stepz'"),
        ("      - holds: halve(rows) == 2", 12, 16, "there is no function halve"),
        ("      - holds: [rows]", 12, 0, "an expression is one line of text"),
    ],
)
def test_a_mistake_is_told_at_its_word(tmp_path: Path, written: str, line: int, column: int, says: str) -> None:
    (tmp_path / "frameworks").mkdir()
    file = tmp_path / "frameworks" / "foo.yaml"
    file.write_text(HEAD + written + "\n")
    (found,) = lint_folder(tmp_path)
    place = f"{line}:{column}" if column else str(line)
    assert str(found).startswith(f"{file}:{place}: ")
    assert says in found.says
