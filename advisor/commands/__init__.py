"""What each headless command does. Data to stdout, narration to stderr; nothing here reaches the terminal app."""

from advisor.commands.facts import explain, machine, scan
from advisor.commands.files import set_values, settings
from advisor.commands.sitting import diagnose, estimate, fix

COMMANDS = {
    "diagnose": diagnose,
    "fix": fix,
    "scan": scan,
    "settings": settings,
    "set": set_values,
    "estimate": estimate,
    "machine": machine,
    "explain": explain,
}

__all__ = ["COMMANDS"]
