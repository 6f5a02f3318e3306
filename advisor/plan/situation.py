"""Holds what a plan is made for: the predictor of the run, what was diagnosed, what is known of remedies and of what
held the card.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.diagnosis.advise import Faults
from advisor.diagnosis.allocation import OPEN, led
from advisor.diagnosis.computing import Vendor
from advisor.diagnosis.deciding import DUE, OpenPhase
from advisor.diagnosis.fact import Facts, FactValue, value_of
from advisor.diagnosis.parts import spoken_here
from advisor.knowledge.schema import Advisory, Case, Cause, Knowledge, Remedy, RemedyWords
from advisor.language import say, spoken
from advisor.memory.cells import Owner, Place
from advisor.memory.fit import died_in
from advisor.memory.ledger import implausible, refuted
from advisor.memory.predict import Overrides, Prediction, Predictor
from advisor.units import GIB, show_bytes
from advisor.words import PLATFORMS, Phase, Platform, filled

OF_OTHERS = ("card-shared", "leftover-processes", "judge-on-card")
"""Causes by which others hold what the run needs."""
TOTAL, LOGITS = "data.total_tokens", "logits-too-big"
AWAKE: tuple[Phase, ...] = ("rollout_init", "rollout_generate", "weight_sync", "validation", "unknown")
"""Phases in which an engine that sleeps holds its share; in "unknown" it may."""


NO_BATCH: tuple[Phase, ...] = ("model_load", "rollout_init", "weight_sync", "checkpoint")
"""Phases in which no batch is on the card."""
_FROZEN = (0.5, 2.0)
"""Bytes of a parameter that has neither gradient nor moments: in 4 bits, in 16."""


class Situation(Struct, frozen=True):
    """What the plan is made for."""

    predictor: Predictor
    knowledge: Knowledge
    facts: Facts
    cause: str
    phase: Phase
    place: Place
    """The place that ran out."""
    advisories: tuple[Advisory, ...] = ()
    """Advisories of this run that have safe versions."""
    suspected: tuple[Advisory, ...] = ()
    """Advisories of which neither version nor situation is known: worth a look where the cause may be a version."""
    cases: tuple[Case, ...] = ()
    """Documented cases that match, best first."""
    faults: Faults | None = None
    """Bad library versions that hold memory in some form of this run."""
    ran_with: Mapping[str, str] = {}
    """Library → version with which the same run fitted, as the user says."""
    vendor: Vendor = "nvidia"
    """Whose card it is: names of variables and tools are said in its words."""
    barred: frozenset[str] = frozenset()
    """Remedies that no file can carry here: shown, never switched on."""
    open_phase: OpenPhase | None = None
    """The two likeliest phases, where nothing shows in which it died."""

    def value(self, fact: str) -> FactValue | None:
        """The value of a fact; None where nobody knows it."""
        return value_of(self.facts, fact)

    @property
    def now(self) -> Prediction:
        """The run as it stands."""
        return self.predictor.predict()

    @property
    def led(self) -> tuple[str, ...]:
        """Remedies of what the failing line made, best first."""
        cause = next((one for one in self.knowledge.tree.causes if one.id == self.cause), None)
        return () if cause is None else led(cause, self.facts, self.knowledge)

    def reaches(self, remedy: Remedy) -> bool:
        """Whether the run came to what the remedy relieves: nothing was saved or evaluated where nothing was due, and
        no batch was on the card in a phase without one."""
        if self.phase in NO_BATCH and not remedy.phases and (remedy.relieves in ("pass", "rows") or remedy.by_trial):
            return False
        missed = {phase for name, phase in DUE.items() if (fact := self.facts.get(name)) and fact.value is False}
        return self.phase != "unknown" or not remedy.phases or not missed.issuperset(remedy.phases)

    def may_have_saved(self, remedy: Remedy) -> bool:
        """Whether the remedy is of a save, and one was due when the node's RAM ran out: the log of a kill ends before
        the save says a word."""
        due, of_save = self.value("save.due"), remedy.phases == ("checkpoint",)
        return self.place == "host" and of_save and due is True

    @property
    def fullest(self) -> Phase:
        """The phase that ran out, else the fullest by prediction."""
        died = self.predictor.died
        stepped = died is not None and died.by_log and died.stepped
        return died_in(self.now.ledger, self.place, self.phase, self.now.run.topology.colocated, stepped)

    @property
    def uncounted(self) -> bool:
        """The sums are not the run's: of nothing but defaults, of a part of it that no card could hold, or refuted."""
        return self.now.fit.of_defaults or implausible(self.now.run, self.now.ledger) or self.refuted

    @property
    def refuted(self) -> bool:
        """Steps were done that by the sums could not have been."""
        return self.place == "gpu" and refuted(self.now.ledger, self.value("first_step") is False)

    @property
    def in_vain(self) -> frozenset[str]:
        """Levers that the user says were tried and did not help."""
        tried = self.value("in_vain")
        return frozenset(str(tried).split()) if tried is not None else frozenset()

    def fills_other(self, saved_there: Mapping[Phase, int]) -> bool:
        """Whether a step moves memory into the other place, which by the post another run had filled."""
        other = self.value("other.full")
        filled = other in ("gpu", "host") and other != self.place
        return filled and min(saved_there.values(), default=0) < 0

    @property
    def fits_alone(self) -> str:
        """That the launch needs no change, where it fits without what others hold by the message; "" elsewhere."""
        rest = self.without("others") if self.cause in OF_OTHERS else None
        return (
            ""
            if rest is None
            else say(
                "Your launch is fine: it needs {size} of the {room} of a card, of which other processes hold {others}.",
                size=show_bytes(rest),
                room=show_bytes(self.now.ledger.gpu_capacity or 0),
                others=self.predictor.crash.evidence[0].fields.get("other_processes", ""),
            )
        )

    def without(self, owner: Owner) -> int | None:
        """Bytes of the phase that ran out without what one owner holds of it, where they fit; None elsewhere."""
        died, room = self.now.ledger.phase("gpu", self.fullest), self.now.ledger.gpu_capacity
        held = died.of(owner) if died is not None else 0
        rest = died.expected - held if died is not None else 0
        return rest if room is not None and held and rest <= room * (1 - self.predictor.margin) else None

    @property
    def rows_unknown(self) -> bool:
        """Nobody knows how long a row is: no setting limits it, or the one that does was not seen."""
        run, length = self.now.run, self.now.run.knobs.get(TOTAL)
        taken = not run.seen_whole and length is not None and length.source in ("default", "assumed")
        return run.unlimited_rows or taken

    @property
    def engine_asleep(self) -> bool:
        """The rollout engine has given its memory back where the run died, as far as its framework says and no process
        of its own is seen there."""
        run, seen = self.now.run, self.value("gpu.others_engine")
        if seen is True:
            return False
        return run.is_on("rollout.sleeps", run.mechanics.engine_sleeps) and self.phase not in AWAKE

    @property
    def engine_kept(self) -> bool:
        """The launch or the log says that the engine keeps its memory while the trainer works."""
        sleeps = self.now.run.knobs.get("rollout.sleeps")
        stated = sleeps is not None and sleeps.value is False and sleeps.source in ("script", "log")
        trains = self.phase not in AWAKE or self.value("gpu.others_engine") is True
        return stated and self.now.run.topology.colocated and trains

    @property
    def leak_assumed(self) -> bool:
        """The user says that a library here is one of the versions that leak."""
        return self.faults is not None and self.faults.assumed

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """All remedies, in the words for a run of this kind; kept with what was proposed of them (plan/propose.py)."""
        asked, known = ("remedies", spoken(), id(self.facts)), self.predictor.proposed
        if asked not in known:
            known[asked] = self.facts, self._worded()
        found: tuple[Remedy, ...] = known[asked][1]
        return found

    def _worded(self) -> tuple[Remedy, ...]:
        known = tuple(self._as_here(one) for one in self.knowledge.remedies if self._has_place_for(one))
        given = self.now.run.recipe.answers == "given" or self.value("rolls_out") is False
        known = tuple(in_words(one, one.of_given) if given and one.of_given else one for one in known)
        known = tuple(replace(one, says=spoken_here(one.says, self.facts)) for one in known)
        model = self.now.run.model if self.now.ledger.missing else None  # else each step says what it takes here
        parameters = model.parameters if model is not None else None
        frozen = self.value("lora") is True
        return tuple(replace(one, costs=costs_of(one, parameters, frozen)) if one.offloads else one for one in known)

    @property
    def platform(self) -> Platform:
        """What computes."""
        return next((one for one in PLATFORMS if one == self.value("platform")), "cuda")

    @property
    def processes(self) -> Literal["one", "several", "unknown"]:
        """How many processes train: what shares anything among them needs several."""
        alone, cards = self.value("one_process"), self.value("gpus")
        if "sharded" in self.facts:
            return "several"
        if alone is not None:
            return "one" if alone is True else "several"
        return "several" if isinstance(cards, int) and cards > 1 else "unknown"

    def needs_more(self, remedy: Remedy) -> bool:
        """Whether it shares something among processes, of which nobody knows whether there are several."""
        return remedy.several and self.processes == "unknown"

    def _has_place_for(self, remedy: Remedy) -> bool:
        usual: tuple[Platform, ...] = ("cuda",) if remedy.memory == "gpu" else tuple({*PLATFORMS} - {"mps"})
        usual = PLATFORMS if remedy.memory == "none" else usual
        return self.platform in (remedy.platforms or usual) and not (remedy.several and self.processes == "one")

    def _as_here(self, remedy: Remedy) -> Remedy:
        if remedy.alone is not None and self.processes == "one":
            return in_words(remedy, remedy.alone)
        if self.needs_more(remedy):
            return replace(remedy, title=say("With more than one GPU: {title}", title=remedy.title))
        shares_states = remedy.several and remedy.relieves == "states"
        if (
            shares_states
            and self.now.run.framework == "unknown"
            and not {"zero3", "trainer", "sharded"} & self.facts.keys()
        ):
            return replace(remedy, title=say("Where every card holds a whole copy: {title}", title=remedy.title))
        return remedy

    def without_latent_faults(self) -> Situation:
        """The same without faults that only a change would trigger; see `Predictor.without_latent_faults`."""
        return replace(self, predictor=self.predictor.without_latent_faults())

    def newly_triggered(self, overrides: Overrides) -> tuple[Advisory, ...]:
        """Faults of installed versions that these overrides trigger and the run as it stands does not have."""
        if self.faults is None or self.faults.knobs(self.predictor.built(fixed=True).run):
            return ()
        changed = self.predictor.built(overrides, fixed=True).run
        return tuple(concern.advisory for concern in self.faults.of(changed) if concern.advisory.safe)


def costs_of(remedy: Remedy, parameters: float | None, frozen: bool = False) -> str:
    """What it costs, in words: where the model is known, the bytes that go to host RAM. `frozen`: of the base no more
    than its weights."""
    if remedy.offloads is None:
        return remedy.costs
    offloads = _FROZEN if frozen else remedy.offloads
    least, most = (f"{each:g}" for each in offloads)
    offloaded = say("{least} to {most} bytes per parameter", least=least, most=most)
    if parameters is not None:
        sizes = {name: f"{each * parameters / GIB:.0f}" for name, each in zip("ab", offloads, strict=True)}
        offloaded = say("{a} to {b} GiB ({per})", **sizes, per=offloaded)
    return filled(remedy.costs, {"offloaded": offloaded})


def in_words(remedy: Remedy, words: RemedyWords) -> Remedy:
    """The remedy in other words, where they say something else."""
    return replace(
        remedy, title=words.title or remedy.title, costs=words.costs or remedy.costs, says=words.says or remedy.says
    )


NAMED = ("frame.gather", "frame.gathers_all", "frame.bucket", "frame.collects")
"""Frames that name what was being allocated: then nothing has to be guessed, whatever the phase."""
SHOWN = {"batch-too-big": "frame.attention", "logits-too-big": "frame.logits"}
"""Cause → frames that show it by themselves: then nothing has to be guessed either."""


def weights_beyond(situation: Situation, also_states: bool = False) -> bool:
    """Whether the weights alone take a whole card and more (`also_states`: or all that is trained, by the parameters):
    then no pass is small enough."""
    counted = also_states and situation.now.built.natives.framework is not None  # a script of one's own may share them
    names = ("weights.least_share", *(("states.least_share",) if counted else ()))
    known = (situation.facts.get(name) for name in names)
    return any(one is not None and isinstance(one.value, float) and one.value >= 1 for one in known)


def states_beyond(situation: Situation) -> bool:
    """Whether weights, gradients and optimizer alone are counted to take a whole card and more."""
    share = situation.value("ledger.states_share")
    named = situation.cause == "states-too-big" and situation.now.ledger.gpu_capacity is not None
    return named and isinstance(share, float) and share >= 1


def _by_parameters_alone(situation: Situation) -> bool:
    """Whether the states are a guess for a pass that died: too much for a card if all weights are trained, or if
    nothing shares them out."""
    if situation.phase not in ("unknown", "actor_update", "critic_update"):
        return False
    sure = ("weights.least_share", "states.least_share", "ledger.states_share")
    beyond = any(isinstance(share := situation.value(name), float) and share >= 1 for name in sure)
    return not beyond and not situation.facts.keys().isdisjoint(("states.if_full_share", "states.if_unshared_share"))


def holder_unknown(situation: Situation, cause: Cause) -> bool:
    """Whether nothing tells what held the card: the cause is a guess, and no sum over a whole launch speaks for it."""
    if situation.place != "gpu" or cause.memory != "gpu" or situation.led:
        return False
    shown = (*NAMED, SHOWN.get(cause.id, ""))
    if cause.id == LOGITS and situation.value("attribution.likely") == "logits":
        return False
    if situation.value("frame.cause") == cause.id or any(situation.value(name) is True for name in shown):
        return False
    if cause.id == "states-too-big" and _by_parameters_alone(situation):
        return True
    now = situation.now
    seen = now.built.natives.framework is not None and (now.enough is not False or now.run.seen_whole)
    if situation.phase == "unknown" and not seen:
        return cause.counted
    return cause.id in OPEN and now.enough is not False
