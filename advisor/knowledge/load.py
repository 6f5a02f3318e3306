"""Find, read and cache knowledge/*.yaml. YAML is what people edit; the program loads one JSON compiled from it."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from advisor.knowledge.schema import (
    Advisory,
    Case,
    Framework,
    GpuFact,
    KnobFact,
    Knowledge,
    ModelFact,
    Remedy,
    Signatures,
    Tree,
)

T = TypeVar("T")


class KnowledgeError(Exception):
    """A knowledge file that cannot be used: one sentence naming the file and what is wrong in it."""


def knowledge_folder() -> Path:
    """Where the YAML lies: inside the package in a wheel, beside it in a checkout or an editable install."""
    package = Path(__file__).resolve().parent.parent
    shipped = package / "_knowledge"
    return shipped if shipped.is_dir() else package.parent / "knowledge"


def open_knowledge(own: Sequence[Path] = ()) -> Knowledge:
    """Ours with a user's own knowledge over it: the standing folder of the configuration and those given here."""
    ours = load_knowledge()
    standing = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    if not own and not os.path.isdir(os.path.join(standing, "rl-oom-advisor", "knowledge")):
        return ours  # the usual case needs no YAML
    from advisor.knowledge.own import merged, own_folders

    return merged(ours, own_folders(own))


@lru_cache(maxsize=4)
def load_knowledge(folder: Path | None = None) -> Knowledge:
    """All of knowledge/, typed. Raises KnowledgeError where a file is missing or says what the schema does not know."""
    folder = folder or knowledge_folder()
    files = sorted(folder.rglob("*.yaml"))
    if not files:
        raise KnowledgeError(f"{folder}: no knowledge files here")
    stamp = _stamp(files)
    cached = _cache_file(stamp)
    if cached is not None and cached.is_file():
        try:
            return msgspec.json.decode(cached.read_bytes(), type=Knowledge)
        except (OSError, msgspec.MsgspecError):
            pass  # written by another version or cut short: compile again
    knowledge = compile_knowledge(folder)
    if cached is not None:
        _keep(cached, msgspec.json.encode(knowledge))
    return knowledge


def forget_knowledge() -> None:
    """Let go of what was loaded: for a command that wants its memory for something else."""
    load_knowledge.cache_clear()


def compile_knowledge(folder: Path) -> Knowledge:
    """Read every YAML file of `folder` into the types of the schema."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.yaml")):
        digest.update(file.read_bytes())
    return Knowledge(
        digest=digest.hexdigest()[:12],
        signatures=_typed(folder / "signatures.yaml", Signatures),
        frameworks=tuple(_typed(file, Framework) for file in sorted((folder / "frameworks").glob("*.yaml"))),
        tree=_typed(folder / "decision_tree.yaml", Tree),
        remedies=_typed(folder / "remedies.yaml", tuple[Remedy, ...]),
        advisories=_typed(folder / "advisories.yaml", tuple[Advisory, ...]),
        cases=tuple(_typed(file, Case) for file in sorted((folder / "cases").glob("*.yaml"))),
        models=_typed(folder / "models.yaml", tuple[ModelFact, ...]),
        gpus=_typed(folder / "gpus.yaml", tuple[GpuFact, ...]),
        knobs=_typed(folder / "knobs.yaml", tuple[KnobFact, ...]),
    )


def _typed(file: Path, kind: type[T]) -> T:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data: Any = yaml.load(file.read_bytes(), Loader=loader)  # noqa: S506 - a safe loader, in C where there is one
        return msgspec.convert(data, kind)
    except FileNotFoundError:
        raise KnowledgeError(f"{file}: missing") from None
    except yaml.YAMLError as error:
        raise KnowledgeError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
    except msgspec.ValidationError as error:
        raise KnowledgeError(f"{file}: {error}") from error


def _stamp(files: list[Path]) -> str:
    """Names, sizes and times of the files and of the schema: what decides whether the compiled JSON still holds."""
    digest = hashlib.sha256()
    for file in [*files, *sorted((Path(__file__).parent / "schema").glob("*.py"))]:
        status = file.stat()
        digest.update(f"{file}\0{status.st_mtime_ns}\0{status.st_size}\n".encode())
    return digest.hexdigest()[:20]


def _cache_file(stamp: str) -> Path | None:
    root = os.environ.get("XDG_CACHE_HOME") or (os.path.expanduser("~/.cache") if os.environ.get("HOME") else "")
    return Path(root) / "rl-oom-advisor" / f"knowledge-{stamp}.json" if root else None


def _keep(file: Path, data: bytes) -> None:
    """Best effort: a read-only home only costs time."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        for old in _others(file):
            old.unlink(missing_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as temporary:
            temporary.write(data)
        os.replace(temporary.name, file)
    except OSError:
        return


def _others(file: Path) -> Iterator[Path]:
    """Compiled files of earlier knowledge, all but the newest three."""
    found = sorted(file.parent.glob("knowledge-*.json"), key=lambda f: f.stat().st_mtime, reverse=True)
    yield from found[3:]
