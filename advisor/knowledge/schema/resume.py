"""Types the part of a dialect that says how a run saves and how it starts again from there."""

from __future__ import annotations

from typing import Literal

from advisor.knowledge.schema.base import Scalar, Strict
from advisor.rules.expression import Expression


class Resume(Strict, frozen=True, kw_only=True):
    """One way to save and to start again; of several the first counts whose era and condition hold."""

    eras: tuple[str, ...] = ()
    """Eras in which it is so; () = all."""
    when: Expression | None = None
    """None: always."""
    defaults: dict[str, Scalar] = {}
    """Keys that are no levers, so no settings of the dialect, and their defaults."""
    every: Expression | None = None
    """Steps between two checkpoints; below 1, or none: it saves none that a run could start from."""
    unit: Literal["steps", "epochs"] = "steps"
    folder: tuple[str, ...] = ()
    """Where they go, {key} standing for a setting's value: the first of which all keys are known."""
    checkpoint: tuple[str, ...] = ()
    """How one is called in the folder, {step} standing for its number: "global_step_{step}"; may hold *."""
    latest: str = ""
    """A file of the folder that names the last complete one, written after it; "": the highest number counts."""
    latest_step: str = "(\\d+)"
    """Regex of the number in `latest`."""
    complete: tuple[str, ...] = ()
    """Files (globs) without which a checkpoint is not whole."""
    by_itself: Expression | None = None
    """Whether the same command starts again from the last checkpoint; None: it does not."""
    in_program: str = ""
    """Regex of a program's text that shows that it starts from its last checkpoint."""
    saves: dict[str, Scalar] = {}
    """Settings with which it would save."""
    resumes: dict[str, Scalar] = {}
    """Settings with which it would start again from {checkpoint} in {folder}; {}: no setting does that."""
    fixed: tuple[str, ...] = ()
    """Knobs (fnmatch) that must stay as they were when the checkpoint was written."""
    says: str = ""
    """What is lost, or why nothing resumes, as a sentence."""
    source: str
