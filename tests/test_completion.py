"""completion: what each shell offers, asked in the shell itself."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.commands import COMMANDS
from advisor.commands.completion import options

SHELLS = ("bash", "zsh", "fish")


def script(shell: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "advisor", "completion", shell, *words], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def bash_script() -> str:
    return script("bash")


@pytest.fixture
def offered(tmp_path: Path, bash_script: str):
    """What bash offers for the last of the words, in a folder with `run.sh`, `my log.txt` and `folder`."""
    (tmp_path / "run.sh").touch()
    (tmp_path / "my log.txt").touch()
    (tmp_path / "folder").mkdir()

    def ask(*words: str) -> set[str]:
        line = " ".join(shlex.quote(word) for word in ("rl-oom-advisor", *words))
        asked = (
            f"{bash_script}\ncompopt() {{ :; }}\nCOMP_WORDS=({line})\nCOMP_CWORD={len(words)}\n"
            '_rl_oom_advisor\nprintf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(["bash", "--norc", "-c", asked], capture_output=True, text=True, cwd=tmp_path, check=True)
        assert done.stderr == ""
        return {word for word in done.stdout.splitlines() if word}

    return ask


def test_the_first_word_may_be_any_command_or_file(offered):
    assert offered("") == {*COMMANDS, "run.sh", "my log.txt", "folder"}
    assert offered("s") == {"scan", "settings", "set", "share"}
    assert offered("ru") == {"run.sh"}


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_option_that_the_parser_takes_is_offered_and_no_other(offered, command):
    own = {name for option in options() if option.command == command for name in option.names}
    assert offered(*([command] if command else []), "-") == own
    assert {"-h", "--lang"} < own


def test_values_are_those_of_the_command(offered):
    assert offered("diagnose", "--format", "") == {"text", "markdown", "html", "json"}
    assert offered("scan", "--format", "j") == {"json"}
    assert offered("settings", "--format", "=", "j") == {"json", "jsonl"}
    assert offered("settings", "--format", "=") == {"text", "json", "jsonl", "yaml"}
    assert offered("run.sh", "--lang", "") == {"auto", "en", "zh"}
    assert offered("completion", "") >= set(SHELLS)


def test_files_follow_the_options_that_take_files_and_nothing_those_that_take_a_number(offered):
    assert offered("diagnose", "--log", "") == set()  # empty: bash offers files by itself
    assert offered("diagnose", "--gpus", "") == set()
    assert offered("diagnose", "run.sh", "my") == {"my log.txt"}


def test_what_stands_behind_two_dashes_is_left_to_the_other_command(offered):
    assert offered("watch", "--", "pyt") == set()
    assert offered("watch", "--", "bash", "--") == set()


def test_bash_completes_a_line_that_somebody_types(tmp_path, bash_script):
    typed = subprocess.run(
        [sys.executable, "-c", _TYPIST, str(tmp_path)],
        input=bash_script,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "rl-oom-advisor diagnose --format markdown" in typed.stdout


_TYPIST = """
import os, pty, select, sys, time
folder = sys.argv[1]
with open(os.path.join(folder, "rc"), "w") as file:
    file.write(sys.stdin.read() + "\\nPS1='> '\\nbind 'set enable-bracketed-paste off'\\n")
pid, end = pty.fork()
if pid == 0:
    os.environ["TERM"] = "dumb"
    os.execvp("bash", ["bash", "--rcfile", os.path.join(folder, "rc"), "-i"])
def until(words, seconds=20):
    seen, last = b"", time.monotonic() + seconds
    while words not in seen and time.monotonic() < last:
        if select.select([end], [], [], 0.2)[0]:
            seen += os.read(end, 4096)
    return seen
until(b"> ")
os.write(end, b"rl-oom-advisor diag\\t--form\\tm\\t")
print(until(b"markdown").decode(errors="replace"))
os.write(end, b"\\x15exit\\n")
"""


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_itself_finds_no_fault_in_the_script(shell, tmp_path):
    found = shutil.which(shell)
    if not found:
        pytest.skip(f"there is no {shell} here")
    file = tmp_path / "script"
    file.write_text(script(shell), encoding="utf-8")
    check = subprocess.run([found, "-n", str(file)], capture_output=True, text=True, check=False)
    assert (check.returncode, check.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_descriptions_are_said_in_the_language_asked_for(shell):
    said = script(shell, "--lang", "zh")
    assert "估算各阶段的内存" in said
    assert "the memory ledger" not in said
