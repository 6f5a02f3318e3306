"""Reads the keys of a framework out of its own source, with `ast` and yaml: nothing of it is imported or run.

A source is a bare repository, read at a tag, or a package, downloaded without its dependencies. Which of them stands
for which era: upstream_tags.yaml.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Protocol

import yaml
from packaging.version import InvalidVersion, Version

TAGS = Path(__file__).with_name("upstream_tags.yaml")
PACKAGE = "pypi:"
"""Before a version that is read from the package index instead of a repository."""


@dataclass(frozen=True)
class Source:
    """Where one era's keys stand upstream (see upstream_tags.yaml)."""

    tag: str
    """A tag, a commit, or pypi:VERSION; of several the newest."""
    paths: tuple[str, ...]
    kind: str = "parser"
    roots: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    bases: tuple[Source, ...] = ()
    """Packages whose classes those of the framework are derived from; `tag` is "pypi:name==version"."""
    wide: tuple[str, ...] = ()
    """Where else keys stand that a launch may set: those of its other commands."""
    wide_roots: tuple[str, ...] = ()
    older: tuple[str, ...] = ()
    """Older tags of the era, whose keys count, too."""


@dataclass(frozen=True)
class Upstream:
    """What upstream_tags.yaml says of one framework."""

    repository: str
    package: str
    refuses: bool
    """Whether it refuses keys that it does not know."""
    eras: Mapping[str, Source]
    examples: tuple[str, ...] = ()
    """Its launches (glob below the root of the repository)."""
    settled: Mapping[str, str] = field(default_factory=dict)
    """Keys that some version has and that the dialect leaves out there → why."""


def upstream_of(framework: str) -> Upstream:
    """Where a framework lives, and era → where its keys stand."""
    told = yaml.safe_load(TAGS.read_bytes())[framework]
    eras = {}
    for group in told["groups"]:
        bases = tuple(
            Source(f"{PACKAGE}{base['package']}", tuple(base["paths"]), "classes") for base in group.get("bases", ())
        )
        shared = (tuple(group["paths"]), group["kind"], tuple(group.get("roots", ())), tuple(group.get("free", ())))
        wide = (tuple(group.get("wide", ())), tuple(group.get("wide_roots", ())))
        for era, tags in group["eras"].items():
            *older, newest = tags if isinstance(tags, list) else [tags]
            eras[str(era)] = Source(str(newest), *shared, bases, *wide, tuple(map(str, older)))
    examples = tuple(told.get("examples", ()))
    refuses, settled = bool(told.get("refuses")), dict(told.get("settled", {}))
    return Upstream(told["repository"], told.get("package", ""), refuses, eras, examples, settled)


class Tree(Protocol):
    """Source files by tag."""

    def texts(self, tag: str, patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Path and text of each file of a tag that a pattern fits, in the order of the patterns."""
        ...


class Mirror:
    """A bare repository, read with `git show`."""

    def __init__(self, path: str) -> None:
        self.path = path

    def git(self, *arguments: str) -> str | None:
        """What git prints; None where it fails."""
        done = subprocess.run(
            ["git", f"--git-dir={self.path}", *arguments], capture_output=True, text=True, check=False
        )
        return done.stdout if done.returncode == 0 else None

    def texts(self, tag: str, patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
        names = (self.git("ls-tree", "-r", "--name-only", tag) or "").splitlines()
        for name in _ordered(names, patterns):
            text = self.git("show", f"{tag}:{name}")
            if text is not None:
                yield name, text


class Packages:
    """The package index: one wheel at a time, downloaded once, without what it depends on."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = Path(folder or tempfile.mkdtemp(prefix="upstream-"))

    def texts(self, tag: str, patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
        with zipfile.ZipFile(self._wheel(tag)) as wheel:
            inside = {re.sub(r"^[^/]+\.data/purelib/", "", name): name for name in wheel.namelist()}
            for name in _ordered([*inside], [pattern.removeprefix("src/") for pattern in patterns]):
                yield name, wheel.read(inside[name]).decode("utf-8", "replace")

    def versions(self, name: str) -> list[str]:
        """What is published of a package, newest first."""
        command = [sys.executable, "-m", "pip", "index", "versions", name]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.search(r"Available versions: (.*)", asked.stdout)
        return found[1].split(", ") if found else []

    def _wheel(self, wanted: str) -> Path:
        name, _, version = wanted.partition("==")
        stem = f"{name.replace('-', '_').lower()}-{version}-"
        if not any(self.folder.glob(f"{stem}*.whl")):
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            subprocess.run([*command, "--dest", str(self.folder), wanted], check=True)
        return next(self.folder.glob(f"{stem}*.whl"))


_TAG = re.compile(r"(?:[a-z]+-)?v?(\d\S*)")
"""A release's tag: v0.5.1, or of one of several packages of a repository, skyrl-v0.1.0."""


def version_of(tag: str) -> Version | None:
    """The version that a tag or pypi:VERSION names; None where it names none."""
    found = _TAG.fullmatch(tag.removeprefix(PACKAGE))
    try:
        return Version(found[1]) if found else None
    except InvalidVersion:
        return None


def _ordered(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name for pattern in patterns for name in names if fnmatch(name, pattern)))


Keys = dict[str, Any]
"""Key → its default; UNKNOWN where the source computes it."""
UNKNOWN: Any = object()


_PARAMETERS_OF_TYPES = re.compile(r"((?:def|class) \w+)\[[^\]]*\](?=[(:])")


def _parsed(text: str) -> ast.Module:
    """The tree of a source without its parameters of types (`def f[T](`): Python reads them from 3.12 on only."""
    return ast.parse(_PARAMETERS_OF_TYPES.sub(r"\1", text))


def parser_keys(texts: Mapping[str, str]) -> Keys:
    """Option names given to add_argument (or a wrapper that takes a parser first), without their dashes."""
    keys: Keys = {}
    for text in texts.values():
        for node in ast.walk(_parsed(text)):
            if isinstance(node, ast.Call):
                named = [name for a in node.args if (name := _written(a))]
                given = {word.arg: word.value for word in node.keywords}
                action = given.get("action")
                flag = isinstance(action, ast.Constant) and action.value == "store_true"
                default = _literal(given["default"]) if "default" in given else False if flag else None
                keys |= {name.lstrip("-"): default for name in named if name.startswith("--")}
    return keys


def _written(node: ast.expr) -> str:
    """A text in the source, with * for what a loop fills in; "" where it is none."""
    if isinstance(node, ast.JoinedStr):
        if any(" " in str(part.value) for part in node.values if isinstance(part, ast.Constant)):
            return ""  # a sentence
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)
    return str(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _literal(node: ast.expr | None) -> Any:
    """The value of a literal, of field(default=literal), or UNKNOWN."""
    if isinstance(node, ast.Call):
        found = next((word.value for word in node.keywords if word.arg == "default"), None)
        return _literal(found) if found is not None else UNKNOWN
    try:
        return ast.literal_eval(node) if node is not None else UNKNOWN
    except ValueError:
        return UNKNOWN


def _classes(texts: Mapping[str, str]) -> dict[str, ast.ClassDef]:
    found: dict[str, ast.ClassDef] = {}
    for text in texts.values():
        found.update({node.name: node for node in ast.walk(_parsed(text)) if isinstance(node, ast.ClassDef)})
    return found


_Found = tuple[str, ast.ClassDef]
"""A class, and the file in which it stands."""


class _Names:
    """What a name means in a file: a class of its own or one that it imports, or the classes of an alias."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.classes: dict[str, dict[str, ast.ClassDef]] = {file: {} for file in texts}
        self.aliases: dict[tuple[str, str], ast.expr] = {}
        self.imported: dict[tuple[str, str], tuple[str, str]] = {}
        for file, text in texts.items():
            for node in ast.walk(_parsed(text)):
                if isinstance(node, ast.ClassDef):
                    self.classes[file][node.name] = node
                elif isinstance(node, ast.ImportFrom) and node.module:
                    there = node.module.replace(".", "/") + ".py"
                    self.imported |= {(file, one.asname or one.name): (there, one.name) for one in node.names}
                elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias" and node.value:
                    self.aliases[file, ast.unparse(node.target)] = node.value

    def find(self, name: str, file: str) -> Iterator[_Found]:
        """The classes that a name means; of several files the last has it where the name is not imported."""
        there, real = self.imported.get((file, name), (file, name))
        here = next((one for one in self.classes if one.endswith(there)), "") if there else ""
        if (here, real) in self.aliases:
            yield from self.within(self.aliases[here, real], here)
        elif real in self.classes.get(here, {}):
            yield here, self.classes[here][real]
        else:
            yield from [(one, of[real]) for one, of in self.classes.items() if real in of][-1:]

    def within(self, annotation: ast.expr, file: str) -> Iterator[_Found]:
        """The classes that an annotation names."""
        for name in dict.fromkeys(re.findall(r"\w+", ast.unparse(annotation))):
            yield from self.find(name, file)


def class_keys(texts: Mapping[str, str]) -> Keys:
    """Annotated fields of every class, flat."""
    return {
        node.target.id: _literal(node.value)
        for cls in reversed(_classes(texts).values())
        for node in cls.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def constructor_keys(texts: Mapping[str, str], roots: Sequence[str]) -> Keys:
    """Parameters of the constructors of the root classes, and fields of those that are dataclasses.

    Of a root that names a method (`Class.method`) they are those of the method, below its name.
    """
    classes = _classes(texts)
    keys: Keys = {}
    for name, _, method in (root.partition(".") for root in roots):
        cls = classes.get(name)
        if cls is None:
            continue
        if not method:
            keys |= class_keys({name: ast.unparse(cls)})
        for node in cls.body:
            if isinstance(node, ast.FunctionDef) and node.name == (method or "__init__"):
                prefix = f"{method}." if method else ""
                keys |= {f"{prefix}{key}": default for key, default in _parameters(node)}
    return keys


def _parameters(function: ast.FunctionDef) -> Iterator[tuple[str, Any]]:
    named = [*function.args.posonlyargs, *function.args.args]
    unset: list[ast.expr | None] = [None] * (len(named) - len(function.args.defaults))
    given = [*zip(named, [*unset, *function.args.defaults], strict=True)]
    given += zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    yield from ((arg.arg, _literal(default)) for arg, default in given if arg.arg != "self")


def tree_keys(texts: Mapping[str, str], roots: Sequence[str]) -> Keys:
    """Fields of the root classes, and of the classes that their annotations name, with dots between."""
    names = _Names(texts)
    found = (one for root in reversed(roots) for one in names.find(root, ""))
    return dict(pair for one in found for pair in _nested(one, names, 0))


def _nested(found: _Found, names: _Names, depth: int) -> Iterator[tuple[str, Any]]:
    if depth > 6:
        return
    file, cls = found
    for base in cls.bases:
        if isinstance(base, ast.Name):
            for one in names.find(base.id, file):
                yield from _nested(one, names, depth + 1) if one[1] is not cls else ()
    for node in cls.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, _literal(node.value)
            called = [n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)] if node.value is not None else []
            chosen = [one for name in called for one in names.find(name, file)]
            for inner in (*reversed([*names.within(node.annotation, file)]), *chosen):  # the default's own wins
                yield from ((f"{node.target.id}.{k}", d) for k, d in _nested(inner, names, depth + 1))


def yaml_keys(texts: Mapping[str, str]) -> Keys:
    """Flattened keys of configuration files; the first file's defaults count."""
    return dict(pair for text in reversed([*texts.values()]) for pair in _flat(yaml.safe_load(text), ""))


def _flat(tree: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(tree, Mapping):
        return
    for key, value in tree.items():
        yield f"{prefix}{key}", UNKNOWN if isinstance(value, Mapping) else value
        yield from _flat(value, f"{prefix}{key}.")


def upstream_keys(mirror: Tree, packages: Tree, source: Source, package: str = "") -> Keys:
    """What upstream reads at the tag; an own key wins over one of a base class."""
    keys: Keys = {}
    for base in source.bases:
        keys |= class_keys(dict(packages.texts(base.tag.removeprefix(PACKAGE), base.paths)))
    if source.tag.startswith(PACKAGE):
        texts = dict(packages.texts(f"{package}=={source.tag.removeprefix(PACKAGE)}", source.paths))
    else:
        texts = dict(mirror.texts(source.tag, source.paths))
    if source.kind == "parser":
        return keys | parser_keys(texts)
    if source.kind == "classes":
        return keys | class_keys(texts)
    if source.kind == "constructors":
        return keys | constructor_keys(texts, source.roots)
    return keys | (tree_keys(texts, source.roots) if source.kind == "tree" else yaml_keys(texts))


def all_keys(source: Source, mirror: Tree, packages: Tree, package: str) -> Keys:
    """Keys of the training command and of the framework's other ones, of all tags of the era; the newest's defaults."""
    keys = upstream_keys(mirror, packages, source, package)
    for tag in source.older:
        keys = all_keys(replace(source, tag=tag, older=()), mirror, packages, package) | keys
    if source.wide or source.wide_roots:
        wide = replace(source, paths=(*source.paths, *source.wide), roots=source.wide_roots or source.roots)
        keys = upstream_keys(mirror, packages, wide, package) | keys
    return keys
