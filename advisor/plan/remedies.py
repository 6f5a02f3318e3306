"""Tells which remedies concern a run, in the order in which they are tried: those that no file carries, those that the
failing line names, and those in force already that seem to have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from advisor.diagnosis.fact import all_hold
from advisor.knowledge.schema import Cause, Remedy
from advisor.language import listed, say
from advisor.plan.applicable import applies, barred, beside_engine, in_a_later_version, may_apply, of_years_later
from advisor.plan.common_names import names_of, stated_by_name
from advisor.plan.options import by_default, unseen_number
from advisor.plan.plan import NotProposed, PlanStep
from advisor.plan.propose import Proposal, propose
from advisor.plan.select import GUESSED, TIERS, tight
from advisor.plan.situation import Situation, weights_beyond
from advisor.regex import regex
from advisor.units import show_bytes
from advisor.words import BETWEEN_SENTENCES, PHASE_TITLES


def remedies_of(situation: Situation, cause: Cause) -> list[Remedy]:
    """The cause's own remedies in its order; results-preserving ones of the same memory and phase after them."""
    if cause.memory == "unknown":
        return []
    by_id = {remedy.id: remedy for remedy in situation.remedies}
    names = dict.fromkeys((*cause.remedies, *_ordinary(situation, cause)))
    first = [by_id[name] for name in names if name in by_id and name not in cause.folklore]
    skip = {*names, *cause.folklore}
    rest = [r for r in situation.remedies if r.id not in skip and r.value is not None and r.memory == situation.place]
    computed = situation.now.unfit(situation.place) is not None and not situation.uncounted
    counted = situation.place == "gpu" and cause.memory != "shm" and cause.counted and computed
    rest = [r for r in rest if r.kind == "setting"] if counted else []
    rest.sort(key=lambda r: TIERS.index(r.tier))
    return [r for r in [*first, *rest] if r.value is not None and r.kind != "version" and _concerns(r, situation)]


def _ordinary(situation: Situation, cause: Cause) -> list[str]:
    """Remedies that make room in this phase for whatever fills the card, beside what ends the cause, unless room does
    not help it; last those of the cause that stands for all.
    """
    if situation.place != "gpu" or cause.memory != "gpu" or not cause.room_helps:
        return []
    causes = situation.knowledge.tree.causes
    here = [one for one in causes if situation.phase in one.ordinary_in]
    return [name for one in (*here, *(one for one in causes if one.id == GUESSED[0])) for name in one.remedies]


def _concerns(remedy: Remedy, situation: Situation) -> bool:
    elsewhere = remedy.memory not in (situation.place, "shm") and not remedy.platforms
    if elsewhere or barred(remedy, situation) is not None:
        return False
    if "gpu.beyond_card" in situation.facts and (
        remedy.relieves in ("states", "engine") or remedy.lever == "recompute"
    ):
        return False  # room for it cannot be made, only a smaller tensor
    if not situation.reaches(remedy) or (remedy.relieves in ("pass", "rows") and weights_beyond(situation)):
        return False
    if not beside_engine(remedy, situation):
        return False
    anywhere = not remedy.phases or situation.phase == "unknown" or remedy.id in situation.led
    anywhere = anywhere or situation.may_have_saved(remedy)
    return anywhere or situation.phase in remedy.phases


def told_by_hand(situation: Situation, cause: Cause) -> list[Remedy]:
    """Remedies that no file carries, in the cause's order: machines, manual steps, data without a switch.

    Without a dialect every remedy of the cause is one.
    """
    by_id = {remedy.id: remedy for remedy in situation.remedies}
    natives = situation.now.built.natives
    ordinary = _ordinary(situation, cause)
    if (
        natives.framework is not None
    ):  # of supervised training also a method that the framework has no key of its own for
        ordinary = [n for n in ordinary if n in by_id and by_id[n].by_hand and not natives.rolls_out]
        titles = {by_id[n].title for n in ordinary}
        alike = [one for one in by_id.values() if one.title in titles]
        keyed = {one.title for one in alike if isinstance(propose(one, situation, {}), Proposal)}
        ordinary = [n for n in ordinary if by_id[n].title not in keyed]
    names = dict.fromkeys((*cause.remedies, *ordinary))
    named = [by_id[name] for name in names if name in by_id and by_id[name].kind != "version"]
    wanted = [r for r in named if may_apply(r, situation) and _concerns(r, situation) and applies(r, situation)]
    wanted = [r for r in wanted if r.id in cause.remedies[:1] or not of_years_later(r, situation)]
    if natives.framework is None:
        return [r for r in wanted if not (r.environment and r.value is not None)]
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


REACH = 5
"""Remedies of a cause, from the first on, that would have ended it (judgement)."""
OF_CARD = 0.1
"""Of a card that nothing counted explains: from here on a setting may not act (judgement)."""


def acting_step(situation: Situation, cause: Cause) -> PlanStep | None:
    """How to see whether the first of the cause's remedies that the run has already acts; None where the run has none
    of them, or where the sums explain what was held. On the host, where little is counted, the cause's first alone."""
    if situation.now.enough is False or cause.memory != situation.place:
        return None
    card = situation.now.ledger.gpu_capacity
    dark = sum(one.unexplained for one in situation.predictor.measured.corrections if one.place == situation.place)
    if situation.place == "gpu" and (card is None or dark < OF_CARD * card):
        return None
    by_id = {remedy.id: remedy for remedy in situation.remedies}
    own = [by_id[name] for name in cause.remedies if name in by_id and by_id[name].value is not None][
        : REACH if situation.place == "gpu" else 1
    ]
    found = next(((one, key) for one in own if one.in_force and (key := _set_by(one, situation))), None)
    if found is None:
        return None
    remedy, key = found
    return PlanStep(
        id=f"acts-{remedy.id}",
        title=say("{key} is set already: see whether it acts", key=key),
        kind="manual",
        basis="documented",
        place=situation.place,
        why=" ".join(remedy.in_force.split()),
        costs=say("nothing"),
        sources=(remedy.source,) if remedy.source else (),
        group=f"acts-{remedy.id}",
        decides=situation.fullest,
    )


def _set_by(remedy: Remedy, situation: Situation) -> str:
    """The user's own setting that has the value of the remedy, as it is written; "" where none has."""
    wanted = remedy.value.to if remedy.value is not None else None
    natives = situation.now.built.natives
    if natives.framework is None:
        stated = stated_by_name(remedy, situation)
        return stated.key if stated is not None and wanted is not None and stated.value == wanted else ""
    own = [one for one in natives.carriers(remedy.knob or "") if one.source in ("script", "environment")]
    knob = situation.now.run.knobs.get(remedy.knob or "")
    if wanted is None or knob is None or knob.value != wanted or not own:
        return ""
    return next((one.key.lstrip("-$") for one in own if one.key == knob.key), own[0].key.lstrip("-$"))


_PROVES = ("cause", "victim", "hint")
_NAME = regex(r"(?:--)?[a-z][a-z0-9]*(?:[_-][a-z0-9]+)+")
_DOWN = regex(r"(?i)\b(?:lower|reduc|decreas|shorten)(?:e|ing|ed)?\b")
_UP = regex(r"(?i)\b(?:increas|rais|enlarg)(?:e|ing)?\b")
_CONDITION = regex(r"(?i)\s*(?:if|when|where|in case)\b")
"""What torch prints of fragmentation under every failure holds only on a condition."""
_Way = Literal["down", "up"]


def named_by_message(situation: Situation) -> dict[str, str]:
    """Remedy id → the setting's name as the message has it, in its order; {} where it names none."""
    told = dict(_told(situation))
    return {
        remedy.id: name
        for name, way in told.items()
        for remedy in situation.remedies
        if remedy.memory == situation.place and situation.cause not in remedy.never_for
        if (value := remedy.value) is not None
        if ("down" if value.floor is not None or value.tries else "up" if value.ceiling is not None else "") == way
        if name.lstrip("-").replace("-", "_") in _names(remedy, situation)
    }


def _told(situation: Situation) -> Iterator[tuple[str, _Way]]:
    """Names and whether they are to fall or to rise: the verb that stands before them in their sentence decides."""
    for entry in situation.predictor.crash.evidence:
        if entry.role not in _PROVES or entry.runs_ago:
            continue
        for sentence in BETWEEN_SENTENCES.split(entry.text):
            if _CONDITION.match(sentence):
                continue
            verbs = [(one.start(), "down") for one in _DOWN.finditer(sentence)]
            verbs += [(one.start(), "up") for one in _UP.finditer(sentence)]
            for name in _NAME.finditer(sentence):
                before = [way for start, way in sorted(verbs) if start < name.start()]
                if before:
                    yield name.group(), "down" if before[-1] == "down" else "up"


def _names(remedy: Remedy, situation: Situation) -> set[str]:
    """What libraries and dialects call it."""
    keys = {one.key.lstrip("-").replace("-", "_") for one in remedy.known_as}
    return keys | set(names_of(remedy.knob, situation) if remedy.knob is not None else ())


PASSES = ("actor_update", "log_prob")
"""Phases that dialects tell apart where a setting acts in one of them alone."""
WORTH_A_STEP = 0.02
"""Fraction of a card, or a pass: a change that saves less where it died, and is not enough, is not worth a step."""


def tried_in_vain(remedy: Remedy, situation: Situation) -> str:
    """What a matching case says of a remedy that did not help there; "" where none does."""
    matching = {case.id for case in situation.cases}
    failed = next((e for e in remedy.evidence if e.grade == "failed" and e.case in matching), None)
    if failed is None:
        return ""
    return say("tried without success in {case}: {because}", case=failed.case, because=" ".join(failed.because.split()))


def saves_elsewhere(proposal: Proposal, situation: Situation, own: bool, first: bool) -> str:
    """Why a remedy is no use for the phase that died; "" where it is, or where the ledger does not know the setting.

    `own`: the cause names it; `first`: before all others (an engine without room wants a larger share of the card).
    """
    inert = bool(proposal.facts) and all(dict(fact.moves) == {"all": "none"} for fact in proposal.facts)
    if inert and not situation.now.run.era_assumed:  # in another version it may hold what it does not in this
        return say("by itself it shrinks nothing that is held at once")
    if proposal.fits is None or proposal.documented:
        return ""
    leads = bool(proposal.remedy.leads_when) and all_hold(proposal.remedy.leads_when, situation.facts) is not None
    if _filled_all_the_same(proposal, situation):
        return say("a pass is filled up to its token budget, however long its rows are")
    uncounted = first and proposal.remedy.kind == "environment"
    if uncounted or (leads and all(native.text is None for native in proposal.present.values())):
        return ""  # the usual way out, and no sum knows what stands there now, or what it gives
    phase = situation.fullest
    if situation.phase != "unknown" and situation.phase in proposal.remedy.phases and phase != situation.phase:
        return ""  # the phase that died is none of those that are counted
    if not first and min(proposal.saves.values(), default=0) < 0 and max(proposal.saves.values(), default=0) <= 0:
        return say("here it would take more in {phase}, not less", phase=PHASE_TITLES[phase])
    if small := _too_small(proposal, situation):
        return small
    whole = situation.now.run.seen_whole
    guessed = situation.phase == "unknown" and (not whole or phase not in tight(situation, {}))
    if guessed and any(size > 0 for size in proposal.saves.values()):
        return ""  # neither log nor a whole launch shows where it died: nobody knows what would be elsewhere
    saved = proposal.saves.get(phase, 0)
    if _small(saved, proposal, situation):
        return say("it saves only {size} in {phase}", size=show_bytes(saved), phase=PHASE_TITLES[phase])
    if saved > 0:
        return ""
    if proposal.saves.get(phase, 0) < 0 and not first and phase in tight(situation, {}):
        return say("here it would take more in {phase}, not less", phase=PHASE_TITLES[phase])
    elsewhere = [PHASE_TITLES[p] for p, size in proposal.saves.items() if size > 0]
    if not elsewhere and own and min(proposal.other_saves.values(), default=0) >= 0:
        return ""  # what no sum knows; memory taken elsewhere for nothing is known
    if not elsewhere:
        return say("it saves nothing in {phase}", phase=PHASE_TITLES[phase])
    return say("it saves nothing in {phase}, only in {others}", phase=PHASE_TITLES[phase], others=listed(elsewhere))


def _filled_all_the_same(proposal: Proposal, situation: Situation) -> bool:
    """Whether it shortens rows of which a pass then takes more: under a token budget its peak stays where it was."""
    then = situation.predictor.predict(proposal.overrides).ledger
    both = [each.phase(situation.place, situation.fullest) for each in (situation.now.ledger, then)]
    ends = [sum(cell.by_data[1] for cell in one.cells) for one in both if one is not None]
    bounded = situation.now.run.is_on("actor.dynamic_batch") and proposal.remedy.relieves == "rows" and len(ends) > 1
    return bounded and ends[0] - ends[1] < WORTH_A_STEP * ends[0]


def acts_elsewhere(proposal: Proposal, situation: Situation) -> str:
    """Of a switch for a pass, that its dialect says it acts in other phases than the one that died; "" where it may."""
    value, phase = proposal.remedy.value, situation.phase
    if proposal.remedy.relieves != "pass" or value is None or value.to is None or phase not in PASSES:
        return ""
    moved = [fact.moves for fact in proposal.facts if fact.moves]
    if not moved or any({phase, "all"} & set(each) for each in moved):
        return ""
    return say("it saves nothing in {phase}", phase=PHASE_TITLES[phase])


def _too_small(proposal: Proposal, situation: Situation) -> str:
    """Why it is worth no step in any phase; "" where it is.

    What a pass holds may be more than is counted, by lengths that nobody knows; states are as large as they are.
    """
    most = max(proposal.saves, key=lambda phase: proposal.saves[phase], default=None)
    if most is None or (situation.now.enough and proposal.remedy.relieves != "states"):
        return ""
    saved = proposal.saves[most]
    if not _small(saved, proposal, situation):
        return ""
    return say("it saves only {size} in {phase}", size=show_bytes(saved), phase=PHASE_TITLES[most])


def _small(saved: int, proposal: Proposal, situation: Situation) -> bool:
    """Whether the saving is not worth a step on this card, and does not make a run fit that did not."""
    limit = situation.now.ledger.gpu_capacity or 0
    decides = proposal.fits and not situation.now.enough
    return situation.place == "gpu" and 0 < saved < limit * WORTH_A_STEP and not decides


def folklore(situation: Situation, cause: Cause) -> Iterable[NotProposed]:
    """Often told, does not help: said where the framework has the setting at all."""
    natives = situation.now.built.natives
    for remedy in situation.remedies:
        if remedy.id not in cause.folklore or remedy.knob is None:
            continue
        carrier = natives.carrier(remedy.knob)
        if carrier is not None and carrier.fact is not None and carrier.fact.false_friend:
            continue
        if carrier is not None or remedy.memory == "host":
            untouched = say("it does not touch what ran out in {phase}", phase=PHASE_TITLES[situation.phase])
            because = untouched if "{" in remedy.says else " ".join(remedy.says.split())
            if carrier is not None:
                because = say("{key}: {because}", key=carrier.key, because=because)
            yield NotProposed(remedy.id, remedy.title, because)


def false_friends(situation: Situation) -> Iterable[NotProposed]:
    """Settings whose names promise what they do not do in this framework."""
    for known in situation.now.built.natives.values.values():
        if situation.place == "gpu" and known.fact is not None and known.fact.false_friend and known.given:
            yield NotProposed(known.key, say("Lower {key}", key=known.key), known.fact.false_friend)
