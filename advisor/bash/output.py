"""Says what harmless commands would print: `echo`, `printf`, `expr`, `seq`, `basename`, and filters of a pipeline."""

from __future__ import annotations

import posixpath
import re

from advisor.bash.arithmetic import Undecided, evaluate
from advisor.bash.expand import Expander
from advisor.bash.state import CommandWord, ShellState
from advisor.bash.syntax import Simple, Statement
from advisor.bash.text import (
    ByteRange,
    Piece,
    ShellValue,
    bounded,
    cut,
    joined,
    known,
    last_component,
    sources,
    unknown,
    why_unknown,
)
from advisor.bash.words import Word, unescaped
from advisor.language import say
from advisor.regex import regex

_MAX_SEQUENCE = 1000
_FORMAT = regex(rb"%([-0+ .\d]*)([sdixfeg%])")


def printed(fields: list[CommandWord], by_dash: bool = False) -> list[Piece]:
    """What `echo` and `printf` print; dash's `echo` knows `-n` alone and always carries escapes out."""
    arguments = list(fields[1:])
    if fields[0].text == b"printf":
        return _printf(arguments)
    newline, escapes = True, by_dash
    options = rb"-n" if by_dash else rb"-[neE]+"
    while arguments and re.fullmatch(options, joined(arguments[0].pieces)) and newline >= by_dash:
        option = joined(arguments.pop(0).pieces)
        newline, escapes = newline and b"n" not in option, by_dash or b"e" in option
    out: list[Piece] = []
    for index, item in enumerate(arguments):
        out += [Piece(b" ")] if index else []
        out += item.pieces
    if escapes and any(b"\\" in piece.text for piece in out):
        why, text = why_unknown(out), unescaped(joined(out))
        out = [unknown(why, sources(out)) if why else Piece(text, None, sources(out))]
    return [*out, Piece(b"\n")] if newline else out


def _printf(arguments: list[CommandWord]) -> list[Piece]:
    arguments = arguments[1:] if arguments and arguments[0].text == b"--" else arguments
    deps = sources(p for item in arguments for p in item.pieces)
    if not arguments or not all(known(item.pieces) for item in arguments):
        return [unknown(say("the output of printf"), deps)]
    result = _formatted(joined(arguments[0].pieces), [item.text for item in arguments[1:]])
    return [unknown(say("the output of printf"), deps) if result is None else Piece(result, None, deps)]


def _formatted(pattern: bytes, values: list[bytes]) -> bytes | None:
    """The pattern, used again as long as there are values; None where it holds what is not followed."""
    pattern = unescaped(pattern)
    if _FORMAT.sub(b"", pattern).count(b"%"):
        return None
    takes = sum(found.group(2) != b"%" for found in _FORMAT.finditer(pattern))
    left = list(values)
    out = b""
    try:
        for _ in range(min(max(1, -(-len(values) // takes) if takes else 1), _MAX_SEQUENCE)):
            out += _FORMAT.sub(lambda found: _converted(found, left), pattern)
    except (ValueError, OverflowError):
        return None
    return out


def _converted(found: re.Match[bytes], left: list[bytes]) -> bytes:
    """One conversion with the value that is its turn. Raises ValueError where the value is no number."""
    flags, kind = found.group(1), found.group(2)
    if kind == b"%":
        return b"%"
    value = left.pop(0) if left else b""
    width = re.fullmatch(rb"[-0+ ]*(\d{0,3})(?:\.\d{0,3})?", flags)
    if width is None:
        raise ValueError(flags)
    if kind == b"s":
        return (b"%" + flags + b"s") % (value,)
    if kind in b"dix":
        if value and not re.fullmatch(rb"-?(?:0x[0-9a-fA-F]+|[1-9]\d*|0)", value):
            raise ValueError(value)
        number = int(value or b"0", 0)
        return (b"%" + flags + kind) % number
    return (b"%" + flags + kind) % float(value or b"0")


def command_output(fields: tuple[CommandWord, ...], command: Simple, expander: Expander) -> list[Piece] | None:
    """What a command without side effects would print; None where that cannot be known."""
    texts = [item.text for item in fields]
    pieces = tuple(p for item in fields[1:] for p in item.pieces)
    name, deps = texts[0], sources(pieces)
    if name == b"cat" and len(texts) < 3:
        state = expander.state
        body = expander.heredoc(command) if len(texts) == 1 else state.files.get(state.path(texts[1]))
        return None if body is None else list(body)
    if name in (b"basename", b"dirname") and len(texts) > 1:
        return _path_output(name, fields)
    if name == b"which" and len(texts) == 2 and known(pieces):
        return [unknown(say("the output of {name}", name="which")), Piece(b"/" + texts[1], None, deps)]
    if name in (b"expr", b"seq") and not known(pieces):
        return [unknown(why_unknown(pieces), deps)]
    if name == b"expr":
        return _expr(texts[1:], expander, deps)
    if name == b"seq" and 1 < len(texts) < 5 and all(re.fullmatch(rb"-?\d{1,7}", text) for text in texts[1:]):
        return _seq([int(text) for text in texts[1:]], deps)
    return None


def asks_for_ascend(fields: tuple[CommandWord, ...]) -> bool:
    """Whether a command only tries to import Ascend's torch, taken to be absent: the GPUs here are NVIDIA's."""
    texts = [item.text for item in fields]
    tries = len(texts) == 3 and texts[0] in (b"python", b"python3") and texts[1] == b"-c"
    return tries and re.fullmatch(rb"\s*import torch_npu\s*;?\s*", texts[2]) is not None


def _path_output(name: bytes, fields: tuple[CommandWord, ...]) -> list[Piece]:
    pieces = fields[1].pieces
    reason = why_unknown(pieces)
    places = sources(p for item in fields[1:] for p in item.pieces)
    if name == b"dirname":
        path = joined(pieces)
        result = posixpath.dirname(path.rstrip(b"/") or path) or b"."
        if reason and b"/" in pieces[-1].text.strip(b"/") and not pieces[-1].reason:
            return list(cut(pieces, 0, len(result)))
        return [unknown(reason, places, result)] if reason else [Piece(result, None, places)]
    last = last_component(pieces) if reason and not joined(pieces).endswith(b"/") else None
    result = posixpath.basename(joined(pieces if last is None else last).rstrip(b"/"))
    suffix = fields[2].text if len(fields) > 2 else b""
    if suffix and result.endswith(suffix) and result != suffix:
        result = result[: -len(suffix)]
    return [unknown(reason, places, result)] if reason and last is None else [Piece(result, None, places)]


def _expr(texts: list[bytes], expander: Expander, deps: tuple[ByteRange, ...]) -> list[Piece] | None:
    if not all(re.fullmatch(rb"-?\d+|[-+*/%()]|[<>]=?|=|!=", text) for text in texts) or len(texts) < 3:
        return None
    expression = b" ".join(b"==" if text == b"=" else text for text in texts)
    try:
        value = evaluate(expression, expander.integer([]), expander.store)
    except Undecided:
        return None
    return [Piece(b"%d" % value, None, deps)]


def _seq(numbers: list[int], deps: tuple[ByteRange, ...]) -> list[Piece] | None:
    first, step, last = (1, 1, numbers[0]) if len(numbers) == 1 else (numbers[0], 1, numbers[1])
    if len(numbers) == 3:
        first, step, last = numbers
    if step == 0 or abs(last - first) // abs(step) > _MAX_SEQUENCE:
        return None
    values = range(first, last + (1 if step > 0 else -1), step)
    return [Piece(b"\n".join(b"%d" % value for value in values), None, deps)]


def filtered(element: Statement, fed: ShellValue) -> ShellValue | None:
    """What a filter of a pipeline (`tr`, `cut`, `wc`) makes of its input; None where that cannot be known."""
    if not isinstance(element, Simple) or not element.words:
        return None
    words = [word.literal() if isinstance(word, Word) else None for word in element.words]
    if words == [b"tr", b"-d", b"\\r"] and b"\r" not in joined(fed):
        return fed
    arguments = [word for word in words if word is not None]
    if len(arguments) != len(words) or not known(fed):
        return None
    text, deps = joined(fed), sources(fed)
    result = filtered_text(arguments, text)
    return None if result is None else (Piece(result, None, deps),)


_LONGEST = 10_000
_SED = regex(rb"s([/#|,:@!%~+])((?:\\.|(?!\1)[^\\\n])*)\1((?:\\.|(?!\1)[^\\\n])*)\1(g?)\Z")
_SIMPLE_SET = regex(rb"\[\^?[^\[\]\\]*\]")
_AWK = regex(rb"\s*\{\s*print\s+\$(\d|NF)\s*;?\s*\}\s*")


def filtered_text(arguments: list[bytes], text: bytes) -> bytes | None:
    """What a command without side effects makes of its input; None where that is not known here."""
    if len(text) > _LONGEST:
        return None
    match arguments:
        case [b"tr", b"-d", characters] if b"-" not in characters and b"[" not in characters:
            return text.translate(None, characters.replace(b"\\n", b"\n"))
        case [b"tr", old, new] if len(old) == len(new) == 1:
            return text.replace(old, new)
        case [b"tr", (b"A-Z" | b"[:upper:]"), (b"a-z" | b"[:lower:]")]:
            return text.lower()
        case [b"tr", (b"a-z" | b"[:lower:]"), (b"A-Z" | b"[:upper:]")]:
            return text.upper()
        case [b"wc", b"-w"]:
            return b"%d\n" % len(text.split())
        case [b"wc", b"-l"]:
            return b"%d\n" % text.count(b"\n")
        case [b"cut", *options]:
            return _cut(b" ".join(options), text)
        case [(b"head" | b"tail") as name, *options]:
            return _ends(name == b"head", b" ".join(options), text)
        case [b"sed", *options]:
            return _sed(options, text)
        case [b"awk", *options, program] if not options or options[0].startswith(b"-F"):
            return _awk(b"".join(options)[2:], program, text) if len(options) < 3 else None
        case [b"cat"] | [b"xargs"]:
            return text
    return None


def _lines(text: bytes) -> list[bytes]:
    return text.removesuffix(b"\n").split(b"\n") if text else []


def _cut(options: bytes, text: bytes) -> bytes | None:
    found = re.fullmatch(rb"-d ?(.) -f ?(\d)|-f ?(\d) -d ?(.)", options)
    if not found:
        return None
    delimiter, number = found.group(1) or found.group(4), int(found.group(2) or found.group(3))
    lines = text.rstrip(b"\n").split(b"\n")
    parts = [line.split(delimiter) for line in lines]
    kept = [p[0] if len(p) == 1 else (p[number - 1] if number <= len(p) else b"") for p in parts]
    return b"\n".join(kept) + b"\n"


def _ends(first: bool, options: bytes, text: bytes) -> bytes | None:
    """`head -n 1`, `tail -1`."""
    found = re.fullmatch(rb"(?:-n ?|-)(\d{1,6})", options) if options else None
    if options and found is None:
        return None
    count = int(found.group(1)) if found else 10
    lines = text.splitlines(keepends=True)
    return b"".join(lines[:count] if first else lines[len(lines) - min(count, len(lines)) :])


def _awk(separator: bytes, program: bytes, text: bytes) -> bytes | None:
    found = _AWK.fullmatch(program)
    if found is None or len(separator) > 1 or separator in (b"|", b"\\", b"^", b"$", b".", b"*"):
        return None
    out: list[bytes] = []
    for line in _lines(text):
        parts = line.split(separator) if separator.strip() else line.split()
        number = len(parts) if found.group(1) == b"NF" else int(found.group(1))
        out.append(line if number == 0 else parts[number - 1] if number <= len(parts) else b"")
    return b"".join(line + b"\n" for line in out)


def _sed(options: list[bytes], text: bytes) -> bytes | None:
    """One `s/…/…/` command on every line."""
    extended = options[:1] in ([b"-E"], [b"-r"])
    program = options[1:] if extended else options
    found = _SED.match(program[0]) if len(program) == 1 else None
    if found is None:
        return None
    delimiter, pattern, new, every = found.groups()
    pattern, new = (part.replace(b"\\" + delimiter, delimiter) for part in (pattern, new))
    expression = _as_python(pattern, extended)
    if expression is None or re.search(rb"\\[^1-9&\\/]", new):
        return None

    def replaced(match: re.Match[bytes]) -> bytes:
        return re.sub(
            rb"\\([1-9])|\\(.)|(&)",
            lambda sign: match.group(int(sign[1])) or b"" if sign[1] else sign[2] or match.group(),
            new,
        )

    try:
        compiled = re.compile(expression)
        lines = [compiled.sub(replaced, line, count=0 if every else 1) for line in _lines(text)]
    except (re.error, IndexError):
        return None
    return b"\n".join(lines) + (b"\n" if text.endswith(b"\n") else b"")


def _as_python(pattern: bytes, extended: bool) -> bytes | None:
    """A POSIX expression as Python's, where the two agree and it cannot run for ever; else None."""
    out, at = b"", 0
    while at < len(pattern):
        byte, following = pattern[at : at + 1], pattern[at + 1 : at + 2]
        if byte == b"[":
            found = _SIMPLE_SET.match(pattern, at)
            if found is None:
                return None
            out += found.group().replace(b"\\", b"\\\\")
            at = found.end()
            continue
        if byte == b"\\":
            special = following in (b"(", b")", b"|", b"+", b"?", b"{", b"}")
            if not following or (not special and following not in b"./$^*[]\\&-_ "):
                return None
            out += following if special and not extended else b"\\" + following
            at += 2
            continue
        special = byte in b"()|+?{}"
        out += b"\\" + byte if special and not extended else byte
        at += 1
    alternatives = [group.split(b"|") for group in re.findall(rb"\(([^()]*\|[^()]*)\)", out)]
    ambiguous = any(a != b and b.startswith(a) for group in alternatives for a in group for b in group)
    repeats = len(re.findall(rb"(?<!\\)[*+]", out))
    nested = re.search(rb"[*+}]\)?[*+{]", out) is not None
    bare = b"|" in re.sub(rb"\([^()]*\)", b"", out.replace(b"\\|", b""))
    return None if ambiguous or nested or bare or repeats > 2 else out


_LONGEST_PATH = 1_000
WRITES = (b">", b">>", b">|", b"&>", b"&>>")
"""Redirections into a file."""
_ONLY_READ = frozenset(
    b"cat grep egrep ls head tail wc diff cmp stat file less chmod chown mkdir touch find which realpath readlink "
    b"basename dirname md5sum sha256sum du awk cut sort uniq tr xargs git pip dos2unix".split()
)
"""Commands that leave what is in the files that they are given, so far as bash would read it."""
_WRITES_LAST = {b"cp", b"mv", b"ln", b"install", b"rsync"}
_IN_PLACE = regex(rb"-[a-zA-Z]*i|--in-?place")


def may_write(command: Simple, fields: tuple[CommandWord, ...], expander: Expander) -> None:
    """Files that a command of which we know no more writes, or may write: what was read of them counts no more."""
    state, name, texts = expander.state, fields[0].text, [item.text for item in fields[1:]]
    written = [joined(expander.value(r.target)) for r in command.redirects if r.operator in WRITES]
    if name in _WRITES_LAST or any(_IN_PLACE.match(text) for text in texts if name in (b"sed", b"perl", b"yq")):
        written += texts[-1:]
    for path in map(state.path, written):
        state.files.pop(path, None)
    named = [] if name in _ONLY_READ else [text for text in texts if not text.startswith(b"-") and b"." in text]
    state.changed |= {state.path(text) for text in (*written, *named) if len(text) < _LONGEST_PATH}
    plain = [text for text in texts if not text.startswith(b"-")]
    if name in (b"envsubst", b"cat") and len(written) == 1:  # a template that is filled in
        given = [joined(expander.value(r.target)) for r in command.redirects if r.operator == b"<"] or plain
        if len(given) == 1 and b"." in given[0]:
            state.copies = {**state.copies, state.path(written[0]): given[0]}
            state.changed -= {state.path(written[0])}
    if (name in (b"cp", b"scp") or texts[:1] == [b"cp"]) and known((*fields[-2].pieces, *fields[-1].pieces[-1:])):
        source, target = plain[-2:] if len(plain) > 1 else (b"", b"")
        target = target.rpartition(b":")[2]  # of a pod, a container or a host
        target = posixpath.join(target, posixpath.basename(source) if target.endswith(b"/") else b"")
        state.copies = {**state.copies, state.path(target): source}
        state.changed -= {state.path(target)}


def write(path: ShellValue, body: ShellValue, append: bool, state: ShellState) -> None:
    """What a file of the script holds from here on."""
    if known(path) and len(joined(path)) < _LONGEST_PATH:
        name = state.path(joined(path))
        before = state.files.pop(name, ()) if append else ()
        state.files.pop(name, None)
        state.files[name] = bounded((*before, *body))
        state.changed -= {name}
