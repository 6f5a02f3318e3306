"""Holds the one rule language of the knowledge files: expressions, and the functions they may call."""

import advisor.rules.functions  # noqa: F401 - an expression finds its functions in the table that this fills
