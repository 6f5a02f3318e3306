"""Types decision_tree.yaml, remedies.yaml, advisories.yaml and cases/*.yaml: what to ask, and what helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from advisor.knowledge.schema.base import Grade, Scalar, Strict
from advisor.rules.expression import Expression
from advisor.words import Memory, Phase, Platform, Results

Relieved = Literal["pass", "rows", "states", "engine", "other"]


class Answer(Strict, frozen=True):
    """One answer to a question."""

    title: str
    shown_by: tuple[Expression, ...] = ()
    """What gives this answer by itself, as `memory == "gpu"`; the first answer of which one holds is taken."""
    part_of: str = ""
    """An answer that includes this one: it does not contradict what shows this one."""
    unless: Expression | None = None
    """Where this holds, nobody is offered the answer: `not rolls_out` of a phase that only a rollout has."""
    of_a_platform: bool = False
    """Of what computes, or what few runs do: where it is not offered, nobody is told that it was excluded either."""
    next: str | None = None
    leads_to: str | None = None
    """A cause id."""
    because: str = ""


class Question(Strict, frozen=True):
    """A question of the tree. "I don't know" is always offered beside `answers`."""

    id: str
    asks: str
    why: str
    answers: dict[str, Answer]
    if_unknown: str
    """How to find out."""
    tells_memory: bool = False
    """Whether it tells one memory from another, or a shortage from anything else: it is asked before all others."""
    seldom: bool = False
    """The answer that would change the cause is rarely the right one: it is asked after all others."""
    if_unknown_of_given: str = ""
    """How to in a run on given answers, where that is another way."""
    asked_when: tuple[Expression, ...] | None = None
    """Where nothing answers it, it is put to the user only where one of these holds, else passed over; None: always."""
    unknown_next: str | None = None
    unknown_leads_to: str | None = None


class Provision(Strict, frozen=True):
    """What may be done before the cause is known, because it costs nothing where it was something else."""

    when: tuple[Expression, ...]
    condition: str
    """In words, after "only if": what has to be found true first, and where that is seen."""
    memory: Memory
    remedies: tuple[str, ...]
    """Remedy ids in order; those that change results or cost room elsewhere in this run are left out."""


class CauseWords(Strict, frozen=True):
    """What a cause is called, and how it is explained, where a fact makes it a narrower one."""

    when: Expression
    title: str = ""
    explains: str = ""
    leads: tuple[str, ...] = ()
    """Remedies that go first then."""


class Cause(Strict, frozen=True):
    """A leaf: what was wrong, what proves it, what rules it out, and what relieves it."""

    id: str
    title: str
    explains: str
    memory: Memory
    narrower: tuple[CauseWords, ...] = ()
    """Other words where one of these holds; the first that does."""
    proved_by: tuple[Expression, ...] = ()
    ruled_out_by: tuple[Expression, ...] = ()
    is_verdict: bool = False
    """Its title says what ran out: not the memory that the message names."""
    phase: Phase | None = None
    """In which it happens, where the log shows none: what the plan then relieves."""
    counted: bool = True
    """False: it is none of what the ledger sums up, so a change that only lowers the sum is not aimed at it."""
    holds: tuple[Relieved, ...] = ()
    """What held the memory: remedies that relieve it act on the cause, others only make room beside it. (): the
    cause's own remedies act on it."""
    remedies: tuple[str, ...] = ()
    """Remedy ids in order of preference."""
    room_helps: bool = True
    """False: no setting that makes room on the card ends it, so the ordinary ones do not stand beside its own."""
    ordinary_in: tuple[Phase, ...] = ()
    """Phases in which its remedies are the ordinary ways to make room, whatever the cause is."""
    leads: tuple[str, ...] = ()
    """Those that keep their place although they change results: they end it, the others only make room."""
    folklore: tuple[str, ...] = ()
    """Remedy ids that are often told and do not help here."""
    record_next_time: str = ""
    proof: str = ""
    """In words: what proves it."""
    counter: str = ""
    """In words: what rules it out."""
    provisional: tuple[Provision, ...] = ()
    """Of a cause that proves nothing: steps that are shown with their condition and never switched on; the first whose
    `when` holds."""


class Sharding(Strict, frozen=True):
    """One way of spreading the training states over the GPUs, as a launcher's config file chooses it."""

    id: str
    title: str
    knobs: dict[str, Scalar]
    """What it comes to, in knobs; those it does not name stay as they are."""
    settings: dict[str, str] = {}
    """Keys of accelerate's file that mark it."""
    named: tuple[str, ...] = ()
    """Regexes over a file's name in lower case that suggest it; the first entry that fits wins."""
    files: tuple[str, ...] = ()
    """Whose files can choose it: accelerate, deepspeed, fsdp; () all."""
    never_in: str = ""
    """Regex over a traceback's frames, "file.py:function", that are never there with it."""
    source: str = ""


class Tree(Strict, frozen=True):
    """decision_tree.yaml"""

    start: str
    questions: tuple[Question, ...]
    causes: tuple[Cause, ...]
    sharding: tuple[Sharding, ...] = ()
    """Answers to the question that is asked where a file that would say it is missing."""


class RemedyEvidence(Strict, frozen=True):
    """What a documented case says of a remedy."""

    case: str
    grade: Grade
    because: str = ""


class KnownAs(Strict, frozen=True):
    """What a setting is called in a library below the framework, for a launch of which no dialect is known."""

    when: tuple[Expression, ...]
    title: str
    """Of the library: "vLLM"."""
    key: str
    default: Scalar = None
    source: str = ""


class Example(Strict, frozen=True):
    """How a remedy is written in what most people train with, for a launch that has no key of its own for it."""

    code: str
    """As it is typed: "gradient_checkpointing=True"."""
    place: str
    """A name, in any language: "TrainingArguments"."""
    when: tuple[Expression, ...] = ()
    """The first example whose facts hold is told."""
    defaults: Mapping[str, str] = {}
    """What the settings of the code are where nobody sets them."""
    source: str = ""


class NewValue(Strict, frozen=True):
    """The values that a remedy may give a setting: one of `to`, `tries`, `next` or `safe_version`. Expressions know
    `value` (the present one) and every knob."""

    to: Scalar = None
    """This value."""
    tries: tuple[Expression, ...] = ()
    """Lower values, best first; those that are not known, or not below the present one, are left out."""
    next: Expression | None = None
    """The next value of a row that ends at `floor` (which is tried, too) or at `ceiling`."""
    floor: Expression | None = None
    ceiling: Expression | None = None
    safe_version: bool = False
    """The safe neighbours of the advisory."""
    start: Scalar = None
    """Where no value is set yet, or -1."""
    low: float | None = None
    """Already there, it comes last."""
    now: str = ""
    """The fact that says what the value is, as the log printed it."""
    at_most: str = ""
    """The fact above which no value can work."""
    above: str = ""
    """The fact at or below which no value can work."""
    falls_by: str = ""
    """The fact that says by how much the value falls at the least, where nothing of the run is counted."""
    request_follows: bool = False
    """What one allocation asks for grows and shrinks as the value moves: of a pass, by its sequences or tokens."""


class RemedyWords(Strict, frozen=True):
    """What a remedy says of a run on given answers (SFT, DPO, reward models): it has no policy and no engine."""

    title: str = ""
    costs: str = ""
    says: str = ""


class Remedy(Strict, frozen=True, kw_only=True):
    """Something that can be changed, what it saves where, and what it costs."""

    id: str
    title: str
    title_alone: str = ""
    """Its title where what it brings along (`also`) is there already, and only its own number moves."""
    kind: Literal["setting", "environment", "version", "machine", "data", "manual"]
    knob: str | None = None
    memory: Memory
    phases: tuple[Phase, ...] = ()
    """Phases it relieves; () = all of that memory."""
    relieves: Relieved = "other"
    """What it makes smaller: one pass of the batch, the rows of a step and their lengths, what lies on the card between
    passes, or the rollout engine."""
    lever: Literal[
        "", "recompute", "kernel", "chunks", "padding", "split", "evaluation", "length", "filter", "packing", "samples",
        "pictures", "offload", "offload-off", "train-less", "optimizer", "precision", "graphs", "requests",
        "engine-split", "sleep", "cards", "allocator", "trial",
    ] = ""  # fmt: skip
    """What it does, where that is narrower than what it relieves: among the first steps stands one of each.
    "train-less": fewer weights, or fewer bits for them; "trial": it only shows whether the run would live."""
    takes: Literal["", "cards", "ram"] = ""
    """What there must be more of."""
    never_for: tuple[str, ...] = ()
    """Signature or cause ids where it harms."""
    value: NewValue | None = None
    """How the new value is found."""
    also: dict[str, NewValue] = {}
    """Other knobs that must be set along with it, and how; `new` is the remedy's own new value."""
    tier: Literal["free", "slower", "host_ram", "changes_results", "version", "hardware"]
    results: Results
    costs: str
    """{offloaded}: the bytes of `offloads`."""
    offloads: tuple[float, float] | None = None
    """Bytes per parameter that it moves to host RAM, the least and the most."""
    says: str
    """Two sentences for the user; {old}, {new}, {freed} and facts named in the code may be used."""
    caveats: tuple[str, ...] = ()
    applies_when: tuple[Expression, ...] = ()
    leads_when: tuple[Expression, ...] = ()
    """Facts that make it the usual way out of this kind of run: it stands among the first steps, whatever it costs."""
    last_when: tuple[Expression, ...] = ()
    """Facts with which it gives hardly anything of what is missing: it stands behind the others, unless a count or a
    report of a run like this one says otherwise."""
    in_force: str = ""
    """Where a run that has it already died all the same: how to see whether it acts."""
    several: bool = False
    """It shares something among processes: nothing for a run of one; where nobody knows, told with that condition."""
    platforms: tuple[Platform, ...] = ()
    """What computes where it helps; (): torch on cards, and what is no memory of a card with any torch but a Mac's."""
    environment: str = ""
    """The variable to set where no dialect carries the knob (kind environment)."""
    known_as: tuple[KnownAs, ...] = ()
    examples: tuple[Example, ...] = ()
    rests_on_data: bool = False
    """What it saves is that of average data: a batch of none but the longest samples gains nothing. A change whose
    saving is sure goes before it."""
    last_resort: bool = False
    """It only moves the moment of the end: shown, never selected for the user."""
    heavy: bool = False
    """It costs much more than others that make the same smaller: those stand before it."""
    by_hand: bool = False
    """Told without a key where this launch has none for it: another method, not another value."""
    tells_resume: bool = False
    """The dialect's keys that save and start again are told with it."""
    raises_limit: bool = False
    """It lets the job have more of the node's RAM: told with how much the run needs by the count."""
    by_trial: bool = False
    """It is a trial run: told with the settings that the framework has for one (`worst_first`)."""
    with_optimizer: RemedyWords | None = None
    """What it says where the word that carries it moves the optimizer state along with it."""
    of_given: RemedyWords | None = None
    """Other words for a run on given answers; what is left out stays."""
    alone: RemedyWords | None = None
    """Other words for a run of one process."""
    evidence: tuple[RemedyEvidence, ...] = ()
    source: str = ""


class Advisory(Strict, frozen=True):
    """A library version that leaks, asserts or clashes."""

    id: str
    library: str
    versions: str
    """packaging specifier of the bad ones."""
    title: str
    says: str
    when: tuple[Expression, ...] = ()
    """Facts that must hold for it to matter."""
    cause: str | None = None
    safe: tuple[str, ...] = ()
    """Specifiers of the safe neighbours, preferred first."""
    sets: dict[str, bool] = {}
    """Knobs that hold while it applies (leak.gathered_weights)."""
    source: str = ""
    grade: Grade = "confirmed"
    signs: tuple[Expression, ...] = ()
    """What a crash shows, beside `when`, for the version to be looked up first where nobody knows it."""
    since: str = ""
    """Month of the first bad version ("2024-11"): a launch of an older framework does not run with it."""
    safe_since: str = ""
    """Month of the first safe version after bad ones: to a run of years before, it is another stack."""


class Case(Strict, frozen=True):
    """A documented case: what was reported, and what the mechanism supports."""

    id: str
    title: str
    source: str
    situation: dict[str, Scalar]
    """Facts to match: framework, model, gpus, host_ram, memory, phase, signature, library versions, setting values."""
    reported: dict[str, Any]
    mechanism: str
    grade: Grade
    folklore: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    values: dict[str, list[Scalar]] = {}
    """Native key → values that were reported to work, best first."""
