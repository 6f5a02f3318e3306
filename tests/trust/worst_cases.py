"""Each signature against a megabyte made to mislead it, by the whole scan.

    python -m tests.trust.worst_cases [BYTES [pumped]]

Made of its own sample: cut short, without its last characters, its anchors, its words over and over, on one line and
on many, with and without digits; "pumped": cut at each of its words, and one character over and over from there.
Prints the slowest.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator

from advisor.crash.patterns import Catalogue, Ready
from advisor.crash.scan import scan
from advisor.crash.sources import text_source
from advisor.knowledge import load_knowledge

Texts = Callable[[Ready, int], Iterator[tuple[str, str]]]
PUMPED = (" ", "9", "a", ".", ":", "(", "\n", "\t")
MOST_CUTS = 16
SLOW = 2.0
"""Seconds of processor time; what takes longer is printed at once."""


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


def slowest(every: Catalogue, size: int, texts: Texts = repeated) -> list[tuple[float, str, str]]:
    """(seconds of processor time, signature, how) of each signature's worst, the slowest first."""
    found = []
    for ready in every.ready:
        times = []
        for how, text in texts(ready, size):
            begun = time.process_time()
            scan(text_source(text, "x"), every)
            times.append((time.process_time() - begun, ready.signature.id, how))
        found.append(max(times))
        if max(times)[0] > SLOW:
            print(f"{max(times)[0]:6.2f} s  {ready.signature.id}: {max(times)[2]}", flush=True)
    return sorted(found, reverse=True)


def main(size: str = "1000000", way: str = "repeated") -> None:
    """Print the ten slowest."""
    every = Catalogue(load_knowledge().signatures)
    found = slowest(every, int(size), pumped if way == "pumped" else repeated)
    print(f"{len(found)} signatures, {size} bytes each way")
    for took, name, how in found[:10]:
        print(f"{took:6.2f} s  {name}: {how}")


if __name__ == "__main__":
    main(*sys.argv[1:])
