"""What comes out of the door of bash/: commands, what every literal has a part in, and notes."""

from __future__ import annotations

import pytest

from advisor.bash.words import Unterminated
from tests.bash.conftest import Follow, words


def test_every_byte_of_a_word_is_traced_to_the_text(follow: Follow) -> None:
    text = "BS=16\npython train.py --batch=$BS\n"
    (piece,) = (piece for piece in follow(text).commands[-1].fields[2].pieces if piece.text == b"16")
    assert text.encode()[piece.place.start : piece.place.end] == b"16"


def test_a_computed_word_names_the_literals_that_it_rests_on(follow: Follow) -> None:
    text = "A=2; B=3\npython train.py --n=$((A * B))\n"
    (piece,) = (piece for piece in follow(text).commands[-1].fields[2].pieces if piece.text == b"6")
    assert piece.place is None
    assert {text[place.start : place.end] for place in piece.deps} == {"2", "3", "A * B"}


def test_uses_name_every_command_that_a_literal_has_a_part_in(follow: Follow) -> None:
    text = "LR=1e-6\npython a.py --lr $LR\npython b.py --lr $LR\n"
    followed = follow(text)
    at = text.index("1e-6")
    assert [(use.number, use.field) for use in followed.uses if use.place.start == at] == [(0, 3), (1, 3)]


def test_a_command_finds_what_is_exported_and_what_stands_before_it(follow: Follow) -> None:
    (command,) = follow("export A=1; B=2; C=3 python train.py\n").commands
    found = {name: b"".join(piece.text for piece in value) for name, value in command.environment.items()}
    assert found == {b"A": b"1", b"C": b"3"}
    assert command.prefixes == {b"C"}


def test_files_that_it_sources_and_runs_come_from_the_caller(follow: Follow) -> None:
    files = {b"env.sh": "BS=4\n", b"train.sh": "python train.py --bs $1\n"}
    followed = follow("source env.sh\nbash train.sh $BS\n", files=files)
    assert words(followed) == ["python", "train.py", "--bs", "4"]
    assert not followed.notes


def test_a_file_that_is_not_there_is_noted(follow: Follow) -> None:
    (note,) = follow("source gone.sh\npython train.py\n").notes
    assert "gone.sh" in note


def test_arguments_that_were_not_given_are_not_known(follow: Follow) -> None:
    assert words(follow("python train.py $1 ${2:-x}\n")) == ["python", "train.py", None, "x"]
    assert words(follow("python train.py $1 ${2:-x}\n", b"a", b"b")) == ["python", "train.py", "a", "b"]


def test_a_quote_that_never_closes_is_refused_with_its_byte(follow: Follow) -> None:
    with pytest.raises(Unterminated) as raised:
        follow("python train.py 'x\n")
    assert raised.value.at == len("python train.py ")


def test_a_script_of_too_much_work_is_left_where_it_is_too_much(follow: Follow) -> None:
    followed = follow("for a in {1..200}; do for b in {1..200}; do : $a $b; done; done\npython train.py\n")
    assert not followed.whole
    assert "line 1" in followed.notes[-1]
