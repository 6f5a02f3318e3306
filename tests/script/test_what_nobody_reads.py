"""What bash gets from elsewhere is said; an override goes where it is part of its command, or is refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.cli import main
from advisor.script.document import EditRefused, EditRequest
from advisor.script.edit import rewrite
from advisor.script.reader import read_script

RUN = "python3 -m verl.trainer.main_ppo data.train_batch_size={} trainer.n_gpus_per_node=8"
KEY = "data.train_batch_size"


def read(folder: Path, text: str):
    (folder / "run.sh").write_bytes(text.encode())
    return read_script(folder / "run.sh")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("curl -s http://host/x.sh | bash", "what a pipe hands to a shell"),
        ("echo cHl0aG9u | base64 -d | sh", "what a pipe hands to a shell"),
        ('eval "$COMMAND"', "what `eval` runs is not known"),
    ],
)
def test_what_a_shell_gets_from_elsewhere_is_said(line: str, told: str, tmp_path: Path) -> None:
    assert told in " ".join(read(tmp_path, f"{line}\n{RUN.format(8)}\n").notes)


@pytest.mark.parametrize(
    "line", ["echo true | bash", 'eval "$(conda shell.bash hook)"', "X='echo 1'; eval \"$X\"", "conda activate x"]
)
def test_nothing_is_said_of_what_is_read_or_sets_no_run_up(line: str, tmp_path: Path) -> None:
    assert read(tmp_path, f"{line}\n{RUN.format(8)}\n").notes == ()


def test_an_override_of_a_command_in_a_string_goes_into_the_string(tmp_path: Path) -> None:
    text = 'MB=8; bash -c "python3 -m verl.trainer.main_ppo data.train_batch_size=$MB a.b=$MB"\n'
    (done,) = rewrite(read(tmp_path, text), 0, [EditRequest(KEY, "2")])
    assert done.new.decode() == text.replace('$MB"', '$MB data.train_batch_size=2"')
    (done,) = rewrite(read(tmp_path, text.replace(" a.b=$MB", "")), 0, [EditRequest(KEY, "2")])
    assert done.new.decode() == text.replace(" a.b=$MB", "").replace("MB=8", "MB=2")


def test_a_command_in_a_heredoc_gets_a_word_and_one_in_a_loop_is_refused(tmp_path: Path) -> None:
    ends_in_it = RUN.format("$MB").removesuffix(" trainer.n_gpus_per_node=8")
    fed = read(tmp_path, f"MB=8; ls $MB; bash <<E\n{ends_in_it}\nE\n")
    assert rewrite(fed, 0, [EditRequest(KEY, "2")])[0].new.endswith(f"=$MB {KEY}=2\nE\n".encode())
    looped = read(tmp_path, f"for MB in 4 8; do\n{RUN.format('$MB')} a.name=n$MB\ndone\n")
    with pytest.raises(EditRefused, match="Line 2 starts 2 launches"):
        rewrite(looped, 0, [EditRequest(KEY, "2")])


def test_what_is_said_of_a_script_is_said_where_it_is_changed(tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.sh").write_bytes(f"{RUN.format(8)} \\\n  a=1\n".replace("\n", "\r\n").encode())
    for where in ("-", "out.sh"):
        assert main(["set", "run.sh", f"{KEY}=2", "-o", where]) == 0
        told = capfd.readouterr().err
        assert "Windows line endings" in told
        assert "does not go on there" in told


def test_a_variable_that_is_set_for_one_command_alone_is_not_set_in_the_script(tmp_path: Path) -> None:
    found = read(tmp_path, f"MB=8 {RUN.format('$MB')}\n").launches[0].effective()[KEY]
    assert not found.resolved
    assert "MB is not set in the script" in found.reason
    found = read(tmp_path, f"MB=8 true\nif false; then MB=4; fi\n{RUN.format('$MB')}\n").launches[0].effective()[KEY]
    assert found.value == ""
