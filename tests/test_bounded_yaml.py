"""A few bytes of YAML can ask for any depth and any number of values: they are counted before anything is made."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from advisor.bounded_yaml import UnboundedYamlError, check_bounds
from advisor.cli import main
from tests.loops import each

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(12)
)
BOMBS = {
    "open brackets": "a: " + "[" * 100_000,
    "a list in a list": "- " * 100_000 + "x",
    "aliases of aliases": LAUGHS,
    "merged aliases": LAUGHS.replace("[*", "{<<: [*").replace("*]", "*]}").replace("]\n", "]}\n").replace("x]}", "x]"),
    "an alias in what it stands for": "framework: x\na: &a [*a]\n",
}


@each("name", BOMBS)
def test_a_bomb_is_refused_with_its_line(name):
    with pytest.raises((UnboundedYamlError, yaml.YAMLError), match="line"):
        check_bounds(BOMBS[name])


@pytest.mark.parametrize("name", BOMBS)
def test_every_door_refuses_a_bomb_in_one_sentence(name, tmp_path: Path, capsys):
    own = tmp_path / "own"
    own.mkdir()
    for path in (tmp_path / "run.yaml", own / "remedies.yaml"):
        path.write_text(BOMBS[name])
    assert main(["settings", str(tmp_path / "run.yaml")]) == 2
    assert main(["estimate", "--run", str(tmp_path / "run.yaml")]) == 2
    assert main(["explain", "easyr1", "--knowledge", str(own)]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if line]
    assert all(str(tmp_path) in line for line in said)
    assert len(said) == 3


@given(st.recursive(st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=4), max_leaves=30))
def test_what_a_config_file_holds_is_let_through(data):
    check_bounds(yaml.safe_dump({"key": data, "again": data}))


def test_the_values_of_a_file_can_be_bounded_too():
    check_bounds("[1, 2, 3]", most=4)
    with pytest.raises(UnboundedYamlError, match="more values"):
        check_bounds("[1, 2, 3, 4]", most=4)
