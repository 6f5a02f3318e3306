"""Holds the nouns of the plan: a change of one key, a step (one remedy with its changes), and the plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.diagnosis.computing import Vendor, in_names_of
from advisor.language import say
from advisor.memory.cells import Ledger, PhaseSum
from advisor.memory.fit import Fit, capacity_of
from advisor.run.run import KnobSource
from advisor.units import show_bytes
from advisor.words import Basis, Phase, Results

StepKind = Literal["setting", "environment", "version", "machine", "data", "manual", "job"]
"""A step of kind "job" changes the memory limit that the script asks of Slurm, or under which it starts the run."""
Tier = Literal["free", "slower", "host_ram", "changes_results", "version", "hardware"]


class Change(Struct, frozen=True):
    """One native key's old and new value. `old` None: not set before; `new` None: to be removed.

    `file` and `line` say where the new value goes; "" and None where no file is edited (versions, machines).
    """

    key: str
    old: str | None
    new: str | None
    file: str = ""
    line: int | None = None
    how: str = ""
    """"edited in place", "added as an override", "exported before the command"."""
    bare: bool = False
    """A flag that takes no value: present is on, absent is off."""
    form: str = ""
    """How it is written where the command has no argument yet (see `beside_file`)."""
    in_file: bool = False
    """It goes into the config file that the command names, because the command itself takes nothing beside it."""
    old_source: KnobSource | None = None
    """What gave `old`; "assumed": the framework's default, taken for it because the launch was not seen whole."""
    since: str = ""
    """The versions that have the key, in words, where not all have it and nobody knows which one runs."""
    within: str = ""
    """The file that holds it, where the launch names it and it was not given."""
    variable: bool = False
    """A variable of the environment, which goes along with a setting."""
    left_to_user: bool = False
    """It belongs to the step, but no file may carry it: nobody knows whether the program takes it."""

    @property
    def old_words(self) -> str | None:
        """`old`, marked where it is only a default: "4 (default)"."""
        if self.old is None or self.old_source not in ("default", "assumed"):
            return self.old
        if self.old_source == "assumed":
            return say("{value} (default, not seen in your launch)", value=self.old)
        return say("{value} (default)", value=self.old)


class TypedExample(Struct, frozen=True):
    """How a step is typed in what most people train with, where no key of this launch is known."""

    code: str
    place: str
    changes: tuple[Change, ...] = ()
    """The settings that the code begins with; () where it is a command or a call."""

    @property
    def words(self) -> str:
        """ "gradient_checkpointing=True (TrainingArguments)"."""
        default = next((change.old for change in self.changes if change.old is not None), None)
        if default is None:
            return say("{code} ({place})", code=self.code, place=self.place)
        return say("{code} ({place}; {default} by default)", code=self.code, place=self.place, default=default)


class PlanStep(Struct, frozen=True, kw_only=True):
    """One remedy as applied to this run."""

    id: str
    rank: int = 0
    """Its number in the plan, from 1 on, which `finish` gives."""
    title: str
    kind: StepKind
    tier: Tier = "free"
    changes: tuple[Change, ...] = ()
    results: Results = "unchanged"
    basis: Basis
    saves: Mapping[Phase, int] = {}
    """Bytes saved per phase on the GPU, or on the host where `place` is host; negative where it costs."""
    place: Literal["gpu", "host", "none"]
    why: str
    costs: str
    caveats: tuple[str, ...] = ()
    then: str = ""
    """The value to go on to where its own is a first try, for no sum tells how far it has to go; "" elsewhere."""
    only_if: str = ""
    """Where nothing proves a cause: the clause "only if …" that has to be true first, else the step is for nothing."""
    sources: tuple[str, ...] = ()
    documented: str = ""
    """What a documented case used: "logic-rl-8: 4"."""
    worked_here: str = ""
    """When it helped at this site, in words; "" where that is not known."""
    selected: bool = False
    conflicts: tuple[str, ...] = ()
    """Step ids that cannot be selected together with this one."""
    group: str = ""
    """Alternatives of one thing share a group; at most one of them is selected."""
    host_saves: Mapping[Phase, int] = field(default_factory=dict)
    """Bytes saved per phase on the other place; negative where a GPU remedy costs host RAM, or the reverse."""
    spills: int = 0
    """Bytes by which it alone overfills the other place, where that had the room before."""
    typed: TypedExample | None = None
    no_place: bool = False
    """No file of this launch may carry it; a caveat says why."""
    decides: Phase = "unknown"
    """The phase that ran out, else the fullest."""
    host_limit: int = 0
    """Bytes of a node that the job may use once it is done; 0 where it moves no limit, or nobody knows to what."""
    further: bool = False
    """It does not act on the cause, or gives hardly anything: told by its title, behind the others."""
    own: str = ""
    """The number that the user wrote in place of the plan's."""
    most: int = 0
    """Bytes that the card has on which it acts; 0 where nobody knows, or where it acts on no card."""

    @property
    def example(self) -> str:
        """How it is typed elsewhere, "gradient_checkpointing=True (TrainingArguments)"; "" where nothing says so."""
        return self.typed.words if self.typed is not None else ""

    @property
    def told(self) -> dict[Phase, int]:
        """What it saves that can be said."""
        return believable(self.saves, self.most)

    @property
    def number(self) -> str:
        """The number of its first change, a size of the job in GiB; "" where it is none."""
        new = self.changes[0].new if self.changes else None
        new = new.removesuffix("G") if new is not None and self.kind == "job" else new
        return new if new is not None and new.replace(".", "", 1).isdecimal() else ""

    @property
    def headline(self) -> Phase | None:
        """The phase whose amount stands for the step: the one that decides where the step saves there, else the one in
        which it saves most, else the one in which it costs most; None where nothing was computed.
        """
        if self.saves.get(self.decides, 0) > 0:
            return self.decides
        most = max(self.saves, key=lambda phase: self.saves[phase], default=None)
        if most is None or self.saves[most] > 0:
            return most
        return min(self.saves, key=lambda phase: self.saves[phase])


def believable(saves: Mapping[Phase, int], most: int) -> dict[Phase, int]:
    """The amounts that a card of `most` bytes may hold: of what none ever held the sum is wrong, and so the saving."""
    return {phase: size for phase, size in saves.items() if not most or size <= most}


def grouped(saves: Mapping[Phase, int]) -> list[tuple[int, tuple[Phase, ...]]]:
    """(bytes, phases) for every amount other than 0: phases that a step changes alike, as shown, are told together."""
    alike: dict[str, tuple[int, tuple[Phase, ...]]] = {}
    for phase, size in saves.items():
        shown = f"{size > 0} {show_bytes(abs(size))}"
        amount, phases = alike.get(shown, (size, ()))
        alike |= {shown: (amount, (*phases, phase))} if size else {}
    return [*alike.values()]


class NotProposed(Struct, frozen=True):
    """A remedy that people try, and why it is not in the plan."""

    id: str
    title: str
    because: str


class Plan(Struct, frozen=True):
    """Ordered steps, with the ledger before and after the selected ones."""

    steps: tuple[PlanStep, ...]
    before: Ledger | None
    after: Ledger | None
    margin: float
    """Fraction of the capacity to be left free."""
    fit: Fit
    """After the selected steps, on GPU and host."""
    fit_now: Fit = Fit("cannot_be_said")
    """Of the run as it stands."""
    not_proposed: tuple[NotProposed, ...] = ()
    shortfall: str = ""
    """Where it does not fit: by how much, and what would do; else what stands in doubt."""
    beyond: str = ""
    """Where no set of the steps is enough: that, and what would be; or which answer would tell what to change."""

    @property
    def fits(self) -> bool | None:
        """The contract's word; None where it cannot be said."""
        return self.fit.fits

    def fit_at(self, phase: PhaseSum, capacity: int | None) -> Fit:
        """The fit that judges a phase: of the run as it stands where it is one of `before` and held against the same
        capacity, else after the steps.
        """
        if self.before is None:
            return self.fit
        same = self.before.phase(phase.place, phase.phase) == phase
        return self.fit_now if same and capacity == capacity_of(self.before, phase.place) else self.fit

    def selected(self) -> tuple[PlanStep, ...]:
        """The steps that are switched on."""
        return tuple(step for step in self.steps if step.selected)


def in_words_of(vendor: Vendor, step: PlanStep) -> PlanStep:
    """The step with the names that this vendor's software has for variables and tools."""
    if vendor == "nvidia":
        return step

    def renamed(text: str) -> str:
        return in_names_of(vendor, text)

    environment = step.kind == "environment"
    changes = tuple(replace(c, key=renamed(c.key)) if environment else c for c in step.changes)
    caveats = [*map(renamed, step.caveats)]
    if vendor == "amd" and any(c.new == "expandable_segments:True" for c in changes):
        caveats.append(
            say("torch for AMD may lack it: the log then says that expandable_segments are not supported here")
        )
    words = {"title": renamed(step.title), "why": renamed(step.why), "costs": renamed(step.costs)}
    return replace(step, changes=changes, caveats=tuple(caveats), **words)
