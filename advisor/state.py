"""Computes what a session knows from what was read and answered: run, ledger, diagnosis, plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.crash.observations import fitted_in, observations_in
from advisor.crash.statements import statements_in
from advisor.diagnosis.advise import Faults, suspects
from advisor.diagnosis.answered import (
    died_all_the_same,
    end_settled,
    in_phase_of,
    knobs_of,
    where_due,
    with_answered_phase,
)
from advisor.diagnosis.computing import dialect_of, platform_of, speak_of_cards, tree_of, vendor_of
from advisor.diagnosis.deciding import DecidingQuestion, open_phase, telling_questions
from advisor.diagnosis.diagnose import Diagnosed, diagnose
from advisor.diagnosis.diagnosis import Diagnosis, QuestionStep
from advisor.diagnosis.facts import DiagnosisInputs
from advisor.diagnosis.from_record import peaks_in
from advisor.diagnosis.model_facts import adapters_shown
from advisor.diagnosis.open_questions import (
    SHARDING,
    answered_sharding,
    answered_was,
    tree_answers,
    with_answered_framework,
    with_answered_version,
    with_sharding,
    with_version,
    with_was,
)
from advisor.diagnosis.parts import OF_ROLLOUTS_ALONE
from advisor.diagnosis.sharing_facts import states_told
from advisor.diagnosis.state_facts import engine_weights, least_weights
from advisor.hostile import clean_line
from advisor.knowledge import Knowledge
from advisor.language import listed, say, sentences
from advisor.machine.describe import named_versions, with_room
from advisor.machine.inventory import Machine
from advisor.machine.libraries import normalised
from advisor.memory.attribution import attribute, told_by_size
from advisor.memory.batches import NO_EVALUATION
from advisor.memory.cells import Ledger, Match, Place
from advisor.memory.fit import PLACES, Died, Fit
from advisor.memory.ledger import refuted
from advisor.memory.predict import Predictor
from advisor.memory.seen_sums import assumptions, fitting, otherwise, own_engine
from advisor.plan.by_hand import elsewhere
from advisor.plan.patch import Making, placed
from advisor.plan.plan import Plan
from advisor.plan.situation import Situation
from advisor.plan.solve import finish, make_plan
from advisor.request import (
    SessionRequest,
    earlier_run,
    launch_of,
    limit_before,
    notes_on,
    prose_of,
)
from advisor.run.arrival import arriving
from advisor.run.bound import keys_of_knobs
from advisor.run.build import RunInputs
from advisor.run.dialect import Recognised
from advisor.run.implied import shown_by_frames
from advisor.run.natives import native
from advisor.run.run import Run
from advisor.run.seen_launch import no_place
from advisor.run.unread import accelerates_own, printed_sharing, unread_sharding
from advisor.script.launch import Launch, Script
from advisor.watch.measured import Measured, measured_in, with_phase
from advisor.words import GENERATING, Full, speak_of, spoken_of_now

_TOLD = 4_000
"""Characters of a text without a launch that are sentences rather than a program (judgement)."""
MOST_PLANS = 3
"""Plans made before one is taken whose steps cannot all be written."""


class Planned:
    """A plan that is made when it is first read, and the situation that it was made for in the end: what it chose and
    no file can carry is barred there. A plan is two thirds of a session's time, and many a session needs none."""

    def __init__(self, make: Callable[[], tuple[Plan, Situation | None]]) -> None:
        self._make = make

    @classmethod
    def as_given(cls, plan: Plan, situation: Situation | None = None) -> Planned:
        """A plan that was made before."""
        return cls(lambda: (plan, situation))

    @cached_property
    def made(self) -> tuple[Plan, Situation | None]:
        """Both."""
        return self._make()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Planned) and (other is self or other.made[0] == self.made[0])

    __hash__ = None  # type: ignore[assignment]


SAID_OF_ROLLOUTS = frozenset(
    {("host_holder", "engine"), ("host_holder", "driver"), ("what_grows", "engine"), ("what_grows", "driver")}
    | {("others", "engine"), ("holder", "engine")}
)
"""Answers by which the user says that there is a rollout engine, or a driver of one."""


class State(Struct, frozen=True):
    """Everything a face shows. Immutable: each change gives a new State."""

    asked: SessionRequest
    knowledge: Knowledge
    machine: Machine
    script: Script | None
    launch_index: int
    run: Run
    crash: Crash
    ledger: Ledger
    attribution: tuple[Match, ...]
    diagnosis: Diagnosis
    planned: Planned
    answers: Mapping[str, str]
    """Question id → the user's own answer."""
    situation: Situation | None = None
    """What the plan is made for."""
    measured: Measured | None = None
    """What the record of `watch` says, where one was given."""
    logged: Crash | None = None
    """The crash as the logs alone prove it, from which the next answer starts; None: it is `crash`."""

    @property
    def plan(self) -> Plan:
        """The steps, made when they are first asked for."""
        return self.planned.made[0]

    @property
    def planned_for(self) -> Situation | None:
        """The situation without what no file can carry; toggles compute with it."""
        return self.planned.made[1]

    def with_plan(self, plan: Plan) -> State:
        """The same session with another plan for the same situation."""
        return replace(self, planned=Planned.as_given(plan, self.planned_for))

    @property
    def launch(self) -> Launch | None:
        """The launch that is being diagnosed."""
        return self.script.launches[self.launch_index] if self.script is not None and self.script.launches else None

    @property
    def ran(self) -> bool:
        """Whether steps were done before the failure."""
        return _ran(self.crash, self.answers)

    def telling(self) -> tuple[DecidingQuestion, ...]:
        """The open questions of which an answer changes what is done first, the one that decides most first."""
        if self.situation is None or self.crash.verdict == "not_oom":
            return ()
        path, facts = self.diagnosis.path, self.situation.facts
        return telling_questions(path, self.knowledge.tree, facts, tree_answers(self.answers))

    def deciding(self) -> DecidingQuestion | None:
        """The open question that decides most; None where a line of the log settled the cause."""
        path = self.diagnosis.path
        settled = bool(path) and path[-1].is_a_fact("log")
        return None if settled else next((one for one in self.telling() if not one.seldom), None)

    def settling(self) -> QuestionStep | None:
        """The open question that would settle sums which the log contradicts; None where they stand."""
        if self.situation is None or not self.situation.refuted or SHARDING not in self.diagnosis.open_questions:
            return None
        return next((step for step in self.diagnosis.path if step.question == SHARDING), None)

    def to_ask(self) -> tuple[str, ...]:
        """Ids of the open questions on which cause or sums rest, the one that decides most first. A documented case
        that agrees in every fact decides the cause, too."""
        deciding, opened = self.deciding(), self.diagnosis.open_questions
        known = any(case.agree == case.of for case in self.diagnosis.cases)
        asked = [deciding.step.question] if deciding is not None and not known else []
        sums = [SHARDING] if SHARDING in opened else []
        first = [*sums, *asked] if self.settling() is not None else [*asked, *sums]
        return tuple(one for one in first if one not in self.answers)


def state_of(
    asked: SessionRequest,
    knowledge: Knowledge,
    machine: Machine,
    script: Script | None,
    index: int,
    recognised: Recognised,
    crash: Crash,
    answers: dict[str, str],
) -> State:
    """From what was read and answered to the plan."""
    logged = crash
    measured = measured_in(asked.record) if asked.record is not None else None
    host = machine.host.ceiling_bytes or crash.host_total_bytes
    crash = end_settled(died_all_the_same(with_phase(crash, measured), answers, host), answers)
    text = script.text if script is not None else ""
    crash = replace(crash, platform=platform_of(crash, knowledge.signatures.platforms, text, asked.gpus or ""))
    launch = launch_of(script, index, crash)
    told = launch is None and len(text) < _TOLD  # no launch at all: what somebody wrote of it
    if told or (launch is not None and launch.partial and script is not None and script.launches):  # not comments
        words = knowledge.signatures.statements
        crash = replace(
            crash,
            statements=crash.statements | statements_in(text, words),
            observations=(*crash.observations, *observations_in(text, words)),
        )
    vendor = vendor_of(crash, machine, knowledge.gpus, text)
    speak_of_cards(vendor)
    knowledge = replace(knowledge, tree=tree_of(vendor, knowledge.tree))
    recognised = with_answered_version(
        _answered_dialect(recognised, answers, knowledge, machine, launch, crash, asked.framework_named), answers
    )
    recognised = replace(recognised, framework=dialect_of(vendor, recognised.framework))
    ran_with = _ran_with(asked, recognised, answers, machine, knowledge, crash)
    shardings = knowledge.tree.sharding
    frames = [*(f"{frame.file}:{frame.function}" for frame in crash.frames), crash.phase_because]  # a worker's class
    frames += [one.process for one in crash.evidence[:1]]
    by_engine = keys_of_knobs(recognised.framework, recognised.era, crash.engine_figures)
    shared = printed_sharing(recognised.framework, crash.settings, crash.engine_figures)
    cards = {"topology.gpus_per_node": str(crash.runs_told[crash.memory])} if crash.memory in crash.runs_told else {}
    of_that_run = keys_of_knobs(recognised.framework, recognised.era, cards)
    printed = {**of_that_run, **shown_by_frames(recognised.framework, frames), **by_engine, **shared, **crash.settings}
    unread = unread_sharding(launch, shardings, answered_sharding(shardings, answers), frames)
    paths = tuple(frame.file for frame in crash.frames)
    faults = Faults(knowledge.advisories, machine, crash, assumed=answers.get("regression") == "yes")
    died_at = with_answered_phase(crash, answers)
    known = knowledge.signatures.signatures
    earlier = earlier_run(asked.logs, script, launch, crash, recognised)
    full: Full = next((s.limit for s in known if s.id == crash.signature), "card")
    other_limit = limit_before(asked.logs, script, machine.asked_memory, crash) if full == "job" else ""
    predictor = Predictor(
        RunInputs(
            recognised,
            launch,
            machine,
            knowledge.models,
            printed,
            asked.model_name,
            knobs=asked.knobs,
            counts=crash.counts,
            spelled={fact.id: fact.spelled for fact in knowledge.knobs if fact.spelled},
            no_launch=_nothing_started(script, launch),
            script_notes=script.notes if script is not None else (),
            frames=paths,
            printed_model=crash.engine_figures.get("model.path", ""),
            printed_config=crash.model_config,
            functions=tuple(frame.function for frame in crash.frames),
            engine=bool({crash.phase, answers.get("phase")} & GENERATING),
            unread=unread,
            prose=prose_of(launch, crash),
            observed={
                **(states_told(crash, launch.settings if launch else ()) if launch is None or launch.partial else {}),
                **adapters_shown(launch, text, crash.frames, own=not recognised.framework or recognised.own_program),
            },
        ),
        died_at,
        asked.margin,
        leaks=faults.knobs,
        peaks=partial(peaks_in, measured, crash=died_at) if measured is not None else None,
        limit=full,
        other_limit=bool(other_limit),
        earlier=earlier.overrides,
        doubt=sentences((earlier.said, other_limit)),
        said=_said_place(crash, answers),
    )
    seen_run = predictor.built(earlier.overrides).run
    crash, died_at = (where_due(one, seen_run) for one in (crash, died_at))
    roomy = with_room(machine, _least_card(seen_run, machine), knowledge.gpus)
    if roomy is not machine:
        return state_of(asked, knowledge, roomy, script, index, recognised, logged, answers)
    by_size = told_by_size(seen_run, machine, died_at)
    if by_size is not None:
        user_told = "phase" in answers and not by_size.instead
        crash = crash if user_told else in_phase_of(crash, by_size)
        died_at = in_phase_of(died_at, by_size)
    engine = own_engine(seen_run, died_at)
    if engine is not None:
        crash, died_at = engine.named_in(crash), engine.named_in(died_at)
    if by_size is not None or engine is not None:
        knobs = {**(knobs_of(by_size, seen_run) if by_size else {}), **(engine.knobs if engine else {})}
        predictor = predictor.told(died_at, knobs, by_size is not None and by_size.of_logits)
    possible = assumptions(seen_run, knowledge.knobs, shardings, knowledge.advisories)
    if (fits := fitting(predictor, died_at, earlier.overrides, possible, _ran(crash, answers))) is not None:
        file = fits.taken.answers(seen_run.unread)
        predictor = predictor.told(died_at, {} if file else fits.taken.as_knobs, doubt=fits.doubt, unread=file)
    recipe = predictor.built().run.recipe
    speak_of(recipe.answers)
    now = predictor.predict()
    run = replace(now.run, notes=(*notes_on(asked, script, index, knowledge, crash), *now.run.notes))
    matches = attribute(run, died_at)
    seen = predictor.predict(earlier.overrides)  # what the log saw
    inputs = DiagnosisInputs(
        crash,
        run,
        machine,
        seen.ledger,
        matches,
        measured,
        ran_with,
        partial(otherwise, seen, died_at.phase, knowledge.knobs),
        ran=_ran(crash, answers),
        text=text,
        generates=bool(SAID_OF_ROLLOUTS & {*answers.items()}) or answers.get("phase") in OF_ROLLOUTS_ALONE,
        project=recognised.project,
        unread=unread,
    )
    done = diagnose(inputs, knowledge, tree_answers(answers), predictor.measured.corrections)
    if recipe.answers == "unknown" and (rolls := done.facts.get("rolls_out")) is not None and rolls.value is False:
        speak_of("given")
    asks = done.cause.memory != "none"
    versioned = with_was(with_version(done.diagnosis, recognised, wanted=asks), recognised, answers)
    # a file that nothing names is asked for where the sums without it cannot be
    standing = accelerates_own(launch, shardings) if refuted(seen.ledger, _ran(crash, answers)) else None
    done = replace(done, diagnosis=with_sharding(versioned, run.unread or standing, shardings, wanted=asks))
    predictor.died = _died(died_at, done.diagnosis, _said_place(crash, answers))
    of_tree = tree_answers(answers)
    evaluates = run.value("eval.on") not in NO_EVALUATION
    open_ = open_phase(done.diagnosis.path, knowledge.tree, done.facts, of_tree, done.cause.id, evaluates=evaluates)
    situation = replace(_situation(predictor, faults, knowledge, done), ran_with=ran_with, vendor=vendor)
    situation = replace(situation, open_phase=open_ if crash.verdict != "not_oom" else None)
    if not asked.planned or done.cause.memory == "none":  # what is not a shortage gets no memory advice
        plan = _no_plan(predictor)
        if asked.planned and (steps := elsewhere(situation)):
            plan = replace(plan, steps=steps, before=None)  # what the card holds is beside the point
        planned = Planned.as_given(plan, situation)
    else:
        planned = Planned(spoken_of_now(partial(_planned, situation, done, script, index)))
    return State(
        asked, knowledge, machine, script, index, run, crash, now.ledger, matches, done.diagnosis, planned, answers,
        situation, measured, logged,
    )  # fmt: skip


def _least_card(run: Run, machine: Machine) -> int:
    """Bytes that the weights take of a card at the least."""
    trained = least_weights(run, machine).get("weights.least_share")
    share = trained.value if trained is not None and isinstance(trained.value, float) else 0.0
    return max(engine_weights(run)[0], int(share * (machine.gpu_bytes or 0)))


def _nothing_started(script: Script | None, launch: Launch | None) -> str:
    """What is known of a script that starts no training command; "" for any other, and for none."""
    if script is None or script.launches or (launch is not None and not launch.hints):
        return ""
    return say("{file} starts none that is known here", file=script.documents[0].path.name)


def _ran(crash: Crash, answers: Mapping[str, str]) -> bool:
    """Whether steps were done before the failure, by the log or by the user."""
    return bool(crash.steps_done) or "steps" in crash.statements or answers.get("first_step") == "no"


def _ran_with(
    asked: SessionRequest,
    recognised: Recognised,
    answers: Mapping[str, str],
    machine: Machine,
    knowledge: Knowledge,
    crash: Crash,
) -> dict[str, str]:
    """The versions with which the run fitted, of those that are other ones now: by the user, else by the report's own
    sentences. Raises ValueError for a stranger."""
    named = named_versions("--was", asked.was)
    here = {normalised(name): version for name, version in machine.libraries.items()}
    known = {normalised(one.package) for one in knowledge.frameworks}
    known |= {normalised(one.library) for one in knowledge.advisories}
    for name in named:
        if name not in known and name not in here:
            told = {"library": clean_line(name, 40), "known": listed(sorted(known)[:8])}
            raise ValueError(say("--was: {library} is no library that is known here; known are {known}, …", **told))
    package = recognised.framework.package if recognised.framework is not None else ""
    told = {library or package: old for library, (old, _) in fitted_in(crash.observations).items()}
    told.pop("", None)
    every = {**told, **named, **answered_was(recognised, answers)}
    return {name: version for name, version in every.items() if here.get(name) != version}


def _answered_dialect(
    recognised: Recognised,
    answers: Mapping[str, str],
    knowledge: Knowledge,
    machine: Machine,
    launch: Launch | None,
    crash: Crash,
    named: str,
) -> Recognised:
    """The dialect with which the run is read: what the user answered counts where the launch bears no marks."""
    keys = {*crash.settings, *(native(setting.key) for setting in (launch.settings if launch is not None else ()))}
    libraries = {**crash.traced, **crash.libraries, **machine.libraries}
    paths = [frame.file for frame in crash.frames]
    given = (knowledge.frameworks, keys, libraries, paths, crash.dated, named, knowledge.signatures.projects)
    return with_answered_framework(recognised, answers, *given)


def _said_place(crash: Crash, answers: Mapping[str, str]) -> Place | None:
    """The memory that ran out by the user's answer; None where the log says that none did."""
    given = answers.get("memory")
    return next((place for place in PLACES if place == given and crash.verdict != "not_oom"), None)


def _died(crash: Crash, diagnosis: Diagnosis, said: Place | None) -> Died | None:
    """Where the run ran out; None where neither log nor user says that it did, or nobody knows of which memory."""
    by_log = crash.verdict == "oom"
    if not (by_log or said) or diagnosis.memory in ("none", "unknown"):
        return None
    place = next((place for place in PLACES if place == diagnosis.memory), None)
    stepped = bool(crash.steps_done) or crash.stepped
    return Died(place, diagnosis.phase, crash.steps_done == 0, by_log, stepped, crash.phase_among)


def _situation(predictor: Predictor, faults: Faults, knowledge: Knowledge, done: Diagnosed) -> Situation:
    return Situation(
        predictor,
        knowledge,
        done.facts,
        done.cause.id,
        done.diagnosis.phase if done.diagnosis.phase != "unknown" else done.cause.phase or "unknown",
        "host" if done.diagnosis.memory == "host" else "gpu",
        tuple(c.advisory for c in done.concerns if c.asks_for_a_step),
        tuple(c.advisory for c in suspects(done.concerns) if not c.asks_for_a_step),
        tuple(m.case for m in done.matched if m.same),
        faults,
    )


def _no_plan(predictor: Predictor) -> Plan:
    now = predictor.predict()
    ledger = now.ledger if not now.ledger.missing else None
    return Plan((), ledger, None, predictor.margin, Fit("cannot_be_said"), now.fit)


def _planned(situation: Situation, done: Diagnosed, script: Script | None, index: int) -> tuple[Plan, Situation]:
    """The plan with its places, made anew without whatever it chose and no file can carry."""
    put, proven_otherwise = placing(situation, script, index), situation.predictor.crash.verdict == "not_oom"
    own = elsewhere(situation) if proven_otherwise else ()  # memory by the user's word alone: the log's own goes first
    for _ in range(MOST_PLANS):
        plan = make_plan(situation, done.cause)
        plan = replace(plan, steps=(*own, *plan.steps))
        now = put(plan)
        lost = {one.id for one in now.selected() if one.no_place}
        if not lost:
            return now, situation
        situation = replace(situation, barred=situation.barred | lost)
    kept = [replace(one, selected=one.selected and not one.no_place) for one in now.steps]
    return put(finish(situation, kept, plan.not_proposed, plan.beyond)), situation


def placing(situation: Situation, script: Script | None, index: int) -> Callable[..., Plan]:
    """What gives a plan its places in the script."""
    inputs = situation.predictor.inputs
    because, making = no_place(inputs.recognised, inputs.launch), making_of(situation, index)
    return lambda plan, known=(): placed(plan, script, index, because, making, known)


def making_of(situation: Situation, index: int) -> Making:
    """What makes changes to a launch that its program gets, with what must agree."""
    return partial(arriving, index, situation.predictor.inputs.recognised, situation.knowledge.config_files)
