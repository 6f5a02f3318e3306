"""Types what a dialect says of checkpoints: where they go, which is whole, and how the launch goes on from them."""

from __future__ import annotations

from advisor.knowledge.schema.base import Strict
from advisor.rules.expression import Expression


class ResumeFact(Strict, frozen=True, kw_only=True):
    """How a run goes on from its checkpoints when its launch is started again.

    How often it saves is the knob `checkpoint.every`. Of several entries the first counts whose era and `when` fit.
    """

    eras: tuple[str, ...] = ()
    """Eras in which it is so; () = all."""
    when: Expression | None = None
    """The programs or backends of which it is true; None: all."""
    folder: str
    """The key that names the folder of the checkpoints."""
    else_folder: str = ""
    """That folder where the key is not set and its default is not one text."""
    saves: Expression | None = None
    """Where this is false, nothing is saved however often that is asked for."""
    whole: tuple[str, ...] = ()
    """Files below the folder (glob) that are written last, so that a checkpoint with one of them is whole."""
    step: str = ""
    """Regex with one group for the step: over the text of that file, or over its path where a `*` stands in it."""
    by_itself: Expression | None = None
    """Where this holds, the same launch goes on from the newest checkpoint; None: it never does."""
    point: str = ""
    """The key that has to name the checkpoint, where it does not go on by itself."""
    add: dict[str, Expression] = {}
    """Keys by which it would go on by itself, and their values; `folder` is the one of the checkpoints."""
    fixed: tuple[str, ...] = ()
    """Knobs that have to stay as they are, or a checkpoint cannot be loaded."""
    source: str
