"""Says how a trial of few steps meets the longest rows first, in the words of the run's framework."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from msgspec import Struct

from advisor.knowledge.schema import Framework
from advisor.language import say, sentences
from advisor.run.build import BuiltRun
from advisor.run.natives import RunScope
from advisor.run.resume import spelled
from advisor.run.unknown_keys import is_added
from advisor.script.launch import Launch


class Trial(Struct, frozen=True):
    """The settings of a trial run."""

    settings: Mapping[str, str]
    """Native key → its text."""
    written: str
    """As the launch would have them: "--max_steps 2"."""
    says: str
    source: str

    @property
    def sentence(self) -> str:
        """What to add to the launch, and why that is the worst batch."""
        return sentences((say("For a trial of two steps: `{settings}`.", settings=self.written), self.says))


def trial_of(built: BuiltRun, launch: Launch | None) -> Trial | None:
    """The trial of a run; None where its framework has none that is known."""
    framework, natives = built.natives.framework, built.natives
    if framework is None:
        return None
    scope = RunScope(natives, built.run.topology, built.run.knobs, built.run.model)
    for one in framework.worst_first:
        if (one.eras and natives.era not in one.eras) or (one.when is not None and one.when.holds(scope) is not True):
            continue
        settings = {key: spelled(value) for key, value in one.set.items()}
        written = _written(settings, framework, natives.era, launch)
        return Trial(settings, written, " ".join(one.says.split()), one.source)
    return None


def _written(settings: Mapping[str, str], framework: Framework, era: str, launch: Launch | None) -> str:
    """In the syntax of the command; in that of its config file where only that was given."""
    if launch is not None and not launch.argv:
        return ", ".join(f"{key}: {value}" for key, value in settings.items())
    if framework.syntax in ("hydra", "dotlist"):
        new = {key for key in settings if framework.syntax == "hydra" and is_added(framework, era, key)}
        words = [f"{'+' * (key in new)}{key}={v}" for key, v in settings.items()]
        return shlex.join(words)
    return " ".join(f"--{key} {shlex.quote(value)}" for key, value in settings.items())
