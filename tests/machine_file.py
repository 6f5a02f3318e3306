"""Reads the machine of a file, several nodes in it joined."""

from __future__ import annotations

from pathlib import Path

from advisor.machine.describe import read_machine_files
from advisor.machine.inventory import Machine
from advisor.machine.nodes import join_nodes


def read_machine_file(path: Path) -> Machine:
    return join_nodes(read_machine_files(path))
