"""Arrays of the shell: which element a subscript names, and what `( … )` and `unset` do to them."""

from __future__ import annotations

import re

from advisor.script.shell_expand import Expander
from advisor.script.shell_state import Field, Variable
from advisor.script.shell_text import cut, joined
from advisor.script.shell_words import Exhausted, Word

_MOST_ELEMENTS = 20_000
_NAMED = re.compile(rb"\[([^\]]+)\](\+?)=")
_ELEMENT = re.compile(rb"([A-Za-z_]\w*)\[(.+)\]")


def in_order(elements: dict[bytes, Field]) -> dict[bytes, Field]:
    """An indexed array's elements by their number; those of an associative array as they were set."""
    numbered = all(key.isdigit() for key in elements)
    return dict(sorted(elements.items(), key=lambda item: int(item[0]))) if numbered else elements


def elements(words: tuple[Word, ...], old: Variable, expander: Expander) -> dict[bytes, Field] | None:
    """The elements of `( … )` behind those of `old`; `[key]=value` sets one by its key. None: a key is not known."""
    out = dict(old.elements or {})
    following = old.next_index
    for word in words:
        if len(out) > _MOST_ELEMENTS:
            raise Exhausted
        named = _NAMED.match(expander.text.data[word.start : word.end])
        if named is None:
            for item in expander.fields(word):
                out[b"%d" % following] = item
                following += 1
            continue
        key = expander.subscript((word.start + 1, word.start + named.end(1)), old)
        if key is None or named.group(2):
            return None
        pieces = expander.value(word)
        out[key] = Field(cut(pieces, joined(pieces).find(b"]=") + 2))
        following = int(key) + 1 if key.isdigit() else following
    return in_order(out)


def without(variable: Variable | None, text: bytes) -> Variable | None:
    """An array without the element that `unset 'name[key]'` names; None where the text names none."""
    found = _ELEMENT.fullmatch(text)
    if found is None or variable is None or variable.elements is None:
        return None
    key = found.group(2).strip(b"'\"")
    if re.fullmatch(rb"-\d+", key):
        key = b"%d" % (int(key) + variable.next_index)
    kept = {name: item for name, item in variable.elements.items() if name != key}
    return variable.with_elements(kept)


def name_of(text: bytes) -> bytes:
    """The array's name in `name[key]`."""
    return text.partition(b"[")[0]
