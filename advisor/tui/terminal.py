"""What the terminal can show."""

from __future__ import annotations

import os
import sys


def draws_signs() -> bool:
    """Whether the terminal has more than ASCII: the Linux console's font lacks most signs, other encodings all."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    return encoding == "utf8" and os.environ.get("TERM") != "linux"
