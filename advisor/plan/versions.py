"""Finds library versions that may be at fault, and writes the ways out of them as steps."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from msgspec.structs import replace

from advisor.diagnosis.fact import all_hold
from advisor.knowledge.schema import Advisory, Cause, Remedy
from advisor.language import say, sentences
from advisor.memory.ledger import difference
from advisor.memory.predict import Overrides
from advisor.plan.applicable import MOST_MONTHS, months
from advisor.plan.candidates import reported_by
from advisor.plan.patch import pip_install
from advisor.plan.plan import Change, PlanStep
from advisor.plan.situation import Situation
from advisor.regex import regex
from advisor.rules.functions import release_of, version_in
from advisor.words import Basis, filled

ENGINES = ("vllm", "sglang")
REGRESSION = "library-regression"
"""The cause of a version that holds more than the one before it."""
HOST_LEAK = "host-library-leak"
"""The cause of a version that keeps host RAM."""
_OPTIONAL = ("deepspeed",)
"""Libraries that most frameworks may do without: a run uses them where something of it names them."""
_RANGE = regex(r">=([\w.]+)(?:,<([\w.]+))?")
MOST_SUSPECTED = 2
"""Libraries whose version is worth a look before anything is changed."""


def blamed(situation: Situation, cause: Cause) -> tuple[list[Advisory], list[Advisory], list[Advisory]]:
    """Advisories of versions known or said to be bad; of unknown ones those whose signs the crash bears; and others.

    Where nothing is proved, an unknown version is no advice.
    """
    bad: list[Advisory] = []
    signs: list[Advisory] = []
    others: list[Advisory] = []
    idle = _idle(situation)
    for advisory in situation.advisories:
        explains = advisory.cause is not None or all_hold(advisory.when, situation.facts) is not None
        if _of_another_stack(advisory, situation) or (cause.memory == "unknown" and not explains):
            continue
        fitted = situation.ran_with.get(advisory.library)
        if fitted is not None and version_in(advisory.versions, fitted):  # the run fitted with the fault
            continue
        if situation.leak_assumed or fitted is not None or f"library.{advisory.library}" in situation.facts:
            bad.append(advisory)
        elif cause.memory != "unknown" and advisory.library not in idle and not _came_later(advisory, situation):
            (signs if _borne(advisory, situation) else others).append(advisory)
    return bad, signs, others


def _of_another_stack(advisory: Advisory, situation: Situation) -> bool:
    """Whether the safe version came long after the log, or after the framework's version that runs."""
    known = situation.predictor.inputs.recognised
    eras = known.framework.eras if known.framework is not None and known.era_told_by != "nothing" else ()
    now = known.dated or next((era.released for era in eras if era.id == known.era), "")
    return bool(now and advisory.safe_since) and months(advisory.safe_since) - months(now) > MOST_MONTHS


def confirmed(bad: Iterable[Advisory], situation: Situation) -> list[Advisory]:
    """Those of a regression that holds here in all it asks: its way out leads, whatever else the frames name."""
    return [one for one in bad if one.cause == REGRESSION and all_hold(one.when, situation.facts) is not None]


def _came_later(advisory: Advisory, situation: Situation) -> bool:
    """Whether the log, or the framework's next versions, were there before the first bad one of the library was, or
    this version of the framework takes none but later ones."""
    known = situation.predictor.inputs.recognised
    eras = known.framework.eras if known.framework is not None and known.era_told_by != "nothing" else ()
    least = next((era.requires.get(advisory.library, "") for era in eras if era.id == known.era), "")
    bad = _RANGE.fullmatch(advisory.versions)
    if least and bad is not None and bad[2] and not _is_older(least, bad[2]):
        return True
    if advisory.since and "" < known.dated < advisory.since:
        return True
    newer = next((new for new, old in pairwise(eras) if old.id == known.era), None)
    return bool(advisory.since) and newer is not None and "" < newer.released <= advisory.since


def _borne(advisory: Advisory, situation: Situation) -> bool:
    """Whether the crash itself, not an answer, bears signs of the version; of a leak of host RAM its growth is one."""
    met, seen = all_hold(advisory.when, situation.facts), all_hold(advisory.signs, situation.facts)
    grows = situation.facts.get("host.grows")
    if met is not None and advisory.cause == HOST_LEAK and grows is not None:
        return grows.value is True and grows.source == "log"
    return met is not None and any(one.source == "log" for one in seen or ())


def _idle(situation: Situation) -> tuple[str, ...]:
    """Engines, where the run generates nothing, or nothing tells what it is and none speaks in the log; and what
    nothing of the run names."""
    natives = situation.now.built.natives
    generates = natives.rolls_out and (natives.framework is not None or "frame.engine" in situation.facts)
    named = _words(situation)
    optional = (one for one in _OPTIONAL if one not in named and not _always_shards(one, situation))
    return (*(() if generates else ENGINES), *optional)


def _always_shards(library: str, situation: Situation) -> bool:
    """Whether the framework has no trainer without the library: a key that does not name it then sets its stage."""
    stage = situation.now.built.natives.carrier("actor.zero_stage")
    chosen = stage is not None and any(name in stage.key.lower() for name in (library, "fsdp"))
    return situation.now.run.mechanics.trainer == library and stage is not None and not chosen


def _words(situation: Situation) -> str:
    """What launch and log name, in lower case: settings, files, what starts the run, frames and lines of evidence."""
    inputs, crash = situation.predictor.inputs, situation.predictor.crash
    words = [*(frame.file for frame in crash.frames), *(one.text for one in crash.evidence), *crash.libraries]
    words += [f"{one.key} {one.text}" for one in situation.now.run.settings]
    words += [key for key, one in situation.now.built.natives.values.items() if one.given]
    if (launch := inputs.launch) is not None:
        words += [word for word in (*launch.argv, launch.spreads, *launch.files, *launch.missing) if word is not None]
    return "\n".join(words).lower()


def suspected(situation: Situation, cause: Cause) -> list[PlanStep]:
    """One version to look up per library, where the cause may be a version and nothing tells which is installed."""
    kinds = {remedy.id: remedy.kind for remedy in situation.remedies}
    if situation.now.built.natives.framework is None:  # nor does anything tell which libraries run
        return []
    if not any(kinds.get(name) == "version" for name in cause.remedies):
        return []
    by_library: dict[str, Advisory] = {}
    idle = _idle(situation)
    for advisory in situation.suspected:
        unseen = f"library.{advisory.library}" not in situation.facts and advisory.library not in idle
        if unseen and not _came_later(advisory, situation):
            by_library.setdefault(advisory.library, advisory)
    steps = (version_steps(situation, [advisory])[:1] for advisory in by_library.values())
    return [replace(step, selected=False) for found in steps for step in found][:MOST_SUSPECTED]


def version_steps(situation: Situation, advisories: Iterable[Advisory]) -> list[PlanStep]:
    """Ways out of a bad library version: a step for each safe neighbour, the first selected where it is the cause.

    Where one version is the way out of two faults, it is one step.
    """
    remedy = _other_version(situation)
    if remedy is None:
        return []
    steps: dict[str, PlanStep] = {}
    for advisory in advisories:
        for number, specifier in enumerate(advisory.safe):
            step = _version_step(remedy, advisory, specifier, situation, first=number == 0)
            if step.id not in steps or (step.selected and not steps[step.id].selected):
                steps[step.id] = step
    return list(steps.values())


def _other_version(situation: Situation) -> Remedy | None:
    return next((r for r in situation.remedies if r.kind == "version" and r.memory == situation.place), None)


def newly_triggered_steps(situation: Situation, chosen: Overrides) -> list[PlanStep]:
    """Ways out of a bad version whose fault the chosen changes would trigger: the first is selected with them."""
    triggered = situation.newly_triggered(chosen)
    remedy = _other_version(situation) if triggered else None
    if remedy is None:
        return []
    return [
        replace(
            _version_step(remedy, advisory, specifier, situation, first=number == 0, chosen=chosen),
            selected=number == 0,
            caveats=(say("needed only with the changes below: without them this fault sleeps"),),
        )
        for advisory in triggered
        for number, specifier in enumerate(advisory.safe)
    ]


def newer_step(situation: Situation) -> PlanStep | None:
    """A newer version of the framework, where no list of its faults names one and one may be out; else None."""
    inputs, read = situation.predictor.inputs, situation.now.run.newest_read
    framework = inputs.recognised.framework
    known = inputs.recognised.version
    if framework is None or read is None or not read.version or known == read.version or not framework.package:
        return None
    package = framework.package
    return PlanStep(
        id=f"newer-{package}",
        title=say("Try a newer version of {library}", library=package),
        kind="version",
        tier="version",
        changes=(Change(package, known or None, f">={read.version}"),),
        basis="estimated",
        place=situation.place,
        why=say(
            "Few settings act here, and what a framework holds changes by version. To change it: {command}",
            command=f"`{pip_install(package, f'>={read.version}')}`",
        ),
        costs=say("what came with the newer version"),
        group=f"version-{package}",
    )


def _is_older(specifier: str, version: str) -> bool:
    """Whether what a specifier names ("0.15.0", "<0.8") lies before a version."""
    named, known = release_of(specifier.lstrip("<>=~ ")), release_of(version)
    return named is not None and known is not None and named < known and not specifier.startswith(">")


def range_words(specifier: str) -> str:
    """Like ">=0.8.5" or ">=0.16.0,<0.16.8", as English has it; in words where the language spoken has them."""
    found = _RANGE.fullmatch(specifier)
    if found is None:
        return specifier
    least, below = found.groups()
    return say(">={least},<{below}", least=least, below=below) if below else say(">={least}", least=least)


def _title(advisory: Advisory, new: str, old: str | None) -> str:
    told = {"library": advisory.library, "version": range_words(new), "versions": range_words(advisory.versions)}
    if old is not None:
        back = _is_older(new, old)
        return say("Go back to {library} {version}", **told) if back else say("Change {library} to {version}", **told)
    return say("If {library} is {versions}: change it to {version}", **told)


def _version_step(
    remedy: Remedy,
    advisory: Advisory,
    specifier: str,
    situation: Situation,
    first: bool,
    chosen: Overrides | None = None,
) -> PlanStep:
    fact = situation.value(f"library.{advisory.library}")
    old = str(fact) if fact is not None else None
    new = specifier.removeprefix("==")
    proven = advisory.cause == situation.cause and (old is not None or situation.leak_assumed)
    documented = next(
        (reported_by(c) for c in situation.cases if new in map(str, c.values.get(advisory.library, []))), ""
    )
    basis: Basis = "documented" if documented or proven else "estimated"
    span = range_words(advisory.versions)
    words = {"library": advisory.library, "old": old or say("at {versions}", versions=span), "new": range_words(new)}
    caveats = (
        ()
        if old is not None
        else (
            say(
                "only if {library} is one of {versions}: check with `pip show {library}`",
                library=advisory.library,
                versions=span,
            ),
        )
    )
    held, given_back = situation.predictor.predict(chosen or {}), situation.predictor.predict(chosen or {}, fixed=True)
    healed = difference(held.ledger, given_back.ledger, situation.place)
    how = say("To change it: {command}", command=f"`{pip_install(advisory.library, new)}`")
    return PlanStep(
        id=f"use-{advisory.library}-{new.lstrip('<>=~ ')}",
        title=_title(advisory, new, old),
        kind="version",
        tier="version",
        changes=(Change(advisory.library, old, new),),
        basis=basis,
        saves={phase: size for phase, size in healed.items() if size},
        place=situation.place,
        why=sentences([" ".join(advisory.says.split()), filled(" ".join(remedy.says.split()), words), how]),
        costs=remedy.costs,
        caveats=caveats,
        sources=tuple(s for s in (advisory.source, remedy.source) if s),
        documented=documented,
        selected=proven and first,
        group=f"version-{advisory.library}",
    )
