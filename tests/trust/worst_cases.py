"""Each signature against a megabyte made to mislead it, by the whole scan.

    python -m tests.trust.worst_cases [BYTES [repeated|pumped [SECONDS]]]

All are tried short first; those that took longest go on to a longer text, as many as the time allows. Made of its own
sample: cut short, without its last characters, its anchors, its words over and over, on one line and on many, with and
without digits; "pumped": cut at each of its words, and one character over and over from there. Prints the slowest.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from advisor.crash.patterns import Catalogue, Ready
from advisor.crash.scan import scan
from advisor.crash.sources import text_source
from advisor.knowledge import load_knowledge

Texts = Callable[[Ready, int], Iterator[tuple[str, str]]]
PUMPED = (" ", "9", "a", ".", ":", "(", "\n", "\t")
MOST_CUTS = 16
SLOW = 2.0
"""Seconds of processor time; what takes longer is printed at once."""
TOLD_EVERY = 60
STEPS = ((50, 8), (10, 8), (1, 1))
"""Part of the full size, and of how many texts one goes on to the next step: what is bad for its length shows early."""


class Took(NamedTuple):
    seconds: float
    ready: Ready
    number: int
    how: str

    def __lt__(self, other: tuple[object, ...]) -> bool:
        return self.seconds < float(str(other[0]))

    def __str__(self) -> str:
        return f"{self.seconds:6.2f} s  {self.ready.signature.id}: {self.how}"


def misleading(ready: Ready) -> Iterator[str]:
    """Pieces to be repeated."""
    sample = ready.signature.sample
    match = re.search(ready.pattern, sample)
    begin, end = match.span() if match else (0, len(sample))
    yield sample[begin : end - 1]
    yield sample[begin : begin + (end - begin) // 2]
    yield re.sub(r"\d", "9" * 20, sample[begin : end - 1])
    yield re.sub(r" ", " " * 40, sample[begin : end - 1])
    yield "".join(ready.signature.anchors) or sample[begin : begin + 9]
    yield from (f"{anchor} " for anchor in ready.signature.anchors)


def repeated(ready: Ready, size: int) -> Iterator[tuple[str, str]]:
    """(what it is, text) of every misleading piece, repeated in three ways."""
    for number, piece in enumerate(misleading(ready)):
        for joint, kind in (("", "one line"), ("\n", "lines"), ("\r", "redraws")):
            yield f"piece {number}, {kind}", (piece + joint) * (size // (len(piece) + 1) + 1)


def pumped(ready: Ready, size: int) -> Iterator[tuple[str, str]]:
    """(what it is, text) of the sample up to each of its words, then one character over and over."""
    sample = ready.signature.sample
    for cut in [found.end() for found in re.finditer(r"\w+\W*", sample)][:MOST_CUTS]:
        for character in PUMPED:
            yield f"{character!r} after {cut}", sample[:cut] + character * size


def slowest(every: Catalogue, size: int, texts: Texts = repeated, seconds: float = math.inf) -> list[Took]:
    """The texts of full size that took longest, the slowest first, of those that were slow when they were short."""
    ends = time.monotonic() + seconds
    waiting = [(ready, number) for ready in every.ready for number, _ in enumerate(texts(ready, 1))]
    tried: list[Took] = []
    for part, kept in STEPS:
        tried, told = [], time.monotonic()
        for done, (ready, number) in enumerate(waiting, 1):
            how, text = next(itertools.islice(texts(ready, size // part), number, None))
            begun = time.process_time()
            scan(text_source(text, "x"), every)
            tried.append(Took(time.process_time() - begun, ready, number, how))
            if tried[-1].seconds > SLOW:
                print(tried[-1], flush=True)
            if (now := time.monotonic()) - told > TOLD_EVERY:
                print(f"  {done} of {len(waiting)} of {size // part} bytes, {ends - now:.0f} s left", flush=True)
                told = now
            if now > ends:
                break
        print(
            f"{len(tried)} of {len(waiting)} texts of {size // part} bytes, at most {max(tried).seconds:.2f} s",
            flush=True,
        )
        waiting = [(one.ready, one.number) for one in sorted(tried, reverse=True)[: len(tried) // kept + 1]]
    return sorted(tried, reverse=True)


def main(size: str = "1000000", way: str = "repeated", seconds: str = "1200") -> None:
    """Print the ten slowest."""
    every = Catalogue(load_knowledge().signatures)
    found = slowest(every, int(size), pumped if way == "pumped" else repeated, float(seconds))
    print(f"{len(every.ready)} signatures, {len(found)} texts of {size} bytes; the slowest:")
    for one in found[:10]:
        print(one)


if __name__ == "__main__":
    main(*sys.argv[1:])
