"""Shell whose value bash decides by more than the assignment that stands there: exact, or not known and said so."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from advisor.script.document import EditRefused, EditRequest
from advisor.script.edit import rewrite
from advisor.script.reader import read_script
from advisor.script.renamed import name_itself

LAUNCH = "python3 -m verl.trainer.main_ppo data.train_batch_size=$MB\n"
SCRIPTS = {
    "readonly": "readonly MB=8\nMB=4\n",
    "declare -r": "declare -r MB=8\nexport MB=4\n",
    "made readonly later": "MB=8\nreadonly MB\nunset MB\nread MB <<< 4\n",
    "readonly, in a loop": "readonly MB=8\nfor MB in 2 4; do :; done\n",
    "lastpipe": "MB=4\nshopt -s lastpipe\necho 8 | read MB\n",
    "no lastpipe": "MB=8\necho 4 | read MB\n",
    "a trap before every command": "MB=4\ntrap 'MB=8' DEBUG\n",
    "a trap, and a value behind it": "trap 'MB=8' DEBUG\nMB=4\n",
    "lower letters": "declare -l MB=ABC\n",
    "upper letters": "declare -u MB\nMB=abc\n",
    "letters that stay": "declare -l MB=abc\n",
    "extended pattern": "shopt -s extglob\nX=aa8\nMB=${X##+(a)}\n",
    "extended pattern, replaced": "shopt -s extglob\nX=aa8\nMB=${X//+(a)/b}\n",
}


@pytest.fixture
def value(tmp_path: Path):
    def read(text: str) -> str | None:
        (tmp_path / "run.sh").write_text(text + LAUNCH)
        (setting,) = read_script(tmp_path / "run.sh").launches[0].settings
        return str(setting.value) if setting.resolved else None

    return read


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash says what is right")
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_value_that_is_told_is_the_one_of_bash(name: str, value, tmp_path: Path) -> None:
    echoed = SCRIPTS[name] + 'echo "$MB"\n'
    script = tmp_path / "plain.sh"
    script.write_text(echoed)
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True, cwd=tmp_path)
    assert value(SCRIPTS[name]) in (None, done.stdout.strip())


@pytest.mark.parametrize("name", ["readonly", "declare -r", "made readonly later", "no lastpipe", "letters that stay"])
def test_what_can_be_followed_is_known(name: str, value) -> None:
    assert value(SCRIPTS[name]) == ("abc" if name == "letters that stay" else "8")


def changed(folder: Path, text: str) -> bytes:
    (folder / "run.sh").write_text(text)
    script = read_script(folder / "run.sh")
    return rewrite(script, 0, [EditRequest("data.train_batch_size", "2")])[0].new


def test_a_readonly_value_is_changed_where_it_is_made(tmp_path: Path) -> None:
    assert changed(tmp_path, SCRIPTS["readonly"] + LAUNCH).startswith(b"readonly MB=2\nMB=4\n")


def test_an_override_that_xargs_would_win_over_is_refused(tmp_path: Path) -> None:
    behind = "echo data.train_batch_size=8 | xargs python3 -m verl.trainer.main_ppo data.max_prompt_length=3\n"
    with pytest.raises(EditRefused, match="xargs puts what it reads behind the last argument"):
        changed(tmp_path, behind)
    placed = "echo 3 | xargs -I{} python3 -m verl.trainer.main_ppo data.max_prompt_length={}\n"
    assert changed(tmp_path, placed).rstrip().endswith(b"data.train_batch_size=2")


NAMED_AFTER_IT = {
    "$0": 'E=$(basename "$0" .sh)\npython3 -m verl.trainer.main_ppo --config-name "$E" data.train_batch_size=4\n',
    "cut off": "python3 -m verl.trainer.main_ppo --config-name ${0%.*} data.train_batch_size=4\n",
    "BASH_SOURCE": "exec python3 -m verl.trainer.main_ppo d.x=`basename ${BASH_SOURCE[0]}` data.train_batch_size=4\n",
    "an operator": 'E=${0##*/}\npython3 -m verl.trainer.main_ppo --config-name "${E%.sh}" data.train_batch_size=4\n',
    "a filter": 'E=$(echo $0 | sed s/.sh//)\npython3 -m verl.trainer.main_ppo d.x="$E" data.train_batch_size=4\n',
}


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash says what is right")
@pytest.mark.parametrize("name", NAMED_AFTER_IT)
def test_a_copy_asks_for_what_the_script_asks_for_by_its_own_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(NAMED_AFTER_IT[name])
    rewrites = rewrite(read_script(tmp_path / "run.sh"), 0, [EditRequest("data.train_batch_size", "2")])
    copied, told = name_itself(rewrites[0], tmp_path / "run.fits.sh")
    (tmp_path / "run.fits.sh").write_bytes(copied)
    (tmp_path / "python3").write_text('#!/bin/bash\necho "$*"\n')
    (tmp_path / "python3").chmod(0o755)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "run.sh").write_bytes(copied)  # it may be put in the script's place
    (tmp_path / "sub" / "python3").symlink_to(tmp_path / "python3")
    ran = [
        subprocess.run(
            ["bash", one], capture_output=True, text=True, cwd=tmp_path / folder, env={"PATH": f".:{os.defpath}"}
        )
        for one, folder in (("run.sh", ""), ("run.fits.sh", ""), ("run.sh", "sub"))
    ]
    assert bool(told) == (name == "a filter")
    assert {one.stdout.replace("=4", "=2") for one in ran[:: 1 + bool(told)]} == {ran[2].stdout}
