"""Merges knowledge of a user or a lab over ours: linted, marked as theirs; a bad file is left out, the rest works."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from advisor.folders import own_knowledge
from advisor.hostile import clean_line
from advisor.knowledge.entries import Finding, KnowledgeEntry, LinesPart, entries_in, entries_of, id_of
from advisor.knowledge.lint import lint_entries
from advisor.knowledge.load import marked_by
from advisor.knowledge.schema import LISTS, OWN_MARK, EntryKind, Framework, Knowledge, Signatures, Tree
from advisor.language import say
from advisor.rules.expression import encode


def own_folders(given: Sequence[Path] = ()) -> tuple[Path, ...]:
    """$XDG_CONFIG_HOME/rl-oom-advisor/knowledge where it exists, then the folders given; later ones win."""
    standing = own_knowledge()
    return (*([standing] if standing is not None else []), *given)


def merged(ours: Knowledge, folders: Sequence[Path]) -> Knowledge:
    """Ours with theirs over it. `refused` holds one sentence a file that was left out: file, line and reason."""
    entries, refused = _readable(folders)
    shipped = entries_of(ours)
    # In rounds: a file left out may be what another one refers to.
    while bad := _first_of_each(lint_entries([*shipped, *entries])) if entries else []:
        refused += bad
        out = {finding.file for finding in bad}
        entries = [entry for entry in entries if entry.file is None or entry.file.path not in out]
    knowledge = _over(ours, entries) if entries else ours
    return msgspec.structs.replace(knowledge, refused=tuple(clean_line(str(finding), 400) for finding in refused))


def _readable(folders: Sequence[Path]) -> tuple[list[KnowledgeEntry], list[Finding]]:
    entries: list[KnowledgeEntry] = []
    refused: list[Finding] = []
    for folder in folders:
        if not folder.is_dir():
            refused.append(Finding(folder, 1, say("no such folder")))
            continue
        found, bad = entries_in(folder)
        refused += _first_of_each(bad)
        out = {finding.file for finding in bad}
        entries += [entry for entry in found if entry.file is None or entry.file.path not in out]
    return entries, refused


def _first_of_each(findings: Iterable[Finding]) -> list[Finding]:
    """One reason a file is enough to refuse it; `python -m advisor.knowledge` tells all."""
    first: dict[Path, Finding] = {}
    for finding in sorted(findings):
        first.setdefault(finding.file, finding)
    return list(first.values())


def _over(ours: Knowledge, entries: Sequence[KnowledgeEntry]) -> Knowledge:
    def over(kind: EntryKind, values: Sequence[Any], name: Callable[[Any], str] = id_of) -> tuple[Any, ...]:
        theirs = [_marked(entry) for entry in entries if entry.kind == kind]
        return tuple({name(value): value for value in [*values, *theirs]}.values())

    frameworks = over("framework", ours.frameworks, lambda v: str(v.framework))
    lines = _lines_over(ours.signatures, entries, over("signature", ours.signatures.signatures))
    start = next((e.value for e in reversed(entries) if e.kind == "tree" and e.value), ours.tree.start)
    digest = hashlib.sha256()
    for entry in entries:
        digest.update(msgspec.json.encode((entry.kind, entry.id, entry.value), enc_hook=encode))
    return msgspec.structs.replace(
        ours,
        digest=f"{ours.digest}+{digest.hexdigest()[:12]}",
        frameworks=frameworks,
        cases=over("case", ours.cases),
        **{name: over(kind, getattr(ours, name)) for name, (kind, _) in LISTS.items()},
        tree=Tree(
            start=start,
            questions=over("question", ours.tree.questions),
            causes=over("cause", ours.tree.causes),
            sharding=over("sharding", ours.tree.sharding),
        ),
        own_cases=tuple(entry.id for entry in entries if entry.kind == "case"),
        signatures=marked_by(lines, frameworks),
    )


def _lines_over(ours: Signatures, entries: Sequence[KnowledgeEntry], signatures: tuple[Any, ...]) -> Signatures:
    """Their lists behind ours; before ours where the first that matches counts."""
    parts: list[LinesPart] = [entry.value for entry in entries if entry.kind == "lines"]
    joined: dict[str, tuple[Any, ...]] = {}
    for name in ("frames", "progress", "engine_figures", "versions", "answers", "counts", "platforms"):
        theirs = [one for part in parts for one in getattr(part, name)]
        first = name in ("answers", "counts", "platforms")
        joined[name] = (*theirs, *getattr(ours, name)) if first else (*getattr(ours, name), *theirs)
    return msgspec.structs.replace(ours, signatures=signatures, **joined)


def _marked(entry: KnowledgeEntry) -> Any:
    """The entry with OWN_MARK behind its title and its file at its source: it is known wherever it speaks."""
    value = entry.value
    changes: dict[str, Any] = {}
    if hasattr(value, "title"):
        changes["title"] = f"{value.title}{say(OWN_MARK)}"
    if hasattr(value, "source"):
        changes["source"] = _theirs(entry, value.source)
    if isinstance(value, Framework):
        for group in ("settings", "environment"):
            facts: dict[str, Any] = getattr(value, group)
            changes[group] = {
                key: msgspec.structs.replace(fact, source=_theirs(entry, fact.source)) for key, fact in facts.items()
            }
    if entry.kind == "question":
        changes["asks"] = f"{value.asks}{say(OWN_MARK)}"
    return msgspec.structs.replace(value, **changes)


def _theirs(entry: KnowledgeEntry, source: str) -> str:
    """A link stays at the start, so that it can be followed."""
    file = say("your {file}", file=entry.file.path) if entry.file is not None else say("yours")
    if source.startswith("http"):
        return say("{link} ({whose})", link=source, whose=file)
    return say("{whose}: {source}", whose=file, source=source)
