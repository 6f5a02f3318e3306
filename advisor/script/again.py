"""Reads a script again with new bytes in memory, as nothing but its own files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from advisor.script.document import Document, Rewrite
from advisor.script.files import Files
from advisor.script.launch import Script
from advisor.script.reader import read_documents

FOLLOWED = ("deepspeed:", "accelerate:")
"""Keys of followed files that no argument of the launch can override."""


def in_memory(script: Script, new: Mapping[str, bytes]) -> Files:
    """The script's documents, some with new bytes, as the only files there are."""
    given: dict[str, Document] = {}
    for document in script.documents:
        data = new.get(str(document.path), document.data)
        given[os.path.abspath(document.path)] = replace(document, data=data)
    return Files([], given)


def read_again(script: Script, rewrites: Sequence[Rewrite]) -> Script:
    """The script as it would be read with the new bytes. Raises ScriptError where they are not well-formed."""
    files = in_memory(script, {str(item.document.path): item.new for item in rewrites})
    return read_documents(files, Path(script.documents[0].path), script.positional, script.environment)
