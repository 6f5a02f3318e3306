"""Writes the way back to what ran: versions, defaults that changed since, the setting with which it began to fail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace as with_fields

from msgspec.structs import replace

from advisor.crash.observations import Observation, cures
from advisor.diagnosis.fact import all_hold
from advisor.knowledge.schema import SettingFact
from advisor.language import listed, mark, say, sentences
from advisor.memory.ledger import difference
from advisor.plan.by_hand import advice_step
from advisor.plan.patch import not_written, pip_install
from advisor.plan.plan import Change, PlanStep
from advisor.plan.propose import present
from advisor.plan.select import lever_of
from advisor.plan.situation import Situation
from advisor.plan.steps import change_of
from advisor.run.bound import Tables
from advisor.run.build import BuiltRun, build_run
from advisor.run.dialect import era_of
from advisor.run.natives import EnvironmentPrefix, Native, default_of, fact_in, last_part, native
from advisor.run.run import KnobValue
from advisor.run.values import parse_value, spell
from advisor.units import show_bytes
from advisor.words import when

RESTORE = "restore-versions"
"""The remedy that goes back to what ran, whatever changed."""
LOOK = "look-what-differs"
"""The remedy that looks for what is not the run's: who else is on the card, before what changed in it."""
AS_REPORTED = "as-reported"
"""What the report says made it run."""
_SHOWN = ("script", "log", "environment")
MOST_DEFAULTS = 4
"""Defaults that changed, each a step of its own: the largest savings first."""


def back_steps(situation: Situation) -> list[PlanStep]:
    """What takes the run back to where it fitted: defaults that changed since and hold memory, then each version; the
    versions that ran, where nobody names one.

    A default is switched on where the count sees it hold memory in the phase that died; a version is the user's to
    change.
    """
    if not situation.ran_with:
        ran = situation.place == "gpu" and "ran_before" in situation.facts and "trigger" not in situation.facts
        named = (RESTORE,) if updated(situation) else (LOOK, RESTORE) if ran else ()
        known = [one for one in situation.remedies if one.id in named]
        by_id = {one.id: one for one in known if all_hold(one.applies_when, situation.facts) is not None}
        return [advice_step(by_id[name], situation) for name in named if name in by_id]
    then = _then(situation)
    changed = sorted(_changed_defaults(situation, then), key=lambda one: -one.saves.get(situation.fullest, 0))
    versions = [_version(name, old, situation, then) for name, old in situation.ran_with.items()]
    leading = [one for one in changed if one.selected][:MOST_DEFAULTS]
    rest = [one for one in changed if not one.selected]
    return [*leading, *versions, *rest[: MOST_DEFAULTS - len(leading)]]


def proved_steps(situation: Situation) -> list[PlanStep]:
    """What made the run go on by the report: with the launch's own setting where its dialect has it, else in words."""
    told = [one for one in cures(situation.predictor.crash.observations) if not _stands(one, situation)]
    told = [one for one in told if one.kind == "lever" or one.value or one.change or _meant(one, situation)]
    first = {one.lever or last_part(one.name): one for one in reversed(told) if one.said == told[0].said}
    return [_proved([one for one in told if one in first.values()], situation)] if told else []


def _meant(cure: Observation, situation: Situation) -> tuple[Native, SettingFact, KnobValue] | None:
    """The setting as the launch's dialect has it, and the value; None where it has none, or several."""
    natives, name = situation.now.built.natives, _bare(cure.named if cure.kind == "lever" else cure.name)
    every = [(_bare(key), one) for key, one in natives.values.items() if one.fact is not None]
    alike = [one for key, one in every if key == name] or [one for key, one in every if key.endswith(f"_{name}")]
    own = [one for one in alike if one.fact is not None and (one.fact.knob or "").startswith("actor.")]
    alike = [one for one in (own if len(alike) > 1 else alike) if one.fact is not None and natives.reads(one.fact)]
    knobs = {one.fact.knob for one in alike if one.fact is not None}  # of the trainer that runs, or of any
    if not alike or (len(alike) > 1 and len(knobs) > 1) or (fact := alike[0].fact) is None:
        return None
    switch = fact.type in ("bool", "flag") and not cure.value
    text = str(cure.change != "off").lower() if switch else cure.value
    wanted = parse_value(text, fact.type) if text else None
    return None if wanted is None else (alike[0], fact, wanted)


def _bare(key: str) -> str:
    """What of a key's last part people always say."""
    return re.sub(r"_(?:model|size)(?=_|$)", "", re.sub(r"[- ]", "_", last_part(key)))


def _stands(cure: Observation, situation: Situation) -> bool:
    """Whether the run that died has it so itself: then it is no cure."""
    meant = _meant(cure, situation)
    return meant is not None and meant[0].source in _SHOWN and meant[0].value == meant[2]


def _proved_change(cure: Observation, situation: Situation) -> Change | None:
    if (meant := _meant(cure, situation)) is None or (meant[0].value == meant[2] and not cure.implied):
        return None
    stands, fact, wanted = meant
    change = change_of(present(stands, situation.now.run), spell(wanted, fact, stands.text), situation)
    told = cure.old or ("true" if cure.implied and cure.change == "off" else "")
    unseen = told and stands.source not in _SHOWN  # how it stood the report itself says
    return replace(change, old=told, old_source="log") if unseen else change


def _as_said(cure: Observation) -> Change | None:
    """The setting by the name that the post gives it; None where that is no key, or no value is told."""
    new = cure.value or {"on": "true", "off": None}.get(cure.change, "")
    known = cure.kind == "setting" and new != ""
    return Change(cure.name, cure.old or None, new, how=not_written()) if known else None


def _proved(cured: Sequence[Observation], situation: Situation) -> PlanStep:
    cure = cured[0]
    changes = tuple(one for each in cured if (one := _proved_change(each, situation)) is not None)
    changes = changes or tuple(one for each in cured if (one := _as_said(each)) is not None)
    alike = (one for one in situation.remedies if one.memory == situation.place and lever_of(one) == cure.lever)
    costs = next((one.costs for one in alike if one.knob and one.costs and "{" not in one.costs), say("nothing"))
    title = mark("Use {what}, with which you report that it worked")
    if cure.change == "off" and not cure.value:
        title = mark("Leave {what} out, with which you report that it worked")
    elif cure.change == "down" and not cure.value:
        title = mark("Lower {what}, with which you report that it worked")
    return PlanStep(
        id=AS_REPORTED,
        title=say(title, what=listed(one.named.replace(f"{one.name} ", f"{one.name}=") for one in cured)),
        kind="setting" if changes and not any(one.how for one in changes) else "manual",
        changes=changes,
        basis="documented",
        place=situation.place,
        why=sentences([say("So the post says: “{quoted}”.", quoted=cure.said), say("What follows is for more room.")]),
        costs=costs,
        group=AS_REPORTED,
        decides=situation.fullest,
    )


def updated(situation: Situation) -> bool:
    """Whether somebody says that libraries were updated since it ran, or that something older ran; with which versions
    nobody says."""
    if situation.facts.keys() & {"updated", "ran.older"}:
        return True
    return situation.value("answer.ever_ran") == "versions"


def _then(situation: Situation) -> BuiltRun:
    """The same launch with the versions of then."""
    inputs = situation.predictor.inputs
    known, libraries = inputs.recognised, {**inputs.machine.libraries, **situation.ran_with}
    if known.framework is not None and known.framework.package in situation.ran_with:
        version = situation.ran_with[known.framework.package]
        keys = {native(setting.key) for setting in inputs.launch.settings} if inputs.launch is not None else set()
        known = replace(known, era=era_of(known.framework, version, keys), version=version)
    machine = with_fields(inputs.machine, libraries=libraries)
    return build_run(replace(inputs, recognised=known, machine=machine, tables=Tables()))


def _default(known: Native | None, fact: SettingFact, era: str) -> KnobValue | None:
    """What a setting that nobody states comes to: as it was bound, else by the dialect; None where it is stated."""
    if known is not None and (known.given or known.value is not None):
        return None if known.given else known.value
    default = default_of(fact, era)
    return None if default is None else parse_value(str(default), fact.type)


def _changed_defaults(situation: Situation, then: BuiltRun) -> Iterator[PlanStep]:
    """A step for each setting that the launch leaves out and that was otherwise then, as the dialect tells of it."""
    now, natives = situation.now, situation.now.built.natives
    settings = natives.framework.settings if natives.framework is not None else {}
    for key, fact in settings.items():
        here, there = fact_in(fact, natives.era), fact_in(fact, then.natives.era)
        stands = natives.values.get(key)
        if key.startswith(EnvironmentPrefix) or here is None or there is None or stands is None:
            continue
        new = _default(stands, here, natives.era)
        old = _default(then.natives.values.get(key), there, then.natives.era)
        if new is None or old is None or old == new or not (here.knob or here.moves) or not natives.reads(here):
            continue
        text = spell(old, here, None)
        saves = difference(now.ledger, situation.predictor.predict({key: text}).ledger, situation.place)
        counted = bool(now.ledger.sums(situation.place))
        if any(size < 0 for size in saves.values()) or (counted and not any(saves.values())):
            continue  # what the new default made smaller, or did not touch, is no cause
        told = {"key": key, "old": text, "new": spell(new, here, None), "then": then.natives.era, "now": natives.era}
        yield PlanStep(
            id=f"as-before-{key.replace('.', '-').replace('_', '-')}",
            title=say("Set {key} to what it was by default", key=key),
            kind="setting",
            changes=(change_of(present(stands, now.run), text, situation),),
            results=here.results,
            basis=now.ledger.basis,
            saves={phase: size for phase, size in saves.items() if size},
            place=situation.place,
            why=say("The launch leaves {key} out: its default was {old} in {then} and is {new} in {now}.", **told),
            costs=say("what the new default was chosen for"),
            sources=(here.source,) if here.source else (),
            selected=saves.get(situation.fullest, 0) > 0,
            group=f"as-before-{key}",
            decides=situation.fullest,
        )


def _version(library: str, old: str, situation: Situation, then: BuiltRun) -> PlanStep:
    """The version with which it fitted, and what the count says of the run then and now."""
    fact = situation.value(f"library.{library}")
    now, wanted = (None if fact is None else str(fact)), f"=={old}"
    before, after = situation.now.ledger, situation.predictor.ledger_of(then.run, then)
    phase, saved = situation.fullest, difference(before, after, situation.place)
    saves = {one: size for one, size in saved.items() if size} if saved.get(phase, 0) > 0 else {}
    sizes = [found.expected for one in (after, before) if (found := one.phase(situation.place, phase)) is not None]
    counted = (
        say(
            "By count it took {then} then {when}, and takes {now} now.",
            then=show_bytes(sizes[0]),
            now=show_bytes(sizes[1]),
            when=when(phase),
        )
        if len(sizes) == 2 and saves
        else ""
    )
    bad = [one.title for one in situation.advisories if one.library == library]
    return PlanStep(
        id=f"back-to-{library}-{old}",
        title=say("Go back to {library} {version}, with which it fitted", library=library, version=old),
        kind="version",
        tier="version",
        changes=(Change(library, now, wanted),),
        basis="documented",
        saves=saves,
        place=situation.place,
        why=sentences(
            [
                say("To change it: {command}", command=f"`{pip_install(library, wanted)}`"),
                counted,
                say("Known of it: {what}.", what=listed(bad)) if bad else "",
                say("Beside it in an environment of its own: what else that install moves is no longer the same run."),
            ]
        ),
        costs=say("what came with the newer version"),
        caveats=()
        if now is not None
        else (say("which version runs now is not known: `pip show {library}`", library=library),),
        group=f"version-{library}",
        decides=phase,
    )


def turned_back(steps: Sequence[PlanStep], situation: Situation) -> str:
    """The step for the user's very setting, else the first of its lever; "" where they name none, or none is here."""
    began, words = situation.facts.get("trigger"), situation.knowledge.signatures.statements
    if began is None or words is None or began.value in situation.in_vain:
        return ""
    named = began.because
    key = named.split(" ")[0].lstrip("-").rpartition(".")[2]
    remedies = {one.id: one for one in situation.remedies}
    alike = [step for step in steps if step.id in remedies and lever_of(remedies[step.id]) == began.value]

    def rank(step: PlanStep) -> tuple[bool, bool]:
        moves = any(change.key.lstrip("-").rpartition(".")[2] == key for change in step.changes)
        return not moves, re.search(words.turned.get(step.id, r"(?!)"), named) is None

    return min(alike, key=rank).id if alike else ""
