"""Finds the Python environment that trains and reads its library versions, from files alone.

No interpreter is started and nothing is imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from json import JSONDecodeError, loads
from pathlib import Path
from urllib.parse import unquote, urlparse

from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.regex import regex

_TRAINING = {"accelerate", "datasets", "deepspeed", "mbridge", "megatron-core", "ms-swift", "openrlhf", "peft", "ray"}
_TRAINING |= {"tensordict", "transformers", "trl", "unsloth", "verl"}
_INFERENCE = {"sgl-kernel", "sglang", "vllm", "vllm-ascend"}
_KERNELS = {"bitsandbytes", "flash-attn", "flash-attn-3", "flashinfer-python", "liger-kernel", "transformer-engine"}
_KERNELS |= {"triton", "triton-ascend", "xformers"}
_TORCH = {"numpy", "torch", "torch-npu", "torchao", "nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13"}
OF_INTEREST = frozenset(_TRAINING | _INFERENCE | _KERNELS | _TORCH)
"""Distribution names, normalised (PEP 503)."""
_CUDA_RUNTIMES = ("", "-cu11", "-cu12", "-cu13")
"""What follows "nvidia-cuda-runtime" in the names of its distributions."""
_ALIASES = {"pytorch": "torch", "swift": "ms-swift", "flash-attention": "flash-attn"}
"""Other names in use for a distribution."""
_METADATA_LIMIT, _READ_LIMIT = 8192, 65536
"""Bytes read of a distribution's metadata, and of any other file."""
_VERSION_LIMIT = 64
_METADATA_VERSION = regex(r"^Version:[ \t]*(\S+)", re.MULTILINE)
_LOCAL_CUDA = regex(r"\+cu(\d{2})(\d+)")
_TORCH_CUDA = regex(r"^cuda\b[^=\n]*=\s*['\"](\d+\.\d+)['\"]", re.MULTILINE)
_DUNDER_VERSION = regex(r"^__version__\s*=\s*['\"]([^'\"\n]+)['\"]", re.MULTILINE)
PathLookup = Callable[[str], str | None]
"""Program name → its path, as `shutil.which` does for the PATH that the training would have."""
_PYTHON = regex(r"(?:python|pypy)(\d(?:\.\d+)?)?$")
_HERE = mark("{folder} ({why})")
_NOT_HERE = mark("{folder} ({why}; {python}, which the script names, is not here)")


def normalised(name: str) -> str:
    """A distribution name as PEP 503 compares them, after people's other names for it: "Flash_Attn" → "flash-attn"."""
    plain = re.sub(r"[-_.]+", "-", name.strip()).lower()
    return _ALIASES.get(plain, plain)


@dataclass(frozen=True, slots=True)
class _Installed:
    """A distribution's metadata folder (or file) in a site directory."""

    name: str
    version: str
    metadata: Path
    site: Path


def read_libraries(site_dirs: Sequence[Path]) -> dict[str, str]:
    """Distribution name, normalised → version, of the names in OF_INTEREST; earlier directories win, as in imports.

    Also "cuda" (what torch was built for, else the runtime package) and "easyr1" where the installed `verl` is EasyR1.
    """
    found: dict[str, _Installed] = {}
    for site in site_dirs:
        for installed in _distributions(site):
            known = found.setdefault(installed.name, installed)
            with suppress(OSError):
                if known.site == installed.site and known.metadata.stat().st_mtime < installed.metadata.stat().st_mtime:
                    found[installed.name] = installed  # an upgrade that left the old one
    libraries = {name: _exact_version(installed) for name, installed in found.items() if name in OF_INTEREST}
    libraries["cuda"] = _cuda(libraries.get("torch", ""), found, site_dirs)
    libraries.update(_verl(found.get("verl"), site_dirs))
    return {name: version for name, version in sorted(libraries.items()) if version}


# --- metadata ------------------------------------------------------------------------------------------------------


def _distributions(site: Path) -> Iterator[_Installed]:
    """Every distribution of one site directory, by the names of its entries; contents are not read yet."""
    try:
        entries = sorted(site.iterdir(), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        stem, dot, kind = entry.name.rpartition(".")
        if not dot:
            continue
        if kind in ("dist-info", "egg-info"):
            name, _, rest = stem.partition("-")
            yield _Installed(normalised(name), _clean(rest.split("-py")[0]), entry, site)
        elif kind == "egg-link":
            yield from _linked(entry, stem)

    for record in sorted(site.glob("../../../conda-meta/*-*-*.json")):  # of what has no metadata of its own
        name, version, _ = record.stem.rsplit("-", 2)
        yield _Installed(normalised(name), _clean(version), record, record.parent)


def _linked(link: Path, name: str) -> Iterator[_Installed]:
    """A development install of old: the file names the source folder, which holds NAME.egg-info."""
    source = Path(_read(link).partition("\n")[0].strip())
    for metadata in (source / f"{name}.egg-info", source / f"{name.replace('-', '_')}.egg-info"):
        if source.is_absolute() and metadata.is_dir():
            yield _Installed(normalised(name), "", metadata, source)
            return


def _exact_version(installed: _Installed) -> str:
    """The version its metadata states, else the one in the folder's name; "" where neither does."""
    path = installed.metadata
    candidates = (path / "METADATA", path / "PKG-INFO") if path.is_dir() else (path,)
    for candidate in candidates:
        match = _METADATA_VERSION.search(_read(candidate, _METADATA_LIMIT))
        if match:
            return _clean(match.group(1))
    return installed.version


def _clean(version: str) -> str:
    return clean_line(version, _VERSION_LIMIT).strip()


def _read(path: Path, limit: int = _READ_LIMIT) -> str:
    try:
        with path.open("rb") as file:
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


# --- what the metadata does not say --------------------------------------------------------------------------------


def _cuda(torch: str, found: dict[str, _Installed], site_dirs: Iterable[Path]) -> str:
    """ "12.4": torch's own statement, else its local version (+cu124), else the runtime package's."""
    if torch:
        for site in site_dirs:
            stated = _TORCH_CUDA.search(_read(site / "torch/version.py"))
            if stated:
                return stated.group(1)
    local = _LOCAL_CUDA.search(torch)
    if local:
        return f"{local.group(1)}.{local.group(2)}"
    names = [f"nvidia-cuda-runtime{ending}" for ending in _CUDA_RUNTIMES]
    runtimes = [_exact_version(found[name]) for name in names if name in found]
    return ".".join(runtimes[0].split(".")[:2]) if runtimes else ""


def _verl(installed: _Installed | None, site_dirs: Iterable[Path]) -> dict[str, str]:
    """EasyR1 installs as `verl` too; its trainer starts from main.py where verl has main_ppo.py."""
    sources = [*(_editable_source(installed) if installed else ()), *site_dirs]
    for source in sources:
        package = source / "verl"
        trainer = package / "trainer"
        if not trainer.is_dir():
            continue
        dunder = _DUNDER_VERSION.search(_read(package / "__init__.py"))  # or it is read from a file by that one
        stated = _clean(dunder.group(1) if dunder else _read(package / "version" / "version", 256))
        version = stated if re.match(r"\d", stated) else _exact_version(installed) if installed else ""
        if not version:
            return {}
        is_easyr1 = (trainer / "main.py").is_file() and not (trainer / "main_ppo.py").exists()
        return {"verl": version, "easyr1": version} if is_easyr1 else {"verl": version}
    return {}


def _editable_source(installed: _Installed) -> Iterator[Path]:
    """Folders an editable install points to: direct_url.json (PEP 610), .pth files, the source of an egg-link."""
    try:
        stated = loads(_read(installed.metadata / "direct_url.json") or "{}")
    except (JSONDecodeError, RecursionError):
        stated = {}
    url = stated.get("url") if isinstance(stated, dict) else None
    if isinstance(url, str) and url.startswith("file://"):
        folder = Path(unquote(urlparse(url).path))
        yield from (folder, folder / "src")
    for pth in sorted(installed.site.glob(f"__editable__*{installed.name}*.pth")):
        for line in _read(pth).splitlines():
            if line.startswith("/"):
                yield Path(line.strip())
    yield installed.site


# --- the environment that trains -----------------------------------------------------------------------------------


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
        if prefix is not None and (sites := tuple(_site_dirs(prefix, environ))):
            shown = _NOT_HERE if missing else _HERE
            return say(shown, folder=clean_line(str(prefix.folder), 200), why=why, python=missing), sites
        if named:
            missing = clean_line(str(python), 200)
    return "", ()


def _candidates(
    interpreter: str | None, environ: Mapping[str, str], path_lookup: PathLookup, whose: str
) -> Iterable[tuple[Path, str, bool]]:
    """(Python, why it, whether the script names it), the likeliest first."""
    if interpreter and (named := _named(interpreter, path_lookup)) is not None:
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
    first = _read(Path(found)).partition("\n")[0] if found else ""  # of an installed script such as torchrun or swift
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    return Path(words[0]) if words and _PYTHON.match(Path(words[0]).name) else None


# --- from a Python to its prefix -----------------------------------------------------------------------------------


def _prefix_of(python: Path, environ: Mapping[str, str]) -> _Prefix | None:
    """The installation a `bin/python` belongs to; the link itself says which virtual environment it is."""
    python = _behind_shim(python, environ) or python
    folder = python.parent.parent
    settings = _settings(folder / "pyvenv.cfg")
    if settings:
        return _Prefix(folder, "", settings.get("include-system-site-packages", "").lower() == "true")
    try:
        real = python.resolve()
    except (OSError, RuntimeError):  # RuntimeError: links in a circle
        real = python
    match = _PYTHON.match(real.name)
    version = (match.group(1) or "") if match else ""
    version = version if "." in version else ""  # "3.10" by the program behind the links, "" where it does not tell
    folders = (folder, real.parent.parent) if real.exists() else (folder,)
    having = (f for f in folders if any(_library_dirs(f, version)) or (f / "lib/python3/dist-packages").is_dir())
    return next((_Prefix(one, version) for one in having), None)


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


# --- from a prefix to its packages ---------------------------------------------------------------------------------


def _library_dirs(folder: Path, version: str) -> list[Path]:
    """lib/python3.X folders, newest first."""
    if version:
        exact = folder / "lib" / f"python{version}"
        return [exact] if exact.is_dir() else []
    found = [path for path in folder.glob("lib/python3.*") if re.fullmatch(r"python3\.\d+", path.name)]
    return sorted((path for path in found if path.is_dir()), key=lambda path: -int(path.name.rpartition(".")[2]))


def _site_dirs(prefix: _Prefix, environ: Mapping[str, str]) -> list[Path]:
    """Existing package folders in the order Python imports from them: user, environment, Debian's, the base's."""
    wanted = _packages_of(prefix.folder, prefix.version)
    if prefix.sees_system and not environ.get("PYTHONNOUSERSITE"):
        base = environ.get("PYTHONUSERBASE") or (f"{environ['HOME']}/.local" if environ.get("HOME") else "")
        versions = [library.name for library in _library_dirs(prefix.folder, prefix.version)] if base else []
        wanted = [*(Path(base) / "lib" / name / "site-packages" for name in versions), *wanted]
    home = _settings(prefix.folder / "pyvenv.cfg").get("home", "") if prefix.sees_system else ""
    names = [library.name.removeprefix("python") for library in _library_dirs(prefix.folder, "")]
    if home and names and (system := _prefix_of(Path(home) / f"python{names[0]}", environ)) is not None:
        wanted += _packages_of(system.folder, system.version)
    first: dict[str, Path] = {}
    for folder in wanted:
        if folder.is_dir():
            first.setdefault(os.path.realpath(folder), folder)
    return list(first.values())


def _packages_of(folder: Path, version: str) -> list[Path]:
    wanted = []
    for library in _library_dirs(folder, version):
        wanted += [library / "site-packages", library / "dist-packages"]
    if folder.name == "usr":  # Debian: pip installs below /usr/local, apt into a folder without minor version
        wanted = [*_packages_of(folder / "local", version), *wanted]
    return [*wanted, folder / "lib/python3/dist-packages"]
