"""Hands the site's pages to mkdocs: nothing lies on the disk but what it builds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pages
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: Any) -> Files:
    """All pages and pictures; `docs_dir` holds none of them."""
    made = [File.generated(config, path, content=text) for path, text in pages.pages().items()]
    beside = [
        File.generated(config, path.relative_to(pages.ROOT).as_posix(), abs_src_path=str(path))
        for path in pages.pictures()
    ]
    return Files([*made, *beside, *files.static_pages()])
