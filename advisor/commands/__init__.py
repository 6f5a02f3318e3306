"""Holds the headless commands, one module each: `add_arguments` for its parser, `run` for what it does.

Data to stdout, narration to stderr; nothing here reaches the app. A command's module is imported when it is asked for,
and what `run` needs when it runs: help and completion load nothing but argparse.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from types import ModuleType

from advisor import __version__
from advisor.arguments import PROGRAM, Parser, add_everywhere, add_input, add_machine
from advisor.language import mark, say

COMMANDS = {
    "diagnose": mark("diagnose why a run died of memory, without a screen"),
    "fix": mark("write the launch script that fits, and a report"),
    "scan": mark("print the evidence in logs, nothing more"),
    "settings": mark("list every setting of a script and where it is made"),
    "set": mark("change settings in a script, byte-exact"),
    "estimate": mark("estimate memory in every phase, and whether it fits"),
    "watch": mark("run a command, record its memory, and diagnose it if it dies of memory"),
    "records": mark("list the records of `watch` with how they ended"),
    "share": mark("write a case file of what helped, without names, hosts, paths and secrets"),
    "machine": mark("describe this machine"),
    "config": mark("show your configuration and where it lies"),
    "explain": mark("explain a knob, setting, cause, remedy, crash line or case"),
    "completion": mark("print shell completion for bash, zsh or fish"),
}
"""Name of a command, which is that of its module → its line in the help."""


def command(name: str) -> ModuleType:
    """The module of a command: `add_arguments(parser)`, and `run(parsed)`, which gives the exit code."""
    return import_module(f"advisor.commands.{name}")


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of a command; "": of the app. Its help is in the language spoken now."""
    if not name:
        return app_parser()
    says = say(COMMANDS[name])
    parser = Parser(prog=f"{PROGRAM} {name}", description=f"{says[0].upper()}{says[1:]}{say('.')}")
    command(name).add_arguments(parser)
    add_everywhere(parser)
    return parser


def app_parser() -> argparse.ArgumentParser:
    """The parser of the app, whose help lists the commands and the exit codes."""
    about = say("From a reinforcement-learning run that died of memory to a launch script that fits.")
    codes = say(
        "exit codes: 0 done, 1 the tool failed, 2 wrong usage or unreadable input,\n"
        "            3 does not fit (estimate), 4 nothing to diagnose was found,\n"
        "            5 cannot be said (estimate --strict)"
    )
    title = say("commands ({program} COMMAND --help says more):", program=PROGRAM)
    overview = "\n".join([title, *(f"  {name:11} {say(says)}" for name, says in COMMANDS.items()), "", codes])
    parser = Parser(prog=PROGRAM, description=about, epilog=overview)
    version = f"{PROGRAM} {__version__}"
    parser.add_argument(
        "--version", action="version", version=version, help=say("show program's version number and exit")
    )
    add_input(parser)
    add_machine(parser)
    parser.add_argument("--no-color", action="store_true", help=say("disable colours (as NO_COLOR does)"))
    parser.add_argument("--csv", metavar="FILE", help=say("write the --record as CSV, and nothing else"))
    parser.add_argument("--svg", metavar="FILE", help=say("draw the --record as SVG, and nothing else"))
    parser.add_argument(
        "--resume", nargs="?", const="", metavar="FILE", help=say("resume the last session (or the one in FILE)")
    )
    add_everywhere(parser)
    return parser
