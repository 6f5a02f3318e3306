"""Reads the cards of every vendor that a box has: NVIDIA's, AMD's and Ascend's, one numbering over all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from advisor.machine.inventory import Gpu
from advisor.machine.nvml import NvmlReader, Trouble
from advisor.machine.tool import has_amd, has_ascend, run_tool


class CardReader(Protocol):
    """What reads the cards of one vendor, or of all. One thread owns it; each call may take as long as its driver."""

    driver: str

    def open(self) -> str | None:
        """Find the cards. Returns None, or the sentence that says why none is read."""

    def snapshot(self, slow: bool = True, processes: bool = True) -> tuple[Gpu, ...]:
        """All cards now; a field that is not asked for repeats its last reading."""

    def used(self) -> list[int | None]:
        """Bytes in use, one a card: the cheapest reading there is."""

    def holders(self) -> dict[tuple[int, int], int]:
        """(card, process id) → bytes, as far as the driver tells."""

    def close(self) -> None:
        """Let go; it can be opened again."""


@dataclass(slots=True)
class AllCards:
    """All cards, of whatever vendor. `nvml`: reads NVIDIA's; `others`: None: AMD's and Ascend's where they are here."""

    nvml: NvmlReader = field(default_factory=NvmlReader)
    others: Sequence[CardReader] | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    root: Path = Path("/")
    driver: str = ""
    troubles: tuple[str, ...] = ()
    """Of vendors that are here and are not read, while another's cards are."""
    _open: list[CardReader] = field(default_factory=list)
    _first: list[int] = field(default_factory=list)
    """Each reader's first number."""

    def open(self) -> str | None:
        """Open every vendor's driver. Returns None where one answers, else why none does."""
        others = self._others() if self.others is None else self.others
        refused = [(reader, said) for reader in (self.nvml, *others) if (said := self._started(reader)) is not None]
        absent = self.nvml.refused in (Trouble.LIBRARY_NOT_FOUND, Trouble.BINDINGS_MISSING) and bool(others)
        self.troubles = tuple(said for reader, said in refused if not (absent and reader is self.nvml))
        if self._open:
            self.driver = ", ".join(reader.driver for reader in self._open if reader.driver)
            return None
        return " ".join(self.troubles)

    def _others(self) -> list[CardReader]:
        run = partial(run_tool, environ=self.environ)
        found: list[CardReader] = []
        if has_amd(self.environ, self.root):
            from advisor.machine.amd import AmdReader

            found.append(AmdReader(run=run, environ=self.environ))
        if has_ascend(self.environ, self.root):
            from advisor.machine.ascend import npu_reader

            found.append(npu_reader(run))
        return found

    def _started(self, reader: CardReader) -> str | None:
        trouble = reader.open()
        if trouble is None:
            taken = 1 + max((gpu.index for gpu in self.snapshot(processes=False)), default=-1)  # parts of one share it
            self._open.append(reader)
            self._first.append(taken)
        return trouble

    def snapshot(self, slow: bool = True, processes: bool = True) -> tuple[Gpu, ...]:
        return tuple(
            replace(gpu, index=first + gpu.index, parent=None if gpu.parent is None else first + gpu.parent)
            if first
            else gpu
            for first, reader in zip(self._first, self._open, strict=True)
            for gpu in reader.snapshot(slow, processes)
        )

    def used(self) -> list[int | None]:
        return [size for reader in self._open for size in reader.used()]

    def holders(self) -> dict[tuple[int, int], int]:
        pairs = zip(self._first, self._open, strict=True)
        return {(first + card, pid): size for first, one in pairs for (card, pid), size in one.holders().items()}

    def close(self) -> None:
        for reader in self._open:
            reader.close()
        self._open, self._first = [], []
