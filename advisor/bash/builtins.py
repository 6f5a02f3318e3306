"""Carries out the builtins of bash: what they do to its state, and what they print."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

from msgspec.structs import replace

from advisor.bash.conditions import Condition, Operand
from advisor.bash.dash import Ends, refuses_test
from advisor.bash.expand import Expander
from advisor.bash.output import printed, write
from advisor.bash.parameters import SEPARATORS
from advisor.bash.run import Shell
from advisor.bash.state import CommandWord, Flow, FlowStatus, Variable
from advisor.bash.syntax import Assignment, Simple
from advisor.bash.text import Piece, ShellValue, cut, joined, known, sources, unknown, why_unknown, without_end
from advisor.bash.words import Substitution, Word
from advisor.language import say
from advisor.regex import regex

_ELEMENT = regex(rb"([A-Za-z_]\w*)\[(.+)\]")
_NAMED = regex(rb"[A-Za-z_]\w*=")
_NAME = regex(rb"[A-Za-z_]\w*")
_HOOK = regex(
    rb"[$`]\(?\s*(?:\"?[\w./${}~-]*/)?"
    rb"(?:conda|mamba|micromamba|ssh-agent|pyenv|rbenv|direnv|brew|poetry|pixi|dircolors|lesspipe|modulecmd)\b"
)
"""Programs whose output sets up a shell, and none of a run's own variables."""

Builtin = Callable[[Shell, Simple, "list[CommandWord]", Expander], FlowStatus]


def _next(status: bool | None = True) -> FlowStatus:
    return Flow.NEXT, status


def _declare(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    """`export`, `declare`, `local`, `readonly`: assignments with attributes."""
    name = fields[0].text
    options = b"".join(f.text for f in fields[1:] if f.text.startswith(b"-"))
    exported = (name == b"export" and b"n" not in options) or b"x" in options
    local = name in (b"local", b"declare", b"typeset") and expander.state.inside_function and b"g" not in options
    given = [word for word in command.words if isinstance(word, Assignment)]
    if expander.state.dash and (any(word.append for word in given) or (name == b"local" and not local)):
        raise Ends(command.start, command.end)
    values = [None if word.elements is not None else tuple(expander.value(word.value)) for word in given]
    for word, value in zip(given, values, strict=True):
        _mark(expander, word.name, options, local)
        shell.assign(word, expander, exported, value)
        _forbid(expander, word.name, name, options)
        if b"n" in options and name != b"export" and value is not None:
            # both names are one variable from here on, which is more than is followed
            why = unknown(say("a name that stands for another (declare -n) is not followed"))
            expander.state.variables[word.name] = expander.state.variables[joined(value)] = Variable((why,))
    if b"f" in options and exported:
        expander.state.given_on |= {item.text for item in fields[1:]}
        return _next()
    for item in fields[1:]:
        text = item.text
        if not known(item.pieces) and not _NAMED.match(text):  # `export $(cat .env)`
            shell.overwritten(expander.state, f"`{name.decode()}`")
        if re.fullmatch(rb"[A-Za-z_]\w*", text):
            _mark(expander, text, options, local)
            _export(shell, expander, text, exported, withdrawn=name == b"export" and b"n" in options)
            _forbid(expander, text, name, options)
    return _next()


def _forbid(expander: Expander, variable: bytes, name: bytes, options: bytes) -> None:
    """`readonly NAME`, `declare -r NAME`."""
    if name == b"readonly" or (name != b"export" and b"r" in options):
        old = expander.state.variables.get(variable, Variable())
        expander.state.variables[variable] = replace(old, readonly=True)


_CASES = {b"l": b",,", b"u": b"^^", b"c": b"^"}
"""Option of `declare` → the operator that changes letters as it does."""


def _mark(expander: Expander, name: bytes, options: bytes, local: bool) -> None:
    """Give a name the attributes of its declaration; a local one starts without a value."""
    variables = expander.state.variables
    old = None if local else variables.get(name)
    if local:
        expander.state.local_names.add(name)
    if expander.state.dash:  # a local name has the value that it had outside
        return
    array = b"a" in options or b"A" in options
    case = next((sign for letter, sign in _CASES.items() if letter in options), b"")
    if old is not None and old.readonly:
        return
    if local or (old is None and (array or b"i" in options or case)):
        variables[name] = Variable(None, {} if array else None, False, b"i" in options, b"A" in options, case=case)
    elif old is not None and case:
        variables[name] = replace(old, case=case)
    elif old is not None and (b"i" in options or b"A" in options):
        variables[name] = replace(old, integer=b"i" in options, associative=b"A" in options)


def _export(shell: Shell, expander: Expander, name: bytes, exported: bool, withdrawn: bool) -> None:
    """`export NAME`, and `export -n NAME`, which takes it back."""
    state, old = expander.state, expander.state.variables.get(name)
    if withdrawn:
        state.exports -= {name}
        if old is not None:
            state.variables[name] = replace(old, exported=False)
    elif exported:
        state.exports |= {name}
        if old is not None:
            shell.used(sources(old.scalar() or ()), "$" + name.decode("utf-8", "replace"))
            state.variables[name] = replace(old, exported=True)


def _unset(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    state = expander.state
    texts = [item.text for item in fields[1:]]
    for text in texts:
        element = _ELEMENT.fullmatch(text)
        array = state.variables.get(element[1]) if element else None
        if texts[0] == b"-f":
            state.functions.pop(text, None)
        elif element and array is not None and array.elements is not None:
            state.variables[element[1]] = array.without_element(element[2])
        elif not text.startswith(b"-") and not state.variables.get(text, Variable()).readonly:
            state.variables[text] = Variable()
            state.exports -= {text}
    return _next()


def _set(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    texts = [item.text for item in fields]
    if b"--" in texts:
        expander.state.positional = tuple(fields[texts.index(b"--") + 1 :])
    elif len(texts) > 1 and not texts[1].startswith((b"-", b"+")):
        expander.state.positional = tuple(fields[1:])
    for sign, text in zip(texts, [*texts[1:], b""], strict=True):
        if re.fullmatch(rb"[-+]\w*a\w*", text) or (sign[1:] == b"o" and text == b"allexport"):
            expander.state.exports_all = (sign if text == b"allexport" else text).startswith(b"-")
        if re.fullmatch(rb"[-+]\w*e\w*", text):
            expander.state.ends_on_failure = text.startswith(b"-")
        if text == b"--":
            break
    return _next()


def _getopts(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    """There are no options where no arguments were given; which of several comes next is not followed."""
    if not expander.state.positional:
        return _next(False)
    for name in (b"OPTARG", b"OPTIND", *(item.text for item in fields[2:3])):
        expander.state.assign(name, (unknown(say("an option of the script")),))
    return _next(None)


def _trap(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    """What a trap sets is not known from here on, whenever a signal comes; what it runs at the end is followed then."""
    if len(fields) > 2 and any(item.text in (b"EXIT", b"0") for item in fields[2:]):
        shell.at_exit = () if fields[1].text == b"-" else fields[1].pieces
    if len(fields) > 2 and any(item.text not in (b"EXIT", b"0") for item in fields[2:]):
        shell.handlers += (fields[1].text,)
        shell.spring(expander.state)
    return _next()


def _shopt(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    """`shopt` and `alias`; a script follows its aliases only where it says so (`shopt -s expand_aliases`)."""
    texts = [item.text for item in fields]
    if texts[0] == b"alias":
        shell.aliases.update(text.partition(b"=")[0] for text in texts[1:])
    elif texts[1:2] in ([b"-s"], [b"-u"]):
        shell.lastpipe = texts[1] == b"-s" if b"lastpipe" in texts else shell.lastpipe
        shell.expands_aliases = texts[1] == b"-s" if b"expand_aliases" in texts else shell.expands_aliases
    return _next()


def _shift(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    given = expander.state.positional
    text = fields[1].text if len(fields) > 1 else b"1"
    if given is not None and text.isdigit():
        expander.state.positional = given[int(text[:6]) :]
    return _next()


def _read(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    """`read` from a heredoc or a here-string; anything else is not known."""
    whole, array, names = False, False, []
    texts = [item.text for item in fields[1:]]
    skip = False
    for index, text in enumerate(texts):
        if skip:
            skip = False
        elif text.startswith(b"-") and len(text) > 1:
            array = array or b"a" in text
            if text[-1:] in b"dnNpitu":
                skip = True
                whole = whole or (text[-1:] == b"d" and texts[index + 1 : index + 2] == [b""])
        else:
            names.append(text)
    if any(not _NAME.fullmatch(name) for name in names):
        shell.overwritten(expander.state, "`read`")
        return _next(None)
    body = expander.heredoc(command)
    own = [joined(expander.value(assignment.value)) for assignment in command.assignments if assignment.name == b"IFS"]
    separators = own[0] if own else SEPARATORS
    if body is None:
        for name in names:
            expander.state.assign(name, (unknown(say("it is read when the script runs")),))
    else:
        line = joined(body).find(b"\n") if known(body) and not whole else -1
        _store_read(names or [b"REPLY"], body if line < 0 else cut(body, 0, line), array, separators, expander)
    return _next(None)


def _store_read(names: list[bytes], body: ShellValue, array: bool, separators: bytes, expander: Expander) -> None:
    state = expander.state
    if not known(body) and (array or len(names) > 1):
        for name in names:
            state.assign(name, (unknown(why_unknown(body)),))
        return
    if array:
        parts = _split(body, separators)
        state.variables[names[0]] = Variable(None, {b"%d" % i: CommandWord(part) for i, part in enumerate(parts)})
        return
    if len(names) == 1:
        state.assign(names[0], _trimmed(body, separators))
        return
    parts = _split(body, separators, len(names))
    for index, name in enumerate(names):
        state.assign(name, parts[index] if index < len(parts) else ())


def _trimmed(body: ShellValue, separators: bytes) -> ShellValue:
    """Without the blanks around it; a part that is not known counts as text."""
    blanks = bytes(b for b in separators if b in SEPARATORS)
    behind = without_end(body, blanks)
    while blanks and behind and not behind[0].reason:
        first = behind[0]
        start = len(first.text) - len(first.text.lstrip(blanks))
        if start < len(first.text):
            return (first.cut(start, len(first.text)), *behind[1:])
        behind = behind[1:]
    return behind


def _split(body: ShellValue, separators: bytes, most: int = 0) -> list[ShellValue]:
    text = joined(body).rstrip(b"\n")
    out: list[ShellValue] = []
    at = 0
    blank = all(b in SEPARATORS for b in separators)
    while at <= len(text) and separators:
        if blank:
            while at < len(text) and text[at] in separators:
                at += 1
            if at >= len(text):
                break
        end = next((i for i in range(at, len(text)) if text[i] in separators), len(text))
        if most and len(out) == most - 1:
            end = len(text.rstrip(bytes(b for b in separators if b in SEPARATORS) or b"\n"))
        out.append(cut(body, at, end))
        at = end + 1
        if most and len(out) == most:
            break
    return out


def _eval(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    pieces: list[Piece] = []
    for index, item in enumerate(fields[1:]):
        pieces += [Piece(b" ")] if index else []
        pieces += item.pieces
    home = fields[1].home if len(fields) == 2 else None
    if (
        pieces
        and pieces[0].reason
        and not any(_HOOK.search(expander.text.data, w.start, w.end) for w in command.words[1:])
    ):
        shell.overwritten(expander.state, "`eval`", say("what `eval` runs is not known; it may start and set more."))
    return shell.nested(tuple(pieces), expander.state, home), None


def _source(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    if len(fields) < 2:
        return _next(None)
    state = expander.state
    positional = state.positional
    if len(fields) > 2 and not state.dash:
        state.positional = tuple(fields[2:])
    body = _fed(command, fields[1], expander)
    if body is None:
        flow = shell.follow(fields[1].pieces, state)
    elif known(body):
        flow = shell.nested(body, state)
    else:
        shell.overwritten(state, "`source`")
        flow = Flow.NEXT
    state.positional = positional
    return (Flow.EXIT if flow is Flow.EXIT else Flow.NEXT), None


def _fed(command: Simple, file: CommandWord, expander: Expander) -> ShellValue | None:
    """What `source <(command)` and `source /dev/stdin` read; None where it is a file."""
    if file.text in (b"/dev/stdin", b"/dev/fd/0"):
        return expander.heredoc(command)
    word = command.words[1]
    made = word.parts[0] if isinstance(word, Word) and word.parts else None
    if not isinstance(made, Substitution) or expander.text.data[made.start : made.start + 1] != b"<":
        return None
    return expander.substitute(expander.text.part(*made.body), expander.state)


def _exit(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    name = fields[0].text
    flow = {b"exit": Flow.EXIT, b"return": Flow.RETURN, b"break": Flow.BREAK}.get(name, Flow.CONTINUE)
    if name in (b"break", b"continue"):
        levels = fields[1].text if len(fields) > 1 else b"1"
        shell.levels = int(levels) if re.fullmatch(rb"[1-9]\d?", levels) else 1
    if name not in (b"exit", b"return") or len(fields) == 1:
        return flow, True if name in (b"break", b"continue") else shell.last
    given = fields[1].pieces
    return flow, (joined(given).strip() == b"0") if known(given) else None


def _test(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    given = Expander(expander.text, shell.as_given(expander.state), expander.substitute)
    words = [word for word in command.words[1:] if isinstance(word, Word)]
    if fields[0].text == b"[" and words and words[-1].literal() == b"]":
        words = words[:-1]
    operands: list[Operand] = []
    for word in words:
        literal = word.literal()
        quoted = expander.text.data[word.start : word.end] != literal
        for item in given.fields(word):
            shown = item.text.decode("utf-8", "replace") if literal is not None and not quoted else ""
            operands.append(Operand(shown[:4], item.pieces, quoted))
    if not operands and words:
        operands = [Operand("", ())]
    if expander.state.dash and refuses_test([joined(one.value or ()) for one in operands]):
        return _next(False)
    return _next(shell.decide(Condition(operands, given, False)))


def _let(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    for word in command.words[1:]:
        if isinstance(word, Word):
            expander.arithmetic((word.start, word.end))
    return _next(None)


def _echo(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    """Printing matters only inside `$( … )`, or where it goes to a file; `printf -v` prints into a variable."""
    texts = [item.text for item in fields[:3]]
    if texts[:2] == [b"printf", b"-v"] and len(texts) == 3 and re.fullmatch(rb"[A-Za-z_]\w*", texts[2]):
        expander.state.assign(texts[2], tuple(printed([fields[0], *fields[3:]])))
        return _next()
    if texts[:2] == [b"printf", b"-v"]:
        shell.overwritten(expander.state, "`printf`")
        return _next()
    for redirect in command.redirects:
        if redirect.operator in (b">", b">>", b">|"):
            target = expander.value(redirect.target)
            write(target, tuple(printed(fields, expander.state.dash)), redirect.operator == b">>", expander.state)
    if shell.capture is not None:
        if any(redirect.operator in (b">", b">>", b">&", b"&>") for redirect in command.redirects):
            return _next()
        shell.capture.extend(printed(fields, expander.state.dash))
    return _next()


def _nothing(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    return _next(fields[0].text != b"false")


def _cd(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    """`cd`, `pushd` and `popd`: the folder is remembered where it is known, or a guess is (`$(dirname "$0")`)."""
    pieces = fields[-1].pieces if len(fields) > 1 else ()
    state, name, text = expander.state, fields[0].text, joined(pieces)
    here = state.folder
    if name == b"popd" and not pieces:
        state.folder, state.left = (state.left[-1], state.left[:-1]) if state.left else (b"", ())
    elif text == b"-" and name == b"cd":
        state.folder = state.before
    else:
        state.go(() if name == b"popd" or text.startswith((b"+", b"-")) else pieces)
    state.left = (*state.left, here) if name == b"pushd" else state.left
    state.before = here
    return _next(None)


def _unknown_status(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    if shell.capture is not None and fields[0].text == b"pwd":
        guess = expander.state.folder or posixpath.dirname(expander.state.source or expander.state.script)
        shell.capture.append(unknown(say("the folder that the script is started from"), (), guess))
    return _next(None)


def _mapfile(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    """`mapfile -t NAME` from a heredoc or a here-string; anything else is not known."""
    texts = [item.text for item in fields[1:]]
    name = texts[-1] if texts and re.fullmatch(rb"[A-Za-z_]\w*", texts[-1]) else b"MAPFILE"
    body = expander.heredoc(command)
    if body is None or not known(body) or [text for text in texts if text != name] != [b"-t"]:
        expander.state.assign(name, (unknown(say("it is read when the script runs")),))
        return _next(None)
    ends = [at for at, byte in enumerate(joined(body)) if byte == 10]
    lines = [cut(body, start, end) for start, end in zip([0, *(end + 1 for end in ends)], ends, strict=False)]
    expander.state.variables[name] = Variable(None, {b"%d" % i: CommandWord(line) for i, line in enumerate(lines)})
    return _next(None)


def _builtin(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    """`builtin NAME` and `command NAME`: past the functions of that name."""
    own = BUILTINS.get(fields[1].text) if len(fields) > 1 else None
    if own is None:
        shell.external(command, tuple(fields), expander)
        return _next(None)
    return own(shell, replace(command, words=command.words[1:]), fields[1:], expander)


def _exec(shell: Shell, command: Simple, fields: list[CommandWord], expander: Expander) -> FlowStatus:
    if len(fields) < 2:
        return _next()
    shell.external(command, tuple(fields), expander)
    return Flow.EXIT, None


BUILTINS: dict[bytes, Builtin] = {
    **dict.fromkeys((b"export", b"declare", b"typeset", b"local", b"readonly"), _declare),
    **dict.fromkeys((b"exit", b"return", b"break", b"continue"), _exit),
    **dict.fromkeys((b"[", b"test"), _test),
    **dict.fromkeys((b"source", b"."), _source),
    **dict.fromkeys((b"echo", b"printf"), _echo),
    **dict.fromkeys(b": true false ulimit umask wait hash".split(), _nothing),
    **dict.fromkeys((b"pwd", b"type", b"kill", b"jobs"), _unknown_status),
    **dict.fromkeys((b"cd", b"pushd", b"popd"), _cd),
    **dict.fromkeys((b"mapfile", b"readarray"), _mapfile),
    **dict.fromkeys((b"builtin", b"command"), _builtin),
    b"getopts": _getopts,
    b"trap": _trap,
    **dict.fromkeys((b"shopt", b"alias"), _shopt),
    b"unset": _unset,
    b"set": _set,
    b"shift": _shift,
    b"read": _read,
    b"eval": _eval,
    b"let": _let,
    b"exec": _exec,
}
