"""What depends on the outside is said to, and a script that stops without it is read as if it were given."""

from __future__ import annotations

import pytest

from tests.script.conftest import Read, values


@pytest.mark.parametrize(
    "check",
    [
        'if [ -z "${M}" ]; then\n  echo no\n  exit 1\nfi',
        '[ -z "$M" ] && exit 1',
        '[[ -n "$M" ]] || exit 1',
        'if [[ "$M" == "" ]]; then exit 1; fi',
    ],
)
def test_a_script_that_stops_without_a_variable_is_read_on(read: Read, check: str) -> None:
    (launch,) = read(f"M=${{M:-}}\n{check}\npython train.py --m $M --n 1\n").launches
    assert values(launch) == {"--m": None, "--n": "1"}
    assert "$M" in launch.effective()["--m"].reason


def test_a_check_of_a_default_without_a_variable_of_its_own_is_passed(read: Read) -> None:
    script = read('if [ -z "${BASE:-}" ]; then\nexit 1\nfi\npython train.py --n 1\n')
    assert values(script.launches[0]) == {"--n": "1"}


def test_a_branch_that_trains_and_exits_is_the_way_taken(read: Read) -> None:
    script = 'MODE=${MODE:-}\nif [ -z "$MODE" ]; then\npython train.py --n 1\nexit 0\nfi\npython train.py --n 2\n'
    assert [values(launch) for launch in read(script).launches] == [{"--n": "1"}]


def test_words_split_at_what_ifs_says(read: Read) -> None:
    script = (
        "a=(1 2 3)\nprintf -v F '[%s]' \"$(IFS=', '; echo \"${a[*]}\")\"\nIFS=,\nX=p,q,,r\n"
        "python train.py --f \"$F\" --x $X\nIFS=$'\\n'\nY=$'a b\\nc'\npython train.py --y $Y\nunset IFS\n"
        "python train.py --y $Y\n"
    )
    first, second, third = (values(launch) for launch in read(script).launches)
    assert first == {"--f": "[1,2,3]", "--x": ("p", "q", "", "r")}
    assert second == {"--y": ("a b", "c")}
    assert third == {"--y": ("a", "b", "c")}


def test_arguments_that_are_not_known_are_mentioned(read: Read) -> None:
    script = read('if [ "$CI" = "yes" ]; then E="--a"; else E="--b"; fi\npython train.py --n 1 $E\n')
    assert values(script.launches[0]) == {"--n": "1"}
    assert any("condition in line 1" in note for note in script.launches[0].notes)
