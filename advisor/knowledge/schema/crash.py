"""Types signatures.yaml: what crash lines look like and what they prove."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from advisor.knowledge.schema.base import Strict
from advisor.words import Full, Memory, Phase, Platform, Verdict


class Signature(Strict, frozen=True):
    """What a crash line looks like and what it proves. Regexes run on cleaned text; groups named *_bytes hold sizes."""

    id: str
    title: str
    anchors: tuple[str, ...]
    """Case-exact literals; a line (or joined message) is looked at only when it holds one."""
    pattern: str
    memory: Memory
    role: str
    """An EvidenceRole."""
    verdict: Verdict | None = None
    """What this line alone proves: oom, not_oom; None: nothing by itself."""
    phase: Phase = "unknown"
    """Implied by the line itself, where it is."""
    rank: int = 50
    """Look-alikes first: lower is tested earlier."""
    span_lines: int = 1
    """Lines the message may cover (split, wrapped, tables below)."""
    sizes: dict[str, str] = {}
    """Regex group → field name, where the printed size becomes bytes."""
    worded: bool = False
    """People retell this message in their own words: sizes are read by the words beside them, too."""
    account: bool = False
    """Only a sentence in which a person tells that this memory ran out (crash/observations.py)."""
    says: str = ""
    """One sentence for the user."""
    look_alikes: tuple[str, ...] = ()
    versions: str = ""
    sample: str = ""
    confidence: str = ""
    source: str = ""
    until: str = ""
    """The last day on which messages of this form are usual, "2024-03-31": what prints no time is not newer."""
    limit: Full = "card"
    """What was full."""
    settle_by: tuple[str, ...] = ()
    """For lines that prove nothing alone: what would settle it."""
    within: tuple[str, ...] = ()
    """Literals of which one stands on each line that an entry without anchors may match; of an entry that may cover
    several lines, in each message once its white space is taken out."""
    remedies: tuple[str, ...] = ()
    """What helps where no memory was short, best first."""


FrameTier = Literal["fallback", "launcher", "call", "worker", "operation", "stage"]
"""How much a frame says of the phase, least first. fallback: an engine's inside or a trainer's main loop, of use only
where nothing else tells · launcher: starts or sets up several phases · call: a function that one phase calls
· worker: a worker's or trainer's method that is the phase · operation: waking or starting the engine, moving weights,
the optimizer, whatever method asked for it · stage: validation, checkpoint, loading, whatever runs inside."""


class FrameRule(Strict, frozen=True):
    """A traceback frame (or Ray method, or engine text) and the phase it means."""

    frame: str
    """Regex over "file.py:function" or over text."""
    phase: Phase
    in_: Literal["frame", "text", "task"] = msgspec.field(name="in", default="frame")
    frameworks: tuple[str, ...] = ()
    under: str = ""
    """Only when this regex matches a frame further out."""
    tier: FrameTier = "call"
    """A higher tier wins over deeper frames; within one the deepest, of the same frame a rule with `under`."""
    source: str = ""
    or_: tuple[Phase, ...] = msgspec.field(name="or", default=())
    """Other phases that run the same frame, where its caller decides: `phase` is then the likeliest, not a fact."""
    needs: tuple[str, ...] = ()
    """Left out in the files: lower-case literals of which one stands in whatever `frame` matches, found when the
    knowledge is compiled; (): any text may match."""


class Progress(Strict, frozen=True):
    """A progress line and the phase it means ("Update policy: 31%|")."""

    pattern: str
    phase: Phase
    frameworks: tuple[str, ...] = ()
    ended: Phase = "unknown"
    """The phase of which the line is the end."""
    after: bool = False
    """The line is the end of something, and `phase` what comes next."""
    resumes: bool = False
    """The run goes on from a checkpoint that was saved before."""
    needs: tuple[str, ...] = ()
    """As of FrameRule."""


class AnswerLength(Strict, frozen=True):
    """How a framework prints the longest answer of a step."""

    pattern: str
    """Its one group is the number of tokens."""
    within: tuple[str, ...]
    """As of VersionMark."""
    source: str


class VersionMark(Strict, frozen=True):
    """A version as a log prints it: the regex has one group."""

    library: str
    pattern: str
    within: tuple[str, ...] = ()
    """Literals of which one stands on every line that the regex matches; none: every line is looked at."""


class EngineFigure(Strict, frozen=True):
    """A setting in force as an engine or library itself prints it, whatever a framework calls it."""

    knob: str
    pattern: str
    """Its one group is the value, where `value` does not give it."""
    value: str = ""
    """What the knob is wherever the line is printed at all."""
    within: tuple[str, ...] = ()
    """As of VersionMark."""


CountName = Literal["parameters", "trainable", "gpus", "ranks", "cards", "nodes", "job_ram"]
"""`job_ram`: bytes that a container or a job may hold. `ranks` and `cards` (of a node) are at least so many: the
highest index that a log names, plus one."""
"""Parameters of the whole model · those that are trained · cards (ranks) of the run."""


class LogCount(Strict, frozen=True):
    """A count of the run as a library prints it, of whatever framework."""

    count: CountName
    pattern: str
    """Its group is the number, with or without commas; of several groups the one that matches."""
    unit: int = 1
    """What the number counts: 1000000 of "7635.8M"."""
    value: int = 0
    """What the number is wherever the line is printed at all; 0: the group says it."""
    index: bool = False
    """The number is one of several indices from 0: the highest of all lines counts."""
    distinct: bool = False
    """How many different numbers the lines name is the count: ids of processes."""
    within: tuple[str, ...] = ()
    """As of VersionMark."""


class Project(Strict, frozen=True):
    """A project of its own: one that carries a framework's code as it was on some day, or one that is not known."""

    name: str
    names: tuple[str, ...] = ()
    """Names of its tree and packages, as paths and scripts have them; (): `name` alone."""
    built_on: str = ""
    """The framework whose code it carries; "": its own."""
    own_loop: bool = False
    """Its trainer is none of transformers', so that no word of that one's settings fits."""
    trainer: str = ""
    """What shards the states there; "": the launch or the log says it."""
    source: str = ""


class PlatformMark(Strict, frozen=True):
    """Words of log or launch that show what computes, where it is not torch on cards of its own."""

    platform: Platform
    pattern: str
    """Of a line of the log."""
    within: tuple[str, ...]
    """As of VersionMark."""
    launch: str = ""
    """Regex over what the launch file says; "": nothing there shows it."""
    machine: str = ""
    """Regex over what the user says of the machine; "": nothing there shows it."""
    source: str = ""


Worded = Annotated[str, msgspec.Meta(extra_json_schema={"items": {"type": "string"}})]
"""An expression; the file may give it as a list of alternatives."""


class AccountWords(Strict, frozen=True):
    """How people write that memory ran out; each a regex over one sentence or clause."""

    short: Worded
    """The words of a shortage."""
    by_itself: Worded
    """Those of them that are a statement without a verb beside them."""
    happened: Worded
    """What tells that it happened."""
    breaks: Worded
    """Where a new clause begins."""
    unsaid: Worded
    """Words before a shortage, in its clause, of one who doubts, denies, warns or advises."""
    unsaid_behind: Worded
    """Words right behind it that take it back."""
    factive: Worded
    """A question that takes the shortage for granted."""
    headline: Worded
    """A line that is the title of a report of a shortage."""
    memories: dict[Memory, Worded]
    """Memory → its names."""


class ObservationWords(Strict, frozen=True):
    """How people write what they observed: regexes over a clause."""

    breaks: Worded
    """Where a new clause begins."""
    worked: Worded
    failed: Worded
    no_help: Worded
    denied: Worded
    """At the end of what stands before an outcome: it is the contrary."""
    ruled_out: Worded
    """There is no more of it."""
    blamed: Worded
    """It is the cause."""
    changes: dict[Literal["off", "on", "up"], Worded]
    """In which way something was moved."""
    cues: dict[str, Worded]
    """What else a clause says, or a sentence; each by its name in crash/observations.py."""
    names: dict[Literal["part", "resource", "run", "spelled", "files"], dict[str, Worded]]
    """Kind → what of that kind is named → its names; settings by short names and by files that are their value."""


class StatementWords(Strict, frozen=True):
    """How people write about a run that died; each a regex over one sentence, which the file gives as a list of
    alternatives and with words that it names once (`words`, advisor/knowledge/spelled.py)."""

    account: AccountWords
    grows: Worded
    """Memory rose from step to step."""
    rose: Worded
    """Memory went from `low` to `high`, with their units as `unit` and `unit_`."""
    steps: Worded
    """Steps were done before it died."""
    first: Worded
    """It died in the first step."""
    second: Worded
    """It died in the second step."""
    shared: dict[str, Worded]
    """How the states are shared → how a sentence says so: "fsdp", "states" (by anything)."""
    serves: Worded
    """A command of a launch that starts a server with a model of its own, beside the training."""
    lowered: Worded
    """Something was made smaller, or is at its least."""
    sizes: dict[str, Worded]
    """`lever` of remedies → how a sentence names the size that was lowered."""
    switches: dict[str, Worded]
    """`lever` of remedies → how a sentence names what was switched on."""
    in_use: Worded
    """Something is on; {what} stands for it."""
    not_in_use: Worded
    """It is not, or somebody only asks for it or proposes it."""
    switched: dict[str, Worded]
    """Knob → how a sentence names what is on."""
    cards: Worded
    """How a sentence names the number of processes or cards."""
    turned: dict[str, Worded]
    """Remedy → how a sentence names the very setting that it turns back, where several share a lever."""
    libraries: dict[str, Worded]
    """Library → how people write its name."""
    words: dict[str, Worded] = {}
    """Words that the expressions name; empty once they are put in."""
    observed: ObservationWords | None = None
    """How an outcome is told of what a clause names."""
    facts: dict[str, Worded] = {}
    """Fact → how a sentence tells it."""
    phases: dict[Phase, Worded] = {}
    """Phase → how a sentence says that it died then."""
    behind: dict[Phase, Worded] = {}
    """Phase → how a sentence says that it died once that was over, or does not die without it."""
    numbered: Worded = ""
    """On how many GPUs it ran: the group that matches."""
    moments: dict[Phase, Worded] = {}
    """Phase → its names."""
    moment: Worded = ""
    """It died in the moment that stands for {what}; asked of `moments` where `phases` tell none."""
    host_holders: dict[str, Worded] = {}
    """What a page says holds the host's RAM → its words."""
    holders: dict[str, Worded] = {}
    """Answer to what holds the card → how a sentence says so, with a size or as the cause."""


class Allocation(Strict, frozen=True, kw_only=True):
    """What a failing line was making, by the innermost frames of its traceback, and which lever makes it smaller."""

    id: str
    title: str
    at: str
    """Regex over one of the innermost frames, "path/file.py:function source line"."""
    under: str = ""
    """Regex that some frame must match as well, that one or a caller."""
    not_under: str = ""
    """Regex that no frame may match."""
    cause: str = ""
    """Where the questions end, unless an answer proves another cause; "": the questions decide."""
    leads: tuple[str, ...] = ()
    """Remedies that stand before all others, best first."""
    sets: dict[str, bool | int] = {}
    """Facts that the frame proves."""
    of_size: Literal["", "scores", "bucket", "partition"] = ""
    """What of a run has the size that was asked for, where no frame names it."""
    heads: int | None = None
    """Attention heads, where it is attention of a part whose models all have as many."""
    patch: int | None = None
    """Pixels along the side of what is a token to that part."""
    says: str
    source: str


class FrameworkMark(Strict, frozen=True):
    """What only one framework prints."""

    framework: str
    pattern: str
    within: tuple[str, ...] = ()
    """Literals of which one stands on every line that the regex matches, found when the knowledge is compiled."""
    below: bool = False
    """As of Recognition."""


class Signatures(Strict, frozen=True):
    """signatures.yaml"""

    signatures: tuple[Signature, ...]
    frames: tuple[FrameRule, ...]
    progress: tuple[Progress, ...] = ()
    answers: tuple[AnswerLength, ...] = ()
    versions: tuple[VersionMark, ...] = ()
    engine_figures: tuple[EngineFigure, ...] = ()
    counts: tuple[LogCount, ...] = ()
    platforms: tuple[PlatformMark, ...] = ()
    statements: StatementWords | None = None
    projects: tuple[Project, ...] = ()
    framework_marks: tuple[FrameworkMark, ...] = ()
    """Left out in the file: every dialect's `log`, by priority, gathered when the knowledge is compiled."""
