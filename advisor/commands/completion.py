"""Prints what a shell needs to complete our commands, their options and the values of those.

Made from the parsers, so that it cannot drift from them. The scripts start nothing while somebody types.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from advisor.arguments import PROGRAM
from advisor.commands import COMMANDS, parser_of
from advisor.exits import Exit
from advisor.language import say

_FILES, _FOLDERS = ("FILE", "LOG", "NAME-or-PATH", "OUT"), ("DIR",)
_FUNCTION = "_" + PROGRAM.replace("-", "_")


class CommandOption(NamedTuple):
    """One option of one command ("": the app)."""

    command: str
    names: tuple[str, ...]
    help: str
    takes: str
    """What follows it: "", "word", "file", "folder", or "one of" the values."""
    values: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help=say("the shell to complete in"))
    parser.epilog = say(
        'bash: eval "$({program} completion bash)" in ~/.bashrc\n'
        'zsh:  eval "$({program} completion zsh)" in ~/.zshrc, behind compinit\n'
        "fish: {program} completion fish | source in ~/.config/fish/config.fish",
        program=PROGRAM,
    )


def run(parsed: argparse.Namespace) -> int:
    """Print the script that the shell reads at its start."""
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[parsed.shell]())
    return Exit.DONE


def options() -> Iterator[CommandOption]:
    """Every option of every command, the app's first."""
    for command in ("", *COMMANDS):
        for action in parser_of(command)._actions:
            if action.option_strings:
                values = tuple(str(choice) for choice in action.choices or ())
                said = (action.help or "").replace("%%", "%")
                yield CommandOption(command, tuple(action.option_strings), said, _takes(action), values)


def lone_words(command: str) -> tuple[str, ...]:
    """What may stand behind a command without an option, where it is one of a few words; else files may."""
    lone = (action for action in parser_of(command)._actions if not action.option_strings)
    return tuple(str(choice) for action in lone for choice in action.choices or ())


def _takes(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if action.choices:
        return "one of"
    return "file" if action.metavar in _FILES else "folder" if action.metavar in _FOLDERS else "word"


# --- bash 4 and newer ------------------------------------------------------------------------------------------------

_BASH = """\
# eval "$({program} completion bash)"
{function}() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="" names="" other
    COMPREPLY=()
    for other in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        [ "$other" != -- ] || return  # what stands there is somebody else's command
    done
    [ "$word" != = ] || word=""
    [ "$before" != = ] || before="${{COMP_WORDS[COMP_CWORD-2]}}"
    if [ "$COMP_CWORD" -gt 1 ]; then
        case "${{COMP_WORDS[1]}}" in {either}) command="${{COMP_WORDS[1]}}";; esac
    fi
    case "$command $before" in
{values}
    esac
    case "$command" in
{options}
    esac
    case "$word" in
        -*) mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word");;
        *)
            [ "$COMP_CWORD" -gt 1 ] || names="{commands}"
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -W "${{names//-*/}}" -- "$word"; compgen -f -- "$word");;
    esac
}}
complete -o default -F {function} {program}"""


def _bash() -> str:
    found = list(options())
    values = []
    for option in found:
        pattern = "|".join(f'"{option.command} {name}"' for name in option.names)
        if option.takes == "one of":
            offered = " ".join(option.values)
            values.append(f'        {pattern}) mapfile -t COMPREPLY < <(compgen -W "{offered}" -- "$word"); return;;')
        elif option.takes == "word":
            values.append(f"        {pattern}) compopt +o default; return;;")
        elif option.takes:
            values.append(f"        {pattern}) return;;")
    lines = []
    for command in ("", *COMMANDS):
        words = [
            *lone_words(command),
            *(name for option in found if option.command == command for name in option.names),
        ]
        lines.append(f'        "{command}") names="{" ".join(words)}";;')
    return _BASH.format(
        program=PROGRAM,
        function=_FUNCTION,
        either="|".join(COMMANDS),
        commands=" ".join(COMMANDS),
        values="\n".join(values),
        options="\n".join(lines),
    )


# --- zsh -------------------------------------------------------------------------------------------------------------

_ZSH = """\
# eval "$({program} completion zsh)", after compinit
{function}() {{
    local context state line command=""
    local -a commands
    commands=(
{commands}
    )
    if (( CURRENT > 2 )) && (( ${{commands[(I)$words[2]:*]}} )); then
        command=$words[2]; shift words; (( CURRENT-- ))
    fi
    (( CURRENT == 2 )) && [[ -z $command && $words[2] != -* ]] && _describe command commands
    case $command in
{cases}
    esac
}}
compdef {function} {program}"""
_ZSH_VALUES = {"": "", "word": ":value: ", "file": ":file:_files", "folder": ":folder:_files -/"}


def _zsh() -> str:
    found = list(options())
    cases = []
    for command in ("", *COMMANDS):
        words = lone_words(command)
        lone = f"*:word:({' '.join(words)})" if words else "*:file:_files"
        lone = "*::command:_normal" if command == "watch" else lone
        own = [spec for option in found if option.command == command for spec in _zsh_specs(option)]
        given = " ".join(shlex.quote(spec) for spec in (*own, lone))
        cases.append(f"        {shlex.quote(command)}) _arguments -S {given};;")
    commands = "\n".join(f"        {shlex.quote(f'{name}:{say(says)}')}" for name, says in COMMANDS.items())
    return _ZSH.format(program=PROGRAM, function=_FUNCTION, commands=commands, cases="\n".join(cases))


def _zsh_specs(option: CommandOption) -> Iterator[str]:
    told = option.help.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    follows = f":value:({' '.join(option.values)})" if option.takes == "one of" else _ZSH_VALUES[option.takes]
    return (f"*{name}{'=' if name.startswith('--') and follows else ''}[{told}]{follows}" for name in option.names)


# --- fish ------------------------------------------------------------------------------------------------------------


_FISH_TAKES = {"": [], "word": ["-x"], "file": ["-r", "-F"], "folder": ["-x", "-a", "(__fish_complete_directories)"]}


def _fish() -> str:
    lines = [f"# {PROGRAM} completion fish | source"]
    for name, says in COMMANDS.items():
        lines.append(_fish_line("__fish_use_subcommand", ["-a", name, "-d", say(says)]))
        if words := lone_words(name):
            lines.append(_fish_line(f"__fish_seen_subcommand_from {name}", ["-f", "-a", " ".join(words)]))
    no_command = f"not __fish_seen_subcommand_from {' '.join(COMMANDS)}"
    for option in options():
        when = f"__fish_seen_subcommand_from {option.command}" if option.command else no_command
        names = [("-l", name[2:]) if name.startswith("--") else ("-s", name[1:]) for name in option.names]
        takes = ["-x", "-a", " ".join(option.values)] if option.takes == "one of" else _FISH_TAKES[option.takes]
        lines.append(_fish_line(when, [*(word for pair in names for word in pair), *takes, "-d", option.help]))
    return "\n".join(lines)


def _fish_line(when: str, words: Iterable[str]) -> str:
    return " ".join(["complete", "-c", PROGRAM, "-n", shlex.quote(when), *(shlex.quote(word) for word in words)])
