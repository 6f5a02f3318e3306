"""Finds, reads and caches knowledge/*.yaml. YAML is what people edit; the program loads one JSON compiled from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from advisor.folders import cache_file, keep, knowledge_folder, own_bytes, own_knowledge
from advisor.knowledge.schema import LISTS, Case, Framework, FrameworkMark, Knowledge, Signatures, Tree
from advisor.knowledge.spelled import spelled
from advisor.knowledge.translation import catalogue_of, kind_of, translated
from advisor.language import ENGLISH, spoken
from advisor.rules.expression import decode, encode

T = TypeVar("T")
H = TypeVar("H", Signatures, Framework)


class KnowledgeError(Exception):
    """A knowledge file that cannot be used: one sentence naming the file and what is wrong in it."""


def open_knowledge(own: Sequence[Path] = ()) -> Knowledge:
    """Ours with a user's own knowledge over it: the standing folder of the configuration and those given here."""
    ours = load_knowledge()
    if not own and own_knowledge() is None:
        return ours  # the usual case needs no YAML
    from advisor.knowledge.own import merged, own_folders

    return merged(ours, own_folders(own))


def load_knowledge(language: str = "") -> Knowledge:
    """All of knowledge/, typed, in `language` (or the one spoken). Raises KnowledgeError where a file is wrong."""
    return _loaded(knowledge_folder(), language or spoken())


@lru_cache(maxsize=4)
def _loaded(folder: Path, language: str) -> Knowledge:
    files = sorted(folder.rglob("*.yaml"))
    if not files:
        raise KnowledgeError(f"{folder}: no knowledge files here")
    stamp = _stamp([*files, *sorted((folder / language).glob("*.json"))], language)
    cached = cache_file(f"knowledge-{stamp}.msgpack")
    if cached is not None:
        try:
            return msgspec.msgpack.decode(own_bytes(cached), type=Knowledge, dec_hook=decode)
        except (OSError, msgspec.MsgspecError):
            pass  # not there, written by another version or cut short: compile again
    knowledge = compile_knowledge(folder, language)
    if cached is not None:
        keep(cached, msgspec.msgpack.encode(knowledge, enc_hook=encode))
    return knowledge


def forget_knowledge() -> None:
    """Let go of what was loaded: for a command that wants its memory for something else."""
    _loaded.cache_clear()


def compile_knowledge(folder: Path, language: str = ENGLISH) -> Knowledge:
    """Read every YAML file of `folder` into the types of the schema, its prose in `language`."""
    words = catalogue_of(folder, language)
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.yaml")):
        digest.update(file.read_bytes())
    frameworks = tuple(
        _hinted(_typed(file, words, Framework)) for file in sorted((folder / "frameworks").glob("*.yaml"))
    )
    return Knowledge(
        digest=digest.hexdigest()[:12],
        signatures=marked_by(_hinted(_typed(folder / "signatures.yaml", words, Signatures)), frameworks),
        frameworks=frameworks,
        tree=_typed(folder / "decision_tree.yaml", words, Tree),
        cases=tuple(_typed(file, words, Case) for file in sorted((folder / "cases").glob("*.yaml"))),
        **{name: _typed(folder / f"{name}.yaml", words, several) for name, (_, several) in LISTS.items()},
    )


def _hinted(part: H) -> H:
    """The same with what each rule of frames and progress needs, for its regex to be worth compiling."""
    from advisor.knowledge.literals import needed

    frames = tuple(msgspec.structs.replace(rule, needs=needed(rule.frame)) for rule in part.frames)
    progress = tuple(msgspec.structs.replace(rule, needs=needed(rule.pattern)) for rule in part.progress)
    return msgspec.structs.replace(part, frames=frames, progress=progress)


def _typed(file: Path, words: Mapping[str, Mapping[str, str]], kind: type[T]) -> T:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data: Any = yaml.load(file.read_bytes(), Loader=loader)  # noqa: S506 - a safe loader, in C where there is one
        said = translated(data, kind_of(file), words.get(kind_of(file), {})) if words else data
        return msgspec.convert(spelled(said), kind, dec_hook=decode)
    except FileNotFoundError:
        raise KnowledgeError(f"{file}: missing") from None
    except yaml.YAMLError as error:
        raise KnowledgeError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
    except msgspec.ValidationError as error:
        raise KnowledgeError(f"{file}: {error}") from error


def _stamp(files: list[Path], language: str) -> str:
    """Names, sizes and times of files, schema and grammar: whether what was compiled of them still holds."""
    digest = hashlib.sha256(language.encode())
    ours = Path(__file__).parent
    schema, grammar = (sorted(folder.glob("*.py")) for folder in (ours / "schema", ours.parent / "rules"))
    for file in (*files, ours / "spelled.py", *schema, *grammar):
        status = file.stat()
        digest.update(f"{file}\0{status.st_mtime_ns}\0{status.st_size}\n".encode())
    return digest.hexdigest()[:20]


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
