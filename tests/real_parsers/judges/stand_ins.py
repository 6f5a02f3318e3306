"""Stands in for heavy packages that a parser's module imports and its parser never uses (vllm, ray, flash_attn)."""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any


class _StandInType(type):
    """A class whose every attribute is another stand-in, and which decorates by leaving alone."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _stand_in(name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if "_stood_in" not in cls.__dict__:  # a framework's own subclass is built as it says
            return super().__call__(*args, **kwargs)
        if len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]
        return _stand_in(cls.__name__)

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __bool__(cls) -> bool:
        return False

    def __or__(cls, other: Any) -> Any:
        return Any

    __ror__ = __or__

    def __getitem__(cls, key: Any) -> Any:
        return cls

    def __lt__(cls, other: Any) -> bool:
        return False

    __gt__ = __ge__ = __le__ = __lt__


def _stand_in(name: str) -> Any:
    def begin(self: Any, *args: Any, **kwargs: Any) -> None: ...

    hooks = {"__init__": begin, "__init_subclass__": _ignored, "__get_pydantic_core_schema__": _anything}
    return _StandInType(name, (), {"_stood_in": True, **hooks})


@classmethod  # type: ignore[misc]
def _ignored(cls: type, **kwargs: Any) -> None:
    """Subclasses may name arguments of the real class."""


@classmethod  # type: ignore[misc]
def _anything(cls: type, *_: Any) -> Any:
    """A field of such a class takes whatever is given."""
    return importlib.import_module("pydantic_core.core_schema").any_schema()


class _StandInModule(ModuleType):
    __path__: list[str] = []
    __version__ = "99.0.0"
    __file__ = "<stand-in>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        value = _stand_in(name)
        setattr(self, name, value)
        return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(names)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in self.names:
            return None
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs."""


def bare_packages(tree: Path, names: Sequence[str]) -> None:
    """Let packages of the framework be found without running their `__init__`, which loads the whole of it."""
    for name in names:
        package = ModuleType(name)
        package.__path__ = [str(tree.joinpath(*name.split(".")))]
        sys.modules[name] = package


def stand_in_for(names: Sequence[str]) -> None:
    """Let every import of `names` and of what lies in them give stand-ins, installed or not."""
    sys.meta_path.insert(0, _Finder(names))


_REAL = ("omegaconf", "hydra", "hydra.core.global_hydra", "pydantic", "dacite", "sympy", "numpy", "torch")


class _LastFinder(_Finder):
    """Asked where no other finder knows a module: everything but the framework's own is stood in for."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        own = name.partition(".")[0] in self.names
        return None if own else importlib.util.spec_from_loader(name, self, is_package=True)


def stand_in_for_missing(own: Sequence[str]) -> None:
    """Let imports of what is not installed give stand-ins, but not those of the framework's `own` packages."""
    for real in _REAL:  # they look for optional packages while they are imported
        with contextlib.suppress(ImportError):
            importlib.import_module(real)
    sys.meta_path.append(_LastFinder(own))
