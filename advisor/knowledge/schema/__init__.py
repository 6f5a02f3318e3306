"""What the files of knowledge/ may say, as types. msgspec decodes into these and refuses unknown keys.

Facts are data. Whatever computes is a named rule in code (`divide_then_times_n`, `divides`, `lower`) that the
files refer to by name with parameters; there is no expression language.
"""

from __future__ import annotations

from advisor.knowledge.schema.advice import (
    Advisory,
    Answer,
    Case,
    Cause,
    KnownAs,
    Provision,
    Question,
    Remedy,
    RemedyEvidence,
    Sharding,
    Tree,
)
from advisor.knowledge.schema.base import OWN_MARK, Grade, Rule, Scalar, Strict
from advisor.knowledge.schema.crash import FrameRule, FrameworkMark, Progress, Signature, Signatures, VersionMark
from advisor.knowledge.schema.facts import GpuFact, KnobFact, ModelFact
from advisor.knowledge.schema.framework import (
    EnvironmentFact,
    Era,
    Framework,
    Mechanics,
    Recognition,
    SettingFact,
    StatedMechanics,
)

__all__ = [
    "OWN_MARK",
    "Advisory",
    "Answer",
    "Case",
    "Cause",
    "EnvironmentFact",
    "Era",
    "FrameRule",
    "Framework",
    "FrameworkMark",
    "GpuFact",
    "Grade",
    "KnobFact",
    "Knowledge",
    "KnownAs",
    "Mechanics",
    "ModelFact",
    "Progress",
    "Provision",
    "Question",
    "Recognition",
    "Remedy",
    "RemedyEvidence",
    "Rule",
    "Scalar",
    "SettingFact",
    "Sharding",
    "Signature",
    "Signatures",
    "StatedMechanics",
    "Strict",
    "Tree",
    "VersionMark",
]


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
    refused: tuple[str, ...] = ()
    """Files of a user's own knowledge that were left out, one sentence each: file, line and reason."""
    own_cases: tuple[str, ...] = ()
    """Ids of the cases that a user's own knowledge brought."""
