"""Finds the training's own bar among the progress bars without a title: the lines around it prove which it is."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.crash.lines import LogLine, glued_bar
from advisor.regex import regex

_BAR = regex(r"^\s*\d+%\|[^|]{0,200}\| ?(?P<done>\d+)/(?P<total>\d+)(?![^\]]{0,80} examples/s)")
_TOTAL = regex(r"Total optimization steps ?= ?(?P<total>\d[\d,]*)")
"""transformers@v4.57.1 trainer.py (_inner_training_loop): the total of its bar."""
_BEGINS = regex(r"\*{3,} ?Running training\b|\bStarting trainer\b")
"""transformers trainer.py; axolotl@v0.4.0 train.py: the next bar is the training's."""
_REPORTS = regex(r"\{['\"]loss['\"]: ")
"""transformers trainer.py (log) prints the loss between two counts of the training's bar."""
_LONG = regex(r"\[\d{1,4}:\d\d:\d\d<")
"""tqdm prints hours where more than one has passed: of one bar alone that is the training (judgement)."""
_MANY = 500
"""Counts of a bar without a title that nothing else explains, and that did not come to its end (judgement)."""
_NEAR = 3
"""Lines between a loss and the bar beside it."""


def training_bar(lines: Iterable[LogLine]) -> int | None:
    """The last count of the training's bar; None where nothing shows which of the bars it is, or there is none."""
    total: str | None = None
    begun, reported = False, -_NEAR - 1
    last: tuple[int, str, str] | None = None
    alone = False
    done: dict[str, int] = {}
    for number, line in enumerate(lines):
        if printed := _TOTAL.search(line.text):
            total, begun = printed["total"].replace(",", ""), True
        elif _BEGINS.search(line.text):
            total, begun = None, True
        if _REPORTS.search(line.text):
            reported = number
            if total is None and last is not None and number - last[0] <= _NEAR:
                total = last[2]
        if (bar := _BAR.match(glued_bar(line) or line.text)) is None:
            continue
        last = (number, bar["done"], bar["total"])
        many = int(bar["done"]) < int(bar["total"]) >= _MANY
        alone = many or _LONG.search(line.text, bar.end()) is not None
        if total is None and (begun or number - reported <= _NEAR):
            total = bar["total"]
        done[bar["total"]] = int(bar["done"])
    if total is None and alone and len(done) == 1:
        return next(iter(done.values()))
    return done.get(total) if total is not None else None
