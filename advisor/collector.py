"""Puts the garbage collector off while the program starts: what is made then stays, and looking through it is waste.

Only the installed program does so, whose process is ours.
"""

from __future__ import annotations

import gc

_STARTING = (500_000, 20, 20)
_usual: list[tuple[int, int, int]] = []


def put_off() -> None:
    """Hardly collect: 40 of 640 ms until the app's verdict stands, 30 of 350 ms of a diagnosis."""
    _usual.append(gc.get_threshold())
    gc.set_threshold(*_STARTING)


def as_usual() -> None:
    """Collect again as Python does, without looking through what the start made; nothing where it was not put off."""
    if _usual:
        gc.freeze()
        gc.set_threshold(*_usual.pop())
