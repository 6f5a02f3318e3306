"""Orders the steps of a plan by one rank.

A step stands the earlier,

1. the more it is for this run: what is behind (`Behind`) is told by its title alone, under "Further";
2. where its kind of lever was not told yet;
3. what costs other results, or machines, behind all that does not;
4. where it removes what was found: what the failing line made, or what helped in a case that died alike;
5. the less it costs: time, another version, RAM or a number of the user's own (`Toll`);
6. the nearer it acts to the cause (`Rank`): on what the cause says holds the memory, by a setting that stands in the
   launch; the same, not in the launch; on other memory there, by a computed worth;
7. where the count says that it is enough, then by its saving and its place in the cause's own list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from advisor.diagnosis.fact import all_hold
from advisor.knowledge.schema import Cause, Remedy
from advisor.plan.applicable import in_a_later_version, needs_engine
from advisor.plan.as_in_case import HELPED
from advisor.plan.options import unseen_number
from advisor.plan.plan import PlanStep
from advisor.plan.ran_with import turned_back
from advisor.plan.select import acts_on, gives_hardly, lever_of
from advisor.plan.situation import Situation, holder_unknown, states_beyond, weights_beyond
from advisor.run.natives import SAMPLES
from advisor.run.values import parse_value
from advisor.words import Phase

LOOK, BACK, ON, TRY, PERHAPS = range(5)
"""Stages: what is looked at or gone back to before a setting is changed; where no sum decides, what turns back the
setting with which it began; what is switched on; the rest; what is right only if a witness is found."""


class Behind(IntEnum):
    """How far behind: not at all; the key, the version that has it, or what it moves was not seen; it gives hardly any
    of what is missing; it acts where the run did not die, or on what the cause does not name, or fills the other place;
    nothing of this crash points at it, or the user tried its like in vain."""

    NOT, UNSURE, LITTLE, ELSEWHERE, UNPROVEN = range(5)


class Toll(IntEnum):
    """What a step costs: time at most; another version; RAM, or a number of the user's own that results hang on; other
    results, and what is as dear; machines."""

    NOTHING, VERSION, OF_ITS_OWN, RESULTS, MONEY = range(5)


class Rank(IntEnum):
    """How near a step acts to the cause."""

    SET, UNSET, BESIDE = range(3)


LITTLE = 0.2
"""Part of the largest saving below which a step that is not enough alone stands behind the others (judgement)."""
HARDLY = 0.05
"""Of what is missing: a change that gives less is no way out (judgement)."""
RARE: frozenset[Phase] = frozenset({"data", "model_load", "checkpoint", "validation"})
"""Phases that most crashes of an unknown phase did not die in."""
MACHINE_BY = 3
"""More RAM helps whatever filled the host: what is tried at once comes before it, and no more than that (judgement)."""
MACHINES = 2
"""A larger limit, and more RAM or fewer processes on a node, stand beside each other."""
OWN = 2
"""Remedies of a cause that no sum counts, before what is usual (judgement)."""
MOST_DOCUMENTED = 2
"""Remedies of a case that come before the others: what else helps keeps its place."""
TITLE = "\0"
"""Stands for a title among what is not told twice."""
LONG_ROW = "long-sequence"
"""The cause that a cap on rows of text removes."""


class Precedence(NamedTuple):
    """Why a step stands where it stands: the smaller the earlier, compared from the first field on."""

    stage: int
    behind: int
    dear: bool
    """It costs other results, or machines."""
    finding: int
    """Its place among what removes the failing line, the facts or the cause found, or helped in a case that died alike;
    else the largest."""
    price: int
    rank: int
    short: bool
    """By the count it leaves the shortage, or other results: what closes it for nothing but time or RAM goes first."""
    general: bool
    """Not for this phase alone."""
    saving: int
    """Bytes, negative; 0 where the sums do not show what is missing, and so cannot say what is worth most."""
    reports: int
    """On a host of which nobody knows what filled it: less the more documented reports it helped."""
    order: int
    """Its place in the cause's own list, then among the candidates."""


class Grounds(Struct, frozen=True):
    """What decides the places: the run, what was found, and what is known of the steps that no remedy tells."""

    situation: Situation
    cause: Cause
    remedies: Mapping[str, Remedy]
    ahead: Collection[str]
    """Steps that are looked at before anything is changed."""
    doubted: Collection[str]
    """Versions at which nothing of this crash points."""
    unseen: Collection[str]
    """Steps told on a condition that nobody saw: that the launch has what they undo, or a library its bad version."""
    own: Mapping[str, int]
    """Remedy → its place in the cause's list; "version": that of the first one of its kind."""
    found: Mapping[str, int]
    """Step → its place among those that remove what was found."""
    little: Collection[str]
    """Shares of the card that are low already, or fall by too little."""
    usual: Collection[str]
    """Remedies that most runs of this kind are helped by: what they cost does not hold them back."""
    helped: Counter[str]
    largest: int
    """The most that a step which leaves the results alone saves where it counts."""
    missing: int
    dark: int
    """Bytes of a card that nothing explains, whichever phase it was."""
    held: tuple[str, ...]
    """What the cause says held the card; a pass that only scores keeps neither gradients nor moments."""
    back: str
    """The step that turns back the setting with which it began by the report; "": none is known."""
    open: bool
    """Nothing tells what held the card."""
    beyond: bool
    """The weights alone are more than a card: what a pass keeps decides nothing."""
    phase_told: bool
    """The log or the sums tell in which phase it died: what a step saves elsewhere does not count."""

    def place(self, step: PlanStep, order: int) -> Precedence:
        """The key of a step that is the `order`-th candidate."""
        remedy, phase = self.remedies.get(step.id), self.situation.phase
        stage = self._stage(step)
        rank, finding = self._rank(step, remedy), self.found.get(step.id, len(self.found))
        if stage != TRY:
            beside = stage == ON and rank == Rank.BESIDE and step.id not in self.found
            return Precedence(stage, Behind.NOT, beside, 0, Toll.NOTHING, Rank.SET, False, False, 0, 0, order)
        price = self._price(step, remedy)
        return Precedence(
            stage,
            self._behind(step, remedy, rank),
            price >= Toll.RESULTS,
            finding,
            price,
            rank,
            not (self._enough(step) and step.results == "unchanged" and step.tier != "hardware"),
            remedy is None or remedy.phases != (phase,),
            -self.saving(step) if self.missing else 0,
            -self.helped[step.id],
            self.own.get("version" if step.kind == "version" else step.id, len(self.own) + order),
        )

    @property
    def of_states(self) -> bool:
        """By the count it is the states, of a card of any size: what a pass gives is held against what they give."""
        return self.held[:1] == ("states",) and self.largest > 0 and not self.situation.uncounted

    def lever(self, step: PlanStep) -> str:
        """What kind of step it is; one that no remedy tells is a kind of its own."""
        remedy = self.remedies.get(step.id)
        return lever_of(remedy) if remedy is not None else step.group or step.id

    def holder(self, step: PlanStep) -> str:
        """What it relieves, where nothing tells what held the card; "" elsewhere. Recomputing stands by itself: it
        frees most of a pass and leaves batch, length and results as they are."""
        remedy = self.remedies.get(step.id)
        if not self.open or remedy is None:
            return ""
        itself = remedy.lever == "recompute" or (remedy.lever == "samples" and self.of_rollouts(remedy))
        return remedy.lever if itself else remedy.relieves

    def of_rollouts(self, remedy: Remedy) -> bool:
        """Whether it cuts what code of the user's own generates: rollouts and new tokens are as much its levers there
        as the batch."""
        generates = self.situation.value("rolls_out") is True and self.situation.now.run.framework == "unknown"
        return generates and remedy.knob in (SAMPLES, "data.response_tokens")

    def keys(self, step: PlanStep) -> dict[str, str | None]:
        """What is not told twice: the keys it moves, by name or in words, with what they become, and the title of a way
        that has several."""
        remedy = self.remedies.get(step.id)
        if step.kind == "version" or step.only_if:
            return {}
        found = {change.key.lstrip("-"): change.new for change in step.changes}
        if remedy is not None and not found and unseen_number(remedy, self.situation):
            carrier = self.situation.now.built.natives.carrier(remedy.knob or "")
            found = {carrier.key.lstrip("-"): None} if carrier is not None else found
        return found | {remedy.title: TITLE} if remedy is not None else found

    def saving(self, step: PlanStep) -> int:
        """Bytes that it saves where it counts."""
        return decisive(step) if self.phase_told else most_saved(step)

    def _stage(self, step: PlanStep) -> int:
        if step.id in self.ahead:
            return LOOK
        first = step.id in self.cause.remedies[:1] and step.tier in ("free", "version")
        if first and step.kind in ("manual", "machine") and not step.changes:
            return LOOK
        if step.id == self.back and self.situation.now.enough is None:
            return BACK
        return ON if step.selected else PERHAPS if step.only_if else TRY

    def _behind(self, step: PlanStep, remedy: Remedy | None, rank: Rank) -> Behind:
        found = step.id in self.found
        doubted = step.id in self.doubted and not step.documented
        if doubted or (remedy is not None and (remedy.last_resort or remedy.lever == "trial")):
            return Behind.UNPROVEN
        if remedy is not None and lever_of(remedy) in self.situation.in_vain:
            return Behind.UNPROVEN
        if self.situation.fills_other(step.host_saves):
            return Behind.UNPROVEN
        asleep = self.situation.engine_asleep and remedy is not None and remedy.relieves == "engine"
        idle = self.situation.phase != "unknown" and bool(step.saves) and step.saves.get(step.decides, 0) <= 0
        kept = self.beyond and _is_of_pass(remedy)
        kept = kept or (remedy is not None and remedy.relieves != "other" and bool(self.situation.fits_alone))
        if step.spills or kept or (asleep and self.saving(step) <= 0) or (idle and not found):
            return Behind.ELSEWHERE
        beside = rank == Rank.BESIDE and not found
        given_up = beside and step.results == "changed"  # for what the cause does not name
        if found and 0 < most_saved(step) < HARDLY * self.missing and not self._enough(step):
            return Behind.LITTLE
        if found or step.kind in ("machine", "job") or (self._enough(step) and not given_up):
            return Behind.NOT
        least = max(LITTLE * self.largest, HARDLY * (self.missing or self.dark))
        if beside and (given_up or not 0 < least <= self.saving(step)):
            return Behind.ELSEWHERE
        if (
            remedy is not None
            and gives_hardly(remedy, self.situation)
            and self.saving(step) < HARDLY * self.missing + 1
        ):
            return Behind.LITTLE
        if self.of_states and step.kind == "version" and not step.documented:
            return Behind.LITTLE  # what the count shows needs no fault of a library
        short = self.situation.value("pass.small") is True and not self.missing
        counted = (self.missing > 0 or short or self.of_states) and not self.situation.rows_unknown
        sure = counted or not _is_of_pass(remedy)  # rows may be any length
        if short and remedy is not None and remedy.relieves == "rows":
            return Behind.LITTLE
        if sure and 0 < self.saving(step) < least:
            return Behind.LITTLE
        return Behind.UNSURE if self._unsure(step, remedy) else Behind.NOT

    def _unsure(self, step: PlanStep, remedy: Remedy | None) -> bool:
        if remedy is None:
            return step.id in self.unseen
        natives = self.situation.now.built.natives  # most that roll out offload, and nothing holds more of a node
        usual = remedy.lever == "offload-off" and natives.framework is not None and natives.rolls_out
        if step.id in self.unseen and not usual:
            return True
        left = self.situation.predictor.crash.phase_among
        rare = self.situation.phase == "unknown" and bool(remedy.phases) and RARE.issuperset(remedy.phases)
        open_ = self.situation.open_phase
        guessed = {open_.taken} if open_ is not None and open_.guessed else set()
        rare = rare and not (RARE.issuperset(left or ("unknown",)) or guessed & {*remedy.phases})
        rare = rare and not stated(step) and remedy.id not in self.cause.remedies[:OWN]
        newer = in_a_later_version(remedy, self.situation)
        perhaps = needs_engine(remedy, self.situation) == "unseen" or self.situation.needs_more(remedy)
        return rare or newer or perhaps

    def _rank(self, step: PlanStep, remedy: Remedy | None) -> Rank:
        kept = remedy is not None and remedy.relieves == "engine" and self.situation.engine_kept
        near = kept or self.open or remedy is None or acts_on(remedy, self.held, self.cause, self.situation)
        if not near:
            return Rank.BESIDE
        return Rank.SET if stated(step) else Rank.UNSET

    def _price(self, step: PlanStep, remedy: Remedy | None) -> Toll:
        """What it costs; as much as results what is dear beside its like, gives little, or fills an unknown card."""
        on_card = step.host_saves if step.place == "host" else step.saves
        fills = self.situation.now.ledger.gpu_capacity is None and min(on_card.values(), default=0) < 0
        if step.tier == "hardware":
            return Toll.MONEY
        if step.kind == "version" and not self.cause.counted:
            return Toll.NOTHING  # what no setting explains, a version may
        heavy = remedy is not None and remedy.heavy and step.id not in self.usual
        if fills or heavy or step.id in {*self.little, *self.doubted}:
            return Toll.RESULTS
        if step.results == "changed" and not self._mild(step):
            capped = self.lever(step) in ("length", "pictures")  # everybody sets these
            number = capped or (lowers(step) and stated(step))
            return Toll.OF_ITS_OWN if number and not self.missing else Toll.RESULTS
        return Toll.VERSION if step.tier == "version" else Toll.OF_ITS_OWN if step.tier == "host_ram" else Toll.NOTHING

    def _mild(self, step: PlanStep) -> bool:
        """Whether the results that it changes hold nobody back: more passes make them up, the cause itself is that they
        were too much, or what code of the user's own generates is as long as they like."""
        remedy, rolls = self.remedies.get(step.id), self.situation.value("rolls_out")
        of_own = rolls is True and self.situation.now.run.framework == "unknown"
        own = of_own and self.lever(step) == "length" and stated(step)
        own = own or (remedy is not None and self.of_rollouts(remedy))
        return own or self.lever(step) == "batch" or step.id in self.cause.leads

    def _enough(self, step: PlanStep) -> bool:
        return self.missing > 0 and self.saving(step) >= self.missing and not step.spills


def grounds(
    steps: Sequence[PlanStep],
    situation: Situation,
    cause: Cause,
    leading: Sequence[str] = (),
    ahead: Collection[str] = (),
    doubted: Collection[str] = (),
    unseen: Collection[str] = (),
    helped: Counter[str] | None = None,
) -> Grounds:
    """What decides the places of these candidates. `leading`: steps that an agreeing case or version puts in front."""
    remedies = {remedy.id: remedy for remedy in situation.remedies}
    here = {step.id for step in steps}
    usual = [
        one for one in remedies.values() if one.leads_when and all_hold(one.leads_when, situation.facts) is not None
    ]
    scoring = situation.phase == "log_prob" and situation.place == "gpu" and not _missing(situation)
    scoring = scoring and cause.holds[:1] not in (("states",), ("engine",))
    open_ = holder_unknown(situation, cause) and not scoring
    guess = cause.holds if cause.id == "states-too-big" else ()
    held = ("pass", "rows") if scoring else guess if open_ else cause.holds
    missing = _missing(situation)
    phase_told = situation.phase != "unknown" or missing > 0
    worth = decisive if phase_told else most_saved
    largest = max((worth(step) for step in steps if step.results == "unchanged"), default=0)
    little = {step.id for step in steps if not step.documented and gives_little(step, remedies.get(step.id), situation)}
    of_text = cause.id == LONG_ROW and situation.value("images") is not True
    shown = [one.id for one in usual if one.relieves != "rows" or of_text or _endless(one, situation)]
    anywhere = not (held and phase_told)
    near = {one.id for one in usual if anywhere or one.id in cause.leads or acts_on(one, held, cause, situation)}
    shown = [name for name in shown if name in near and name not in little]
    own = {name: place for place, name in enumerate(cause.remedies)}
    kernel = {name for name in shown if remedies[name].lever == "kernel"}  # it computes the same in less room
    shown.sort(key=lambda name: (name not in kernel, own.get(name, len(own))))
    if not cause.counted and cause.memory == "gpu":  # what no sum counts, its own list knows best
        shown = [name for name in shown if name in cause.remedies]
    alike = [name for name in documented_alike(situation)[1] if name not in little]
    back = turned_back(steps, situation)
    beside = () if cause.counted else cause.remedies[:OWN]
    names = dict.fromkeys((back, *situation.led, *leading, *beside, *shown, *alike))
    versions = (place for name, place in own.items() if name in remedies and remedies[name].kind == "version")
    own["version"] = next(versions, len(own))
    return Grounds(
        situation=situation,
        cause=cause,
        remedies=remedies,
        ahead=ahead,
        doubted=doubted,
        unseen=unseen,
        own=own,
        found={name: place for place, name in enumerate(name for name in names if name in here)},
        little=little,
        usual={one.id for one in usual},
        helped=helped or Counter(),
        largest=largest,
        missing=missing,
        dark=sum(one.unexplained for one in situation.predictor.measured.corrections if one.place == situation.place),
        back=back,
        held=held,
        open=open_,
        beyond=states_beyond(situation) or (not missing and weights_beyond(situation, also_states=True)),
        phase_told=phase_told,
    )


def _missing(situation: Situation) -> int:
    """Bytes that the place which ran out lacks by the count; 0 where that does not hold here."""
    short = (one.short for one in situation.now.fit.findings if one.place == situation.place)
    return max(short, default=0) if situation.now.enough is False and not situation.uncounted else 0


def arranged(steps: Sequence[PlanStep], why: Grounds) -> list[PlanStep]:
    """The steps in order, none that moves a key which one before it moves; those far behind are marked so.

    What is looked at and what is switched on stands first. Of the rest one is picked after the other: nobody reads far,
    so a kind of lever that stands there already waits for the others (where nothing tells what held the card, so does
    a holder, among what costs no results), and between equals the key decides.
    """
    placed = sorted(((why.place(step, order), step) for order, step in enumerate(steps)), key=lambda each: each[0])
    leaves_first = {one.id for one in why.remedies.values() if one.lever == "offload" and one.id in why.usual}
    own_batch = any(why.lever(step) == "batch" and stated(step) for step in steps)
    kept: list[PlanStep] = []
    tried: list[PlanStep] = []
    taken: dict[str, str | None] = {}
    levers: Counter[str] = Counter()
    waiting = {why.holder(step) for step in steps}.difference(why.held) if why.open and why.held else ()
    holders = Counter[str](dict.fromkeys(waiting, 1))  # what the guess names comes first

    def next_of(each: tuple[Precedence, PlanStep]) -> tuple[object, ...]:
        place, step = each
        if place.stage != TRY:
            return (place.stage, place.dear, place.order)
        due = why.situation.place == "host" and MACHINE_BY <= len(tried) + 1 < MACHINE_BY + MACHINES
        due = due and step.kind in ("machine", "job")
        lever, holder = levers[why.lever(step)], holders[why.holder(step)]
        lever = 0 if step.id in leaves_first else lever
        unset = own_batch and why.lever(step) == "batch" and not stated(step)  # the user's own number first
        return (place.stage, not due, place.behind, lever, place.dear, holder, unset, place)

    while placed:
        best = min(placed, key=next_of)
        placed.remove(best)
        place, step = best
        keys = why.keys(step)
        if clash(keys, taken) and not step.selected:
            continue
        kept.append(replace(step, further=True) if place.behind >= Behind.LITTLE else step)
        tried += [step] if place.stage == TRY else []
        taken |= keys
        levers[why.lever(step)] += 1
        holders[why.holder(step)] += step.id not in why.found  # what was found stands beside a guess
    return kept


def clash(moved: Mapping[str, str | None], taken: Mapping[str, str | None]) -> bool:
    """Whether it gives a key another value than what was taken before, or moves nothing else."""
    keys = [key for key, new in moved.items() if new != TITLE]
    told = any(new == TITLE and key in taken for key, new in moved.items())
    return told or any(taken.get(key, moved[key]) != moved[key] for key in keys) or (bool(keys) and {*keys} <= {*taken})


def _is_of_pass(remedy: Remedy | None) -> bool:
    """Whether it makes a pass, or its rows, smaller."""
    return remedy is not None and remedy.relieves in ("pass", "rows")


def _endless(remedy: Remedy, situation: Situation) -> bool:
    """Whether rows or pictures have no longest size here, and the remedy gives them one: before that no sum counts."""
    run = situation.now.run
    return run.unlimited_pictures and not run.unlimited_rows if remedy.lever == "pictures" else run.unlimited_rows


def documented_alike(situation: Situation) -> tuple[str, tuple[str, ...]]:
    """The best case that died in this phase and in which something helped, and its remedies that anybody can try: what
    somebody bought, and last resorts, are no first try. ("", ()) where there is none.
    """
    helped = (one for one in situation.cases if one.grade in HELPED and one.situation.get("phase") == situation.phase)
    case = next(helped, None)
    remedies = {remedy.id: remedy for remedy in situation.remedies}
    named = [remedies[name] for name in case.remedies if name in remedies] if case is not None else []
    cheap = [one.id for one in named if one.tier != "hardware" and not (one.heavy or one.last_resort)]
    return (case.id, tuple(cheap[:MOST_DOCUMENTED])) if case is not None else ("", ())


def decisive(step: PlanStep) -> int:
    """Bytes that a step saves where it counts."""
    return step.saves.get(step.headline, 0) if step.headline is not None else 0


def most_saved(step: PlanStep) -> int:
    """Bytes that it saves in the phase that gains most."""
    return max(step.saves.values(), default=0)


def stated(step: PlanStep) -> bool:
    """The user's own files or the log say what the setting is now."""
    return any(one.old is not None and one.old_source not in (None, "default", "assumed") for one in step.changes)


def lowers(step: PlanStep) -> bool:
    """Whether it makes a number smaller."""
    pairs = ([parse_value(text or "", "float") for text in (one.old, one.new)] for one in step.changes)
    return any(isinstance(old, float) and isinstance(new, float) and new < old for old, new in pairs)


def gives_little(step: PlanStep, remedy: Remedy | None, situation: Situation) -> bool:
    """A share of the card that the launch has `low` already, or that falls by less than the message says is missing."""
    low = remedy.value.low if remedy is not None and remedy.value is not None else None
    change = step.changes[0] if step.changes else None
    old, new = (parse_value(text or "", "float") for text in (change.old, change.new)) if change else (None, None)
    if low is None or not isinstance(old, float) or not isinstance(new, float):
        return False
    missing = situation.value("gpu.missing_share")
    kept = situation.engine_kept and situation.cause == "engine-beside-trainer"  # however low, it is what lies there
    return (old <= low and stated(step) and not kept) or (isinstance(missing, float) and old - new < missing)
