"""Tells which vendors' drivers a box has, by their device files and tools; loads nothing of them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path

from advisor.machine.tool import find_tool


def has_amd(environ: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Whether the compute driver of AMD, or its tool, is here."""
    return (root / "dev/kfd").exists() or find_tool("rocm-smi", environ) is not None


def has_ascend(environ: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Whether the driver of Ascend, or its tool, is here."""
    return (root / "dev/davinci_manager").exists() or find_tool("npu-smi", environ) is not None


def has_nvidia() -> bool:
    """Whether the library is here that pynvml loads. To import pynvml, which says the same, takes 15 ms."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def any_driver() -> bool:
    """Whether a driver of any vendor may answer, asked without its Python modules."""
    return has_nvidia() or has_amd(os.environ) or has_ascend(os.environ)
