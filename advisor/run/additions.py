"""Tells whether a setting that a command does not have may be added to it."""

from __future__ import annotations

from advisor.language import say
from advisor.run.dialect import Recognised, beside_file, elsewhere, knows_keys
from advisor.script.launch import Launch

_CHOOSES_A_FILE = frozenset({"--config-path", "-cp", "--config-name", "-cn", "--config-dir", "-cd", "--config"})
"""Options that only name a file; what is set beside them is key=value all the same."""


def no_place(recognised: Recognised, launch: Launch | None) -> str:
    """Why a setting that the command does not have may not be added to it, in words; "" where it may.

    Nobody knows whether a program of which only the log, or only the name, tells would read it.
    """
    framework = recognised.framework
    if framework is None or launch is None:
        return ""
    told = {"framework": framework.title}
    if file := elsewhere(framework, launch):
        told["file"] = file
        return say(
            "{framework} reads its settings from a Python file, not the command line: give {file} instead", **told
        )
    if recognised.told_by == "log":
        return say("only the log speaks of {framework}; whether this command reads its settings is not known", **told)
    own = [setting for setting in launch.settings if setting.origin == "command" and setting.key not in _CHOOSES_A_FILE]
    if beside_file(recognised, launch) == "nothing":
        if any(one.origin != "command" and one.span is not None for one in launch.settings):
            return ""  # it is written into that file
        return say("beside a config file this version of {framework} reads nothing: change it there", **told)
    options = [setting.key.startswith("-") for setting in own]
    if own and framework.syntax in ("hydra", "dotlist") and all(options):
        return say("this command takes --options, {framework} takes key=value", **told)
    if own and framework.syntax == "argparse" and not any(options):
        return say("this command takes key=value, {framework} takes --options", **told)
    if own and framework.syntax == "argparse" and not recognised.own_program and not knows_keys(framework, launch):
        return say("the program has options of its own; whether it takes those of {framework} is not known", **told)
    return ""
