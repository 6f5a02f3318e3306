"""The user's own choices: what the file sets counts, what it gets wrong is told, the command line goes first."""

from pathlib import Path

import pytest

from advisor.cli import main
from advisor.config import TEMPLATE, choices_in_force, config_path, read_config
from tests.loops import each


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def write(text: str) -> None:
    path = config_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_without_a_file_everything_is_as_it_comes() -> None:
    config = read_config()
    assert (config.theme, config.margin, config.refresh, config.problems) == ("auto", 0.08, 1.0, ())
    assert {who for _, _, who in choices_in_force(config)} == {"as it comes"}


def test_the_template_changes_nothing_and_names_every_choice() -> None:
    write(TEMPLATE)
    assert read_config().given == ()
    write(TEMPLATE.replace("# theme", "theme").replace("# margin", "margin").replace("# key why_not", "key why_not"))
    assert read_config().given == ("theme", "margin", "key why_not")
    assert read_config().problems == ()


def test_what_the_file_sets_counts() -> None:
    write("theme = light\nascii = yes\nmouse=off # never\nmargin = 0.15\nrefresh = 2\nkey gauges = G\n")
    config = read_config()
    assert (config.theme, config.ascii, config.mouse, config.margin, config.refresh) == ("light", True, "off", 0.15, 2)
    assert config.keys == {"gauges": "G"}


@each(
    "line",
    [
        "theme = pink",
        "margin = 2",
        "margin = nan",
        "refresh = soon",
        "ascii = maybe",
        "colour = red",
        "theme",
        "theme =",
    ],
)
def test_a_line_that_cannot_be_used_is_told_with_its_place_and_changes_nothing(line: str) -> None:
    write(f"# mine\n{line}\n")
    config = read_config()
    assert len(config.problems) == 1
    assert f"{config.path}:2:" in config.problems[0]
    assert config.given == ()


def test_the_command_says_where_the_file_is_and_what_is_in_force(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config"]) == 0
    assert "not there yet" in capsys.readouterr().out
    assert main(["config", "--init"]) == 0
    assert config_path().read_text() == TEMPLATE
    assert main(["config", "--init"]) == 2
    write("margin = 0.2\n")
    capsys.readouterr()
    assert main(["config"]) == 0
    shown = capsys.readouterr().out
    assert str(config_path()) in shown
    assert ["margin", "0.2", "the file"] in [line.split(maxsplit=2) for line in shown.splitlines()]


def test_the_margin_of_the_file_counts_until_the_command_line_gives_another() -> None:
    from advisor.commands import app_parser
    from advisor.commands.requests import asked_from

    write("margin = 0.2\n")
    assert asked_from(app_parser().parse_args([])).margin == 0.2
    assert asked_from(app_parser().parse_args(["--margin", "0.05"])).margin == 0.05
