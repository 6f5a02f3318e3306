"""The README's pictures can be drawn from the real app."""

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from . import draw_screenshots, draw_session


async def test_screenshots_are_drawn_from_the_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = {name: draw_screenshots.SHOTS[name] for name in ("verdict", "gauges")}
    monkeypatch.setattr(draw_screenshots, "SHOTS", some)
    monkeypatch.setattr(draw_screenshots, "IN_CHINESE", {"verdict": draw_screenshots.IN_CHINESE["verdict"]})
    npu = {"gauges-ascend": draw_screenshots.of_vendors()["gauges-ascend"]}
    monkeypatch.setattr(draw_screenshots, "of_vendors", lambda: npu)
    drawn = await draw_screenshots.draw(tmp_path)
    assert [path.stem for path in drawn] == ["verdict", "gauges", "verdict.zh", "gauges-ascend"]
    assert "Ascend 910B3" in _words(drawn[3])
    english, chinese = _words(drawn[0]), _words(drawn[2])
    assert "Host RAM ran out during the actor update" in english
    assert str(Path.cwd()) not in english
    assert "主机内存" in chinese
    assert "Host RAM" not in chinese


def _words(picture: Path) -> str:
    return " ".join("".join(ElementTree.parse(picture).getroot().itertext()).replace("\xa0", " ").split())


async def test_the_moving_picture_shows_the_app_as_it_is() -> None:
    played = await draw_session.played()
    assert len(played) == len(draw_session.SCENES)
    for drawing, words in played:
        assert draw_session.words_in(drawing).endswith("".join(words.split())), "the drawing has the screen's words"
    kept = draw_session.FILE.read_text(encoding="utf-8")
    told = "it is drawn otherwise now: python -m tests.tui.draw_session --write"
    assert draw_session.words_in(kept) == draw_session.words_in(draw_session.moving([one for one, _ in played])), told


def test_one_scene_is_seen_at_a_time_and_all_of_them_in_turn() -> None:
    kept = draw_session.FILE.read_text(encoding="utf-8")
    assert len(ElementTree.fromstring(kept).findall("{http://www.w3.org/2000/svg}g")) == len(draw_session.SCENES)
    times = [
        (float(shown), float(hidden))
        for shown, hidden in re.findall(r"([\d.]+)% \{ visibility: visible \} ([\d.]+)% \{", kept)
    ]
    assert times[0][0] == 0
    assert times[-1][1] == 100
    assert all(before[1] == after[0] for before, after in itertools.pairwise(times))


def test_the_moving_picture_asks_nothing_of_the_network() -> None:
    kept = draw_session.FILE.read_text(encoding="utf-8")
    assert not re.findall(r"(?:href|src|url)\s*[=(:]\s*[\"']?https?:", kept)
