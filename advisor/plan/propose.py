"""Applies one remedy to this run: which native settings change, to which values, what that saves; or why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp

from msgspec import Struct
from msgspec.structs import replace

from advisor.diagnosis.card_facts import largest_card
from advisor.diagnosis.fact import all_hold, contradicted
from advisor.knowledge.schema import Case, NewValue, Remedy, SettingFact
from advisor.language import say, spoken
from advisor.memory.cells import Place
from advisor.memory.ledger import certainty, difference
from advisor.memory.predict import Overrides, Prediction
from advisor.plan.options import Option, moved_along, options
from advisor.plan.plan import NotProposed
from advisor.plan.situation import Situation, in_words
from advisor.run.build import BuiltRun
from advisor.run.natives import EnvironmentPrefix, Native, default_of
from advisor.run.run import Run
from advisor.words import Basis, Phase, Results

FEW_STEPS = 2
"""Halvings down to the least value of a pass that are taken at once where nothing can be computed (judgement)."""


class Proposal(Struct, frozen=True):
    """A remedy with its native changes (key → new text, None removes) on top of what was chosen before."""

    remedy: Remedy
    overrides: Mapping[str, str | None]
    present: Mapping[str, Native]
    """Key → the setting as it stands."""
    saves: Mapping[Phase, int]
    other_saves: Mapping[Phase, int]
    fits: bool | None
    basis: Basis
    spills: int = 0
    """Bytes by which it alone overfills the other place, where that had the room before."""
    documented: str = ""
    caveats: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    facts: tuple[SettingFact, ...] = ()
    """What the dialect says of the keys that change."""
    lifts_limit: bool = False
    """It saves nothing but moves the wall."""
    confirmed: bool = False
    """A documented case confirms this very value."""
    worked_here: str = ""
    """When this very value helped at this site, in words."""
    options: tuple[Option, ...] = ()
    """Every value it might take instead, the mildest first."""

    @property
    def unseen(self) -> bool:
        """Nobody saw any of the settings that it changes: what it would move is only a default, taken for it."""
        settings = [one for one in self.present.values() if not one.key.startswith(EnvironmentPrefix)]
        return bool(settings) and all(one.source == "assumed" for one in settings)

    @property
    def is_set(self) -> bool:
        """The user's own files or the log have one of the settings that it changes."""
        return any(one.given for one in self.present.values())

    @property
    def blind(self) -> bool:
        """Unseen, and it may be a step back: a switch is on once it is set, a number may have been lower already."""
        return self.unseen and not next(iter(self.present.values())).switch

    @property
    def claims(self) -> Mapping[str, str | None]:
        """What no other remedy may move: all but partners that are good by themselves (no product is kept by them)."""
        own, kept = {self.remedy.knob, *self.remedy.also}, any(one.kept for one in self.options)
        facts = {key: native.fact for key, native in self.present.items()}
        knobs = {key: {fact.knob, *fact.also} if fact is not None else own for key, fact in facts.items()}
        return {key: text for key, text in self.overrides.items() if kept or own & knobs[key]}

    @property
    def results(self) -> Results:
        """Changed where the remedy or one of the dialect's own facts says so."""
        changed = self.remedy.results == "changed" or any(fact.results == "changed" for fact in self.facts)
        return "changed" if changed else "unchanged"

    def relieves(self, phases: Sequence[Phase]) -> bool:
        """Whether it saves anything in one of the phases."""
        return any(self.saves.get(phase, 0) > 0 for phase in phases)


def propose(remedy: Remedy, situation: Situation, base: Overrides) -> Proposal | NotProposed | None:
    """The remedy applied on top of `base`; why not; or None where this framework simply has no such lever.

    A search for a set asks the same many times over: what was answered is kept with the predictions it rests on.
    """
    seen = situation.place, situation.phase, situation.cause, situation.barred, id(situation.facts)
    asked = remedy.id, remedy.title, *seen, spoken(), frozenset(base.items())
    known = situation.predictor.proposed
    if asked not in known:
        known[asked] = situation.facts, _proposed(remedy, situation, base)
    found: Proposal | NotProposed | None = known[asked][1]
    return found


def _proposed(remedy: Remedy, situation: Situation, base: Overrides) -> Proposal | NotProposed | None:
    if situation.cause in remedy.never_for or situation.predictor.crash.signature in remedy.never_for:
        return NotProposed(remedy.id, remedy.title, say("it would make this crash worse"))
    if all_hold(remedy.applies_when, situation.facts) is None and not _may_hold(remedy, situation):
        return None
    found = options(remedy, situation, base)
    if found is None:
        return None
    tried, broken = found
    if not tried:
        return NotProposed(remedy.id, remedy.title, broken) if broken else None
    made = taking(_best(tried, remedy, situation), remedy, situation, base)
    return replace(made, options=tuple(tried))


def beyond_a_card(saves: Mapping[Phase, int], situation: Situation) -> int:
    """Bytes by which what a change that frees the host takes of each card passes what a card has, or 0."""
    if situation.place != "host":
        return 0
    cards = situation.predictor.machine.gpus
    card = situation.now.ledger.gpu_capacity or largest_card(cards[0].name if cards else "")
    return max(0, -min(saves.values(), default=0) - card)


def taking(option: Option, remedy: Remedy, situation: Situation, base: Overrides) -> Proposal:
    """The proposal of a remedy with one of its values, on top of `base`."""
    before, after = situation.predictor.predict(base), situation.predictor.predict({**base, **option.overrides})
    other: Place = "host" if situation.place == "gpu" else "gpu"
    carriers = (before.built.natives.values.get(key) for key in option.overrides)
    along = {
        knob
        for carrier in carriers
        if carrier is not None
        for knob in moved_along(carrier, option.overrides, remedy, before.built.natives)
    }
    if remedy.with_optimizer is not None and "actor.optimizer_offload" in along:
        remedy = in_words(remedy, remedy.with_optimizer)
    elsewhere = {} if situation.uncounted else difference(before.ledger, after.ledger, other)
    return Proposal(
        remedy,
        option.overrides,
        {key: _present(key, option, before.built) for key in option.overrides},
        {} if situation.uncounted else difference(before.ledger, after.ledger, situation.place),
        elsewhere,
        option.fits,
        _basis(option, before, situation),
        0 if situation.uncounted else max(_spilled(before, after, other), beyond_a_card(elsewhere, situation)),
        option.documented.text if option.documented is not None else "",
        (*remedy.caveats, *option.caveats, *(fact.caveat for fact in option.facts if fact.caveat)),
        tuple(c for c in situation.cases if c.id in {e.case for e in remedy.evidence if e.grade != "failed"}),
        option.facts,
        (after.ledger.host_limit or 0) > (before.ledger.host_limit or 0),
        option.documented is not None and option.documented.confirmed,
        option.documented.worked_here if option.documented is not None else "",
    )


def _spilled(before: Prediction, after: Prediction, place: Place) -> int:
    """Bytes by which a place is overfilled after a change, in a phase that had the room before it."""
    full = before.unfit(place) or []
    over = (one for one in after.fit.findings if one.place == place and one.reason == "over")
    return max((one.short for one in over if one.phase not in full), default=0)


def _present(key: str, option: Option, built: BuiltRun) -> Native:
    """The setting that a change moves, as it stands."""
    known = built.natives.values.get(key) or Native(key, None, None, "default")
    if known.text is None and option.present is not None and option.present.key == key:
        known = option.present
    along = option.present is None or option.present.key != key
    known = _at_default(known, built.run) if along and not known.given and not built.run.seen_whole else known
    return present(known, built.run)


def _at_default(known: Native, run: Run) -> Native:
    """A number that moves along with another, at the framework's default, where no config that is missing sets it."""
    own = run.recognised_from != "log"  # a program that only the log connects with a framework has options of its own
    default = default_of(known.fact, run.era) if known.fact is not None and own and not run.missing_files else None
    number = isinstance(default, (int, float)) and not isinstance(default, bool)
    return replace(known, text=str(default)) if number and known.text is None else known


def present(known: Native, run: Run) -> Native:
    """The setting as it stands; a default is "assumed" where the launch was not read whole."""
    return known if known.given or run.seen_whole else replace(known, source="assumed")


def _may_hold(remedy: Remedy, situation: Situation) -> bool:
    """Whether nothing speaks against a remedy whose setting stands in a launch of which only a part was seen."""
    carrier = situation.now.built.natives.carrier(remedy.knob) if remedy.knob is not None else None
    stated = carrier is not None and carrier.given and not situation.now.run.seen_whole
    return stated and not any(contradicted(rule, situation.facts) for rule in remedy.applies_when)


def _best(tried: Sequence[Option], remedy: Remedy, situation: Situation) -> Option:
    """The value a matching case ran with, where it fits or was confirmed; else the mildest that fits.

    Where nothing can be computed: the mildest by what the message says was missing, or a share that is known to work.
    """
    uncounted = all(option.fits is None for option in tried)
    if uncounted and not any(option.documented for option in tried) and remedy.value is not None:
        return _uncounted(tried, remedy.value, situation)
    kept = [option for option in tried if option.kept and option.same_results]
    if kept:  # results stay whatever the value: the mildest that fits, else as far as it goes
        return next((option for option in kept if option.fits), kept[-1])
    reported = sorted(
        (o for o in tried if o.documented is not None), key=lambda o: o.documented.rank if o.documented else 0
    )
    for option in reported:
        if option.fits or (option.documented is not None and option.documented.confirmed) or option.fits is None:
            return option
    fitting = next((option for option in tried if option.fits), None)
    if fitting is not None or reported:
        return fitting or reported[0]
    quiet = [option for option in tried if option.same_results and option.fits is not None]

    def left(option: Option) -> int:
        found = option.outcome.ledger.phase(situation.place, situation.fullest)
        return found.expected if found is not None else 0

    # Not enough alone: what leaves the results alone goes as far as it helps, before anything else gives them up.
    return min(quiet, key=left) if quiet else tried[0]


def _uncounted(tried: Sequence[Option], rule: NewValue, situation: Situation) -> Option:
    """The first value with which the request that failed would have found room, or the first that is `low`. Where no
    request was seen, the least if it is near: a second crash costs more than slower passes."""
    low = rule.low
    if low is not None:
        ordinary = [o for o in tried if isinstance(o.value, (int, float)) and o.value <= low]
        return next((o for o in ordinary if o is not tried[0]), tried[0])  # the mildest moves too little
    asked, free = (situation.facts.get(name) for name in ("gpu.tried_bytes", "gpu.free_bytes"))
    if not rule.request_follows or asked is None or free is None:
        return tried[-1] if rule.request_follows and len(tried) <= FEW_STEPS else tried[0]
    sizes = [float(each.value) for each in (asked, free) if isinstance(each.value, (int, float))]
    return next((o for o in tried if sizes[0] * exp(-o.distance) <= sizes[1]), tried[-1])


def _basis(option: Option, before: Prediction, situation: Situation) -> Basis:
    if option.documented is not None and not option.fits:
        return "documented"
    if option.outcome.ledger.missing or (option.present is not None and option.present.source == "assumed"):
        return "estimated"
    return certainty(option.outcome.ledger, situation.place, situation.fullest, before.ledger)
