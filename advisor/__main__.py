"""`python -m advisor` is the same as `rl-oom-advisor`."""

from __future__ import annotations

from advisor.cli import console

if __name__ == "__main__":
    console()
