"""Writes a report when the program itself fails: a file that can be sent, and the sentence that names it.

The file holds versions, how the program was called, the terminal, and the traceback without the values of variables;
secrets are out of it, and the home folder is "~".
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Sequence

from advisor import __version__
from advisor.hostile import clean, clean_line
from advisor.language import say, spoken
from advisor.redact import redact, show_secrets

PROGRAM = "rl-oom-advisor"
LIMIT = 200_000
"""Characters of a traceback that are kept: its end, where the error stands."""
_TERMINAL = ("TERM", "COLORTERM", "TERM_PROGRAM", "LANG", "LC_ALL", "NO_COLOR", "SSH_TTY", "TMUX", "WSL_DISTRO_NAME")


def write_bug_report(error: Exception, words: Sequence[str]) -> str:
    """Write what happened to the temporary folder, for this user alone; returns the sentence for stderr. Never raises.
    `words`: what the program was called with."""
    show_secrets(False)  # the file is meant to be sent, whatever was asked for on the screen
    said = clean_line(redact(clean_line(f"{type(error).__name__}: {error}")), 300)
    try:
        import tempfile

        with tempfile.NamedTemporaryFile(  # readable by the user alone
            "w", prefix=f"{PROGRAM}-", suffix=".txt", delete=False, encoding="utf-8", errors="replace"
        ) as file:
            file.write(_report(error, words))
    except OSError:
        return say("this is a fault of the program, not of your files ({said})", said=said)
    return say(
        "this is a fault of the program, not of your files ({said}); what happened is written in {file}",
        said=said,
        file=file.name,
    )


def _report(error: Exception, words: Sequence[str]) -> str:
    import traceback

    told = redact("".join(traceback.format_exception(error)))  # before what names a secret is cut off
    facts = "\n".join(f"{name}: {value}" for name, value in _facts(words))
    return without_home(redact(clean(f"{facts}\n\n{told[-LIMIT:]}", limit=2 * LIMIT)))


def _facts(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield PROGRAM, __version__
    yield "Python", f"{platform.python_implementation()} {sys.version}".replace("\n", " ")
    yield "system", platform.platform()
    yield "packages", ", ".join(_packages())
    yield "called with", " ".join(words)
    size = shutil.get_terminal_size((0, 0))
    yield "terminal", f"{size.columns}x{size.lines}, stdout {getattr(sys.stdout, 'encoding', None)}, speaks {spoken()}"
    yield "environment", ", ".join(f"{name}={os.environ[name]}" for name in _TERMINAL if name in os.environ)


def _packages() -> Iterator[str]:
    """Name and version of each package that the program needs."""
    from importlib import metadata

    try:
        wanted = metadata.requires(PROGRAM) or []
    except metadata.PackageNotFoundError:  # run from a folder that was never installed
        return
    for requirement in (one for one in wanted if "extra ==" not in one):
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue


def without_home(text: str) -> str:
    """`text` with the home folder, which names its owner, as "~"."""
    home = os.path.expanduser("~").rstrip("/")
    return re.sub(re.escape(home) + r"(?![\w.-])", "~", text) if home.startswith("/") else text
