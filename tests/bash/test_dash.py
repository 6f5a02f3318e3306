"""What the reader says dash hands to a launch is what dash hands to it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from advisor.script.files import Files
from advisor.script.reader import read_documents

RUN = "python3 -m verl.trainer.main_ppo"
TEXTS = [
    'M=a\nif [ "$M" == a ]; then B=8; else B=4; fi',
    'B=4\n[ "$M" = "" ] && [ a = a -a b != c ] && B=8',
    "B=4\n[[ a == a ]] && B=8\n! [[ -n x ]] && C=1\nB=$B$C",
    "B=4\nif ! [ a == a ]; then B=8; fi",
    "B=4\nB+=2\nA[0]=3",
    "B=4\ni=3\n((i++))\nB=$B$i",
    "B=$((2 + 3 * 2))\nB=$((B += 1))",
    "B=4\nsource ./nowhere.sh || B=8",
    "B=4\nset -e\nsource ./nowhere.sh",
    "B=4\nset -euo pipefail",
    "B=4\nexport -f go",
    "B={1..3}",
    "for i in {1..3}; do B=$B$i; done",
    "B=$'4\\t'",
    'B=$(echo -e "4")',
    'B=$(echo "4\\t5" | wc -w)',
    "B=4\ngo() { local B; B=$B; C=$B; }\ngo\nB=$C",
    "B=4\ngo() { local B=5 D; }\ngo",
    "local B=4",
    "B=4\ntrap 'B=8' DEBUG",
    "declare -i B=4",
    "B=4\nprintf -v B 8\nread -a B < /dev/null",
    "B=$(x=abc; echo ${x//a/4})",
    "x=abc\nB=${x:1}",
    'B=${#x}\nB=${x:-4}\nD=$(dirname "${BASH_SOURCE[0]}")',
    "B=4\nalias go='B=8'\n",
    "A=(4)\nB=$A",
    "B=4\nif false; then A+=(4); fi",
    "cat <<< 4\nB=4",
    "B=4\ncase x in x) B=8;& y) B=1;; esac",
    "for ((B=0; B<3; B++)); do :; done",
    "function go { B=4; }\ngo",
    "B=4\necho x |& cat",
    "B=4\necho x >& log",
    "B=4\necho x > log 2>&1",
    "B=4\n. env.sh",
    "B=4; A=(1)",
    "B=$(</etc/hostname)4",
    "B=4\nB=8 &> log\nwait",
    "B=$((2**3))",
]


@pytest.mark.skipif(shutil.which("dash") is None, reason="dash is not installed")
def test_it_is_read_as_dash_reads_it(tmp_path: Path) -> None:
    wrong = []
    for text in TEXTS:
        script = tmp_path / "run.sh"
        script.write_text(f"#!/bin/sh\n{text}\n{RUN} a.b=1 c.d=$B\n")
        prints = f"python3() {{ printf '%s\\n' \"RUN $*\"; }}\n{script.read_text()}"
        done = subprocess.run(["dash"], input=prints, capture_output=True, text=True, cwd=tmp_path, check=False)
        ran = [line.split("c.d=")[1].split()[:1] for line in done.stdout.splitlines() if line.startswith("RUN ")]
        read = read_documents(Files(), script, (), None, by_dash=True)
        told = [
            (one.effective()["c.d"].text or "").split() if "c.d" in one.effective() else [] for one in read.launches
        ]
        if told != ran and not any(one.effective()["c.d"].value is None for one in read.launches):
            wrong.append((text, ran, told))
        if not told and not read.ended:
            wrong.append((text, "no reason"))
    assert not wrong
