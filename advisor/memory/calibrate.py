"""Corrects what the ledger predicted by what the crash measured: the difference becomes a cell, "unexplained"."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash, Reading
from advisor.crash.holders import held_by_others, idle_in_pool
from advisor.language import mark, say, sentences
from advisor.memory.amount import Amount, in_bytes, quantity
from advisor.memory.cells import ENGINE, Cell, Ledger, Note, Owner, PhaseSum, Place, note
from advisor.memory.constants import DOUBTFUL_SHARE, STAYED_SHARE
from advisor.memory.readings import Peak
from advisor.units import show_bytes
from advisor.words import PHASE_TITLES, Phase

_DOUBT = mark(
    "The settings of this script explain all but {extra} of the {needed} that {phase} needed at the least: script and "
    "log may not be of the same run, or a pass held what no setting shows (longer rows, more pictures, more copies)."
)
_DOUBT_OF_NO_PHASE = mark(
    "The settings of this script explain all but {extra} of the {needed} that it needed at the least, in whichever "
    "phase it was: script and log may not be of the same run, or a pass held what no setting shows (longer rows, more "
    "pictures, more copies)."
)
_DOUBT_AS_SAID = mark(
    "By the settings {phase} takes {predicted}, and you say that it ran out at {needed}: {extra} are explained by no "
    "setting. An input may be seen wrong (the model, the lengths, a file that was not given), another process may hold "
    "it, or it grows from step to step."
)

_ENGINE_STAYED = mark(
    "This run's own rollout engine ({name}) still held {held} of the card in {phase}, {over} more than it leaves there "
    "by the settings: it had not given its memory back."
)


_AWAKE: Phase = "rollout_generate"
_LIKE: Mapping[Owner, tuple[Owner, ...]] = {"logits": ("logits",), "kv_cache": ENGINE}
"""What a part of a correction follows, by the owner that it is counted to."""
_BY_MESSAGE = mark("by the message")
_KEPT = mark("what the run's own engine had not given back, by the log")
_MORE_COPIES = mark("more copies of them than are counted, by the log")
COPIES, OTHERS = 3, 0.5
"""Of the tensor that failed, as many copies as loss, entropy and backward pass hold beyond what is counted at the most;
of a rest, the part that other processes hold from which on it is theirs (judgement)."""
_IN_PIECES = 0.25
"""Part of a card in pieces from which they are no ordinary rest, which the sums count (judgement)."""


class Follows(Struct, frozen=True):
    """Bytes of a correction that follow what an owner is predicted to hold: they shrink with it as settings change."""

    size: int
    owner: Owner
    phase: Phase
    """In which its prediction is looked at."""
    then: int
    """What that was, of the run that the log saw."""
    note: Note


class Correction(Struct, frozen=True):
    """Bytes that the crash proves in `phase` beyond the prediction; of a GPU and an unknown phase, they are in none."""

    place: Place
    phase: Phase
    amount: Amount
    measured: int
    """Bytes that were needed (GPU) or used (host) when it died."""
    note: Note | None = None
    every_phase: bool = False
    doubt: str = ""
    """What a rest this large says about script and log, in a sentence; "" where it is an ordinary rest."""
    unexplained: int = 0
    """Bytes of it that neither a setting nor a process of the message explains, where that is no ordinary rest."""
    follows: Follows | None = None
    """Copies of logits, or what an engine kept; what is left is explained by nothing."""
    others: int = 0
    """Bytes that other processes held by the message, which this run's own cannot be."""

    @property
    def is_level(self) -> bool:
        """Whether the log printed what was held when it died, and not only the peak's beginning or a limit passed."""
        return self.place == "host" and self.note is None

    @property
    def extra(self) -> int:
        """Bytes beyond the prediction."""
        return round(self.amount.value)


def corrections(
    ledger: Ledger, crash: Crash, said: Place | None = None, of_logits: bool = False, alone: bool = False
) -> tuple[Correction, ...]:
    """What the first cause proves: on the GPU, in use + asked for; on the host, in use. And what the log read in phases
    that went well, where it is more than predicted.

    `said`: the memory that ran out by the user's word, where no log tells. `of_logits`: what was asked for is logits of
    this run by its size, so that a rest is copies of them before it is anything else. `alone`: the run has one process
    on a card, so that others are strangers.
    """
    read = _in_use(ledger, crash)
    proven = crash.verdict == "oom" and bool(crash.evidence)
    memory = crash.memory if proven and crash.memory != "unknown" else said
    fields = crash.evidence[0].fields if proven else {}
    if memory == "gpu":
        found = _gpu(ledger, crash.phase, fields, proven, alone)
        return (*(_as_copies(one, ledger, fields) if of_logits else one for one in found), *read)
    if memory == "host":
        return (*_host(ledger, crash, fields), *read)
    return read


def _in_use(ledger: Ledger, crash: Crash) -> tuple[Correction, ...]:
    """Phases that went well with more of the GPU in use than is predicted, by lines printed at their ends."""
    died = ledger.phase("gpu", crash.phase) or ledger.peak("gpu")
    most: dict[Phase, Reading] = {}
    for reading in crash.readings:
        if reading.kind == "used" and reading.bytes > (most[reading.phase].bytes if reading.phase in most else 0):
            most[reading.phase] = reading
    found = []
    for phase, reading in most.items():
        predicted = ledger.phase("gpu", phase)
        over = predicted is not None and reading.bytes > predicted.expected
        if predicted is None or not over or (died is not None and died.phase == phase and crash.memory == "gpu"):
            continue
        words = note(mark("the log, {where}"), where=f"{reading.file}:{reading.line}")
        amount = _read(mark("in use by the log"), reading.bytes) - _predicted(predicted)
        found.append(Correction("gpu", phase, amount, reading.bytes, words))
    return tuple(found)


Fields = Mapping[str, int | float | str]


def needed_on_gpu(fields: Fields) -> Amount | None:
    """Bytes of a card in use and asked for when it ran out, without what lay in pieces; None where no message tells."""
    total, free, tried = (fields.get(name) for name in ("total_bytes", "free_bytes", "tried_bytes"))
    if isinstance(total, int) and isinstance(free, int) and isinstance(tried, int) and free <= tried:
        needed = _read(mark("of the card"), total) - _read(mark("free"), free) + _read(mark("asked for"), tried)
        idle = idle_in_pool(fields) or 0
        return needed - _read(mark("in pieces"), idle) if idle > _IN_PIECES * total else needed
    return None


def _gpu(ledger: Ledger, phase: Phase, fields: Fields, by_log: bool, alone: bool) -> tuple[Correction, ...]:
    died = ledger.phase("gpu", phase)
    fullest = died or ledger.peak("gpu")
    if fullest is None or ledger.gpu_capacity is None:
        return ()
    needed, words = needed_on_gpu(fields), None
    if needed is None:
        needed = _read(mark("of the card"), ledger.gpu_capacity)
        words = Note(mark("it did not fit, so at least the whole card"))
    amount = needed - _predicted(fullest)
    if round(amount.value) <= 0:
        return ()
    found = Correction("gpu", died.phase if died else "unknown", amount, round(needed.value), words)
    if died is None:  # which phase it corrects is not known: the rest is told, and added to none
        if not by_log or not is_doubtful(found.extra, found.measured, fullest):
            return (found,)
        told = {"extra": show_bytes(found.extra), "needed": show_bytes(found.measured)}
        return (replace(found, doubt=say(_DOUBT_OF_NO_PHASE, **told), unexplained=found.extra),)
    if alone:
        found = replace(found, others=_bytes(fields, "other_process_bytes"))
    return (_doubted(found, died, ledger, fields, by_log),)


def _as_copies(found: Correction, ledger: Ledger, fields: Fields) -> Correction:
    """The rest as copies of the logits that failed, which follow them when settings change; as it is where it is more
    than a few of them, or was held by other processes."""
    phase, tried = ledger.phase("gpu", found.phase), _bytes(fields, "tried_bytes")
    others = (held_by_others(fields) or 0) - _bytes(fields, "engine_process_bytes")
    logits = phase.of("logits") if phase is not None else 0
    if not logits or found.extra > COPIES * tried or others > OTHERS * found.extra:
        return found
    copies = Follows(found.extra - found.others, "logits", found.phase, logits, Note(_MORE_COPIES))
    return replace(found, follows=copies, doubt="", unexplained=0)


def _read(name: str, size: int) -> Amount:
    """What was read; `name` is marked."""
    return in_bytes(name, size, basis="measured")


def _predicted(phase: PhaseSum) -> Amount:
    """The prediction that a rest is what lies above."""
    return _read(mark("predicted"), phase.expected)


def _doubted(found: Correction, phase: PhaseSum, ledger: Ledger, fields: Fields, by_log: bool) -> Correction:
    """With why the script may not be the whole story; as it is where the rest is within what a ledger leaves out. What
    the run's own engine held beyond its due is told as such, and neither doubted nor counted a second time."""
    needed = found.measured
    if not is_doubtful(found.extra, needed, phase):
        return found
    if not by_log:
        sizes = {"predicted": phase.expected, "needed": needed, "extra": found.extra}
        shown = {name: show_bytes(size) for name, size in sizes.items()}
        doubt = say(_DOUBT_AS_SAID, phase=PHASE_TITLES[phase.phase], **shown)
        return replace(found, doubt=doubt, unexplained=found.extra)
    held, others = _bytes(fields, "engine_process_bytes"), _bytes(fields, "other_process_bytes")
    over = held - phase.of(*ENGINE)
    stayed, rest = "", found.extra
    if over > needed * STAYED_SHARE:
        name, size = fields.get("engine_process", ""), show_bytes(held)
        stayed = say(_ENGINE_STAYED, name=name, held=size, phase=PHASE_TITLES[phase.phase], over=show_bytes(over))
        rest = found.extra - over
    rest -= max(0, others - held)
    told = say(_DOUBT, extra=show_bytes(rest), needed=show_bytes(needed), phase=PHASE_TITLES[phase.phase])
    doubt = sentences((stayed, told if is_doubtful(rest, needed, phase) else ""))
    awake = ledger.phase("gpu", _AWAKE)
    if stayed and awake is not None and (then := awake.of(*ENGINE)):
        found = replace(found, follows=Follows(over, "kv_cache", _AWAKE, then, Note(_KEPT)))
    return replace(found, doubt=doubt, unexplained=rest if is_doubtful(rest, needed, phase) else 0)


def is_doubtful(extra: int, needed: int, phase: PhaseSum) -> bool:
    """Whether so much beyond the prediction is no ordinary rest, which every ledger leaves out."""
    return extra > needed * DOUBTFUL_SHARE or extra > phase.expected


_IN_BACKWARD = ("backward", "_engine_run_backward")
"""Functions of torch below which the whole forward pass is held."""
LASTING: tuple[Owner, ...] = ("weights", "reference", "critic", "engine_weights")
"""Owners that are on a GPU from a phase's first moment, whatever has been computed."""
_TOO_MUCH = mark(
    "By the settings {phase} takes {predicted}, of which at least {held} must have been there when it failed, but only "
    "{used} were in use: something is counted too large, the model, the lengths or the sharding. That phase is scaled "
    "down to what the message shows, and what a change saves there with it."
)


class Overcount(Struct, frozen=True):
    """A prediction of the phase that died that is larger than what the message allows; `doubt` says why."""

    peak: Peak
    doubt: str


def overcount(ledger: Ledger, crash: Crash, seen: bool) -> Overcount | None:
    """Where the prediction of the phase that died exceeds what its message shows; None where it does not.

    A pass that failed on its way would have gone on to need more, so only what must have been there by then counts
    against the settings. `seen`: they are known; else what is above the message's sum is but a default.
    """
    phase = ledger.phase("gpu", crash.phase)
    if phase is None or crash.verdict != "oom" or crash.memory != "gpu" or not crash.evidence or phase.measured:
        return None
    cause = crash.evidence[0]
    needed, tried = needed_on_gpu(cause.fields), _bytes(cause.fields, "tried_bytes")
    if needed is None or phase.expected <= needed.value:
        return None
    size, used = round(needed.value), round(needed.value) - tried
    held = _held(phase, crash)
    if seen and held <= used * (1 + DOUBTFUL_SHARE):
        return None
    where = say("the message, {place}", place=f"{cause.file}:{cause.line}")
    sizes = {"predicted": phase.expected, "held": held, "used": used}
    told = {name: show_bytes(bytes_) for name, bytes_ in sizes.items()}
    doubt = say(_TOO_MUCH, phase=PHASE_TITLES[phase.phase], **told) if seen else ""
    return Overcount(Peak("gpu", phase.phase, size, where, predicted=phase.expected), doubt)


def _held(phase: PhaseSum, crash: Crash) -> int:
    """The least that was on the card when the phase failed: all of it in a backward pass, or where steps went well;
    nothing while the model loads, which arrives tensor by tensor."""
    if phase.phase == "model_load":
        return 0
    whole = bool(crash.steps_done) or any(frame.function in _IN_BACKWARD for frame in crash.frames)
    return sum(cell.low for cell in phase.cells if whole or cell.owner in LASTING)


def _bytes(fields: Fields, name: str) -> int:
    """A printed size; 0 where the message does not list it."""
    found = fields.get(name)
    return found if isinstance(found, int) else 0


def _host(ledger: Ledger, crash: Crash, fields: Fields) -> tuple[Correction, ...]:
    """What was in use: by the message, else by the log's readings of the node; the limit only where neither says."""
    phase = ledger.phase("host", crash.phase) or (ledger.within_steps() if crash.stepped else ledger).peak("host")
    if phase is None:
        return ()
    used, words = fields.get("node_used_bytes"), None
    read = [reading for reading in crash.readings if reading.kind == "host_used"]
    if isinstance(used, int):
        measured = _read(mark("in use on the node"), used)
    elif read:
        most = max(read, key=lambda reading: reading.bytes)
        measured = _read(mark("in use by the log"), most.bytes)
        words = note(mark("the log, {where}"), where=f"{most.file}:{most.line}")
    elif ledger.host_limit is not None:
        measured = _read(mark("of the limit"), ledger.host_limit)
        words = Note(mark("it was killed, so at least the limit"))
    else:
        return ()
    amount = measured - _predicted(phase)
    extra = round(amount.value)
    if extra <= 0:
        return ()
    rest = extra if extra > phase.expected else 0  # a node holds much that no setting names: more than half is too much
    return (Correction("host", phase.phase, amount, round(measured.value), words, every_phase=True, unexplained=rest),)


def corrected(ledger: Ledger, found: tuple[Correction, ...]) -> Ledger:
    """The ledger with an "unexplained" cell for each correction; it stays when settings change."""
    for correction in found:
        sums = ledger.sums(correction.place)
        fixed = tuple(_with(each, correction, ledger) for each in sums)
        ledger = replace(ledger, gpu=fixed) if correction.place == "gpu" else replace(ledger, host=fixed)
        if correction.doubt:
            ledger = replace(ledger, basis="estimated", doubts=(*ledger.doubts, correction.doubt))
    return ledger


def _with(phase: PhaseSum, correction: Correction, ledger: Ledger) -> PhaseSum:
    if phase.phase != correction.phase and (phase.measured or not correction.every_phase):
        return phase
    rest, cells = correction.amount, phase.cells
    if correction.others:
        strangers = in_bytes("of other processes", correction.others, basis="measured")
        rest, cells = rest - correction.others, (*cells, Cell("others", strangers, Note(_BY_MESSAGE)))
    if (part := correction.follows) is not None and (other := ledger.phase(correction.place, part.phase)) is not None:
        held = other.of(*_LIKE[part.owner])
        ratio = quantity("of what it was", held / part.then, "%", basis="estimated")
        cells = (*cells, Cell(part.owner, in_bytes("by the log", part.size, basis="measured") * ratio, part.note))
        rest = rest - part.size
    if rest.value > 0:
        cells = (*cells, Cell("unexplained", rest, correction.note))
    return replace(phase, cells=cells)
