"""Makes the plan: orders the remedies of a cause, picks the cheapest set that fits, says what was left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.diagnosis.deciding import acts_in
from advisor.diagnosis.fact import all_hold
from advisor.knowledge.schema import Cause, Remedy
from advisor.language import listed, mark, say, sentences
from advisor.memory.predict import Overrides
from advisor.memory.squeeze import squeeze_clause
from advisor.plan.applicable import (
    fitting,
    needs_engine,
    of_another_launcher,
)
from advisor.plan.as_in_case import beside, case_steps
from advisor.plan.by_hand import advice_step, of_the_line, where_shared
from advisor.plan.options import options
from advisor.plan.order import arranged, clash, documented_alike, grounds
from advisor.plan.plan import NotProposed, Plan, PlanStep, in_words_of
from advisor.plan.propose import Proposal, propose, taking
from advisor.plan.provisional import holders_of, provisional_steps
from advisor.plan.ran_with import back_steps, proved_steps, updated
from advisor.plan.remedies import (
    acting_step,
    acts_elsewhere,
    false_friends,
    folklore,
    named_by_message,
    remedies_of,
    saves_elsewhere,
    told_by_hand,
    tried_in_vain,
)
from advisor.plan.select import (
    Selected,
    all_that_helps,
    exclusions,
    ordered,
    select,
    together,
)
from advisor.plan.situation import Situation, holder_unknown, states_beyond, weights_beyond
from advisor.plan.steps import mending_step, step_of
from advisor.plan.versions import blamed, confirmed, newer_step, newly_triggered_steps, suspected, version_steps
from advisor.plan.ways_out import shortfall, ways_out
from advisor.run.natives import native
from advisor.units import show_bytes
from advisor.words import PHASE_TITLES, sentence

OF_A_VERSION = ("library-regression", "host-library-leak", "image-cache", "encoder-cache")
"""Causes that are a version's fault, whichever it is."""
WITNESSES = (
    *("ask-who-killed", "ask-the-dead-worker", "ask-what-is-full", "ask-the-last-line", "ask-how-it-ended"),
    *("look-at-limits", "ask-which-call", "ask-card-or-stack", "ask-what-failed"),
)
"""Remedies that tell first what it was: who killed the process, what refused it memory, or which call asked for it."""
FEW = 3
"""Steps below which a newer version of the framework is worth a try (judgement)."""
MOST_BY_HAND = 8
"""Steps named for a launch without a dialect: a list, not a catalogue."""


class _VersionSteps(Struct, frozen=True):
    """Steps that change a library's version, by what speaks for them."""

    healing: list[PlanStep]
    """They end a fault that is proven: nothing else is needed."""
    unproven: list[PlanStep]
    """Faults of versions in use that nothing proves."""
    maybe: list[PlanStep]
    """The failure looks like a fault of a version that nobody named."""
    doubtful: list[PlanStep]
    confirmed: list[PlanStep]
    """The way out of a regression that holds here in all it asks: it leads."""
    perhaps: list[PlanStep]
    """A version that nobody named points at nothing, where the cause is what settings hold."""

    @staticmethod
    def of(situation: Situation, cause: Cause) -> _VersionSteps:
        """First see which version it is, where the cause is a version's fault."""
        bad, looks_like, possible = blamed(situation, cause)
        known_bad = version_steps(situation, bad)
        proven = {step.group for step in known_bad if step.selected}
        healing = [step for step in known_bad if step.group in proven]
        maybe = version_steps(situation, looks_like)[:1]
        doubtful = [] if maybe or healing else suspected(situation, cause)
        if cause.id in OF_A_VERSION:
            maybe, doubtful = maybe or doubtful, []
        perhaps = [] if maybe else version_steps(situation, possible)[:1]
        sure = version_steps(situation, confirmed(bad, situation))[:1]
        unproven = [step for step in known_bad if step.group not in proven]
        return _VersionSteps(healing, unproven, maybe, doubtful, sure, perhaps)

    @property
    def healed(self) -> bool:
        """Whether one that ends it is switched on."""
        return any(step.selected for step in self.healing)


def make_plan(situation: Situation, cause: Cause) -> Plan:
    """The plan for a cause: steps in order, the selected ones a set that fits where one exists."""
    awake, situation = situation, situation.without_latent_faults()
    proposals, refused = _propose_all(situation, cause)
    versions = _VersionSteps.of(situation, cause)
    picked, beyond = _picked(proposals, situation, cause, versions)
    told = [_advised(remedy, situation) for remedy in told_by_hand(situation, cause)]
    levers = _levers(proposals, picked, situation)
    levers += [step for step in told if step.id not in {one.id for one in levers}]
    by_message = _named(levers, situation)
    levers = [*by_message, *(step for step in levers if step.id not in {one.id for one in by_message})]
    holders = holders_of(levers, situation, cause)
    few = (
        cause.memory == "gpu"
        and cause.room_helps
        and not weights_beyond(situation)
        and len(levers) < FEW
        and not picked.own
        and not versions.healing
    )
    newer = [step for step in (newer_step(situation) if few else None,) if step is not None]
    chosen = together([*picked.own.values(), *picked.companions])
    # where keys are known, it is known what ran out, and room helps
    known = situation.now.built.natives.framework is not None and cause.memory not in ("unknown", "none")
    case, leading = beside(case_steps(situation, chosen) if known and cause.room_helps else [], holders.steps)
    unproven = of_the_line(situation) if cause.memory == "unknown" else []  # which cause it was is open
    # who killed the process, or what refused it memory: under another hand nothing else helps
    seen = (one for one in situation.remedies if one.id in WITNESSES and one.memory == cause.memory)
    witness = [one for one in seen if all_hold(one.applies_when, situation.facts) is not None]
    asked = [advice_step(remedy, situation) for remedy in (*witness, *unproven)]
    mending = [step for step in (mending_step(situation),) if step is not None]
    first = [*proved_steps(situation), *mending, *asked, *newly_triggered_steps(awake, chosen)]
    first += [*(back_steps(situation) if cause.memory != "unknown" else []), *_raising(situation)]
    names = {step.id for step in (*first, *versions.confirmed)}
    later = [*versions.healing, *versions.maybe, *case, *versions.unproven, *versions.doubtful, *versions.perhaps]
    acting = [step for step in (acting_step(situation, cause),) if step is not None]
    here, told_here = {step.id for step in first}, {step.id for step in (*levers, *later, *newer, *acting)}
    perhaps = provisional_steps(situation, cause, decided=bool(chosen))
    open_ = situation.open_phase
    elsewhere = {one.id for one in situation.remedies if open_ is not None and not acts_in(one, {open_.taken})}
    perhaps = [step for step in perhaps if step.id not in told_here or step.id in elsewhere]
    apart = {step.id for step in perhaps}  # told under the phase in which they act
    later = [*(step for step in (*later, *newer, *acting) if step.id not in apart), *perhaps]
    steps = [*first, *(step for step in later if step.id not in here and step.id not in WITNESSES)]
    of_a_version = [one.id for one in (versions.maybe if cause.id in OF_A_VERSION else [])]
    why = grounds(
        steps,
        situation,
        cause,
        leading=[*named_by_message(situation), *of_a_version, *leading, *holders.leading],
        ahead=names,
        doubted={step.id for step in (*versions.perhaps, *newer)},
        # what grows, no setting ends
        unseen={
            *holders.unseen,
            *(one.id for one in acting if one.place == "gpu"),
            *(step.id for step in versions.doubtful if cause.counted),
        },
        helped=holders.helped,
    )
    shown = documented_alike(situation)
    named = [name for name in shown[1] if name not in why.little]
    ordered_steps = [
        replace(step, documented=step.documented or shown[0]) if step.id in named else step
        for step in arranged(steps, why)
    ]
    if situation.now.built.natives.framework is None:  # a list, not a catalogue
        hands = [step for step in ordered_steps if step in told][MOST_BY_HAND:]
        ordered_steps = [step for step in ordered_steps if step not in hands]
    return finish(awake, ordered_steps, refused, beyond)


def _picked(
    proposals: Sequence[Proposal], situation: Situation, cause: Cause, versions: _VersionSteps
) -> tuple[Selected, str]:
    """What is switched on, and what is said where that is not enough or nothing is."""
    predictor = situation.predictor
    undecided = predictor.died is None and predictor.crash.verdict == "oom"  # which memory it was is still open
    guessed = {"stated.card", "killed.likely"} & situation.facts.keys()
    undecided = undecided or (bool(guessed) and "ended" not in situation.facts)
    # no ledger of GPU or host counts what ran out there
    quiet = versions.healed or undecided or cause.memory in ("unknown", "shm") or bool(situation.now.run.lost)
    quiet = quiet or _uncapped(situation) or bool(situation.ran_with)  # first see what changed
    quiet = quiet or (situation.uncounted and not situation.refuted) or bool(situation.fits_alone)
    by_hand = [p for p in proposals if p.remedy.id in situation.barred and p.results == "unchanged" and p.fits]
    # results are not given up for what was seen in part, nor while hands can do what no file given here carries
    same = bool(versions.maybe) or situation.now.run.quoted or bool(by_hand) or _only_unexplained(situation)
    same = same or updated(situation) or "other.full" in situation.facts
    picked = Selected({}) if quiet else select(proposals, situation, cause, only_same_results=same)
    no_phase = cause.memory == "shm"  # nor does a sum or an answer to the phase decide there
    if versions.healed or no_phase or situation.ran_with:
        return picked, ""
    of_pass = all(one.remedy.relieves in ("pass", "rows") for one in picked.own.values())
    if of_pass and picked.too_little and states_beyond(situation):
        picked = Selected({}, too_little=True)  # a smaller pass alone makes no room where the states have none
    return picked, _beyond(picked, proposals, situation, versions.maybe, by_hand, cause, same)


def _levers(proposals: Sequence[Proposal], picked: Selected, situation: Situation) -> list[PlanStep]:
    """The settings that help: what is switched on first, with the companions that it needs behind it."""
    against = exclusions(proposals, situation)
    levers = [step_of(c, situation, selected=True) for c in picked.companions]
    known = {step.id for step in levers}
    for proposal in (picked.own.get(p.remedy.id, p) for p in proposals if p.remedy.id not in known):
        step = step_of(proposal, situation, selected=proposal.remedy.id in picked.own)
        if not step.selected and needs_engine(proposal.remedy, situation) == "unseen":
            step = replace(step, title=where_shared(step.title))
        levers.append(replace(step, conflicts=against.get(step.id, ())))
    levers.sort(key=lambda step: step.id not in picked.own)
    return levers


def _named(levers: Sequence[PlanStep], situation: Situation) -> list[PlanStep]:
    """The settings that the message itself names and that no step moves yet, or moves without a value."""
    by_id, apart = {one.id: one for one in situation.remedies}, not situation.now.run.topology.colocated
    taken = {step.id for step in levers if all(one.old_source == "assumed" for one in step.changes)}
    here = {
        step.id for step in levers if step.changes and not (apart and step.id in taken)
    }  # a server has its own keys
    named = {name: key for name, key in named_by_message(situation).items() if name not in here}
    return [advice_step(by_id[name], situation, named=key) for name, key in named.items()]


def _only_unexplained(situation: Situation) -> bool:
    """Whether what can be explained would fit: results are not given up for what nobody can name."""
    named = situation.value("attribution") == "logits"  # what failed was of the pass itself: a smaller pass is sure
    return situation.place == "gpu" and not named and situation.without("unexplained") is not None


def _uncapped(situation: Situation) -> bool:
    """Whether rows may be as long as the data: then no sum says what is enough."""
    return situation.now.run.unlimited_rows and situation.place == "gpu"


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
        return _of_refuted(situation, chosen)
    if situation.now.run.lost:
        return say("Nothing is switched on before the command is whole: what the comment keeps from it may be enough.")
    if picked.too_little and (found := next(iter(_raising(situation, chosen)), None)) is not None:
        told = (
            mark("Enough by this count: {title}.")
            if found.kind == "job"
            else mark("Enough by this count, by hand: {title}.")
        )
        return say(told, title=found.title)
    if picked.too_little and situation.now.run.quoted:
        return say("Only a part of the launch was seen: what is missing decides how far these go.")
    if picked.too_little and by_hand:
        done = listed(sorted({p.remedy.title for p in by_hand}))
        return say("Enough by this count, by hand: {title}.", title=done)
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
        after = situation.predictor.predict(chosen)
        neither = sentence(squeeze_clause(after.squeeze)) if after.squeeze is not None else ""
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


def _of_refuted(situation: Situation, chosen: Overrides) -> str:
    """That the sums are not the run's, with what they come to: no face shows a number that nobody explains."""
    who, worst = contradicting(situation), situation.now.fit.worst
    ledgers = situation.now.ledger, situation.predictor.predict(chosen).ledger
    now, then = (one.phase("gpu", worst.phase) if worst is not None else None for one in ledgers)
    if now is None or then is None or not chosen:
        return say("{who} contradicts what is counted, so what these save cannot be told.", who=who)
    return say(
        "{who} contradicts what is counted ({phase} would take {size} of the {room} of a card, and steps were done), "
        "so what these save cannot be told. By that count, which is too large, it is {then} with them.",
        who=who,
        phase=PHASE_TITLES[now.phase],
        size=show_bytes(now.expected),
        room=show_bytes(ledgers[0].gpu_capacity or 0),
        then=show_bytes(then.expected),
    )


def contradicting(situation: Situation) -> str:
    """What says that steps were done which by the sums could not have been: the log, a record, or the user."""
    ran = situation.facts.get("first_step")
    return say("What you say (steps had been done)") if ran is not None and ran.source == "user" else say("The log")


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
    kept = iter(fitting([in_words_of(situation.vendor, step) for step in steps], situation))
    of_rows = {one.id for one in situation.remedies if one.relieves in ("pass", "rows") and situation.rows_unknown}
    kept = (
        replace(s, saves={}, host_saves={}, basis="estimated") if situation.refuted or s.id in of_rows else s
        for s in kept
    )
    ranked = tuple(replace(step, rank=number) for number, step in enumerate(kept, 1))
    fixed = any(step.selected and step.kind == "version" for step in ranked)
    lifted = max((step.host_limit for step in ranked if step.selected), default=0)
    after = situation.predictor.lifted(lifted).predict(overrides_of(ranked), fixed)
    short = shortfall(situation, after, overrides_of(ranked), told=bool(beyond))
    short = "" if situation.refuted or situation.fits_alone else short  # the sums are not the run's
    told = sentences([sentence(short), beyond]) if beyond and after.fit.verdict != "fits" else short
    judged = not situation.refuted or after.fit.verdict == "cannot_be_said"
    fit = after.fit if judged else replace(after.fit, verdict="cannot_be_said", findings=())
    margin = situation.predictor.margin
    return Plan(ranked, situation.now.ledger, after.ledger, margin, fit, situation.now.fit, refused, told, beyond)


def overrides_of(steps: Iterable[PlanStep]) -> dict[str, str | None]:
    """Native key → new text of all selected steps (variables as `$NAME`)."""
    return {
        ("$" if change.variable or step.kind == "environment" else "") + native(change.key): change.new
        for step in steps
        if step.selected and step.kind in ("setting", "environment", "data")
        for change in step.changes
    }


def enough_alone(step: PlanStep, situation: Situation) -> bool | None:
    """Whether the run would fit with this step and no other; None where that cannot be computed."""
    overrides = overrides_of([replace(step, selected=True)])
    if not overrides and not step.host_limit:
        return None
    return situation.predictor.lifted(step.host_limit).predict(overrides).enough


def _propose_all(situation: Situation, cause: Cause) -> tuple[list[Proposal], tuple[NotProposed, ...]]:
    proposals: list[Proposal] = []
    refused: list[NotProposed] = [*folklore(situation, cause), *false_friends(situation)]
    keys: dict[str, str | None] = {}
    for remedy in remedies_of(situation, cause):
        in_vain = tried_in_vain(remedy, situation)
        if in_vain:
            refused.append(NotProposed(remedy.id, remedy.title, in_vain))
            continue
        found = propose(remedy, situation, {})
        if isinstance(found, NotProposed):
            if remedy.id in cause.remedies:
                refused.append(found)
        elif found is not None and of_another_launcher(
            ((k, one.source) for k, one in found.present.items()), situation
        ):
            continue  # and leaves its keys to others
        elif found is not None and not clash(found.overrides, keys):
            idle = acts_elsewhere(found, situation) or saves_elsewhere(
                found, situation, remedy.id in cause.remedies, remedy.id in cause.remedies[:1]
            )
            if idle:
                refused += [NotProposed(remedy.id, remedy.title, idle)] if remedy.id in cause.remedies else []
                continue
            keys |= {} if found.spills else found.claims  # what has no room there leaves the key to others
            proposals.append(found)
    return ordered(proposals, situation, cause), tuple(refused)


def _advised(remedy: Remedy, situation: Situation) -> PlanStep:
    """The step in words; of a method whose switch the framework has, though nobody saw how it stands, with that."""
    framework = situation.now.built.natives.framework
    special = any(one.when and all_hold(one.when, situation.facts) is not None for one in remedy.examples)
    own = remedy.by_hand and framework is not None and not framework.serves_others and not special
    for one in (each for each in situation.remedies if own and each.title == remedy.title):
        if (found := options(one, situation, {})) is not None and found[0]:
            step = step_of(taking(found[0][0], one, situation, {}), situation, selected=False)
            return replace(step, id=remedy.id)
    return advice_step(remedy, situation)
