"""The README's pictures can be drawn from the real app."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from . import draw_screenshots


async def test_screenshots_are_drawn_from_the_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = {name: draw_screenshots.SHOTS[name] for name in ("verdict", "gauges")}
    monkeypatch.setattr(draw_screenshots, "SHOTS", some)
    monkeypatch.setattr(draw_screenshots, "IN_CHINESE", {"verdict": draw_screenshots.IN_CHINESE["verdict"]})
    drawn = await draw_screenshots.draw(tmp_path)
    assert [path.stem for path in drawn] == ["verdict", "gauges", "verdict.zh"]
    english, chinese = _words(drawn[0]), _words(drawn[2])
    assert "Host RAM ran out during the actor update" in english
    assert str(Path.cwd()) not in english
    assert "主机内存" in chinese
    assert "Host RAM" not in chinese


def _words(picture: Path) -> str:
    return " ".join("".join(ElementTree.parse(picture).getroot().itertext()).replace("\xa0", " ").split())
