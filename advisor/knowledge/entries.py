"""Lists every entry of the knowledge files with its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from advisor.knowledge import schema
from advisor.knowledge.yaml_file import At, BadFile, YamlFile, read_yaml, typed
from advisor.language import listed, say


class TreePart(schema.Strict, frozen=True):
    """decision_tree.yaml of somebody else: only what it adds or replaces."""

    start: str = ""
    questions: tuple[schema.Question, ...] = ()
    causes: tuple[schema.Cause, ...] = ()
    sharding: tuple[schema.Sharding, ...] = ()


class LinesPart(schema.Strict, frozen=True):
    """signatures.yaml of somebody else."""

    signatures: tuple[schema.Signature, ...] = ()
    frames: tuple[schema.FrameRule, ...] = ()
    progress: tuple[schema.Progress, ...] = ()
    answers: tuple[schema.AnswerLength, ...] = ()
    versions: tuple[schema.VersionMark, ...] = ()
    engine_figures: tuple[schema.EngineFigure, ...] = ()
    counts: tuple[schema.LogCount, ...] = ()
    platforms: tuple[schema.PlatformMark, ...] = ()
    statements: schema.StatementWords | None = None
    projects: tuple[schema.Project, ...] = ()


class KnowledgeEntry(Struct, frozen=True):
    """One thing with an id. `file` None: it comes with the program and was checked when the program was made."""

    kind: schema.EntryKind
    id: str
    value: Any
    file: YamlFile | None = None
    at: At = ()

    def line(self, *more: str | int) -> int:
        """The line of a part of it."""
        return self.file.line((*self.at, *more)) if self.file is not None else 0


class Finding(Struct, frozen=True, order=True):
    """What is wrong, and where."""

    file: Path
    line: int
    says: str
    column: int = 0
    """From 1; 0: the line as a whole."""

    def __str__(self) -> str:
        place = f"{self.line}:{self.column}" if self.column else str(self.line)
        return f"{self.file}:{place}: {self.says}"


_FOLDERS: dict[str, tuple[schema.EntryKind, Any, str]] = {
    "frameworks": ("framework", schema.Framework, "framework"),
    "cases": ("case", schema.Case, "id"),
}

_RECORDS = frozenset({"measured.yaml"})
"""What was measured, beside what the ledger says of it: no knowledge the program reads, but it has to be YAML."""


def entries_in(folder: Path) -> tuple[list[KnowledgeEntry], list[Finding]]:
    """All entries of the YAML files below `folder`, and one finding for each file that cannot be read as what it is."""
    entries: list[KnowledgeEntry] = []
    findings: list[Finding] = []
    for path in sorted(folder.rglob("*.y*ml")):
        found, wrong = _read(path, path.relative_to(folder))
        entries += found
        findings += wrong
    return entries, findings


def _read(path: Path, name: Path) -> tuple[list[KnowledgeEntry], list[Finding]]:
    try:
        file = read_yaml(path)
        twice = [
            Finding(path, line, say("{key} stands there twice; the second wins", key=key))
            for key, line in file.repeated
        ]
        return _entries(file, name), twice
    except BadFile as bad:
        return [], [Finding(path, bad.line, bad.says, bad.column)]
    except OSError as error:
        return [], [Finding(path, 1, say("cannot be read: {why}", why=error.strerror or error))]


def _entries(file: YamlFile, name: Path) -> list[KnowledgeEntry]:
    """Raises BadFile where the name is none of ours or the content is not what the name says."""
    if len(name.parts) == 2 and name.parts[0] in _FOLDERS:
        kind, struct, key = _FOLDERS[name.parts[0]]
        value = typed(file, struct)
        return [KnowledgeEntry(kind, getattr(value, key), value, file)]
    if name.suffix == ".yaml" and name.parent == Path() and name.stem in schema.LISTS:
        kind, several = schema.LISTS[name.stem]
        values = typed(file, several)
        return [KnowledgeEntry(kind, id_of(value), value, file, (index,)) for index, value in enumerate(values)]
    if str(name) == "decision_tree.yaml":
        tree = typed(file, TreePart)
        parts: list[tuple[schema.EntryKind, Sequence[Any]]] = [("question", tree.questions), ("cause", tree.causes)]
        parts.append(("sharding", tree.sharding))
        return [KnowledgeEntry("tree", "start", tree.start, file, ("start",)), *_listed(file, parts)]
    if str(name) == "signatures.yaml":
        lines = typed(file, LinesPart)
        return [KnowledgeEntry("lines", "lines", lines, file), *_listed(file, [("signature", lines.signatures)])]
    if str(name) in _RECORDS:
        return []
    lists = (f"{one}.yaml" for one in schema.LISTS)
    known = [*(f"{folder}/NAME.yaml" for folder in _FOLDERS), *lists, "decision_tree.yaml", "signatures.yaml"]
    raise BadFile(1, say("no file of this name is read; files are {names}", names=listed(known)))


def _listed(file: YamlFile, parts: Iterable[tuple[schema.EntryKind, Sequence[Any]]]) -> Iterator[KnowledgeEntry]:
    """The entries of these lists of a file; a list goes by its kind in the plural, "sharding" has none."""
    for kind, values in parts:
        field = kind if kind == "sharding" else f"{kind}s"
        for number, value in enumerate(values):
            yield KnowledgeEntry(kind, value.id, value, file, (field, number))


def id_of(value: Any) -> str:
    """The id of an entry of a list; models, cards and data sets go by their name."""
    return str(getattr(value, "id", None) or value.name)


def entries_of(knowledge: schema.Knowledge) -> list[KnowledgeEntry]:
    """The entries of knowledge that is already loaded, without places."""
    tree, lines = knowledge.tree, knowledge.signatures
    groups: Sequence[tuple[schema.EntryKind, Sequence[Any]]] = (
        ("case", knowledge.cases),
        *((kind, getattr(knowledge, name)) for name, (kind, _) in schema.LISTS.items()),
        ("signature", lines.signatures),
        ("question", tree.questions),
        ("cause", tree.causes),
    )
    found = [KnowledgeEntry(kind, id_of(value), value) for kind, values in groups for value in values]
    found += [KnowledgeEntry("framework", dialect.framework, dialect) for dialect in knowledge.frameworks]
    return [*found, KnowledgeEntry("tree", "start", tree.start)]
