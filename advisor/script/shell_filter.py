"""What filters of a pipeline make of a text: `tr`, `cut`, `sed s/…/…/`, `awk '{print $2}'`, `head`, `tail`, `wc`."""

from __future__ import annotations

import re

_LONGEST = 10_000
_SED = re.compile(rb"s([/#|,:@!%~+])((?:\\.|(?!\1)[^\\\n])*)\1((?:\\.|(?!\1)[^\\\n])*)\1(g?)\Z")
_SIMPLE_SET = re.compile(rb"\[\^?[^\[\]\\]*\]")
_AWK = re.compile(rb"\s*\{\s*print\s+\$(\d|NF)\s*;?\s*\}\s*")


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
        case [b"awk", b"-F", separator, program]:
            return _awk(separator, program, text)
        case [b"awk", option, program] if option.startswith(b"-F"):
            return _awk(option[2:], program, text)
        case [b"awk", program]:
            return _awk(b"", program, text)
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
    out, at, repeats = b"", 0, 0
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
    alternatives = re.findall(rb"\(([^()]*\|[^()]*)\)", out)
    ambiguous = any(
        a != b and b.startswith(a) for group in alternatives for a in group.split(b"|") for b in group.split(b"|")
    )
    repeats = len(re.findall(rb"(?<!\\)[*+]", out))
    nested = re.search(rb"[*+}]\)?[*+{]", out) is not None
    bare = b"|" in re.sub(rb"\([^()]*\)", b"", out.replace(b"\\|", b""))
    return None if ambiguous or nested or bare or repeats > 2 else out
