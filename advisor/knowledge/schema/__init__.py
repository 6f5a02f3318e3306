"""Types what the files of knowledge/ may say. msgspec decodes into these and refuses unknown keys.

Facts are data; whatever computes is an expression (advisor/rules/). All types go by this module, wherever they stand.
"""
# ruff: noqa: F403, F405

from __future__ import annotations

from typing import Any, Literal

from advisor.knowledge.schema.advice import *
from advisor.knowledge.schema.base import *
from advisor.knowledge.schema.crash import *
from advisor.knowledge.schema.facts import *
from advisor.knowledge.schema.framework import *

EntryKind = Literal[
    "framework", "case", "advisory", "remedy", "model", "gpu", "knob", "recipe", "data set", "start", "allocation",
    "config file", "signature", "question", "cause", "sharding", "tree", "lines",
]  # fmt: skip
LISTS: dict[str, tuple[EntryKind, Any]] = {
    "remedies": ("remedy", tuple[Remedy, ...]),
    "advisories": ("advisory", tuple[Advisory, ...]),
    "models": ("model", tuple[ModelFact, ...]),
    "gpus": ("gpu", tuple[GpuFact, ...]),
    "knobs": ("knob", tuple[KnobFact, ...]),
    "recipes": ("recipe", tuple[RecipeFact, ...]),
    "data_sets": ("data set", tuple[DataSetFact, ...]),
    "starts": ("start", tuple[Start, ...]),
    "allocations": ("allocation", tuple[Allocation, ...]),
    "config_files": ("config file", tuple[ConfigFile, ...]),
}
"""Files that are a list: name of the file and of the field of `Knowledge` → what each entry is, and the type of all."""


class Knowledge(Strict, frozen=True):
    """All of it."""

    digest: str
    signatures: Signatures
    frameworks: tuple[Framework, ...]
    tree: Tree
    remedies: tuple[Remedy, ...]
    advisories: tuple[Advisory, ...]
    cases: tuple[Case, ...]
    models: tuple[ModelFact, ...]
    gpus: tuple[GpuFact, ...]
    knobs: tuple[KnobFact, ...]
    recipes: tuple[RecipeFact, ...] = ()
    data_sets: tuple[DataSetFact, ...] = ()
    starts: tuple[Start, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    config_files: tuple[ConfigFile, ...] = ()
    refused: tuple[str, ...] = ()
    """Files of a user's own knowledge that were left out, one sentence each: file, line and reason."""
    own_cases: tuple[str, ...] = ()
    """Ids of the cases that a user's own knowledge brought."""

    def phase_marks(self) -> tuple[list[FrameRule], list[Progress]]:
        """What the frameworks' own files tell of phases."""
        frames = [rule for framework in self.frameworks for rule in framework.frames]
        return frames, [mark for framework in self.frameworks for mark in framework.progress]
