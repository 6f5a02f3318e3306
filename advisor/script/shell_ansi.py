"""What stands between the quotes of `$'…'`, and what `echo -e` and `printf` make of backslashes."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    rb"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|0?([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_LETTERS = {
    b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f",
    b"v": b"\v", b"\\": b"\\", b"'": b"'", b'"': b'"', b"?": b"?",
}  # fmt: skip


def unescaped(body: bytes) -> bytes:
    """Bytes with their backslash escapes carried out; an escape that nobody knows stays as it is."""
    return _ESCAPE.sub(_meant, body)


def _meant(found: re.Match[bytes]) -> bytes:
    code, short, long, octal, control, letter = found.groups()
    if code is not None:
        return bytes([int(code, 16)])
    if short is not None or long is not None:
        point = int(short or long, 16)
        return chr(point).encode("utf-8", "surrogatepass") if point < 0x110000 else found.group()
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if control is not None:
        return bytes([control[0] & 0x1F])
    return _LETTERS.get(letter, found.group())
