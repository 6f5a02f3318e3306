"""The README's pictures can be drawn from the real app."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from . import draw_screenshots


async def test_screenshots_are_drawn_from_the_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = {name: draw_screenshots.SHOTS[name] for name in ("verdict", "gauges")}
    monkeypatch.setattr(draw_screenshots, "SHOTS", some)
    drawn = await draw_screenshots.draw(tmp_path)
    assert [path.stem for path in drawn] == ["verdict", "gauges"]
    words = " ".join("".join(ElementTree.parse(drawn[0]).getroot().itertext()).replace("\xa0", " ").split())
    assert "Host RAM ran out during the actor update" in words
    assert str(Path.cwd()) not in words
