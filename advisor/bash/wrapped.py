"""Says what wrappers (`xargs`, `env`, `ray job submit`) make of a command's words and environment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from advisor.bash.state import CommandWord, Wrapped
from advisor.bash.text import Piece, ShellValue, cut, joined, unknown
from advisor.language import say

_HOLE = "\ufffd".encode()
FILLERS = (b"xargs", b"parallel")
"""Commands that put what they read among the arguments of another."""


def filled_later(fields: tuple[CommandWord, ...]) -> tuple[CommandWord, ...]:
    """The arguments of a command, where `xargs` and `parallel` put what they read in place of `{}` or at the end."""
    name = fields[0].text
    if name not in FILLERS:
        return fields
    later = unknown(say("{name} fills it in", name=name.decode()))
    texts = [item.text for item in fields]
    fields = fields[: texts.index(b":::")] if b":::" in texts else fields
    if any(b"{}" in text for text in texts[1:]):
        return tuple(CommandWord(_with_hole(item.pieces, later)) if b"{}" in item.text else item for item in fields)
    return (*fields, CommandWord((replace(later, quoted=False),)))


def _with_hole(pieces: ShellValue, later: Piece) -> ShellValue:
    """A word with what is not known yet in the place of every `{}`."""
    at = joined(pieces).find(b"{}")
    return pieces if at < 0 else (*cut(pieces, 0, at), later, *_with_hole(cut(pieces, at + 2), later))


def wrapped_environment(
    wrapped: Wrapped, fields: Sequence[CommandWord], environment: Mapping[bytes, ShellValue], own: frozenset[bytes]
) -> tuple[dict[bytes, ShellValue], frozenset[bytes]]:
    """What a command behind wrappers finds in its environment, and which of it they or its own prefix give it."""
    removed = {name.encode("utf-8", "surrogateescape") for name in wrapped.removed}
    kept = {name.encode("utf-8", "surrogateescape") for name in wrapped.kept} if wrapped.elsewhere else environment
    out = {name: value for name, value in environment.items() if name in kept and name not in removed}
    given: dict[bytes, ShellValue] = {}
    for one in wrapped.given:  # `NAME=value`
        name = fields[one.word].text[one.start : one.end].partition(b"=")[0]
        given[name] = cut(fields[one.word].pieces, one.start + len(name) + 1, one.end)
    return {**out, **given}, frozenset((own & out.keys()) | given.keys())


def of_the_job(wrapped: Wrapped, fields: Sequence[CommandWord]) -> dict[bytes, ShellValue]:
    """The variables that `ray job submit --runtime-env-json` gives the job; values that are not known stay out."""
    pieces = () if wrapped.runtime is None else fields[wrapped.runtime].pieces
    text = b"".join(_HOLE if piece.reason else piece.text for piece in pieces).removeprefix(b"--runtime-env-json=")
    try:
        parsed = json.loads(text.replace(b"\0", _HOLE) or b"null", strict=False)
    except (ValueError, RecursionError):
        return {}
    given = parsed.get("env_vars") if isinstance(parsed, dict) else None
    pairs = given.items() if isinstance(given, dict) else ()
    told = {str(name).encode(errors="replace"): str(value).encode(errors="replace") for name, value in pairs}
    return {name: (Piece(value),) for name, value in told.items() if _HOLE not in value}
