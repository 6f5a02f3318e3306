"""Reads commands as they were typed (`$ torchrun …`, `!torchrun …`) or keep in quotes, and settings pasted without the
command they belong to: lines `a.b=c` or `--key value`, a heredoc of them whose command is cut off, or calls of Python.

They can be diagnosed and sized; there is no launch to edit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

from msgspec.structs import replace

from advisor.bash.state import LauncherMatch
from advisor.bash.words import Unterminated
from advisor.language import mark, say
from advisor.regex import regex
from advisor.script.cuts import holds_values
from advisor.script.document import Document, ScriptError
from advisor.script.files import Files, load
from advisor.script.launch import Launch, Script
from advisor.script.launcher import find_launcher, is_training, only_asks
from advisor.script.pasted import FEWEST, engine_arguments, pasted_settings, variables_in, words_in

NOTE = mark("No training command was found; lines that look like its settings are read as such.")
_TYPED = mark("The command is read as it was typed, behind a prompt.")
_QUOTED_COMMAND = mark("The command stands in quotes and what starts it is not here; it is read as it stands.")
_SETTING = regex(rb"[ \t]*(?:--[A-Za-z][\w.-]*(?=[\s=]|$)|[+~]{0,2}[A-Za-z_][\w-]*(?:\.[\w-]+)+=)")
_PROGRAM = regex(rb"[ \t]*[\w./ -]+\s(?:--[A-Za-z]|\\[ \t]*$)")
_ASSIGNMENT = regex(rb"[ \t]*(?:export[ \t]+)?[A-Za-z_]\w*=")
_OPENS = regex(rb"[^=]*=[ \t]*\([ \t]*\r?\n?\Z")
"""A line that opens an array."""
_BLANK_BEHIND = regex(rb"\\([ \t]+)\n")
"""A backslash that goes on with nothing, because a blank follows it."""
_QUOTED = regex(rb"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
"""What stands before a line that was quoted in a mail or in Markdown."""
_PROMPT = regex(
    rb"[ \t]*(?:\([\w. -]+\)[ \t]*)*"
    rb"(?:\[?[\w.-]+@[\w.-]+[^\n$#]*[$#][ \t]|\$[ \t]|\+{1,4}[ \t](?=[A-Za-z_/])|!(?=[ \t]*[A-Za-z_]))[ \t]*"
)
"""What a shell or notebook shows before what is typed or run: `(env) me@box:~/run$ `, `$ `, `!`; `+ ` under set -x."""
_OPENS_QUOTE = regex(rb"""(?<![^\s(])(?:[A-Za-z_]\w*=)?["']|(?m:^)`(?!`)""")
"""The beginning of a word in quotes, with the variable that it is given to; of a line that Markdown shows as code."""
_TO_QUOTE = {mark: regex(rb"(?:\\.|[^\\" + mark + rb"])*" + mark, re.DOTALL) for mark in (b'"', b"'", b"`")}
_ENDS_WORD = regex(rb"[\s);&|]|\Z")
_BARE = regex(rb"[^\s\"'();&|<>]*")
_LIST = regex(rb"\[(?=\s*['\"])")
_LISTED = regex(rb"""\s*('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")\s*(?:,|\]|\Z)""")
_CUT_WORD = regex(rb"\s*['\"][^'\"\n]*(?=\n?\Z)")
"""A word of a list, with the comma or the bracket behind it."""
_NO_CODE = regex(rb"#[^\n]*|\"\"\".*?(?:\"\"\"|\Z)|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?", re.DOTALL)
_CLOSES = {b"(": b")", b"[": b"]", b"{": b"}"}
MOST_CUT = 4
"""Lines that a paste may have lost the end of."""
_MODULE = regex(r"[A-Za-z_]\w*(?:\.\w+)+\Z")
_SENTENCE = regex(rb"\s*(?:I|[A-Z][a-z]+)(?:,?[ \t]+[`\"(]?[A-Za-z][\w.'/-]*[`\")]?){4}")
"""How a text of sentences begins, and no script: five words behind a capital letter."""


def read_fragment(files: Files, path: Path, positional: tuple[str, ...]) -> Launch | None:
    """The settings of a fragment as a launch; None where nothing looks like one."""
    called = _python(files.documents[0])
    if called is not None:
        return called
    raw = files.documents[0].data
    plain = _unquoted(raw)
    laid_out = _out_of_list(plain)
    data = _BLANK_BEHIND.sub(rb"\1\\\n", laid_out)
    if (typed := _typed(files, path, positional, data, raw)) is not None:
        return typed if laid_out == plain else replace(typed, partial=True)  # what started it is not here
    data = _out_of_quotes(data)
    alone = _settings_alone(data)
    if alone is None:
        return None
    launches = [one for text in (data, alone) for one in _launches(files, path, positional, text)]
    launch = max(launches, key=lambda one: len(one.effective()), default=None)
    if launch is None or not launch.settings:
        return None
    unread = (*launch.launcher_unread, *([""] if not launch.program else []))  # nobody sees what starts it
    told = (say(NOTE), *launch.notes)
    return replace(launch, index=0, argv=(), span=None, launcher_unread=unread, notes=told, partial=True)


def _out_of_list(data: bytes) -> bytes:
    """The text with a command that Python printed as a list of words laid bare, all bytes in their place."""
    for opened in _LIST.finditer(data):
        words, at = [], opened.end()
        while (word := _LISTED.match(data, at)) is not None:
            words.append(word)
            at = word.end()
        if sum(word[1][1:3] == b"--" for word in words) >= FEWEST:
            cut = _CUT_WORD.match(data, at)
            at = cut.end() if cut is not None else at
            out = bytearray(data[: opened.start()] + b" " * (at - opened.start()) + data[at:])
            for word in words:
                plain = _BARE.fullmatch(word[1][1:-1]) is not None and word[1][1:-1]
                out[slice(*word.span(1))] = b" " + word[1][1:-1] + b" " if plain else word[1]
            return bytes(out)
    return data


def _typed(files: Files, path: Path, positional: tuple[str, ...], data: bytes, raw: bytes) -> Launch | None:
    """The command that stands behind a prompt or in quotes, as bash would run it; None where there is none."""
    for text, told in ((_without_prompts(data), _TYPED), (_out_of_quotes(data), _QUOTED_COMMAND)):
        found = _launches(files, path, positional, text) if text != raw else []
        launch = max((one for one in found if one.program), key=lambda one: len(one.effective()), default=None)
        if launch is not None and launch.settings:
            return replace(launch, index=0, argv=(), span=None, notes=(say(told), *launch.notes))
    return None


def _without_prompts(data: bytes) -> bytes:
    """The text with blanks for the prompts, and for the marks of the lines that go on."""
    out: list[bytes] = []
    goes_on = False
    for line in data.splitlines(keepends=True):
        mark = (_QUOTED if goes_on else _PROMPT).match(line)
        out.append(line if mark is None else line[mark.end() :].rjust(len(line)))
        goes_on = _goes_on(line) and (mark is not None or goes_on)
    return b"".join(out)


def _out_of_quotes(data: bytes) -> bytes:
    """The text with training commands and rows of settings that stand in quotes laid bare, all bytes in their place."""
    out, at = bytearray(data), 0
    while (found := _OPENS_QUOTE.search(data, at)) is not None:
        end = _word_end(data, found.end() - 1)
        if end is None and found[0] == b"`":  # what was pasted ends before the code does
            out[found.start() : found.end()] = b" "
            at = found.end()
            continue
        if end is None:
            break
        at = end
        words = data[found.end() : end - 1].replace(b"\\\n", b" ").decode("utf-8", "replace").split()
        match = find_pasted(words) if len(words) > 1 else None
        if match is not None and match.kind == "program" and (not match.program or is_training(match.program)):
            out[found.start() : found.end()] = b" " * len(found[0])
            out[end - 1 : end] = b"\n"
    return bytes(out)


def _word_end(data: bytes, at: int) -> int | None:
    """Behind the word of bash that begins with a quote at `at`: inner quotes may end and begin anew (`"a="b" c"`)."""
    while data[at : at + 1] in _TO_QUOTE:
        closed = _TO_QUOTE[data[at : at + 1]].match(data, at + 1)
        if closed is None:
            return None
        at = closed.end()
        if _ENDS_WORD.match(data, at):
            return at
        at = _BARE.match(data, at).end()  # type: ignore[union-attr]  # fits anywhere
    return at


def _unquoted(data: bytes) -> bytes:
    """A text that was quoted line by line, with blanks for its marks; any other as it is."""
    lines = [line for line in data.splitlines() if line.strip()]
    return _QUOTED.sub(lambda mark: b" " * len(mark[0]), data) if all(map(_QUOTED.match, lines)) else data


def read_pasted(document: Document, problem: str = "") -> Launch | None:
    """What a text that is no script names as settings; None where that is too little. `problem`: why it is no file. One
    setting is enough where the text is nothing else; sentences need none, for they name model and framework."""
    settings = pasted_settings(document) if not document.data.startswith(b"#!") else ()
    settings = settings or tuple(engine_arguments(document.data))
    alone = not problem and len(settings) == 1 and "_" in settings[0].key and len(document.data.split(b"\n")) - 1 <= 1
    if len(settings) < FEWEST and not alone and not _SENTENCE.match(document.data):
        return None
    told = (*([problem] if problem else []), say(NOTE))
    files = (str(document.path),)
    words, variables = words_in(document.data), variables_in(document.data)
    of_page = Launch(0, "", (), variables, settings, files=files, launcher_unread=("",), notes=told, partial=True)
    return replace(of_page, prose=words)


def unread(path: Path, problem: str) -> Script:
    """The script that cannot be read as a launch of which nothing is known. `problem`: why it cannot."""
    launch = Launch(0, "", (), {}, (), launcher_unread=("",), notes=(problem,), partial=True)
    return Script((load(path, "shell"),), (launch,))


def _launches(files: Files, path: Path, positional: tuple[str, ...], text: bytes) -> list[Launch]:
    """What `text` would run in place of the file; a last line that was not pasted to its end is left out."""
    from advisor.script.shell import read_shell

    for _ in range(2):
        try:
            return [one.launch for one in read_shell(files, path, positional, find_pasted, text).launches]
        except Unterminated as error:  # noqa: PERF203  (at most twice)
            data = files.documents[0].data
            if data[error.at :].strip().count(b"\n"):
                break
            text = text[: data.rfind(b"\n", 0, error.at) + 1].ljust(len(text))
    return []


def find_pasted(words: Sequence[str]) -> LauncherMatch | None:
    """What settings belong to that any command, a bare module ("pkg.cli.train_ppo") or nothing at all begins."""
    found = find_launcher(words)
    if found is not None:
        return replace(found, trains=not only_asks(words, found)) if found.kind == "program" else found
    at = next((number for number, word in enumerate(words) if word), len(words))  # behind a `$COMMAND` set elsewhere
    first = words[at] if at < len(words) else ""
    if _MODULE.match(first) and is_training(first):
        return LauncherMatch("program", first, at + 1, trains=True)
    pasted = _SETTING.match(first.encode("utf-8", "replace")) is not None
    return LauncherMatch("program", "", at, trains=True) if pasted else None


def _settings_alone(data: bytes) -> bytes | None:
    """None where no line is one of settings; else the text with every byte in its place, where only settings and what
    they rest on are left: lines of settings follow each other without a break, assignments stay, the rest is blank."""
    lines = data.splitlines(keepends=True)
    settings = [_SETTING.match(line) is not None for line in lines]
    for number, (line, below) in enumerate(pairwise(lines)):
        goes_on = settings[number] and (_goes_on(line) or holds_values(below))
        goes_on = goes_on and not below.lstrip().startswith(b"#")
        settings[number + 1] = settings[number + 1] or goes_on
    if not any(settings):
        return None
    followed = [*settings[1:], False]
    ours = [
        setting or (_PROGRAM.match(line) is not None and (below or b" --" in line))
        for line, setting, below in zip(lines, settings, followed, strict=True)
    ]
    numbers = [number for number, own in enumerate(ours) if own]
    first, last = (numbers[0], numbers[-1]) if numbers else (len(lines), -1)
    own = {number for number in numbers if not (settings[number] or followed[number] or _goes_on(lines[number]))}
    ends = {last, *own, *(a for a, b in pairwise(numbers) if not settings[b])}
    """Lines behind which another command begins."""
    out: list[bytes] = []
    for number, line in enumerate(lines):
        body = line.rstrip(b"\r\n")
        if not ours[number]:
            kept = number < first and _ASSIGNMENT.match(line) and not _OPENS.match(line)
            out.append(line if kept else b" " * (len(line) - 1) + (b"\n" if number < first else b" "))
            continue
        end = line[len(body) :] if number in ends else b" " * (len(line) - len(body))
        out.append(body.rstrip().removesuffix(b"\\").ljust(len(body)) + end)
    return b"".join(out)


def _goes_on(line: bytes) -> bool:
    return line.rstrip().endswith(b"\\")


def _python_launch(document: Document) -> Launch | None:
    from advisor.script.python_file import python_launch, read_python

    try:
        return python_launch(read_python(document))
    except ScriptError:
        return None


def _closed(document: Document) -> Iterator[Document]:
    """The text as Python, then without the last lines of what was cut off in a call, each time with it closed."""
    lines = dedent(document.data.decode("utf-8", "replace")).encode().splitlines(keepends=True)
    yield replace(document, kind="python")
    for left_out in range(MOST_CUT):
        data = b"".join(lines[: len(lines) - left_out])
        yield replace(document, kind="python", data=data + b"\n" + _open_brackets(data))


def _open_brackets(data: bytes) -> bytes:
    """What closes the brackets that a text leaves open, strings and comments set aside."""
    bare = _NO_CODE.sub(b"", data)
    closing: list[bytes] = []
    for one in re.findall(rb"[()\[\]{}]", bare):
        if one in _CLOSES:
            closing.append(_CLOSES[one])
        elif closing and closing[-1] == one:
            closing.pop()
    return b"".join(reversed(closing))


def _python(document: Document) -> Launch | None:
    """The keywords of calls that configure a run, where the text is Python."""
    if not any(call in document.data for call in (b"Config(", b"Arguments(", b".from_pretrained(")):
        return None
    launch = next(filter(None, map(_python_launch, _closed(document))), None)
    if launch is None:
        return None
    told = (say(NOTE), *launch.notes)
    words, variables = words_in(document.data), {**variables_in(document.data), **launch.environment}
    launch = replace(launch, environment=variables)
    return replace(launch, program="", notes=told, partial=True, prose=words) if launch.settings else None
