"""Builds argument parsers: one-sentence complaints, help in the language spoken, and the options that commands share.

Only argparse is imported here, so that `--version` and `--help` answer at once. The language is chosen before a parser
is made: its help is said when it is built.
"""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from advisor.exits import Refusal
from advisor.language import AUTO, ENGLISH, LANGUAGES, mark, say, spoken
from advisor.regex import regex

PROGRAM = "rl-oom-advisor"
_COMPLAINTS = (
    mark("argument {argument}: {problem}"),
    mark("expected one argument"),
    mark("expected at least one argument"),
    mark("the following arguments are required: {words}"),
    mark("unrecognized arguments: {words}"),
    mark("invalid {kind} value: {value}"),
    mark("invalid choice: {value} (choose from {choices})"),
    mark("ignored explicit argument {value}"),
)
"""What argparse complains of, in its own words."""

_TITLE = regex(r"(?<=[⺀-鿿]):$", re.MULTILINE)
"""The colon that argparse puts behind the title of a group."""


class Parser(argparse.ArgumentParser):
    """argparse in the language spoken, whose complaint is one sentence on stderr."""

    def __init__(self, **more: Any) -> None:
        super().__init__(formatter_class=Help, allow_abbrev=False, add_help=False, **more)
        self._positionals.title, self._optionals.title = say("positional arguments"), say("options")
        shows = say("show this help message and exit")
        self.add_argument("-h", "--help", action="help", default=argparse.SUPPRESS, help=shows)

    def format_usage(self) -> str:
        """The usage behind "usage: ": argparse cuts as many characters off, whatever language is spoken."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups, "usage: ")
        return formatter.format_help()

    def format_help(self) -> str:
        """The help, whose titles end in the colon of the language spoken."""
        told = super().format_help()
        return told if spoken() == ENGLISH else _TITLE.sub("：", told)

    def error(self, message: str) -> NoReturn:
        """Leave with exit code 2."""
        told = _translated(message) if spoken() != ENGLISH else message
        raise Refusal(say("{message} ({program} --help shows the usage)", message=told, program=self.prog))


def _translated(message: str) -> str:
    """A complaint of argparse in the language spoken."""
    for text in _COMPLAINTS:
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.*)", re.escape(text))
        if found := re.fullmatch(pattern, message, re.DOTALL):
            fields = found.groupdict()
            if "problem" in fields:
                fields["problem"] = _translated(fields["problem"])
            return say(text, **fields)
    return message


class Help(argparse.RawDescriptionHelpFormatter):
    """Help that breaks Chinese between characters, where argparse knows spaces only."""

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:
        """Introduce the usage in the language spoken."""
        super().add_usage(usage, actions, groups, say("usage: ") if prefix is None else prefix)

    def _split_lines(self, text: str, width: int) -> list[str]:
        if spoken() == ENGLISH:
            return super()._split_lines(text, width)
        from advisor.line_breaks import wrapped

        return wrapped(text, width)


# --- options that commands share -------------------------------------------------------------------------------------


def add_everywhere(parser: argparse.ArgumentParser) -> None:
    """What every command takes."""
    parser.add_argument(
        "--lang", choices=(AUTO, *LANGUAGES), default=AUTO, help=say("language: en, zh, or auto (by the locale)")
    )
    parser.add_argument("--no-redact", action="store_true", help=say("do not redact tokens, keys and passwords"))


def add_input(parser: argparse.ArgumentParser) -> None:
    """The run: its script, logs and record."""
    told = say("launch script or config file of the run, its logs, or a folder of both, in any order")
    parser.add_argument("files", nargs="*", metavar="FILE", help=told)
    add_list(parser, "--log", "LOG", say("log file or folder, - for standard input; repeatable"))
    parser.add_argument("--record", metavar="DIR", help=say("directory that `watch` recorded"))
    parser.add_argument("--demo", action="store_true", help=say("use the bundled crash instead of your own files"))
    parser.add_argument("--launch", type=int, metavar="N", help=say("which launch of the script, counted from 1"))
    add_knowledge(parser)
    add_ascii(parser)


def add_ascii(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ascii", action="store_true", help=say("ASCII output only"))


def add_list(parser: argparse._ActionsContainer, name: str, metavar: str, help: str) -> None:
    """An option that may be given several times."""
    parser.add_argument(name, action="append", default=[], metavar=metavar, help=help)


def add_knowledge(parser: argparse.ArgumentParser) -> None:
    add_list(parser, "--knowledge", "DIR", say("merge a folder of your own knowledge over ours; repeatable"))


def add_machine(parser: argparse.ArgumentParser) -> None:
    """The machine, as the user describes it."""
    about = parser.add_argument_group(say("about the machine"), say("what is given here overrides what is measured"))
    add_list(about, "--machine", "FILE", say("machine file that `machine --format json` wrote; repeatable"))
    add_ray(about)
    about.add_argument("--gpus", metavar="8xA100-40GB", help=say("GPUs per node, e.g. 8xA100-40GB"))
    about.add_argument("--nodes", metavar="N", help=say("number of identical nodes"))
    about.add_argument(
        "--host-ram", metavar="760GB", help=say("host RAM per node; GB is read as GiB, as free -g shows it")
    )
    about.add_argument("--shm", metavar="64GB", help=say("size of /dev/shm"))
    add_list(about, "--lib", "NAME=VERSION", say("version of an installed library; repeatable"))
    fitted = say("version of a library with which this run still fitted; repeatable")
    add_list(about, "--was", "NAME=VERSION", fitted)
    about.add_argument("--model", metavar="NAME-or-PATH", help=say("model name, or path of its config.json"))
    about.add_argument(
        "--max-row",
        type=row_length,
        metavar="N|cap",
        help=say("longest row of the data, prompt and answer, in tokens; cap: count every row as long as settings let"),
    )
    about.add_argument("--margin", type=fraction, metavar="0.08", help=say("fraction of memory to leave free"))


def add_ray(about: argparse._ActionsContainer) -> None:
    about.add_argument("--ray", metavar="auto|ADDRESS", help=say("ask a running Ray cluster what its nodes have"))


def row_length(text: str) -> str:
    """The tokens of a row, or "cap". Raises ArgumentTypeError."""
    if text != "cap" and not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(say("{text} is neither a number of tokens nor cap", text=repr(text)))
    return text


def fraction(text: str) -> float:
    """A fraction of memory. Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(say("{text} is not a fraction between 0 and 0.9", text=repr(text))) from None
    if not 0 <= value <= 0.9:
        raise argparse.ArgumentTypeError(say("{text} is not a fraction between 0 and 0.9", text=text))
    return value


def add_answers(parser: argparse.ArgumentParser) -> None:
    add_list(parser, "--answer", "QUESTION=ANSWER", say("answer a question; repeatable"))


def add_session(parser: argparse.ArgumentParser) -> None:
    """All that a diagnosis is made of, or a session of the app to replay."""
    add_input(parser)
    add_machine(parser)
    add_answers(parser)
    parser.add_argument(
        "--replay", nargs="?", const="", metavar="FILE", help=say("replay the app's last session (or FILE)")
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Where a changed script goes."""
    default = say("where to write (default: NAME.fits.EXT beside the script; - is standard output)")
    parser.add_argument("-o", "--output", metavar="OUT", help=default)
    parser.add_argument("--force", action="store_true", help=say("overwrite existing files"))


def add_format(parser: argparse.ArgumentParser, *formats: str) -> None:
    parser.add_argument("--format", choices=formats, default="text", help=say("output format (default: text)"))
