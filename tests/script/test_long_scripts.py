"""Scripts of five megabytes are answered: to their end where that is quick, else with the line that was reached."""

from __future__ import annotations

import contextlib
import time

import pytest

from advisor.script.document import EditRefused, EditRequest, ScriptError
from advisor.script.edit import rewrite
from tests.heavy import sampled
from tests.script.conftest import Read, values

SIZE = 5_000_000
LAUNCH = b"python3 -m verl.trainer.main_ppo a.b=1 \\\n  c.d=2\n"


def filled(unit: bytes) -> bytes:
    return unit * (SIZE // len(unit))


@pytest.mark.parametrize(
    "padding",
    sampled([filled(b"# a comment line\n"), b"cat <<EOF\n" + filled(b"text $A here\n") + b"EOF\n"], kept=1),
    ids=["comments", "a heredoc"],
)
def test_a_launch_below_five_megabytes_of_nothing_is_found(read: Read, padding: bytes) -> None:
    script = read(b"#!/bin/bash\n" + padding + LAUNCH)
    assert [values(launch) for launch in script.launches] == [{"a.b": "1", "c.d": "2"}]
    assert not script.notes


WORK = {
    "launches": (b"", LAUNCH, b""),
    "conditions": (LAUNCH, b'if [ -z "$A" ]; then B=1; else B=2; fi\n', b""),
    "one command": (b"python3 train.py ", b"--a 1 ", b""),
    "one word": (b'A="', b'x"$B"y', b'"\n'),
    "brackets": (b"(" * (SIZE // 2), b"", b")" * (SIZE // 2)),
    "pipes": (b"cat", b" | cat", b""),
    "redirections": (b"echo 1", b" > x", b""),
    "dollars": (b'A="', b"$A", b'"\n'),
    "semicolons": (b"", b"A=1;", b""),
}
"""What stands before five megabytes of it, and behind."""


@pytest.mark.parametrize("name", sampled(WORK, kept=1))
def test_five_megabytes_of_work_end_early_and_say_where(read: Read, name: str) -> None:
    before, unit, behind = WORK[name]
    script = read(before + (filled(unit) if unit else b"") + behind)
    assert any("nothing below line" in note for note in script.notes)
    for launch in script.launches[:1]:
        assert values(launch) == {"a.b": "1", "c.d": "2"}
        with pytest.raises(EditRefused, match="too long"):
            rewrite(script, 0, [EditRequest("a.b", "2")])


@pytest.mark.parametrize("unit", sampled([LAUNCH, b"A=$B\n", b"a=(", b"))", b"<<E\n", b"f() { g; }\n"], kept=(0, 3)))
def test_twice_the_text_takes_no_more_than_a_little_over_twice_the_time(read: Read, unit: bytes) -> None:
    """Compared with each other, because a loaded machine is slow in both; a second is what the grammar may take."""
    seconds = []
    for size in (8_000, 16_000):
        started = time.process_time()
        with contextlib.suppress(ScriptError):
            read(unit * (size // len(unit)))
        seconds.append(time.process_time() - started)
    assert seconds[1] < 4 * seconds[0] + 1.5


@pytest.mark.parametrize(
    "text",
    [
        "A=x\n" + "A=$A$A\n" * 60,
        'a=(1)\nfor i in {1..40}; do a=("${a[@]}" "${a[@]}"); done\n',
        "f() { f; f; }\nf\n",
        ":(){ :|:& };:\n",
        "x=$((9**9**9)); y=$((1<<1000000))\n",
        "for ((i=0;i<1000000000;i++)); do x=$x$i; done\n",
        "while true; do x=$x.; done\n",
        "for i in {1..100000000}; do :; done\n",
        "for i in $(seq 1 1000000000); do :; done\n",
        "echo {1..999}{1..999}{1..999}\n",
        "x=$(printf '%099999999d' 1)\n",
        "x=" + "a" * 40 + "\ny=$(echo $x! | sed -E 's/(a+)+$/x/')\n[[ $x! =~ ^(a+)+$ ]] && z=1\n",
        "a[1000000000]=1; a[-5]=2\n",
        "source run.sh\nbash ./run.sh\n",
    ],
)
def test_a_bomb_goes_off_in_a_moment(read: Read, text: str) -> None:
    started = time.process_time()
    script = read(text + "python train.py --n 1\n")
    assert time.process_time() - started < 3
    assert script.launches or script.notes


def test_a_statement_that_the_end_cuts_off_is_not_taken_for_whole(read: Read) -> None:
    opened = b"if false; then\n" + LAUNCH + filled(b"A=$((1)); B=(); C=$(x)\n") + b"fi\n"
    script = read(opened)
    assert script.launches == ()
    assert script.notes


def test_a_file_beyond_ten_megabytes_is_refused(read: Read) -> None:
    with pytest.raises(ScriptError, match="at most"):
        read(filled(b"#\n") * 3)
