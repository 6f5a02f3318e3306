"""docs/keys.md, from the bindings: `python -m tests.tui.keys_page` prints it, `--write` writes it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from advisor.language import ENGLISH, speak
from advisor.tui.keys import Hint, hints
from advisor.tui.page import Page
from advisor.tui.screen import OTHER_PANE_DOES, BaseScreen, keys_of_every_screen, load_screens

FILE = Path(__file__).resolve().parents[2] / "docs" / "keys.md"
FIRST = [
    "Which run died?",
    "Files",
    "The machine",
    "The run",
    "The verdict",
    "A question",
    "The plan",
    "The diff",
    "Saving",
    "Written",
]
"""The screens of a session, in their order; those that are looked at in between follow by name."""
HEAD = """\
# Keys

Written by `python -m tests.tui.keys_page --write` from the app's own bindings; a test holds this file to them. In the
app, `?` tells the keys of the screen and `:` finds any command by its name.

A name in brackets is what gives an action another key, in the file that `rl-oom-advisor config` names:

```
key why_not = x
key gauges = f2
```

A name that no action has changes nothing.
"""


def text() -> str:
    """The page, in English."""
    speak(ENGLISH)
    load_screens()
    out = [HEAD, *_table("Everywhere", hints(keys_of_every_screen()))]
    out += [*_table("Moving", hints(Page.BINDINGS)), f"`tab`: {OTHER_PANE_DOES}.", ""]
    for title, screen in sorted(_screens(), key=_place):
        out += _table(title, hints(screen.BINDINGS))
    return "\n".join(out)


def _screens() -> Iterator[tuple[str, type[BaseScreen]]]:
    waiting = list(BaseScreen.__subclasses__())
    while waiting:
        screen = waiting.pop()
        waiting += screen.__subclasses__()
        if screen.__dict__.get("TITLE_WORDS"):
            yield screen.TITLE_WORDS, screen


def _place(screen: tuple[str, type[BaseScreen]]) -> tuple[int, str]:
    title = screen[0]
    return (FIRST.index(title) if title in FIRST else len(FIRST), title)


def _table(title: str, found: Iterable[Hint]) -> list[str]:
    lines = [f"## {title}", "", "| key | does |", "| --- | --- |"]
    for hint in found:
        alone = [hint.keys] if hint.keys.startswith("page ") else hint.keys.split()
        keys = " ".join(f"`{key}`" for key in alone)
        name = f" [{hint.name}]" if hint.name else ""
        lines.append(f"| {keys} | {hint.explained}{name} |")
    return [*lines, ""]


def main(arguments: list[str]) -> None:
    """Print the page, or write it."""
    page = text().rstrip() + "\n"
    if "--write" in arguments:
        FILE.write_text(page, encoding="utf-8")
    else:
        print(page, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
