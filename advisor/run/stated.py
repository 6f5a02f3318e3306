"""Finds what a launch says of itself by the names of its settings: that it only evaluates, that it trains adapters."""

from __future__ import annotations

import re

from advisor.regex import regex
from advisor.run.run import Run

_EVALUATES = regex(r"^do_(?:predict|eval)$|^predict_with_generate$")
"""Switches of transformers' scripts for a run that only evaluates, where do_train is not on beside them."""
_TRAINS = regex(r"^do_train$|^num_train_epochs$|^max_steps$|^learning_rate$")
_OFF = frozenset(("", "0", "false", "no", "none", "null"))


def evaluates_only(run: Run) -> str:
    """The setting that makes it a run which only evaluates, as it stands; "" where it trains or nobody knows."""
    return "" if stated(run, _TRAINS) else stated(run, _EVALUATES)


def stated(run: Run, names: re.Pattern[str]) -> str:
    """The first setting of such a name that is not switched off, as it stands; "" where there is none."""
    own = ((one, one.key.lstrip("-+").replace("-", "_").lower()) for one in run.settings)
    found = (f"{one.key} {one.text}" for one, key in own if names.search(key) and one.text.lower() not in _OFF)
    return next(found, "")
