"""A text that begins with what it imports is Python, and one of tables TOML, whatever its name says."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.script.reader import read_script

IMPORTS = '# as posted\n\nfrom trl import SFTConfig\nargs = SFTConfig(output_dir="o", max_length=2048)\n'


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (IMPORTS, "python"),
        ("import torch, trl\nx = 1\n", "python"),
        ("#!/bin/bash\nimport screen.png\n", "shell"),
        ("import -window root screen.png\n", "shell"),
        ("trl sft --max_length 2048\n", "shell"),
        ('ids = [0,\n  1]\n\n[model]\nname = "Qwen/Qwen3-4B"\n# impl = "x"\n', "toml"),
        ("[ -f a ] && x=1\nmodel = 3\n", "shell"),
    ],
)
@pytest.mark.parametrize("name", ["run.sh", "pasted"])
def test_the_first_line_that_says_something_tells(tmp_path: Path, text: str, kind: str, name: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert read_script(file).documents[0].kind == kind
