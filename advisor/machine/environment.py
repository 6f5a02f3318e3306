"""Where the Python that trains keeps its packages, found from files alone: no interpreter is ever started."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from advisor.hostile import clean_line
from advisor.language import mark, say

PathLookup = Callable[[str], str | None]
"""Program name → its path, as `shutil.which` does for the PATH that the training would have."""
_PYTHON = re.compile(r"(?:python|pypy)(\d(?:\.\d+)?)?$")
_READ_LIMIT = 65536
_NOT_HERE = mark("{folder} ({why}; {python}, which the script names, is not here)")


@dataclass(frozen=True, slots=True)
class _Prefix:
    """A Python installation. `version` "3.10" narrows lib/python3.*; "" takes all."""

    folder: Path
    version: str = ""
    sees_system: bool = True
    """False: a virtual environment closed to the system's packages."""


def training_environment(
    interpreter: str | None, environ: Mapping[str, str], path_lookup: PathLookup, whose: str = ""
) -> tuple[str, tuple[Path, ...]]:
    """(description, site directories in import order) of the environment that runs the training.

    The interpreter the script names (a path, or a program such as torchrun whose first line names one), else
    $VIRTUAL_ENV, $CONDA_PREFIX, else the first python3 on PATH. ("", ()) where none is found.
    `whose`: who names the interpreter, where that is not the script.
    """
    missing = ""
    for python, why, named in _candidates(interpreter, environ, path_lookup, whose):
        prefix = _prefix_of(python, environ)
        sites = tuple(_site_dirs(prefix, environ)) if prefix is not None else ()
        if prefix is not None and sites:
            folder = clean_line(str(prefix.folder), 200)
            if missing:
                return say(_NOT_HERE, folder=folder, why=why, python=missing), sites
            return say("{folder} ({why})", folder=folder, why=why), sites
        if named:
            missing = clean_line(str(python), 200)
    return "", ()


def _candidates(
    interpreter: str | None, environ: Mapping[str, str], path_lookup: PathLookup, whose: str
) -> Iterable[tuple[Path, str, bool]]:
    """(Python, why it, whether the script names it), the likeliest first."""
    named = _named(interpreter, path_lookup) if interpreter else None
    if named is not None:
        yield named, whose or say("python named by the script"), True
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if environ.get(variable):
            yield Path(environ[variable]) / "bin" / "python", f"${variable}", False
    for program in ("python3", "python"):
        found = path_lookup(program)
        if found:
            yield Path(found), say("first {program} on PATH", program=program), False


def _named(interpreter: str, path_lookup: PathLookup) -> Path | None:
    """The Python a launch names. A bare `python3` names none: the activated environment decides."""
    path = Path(interpreter).expanduser()
    if _PYTHON.match(path.name):
        return path.absolute() if "/" in interpreter else None
    found = str(path) if "/" in interpreter else path_lookup(interpreter)
    return _shebang(Path(found)) if found else None


def _shebang(program: Path) -> Path | None:
    """The Python in the first line of an installed script such as torchrun or swift."""
    first = _read(program).partition("\n")[0]
    words = first.removeprefix("#!").split()
    if not first.startswith("#!") or not words or not _PYTHON.match(Path(words[0]).name):
        return None
    return Path(words[0])


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_READ_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""


# --- from a Python to its prefix -----------------------------------------------------------------------------------


def _prefix_of(python: Path, environ: Mapping[str, str]) -> _Prefix | None:
    """The installation a `bin/python` belongs to; the link itself says which virtual environment it is."""
    shimmed = _behind_shim(python, environ)
    if shimmed is not None:
        python = shimmed
    folder = python.parent.parent
    settings = _settings(folder / "pyvenv.cfg")
    if settings:
        return _Prefix(folder, "", settings.get("include-system-site-packages", "").lower() == "true")
    version = _version(python)
    if _has_packages(folder, version):
        return _Prefix(folder, version)
    try:
        real = python.resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    folder = real.parent.parent
    return _Prefix(folder, version) if _has_packages(folder, version) else None


def _behind_shim(python: Path, environ: Mapping[str, str]) -> Path | None:
    """pyenv puts one script per program into shims/; a file says which version it stands for."""
    if python.parent.name != "shims":
        return None
    home = python.parent.parent
    chosen = environ.get("PYENV_VERSION") or _read(home / "version")
    names = chosen.replace(":", " ").split()
    return home / "versions" / Path(names[0]).name / "bin" / "python" if names and names[0] != "system" else None


def _settings(path: Path) -> dict[str, str]:
    """pyvenv.cfg: "key = value" lines."""
    pairs = (line.partition("=") for line in _read(path).splitlines())
    return {key.strip().lower(): value.strip() for key, sign, value in pairs if sign}


def _version(python: Path) -> str:
    """ "3.10" from the name of the program behind the links, "" where the name does not tell."""
    try:
        name = python.resolve().name
    except (OSError, RuntimeError):  # RuntimeError: links in a circle
        name = python.name
    match = _PYTHON.match(name)
    found = match.group(1) if match else None
    return found if found and "." in found else ""


def _has_packages(folder: Path, version: str) -> bool:
    return any(_library_dirs(folder, version)) or (folder / "lib/python3/dist-packages").is_dir()


# --- from a prefix to its packages ---------------------------------------------------------------------------------


def _library_dirs(folder: Path, version: str) -> list[Path]:
    """lib/python3.X folders, newest first."""
    if version:
        exact = folder / "lib" / f"python{version}"
        return [exact] if exact.is_dir() else []
    found = [path for path in folder.glob("lib/python3.*") if re.fullmatch(r"python3\.\d+", path.name)]
    return sorted((path for path in found if path.is_dir()), key=lambda path: -int(path.name.rpartition(".")[2]))


def _site_dirs(prefix: _Prefix, environ: Mapping[str, str]) -> Iterable[Path]:
    """Existing package folders in the order Python imports from them: user, environment, Debian's, the base's."""
    is_venv = bool(_settings(prefix.folder / "pyvenv.cfg"))
    wanted: list[Path] = []
    if prefix.sees_system and not environ.get("PYTHONNOUSERSITE"):
        wanted += _user_sites(prefix, environ)
    wanted += _packages_of(prefix.folder, prefix.version)
    if is_venv and prefix.sees_system:
        wanted += _base_sites(prefix, environ)
    seen: set[str] = set()
    for folder in wanted:
        key = os.path.realpath(folder)
        if key not in seen and folder.is_dir():
            seen.add(key)
            yield folder


def _packages_of(folder: Path, version: str) -> list[Path]:
    wanted = []
    for library in _library_dirs(folder, version):
        wanted += [library / "site-packages", library / "dist-packages"]
    if folder.name == "usr":  # Debian: pip installs below /usr/local, apt into a folder without minor version
        wanted = [*_packages_of(folder / "local", version), *wanted]
    return [*wanted, folder / "lib/python3/dist-packages"]


def _user_sites(prefix: _Prefix, environ: Mapping[str, str]) -> list[Path]:
    base = environ.get("PYTHONUSERBASE") or (f"{environ['HOME']}/.local" if environ.get("HOME") else "")
    versions = [library.name for library in _library_dirs(prefix.folder, prefix.version)]
    return [Path(base) / "lib" / name / "site-packages" for name in versions] if base else []


def _base_sites(prefix: _Prefix, environ: Mapping[str, str]) -> list[Path]:
    home = _settings(prefix.folder / "pyvenv.cfg").get("home", "")
    names = [library.name.removeprefix("python") for library in _library_dirs(prefix.folder, "")]
    if not home or not names:
        return []
    base = _prefix_of(Path(home) / f"python{names[0]}", environ)
    return _packages_of(base.folder, base.version) if base is not None else []
