"""Words key bindings. The key line, the help and the palette are made from the bindings and cannot drift."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from msgspec import Struct
from textual.binding import Binding, BindingType

from advisor.language import say
from advisor.tui.ui_text import Toned, TonedLine, line, span, width_of

_NAMES = {
    "question_mark": "?",
    "escape": "esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "page up",
    "pagedown": "page down",
    "upper_n": "N",
    "N": "N",
    "colon": ":",
    "slash": "/",
    "equals_sign": "=",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
}
_SIDES = {"-1": "_before", "1": "_after"}


GAP = 2
"""Columns between two hints."""


class Hint(Struct, frozen=True):
    """One binding in words. `shown`: it belongs in the key line. `name`: by which the user gives it another key.

    `english`: its words in English, by which it is found whatever language is spoken.
    """

    keys: str
    words: str
    explained: str
    shown: bool
    action: str
    name: str = ""
    english: str = ""


def named(*bindings: Binding) -> list[BindingType]:
    """Bindings with a name each, by which the config file gives them another key: `open_line`, `phase_after`.

    Of several keys for one action only the one that is shown has the name: the others stay as they are.
    """
    shown = {binding.action for binding in bindings if binding.show}
    return [
        replace(binding, id=binding.id or name_of(binding.action))
        if (binding.show or binding.action not in shown) and not binding.key.isdigit()
        else binding
        for binding in bindings
    ]


def name_of(action: str) -> str | None:
    """The name of an action: that of its method, and the side for those that go both ways; digits have none."""
    method, _, argument = action.removeprefix("app.").removesuffix(")").partition("(")
    if method == "nothing" or (argument and argument not in _SIDES):
        return None
    return method + _SIDES.get(argument, "")


def hints(bindings: Iterable[BindingType], keymap: Mapping[str, str] | None = None) -> list[Hint]:
    """Bindings in words, in their order; those without a description are left out."""
    out = []
    own = keymap or {}
    for binding in bindings:
        if isinstance(binding, Binding) and binding.description:
            keys = own.get(binding.id or "", "")
            names = _spelled(keys) if keys else binding.key_display or _spelled(binding.key)
            explained = binding.tooltip or binding.description
            english = f"{binding.description} {explained}"
            said, told = say(binding.description), say(explained)
            out.append(Hint(names, said, told, binding.show, binding.action, binding.id or "", english))
    return out


def _spelled(keys: str) -> str:
    return " ".join(_NAMES.get(key.strip(), key.strip()) for key in keys.split(","))


def key_line(first: list[Hint], last: list[Hint], width: int) -> TonedLine:
    """As many of `first` as fit. Of `last`, the final three (all commands, help, quit) are always there."""
    return _joined(_fitting(first, last, width))


def hint_at(column: int, first: list[Hint], last: list[Hint], width: int) -> Hint | None:
    """The hint that the key line has in this column, counted from 0."""
    end = 0
    for hint in _fitting(first, last, width):
        begin, end = end, end + width_of(_joined([hint]))
        if begin <= column < end:
            return hint
        end += GAP
    return None


def _fitting(first: list[Hint], last: list[Hint], width: int) -> list[Hint]:
    shown, tail = [hint for hint in (*first, *last[:-3]) if hint.shown], last[-3:]
    room = width - width_of(_joined(tail)) - GAP
    while shown and width_of(_joined(shown)) > room:
        shown.pop()
    return [*shown, *tail]


def _joined(of: list[Hint]) -> TonedLine:
    parts: list[Toned] = []
    for hint in of:
        parts += [span(hint.keys, "mark"), span(f" {hint.words}"), Toned("  ")]
    return line(*parts[:-1])
