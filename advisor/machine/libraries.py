"""Versions of the libraries that decide memory, read from installed metadata without importing anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from json import JSONDecodeError, loads
from pathlib import Path
from urllib.parse import unquote, urlparse

from advisor.hostile import clean_line
from advisor.machine.environment import training_environment

__all__ = ["OF_INTEREST", "normalised", "read_libraries", "training_environment"]

OF_INTEREST = frozenset(
    {
        "accelerate",
        "bitsandbytes",
        "datasets",
        "deepspeed",
        "flash-attn",
        "flash-attn-3",
        "flashinfer-python",
        "liger-kernel",
        "mbridge",
        "megatron-core",
        "ms-swift",
        "numpy",
        "nvidia-nccl-cu11",
        "nvidia-nccl-cu12",
        "nvidia-nccl-cu13",
        "openrlhf",
        "peft",
        "ray",
        "sgl-kernel",
        "sglang",
        "tensordict",
        "torch",
        "torch-npu",
        "torchao",
        "transformer-engine",
        "transformers",
        "triton",
        "triton-ascend",
        "trl",
        "unsloth",
        "verl",
        "vllm",
        "vllm-ascend",
        "xformers",
    }
)
"""Distribution names, normalised (PEP 503)."""
_CUDA_RUNTIMES = (
    "nvidia-cuda-runtime",
    "nvidia-cuda-runtime-cu11",
    "nvidia-cuda-runtime-cu12",
    "nvidia-cuda-runtime-cu13",
)
_ALIASES = {"pytorch": "torch", "swift": "ms-swift", "flash-attention": "flash-attn"}
"""Names people say for a distribution."""
_METADATA_LIMIT = 8192
_VERSION_LIMIT = 64
_METADATA_VERSION = re.compile(r"^Version:[ \t]*(\S+)", re.MULTILINE)
_LOCAL_CUDA = re.compile(r"\+cu(\d{2})(\d+)")
_TORCH_CUDA = re.compile(r"^cuda\b[^=\n]*=\s*['\"](\d+\.\d+)['\"]", re.MULTILINE)
_DUNDER_VERSION = re.compile(r"^__version__\s*=\s*['\"]([^'\"\n]+)['\"]", re.MULTILINE)


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
            found.setdefault(installed.name, installed)
    libraries = {name: _exact_version(installed) for name, installed in found.items() if name in OF_INTEREST}
    libraries = {name: version for name, version in libraries.items() if version}
    cuda = _cuda(libraries.get("torch", ""), found, site_dirs)
    if cuda:
        libraries["cuda"] = cuda
    libraries.update(_verl(found.get("verl"), site_dirs))
    return dict(sorted(libraries.items()))


# --- metadata ------------------------------------------------------------------------------------------------------


def _distributions(site: Path) -> Iterator[_Installed]:
    """Every distribution of one site directory, by the names of its entries; contents are not read yet."""
    try:
        entries = sorted(site.iterdir())
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


def _read(path: Path, limit: int = 65536) -> str:
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
    runtimes = [_exact_version(found[name]) for name in _CUDA_RUNTIMES if name in found]
    return ".".join(runtimes[0].split(".")[:2]) if runtimes else ""


def _verl(installed: _Installed | None, site_dirs: Iterable[Path]) -> dict[str, str]:
    """EasyR1 installs as `verl` too; its trainer starts from main.py where verl has main_ppo.py."""
    sources = [*(_editable_source(installed) if installed else ()), *site_dirs]
    for source in sources:
        package = source / "verl"
        trainer = package / "trainer"
        if not trainer.is_dir():
            continue
        version = _package_version(package) or (_exact_version(installed) if installed else "")
        if not version:
            return {}
        is_easyr1 = (trainer / "main.py").is_file() and not (trainer / "main_ppo.py").exists()
        return {"verl": version, "easyr1": version} if is_easyr1 else {"verl": version}
    return {}


def _package_version(package: Path) -> str:
    """verl/__init__.py states it, or reads it from verl/version/version."""
    stated = _DUNDER_VERSION.search(_read(package / "__init__.py"))
    text = stated.group(1) if stated else _read(package / "version" / "version", 256).strip()
    return _clean(text) if re.match(r"\d", text) else ""


def _editable_source(installed: _Installed) -> Iterator[Path]:
    """Folders an editable install points to: direct_url.json (PEP 610), .pth files, the source of an egg-link."""
    if installed.metadata.is_dir():
        yield from _direct_url(installed.metadata / "direct_url.json")
    for pth in sorted(installed.site.glob(f"__editable__*{installed.name}*.pth")):
        for line in _read(pth).splitlines():
            if line.startswith("/"):
                yield Path(line.strip())
    yield installed.site


def _direct_url(path: Path) -> Iterator[Path]:
    try:
        stated = loads(_read(path) or "{}")
    except (JSONDecodeError, RecursionError):
        return
    url = stated.get("url") if isinstance(stated, dict) else None
    if isinstance(url, str) and url.startswith("file://"):
        folder = Path(unquote(urlparse(url).path))
        yield folder
        yield folder / "src"
