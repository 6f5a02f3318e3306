"""Which language is spoken: as given, as configured, by the locale; English where Chinese cannot be shown."""

from pathlib import Path

import pytest

from advisor.cli import main
from advisor.language import CHINESE, ENGLISH, choose, say, speak, unsaid
from tests.loops import each

CHINESE_HELP, ENGLISH_HELP = "用法：", "usage: "


@each(
    ("environ", "language"),
    [
        ({"LANG": "zh_CN.UTF-8"}, CHINESE),
        ({"LANG": "zh_SG.utf8"}, CHINESE),
        ({"LC_ALL": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, CHINESE),
        ({"LC_MESSAGES": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, ENGLISH),
        ({"LANGUAGE": "zh_CN:en", "LANG": "en_US.UTF-8"}, CHINESE),
        ({"LANGUAGE": "zh_CN:en", "LANG": "C"}, ENGLISH),
        ({"LANG": "zh_TW.UTF-8"}, ENGLISH),
        ({"LANG": "de_DE.UTF-8"}, ENGLISH),
        ({}, ENGLISH),
    ],
)
def test_the_locale_chooses_as_gettext_would(environ: dict[str, str], language: str) -> None:
    assert choose("auto", environ) == language


def test_what_is_given_counts_more_than_the_locale() -> None:
    assert choose("en", {"LANG": "zh_CN.UTF-8"}) == ENGLISH
    assert choose("zh", {"LANG": "en_US.UTF-8"}) == CHINESE


@pytest.mark.parametrize(
    ("words", "config", "term", "told"),
    [
        (["--lang", "zh", "--help"], "", "xterm", CHINESE_HELP),
        (["--lang=zh", "--help"], "", "xterm", CHINESE_HELP),
        (["scan", "--lang", "zh", "--help"], "", "xterm", CHINESE_HELP),
        (["--help"], "language = zh\n", "xterm", CHINESE_HELP),
        (["--lang", "en", "--help"], "language = zh\n", "xterm", ENGLISH_HELP),
        (["--lang", "zh", "--ascii", "--help"], "", "xterm", ENGLISH_HELP),
        (["--lang", "zh", "--help"], "ascii = yes\n", "xterm", ENGLISH_HELP),
        (["--help"], "", "xterm", ENGLISH_HELP),
    ],
)
def test_the_help_is_in_the_language_asked_for(
    words: list[str],
    config: str,
    term: str,
    told: str,
    nobodys_settings: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("LC_ALL", "LC_MESSAGES", "LANGUAGE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("TERM", term)
    if config:
        (tmp_path / "rl-oom-advisor").mkdir()
        (tmp_path / "rl-oom-advisor" / "config").write_text(config)
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith(told)


def test_what_the_command_behind_watch_is_given_is_not_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["watch", "--help", "--", "bash", "--lang", "zh"])
    assert capsys.readouterr().out.startswith(ENGLISH_HELP)


def test_a_text_that_no_catalogue_has_stays_english_and_is_known() -> None:
    speak(CHINESE)
    assert say("nobody ever said {this}", this=1) == "nobody ever said 1"
    assert unsaid() == {"nobody ever said {this}"}


def test_what_fills_a_field_is_never_a_template_itself() -> None:
    hostile = "{0.__class__} {say} {"
    for language in (ENGLISH, CHINESE):
        speak(language)
        assert hostile in say("{count} lines read", count=hostile)


def test_there_is_no_third_language() -> None:
    with pytest.raises(ValueError, match="fr"):
        speak("fr")
