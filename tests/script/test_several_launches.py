"""Scripts with several launches: what is asked for one of them stays with it, what is for all reaches all."""

from __future__ import annotations

import pytest

from advisor.script.document import EditRefused, EditRequest
from advisor.script.edit import rewrite
from tests.script.conftest import Edited, Read

TWO = "export A=1\npython train.py --x 1\npython train_more.py --x 2\n"


def variable(name: str, value: str, everywhere: bool = False) -> EditRequest:
    return EditRequest(name, value, kind="environment", everywhere=everywhere)


@pytest.mark.parametrize("name", ["A", "B"])
def test_a_variable_for_one_launch_stands_in_front_of_it(edited: Edited, name: str) -> None:
    for launch, line in enumerate(["python train.py", "python train_more.py"]):
        new = edited(TWO, variable(name, "a b"), launch=launch)
        assert new == TWO.replace(line, f"{name}='a b' {line}")


def test_a_variable_for_every_launch_is_exported_once(edited: Edited) -> None:
    assert edited(TWO, variable("A", "5", everywhere=True)) == TWO.replace("A=1", "A=5")
    assert edited(TWO, variable("B", "5", everywhere=True)) == TWO.replace(
        "python train.py", "export B=5\npython train.py"
    )


def test_rounds_of_a_loop_change_together_or_not_at_all(read: Read, edited: Edited) -> None:
    script = "for lr in 1 2; do\npython train.py --lr $lr --bs 4\ndone\n"
    assert edited(script, EditRequest("--bs", "2")) == script.replace("--bs 4", "--bs 2")
    assert len(read(script).launches) == 2


def test_a_command_in_a_string_gets_its_override_before_the_closing_quote(read: Read, edited: Edited) -> None:
    script = (
        "read -r -d '' CMD <<EOF\ntrain.py \\\n  --lr $(id)\nEOF\nsrun bash -c \"cd /x; torchrun ${CMD}\" &>> log\n"
    )
    assert edited(script, EditRequest("--bs", "2")) == script.replace('${CMD}"', '${CMD} --bs 2"')
    with pytest.raises(EditRefused, match="no safe place"):
        rewrite(read(script), 0, [EditRequest("--name", "a b")])
