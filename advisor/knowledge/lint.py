"""Lints a folder of knowledge, one line a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from advisor.knowledge.checks.dialects import check_dialects, check_patterns
from advisor.knowledge.checks.expressions import check_expressions
from advisor.knowledge.checks.references import check_references, check_remedies_applied, check_sources, check_tree
from advisor.knowledge.checks.shelf import Shelf
from advisor.knowledge.checks.versions import check_versions
from advisor.knowledge.entries import Finding, KnowledgeEntry, entries_in

CHECKS: tuple[Callable[[Shelf], Iterator[Finding]], ...] = (
    check_sources,
    check_patterns,
    check_dialects,
    check_references,
    check_remedies_applied,
    check_expressions,
    check_tree,
    check_versions,
)


def lint_folder(folder: Path, under: Sequence[KnowledgeEntry] = ()) -> list[Finding]:
    """Findings in `folder`, sorted by place. `under`: knowledge that it is merged over and may refer to."""
    entries, findings = entries_in(folder)
    return sorted({*findings, *lint_entries([*under, *entries])})


def lint_entries(entries: Sequence[KnowledgeEntry]) -> list[Finding]:
    """What the checks find in the entries that have a place."""
    shelf = Shelf(entries)
    return sorted({finding for check in CHECKS for finding in check(shelf)})
