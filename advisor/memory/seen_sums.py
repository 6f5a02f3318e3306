"""Settles what a launch leaves open by the sizes that the crash printed: an assumption under which the sums meet them,
whether the process beside the trainer is the run's own engine, and what may fill a card that has room by count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.crash.holders import held_by_others
from advisor.knowledge.schema import Advisory, KnobFact, Scalar, Sharding
from advisor.language import clauses, say, sentences
from advisor.memory.calibrate import COPIES, LASTING, needed_on_gpu
from advisor.memory.cells import ENGINE, Ledger, Owner, PhaseSum
from advisor.memory.fit import rows_that_fill
from advisor.memory.ledger import build_ledger, refuted
from advisor.memory.predict import Overrides, Prediction, Predictor
from advisor.memory.trainer import has_engine
from advisor.regex import regex
from advisor.rules.functions import version_in
from advisor.run.run import Knob, Run, Unread
from advisor.units import show_bytes
from advisor.words import NOW_AND_THEN, Phase

_PID = regex(r"\(pid (\d+)\)")
LEAST = 0.1
"""Part of a card from which on another process of it is worth a word (judgement)."""
AS_ITS_SHARE = 0.2
"""Part by which what an engine holds may miss its share: a context, graphs, a cache in whole blocks (judgement)."""
RANKS = 2
"""Processes that hold as much as the one that failed: ranks that were sent to one card, no engine (judgement)."""
OF_TRAINER: tuple[Phase, ...] = ("log_prob", "actor_update", "critic_update", "optimizer_step", "checkpoint")
"""Phases in which it is the trainer that fails."""
SHARE, SLEEPS = "rollout.memory_share", "rollout.sleeps"


class OwnEngine(Struct, frozen=True):
    """The run's own engine as the process that torch's message lists beside the trainer."""

    size: int
    name: str
    because: str
    awake: bool
    """It holds as much as its share of the card."""

    @property
    def knobs(self) -> dict[str, Knob]:
        """What that says of the run."""
        return {SLEEPS: Knob(SLEEPS, False, "log", note=self.because)} if self.awake else {}

    def named_in(self, crash: Crash) -> Crash:
        """The crash whose message names the process."""
        first, *rest = crash.evidence
        fields = {**first.fields, "engine_process": self.name, "engine_process_bytes": self.size}
        return replace(crash, evidence=(replace(first, fields=fields), *rest))


def own_engine(run: Run, crash: Crash) -> OwnEngine | None:
    """The run's own engine, where something beside the trainer holds much of the card and nothing else explains it:
    engine and trainer share cards, and are processes of their own as far as anybody knows."""
    fields = crash.evidence[0].fields if crash.evidence and crash.verdict == "oom" and crash.memory == "gpu" else {}
    held, total, alike = (fields.get(name) for name in ("other_process_bytes", "total_bytes", "alike_processes"))
    if not isinstance(held, int) or not isinstance(total, int) or "engine_process_bytes" in fields:
        return None
    ranks = isinstance(alike, int) and alike >= RANKS
    shared = run.topology.colocated or not run.topology.known
    apart = has_engine(run) and stands_apart(run) is not False
    share = run.number(SHARE)
    due = share * total if share else 0
    awake = bool(due) and abs(held - due) <= AS_ITS_SHARE * due
    fails = crash.phase in OF_TRAINER or (awake and crash.phase == "unknown")  # it is the trainer that does
    if held < LEAST * total or ranks or not fails or not shared or not apart:
        return None
    told = {
        "size": show_bytes(held),
        "total": show_bytes(total),
        "share": f"{share or 0:g}",
        "due": show_bytes(round(due)),
    }
    because = (
        say("another process holds {size} of {total}, as much as the engine's share ({share}: {due})", **told)
        if awake
        else say("another process holds {size} of {total}, and this run has its engine on the same card", **told)
    )
    pids = _PID.findall(str(fields.get("other_processes", "")))
    name = f"pid {pids[0]}" if len(pids) == 1 else say("another process")
    return OwnEngine(held, name, because, awake)


def stands_apart(run: Run) -> bool | None:
    """Whether the engine is a process of its own; None where nobody knows the version, and that decides it."""
    inside = run.mechanics.engine_inside and str(run.value("rollout.engine")).lower() != "sglang"
    return None if inside and run.era_assumed else not inside


FAR, NEARER = 0.25, 3
"""Part of what was needed by which sums miss it that do not meet it; and how many times nearer another assumption has
to come (judgement: the first is what unseen rows make of a pass)."""
STATES_ERR = 0.1
"""Part by which what lasts may be more than what was in use: it is bytes per parameter (judgement)."""
OPEN = ("default", "assumed", "derived")
"""What gave a knob that no launch, log or user states."""
MOST = 2
"""Assumptions that are told."""


class Assumption(Struct, frozen=True):
    """What a launch leaves open, taken otherwise than its defaults have it."""

    knobs: Mapping[str, Scalar | None]
    says: str
    """A clause."""
    sharding: Sharding | None = None
    """The way to share the states that it is."""

    @property
    def as_knobs(self) -> dict[str, Knob]:
        """What it says of the run."""
        note = say("by the sizes of the log")
        return {
            name: Knob(name, value, "assumed", note=note) for name, value in self.knobs.items() if value is not None
        }

    def answers(self, unread: Unread | None) -> Unread | None:
        """The missing file with what the sums say of it; None where none is missing, or that is beside the point."""
        if unread is None or self.sharding is None:
            return None
        chosen = {"choice": self.sharding.id, "title": self.says, "knobs": self.sharding.knobs}
        return replace(unread, told_by="sums", against="", **chosen)


class InLog(Struct, frozen=True):
    """The assumption under which the sums meet the log."""

    taken: Assumption
    doubt: str
    """What the log fits and what it does not, in a sentence."""


def assumptions(
    run: Run, knobs: Sequence[KnobFact], shardings: Sequence[Sharding], faults: Sequence[Advisory]
) -> Iterator[Assumption]:
    """Everything that may be otherwise here: ways to share the states that a file or nobody says, and knobs that no
    launch states, unless a library here has a fault by which an engine keeps memory as it sleeps (`faults`: all)."""
    libraries = run.libraries
    keeps = any(
        one.library in libraries and version_in(one.versions, libraries[one.library])
        for one in faults
        if any(rule.text == "sleep" for rule in one.when)
    )
    shared = run.topology.actor_gpus > 1 and run.mechanics.trainer in ("deepspeed", "ddp")
    named = run.unread.choice.partition("_")[0] if run.unread is not None else ""  # by the file's own name
    for one in shardings if shared else ():
        if one.id.startswith(named):
            yield Assumption(one.knobs, one.title, one)
    for fact in knobs:
        for other in () if keeps and fact.id == SLEEPS else fact.instead:
            yield Assumption(other.knobs, other.says)


def fitting(
    predictor: Predictor,
    crash: Crash,
    earlier: Overrides,
    possible: Iterable[Assumption],
    ran: bool,
) -> InLog | None:
    """The assumption that meets what was in use and asked for, where the settings as seen do not; None where they do,
    where the crash printed no sizes, and where none meets it."""
    fields = crash.evidence[0].fields if crash.evidence and crash.verdict == "oom" and crash.memory == "gpu" else {}
    amount, others = needed_on_gpu(fields), fields.get("other_process_bytes")
    run = predictor.built(earlier).run
    if amount is None or run.model is None or run.framework == "unknown" or not run.settings:
        return None
    needed, beside = round(amount.value), others if isinstance(others, int) else 0

    def count(seen: Run) -> tuple[Ledger, int, float]:
        ledger = build_ledger(seen, predictor.machine, crash)
        return ledger, *_nearest(ledger, crash, needed, beside)

    ledger, seen, missed = count(run)
    tried = fields.get("tried_bytes")
    used = needed - (tried if isinstance(tried, int) else 0)
    # what lay there whatever of the pass was made by then: some make the optimizer's state in the first step
    lasting = (*LASTING, "optimizer") if ran else LASTING
    held = [one for one in _phases(ledger, crash) if one.phase != "model_load"]
    stepping: tuple[Owner, ...] = (*lasting, "gradients")
    there = max((one.of(*(stepping if one.phase == "optimizer_step" else lasting)) for one in held), default=0)
    too_much = refuted(ledger, ran) or there > used * (1 + STATES_ERR)
    too_little = seen < needed and missed > FAR and not predictor.leaks(earlier)
    # more copies of the logits that failed explain it nearer
    too_little = too_little and not (predictor.of_logits and needed - seen <= COPIES * (needed - used))
    if not ledger.gpu or not (too_much or too_little):
        return None
    elsewhere = held_by_others(fields) if stands_apart(run) is not False else None  # by the engine's process, at most
    if stands_apart(run) is None and (elsewhere or 0) < run.mechanics.sleep_residue_bytes:  # then it may be inside
        elsewhere = None
    found: list[tuple[float, int, Assumption]] = []
    for one in possible:
        if not _open(run, one.knobs):
            continue
        other = predictor.built(earlier, knobs=one.as_knobs).run
        sums, size, off = count(other)
        engine = min((each.of(*ENGINE) for each in _phases(sums, crash)), default=0)
        if SLEEPS in one.knobs and elsewhere is not None and elsewhere < engine * (1 - AS_ITS_SHARE):
            continue  # what the message leaves to other processes holds no engine that is awake
        if off <= min(FAR, missed / NEARER) and not refuted(sums, ran):
            found.append((off, size, one))
    if not found:
        return None
    found.sort(key=lambda each: each[0])
    _, size, best = found[0]
    told = {"needed": show_bytes(needed), "seen": show_bytes(seen), "says": best.says, "size": show_bytes(size)}
    if run.unread is not None and best.sharding is not None:
        told |= {"file": run.unread.file, "key": run.unread.key, "absent": run.unread.absent}
        doubt = say(
            "The file {file} ({key}) {absent}: the {needed} that were needed by the log fit {says} ({size} by count), "
            "not the settings as they were seen ({seen}), and it is counted so.",
            **told,
        )
    else:
        doubt = say(
            "The {needed} that were needed by the log fit {says} ({size} by count), not the settings as they were seen "
            "({seen}), and it is counted so.",
            **told,
        )
    if more := [say("{says} ({size})", says=one.says, size=show_bytes(each)) for _, each, one in found[1:MOST]]:
        doubt = sentences((doubt, say("As near would be {ways}.", ways=clauses(more))))
    return InLog(best, doubt)


def _nearest(ledger: Ledger, crash: Crash, needed: int, beside: int) -> tuple[int, float]:
    """What the phase that died takes by count, with rows as long as brings it nearest to what was needed, and by which
    part of that it misses; the fullest phase of a step where none is told."""
    phases = _phases(ledger, crash)
    tried = [(abs(size - here) / here, size) for one in phases
             for here in [max(1, needed - max(0, beside - one.of(*ENGINE)))]
             for size in (one.expected, one.by_data[1])]  # fmt: skip
    off, size = min(tried, default=(0.0, 0))
    return size, off


def _phases(ledger: Ledger, crash: Crash) -> Sequence[PhaseSum]:
    """The phase that died; the fullest of a step where none is told."""
    died = ledger.phase("gpu", crash.phase)
    in_steps = [one for one in ledger.gpu if one.phase not in NOW_AND_THEN]
    return [died] if died is not None else sorted(in_steps, key=lambda one: one.expected)[-1:]


def _open(run: Run, knobs: Mapping[str, Scalar | None]) -> bool:
    """Whether no launch, log or user states any of these, and one of them is otherwise here."""
    here = [knob for name in knobs if (knob := run.knobs.get(name)) is not None]
    unread = {knob.key for knob in here if knob.value is None}
    stated = [knob for knob in here if knob.source not in OPEN and knob.key not in unread]
    return not stated and any(run.value(name) != value for name, value in knobs.items() if value is not None)


FILLED = 0.9
"""Of a card; what is expected to take more is no contradiction to a crash (judgement)."""
BEYOND = 4
"""Times a card: nobody's run gets anywhere with so much (judgement)."""
_BUILT_IN = ("default", "derived")
"""What the framework sees to by itself, whatever the launch says."""


class Otherwise(Struct, frozen=True):
    """One way in which a run is too large for its card that its settings do not show."""

    says: str
    """A clause."""
    size: int
    """Bytes of one card in the fullest phase, were it so."""
    check: str = ""
    """How a user sees whether it is so; "" where the sentence says it."""

    @property
    def clause(self) -> str:
        """The way, its size and how to check it."""
        told = {"says": self.says, "size": show_bytes(self.size), "check": self.check}
        return say("{says}: {size} ({check})", **told) if self.check else say("{says}: {size}", **told)


def otherwise(seen: Prediction, phase: Phase, knobs: Sequence[KnobFact], ran: bool) -> tuple[Otherwise, ...]:
    """What would fill the card in `phase` ("unknown": in any), though the expected bytes are not. `ran`: steps were
    done before, so every setting was in force and only a longer row is left."""
    run, ledger = seen.run, seen.ledger
    room = ledger.gpu_capacity
    if room is None:
        return ()
    longest = Otherwise(say("every row as long as its cap"), _fullest(ledger, phase, at_cap=True))
    filling = [tokens for one in _counted_phases(ledger, phase) if (tokens := rows_that_fill(one, room))]
    if run.unlimited_rows and filling:
        longest = Otherwise(say("rows of {tokens} tokens, which no setting limits", tokens=f"{min(filling):,}"), room)
    found: list[Otherwise] = []
    for fact in () if ran else knobs:
        knob = run.knobs.get(fact.id)
        doubt = fact.not_in_force
        if doubt is None or knob is None or knob.source in _BUILT_IN or not knob.value:
            continue
        less = {name: replace(run.knobs[name], value=value) for name, value in doubt.knobs.items() if name in run.knobs}
        off = replace(run, knobs={**run.knobs, **less})
        found.append(Otherwise(doubt.says, _fullest(seen.ledger_of(off), phase), doubt.check))
    ways = (longest, *sorted(found, key=lambda one: -one.size))
    return tuple(one for one in ways if room * FILLED < one.size < room * BEYOND)


def _counted_phases(ledger: Ledger, phase: Phase) -> Sequence[PhaseSum]:
    """The phase; all of the card where none of that name is counted."""
    here = ledger.phase("gpu", phase)
    return [here] if here is not None else ledger.sums("gpu")


def _fullest(ledger: Ledger, phase: Phase, *, at_cap: bool = False) -> int:
    """Bytes of the phase, of the fullest where none of that name is counted."""
    return max((one.by_data[1] if at_cap else one.expected for one in _counted_phases(ledger, phase)), default=0)
