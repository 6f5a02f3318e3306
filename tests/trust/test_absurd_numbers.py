"""Numbers that no program prints, in every line we know: read as far as they go, and nothing fails."""

from __future__ import annotations

import re

from advisor.crash.patterns import Catalogue
from advisor.crash.scan import scan
from advisor.crash.sources import text_source
from advisor.knowledge import load_knowledge
from advisor.units import read_size
from tests.loops import each

EVERY = Catalogue(load_knowledge().signatures)


@each("number", ["9" * 40, "9" * 400, "9.9.9", "0", "1e999", "٣٣٣"])
def test_every_crash_line_may_hold_it(number):
    for ready in EVERY.ready:
        text = re.sub(r"\d+(?:\.\d+)?", lambda _: number, ready.signature.sample)
        assert scan(text_source(f"{text}\n{ready.signature.sample}\n", "x"), EVERY).lines_read >= 2


def test_what_is_no_size_is_unknown():
    assert [read_size(text) for text in ("9" * 40 + "GiB", "1.2.3GiB", "5EiB", "2GiB")] == [None, None, None, 2 * 2**30]
