"""Says why a remedy is not proposed: tried in vain, saving nothing where the run died, or often told and no help."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.diagnosis.fact import all_hold
from advisor.knowledge.schema import Cause, Remedy
from advisor.language import listed, say
from advisor.plan.plan import NotProposed
from advisor.plan.propose import Proposal
from advisor.plan.select import tight
from advisor.plan.situation import Situation
from advisor.units import show_bytes
from advisor.words import PHASE_TITLES

PASSES = ("actor_update", "log_prob")
"""Phases that dialects tell apart where a setting acts in one of them alone."""
WORTH_A_STEP = 0.02
"""Fraction of a card: a change that saves less where it died, and is not enough, is not worth a step."""


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
    if leads and all(native.text is None for native in proposal.present.values()):
        return ""  # the usual way out, and no sum knows what stands there now
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
            because = _no_help(remedy, situation)
            if carrier is not None:
                because = say("{key}: {because}", key=carrier.key, because=because)
            yield NotProposed(remedy.id, remedy.title, because)


def _no_help(remedy: Remedy, situation: Situation) -> str:
    says = " ".join(remedy.says.split())
    if "{" not in says:
        return says
    return say("it does not touch what ran out in {phase}", phase=PHASE_TITLES[situation.phase])


def false_friends(situation: Situation) -> Iterable[NotProposed]:
    """Settings whose names promise what they do not do in this framework."""
    for known in situation.now.built.natives.values.values():
        if situation.place == "gpu" and known.fact is not None and known.fact.false_friend and known.given:
            yield NotProposed(known.key, say("Lower {key}", key=known.key), known.fact.false_friend)
