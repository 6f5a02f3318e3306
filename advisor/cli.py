"""The door: arguments in, exit code out; chooses a face.

Only argparse is imported here, so that `--version` and `--help` answer at once; each command imports what it needs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from advisor import __version__
from advisor.exits import Exit, Refusal

PROGRAM = "rl-oom-advisor"
COMMANDS = {
    "diagnose": "say why a run died of memory, without a screen",
    "fix": "write the script that fits, and why",
    "scan": "the evidence in logs, nothing more",
    "settings": "every setting a script makes, and where",
    "set": "change settings in a script, byte-exact",
    "estimate": "the memory ledger, and whether it fits",
    "machine": "what this box has",
    "explain": "a knob, setting, cause, remedy, crash line or case in words",
}
_OVERVIEW = "\n".join(
    [
        "commands (rl-oom-advisor COMMAND --help says more):",
        *(f"  {name:9} {says}" for name, says in COMMANDS.items()),
        "",
        "exit codes: 0 done, 1 the tool failed, 2 wrong usage or unreadable input,",
        "            3 does not fit (estimate), 4 nothing to diagnose was found",
    ]
)


class Parser(argparse.ArgumentParser):
    """argparse whose complaint is one sentence on stderr."""

    def error(self, message: str) -> NoReturn:
        """Leave with exit code 2."""
        raise Refusal(f"{message} ({self.prog} --help shows the usage)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit code; nothing escapes but SystemExit from --help and --version."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except Refusal as refusal:
        _say(str(refusal))
        return refusal.code
    except BrokenPipeError:
        _swallow_output()
        return Exit.DONE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the one boundary: whatever is left is our fault and is recorded
        _say(_recorded(error))
        return Exit.FAILED
    return code


def _run(arguments: list[str]) -> int:
    name = arguments[0] if arguments and arguments[0] in COMMANDS else ""
    parser, words = _parser(name), arguments[1:] if name else arguments
    parsed = parser.parse_intermixed_args(_shielded(words)) if name == "set" else parser.parse_args(words)
    if not name:
        return _app(parsed)
    from advisor.commands import command

    return command(name)(parsed)


def _shielded(words: list[str]) -> list[str]:
    """`--key=value` of a script is not an option of ours: a space before it keeps argparse from thinking so."""
    ours = ("--output=", "--launch=", "--knowledge=", "--help", "--force")
    return [
        f" {word}" if word.startswith("--") and "=" in word and not word.startswith(ours) else word for word in words
    ]


def _app(parsed: argparse.Namespace) -> int:
    """The guided app where there is a terminal, else the same diagnosis as text."""
    if not _has_terminal():
        from advisor.commands import command

        parsed.format = "text"
        return command("diagnose")(parsed)
    from advisor import guided

    return guided.run(parsed)


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


# --- what goes wrong -------------------------------------------------------------------------------------------------


def _say(sentence: str) -> None:
    """One line on stderr; arguments and names in it are strangers' text."""
    from advisor.hostile import clean_line

    encoding = sys.stderr.encoding or "ascii"
    print(f"{PROGRAM}: {clean_line(sentence)}".encode(encoding, "replace").decode(encoding), file=sys.stderr)


def _swallow_output() -> None:
    """Whoever read us has gone: what is still buffered must not raise while Python shuts down."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _recorded(error: Exception) -> str:
    """Write the traceback to the temporary folder; returns the sentence that says so."""
    import tempfile
    import traceback

    said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix=f"{PROGRAM}-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            file.write(f"{PROGRAM} {__version__}, Python {sys.version}\n\n")
            file.write("".join(traceback.format_exception(error)))
    except OSError:
        return f"this is a fault of the program, not of your files ({said})"
    return f"this is a fault of the program, not of your files ({said}); what happened is written in {file.name}"


# --- arguments -------------------------------------------------------------------------------------------------------


def _parser(name: str) -> argparse.ArgumentParser:
    if not name:
        return app_parser()
    parser = Parser(prog=f"{PROGRAM} {name}", description=f"{COMMANDS[name].capitalize()}.", allow_abbrev=False)
    _ARGUMENTS[name](parser)
    return parser


def app_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM,
        description="From a reinforcement-learning run that died of memory to a launch script that fits.",
        epilog=_OVERVIEW,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    _add_input(parser)
    _add_machine(parser)
    parser.add_argument(
        "--no-color", action="store_true", help="no colours (NO_COLOR in the environment does the same)"
    )
    return parser


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", nargs="?", metavar="SCRIPT", help="launch script or config file of the run")
    _add_logs(parser)
    parser.add_argument("--demo", action="store_true", help="use the bundled crash instead of your own files")
    parser.add_argument("--launch", type=int, metavar="N", help="which launch of the script, counted from 1")
    _add_knowledge(parser)
    parser.add_argument("--ascii", action="store_true", help="no signs beyond ASCII")


def _add_logs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log", action="append", default=[], metavar="LOG", help="log file or folder, - for standard input; repeatable"
    )


def _add_knowledge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--knowledge",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder of your own knowledge, merged over ours; repeatable",
    )


def _add_machine(parser: argparse.ArgumentParser) -> None:
    about = parser.add_argument_group("about the machine", "what is given here overrides what is measured")
    about.add_argument(
        "--machine", action="append", default=[], metavar="FILE", help="what `machine --format json` wrote"
    )
    about.add_argument("--gpus", metavar="8xA100-40GB", help="cards of one node")
    about.add_argument("--nodes", type=int, metavar="N", help="nodes alike")
    about.add_argument("--host-ram", metavar="760GB", help="memory of one node")
    about.add_argument("--shm", metavar="64GB", help="size of /dev/shm")
    about.add_argument(
        "--lib", action="append", default=[], metavar="NAME=VERSION", help="installed library; repeatable"
    )
    about.add_argument("--model", metavar="NAME-or-PATH", help="the model, or its config.json")
    about.add_argument(
        "--margin", type=_fraction, default=0.08, metavar="0.08", help="memory to leave free (a fraction)"
    )


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a fraction between 0 and 0.9") from None
    if not 0 <= value <= 0.9:
        raise argparse.ArgumentTypeError(f"{text} is not a fraction between 0 and 0.9")
    return value


def _add_sitting(parser: argparse.ArgumentParser) -> None:
    _add_input(parser)
    _add_machine(parser)
    parser.add_argument(
        "--answer", action="append", default=[], metavar="QUESTION=ANSWER", help="answer a question; repeatable"
    )


def _add_format(parser: argparse.ArgumentParser, *formats: str) -> None:
    parser.add_argument("--format", choices=formats, default="text", help="what is printed (text where not given)")


def _diagnose(parser: argparse.ArgumentParser) -> None:
    _add_sitting(parser)
    _add_format(parser, "text", "markdown", "json")


def _fix(parser: argparse.ArgumentParser) -> None:
    _add_sitting(parser)
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="where to write (default: NAME.fits.EXT beside the script)"
    )
    parser.add_argument(
        "--accept",
        default="recommended",
        metavar="recommended|same-results|ID,ID",
        help="which changes to make: the recommended ones, only those that leave training results alone, or these",
    )
    parser.add_argument("--diff", action="store_true", help="print a unified diff and write nothing")
    parser.add_argument("--force", action="store_true", help="overwrite what is there")


def _scan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("logs", nargs="+", metavar="LOG", help="log file, .gz, .zst or folder; - is standard input")
    _add_knowledge(parser)
    parser.add_argument("--ascii", action="store_true", help="no signs beyond ASCII")
    _add_format(parser, "text", "json")


def _settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scripts", nargs="+", metavar="SCRIPT", help="launch script or config file")
    parser.add_argument(
        "--log", action="append", default=[], metavar="LOG", help="log whose printed configuration fills what is open"
    )
    _add_knowledge(parser)
    parser.add_argument("--ascii", action="store_true", help="no signs beyond ASCII")
    _add_format(parser, "text", "json", "jsonl", "yaml")


def _set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", metavar="SCRIPT", help="launch script or config file")
    parser.add_argument("changes", nargs="+", metavar="KEY=VALUE", help="a setting by its own name, and its new value")
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="where to write (default: NAME.fits.EXT beside the script)"
    )
    parser.add_argument("--launch", type=int, metavar="N", help="only this launch, counted from 1")
    _add_knowledge(parser)
    parser.add_argument("--force", action="store_true", help="overwrite what is there")


def _estimate(parser: argparse.ArgumentParser) -> None:
    _add_input(parser)
    parser.add_argument(
        "--run", metavar="FILE", help="a run file (`settings --format yaml` writes one) instead of a script"
    )
    _add_machine(parser)
    _add_format(parser, "text", "json")


def _machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ascii", action="store_true", help="no signs beyond ASCII")
    _add_format(parser, "text", "json")


def _explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="ID", help="as the reports name it: a knob, setting, cause, remedy, crash line, case"
    )
    _add_knowledge(parser)
    parser.add_argument("--ascii", action="store_true", help="no signs beyond ASCII")


_ARGUMENTS = {
    "diagnose": _diagnose,
    "fix": _fix,
    "scan": _scan,
    "settings": _settings,
    "set": _set,
    "estimate": _estimate,
    "machine": _machine,
    "explain": _explain,
}
