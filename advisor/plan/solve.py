"""Makes the plan: orders the remedies of a cause, picks the cheapest set that fits, says what was left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from advisor.diagnosis.conditions import all_hold, contradicted
from advisor.knowledge.schema import Cause, Remedy
from advisor.language import clauses, listed, say, sentences
from advisor.memory.cells import Place
from advisor.memory.fit import finding_clause, worst_of_each_place
from advisor.memory.ledger import peak_rises
from advisor.memory.predict import Overrides, Prediction
from advisor.memory.squeeze import squeeze_clause
from advisor.plan.as_in_case import beside, case_steps
from advisor.plan.by_hand import advice_step, in_a_later_version, needs_engine, settled, usual, where_shared
from advisor.plan.common_names import MOST_NAMES, names_of
from advisor.plan.host_holders import for_each_holder
from advisor.plan.lead import FIRST_FEW, largest_early, led_by_the_run
from advisor.plan.options import by_default, unseen_number
from advisor.plan.plan import NotProposed, Plan, PlanStep
from advisor.plan.propose import Proposal, propose
from advisor.plan.provisional import provisional_steps
from advisor.plan.ran_with import back_steps
from advisor.plan.refused import acts_elsewhere, false_friends, folklore, saves_elsewhere, tried_in_vain
from advisor.plan.select import (
    GUESSED,
    TIERS,
    Selected,
    all_that_helps,
    exclusions,
    ordered,
    select,
    together,
)
from advisor.plan.situation import Situation
from advisor.plan.steps import mending_step, step_of
from advisor.plan.turns import holder_unknown, in_turns, stated, unchanged_ahead
from advisor.plan.vendor import in_force, in_words_of
from advisor.plan.versions import blamed, newly_triggered_steps, suspected, version_steps
from advisor.plan.ways_out import squeezed, ways_out
from advisor.run.natives import native
from advisor.words import sentence

OF_A_VERSION = ("library-regression", "host-library-leak", "image-cache", "encoder-cache")
"""Causes that are a version's fault, whichever it is."""
WITNESSES = "ask-who-killed", "look-at-limits"
"""Remedies that tell first what it was: who killed the process, or what refused it memory."""
HARDLY = 0.05
"""Of what is missing: a change that gives less is no way out (judgement)."""
MOST_BY_HAND = 6
"""Steps named for a launch without a dialect: a list, not a catalogue."""


def make_plan(situation: Situation, cause: Cause) -> Plan:
    """The plan for a cause: steps in order, the selected ones a set that fits where one exists."""
    awake, situation = situation, situation.without_latent_faults()
    proposals, refused = _propose_all(situation, cause)
    bad, looks_like, possible = blamed(situation, cause)
    known_bad = version_steps(situation, bad)
    proven = {step.group for step in known_bad if step.selected}
    steps = [step for step in known_bad if step.group in proven]
    maybe = version_steps(situation, looks_like)[:1]
    doubtful = [] if maybe or steps else suspected(situation, cause)
    if cause.id in OF_A_VERSION:
        maybe, doubtful = maybe or doubtful, []
    healed = any(step.selected for step in steps)
    # first see which version it is, before results are given up
    predictor = situation.predictor
    undecided = predictor.died is None and predictor.crash.verdict == "oom"  # which memory it was is still open
    # no ledger of GPU or host counts what ran out there
    quiet = healed or undecided or cause.memory in ("unknown", "shm") or bool(situation.now.run.lost)
    quiet = quiet or _uncapped(situation) or situation.uncounted or bool(situation.ran_with)  # first see what changed
    by_hand = [p for p in proposals if p.remedy.id in situation.barred and p.results == "unchanged" and p.fits]
    # results are not given up for what was seen in part, nor while hands can do what no file given here carries
    same = bool(maybe) or situation.now.run.quoted or bool(by_hand) or _only_unexplained(situation)
    picked = Selected({}) if quiet else select(proposals, situation, cause, only_same_results=same)
    no_phase = cause.memory == "shm"  # nor does a sum or an answer to the phase decide there
    beyond = (
        ""
        if healed or no_phase or situation.ran_with
        else _beyond(picked, proposals, situation, maybe, by_hand, cause, same)
    )
    against = exclusions(proposals, situation)
    for proposal in (picked.own.get(p.remedy.id, p) for p in proposals):
        step = step_of(proposal, situation, selected=proposal.remedy.id in picked.own)
        if not step.selected and needs_engine(proposal.remedy, situation) == "unseen":
            step = replace(step, title=where_shared(step.title))
        steps.append(replace(step, conflicts=against.get(step.id, ())))
    companions = picked.companions
    chosen = together([*picked.own.values(), *companions])
    steps = _with_companions(steps, [step_of(c, situation, selected=True) for c in companions])
    # a version nobody named is worth a look before results are given up, and nobody changes it before a setting
    steps = maybe + steps if cause.id in OF_A_VERSION else _behind_light(steps, maybe)
    advice = _advice(situation, cause)
    if situation.now.built.natives.framework is None:  # LoRA by a switch and by a rank is one thing there
        advice = [*reversed({remedy.title: remedy for remedy in reversed(advice)}.values())]
    told = _each_key_once([advice_step(remedy, situation) for remedy in advice])
    if situation.now.built.natives.framework is None:  # a list, not a catalogue
        told = in_turns(told, situation, cause) if holder_unknown(situation, cause) else told
        usual_first = sorted(told, key=lambda step: step.id not in _usual(situation) and not stated(step))
        told = [step for step in told if step in usual_first[:MOST_BY_HAND]]
    steps = merged(steps, told, cause)
    steps = in_turns(steps, situation, cause) if holder_unknown(situation, cause) else steps
    steps = for_each_holder(steps, situation, cause)
    # a bad version that this crash does not show is no reason to change an environment before a setting
    unproven = [step for step in known_bad if step.group not in proven]
    steps = _behind_first(steps, unproven) if cause.counted else [*unproven, *steps]  # what grows, no setting ends
    steps = _behind_first(steps, doubtful)
    known = cause.counted and situation.phase != "unknown"  # else nothing of this crash points at a version
    perhaps = version_steps(situation, possible)[:1] if not maybe else []
    steps = _before_results(steps, perhaps) if known else _behind_first(steps, perhaps)
    steps += provisional_steps(situation, cause)
    steps = _leading(steps, situation)
    if situation.now.built.natives.framework is not None and cause.memory not in ("unknown", "none"):
        steps = beside(case_steps(situation), steps)
    mending = mending_step(situation)
    back = back_steps(situation)
    raised = [one for one in _raising(situation) if all(step.id != one.id for step in steps)]
    asked = [advice_step(remedy, situation) for remedy in _witness(situation)]
    steps = [step for step in steps if step.id not in WITNESSES and all(step.id != one.id for one in back)]
    first = [*([mending] if mending is not None else []), *asked, *newly_triggered_steps(awake, chosen), *back, *raised]
    settings = [step for step in back if step.kind == "setting"]  # a version stays beside others of its library
    steps = _each_key_once([*settings, *steps])[len(settings) :] if settings else steps
    steps = sorted(steps, key=lambda step: _last(step, situation, picked.too_little))
    steps = _of_the_scoring_pass(steps, situation) if situation.phase == "log_prob" else steps
    steps = largest_early(_newer_behind(led_by_the_run(steps, situation, cause), situation), situation)
    return finish(awake, [*first, *steps], refused, beyond)


def _of_the_scoring_pass(steps: Sequence[PlanStep], situation: Situation) -> list[PlanStep]:
    """A pass that only scores: its own budget of tokens is named, not the update's; where nothing is counted, what is
    held for each parameter comes behind the pass, which keeps neither gradients nor moments.
    """
    own = any(step.id == "logprob-token-budget" for step in steps)
    kept = [step for step in steps if step.selected or stated(step) or not own or step.id != "token-budget"]
    if not situation.uncounted and situation.now.enough is not None:
        return kept
    relieves = {remedy.id: remedy.relieves for remedy in situation.remedies}
    last = max((i for i, step in enumerate(kept) if relieves.get(step.id) == "pass"), default=-1)
    held = [
        one for one in kept[: max(last, 0)] if relieves.get(one.id) == "states" and not (one.selected or one.documented)
    ]
    ahead = [step for step in kept[: last + 1] if step not in held]
    return [*ahead, *held, *kept[last + 1 :]]


def _newer_behind(steps: list[PlanStep], situation: Situation) -> list[PlanStep]:
    """What only a newer version has does not lead where the version that is counted has a step of the same effect."""
    remedies = {remedy.id: remedy for remedy in situation.remedies}
    first = remedies.get(steps[0].id) if steps else None
    if first is None or steps[0].selected or not in_a_later_version(first, situation):
        return steps
    alike = (i for i, one in enumerate(steps[1:FIRST_FEW], 1) if one.changes and one.results == "unchanged")
    at = next((i for i in alike if (r := remedies.get(steps[i].id)) is not None and r.relieves == first.relieves), 0)
    return [*steps[1 : at + 1], steps[0], *steps[at + 1 :]]


def _last(step: PlanStep, situation: Situation, too_little: bool) -> tuple[bool, bool]:
    """Whether it only moves the failure to the other place; whether it gives hardly any of what all together lack."""
    if step.selected or not too_little:
        return step.spills > 0 and not step.selected, False
    short = max((one.short for one in situation.now.fit.findings if one.place == situation.place), default=0)
    saving = max(step.saves.values(), default=0)
    return step.spills > 0, 0 < saving < short * HARDLY and step.tier != "free"


def _only_unexplained(situation: Situation) -> bool:
    """Whether what can be explained would fit: results are not given up for what nobody can name."""
    each, capacity = situation.now.ledger.phase(situation.place, situation.fullest), situation.now.ledger.gpu_capacity
    made = situation.facts.get("attribution")
    named = made is not None and made.value == "logits"  # what failed was of the pass itself: a smaller pass is sure
    if situation.place != "gpu" or each is None or capacity is None or named:
        return False
    unexplained = sum(cell.expected for cell in each.cells if cell.owner == "unexplained")
    return unexplained > 0 and each.expected - unexplained < capacity * (1 - situation.predictor.margin)


def _uncapped(situation: Situation) -> bool:
    """Whether rows may be as long as the data: then no sum says what is enough."""
    return situation.now.run.unlimited_rows and situation.place == "gpu"


def _open_ended(situation: Situation) -> bool:
    """Whether the data may be larger than any sum says: rows without a limit, or pictures where the sums fit."""
    now, capacity = situation.now, situation.now.ledger.gpu_capacity
    pictures = situation.place == "gpu" and now.run.unlimited_pictures and capacity is not None
    return _uncapped(situation) or (pictures and all(one.expected <= (capacity or 0) for one in now.ledger.sums("gpu")))


def _beyond(
    picked: Selected,
    proposals: Sequence[Proposal],
    situation: Situation,
    versions: Sequence[PlanStep],
    by_hand: Sequence[Proposal],
    cause: Cause,
    same: bool,
) -> str:
    """What is said where no set of the changes is enough, or where nothing is switched on for want of an answer."""
    chosen = together([*picked.own.values(), *picked.companions])
    if situation.now.run.no_launch and holder_unknown(situation, cause):
        asked = say("Give the whole command that starts the training: {why}", why=situation.now.run.no_launch)
        return sentences([f"{asked}.", *situation.predictor.inputs.script_notes[:1]])
    if situation.refuted:
        return say(
            "{who} contradicts what is counted, so none of these is counted or switched on.",
            who=contradicting(situation),
        )
    if situation.now.run.lost:
        return say("Nothing is switched on before the command is whole: what the comment keeps from it may be enough.")
    if picked.too_little and (found := next(iter(_raising(situation, chosen)), None)) is not None:
        return say("Enough by this count, by hand: {title}.", title=found.title)
    if picked.too_little and situation.now.run.quoted:
        return say("Only a part of the launch was seen: what is missing decides how far these go.")
    if picked.too_little and by_hand:
        done = listed(sorted({p.remedy.title for p in by_hand}))
        return say("Enough by this count, by hand in a file that was not given: {titles}.", titles=done)
    if picked.too_little and (unseen := next((p for p in proposals if p.blind and p.fits), None)) is not None:
        return say(
            "Enough by this count, unless the part of the launch that was not seen has it already: {title}.",
            title=unseen.remedy.title,
        )
    if picked.too_little and not situation.now.run.settings:
        return ""  # the plan's head says that no setting was seen
    if picked.too_little and not (situation.now.run.seen_whole and situation.now.run.unread is None):
        return say("By what was seen no set of these changes is enough; what was not seen may be otherwise.")
    if picked.too_little:
        if same and (other := [p for p in proposals if p.fits and p.results == "changed" and not p.remedy.last_resort]):
            titles = listed(dict.fromkeys(p.remedy.title for p in other))
            return say(
                "None that leaves the results alone is enough by this count; each of these would be: {titles}.",
                titles=titles,
            )
        everything = {**chosen, **together([p for p, _ in all_that_helps(proposals, situation, chosen)])}
        neither = squeezed(proposals, situation, chosen)
        after = situation.predictor.predict(chosen)
        if not neither and after.squeeze is not None:
            neither = sentence(squeeze_clause(after.squeeze, with_ways=False))
        return sentences([neither, ways_out(situation, chosen, everything)])
    if not chosen and _uncapped(situation):
        return say("Rows have no longest length: with a cap the sums say what is enough.")
    now = situation.now
    if chosen or now.enough is True or all(p.remedy.last_resort for p in proposals):
        return ""
    if versions and cause.id in OF_A_VERSION:
        libraries = listed(change.key for step in versions for change in step.changes)
        return say("Nothing is switched on before the version of {library} is known.", library=libraries)
    return ""


def contradicting(situation: Situation) -> str:
    """What says that steps were done which by the sums could not have been: the log, a record, or the user."""
    ran = situation.facts.get("first_step")
    return say("What you say (steps had been done)") if ran is not None and ran.source == "user" else say("The log")


def _witness(situation: Situation) -> list[Remedy]:
    """How to see who killed the process, or what refused it memory: under another hand nothing else helps."""
    known = (one for one in situation.remedies if one.id in WITNESSES and situation.place == one.memory)
    return [one for one in known if all_hold(one.applies_when, situation.facts) is not None]


def _raising(situation: Situation, chosen: Overrides | None = None) -> Iterator[PlanStep]:
    """The steps that raise the job's limit to what the run needs by the count; with `chosen` only those with which it
    then fits."""
    if situation.place != "host":
        return
    for remedy in situation.remedies:
        step = advice_step(remedy, situation) if remedy.raises_limit else None
        if step is None or not step.host_limit:
            continue
        after = situation.predictor.lifted(step.host_limit)
        if chosen is None or not after.predict(chosen).unfit("host"):
            yield step


def finish(situation: Situation, steps: list[PlanStep], refused: tuple[NotProposed, ...], beyond: str = "") -> Plan:
    """Number the steps and compute the ledger before and after the selected ones. `beyond`: the plan's own."""
    named = (in_words_of(situation.vendor, step) for step in steps)
    kept = (step for step in named if not in_force(step, situation))
    of_rows = {one.id for one in situation.remedies if one.relieves in ("pass", "rows") and situation.rows_unknown}
    kept = (replace(s, saves={}, host_saves={}) if situation.refuted or s.id in of_rows else s for s in kept)
    ranked = tuple(replace(step, rank=number) for number, step in enumerate(kept, 1))
    fixed = any(step.selected and step.kind == "version" for step in ranked)
    lifted = max((step.host_limit for step in ranked if step.selected), default=0)
    after = situation.predictor.lifted(lifted).predict(overrides_of(ranked), fixed)
    short = _shortfall(situation, after, any(step.selected for step in ranked), told=bool(beyond))
    told = sentences([sentence(short), beyond]) if beyond and after.fit.verdict != "fits" else short
    margin = situation.predictor.margin
    return Plan(ranked, situation.now.ledger, after.ledger, margin, after.fit, situation.now.fit, refused, told, beyond)


def overrides_of(steps: Iterable[PlanStep]) -> dict[str, str | None]:
    """Native key → new text of all selected steps (variables as `$NAME`)."""
    return {
        ("$" if step.kind == "environment" else "") + native(change.key): change.new
        for step in steps
        if step.selected and step.kind in ("setting", "environment", "data")
        for change in step.changes
    }


def enough_alone(step: PlanStep, situation: Situation) -> bool | None:
    """Whether the run would fit with this step and no other; None where that cannot be computed."""
    overrides = overrides_of([replace(step, selected=True)])
    return situation.predictor.predict(overrides).enough if overrides else None


def _ordered(situation: Situation, cause: Cause) -> list[Remedy]:
    """The cause's own remedies in its order; results-preserving ones of the same memory and phase after them."""
    by_id = {remedy.id: remedy for remedy in situation.remedies}
    first = [by_id[name] for name in cause.remedies if name in by_id]
    if cause.memory == "unknown":
        return []
    skip = {*cause.remedies, *cause.folklore}
    rest = [r for r in situation.remedies if r.id not in skip and r.value is not None and r.memory == situation.place]
    computed = situation.now.unfit(situation.place) is not None and not situation.uncounted
    counted = situation.place == "gpu" and cause.memory != "shm" and cause.counted and computed
    if situation.place == "gpu" and situation.phase == "unknown" and not computed and cause.counted:
        first += [
            by_id[name] for name in _of_any_holder(situation) if name in by_id and name not in skip
        ]  # nor is the cause more than a guess
    rest = [r for r in rest if r.kind == "setting"] if counted else []
    rest.sort(key=lambda r: TIERS.index(r.tier))
    return [r for r in [*first, *rest] if _concerns(r, situation) and r.value is not None and r.kind != "version"]


def _of_any_holder(situation: Situation) -> Sequence[str]:
    """The remedies of the cause that stands for all, where nothing tells what held the card."""
    return next((cause.remedies for cause in situation.knowledge.tree.causes if cause.id == GUESSED[0]), ())


def _concerns(remedy: Remedy, situation: Situation) -> bool:
    if remedy.memory not in (situation.place, "shm") and not remedy.platforms:
        return False
    if "gpu.beyond_card" in situation.facts and remedy.relieves in ("states", "engine"):
        return False  # room for it cannot be made, only a smaller tensor
    if not situation.reaches(remedy):
        return False
    anywhere = not remedy.phases or situation.phase == "unknown" or remedy.id in situation.led
    return anywhere or situation.phase in remedy.phases


def _propose_all(situation: Situation, cause: Cause) -> tuple[list[Proposal], tuple[NotProposed, ...]]:
    proposals: list[Proposal] = []
    refused: list[NotProposed] = [*folklore(situation, cause), *false_friends(situation)]
    keys: set[str] = set()
    for remedy in _ordered(situation, cause):
        in_vain = tried_in_vain(remedy, situation)
        if in_vain:
            refused.append(NotProposed(remedy.id, remedy.title, in_vain))
            continue
        found = propose(remedy, situation, {})
        if isinstance(found, NotProposed):
            if remedy.id in cause.remedies:
                refused.append(found)
        elif found is not None and not keys & set(found.overrides):
            idle = acts_elsewhere(found, situation) or saves_elsewhere(
                found, situation, remedy.id in cause.remedies, remedy.id in cause.remedies[:1]
            )
            if idle:
                refused += [NotProposed(remedy.id, remedy.title, idle)] if remedy.id in cause.remedies else []
                continue
            keys |= set(found.overrides)
            proposals.append(found)
    return ordered(proposals, situation, cause), tuple(refused)


def merged(steps: Sequence[PlanStep], by_hand: Sequence[PlanStep], cause: Cause) -> list[PlanStep]:
    """Steps that no file carries at their place in the cause's order, behind whatever is switched on or shown to help.

    The cause's first remedy leads where it is one of them and costs nothing that the run computes: a limit is raised
    before anything is made smaller, and what ran is gone back to.
    """
    order = {name: place for place, name in enumerate(cause.remedies)}
    result = list(steps)
    for step in by_hand:
        mine = order.get(step.id, len(order))
        if mine == 0 and step.tier in ("free", "version"):
            result.insert(0, step)
            continue
        later = (i for i, one in enumerate(result) if _gives_way(one) and order.get(one.id, len(order)) > mine)
        last = max((i for i, one in enumerate(result) if one.selected), default=-1) + 1
        result.insert(max(next(later, len(result)), last), step)
    return result


def _gives_way(step: PlanStep) -> bool:
    """A step of which nothing shows that it saves anything where the run died; a version is looked at all the same."""
    shown = step.selected or step.documented or any(size > 0 for size in step.saves.values())
    return not shown and step.kind != "version"


def _behind_first(steps: list[PlanStep], later: list[PlanStep]) -> list[PlanStep]:
    """`later` behind the first few steps, and behind everything that is switched on."""
    last = max((i for i, step in enumerate(steps) if step.selected), default=-1) + 1
    at = max(last, min(FIRST_FEW, len(steps)))
    return [*steps[:at], *later, *steps[at:]]


def _behind_light(steps: list[PlanStep], later: list[PlanStep]) -> list[PlanStep]:
    """`later` behind the first steps that cost neither results nor RAM, the first few at most."""
    light = (step.results == "unchanged" and step.tier in ("free", "slower") for step in steps[:FIRST_FEW])
    at = next((i for i, one in enumerate(light) if not one), min(FIRST_FEW, len(steps)))
    return [*steps[:at], *later, *steps[at:]]


def _before_results(steps: list[PlanStep], later: list[PlanStep]) -> list[PlanStep]:
    """`later` in front of what gives up results, and behind everything that is switched on."""
    last = max((i for i, step in enumerate(steps) if step.selected), default=-1) + 1
    at = next((i for i, step in enumerate(steps) if i >= last and step.results == "changed"), len(steps))
    return [*steps[:at], *later, *steps[at:]]


def _leading(steps: Sequence[PlanStep], situation: Situation) -> list[PlanStep]:
    """The usual ways out of this kind of run among the first few steps, behind whatever is switched on.

    So are the settings of a few that somebody quoted of a launch: the rest seemed beside the point.
    """
    told = [step for step in steps if stated(step)]
    quoted = situation.now.run.quoted and len(told) < FIRST_FEW
    usual = _usual(situation)
    first = 0 if _open_ended(situation) else FIRST_FEW - 1
    chosen = max((i + 1 for i, step in enumerate(steps) if step.selected), default=0)
    named = sorted(
        (step for step in steps[chosen:] if step.id in situation.led), key=lambda step: situation.led.index(step.id)
    )
    steps = [*steps[:chosen], *named, *(step for step in steps[chosen:] if step not in named)]
    at = max(first, chosen, chosen + len(named))
    changed = next((i for i, step in enumerate(steps) if i >= chosen and step.results == "changed"), at)
    changed = max(changed, chosen + len(named))
    led = [step for step in steps[at:] if step.id in usual or (quoted and step in told)]
    if _open_ended(situation):  # before the data has a largest size, no saving is a number
        return [*steps[:at], *led, *(step for step in steps[at:] if step not in led)]
    quiet = [step for step in led if step.results == "unchanged"]  # nothing is given up before what costs nothing
    led, ahead = [step for step in led if step not in quiet], min(at, changed)
    rest = [step for step in steps[at:] if step not in led and step not in quiet]
    return [*steps[:ahead], *quiet, *steps[ahead:at], *unchanged_ahead(led, rest)]


def _usual(situation: Situation) -> set[str]:
    """Remedies that are the usual way out of this kind of run."""
    facts = situation.facts
    return {one.id for one in situation.remedies if one.leads_when and all_hold(one.leads_when, facts) is not None}


def _with_companions(steps: list[PlanStep], companions: list[PlanStep]) -> list[PlanStep]:
    """Companions stand right after the last selected step; the same remedy further down gives way to them."""
    names = {step.id for step in companions}
    kept = [step for step in steps if step.id not in names]
    last = max((i for i, step in enumerate(kept) if step.selected), default=-1)
    return [*kept[: last + 1], *companions, *kept[last + 1 :]]


def _each_key_once(steps: Sequence[PlanStep]) -> list[PlanStep]:
    """Without the steps that would move a key which one before them moves."""
    taken: set[str] = set()
    kept: list[PlanStep] = []
    for step in steps:
        keys = {change.key for change in step.changes}
        if not keys & taken:
            kept.append(step)
        taken |= keys
    return kept


def _advice(situation: Situation, cause: Cause) -> list[Remedy]:
    """Remedies that no file carries, in the cause's order: machines, manual steps, data without a switch.

    Without a dialect every remedy of the cause is one.
    """
    by_id = {remedy.id: remedy for remedy in situation.remedies}
    natives = situation.now.built.natives
    any_holder = _of_any_holder(situation) if natives.framework is None and holder_unknown(situation, cause) else ()
    names = dict.fromkeys((*cause.remedies, *any_holder))
    named = [by_id[name] for name in names if name in by_id and by_id[name].kind != "version"]
    wanted = [r for r in named if _may_apply(r, situation) and _concerns(r, situation)]
    if natives.framework is None:
        concerning = [r for r in wanted if not (r.environment and r.value is not None)]
        concerning = [r for r in concerning if not settled(r, situation) and usual(r, situation)]
        concerning = [r for r in concerning if needs_engine(r, situation) != "missing"]
        concerning.sort(key=lambda r: r.results == "changed" and r.id not in cause.leads)
        concerning.sort(key=lambda r: situation.needs_more(r) or needs_engine(r, situation) == "unseen")
        by_name: dict[str, Remedy] = {}  # two ways to move a state have one name in most frameworks
        for remedy in concerning:
            by_name.setdefault(listed(names_of(remedy.knob or "", situation)[:MOST_NAMES]) or remedy.id, remedy)
        return list(by_name.values())
    first = cause.remedies[:1]
    return [
        r
        for r in wanted
        if (r.value is None and r.kind != "data")
        or _has_no_key(r, situation)
        or (r.id in first and in_a_later_version(r, situation))
    ]


def _has_no_key(remedy: Remedy, situation: Situation) -> bool:
    """Whether a remedy that can be told without a key has none here."""
    if remedy.kind == "data":
        return not situation.now.built.natives.carriers(remedy.knob or "")
    if unseen_number(remedy, situation):
        return _concerns(remedy, situation)
    return (
        remedy.by_hand
        and not by_default(remedy, situation)
        and not isinstance(propose(remedy, situation, {}), Proposal)
    )


def _may_apply(remedy: Remedy, situation: Situation) -> bool:
    """What is only told needs its facts; where a setting is meant that nobody can see, they must not be otherwise."""
    if remedy.value is None:
        return all_hold(remedy.applies_when, situation.facts) is not None
    return not any(contradicted(rule, situation.facts) for rule in remedy.applies_when)


def _shortfall(situation: Situation, after: Prediction, chosen: bool, told: bool) -> str:
    """What is too much after the selected steps, place by place; else what still stands in doubt. `told`: that it fits
    neither with offload nor without, where that is so.
    """
    if not after.ledger.gpu:
        return ""  # what is missing is told where the sums would be
    worst = worst_of_each_place(after.fit)
    # the size of the place that did not run out decides nothing where no change moves anything there
    other: Place = "host" if situation.place == "gpu" else "gpu"
    moved = chosen and peak_rises(situation.now.ledger, after.ledger, other)
    against = [
        finding_clause(one)
        for one in worst
        if one.reason != "capacity"
        or ((moved or one.place == situation.place) and not (one.place == "gpu" and situation.rows_unknown))
    ]
    against = [] if after.run.quoted else against  # nor a sum of settings that nobody saw
    if after.fit.verdict != "does_not_fit":
        said = after.run.doubts  # each face tells these at the head of its plan
        doubts = (doubt for doubt in after.ledger.doubts if after.fit.fits is not None and doubt not in said)
        return sentences([*doubts, clauses(against)])
    if after.squeeze is None:
        return clauses(against)
    return "" if told else squeeze_clause(after.squeeze)
