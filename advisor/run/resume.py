"""Reads how a run saves and goes on from there, and finds the newest whole checkpoint in its folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from advisor.hostile import clean_line
from advisor.knowledge.schema import Framework, ResumeFact, SettingFact
from advisor.language import listed, say
from advisor.rules.expression import as_number
from advisor.run.bound import Natives, RunScope
from advisor.run.values import spell

KNOB = "checkpoint.every"
SUGGESTED_STEPS = 20
"""How often to save is said as so many steps, where a run does not save: a start, not a measure."""
_OTHER_KEY = re.compile(r"\$\{([\w.]+)\}")
_MOST = 4096
"""Bytes of a file that says which checkpoint is the newest; checkpoints that are looked at."""


class Checkpoint(Struct, frozen=True):
    """A whole checkpoint. `step` None: its name does not say."""

    folder: Path
    step: int | None


class Resume(Struct, frozen=True):
    """What a death of this run would cost."""

    every: int | None
    """Steps between two checkpoints; None: it does not save, as far as is known."""
    folder: str
    """Where they go, as the launch says it; "" where that is not known."""
    by_itself: bool
    """The same launch, started again, goes on from the newest."""
    point: str = ""
    """The key that has to name the checkpoint, where it does not."""
    add: tuple[str, ...] = ()
    """What to add to the launch so that it saves and goes on by itself: "trainer.save_freq=20"."""
    fact: ResumeFact | None = None
    """None: nothing is known of how this framework goes on."""

    @property
    def place_known(self) -> bool:
        """Whether it can be looked at what was saved."""
        return bool(self.folder) and "$" not in self.folder

    @property
    def goes_on(self) -> bool:
        """It saves, and a second start has a way to the newest checkpoint."""
        return self.every is not None and bool(self.by_itself or self.point)

    def sentence(self) -> str:
        """Said before the first start."""
        told = {"every": self.every, "folder": clean_line(self.folder, 200), "key": self.point}
        if self.goes_on and self.by_itself:
            return say("saves every {every} steps to {folder}; resumes by itself", **told)
        if self.goes_on:
            return say("saves every {every} steps to {folder}; a retry sets {key} to the newest checkpoint", **told)
        if self.add:
            return say("nothing would resume: add {settings}", settings=listed(self.add))
        if self.fact is None:
            return say("nothing would resume: how this run saves and goes on is not known")
        return say("nothing would resume: this program does not go on from its checkpoints")


def resume_of(framework: Framework | None, natives: Natives) -> Resume:
    """How a launch goes on, by its dialect."""
    facts = () if framework is None else framework.resume
    scope = RunScope(natives)
    fact = next((one for one in facts if _counts(one, natives.era, scope)), None)
    if fact is None or framework is None:
        return Resume(None, "", by_itself=False)
    carrier = natives.carrier(KNOB)
    every = as_number(carrier.value) if carrier is not None else None
    folder = _filled(str(natives.value(fact.folder) or fact.else_folder), natives)
    by_itself = fact.by_itself is not None and fact.by_itself.holds(scope) is True
    add = []
    if every is None or every <= 0 or (fact.saves is not None and fact.saves.holds(scope) is False):
        every = None
        key = carrier.key if carrier is not None else ""
        add += [_written(framework, key, str(SUGGESTED_STEPS))] if key else []
    if not by_itself and not fact.point:
        add += list(_to_add(framework, fact, scope, folder))
    complete = by_itself or bool(fact.point) or bool(fact.add)
    return Resume(int(every) if every else None, folder, by_itself, fact.point, tuple(add) if complete else (), fact)


def _filled(text: str, natives: Natives) -> str:
    """Other keys put into it: "checkpoints/${trainer.project_name}"."""
    return _OTHER_KEY.sub(lambda found: str(natives.value(found[1]) or found[0]), text)


def _counts(fact: ResumeFact, era: str, scope: RunScope) -> bool:
    return (not fact.eras or era in fact.eras) and (fact.when is None or fact.when.holds(scope) is True)


def _to_add(framework: Framework, fact: ResumeFact, scope: RunScope, folder: str) -> Iterator[str]:
    for key, expression in fact.add.items():
        value = expression.of(scope.with_own(folder=folder or "FOLDER"))
        if value is not None and not isinstance(value, tuple):
            yield _written(framework, key, spell(value, framework.settings.get(key, SettingFact()), None))


def _written(framework: Framework, key: str, value: str) -> str:
    """A setting as it is added to a launch."""
    if framework.syntax != "argparse":
        return f"{key}={value}"
    fact = framework.settings.get(key)
    return f"--{key}" if fact is not None and fact.type == "flag" else f"--{key} {value}"


def newest_checkpoint(resume: Resume, base: Path, since: float = 0.0) -> Checkpoint | None:
    """The newest whole checkpoint, of those written from `since` (epoch seconds) on; a relative folder lies in `base`.

    None where there is none, or the folder's name is not known as text.
    """
    fact = resume.fact
    if fact is None or not resume.place_known:
        return None
    folder = base / Path(resume.folder).expanduser()
    found = []
    with suppress(OSError, ValueError):
        for pattern in fact.whole:
            for file in list(folder.glob(pattern))[:_MOST]:
                written = file.stat().st_mtime
                if written >= since:
                    found.append((written, file, "*" in pattern))
    if not found:
        return None
    _, newest, named = max(found, key=lambda one: one[0])
    text = str(newest.relative_to(folder)) if named else _beginning(newest)
    step = re.search(fact.step, text) if fact.step else None
    return Checkpoint(newest.parent, int(step[1]) if step else None)


def _beginning(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_MOST).decode("utf-8", "replace")
    except OSError:
        return ""
