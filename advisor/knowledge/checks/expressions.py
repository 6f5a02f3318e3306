"""Checks the names that expressions use: facts that nobody states, settings and knobs that there are not."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from advisor.knowledge.checks.shelf import Shelf, found
from advisor.knowledge.entries import Finding, KnowledgeEntry
from advisor.knowledge.schema import EntryKind, Framework, TopologyFact
from advisor.knowledge.vocabulary import FACTS, NAMING_FACTS, RUN_NAMES, SITUATION_WORDS
from advisor.knowledge.yaml_file import At
from advisor.rules.expression import Expression
from advisor.rules.parser import tokens
from advisor.rules.tree import Conditional, Joint, Name, Node, Not

_SPEAKING: tuple[EntryKind, ...] = ("framework", "knob", "remedy", "advisory", "cause", "question")
_OWN = {"settings": ("value", "knob"), "environment": ("value", "knob"), "with_it": ("old", "new")}
"""Part of a dialect → names that only its expressions know."""


def check_expressions(shelf: Shelf) -> Iterator[Finding]:
    """Every name that an expression uses is known where it is evaluated; every situation of a case is a known fact."""
    for entry in (entry for kind in _SPEAKING for entry in shelf.of(kind) if entry.file is not None):
        for at, expression in expressions_of(entry.value):
            yield from _names(entry, at, expression, shelf)
    for entry in shelf.of("case"):
        for name in entry.value.situation:
            known = name in SITUATION_WORDS or name in shelf.ids("knob") or name.startswith("version ")
            if not known and not _is_fact(name, shelf):
                yield from found(entry, f"case {entry.id}: nothing here is called {name!r}", "situation", name)


def expressions_of(part: Any, at: At = ()) -> Iterator[tuple[At, Expression]]:
    """Every expression in it, with its place."""
    if isinstance(part, Expression):
        yield at, part
    elif isinstance(part, msgspec.Struct):
        kind = type(part)
        for field, written in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
            yield from expressions_of(getattr(part, field), (*at, written))
    elif isinstance(part, dict):
        for key, value in part.items():
            yield from expressions_of(value, (*at, key))
    elif isinstance(part, tuple):
        for index, value in enumerate(part):
            yield from expressions_of(value, (*at, index))


def _names(entry: KnowledgeEntry, at: At, expression: Expression, shelf: Shelf) -> Iterator[Finding]:
    about_facts = entry.kind not in ("framework", "knob") and at[0] not in ("value", "also")
    known = () if about_facts else _names_of_run(entry, at, shelf)
    for name in expression.names():
        if about_facts and not _is_fact(name, shelf):
            yield from _found_in(entry, at, expression, name, f"nobody states the fact {name!r}")
        elif not about_facts and name not in known and not name.startswith(("$", "--", "library.")):
            says = f'there is no setting, knob or count {name!r}; a text stands in quotes, "{name}"'
            yield from _found_in(entry, at, expression, name, says)
    for name in _held(expression.tree) if about_facts else ():
        if name in NAMING_FACTS:
            says = f"the fact {name!r} is a name: say what it is to be, as {name} == …"
            yield from _found_in(entry, at, expression, name, says)


def _names_of_run(entry: KnowledgeEntry, at: At, shelf: Shelf) -> Collection[str]:
    known = {*RUN_NAMES, *shelf.ids("knob"), *(name for part in at for name in _OWN.get(str(part), ()))}
    if entry.kind != "framework":
        return {*known, "value", "new"}
    dialect: Framework = entry.value
    if at[0] == "topology" and dialect.topology is not None:
        known |= {*TopologyFact.__struct_fields__, *dialect.topology.let, *dialect.topology.counted_by}
    if at[0] == "resume" and isinstance(at[1], int):
        known |= {*dialect.resume[at[1]].defaults}
    return {*known, *dialect.settings}


def _held(tree: Node) -> Iterator[str]:
    """Names that stand for true or false."""
    if isinstance(tree, Name):
        yield tree.name
    elif isinstance(tree, (Joint, Not)):
        for part in (tree.part,) if isinstance(tree, Not) else tree.parts:
            yield from _held(part)
    elif isinstance(tree, Conditional):
        yield from _held(tree.when)


def _found_in(entry: KnowledgeEntry, at: At, expression: Expression, name: str, says: str) -> Iterator[Finding]:
    """A finding at the word of the expression that is meant."""
    if entry.file is not None:
        offset = next((place for _, word, place in tokens(expression.text) if word == name), 0)
        line, column = entry.file.place((*entry.at, *at), offset)
        yield Finding(entry.file.path, line, f"{entry.kind} {entry.id}: {says}", column)


def _is_fact(name: str, shelf: Shelf) -> bool:
    if name in FACTS:
        return True
    for prefix, known in (
        ("answer.", shelf.ids("question")),
        ("knob.", shelf.ids("knob")),
        ("line.", shelf.ids("signature")),
        ("advisory.cause.", shelf.ids("cause")),
        ("advisory.clear.", shelf.ids("cause")),
    ):
        if name.startswith(prefix):
            return name.removeprefix(prefix) in known
    return name.startswith("library.")
