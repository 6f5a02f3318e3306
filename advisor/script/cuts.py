"""Finds where a command is cut short: by a forgotten backslash or blank, a comment between its lines, or its end.

What stands below a forgotten backslash, or is glued to the line above, is read as meant: texts lose backslashes and
indents where they are quoted. A comment is there as it was run, so bash's own reading counts, unless the command could
not have started so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from advisor.bash.syntax import Simple, scan_command
from advisor.bash.words import Unterminated
from advisor.hostile import clean_line
from advisor.language import listed, mark, say
from advisor.regex import regex
from advisor.script.launcher import find_launcher

MOST_ROUNDS = 8
"""Times that a script is read anew because more of it turned out to belong to a command."""
_MOST_NAMED = 8
"""Lost settings that a note names."""
_FEWEST_BELOW = 2
"""Settings that must follow on the lines below, where the first of them holds only values."""
_BLANKS = regex(rb"[ \t]*")
_NOTHING = regex(rb"[ \t]*(?:#[^\n]*)?\n")
_IS_SETTING = regex(rb"[ \t]*(?:--[A-Za-z]|[+~]{0,2}[A-Za-z_]\w*\.[\w.]+=)")
"""What no command begins with, even where an empty line stands before it."""
_LOOKS_LIKE_SETTING = regex(rb"\s*(?:--?[A-Za-z]|[+~]{0,2}[A-Za-z_][\w.]*=)")
_MODEL = regex(r"model|pretrain|config|checkpoint", re.IGNORECASE)
"""What is in the name of a setting without which nothing is trained."""
_VALUES = regex(rb"[ \t]*(?=[\w\"'])[^\s/]*[^\sa-z_-][^\s]*(?:[ \t]+(?!-)\S+)*[ \t]*\\\s*\Z")
_ESCAPED_BLANK = regex(rb"[ \t]+\\[ \t]+\Z")
"""A backslash that a blank follows, so that it goes on with nothing."""
_OPEN_END = regex(rb"[ \t]*\\\s*\Z")
_GLUED = regex(rb"(?<=[^\s\\])\\\r?\n(?P<name>--[A-Za-z][\w-]*|[+~]{0,2}[A-Za-z_]\w*\.[\w.]+(?==))")
"""A line that goes on without a blank, so that bash makes one word of its end and of the setting below."""


class Cut(Struct, frozen=True):
    """What is lost between the end of a command, byte `start`, and byte `end`, where what was meant goes on.

    `at` is the byte that cuts: a comment's sign, or the end of a line.
    """

    start: int
    end: int
    at: int
    names: tuple[str, ...]
    by_comment: bool
    glued: bool = False

    def mended(self, data: bytes) -> tuple[int, int, bytes]:
        """The edit that makes it so in the file: the bytes that go, and what stands there instead."""
        end = data.rfind(b"\n", self.start, self.end) + 1
        return self.start, end, b" \\\r\n" if b"\r\n" in data[self.start : end] else b" \\\n"


def joined(data: bytes, cuts: Iterable[Cut]) -> bytes:
    """The text without its cuts, every other byte in its place."""
    out = bytearray(data)
    for cut in cuts:
        out[cut.start : cut.end] = b" " * (cut.end - cut.start)
    return bytes(out)


def cuts_below(simple: Simple, data: bytes) -> Iterator[Cut]:
    """Every cut between a command and the last of the settings that stand below it, from above."""
    above, indent = simple, _indent(data, simple.start)
    while above.operator == b"\n" or above.comment is not None:
        found = _settings_below(data, above.end, indent)
        if found is None:
            return
        comment = _cutting_comment(above, data)
        at = above.last if comment is None else comment
        escaped = _ESCAPED_BLANK.search(data, above.start, above.last)
        start = above.last if escaped is None else escaped.start()
        yield Cut(start, found.following.start, at, found.names, comment is not None)
        above = found.following


def glued_lines(simple: Simple, data: bytes) -> Iterator[Cut]:
    """Every line of a command to which bash glues the setting on the next one."""
    for found in _GLUED.finditer(data, simple.start, simple.end):
        at = found.start()
        if any(map(_LOOKS_LIKE_SETTING.match, data[data.rfind(b"\n", 0, at) + 1 : at].split())):
            yield Cut(at, found.start("name"), at, (_name(found["name"]),), by_comment=False, glued=True)


def _indent(data: bytes, at: int) -> int:
    """Blanks before the line of byte `at`."""
    line = data.rfind(b"\n", 0, at) + 1
    return _BLANKS.match(data, line).end() - line  # type: ignore[union-attr]  # fits anywhere


def _cutting_comment(simple: Simple, data: bytes) -> int | None:
    """The byte of a comment that stands where the command was to go on; behind its last word a line ends anyway."""
    at = simple.comment
    if at is None:
        return None
    goes_on = _OPEN_END.search(data, simple.start, at) or data[at : simple.end].rstrip().endswith(b"\\")
    return at if goes_on else None


def is_meant(cut: Cut, keys: Iterable[str]) -> bool:
    """Whether what stands below was part of the command that ran. `keys`: the settings above the cut."""
    startable = any(map(_MODEL.search, keys)) or not any(map(_MODEL.search, cut.names))
    return not (cut.by_comment and startable)


def variables_above(data: bytes, start: int) -> tuple[int, tuple[str, ...]] | None:
    """Variables that a comment parts from the command at byte `start`, and the comment's byte; None without any."""
    lines = data[: data.rfind(b"\n", 0, start) + 1].splitlines(keepends=True)
    number = len(lines)
    while number and lines[number - 1].lstrip().startswith(b"#"):
        number -= 1
    comment = number
    while number and lines[number - 1].rstrip().endswith(b"\\"):
        number -= 1
    if not 0 < comment < len(lines) or number == comment:
        return None
    try:
        above = scan_command(data, sum(map(len, lines[:number])))
    except Unterminated:
        return None
    if above.comment is None or above.words:
        return None
    return above.comment, tuple(clean_line(one.name.decode("utf-8", "replace"), 80) for one in above.assignments)


def ends_open(data: bytes, simple: Simple) -> bool:
    """Whether the text ends with the backslash of a command: what would follow was not given."""
    return _OPEN_END.match(data, simple.last) is not None


def told_of_joins(joins: Sequence[tuple[Cut, int]]) -> Iterator[str]:
    """The sentences on settings that were read as meant, of cuts and their lines: all missing backslashes in one."""
    forgotten = [(cut, line) for cut, line in joins if not (cut.by_comment or cut.glued)]
    glued = [(cut, line) for cut, line in joins if cut.glued]
    if glued:
        yield say(
            "line {line} ends without a blank before its `\\`, so bash makes one word of it and the next; {names} "
            "count as meant. If your file is like this, they were not in force: add the blank.",
            line=glued[0][1],
            names=_named([name for cut, _ in glued for name in cut.names]),
        )
    if len(forgotten) > 1:
        told = mark(
            "{count} lines, the first of them line {line}, have no `\\` at their end, so bash ends the command there; "
            "the {settings} settings below them count as meant. If your file is like this, they were not in force: add "
            "the `\\`."
        )
        settings = sum(len(cut.names) for cut, _ in forgotten)
        yield say(told, count=len(forgotten), line=forgotten[0][1], settings=settings)
    commented = [(cut, line) for cut, line in joins if cut.by_comment]
    if len(commented) > 1:
        told = mark(
            "{count} comments, the first of them in line {line}, end the command; without what stands below nothing "
            "could have been trained, so the {settings} settings there count as meant. If that file is what ran, "
            "remove the comments."
        )
        settings = sum(len(cut.names) for cut, _ in commented)
        yield say(told, count=len(commented), line=commented[0][1], settings=settings)
    for alone in (commented, forgotten):
        if len(alone) == 1:
            yield _told_of_join(*alone[0])


def _told_of_join(cut: Cut, line: int) -> str:
    told = {"line": line, "names": _named(cut.names)}
    if cut.by_comment:
        return say(
            "line {line}: a comment ends the command; without what stands below it nothing could have been trained, so "
            "{names} count as meant. If that file is what ran, remove the comment line.",
            **told,
        )
    return say(
        "line {line} has no `\\` at its end, so bash ends the command there; {names} below it count as meant. If your "
        "file is like this, they were not in force: add the `\\`.",
        **told,
    )


def told_of_loss(cut: Cut, line: int) -> str:
    """The sentence on settings that the program did not get."""
    told = (
        mark(
            "line {line}: a comment ends the command; {names} below it are not given to the program and do not count "
            "here. Remove the comment line first."
        )
        if cut.by_comment
        else mark(
            "line {line} has no `\\` at its end, so bash ends the command there; {names} below it are not given to the "
            "program and do not count here. Add the `\\` first."
        )
    )
    return say(told, line=line, names=_named(cut.names))


def told_of_variables(line: int, names: tuple[str, ...], program: str) -> str:
    """The sentence on variables that the program did not get."""
    return say(
        "line {line}: a comment ends the command; {names} above it are not given to {program} and do not count here. "
        "Remove the comment line first.",
        line=line,
        names=_named(names),
        program=program,
    )


def _named(names: Sequence[str]) -> str:
    return listed([*names[:_MOST_NAMED], *(["…"] if len(names) > _MOST_NAMED else [])])


class _Below(Struct, frozen=True):
    """What bash takes for a command, and the settings in it."""

    following: Simple
    names: tuple[str, ...]


def _settings_below(data: bytes, at: int, indent: int) -> _Below | None:
    """The settings directly below; None where a command of its own stands there. `indent`: blanks before the command
    above, beside which a variable is set for itself: `n=$((n+1))` in a loop.
    """
    at = at + 1 if data[at : at + 1] == b"\n" else at
    apart = False
    while (line := _NOTHING.match(data, at)) is not None:
        at, apart = line.end(), apart or b"#" not in line.group()
    found = (_IS_SETTING if apart else _LOOKS_LIKE_SETTING).match(data, at)
    if found is not None and b"\n" in found.group():
        return None
    blank = _indent(data, at)
    if found is None and (apart or not blank):
        return None
    try:
        following = scan_command(data, at + blank)
    except Unterminated:
        return None
    if following.assignments and not following.words and blank <= indent:
        return None
    words = [data[item.start : item.end] for item in following.words]
    if find_launcher([word.decode("utf-8", "replace") for word in words]) is not None:
        return None
    words += [data[item.start : item.end] for item in following.assignments]
    settings = [word for word in words if _LOOKS_LIKE_SETTING.match(word)]
    first = data[following.start : data.find(b"\n", following.start)]
    if found is None and not (len(settings) >= _FEWEST_BELOW and holds_values(first)):
        return None
    names = [_name(word.partition(b"=")[0]) for word in settings]
    return _Below(following, tuple(names)) if names else None


def _name(word: bytes) -> str:
    return clean_line(word.decode("utf-8", "replace"), 80)


def holds_values(line: bytes) -> bool:
    """Whether a line that is continued has only values of the setting above it: what begins it names no command."""
    return _VALUES.match(line) is not None and find_launcher(line.decode("utf-8", "replace").split()) is None
