"""What each headless command does. Data to stdout, narration to stderr; nothing here reaches the terminal app."""

from __future__ import annotations

import argparse
from collections.abc import Callable

Command = Callable[[argparse.Namespace], int]


def command(name: str) -> Command:
    """The function behind a command word. Each group is imported when it is asked for."""
    if name in ("scan", "machine", "explain"):
        from advisor.commands import facts

        return {"scan": facts.scan, "machine": facts.machine, "explain": facts.explain}[name]
    if name in ("settings", "set"):
        from advisor.commands import files

        return {"settings": files.settings, "set": files.set_values}[name]
    if name == "config":
        from advisor.commands import choices

        return choices.config
    if name == "completion":
        from advisor.commands import completion

        return completion.completion
    from advisor.commands import sitting

    return {"diagnose": sitting.diagnose, "estimate": sitting.estimate, "fix": sitting.fix}[name]
