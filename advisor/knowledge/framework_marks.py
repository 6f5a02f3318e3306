"""Gathers the frameworks' marks in a log: the patterns by which a line tells who trains."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from advisor.knowledge.schema import Framework, FrameworkMark, Signatures


def marked_by(signatures: Signatures, frameworks: Iterable[Framework]) -> Signatures:
    """The same with the frameworks' marks in a log, the most specific first: a fork's before its parent's."""
    from advisor.knowledge.literals import within  # loads the parser of patterns, where knowledge is compiled alone

    ways = ((known, dialect.framework) for dialect in frameworks for known in dialect.recognised_by)
    marks = tuple(
        FrameworkMark(framework, pattern, within(pattern), known.below)
        for known, framework in sorted(ways, key=lambda way: way[0].priority)
        for pattern in known.log
    )
    return msgspec.structs.replace(signatures, framework_marks=marks)
