"""Parses the command line, runs a command or the app, and maps errors to exit codes.

Only argparse is imported here, so that `--version` and `--help` answer at once; each command imports what it needs.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from advisor.arguments import PROGRAM
from advisor.collector import put_off
from advisor.commands import COMMANDS, app_parser, command, parser_of
from advisor.exits import Exit, Refusal
from advisor.language import AUTO, ENGLISH, LANGUAGES, choose, say, speak


def console() -> NoReturn:
    """The installed program. Only here, where the process is ours, is the garbage collector told what to expect."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name != "watch":  # a command is over before there is much to collect; the app collects once its session is open
        put_off()
    code = main()
    gc.freeze()  # what goes with the process is not looked through at its end: some 45 of 670 ms of a diagnosis
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit code; nothing escapes but SystemExit from --help and --version."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    try:
        speak(_language(arguments))
        code = _run(arguments)
        _flush_output()
    except Refusal as refusal:
        _say(str(refusal))
        return refusal.code
    except BrokenPipeError:
        _swallow_output()
        return Exit.DONE
    except SystemExit as left:  # --help and --version, whose words may still be on their way
        raise SystemExit(_left(left)) from None
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except MemoryError:
        _say(say("there is too little memory here for the program (a limit of the shell or of a container?)"))
        return Exit.FAILED
    except Exception as error:  # noqa: BLE001 - the one boundary: whatever is left is our fault and is recorded
        from advisor.bug_report import write_bug_report

        _say(write_bug_report(error, arguments))
        if not arguments or arguments[0] not in COMMANDS:
            _say(say("`rl-oom-advisor diagnose` tells the same without the app"))
        return Exit.FAILED
    return code


def _run(arguments: list[str]) -> int:
    name = arguments[0] if arguments and arguments[0] in COMMANDS else ""
    parser, words = parser_of(name), arguments[1:] if name else arguments
    if name == "watch":
        return _watch(parser.parse_args(words))
    parsed = parser.parse_intermixed_args(_shielded(words) if name == "set" else words)
    if parsed.no_redact:
        from advisor.redact import show_secrets

        show_secrets()
    if not name:
        return _app(parsed)
    return int(command(name).run(parsed))


def _language(arguments: list[str]) -> str:
    """The language to speak: as given, as configured, else by the locale; English where the signs are ASCII."""
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    asked = next((word.partition("=")[2] for word in reversed(ours) if word.startswith("--lang=")), "")
    if "--lang" in ours[:-1]:
        asked = asked or ours[ours.index("--lang") + 1]
    configured, plain = _configured()
    language = choose(asked if asked in (AUTO, *LANGUAGES) else configured)
    return language if "--ascii" not in ours and not plain and _can_print("中") else ENGLISH


def _configured() -> tuple[str, bool]:
    """Language and plain ASCII, as the user's own file has them."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    if not os.path.isfile(os.path.join(base, PROGRAM, "config")):
        return AUTO, False  # the usual case loads nothing more
    from advisor.config import read_config

    config = read_config()
    return config.language, config.ascii


def _can_print(sign: str) -> bool:
    """Whether the output's encoding has it, and its terminal a font: the Linux console has no Chinese."""
    if os.environ.get("TERM") == "linux" and sys.stdout.isatty():
        return False
    try:
        sign.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _shielded(words: list[str]) -> list[str]:
    """`--key=value` of a script is not an option of ours: a space before it keeps argparse from thinking so."""
    ours = ("--output=", "--launch=", "--knowledge=", "--help", "--force", "--lang=")
    return [
        f" {word}" if word.startswith("--") and "=" in word and not word.startswith(ours) else word for word in words
    ]


def _app(parsed: argparse.Namespace) -> int:
    """The guided app where there is a terminal, else the same diagnosis as text."""
    if parsed.csv or parsed.svg:
        from advisor.commands.records import export

        return export(parsed)
    if not _has_terminal():
        parsed.format, parsed.replay, parsed.all = "text", parsed.resume, False
        return int(command("diagnose").run(parsed))
    if not _has_textual():
        raise Refusal(
            say("the app needs the package textual, which is not here; `rl-oom-advisor diagnose` tells the same"),
            Exit.FAILED,
        )
    from advisor import start

    return start.run(parsed)


def _watch(parsed: argparse.Namespace) -> int:
    """The command, its record, and the app over it where it died of memory; then the end that the command had."""
    from advisor.commands.watch import run

    finished = run(parsed)
    if finished.show and _has_textual():
        from advisor import start

        words = ["--record", str(finished.record), *([str(finished.script)] if finished.script else [])]
        start.run(app_parser().parse_args(words))
    if finished.code is not None:
        return finished.code
    from advisor.watch.launcher import exit_like

    return exit_like(finished.status)


def _has_textual() -> bool:
    """Not so where the package was put beside older ones without what it depends on; the commands do not need it."""
    from importlib.util import find_spec

    return find_spec("textual") is not None


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


# --- what goes wrong -------------------------------------------------------------------------------------------------


def _say(sentence: str) -> None:
    """One line on stderr; arguments and names in it are strangers' text."""
    from advisor.hostile import clean_line
    from advisor.redact import redact

    encoding = sys.stderr.encoding or "ascii"
    print(f"{PROGRAM}: {redact(clean_line(sentence))}".encode(encoding, "replace").decode(encoding), file=sys.stderr)


def _open_streams() -> None:
    """Where the caller closed one of the three, the next file that is opened would take its place, and its text."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
                setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - for good


def _flush_output() -> None:
    """Raises Refusal where the output could not be written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        from advisor.commands.streams import unwritten

        _swallow_output()
        raise unwritten(error) from error


def _left(left: SystemExit) -> int:
    """The code that argparse leaves with, once what it printed is written. Whoever reads no more is no failure."""
    try:
        _flush_output()
    except BrokenPipeError:
        _swallow_output()
    except Refusal as refusal:
        _say(str(refusal))
        return refusal.code
    return left.code if isinstance(left.code, int) else Exit.DONE


def _swallow_output() -> None:
    """Whoever read us has gone: what is still buffered must not raise while Python shuts down."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
