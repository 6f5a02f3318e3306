"""Translates patterns (`*`, `?`, `[…]`) into regular expressions, and applies the operators of `${name…}` to text."""

from __future__ import annotations

import re

from advisor.regex import regex

_LONGEST_PATTERN = 500
_GROUP = regex(rb"[@+*?!]\(")


def translate(pattern: bytes, quoted: bytes = b"") -> re.Pattern[bytes]:
    """A pattern as a regular expression. `quoted` has a non-zero byte for each byte that stands for itself."""
    pattern = pattern[:_LONGEST_PATTERN]
    out: list[bytes] = []
    at = 0
    while at < len(pattern):
        byte = pattern[at : at + 1]
        plain = at < len(quoted) and quoted[at]
        if byte == b"*" and not plain:
            if not out or out[-1] != b".*":
                out.append(b".*")
        elif byte == b"?" and not plain:
            out.append(b".")
        elif byte == b"[" and not plain and (end := pattern.find(b"]", at + 2)) > 0:
            out.append(_bracket(pattern[at + 1 : end]))
            at = end
        else:
            out.append(re.escape(byte))
        at += 1
    try:
        return re.compile(b"".join(out), re.DOTALL)
    except re.error:
        return re.compile(re.escape(pattern), re.DOTALL)


def is_extended(pattern: bytes, quoted: bytes) -> bool:
    """Whether it has a group of extglob, `+(a|b)`, which is read in whole patterns only (`matches`)."""
    return any(not any(quoted[found.start() : found.end()]) for found in _GROUP.finditer(pattern))


def _bracket(body: bytes) -> bytes:
    negated = body[:1] in (b"!", b"^")
    inner = body[1:] if negated else body
    inner = inner.replace(b"[:space:]", rb"\s").replace(b"[:digit:]", rb"\d").replace(b"[:alnum:]", b"A-Za-z0-9")
    return b"[" + (b"^" if negated else b"") + inner.replace(b"[", rb"\[") + b"]"


def strip_pattern(text: bytes, operator: bytes, pattern: bytes, quoted: bytes) -> bytes:
    """`${x#p}` `${x##p}` `${x%p}` `${x%%p}`."""
    expression = translate(pattern, quoted)
    size = len(text)
    if operator in (b"#", b"##"):
        cuts = range(size, -1, -1) if operator == b"##" else range(size + 1)
        found = next((cut for cut in cuts if expression.fullmatch(text, 0, cut)), None)
        return text if found is None else text[found:]
    cuts = range(size + 1) if operator == b"%%" else range(size, -1, -1)
    found = next((cut for cut in cuts if expression.fullmatch(text, cut)), None)
    return text if found is None else text[:found]


def substitute_pattern(text: bytes, operator: bytes, pattern: bytes, quoted: bytes, new: bytes) -> bytes:
    """`${x/p/new}` (first), `${x//p/new}` (all); a pattern that begins with `#` or `%` is anchored."""
    if not pattern:
        return text
    if operator == b"/" and pattern[:1] in (b"#", b"%"):
        anchored = translate(pattern[1:], quoted[1:]).pattern
        anchored = rb"\A" + anchored if pattern[:1] == b"#" else anchored + rb"\Z"
        return re.sub(anchored, lambda _: new, text, count=1, flags=re.DOTALL)
    return translate(pattern, quoted).sub(lambda _: new, text, count=0 if operator == b"//" else 1)


def change_case(text: bytes, operator: bytes) -> bytes:
    """`${x,,}` `${x,}` `${x^^}` `${x^}`."""
    shown = text.decode("utf-8", "surrogateescape")
    change = str.lower if operator in (b",", b",,") else str.upper
    shown = change(shown) if len(operator) > 1 else change(shown[:1]) + shown[1:]
    return shown.encode("utf-8", "surrogateescape")


def matches(text: bytes, pattern: bytes, quoted: bytes) -> bool:
    """Whether a pattern matches the whole text (`case`, `[[ x == p ]]`)."""
    alternatives = re.fullmatch(rb"[@+*?!]\((.*)\)", pattern, re.DOTALL)
    if alternatives and not any(quoted):
        return any(translate(part).fullmatch(text) for part in alternatives.group(1).split(b"|"))
    return translate(pattern, quoted).fullmatch(text) is not None
