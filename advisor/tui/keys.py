"""Keys as the user reads them. The key line and the help are both made from the bindings, so they cannot drift."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from textual.binding import Binding, BindingType

from advisor.tui.ui_text import Line, Span, line, span, width_of

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
}


@dataclass(frozen=True, slots=True)
class Hint:
    """One binding in words. `shown`: it belongs in the key line."""

    keys: str
    words: str
    explained: str
    shown: bool
    action: str


def hints(bindings: Iterable[BindingType]) -> list[Hint]:
    """Bindings in words, in their order; those without a description are left out."""
    out = []
    for binding in bindings:
        if isinstance(binding, Binding) and binding.description:
            names = binding.key_display or " ".join(_NAMES.get(key, key) for key in binding.key.split(","))
            out.append(
                Hint(names, binding.description, binding.tooltip or binding.description, binding.show, binding.action)
            )
    return out


def key_line(first: list[Hint], last: list[Hint], width: int) -> Line:
    """As many of `first` as fit. Of `last`, the final two (help, quit) are always there."""
    tail = _joined(last[-2:])
    first = [*first, *last[:-2]]
    room = width - width_of(tail) - 2
    shown = [hint for hint in first if hint.shown]
    while shown and width_of(_joined(shown)) > room:
        shown.pop()
    head = _joined(shown)
    return (*head, Span("  "), *tail) if head else tail


def _joined(of: list[Hint]) -> Line:
    parts: list[Span] = []
    for hint in of:
        parts += [span(hint.keys, "mark"), span(f" {hint.words}"), Span("  ")]
    return line(*parts[:-1])
