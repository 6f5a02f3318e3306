"""What may stand on the command line, and the help that says so.

Only argparse is imported here, so that `--version` and `--help` answer at once. The language is chosen before a parser
is made: its help is said when it is built.
"""

from __future__ import annotations

import argparse
from typing import NoReturn

from advisor import __version__
from advisor.exits import Refusal
from advisor.language import AUTO, ENGLISH, LANGUAGES, mark, say, spoken

PROGRAM = "rl-oom-advisor"
COMMANDS = {
    "diagnose": mark("say why a run died of memory, without a screen"),
    "fix": mark("write the script that fits, and why"),
    "scan": mark("the evidence in logs, nothing more"),
    "settings": mark("every setting a script makes, and where"),
    "set": mark("change settings in a script, byte-exact"),
    "estimate": mark("the memory ledger, and whether it fits"),
    "watch": mark("run a command, record what it holds, and diagnose it if it dies of memory"),
    "machine": mark("what this box has"),
    "config": mark("your own choices: where they stand, and what is in force"),
    "explain": mark("a knob, setting, cause, remedy, crash line or case in words"),
    "completion": mark("the lines that let bash, zsh or fish complete all this"),
}


class Parser(argparse.ArgumentParser):
    """argparse whose complaint is one sentence on stderr."""

    def error(self, message: str) -> NoReturn:
        """Leave with exit code 2."""
        raise Refusal(say("{message} ({program} --help shows the usage)", message=message, program=self.prog))


class Help(argparse.RawDescriptionHelpFormatter):
    """Help that breaks Chinese between characters, where argparse knows spaces only."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        if spoken() == ENGLISH:
            return super()._split_lines(text, width)
        from advisor.line_breaks import wrapped

        return wrapped(text, width)


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of a command; "": of the app. Its help is in the language spoken now."""
    _translate_argparse()
    if not name:
        return app_parser()
    says = say(COMMANDS[name])
    parser = Parser(
        prog=f"{PROGRAM} {name}",
        description=f"{says[0].upper()}{says[1:]}{say('.')}",
        formatter_class=Help,
        allow_abbrev=False,
    )
    _ARGUMENTS[name](parser)
    _everywhere(parser)
    return parser


def _everywhere(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lang", choices=(AUTO, *LANGUAGES), default=AUTO, help=say("language: en, zh, or auto (by the locale)")
    )
    parser.add_argument("--no-redact", action="store_true", help=say("show tokens, keys and passwords as they stand"))


def app_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM,
        description=say("From a reinforcement-learning run that died of memory to a launch script that fits."),
        epilog=_overview(),
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"{PROGRAM} {__version__}",
        help=say("show program's version number and exit"),
    )
    _add_input(parser)
    _add_machine(parser)
    parser.add_argument(
        "--no-color", action="store_true", help=say("no colours (NO_COLOR in the environment does the same)")
    )
    parser.add_argument("--csv", metavar="FILE", help=say("write the --record as a table, and nothing else"))
    parser.add_argument("--svg", metavar="FILE", help=say("draw the --record, and nothing else"))
    parser.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="FILE",
        help=say("take up the last sitting where it was left (or FILE)"),
    )
    _everywhere(parser)
    return parser


def _overview() -> str:
    """The commands and the exit codes."""
    codes = say(
        "exit codes: 0 done, 1 the tool failed, 2 wrong usage or unreadable input,\n"
        "            3 does not fit (estimate), 4 nothing to diagnose was found"
    )
    commands = say("commands ({program} COMMAND --help says more):", program=PROGRAM)
    return "\n".join([commands, *(f"  {name:11} {say(says)}" for name, says in COMMANDS.items()), "", codes])


_OF_ARGPARSE = (
    mark("usage: "),
    mark("options"),
    mark("positional arguments"),
    mark("show this help message and exit"),
    mark("argument %(argument_name)s: %(message)s"),
    mark("expected one argument"),
    mark("expected at least one argument"),
    mark("the following arguments are required: %s"),
    mark("unrecognized arguments: %s"),
    mark("invalid %(type)s value: %(value)r"),
    mark("invalid choice: %(value)r (choose from %(choices)s)"),
    mark("ignored explicit argument %r"),
)


def _translate_argparse() -> None:
    """argparse looks its own words up in gettext, which has no Chinese: ours are put in their place."""
    if spoken() != ENGLISH:
        argparse._ = lambda text: say(text) if text in _OF_ARGPARSE else text  # type: ignore[attr-defined]


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", nargs="?", metavar="SCRIPT", help=say("launch script or config file of the run"))
    _add_logs(parser)
    parser.add_argument("--record", metavar="DIR", help=say("what `watch` recorded of the run"))
    parser.add_argument("--demo", action="store_true", help=say("use the bundled crash instead of your own files"))
    parser.add_argument("--launch", type=int, metavar="N", help=say("which launch of the script, counted from 1"))
    _add_knowledge(parser)
    parser.add_argument("--ascii", action="store_true", help=say("no signs beyond ASCII"))


def _add_logs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log",
        action="append",
        default=[],
        metavar="LOG",
        help=say("log file or folder, - for standard input; repeatable"),
    )


def _add_knowledge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--knowledge",
        action="append",
        default=[],
        metavar="DIR",
        help=say("a folder of your own knowledge, merged over ours; repeatable"),
    )


def _add_machine(parser: argparse.ArgumentParser) -> None:
    about = parser.add_argument_group(say("about the machine"), say("what is given here overrides what is measured"))
    about.add_argument(
        "--machine", action="append", default=[], metavar="FILE", help=say("what `machine --format json` wrote")
    )
    _add_ray(about)
    about.add_argument("--gpus", metavar="8xA100-40GB", help=say("cards of one node"))
    about.add_argument("--nodes", type=int, metavar="N", help=say("nodes alike"))
    about.add_argument("--host-ram", metavar="760GB", help=say("memory of one node"))
    about.add_argument("--shm", metavar="64GB", help=say("size of /dev/shm"))
    about.add_argument(
        "--lib", action="append", default=[], metavar="NAME=VERSION", help=say("installed library; repeatable")
    )
    about.add_argument("--model", metavar="NAME-or-PATH", help=say("the model, or its config.json"))
    about.add_argument("--margin", type=_fraction, metavar="0.08", help=say("memory to leave free (a fraction)"))


def _add_ray(about: argparse._ActionsContainer) -> None:
    about.add_argument("--ray", metavar="auto|ADDRESS", help=say("ask a running Ray cluster what its nodes have"))


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(say("{text} is not a fraction between 0 and 0.9", text=repr(text))) from None
    if not 0 <= value <= 0.9:
        raise argparse.ArgumentTypeError(say("{text} is not a fraction between 0 and 0.9", text=text))
    return value


def _add_answers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--answer", action="append", default=[], metavar="QUESTION=ANSWER", help=say("answer a question; repeatable")
    )


def _add_sitting(parser: argparse.ArgumentParser) -> None:
    _add_input(parser)
    _add_machine(parser)
    _add_answers(parser)
    parser.add_argument(
        "--replay",
        nargs="?",
        const="",
        metavar="FILE",
        help=say("the app's last sitting (or FILE) again"),
    )


def _add_format(parser: argparse.ArgumentParser, *formats: str) -> None:
    parser.add_argument("--format", choices=formats, default="text", help=say("what is printed (text where not given)"))


def _diagnose(parser: argparse.ArgumentParser) -> None:
    _add_sitting(parser)
    _add_format(parser, "text", "markdown", "json")


def _fix(parser: argparse.ArgumentParser) -> None:
    _add_sitting(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help=say("where to write (default: NAME.fits.EXT beside the script; - is standard output)"),
    )
    parser.add_argument(
        "--accept",
        default="recommended",
        metavar="recommended|same-results|ID,ID",
        help=say("which changes to make: the recommended ones, only those that leave training results alone, or these"),
    )
    parser.add_argument("--diff", action="store_true", help=say("print a unified diff and write nothing"))
    parser.add_argument("--force", action="store_true", help=say("overwrite what is there"))


def _scan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "logs", nargs="+", metavar="LOG", help=say("log file, .gz, .zst or folder; - is standard input")
    )
    _add_knowledge(parser)
    parser.add_argument("--ascii", action="store_true", help=say("no signs beyond ASCII"))
    _add_format(parser, "text", "json")


def _settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scripts", nargs="+", metavar="SCRIPT", help=say("launch script or config file"))
    parser.add_argument(
        "--log",
        action="append",
        default=[],
        metavar="LOG",
        help=say("log whose printed configuration fills what is open"),
    )
    _add_knowledge(parser)
    parser.add_argument("--ascii", action="store_true", help=say("no signs beyond ASCII"))
    _add_format(parser, "text", "json", "jsonl", "yaml")


def _set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", metavar="SCRIPT", help=say("launch script or config file"))
    parser.add_argument(
        "changes", nargs="+", metavar="KEY=VALUE", help=say("a setting by its own name, and its new value")
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help=say("where to write (default: NAME.fits.EXT beside the script; - is standard output)"),
    )
    parser.add_argument("--launch", type=int, metavar="N", help=say("only this launch, counted from 1"))
    _add_knowledge(parser)
    parser.add_argument("--force", action="store_true", help=say("overwrite what is there"))


def _estimate(parser: argparse.ArgumentParser) -> None:
    _add_input(parser)
    parser.add_argument(
        "--run", metavar="FILE", help=say("a run file (`settings --format yaml` writes one) instead of a script")
    )
    _add_machine(parser)
    _add_answers(parser)
    _add_format(parser, "text", "json")


def _watch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{PROGRAM} watch [-o DIR] [--alert 95%%] (-- COMMAND ... | --attach PID)"
    parser.add_argument("-o", "--output", metavar="DIR", help=say("folder of the record (default: watch-TIME, here)"))
    parser.add_argument("--attach", type=int, metavar="PID", help=say("join a run that is going already"))
    parser.add_argument(
        "--alert", type=_percent, metavar="95%", help=say("say so on stderr when a card or the host is that full")
    )
    _add_knowledge(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help=say("what to run, behind --"))


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") or float(text) > 1 else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(say("{text} is not a share like 95%", text=repr(text))) from None
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(say("{text} is not a share like 95%", text=text))
    return value


def _machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--machine",
        action="append",
        default=[],
        metavar="FILE",
        help=say("show nodes that were measured before; repeatable"),
    )
    _add_ray(parser)
    parser.add_argument("--ascii", action="store_true", help=say("no signs beyond ASCII"))
    _add_format(parser, "text", "json")


def _config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--init", action="store_true", help=say("write the commented file where there is none"))
    parser.add_argument("--ascii", action="store_true", help=say("no signs beyond ASCII"))


def _explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="ID", help=say("as the reports name it: a knob, setting, cause, remedy, crash line, case")
    )
    _add_knowledge(parser)
    parser.add_argument("--ascii", action="store_true", help=say("no signs beyond ASCII"))


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help=say("the shell that reads them"))
    parser.epilog = say(
        'bash: eval "$({program} completion bash)" in ~/.bashrc\n'
        'zsh:  eval "$({program} completion zsh)" in ~/.zshrc, behind compinit\n'
        "fish: {program} completion fish | source in ~/.config/fish/config.fish",
        program=PROGRAM,
    )


_ARGUMENTS = {
    "diagnose": _diagnose,
    "fix": _fix,
    "scan": _scan,
    "settings": _settings,
    "set": _set,
    "estimate": _estimate,
    "watch": _watch_arguments,
    "machine": _machine,
    "config": _config,
    "explain": _explain,
    "completion": _completion,
}
