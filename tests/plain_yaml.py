"""Files of ours as YAML's own reader sees them, without anything of the program; in C where that was built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def plain_yaml(file: Path) -> Any:
    """What the file holds: mappings, lists and plain values."""
    return yaml.load(file.read_bytes(), Loader=_LOADER)
