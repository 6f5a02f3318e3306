"""Writes remedies that no file carries as steps: machines, work by hand, settings of a launch without a dialect."""

from __future__ import annotations

from msgspec.structs import replace

from advisor.diagnosis.conditions import all_hold
from advisor.knowledge.schema import KnownAs, Remedy
from advisor.language import ENGLISH, listed, say, sentences, spoken
from advisor.plan.candidates import at_most, candidates, printed_now
from advisor.plan.common_names import MOST_NAMES, ROLES, names_of, stated_by_name
from advisor.plan.options import unseen_number
from advisor.plan.patch import not_written
from advisor.plan.plan import Change, PlanStep
from advisor.plan.situation import Situation
from advisor.plan.steps import change_of
from advisor.plan.trial import trial_of
from advisor.run.natives import Native
from advisor.run.run import KnobValue

QUANTIZE = "quantize-base"


def elsewhere(situation: Situation) -> tuple[PlanStep, ...]:
    """What helps where log or answers say that no memory was short, best first: against the failure, then the cause."""
    failed, known = situation.predictor.crash.signature, situation.knowledge
    by_line = (name for one in known.signatures.signatures if one.id == failed for name in one.remedies)
    by_cause = (name for one in known.tree.causes if one.id == situation.cause for name in one.remedies)
    by_id = {remedy.id: remedy for remedy in situation.remedies}
    steps = (advice_step(by_id[name], situation) for name in dict.fromkeys((*by_line, *by_cause)))
    return tuple(replace(step, rank=number) for number, step in enumerate(steps, 1))


def advice_step(remedy: Remedy, situation: Situation) -> PlanStep:
    """A machine or manual remedy: said, never written into a script."""
    known = _known_as(remedy, situation)
    changes = _below_the_framework(remedy, known, situation)
    return PlanStep(
        id=remedy.id,
        rank=0,
        title=remedy.title if changes else _with_names(remedy, situation),
        kind=remedy.kind if remedy.kind in ("machine", "data") else "manual",
        tier=remedy.tier,
        changes=changes,
        results=remedy.results,
        basis="documented" if any(e.grade != "failed" for e in remedy.evidence) else "estimated",
        saves={},
        place="host" if remedy.memory == "host" else "gpu" if remedy.memory == "gpu" else "none",
        why=_by_hand(remedy, known, situation),
        costs=remedy.costs,
        caveats=remedy.caveats,
        sources=(remedy.source,) if remedy.source else (),
        selected=False,
        group=remedy.id,
    )


def _known_as(remedy: Remedy, situation: Situation) -> KnownAs | None:
    """What a library that speaks in the log calls the setting, where no dialect names it."""
    if situation.now.built.natives.framework is not None:
        return None
    return next((name for name in remedy.known_as if all_hold(name.when, situation.facts) is not None), None)


def _with_names(remedy: Remedy, situation: Situation) -> str:
    """The title with what other frameworks call the setting, where this launch has no dialect and does not name it."""
    if remedy.knob is None:
        return remedy.title
    if unseen_number(remedy, situation):
        carrier = situation.now.built.natives.carrier(remedy.knob)
        key = change_of(carrier, None, situation).key if carrier is not None else remedy.knob
        return say("{title}: lower {key}", title=remedy.title, key=key)
    carrier = situation.now.built.natives.carrier(remedy.knob) if remedy.kind == "manual" else None
    if carrier is not None:
        return say("{title} ({key})", title=remedy.title, key=carrier.key)
    if situation.now.built.natives.framework is not None and remedy.kind != "manual":
        return remedy.title
    names = names_of(remedy.knob, situation)[:MOST_NAMES]
    return say("{title} (often {names})", title=remedy.title, names=listed(names)) if names else remedy.title


def _below_the_framework(remedy: Remedy, known: KnownAs | None, situation: Situation) -> tuple[Change, ...]:
    """What changes in a launch without a dialect: the setting that bears a name of the knob, else a library's own."""
    if situation.now.built.natives.framework is not None:
        return ()
    present = stated_by_name(remedy, situation)
    if present is None and known is not None:
        text = None if known.default is None else str(known.default)
        present = Native(known.key, text, known.default, "assumed")
    found = None if present is None else next_value(remedy, present, situation)
    if present is None or found is None:
        return ()
    native, new = found
    text = str(new) if not isinstance(new, bool) or (native.text or "")[:1].isupper() else str(new).lower()
    return (Change(native.key, native.text, text, how=not_written(), old_source=native.source),)


def next_value(remedy: Remedy, present: Native, situation: Situation) -> tuple[Native, KnobValue] | None:
    """The setting, as the log may correct it, and the value that the remedy gives it; None where there is none."""
    rule = remedy.value
    if rule is None:
        return None
    native = printed_now(rule, present, situation.facts)
    tried = at_most(rule, candidates(rule, native, situation.now.built), situation.facts)
    working = (v for v in tried if rule.low is not None and isinstance(v, (int, float)) and v <= rule.low)
    new = next(working, next(iter(tried), None))
    return None if new is None else (native, new)


def usual(remedy: Remedy, situation: Situation) -> bool:
    """Whether a launch of any kind may have the setting: budgets of tokens, passes of models beside the trained one,
    and what is to be switched off, only where it names them; what makes states smaller only where all weights are
    trained.
    """
    if remedy.relieves == "states" and remedy.id != QUANTIZE and _true("lora", situation):
        return False  # what they train is small, and so are its moments
    role, _, name = (remedy.knob or "").partition(".")
    launch = situation.predictor.inputs.launch
    off = remedy.value is not None and remedy.value.to is False and launch is not None and not launch.missing
    rare = role in ROLES or name == "tokens_per_gpu" or off
    return not rare or stated_by_name(remedy, situation) is not None


def _true(name: str, situation: Situation) -> bool:
    fact = situation.facts.get(name)
    return fact is not None and fact.value is True


def settled(remedy: Remedy, situation: Situation) -> bool:
    """Whether an unrecognised launch has the setting, by its name, where the remedy would bring it."""
    present = stated_by_name(remedy, situation)
    return present is not None and next_value(remedy, present, situation) is None


def _by_hand(remedy: Remedy, known: KnownAs | None, situation: Situation) -> str:
    """The remedy's sentences; where it means a setting that no dialect names, which setting to look for."""
    trial = trial_of(situation.now.built, situation.predictor.inputs.launch) if remedy.by_trial else None
    if trial is not None:
        return sentences((" ".join(remedy.says.split()), trial.sentence))
    if remedy.knob is None or remedy.kind in ("data", "manual"):
        return " ".join(remedy.says.split())
    if (named := stated_by_name(remedy, situation)) is not None:
        return say(
            "No dialect is known for this launch; by its name this is {key}. {says}",
            key=named.key,
            says=" ".join(remedy.says.split()) if "{" not in remedy.says else "",
        ).strip()
    if known is not None:
        return say(
            "No dialect is known for this launch; {library} itself calls it {key}. The framework around it may have "
            "another name and another default: start from the value that is in force.",
            library=known.title,
            key=known.key,
        )
    knob = next((k for k in situation.knowledge.knobs if k.id == remedy.knob), None)
    carries = remedy.knob
    if knob is not None:
        title = knob.title.lower() if spoken() == ENGLISH else knob.title
        carries = say("{knob} ({unit})", knob=title, unit=knob.unit)
    return say(
        "No dialect is known for this launch, so no key can be named: look for the setting that carries {knob}. With "
        "`set` it can then be changed in the script.",
        knob=carries,
    )
