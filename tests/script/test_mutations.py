"""Damaged files never crash the reader or the editor, and never make a wrong edit."""

from __future__ import annotations

import random
import time
from pathlib import Path

from advisor.script.document import Document, DocumentKind, EditRefused, EditRequest, ScriptError, apply_edits
from advisor.script.edit import rewrite
from advisor.script.files import Files
from advisor.script.reader import read_documents
from tests.loops import each
from tests.script.test_config_editing import JSON, PYTHON, YAML
from tests.script.test_shell_editing import CHAIN, OPTIONS

SEEDS: list[tuple[str, DocumentKind, str]] = [
    ("a.sh", "shell", CHAIN),
    ("b.sh", "shell", "for i in 1 2; do\nif [ $i -gt 1 ]; then N=$((i*2)); fi\n" + OPTIONS + "done\n"),
    ("a.yaml", "yaml", YAML),
    ("a.json", "json", JSON),
    ("a.py", "python", PYTHON),
]
DAMAGE = [
    b'"',
    b"'",
    b"$(",
    b")",
    b"${",
    b"}",
    b"\\\n",
    b"\n",
    b"`",
    b"<<EOF\n",
    b"((",
    b"#",
    b";",
    b"|",
    b"if ",
    b"fi\n",
    b"done\n",
    b"eval ",
    b"\x01",
    b"\xff",
    b"\r\n",
    b"\t",
    b"A=$A$A\n",
    b"f(){ f; f; }; f\n",
    b"while true; do echo; done\n",
    b"case x in ",
    b"${A:-",
    b"{a,b}",
    b"*",
    b": ",
    b"- ",
    b"&a ",
    b"*a",
    b"[",
    b"]",
    b"{",
    b"source $0\n",
]


def damaged(text: bytes, chance: random.Random) -> bytes:
    data = bytearray(text)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(data) + 1)
        if chance.random() < 0.6:
            data[at:at] = chance.choice(DAMAGE)
        else:
            del data[at : at + chance.randint(1, 20)]
    return bytes(data)


@each("seed", range(5))
def test_damaged_files_are_read_or_refused(seed: int) -> None:
    chance = random.Random(seed)
    refused = 0
    for _ in range(120):
        name, kind, text = chance.choice(SEEDS)
        path = Path("/nowhere") / name
        document = Document(path, damaged(text.encode(), chance), kind)
        started = time.monotonic()
        try:
            script = read_documents(Files(given={str(path): document}), path, ())
            for launch in script.launches:
                for setting in chance.sample(launch.settings, min(2, len(launch.settings))):
                    for item in rewrite(script, launch.index, [EditRequest(setting.key, "7", "why")]):
                        assert apply_edits(item.document.data, item.edits) == item.new
        except (ScriptError, EditRefused):
            refused += 1
        assert time.monotonic() - started < 5
    assert 0 < refused < 110  # damage shows, and not everything is given up
