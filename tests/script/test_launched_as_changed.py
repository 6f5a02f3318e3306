"""A change of a shell script, executed by bash before and after: every launch gets what it got, but for the change."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from advisor.script.document import EditRefused, EditRequest
from advisor.script.edit import rewrite
from advisor.script.reader import read_script

RUN = "python3 -m verl.trainer.main_ppo"
KEY = "data.train_batch_size"
LAUNCH = f"{RUN} {KEY}=$MB data.max_prompt_length=3\n"
STUB = '#!/bin/bash\nprintf "%s\\0" "$@" >> "$SEEN"; printf "\\n\\0" >> "$SEEN"\n'
FILES = {
    "env": "MB=8\nX=1\n",
    "env.sh": "MB=4\n",
    "sub/env.sh": "MB=8\n",
    "sub/run.sh": "source ./env.sh\n" + LAUNCH,
    "args": f"{KEY}=8\n",
}
SET = {
    "eval of a file": f'MB=4\neval "$(cat env)"\n{LAUNCH}',
    "eval of a filter": f"MB=4\neval \"$(sed 's/x/y/' env)\"\n{LAUNCH}",
    "eval, and a default": f'eval "$(cat env)"\n{RUN} {KEY}=${{MB:-4}}\n',
    "source of a command": f"MB=4\nsource <(echo MB=8)\n{LAUNCH}",
    "source of what is not known": f"MB=4\nsource <(sed 's/^/export /' env)\n{LAUNCH}",
    "source of a here-document": f"MB=4\n. /dev/stdin <<E\nMB=8\nE\n{LAUNCH}",
    "export of a file": f"MB=4\nexport $(cat env | xargs)\n{LAUNCH}",
    "export of lines": f'MB=4\nwhile IFS== read -r k v; do export "$k=$v"; done < env\n{LAUNCH}',
    "printf into lines": f'MB=4\nwhile IFS== read -r k v; do printf -v "$k" %s "$v"; done < env\n{LAUNCH}',
    "read into a name": f'MB=4\nN=$(echo MB | cat)\nread "$N" <<< 8\n{LAUNCH}',
    "arguments of a file behind": f"{RUN} {KEY}=4 $(<args)\n",
    "a trap by a function": f"MB=4\nf() {{ MB=8; }}\ntrap f DEBUG\n{LAUNCH}",
    "a trap, and its function behind": f"MB=4\ntrap f USR1\nf() {{ MB=8; }}\nkill -USR1 $$\n{LAUNCH}",
    "an alias": f"MB=8\nshopt -s expand_aliases\nalias a='MB=4'\na\n{LAUNCH}",
    "beside the script": f"MB=8\nMB=4 &\nwait\n{LAUNCH}",
    "a group beside the script": f"MB=8\n{{ MB=4; }} &\nwait\n{LAUNCH}",
    "break of two loops": f"MB=8\nfor a in 1; do for b in 1; do break 2; done; MB=4; done\n{LAUNCH}",
    "continue of two loops": f"MB=8\nfor a in 1 2; do for b in 1; do continue 2; done; MB=4; done\n{LAUNCH}",
    "CDPATH": f"mkdir -p a/sub; cp sub/env.sh a/sub\nCDPATH=a\ncd sub >/dev/null\nsource ./env.sh\n{LAUNCH}",
    "a folder, if it is there": f"[ -d sub ] && cd sub\nsource ./env.sh\n{LAUNCH}",
    "a file by PATH": f"PATH=$PWD/sub:$PATH\nsource env.sh\n{LAUNCH}",
    "cd as a function": f"cd() {{ builtin cd sub; }}\ncd x\nsource ./env.sh\n{LAUNCH}",
    "a file changed before": f"sed -i s/4/8/ env.sh\nsource ./env.sh\n{LAUNCH}",
    "a file written before": f"cat env > env.sh\nsource ./env.sh\n{LAUNCH}",
    "a written file, changed": f"cat > gen.env <<E\nMB=4\nE\nsed -i s/4/8/ gen.env\nsource ./gen.env\n{LAUNCH}",
    "a file that is read": f"MB=$(< n)\n{LAUNCH}",
}
"""The change arrives, whatever was told of the value before."""
RETURNS = {
    "at the end": f"MB=8\r\n{RUN} data.max_prompt_length=3 {KEY}=$MB\r\n",
    "lines that go on": f"{RUN} \\\r\n  data.max_prompt_length=3 \\\r\n  {KEY}=8\r\n",
    "a mark, and a variable": f"\ufeffMB=8\n{LAUNCH}",
    "a mark, and the launch": f"\ufeff{RUN} {KEY}=8 data.max_prompt_length=3\n",
}
"""Bytes of other systems' editors: bash does not run what was meant before the change, and does behind it."""

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash says what is right")


def launches(folder: Path) -> list[list[str]]:
    """The arguments of every python3 that the script starts."""
    seen, bin_folder = folder.parent / "seen", folder.parent / "bin"
    seen.write_bytes(b"")
    bin_folder.mkdir(exist_ok=True)
    (bin_folder / "python3").write_text(STUB)
    (bin_folder / "python3").chmod(0o755)
    environment = {"PATH": f"{bin_folder}:/usr/bin:/bin", "SEEN": str(seen)}
    subprocess.run(["bash", "run.sh"], cwd=folder, env=environment, capture_output=True, stdin=subprocess.DEVNULL)
    return [text.split("\0")[:-1] for text in seen.read_text().split("\n\0")[:-1]]


def made(tmp_path: Path, name: str, text: str) -> Path:
    folder = tmp_path / name
    for file, content in {**FILES, "n": "8\n", "run.sh": text}.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(content, newline="")
    return folder


def changed(folder: Path, launch: int = 0) -> list[list[str]]:
    for done in rewrite(read_script(folder / "run.sh"), launch, [EditRequest(KEY, "2")]):
        done.document.path.write_bytes(done.new)
    return launches(folder)


def effective(arguments: list[str]) -> dict[str, str]:
    return dict(text.split("=", 1) for text in arguments if "=" in text)


@pytest.mark.parametrize("name", SET)
def test_a_change_arrives_and_moves_nothing_else(name: str, tmp_path: Path) -> None:
    (before,) = launches(made(tmp_path, "before", SET[name]))
    (after,) = changed(made(tmp_path, "after", SET[name]))
    assert effective(after) == {**effective(before), KEY: "2"}


@pytest.mark.parametrize("name", RETURNS)
def test_what_other_editors_put_into_a_script_is_taken_out_with_a_change(name: str, tmp_path: Path) -> None:
    (after,) = changed(made(tmp_path, "after", RETURNS[name]))
    assert effective(after) == {KEY: "2", "data.max_prompt_length": "3"}


def test_a_folder_that_a_wrapper_goes_to_is_followed(tmp_path: Path) -> None:
    folder = made(tmp_path, "before", "env -C sub bash run.sh\n")
    (found,) = read_script(folder / "run.sh").launches
    assert effective(launches(folder)[0])[KEY] == found.effective()[KEY].value == "8"


def test_arguments_that_a_filler_puts_behind_are_refused(tmp_path: Path) -> None:
    text = f"printf '3\\n4\\n' | xargs -n1 {RUN} {KEY}=8\n"
    with pytest.raises(EditRefused, match="xargs puts what it reads behind the last argument"):
        changed(made(tmp_path, "after", text))


@pytest.mark.parametrize("value", ["8\vx", "8\x1b[0m", "\u202e8"])
def test_a_value_that_cannot_be_shown_whole_is_not_told(value: str, tmp_path: Path) -> None:
    folder = made(tmp_path, "before", f"{RUN} {KEY}='{value}'\n")
    setting = read_script(folder / "run.sh").launches[0].effective()[KEY]
    assert (setting.value, setting.resolved) == (None, False)
    assert changed(folder)[0][-1] == f"{KEY}=2"


def test_what_may_have_set_a_variable_is_said(tmp_path: Path) -> None:
    notes = {name: read_script(made(tmp_path, name.replace(" ", ""), SET[name]) / "run.sh").notes for name in SET}
    assert any("What `export` sets is not known" in note for note in notes["export of a file"])
    assert any(
        "What ./env.sh holds when the script runs it is not certain" in n for n in notes["a file changed before"]
    )
    assert any("what `eval` runs is not known" in note for note in notes["eval of a file"])


def test_a_config_that_a_command_may_have_written_is_said_and_not_changed(tmp_path: Path) -> None:
    script = "sed -i s/2/3/ ds.json\ndeepspeed train_sft.py --deepspeed ds.json\n"
    folder = made(tmp_path, "before", script)
    (folder / "ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    read = read_script(folder / "run.sh")
    assert any("may write ds.json" in note for note in read.launches[0].notes)
    with pytest.raises(EditRefused, match=r"may write ds.json"):
        rewrite(read, 0, [EditRequest("deepspeed:zero_optimization.stage", "1")])
