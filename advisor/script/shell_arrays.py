"""Arrays of the shell: which element a subscript names, and what `( … )` and `unset` do to them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.script.shell_state import Field, Variable
from advisor.script.shell_text import cut, joined, known
from advisor.script.shell_words import Exhausted, Word, scan_quoted

if TYPE_CHECKING:
    from advisor.script.shell_expand import Expander

_MOST_ELEMENTS = 20_000
_NAMED = re.compile(rb"\[([^\]]+)\](\+?)=")
_ELEMENT = re.compile(rb"([A-Za-z_]\w*)\[(.+)\]")


def subscript(expander: Expander, span: tuple[int, int], variable: Variable | None) -> bytes | None:
    """The key of an element, from bytes `span` between the brackets; None where it is not known.

    An indexed array counts from its end where the number is negative.
    """
    if variable is not None and variable.associative:
        pieces = tuple(expander.pieces(scan_quoted(expander.text.data, *span, "brace")))
        return joined(pieces) if known(pieces) else None
    number = expander.arithmetic(span)
    if number.reason:
        return None
    index = int(number.text)
    if index < 0:
        index += next_index(variable)
    return b"%d" % index


def next_index(variable: Variable | None) -> int:
    """One more than the largest index of an array."""
    held = variable.elements if variable is not None else None
    return max((int(key) for key in held or () if key.isdigit()), default=-1) + 1


def in_order(elements: dict[bytes, Field]) -> dict[bytes, Field]:
    """An indexed array's elements by their number; those of an associative array as they were set."""
    numbered = all(key.isdigit() for key in elements)
    return dict(sorted(elements.items(), key=lambda item: int(item[0]))) if numbered else elements


def elements(words: tuple[Word, ...], old: Variable, expander: Expander) -> dict[bytes, Field] | None:
    """The elements of `( … )` behind those of `old`; `[key]=value` sets one by its key. None: a key is not known."""
    out = dict(old.elements or {})
    following = next_index(old)
    for word in words:
        if len(out) > _MOST_ELEMENTS:
            raise Exhausted
        named = _NAMED.match(expander.text.data[word.start : word.end])
        if named is None:
            for item in expander.fields(word):
                out[b"%d" % following] = item
                following += 1
            continue
        key = subscript(expander, (word.start + 1, word.start + named.end(1)), old)
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
        key = b"%d" % (int(key) + next_index(variable))
    kept = {name: item for name, item in variable.elements.items() if name != key}
    return variable.with_elements(kept)


def name_of(text: bytes) -> bytes:
    """The array's name in `name[key]`."""
    return text.partition(b"[")[0]
