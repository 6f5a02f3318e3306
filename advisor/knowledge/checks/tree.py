"""Checks the decision tree: where its answers lead, what cannot be reached, how long it gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from advisor.knowledge.checks.shelf import Shelf, found
from advisor.knowledge.entries import Finding, KnowledgeEntry
from advisor.knowledge.schema import Question

LONGEST = 7
"""Questions from the start to a cause, at most."""
NEVER_ASKED_FOR = "unclear"
"""The cause where nothing is proved: the walk ends there by itself."""


def check_tree(shelf: Shelf) -> Iterator[Finding]:
    """Answers that lead nowhere or to two places, questions and causes that no answer reaches, circles, long paths."""
    entries = {entry.id: entry for entry in shelf.of("question")}
    causes = shelf.ids("cause")
    for entry in entries.values():
        yield from _ways(entry, set(entries), causes)
    starts = [entry for entry in shelf.of("tree") if entry.value]
    start = starts[-1].value if starts else ""
    if start not in entries:
        if starts:
            yield from found(starts[-1], f"the tree starts with {start!r}, which is no question")
        return
    questions: dict[str, Question] = {name: entry.value for name, entry in entries.items()}
    reached, leaves = _reach(questions, start)
    for name in sorted(set(questions) - reached):
        yield from found(entries[name], f"question {name}: no answer leads to it")
    for entry in shelf.of("cause"):
        if entry.id not in leaves and entry.id != NEVER_ASKED_FOR:
            yield from found(entry, f"cause {entry.id}: no answer leads to it")
    yield from _length(questions, entries, start)


def _ways(entry: KnowledgeEntry, questions: Set[str], causes: Set[str]) -> Iterator[Finding]:
    question: Question = entry.value
    ways: list[tuple[str, tuple[str, ...], str | None, str | None]]
    ways = [(f"answer {key}", ("answers", key), a.next, a.leads_to) for key, a in question.answers.items()]
    ways.append(("no answer", ("unknown_next",), question.unknown_next, question.unknown_leads_to))
    for what, at, following, leaf in ways:
        if (following is None) == (leaf is None):
            yield from found(entry, f"question {entry.id}, {what}: leads to one question or one cause", *at)
        if following is not None and following not in questions:
            yield from found(entry, f"question {entry.id}, {what}: there is no question {following}", *at)
        if leaf is not None and leaf not in causes:
            yield from found(entry, f"question {entry.id}, {what}: there is no cause {leaf}", *at)


def following(question: Question) -> list[str]:
    """The questions that may come next."""
    ways = [*(answer.next for answer in question.answers.values()), question.unknown_next]
    return [name for name in dict.fromkeys(ways) if name is not None]


def _reach(questions: Mapping[str, Question], start: str) -> tuple[set[str], set[str]]:
    reached: set[str] = set()
    leaves: set[str] = set()
    ahead = [start]
    while ahead:
        name = ahead.pop()
        if name in reached or name not in questions:
            continue
        reached.add(name)
        question = questions[name]
        ahead += following(question)
        leaves |= {a.leads_to for a in question.answers.values() if a.leads_to is not None}
        leaves |= {question.unknown_leads_to} if question.unknown_leads_to is not None else set()
    return reached, leaves


def _length(questions: Mapping[str, Question], entries: Mapping[str, KnowledgeEntry], start: str) -> Iterator[Finding]:
    longest: dict[str, int] = {}
    circles: set[str] = set()

    def measure(name: str, above: tuple[str, ...]) -> int:
        if name in above:
            circles.add(name)
            return 0
        if name not in longest:
            after = [measure(way, (*above, name)) for way in following(questions[name]) if way in questions]
            longest[name] = (questions[name].asked_when != ()) + max(after, default=0)
        return longest[name]

    length = measure(start, ())
    for name in sorted(circles):
        yield from found(entries[name], f"question {name}: its answers lead back to it")
    if length > LONGEST and not circles:
        yield from found(entries[start], f"the longest path asks {length} questions; {LONGEST} are enough")
