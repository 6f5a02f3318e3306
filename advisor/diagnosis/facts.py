"""Gathers the facts that tree, advisories and documented cases ask about, by name, each with its source."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash, Evidence
from advisor.crash.observations import fitted_in
from advisor.crash.statements import SHARED
from advisor.diagnosis.card_facts import card_name, grouped, host_user_facts, line_words, printed_facts, taken_before
from advisor.diagnosis.computing import computing_facts, process_facts, vendor_of
from advisor.diagnosis.course_facts import (
    bound_facts,
    course_facts,
    left_facts,
    metrics_facts,
    peak_facts,
    stated_facts,
)
from advisor.diagnosis.diagnosis import AnsweredBy
from advisor.diagnosis.event_facts import due_facts, earlier_facts, event_facts, merge_facts, resume_facts
from advisor.diagnosis.fact import Fact, value_of
from advisor.diagnosis.fact import Facts as Facts
from advisor.diagnosis.frame_facts import DATA_PARALLEL, backend_facts, frame_facts, source_facts
from advisor.diagnosis.from_record import record_facts
from advisor.diagnosis.ledger_facts import ledger_facts
from advisor.diagnosis.model_facts import least_logits, loaded_by, model_facts, saved_facts
from advisor.diagnosis.parts import part_facts
from advisor.diagnosis.run_facts import attention_facts, idle_cards, row_facts, run_facts, tells_of_training
from advisor.diagnosis.sharing_facts import sharing_facts, with_words
from advisor.diagnosis.state_facts import (
    copies_fill,
    cpu_adam_facts,
    flat_buffer,
    full_by_words,
    host_states,
    least_weights,
    off_card,
    state_facts,
)
from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Project
from advisor.language import listed, say
from advisor.machine.inventory import Machine
from advisor.memory.cells import Ledger, Match
from advisor.memory.constants import BF16, FP32
from advisor.memory.predict import printed_threshold
from advisor.memory.seen_sums import Otherwise
from advisor.regex import regex
from advisor.run.run import Run, Unread
from advisor.units import GIB, show_bytes
from advisor.watch.measured import Measured

FLASH = ("flash-attn", "flashattn")
"""Beginnings of the names under which FlashAttention is installed."""
LARGE_SHM_GB = 32
"""Loaders and NCCL of one node need some gigabytes: a /dev/shm of this size, mostly free, did not run out."""
ROOMY_PERCENT = 50
"""Of a /dev/shm in use: with half of it free, it was not what was full (judgement)."""
NEARLY_ALL, ROOMY = 90, 50
"""Percent of a node's RAM in use at the last reading: from the first on no limit below it was what the run met, below
the second one may have been (judgement)."""
ADAM = 3 * FP32
"""Bytes a parameter of Adam in mixed precision: fp32 weights and two moments."""
BELOW_RAM = 0.95
"""A limit so far below the RAM was set by somebody; less is what the kernel itself keeps (judgement)."""
OF_LOGITS = 2 * GIB
"""Bytes: an MLP of the usual models takes 30 to 60 KB a token, so this much would be 36 thousand tokens or more; logits
of 150 thousand words take it for 3500 (judgement)."""
OF_A_PASS = ("logits", "scores")
"""Tensors that only a pass makes."""
POOLS_THAT_SLEEP = (
    *("line.torch-memory-saver-alloc", "line.torch-memory-saver-oom", "line.cumem-oom"),
    "engine.pool_counted",
)
"""Lines of an allocator that an engine has only where it sleeps, and it sleeps to leave its cards to a trainer (vLLM's
cumem_allocator with enable_sleep_mode, SGLang's torch_memory_saver with enable_memory_saver)."""
_SWITCHES: Mapping[str, bool] = {"true": True, "false": False}
_COMMAND = 80
"""Characters of a command that are shown."""
DISKS = ("enospc", "enospc-disk", "disk-full", "disk-quota", "disk-told", "file-write-failed", "disk-nearly-full")
"""Signatures of a disk that is full, or nearly."""
WRITTEN = (
    (
        "ray",
        re.compile(r"/ray/session|outofdiskerror|local disk is full"),
        re.compile(r"ray/_private/external_storage"),
    ),
    (
        "data",
        re.compile(r"huggingface|/datasets?/|\.arrow|/\.cache/"),
        re.compile(r"(?:^|/)(?:datasets|pyarrow|huggingface_hub)/"),
    ),
    (
        "checkpoint",
        re.compile(r"checkpoint|global_step|ckpt|\.safetensors|optim\w*\.pt|inline_container"),
        re.compile(
            r"safetensors/|torch/serialization|torch/distributed/checkpoint|save_(?:checkpoint|model|pretrained)"
        ),
    ),
)
"""What a disk was written with: by the path that a line names, and by frames (datasets, safetensors, torch, Ray)."""


class DiagnosisInputs(Struct, frozen=True):
    """What facts are drawn from."""

    crash: Crash
    run: Run
    machine: Machine
    ledger: Ledger
    attribution: Sequence[Match] = ()
    measured: Measured | None = None
    """What a record of `watch` says of the run."""
    ran_with: Mapping[str, str] = {}
    """Library → version with which the same run fitted, as the user says."""
    otherwise: Callable[[bool], tuple[Otherwise, ...]] | None = None
    """What may be larger than counted; told whether steps were done before."""
    ran: bool = False
    """Steps were done before it died, by the log or by the user."""
    text: str = ""
    """What the launch file says, as it was written."""
    generates: bool = False
    """The user names a phase or a holder that only a run has which generates answers."""
    project: Project | None = None
    """The project whose tree the log or the script names."""
    unread: Unread | None = None
    """A missing file that would say how the states are sharded, also where no dialect takes its word."""


def gather_facts(known: DiagnosisInputs) -> dict[str, Fact]:
    """All facts that these sources prove, by name."""
    facts: dict[str, Fact] = {}
    facts.update(_crash_facts(known.crash))
    facts.update(record_facts(known.measured))
    facts.update(_figures(known.crash))
    facts.update(loaded_by(known.crash.frames, {**known.crash.libraries, **known.machine.libraries}))
    facts.update(run_facts(known.run))
    facts.update(computing_facts(known.crash))
    facts.update(sharing_facts(known.crash, known.run))
    facts.update(process_facts(known.run, known.crash, known.machine, facts))
    facts.update(idle_cards(known.run, facts))
    facts.update(model_facts(known.run))
    facts.update(saved_facts(known.run))
    if day := known.crash.dated:
        told = say("its lines are of {day} or older", day=day)
        facts["dated"] = Fact(int(day[:4]) * 100 + int(day[5:7]), "log", told)
    done = facts["steps_done"].value if "steps_done" in facts else None
    facts.update(event_facts(known.run))
    facts.update(due_facts(known.run, done if isinstance(done, int) else None))
    facts.update(merge_facts(known.crash.frames, known.text))
    facts.update(resume_facts(known.crash, known.run))
    facts.update(earlier_facts(known.crash, known.text, known.ran or known.crash.steps_seen))
    facts.update(metrics_facts(known.text))
    facts.update(bound_facts(known.text, known.crash))
    facts.update(attention_facts(known.run, {**known.crash.libraries, **known.machine.libraries}))
    facts.update(_machine_facts(known, sharded="sharded" in facts))
    roomy, watched = facts.get("host.roomy"), known.measured
    if roomy is not None and roomy.value and watched is not None and watched.node_kills == 0:
        facts |= {"killed.likely": replace(roomy, value=False)} if "killed.likely" in facts else {}  # not by the kernel
    facts.update(row_facts(known.run))
    if (vendor := vendor_of(known.crash, known.machine, load_knowledge().gpus, known.text)) != "nvidia":
        facts["vendor"] = Fact(vendor, "machine", say("whose card it is"))
    if known.project is not None and known.run.framework == "unknown":
        named = say("the log or the script names its tree")
        facts["project"] = Fact(known.project.name, "log", named)
        facts |= {"own_loop": Fact(True, "log", named)} if known.project.own_loop else {}
        facts |= {"trainer": Fact(known.project.trainer, "log", named)} if known.project.trainer else {}
    facts.update(part_facts(known.run, known.crash, known.text, known.generates, facts))
    facts.update(_served(known))
    if _DEEPSPEED.search("\n".join((known.text, *(frame.file for frame in known.crash.frames)))):
        facts["by_deepspeed"] = Fact(True, "script", say("DeepSpeed's own words"))
    if known.ran or known.crash.steps_seen:
        facts["ran"] = Fact(True, "log", say("steps were done before"))
    if known.ran_with:
        told = listed(f"{library} {version}" for library, version in known.ran_with.items())
        by_words = "" in (fitted := fitted_in(known.crash.observations)) or known.ran_with.keys() <= fitted.keys()
        facts["ran_with"] = (
            Fact(True, "log", say("by the words of the report it ran with {versions}", versions=told))
            if by_words
            else Fact(True, "user", say("it fitted with {versions}, you said", versions=told))
        )
    if (beside := facts.get("gpu.others_engine")) is not None and beside.value is True:
        facts["colocated"] = replace(beside, value=True)
    if (pool := next((facts[name] for name in POOLS_THAT_SLEEP if name in facts), None)) is not None:
        facts["engine.pool_sleeps"] = replace(pool, value=True)
        facts["colocated"] = replace(pool, value=True)
    facts.update(cpu_adam_facts(known.run, known.machine, facts.get("line.cpu-adam")))
    facts.update(off_card(known.run, known.crash, known.machine) if "line.states-made" in facts else {})
    model = known.run.model
    crash, parameters = known.crash, model.parameters if model is not None else None
    in_use = crash.evidence[0].fields.get("node_used_bytes") if crash.evidence else None
    used = in_use if isinstance(in_use, int) else None
    facts.update(host_user_facts(crash.top_users, parameters, crash.users_cut, used))
    facts.update(ledger_facts(known.ledger, known.run, known.crash, known.attribution, known.ran))
    if beside is not None and beside.value is True and (made := facts.get("attribution")) is not None:
        # what a pass asks for by its size says more than the run's own engine beside it
        facts["gpu.others_aside"] = replace(made, value=made.value in OF_A_PASS)
    if (whole := facts.get("weights.whole")) is not None:
        facts.setdefault("phase", Fact("model_load", "log", whole.because, whole.evidence))
    if not known.crash.lines_read and known.run.framework == "unknown" and not known.run.settings:
        facts["nothing_given"] = Fact(True, "script", say("neither a log nor a launch script was given"))
    words = known.crash.statements
    of_all = f"{SHARED}full" in words and not {f"{SHARED}offload", f"{SHARED}adapters"} & words
    if of_all and not {"states.least_share", "ledger.largest"} & facts.keys():
        facts.update(full_by_words(known.run, known.machine))
    return with_words(facts, known.crash, known.run)


_DEEPSPEED = regex(r'"(?:train_micro_batch_size_per_gpu|zero_optimization)"|/deepspeed/\w|--deepspeed\b')
"""What only a run under DeepSpeed has in its files or frames (deepspeedai/DeepSpeed docs/_pages/config-json.md)."""


def _served(known: DiagnosisInputs) -> dict[str, Fact]:
    """What a server is to this run that its own launch file starts: its engine, where that is another command's, else a
    judge or reward model."""
    words = load_knowledge().signatures.statements
    lines = enumerate(known.text.splitlines(), 1)
    found = [(number, one[0]) for number, line in lines if words and not line.lstrip().startswith("#")
             and (one := re.search(words.serves, line))]  # fmt: skip
    if not found:
        return {}
    number, command = found[0]
    because = say("line {line} of the launch file starts {command}", line=number, command=command)
    return {"served": Fact("engine" if known.run.topology.engine_elsewhere else "judge", "script", because)}


def scored(facts: Facts) -> dict[str, Fact]:
    """Whether a pass without gradients failed over one tensor so large that only its logits are: it keeps nothing."""
    phase, tried = facts.get("phase"), facts.get("gpu.tried_bytes")
    if phase is None or phase.value != "log_prob" or phase.source == "script" or tried is None:
        return {}
    if not isinstance(tried.value, int) or tried.value < OF_LOGITS:
        return {}
    told = {"size": show_bytes(tried.value)}
    because = say("{size} at once in a pass without gradients, which keeps no activations: logits are so large", **told)
    return {"scores.logits": Fact(True, "log", because, tried.evidence)}


def _crash_facts(crash: Crash) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    first = crash.evidence[0] if crash.evidence else None
    where = line_words(first) if first is not None else say("the log")
    index = (0,) if first is not None else ()
    if first is not None:
        facts["verdict"] = Fact(crash.verdict, "log", where, index)
        if crash.memory != "unknown":
            facts["memory"] = Fact(crash.memory, "log", where, index)
        if crash.signature:
            facts["signature"] = Fact(crash.signature, "log", where, index)
        facts.update(printed_facts(first, where))
    elif crash.lines_read:
        told = say("no crash in {count} lines", count=grouped(crash.lines_read))
        facts["verdict"] = Fact(crash.verdict, "log", told)
        if crash.memory == "none":
            facts["memory"] = Fact("none", "log", facts["verdict"].because)
    if crash.verdict == "not_oom" and not crash.signature:
        told = say("no failure in {count} lines", count=grouped(crash.lines_read))
        facts["failed"] = Fact(False, "log", told)
    if crash.preceded is not None:
        phase, line = crash.preceded
        told = say("line {line}, right before the failure", line=grouped(line))
        facts["right_after"] = Fact(phase, "log", told)
    if crash.phase != "unknown":
        facts["phase"] = Fact(crash.phase, "log", crash.phase_because or where, index)
    for number, evidence in enumerate(crash.evidence):
        facts.setdefault(f"line.{evidence.signature}", Fact(True, "log", line_words(evidence), (number,)))
    facts.update(taken_before(crash))
    facts.update(_shared_memory(crash.evidence))
    facts.update(_full_disk(crash))
    if crash.frames:
        facts.update(frame_facts(crash.frames))
    elif crash.source_line and first is not None:
        facts.update(source_facts(crash.source_line, first.line))
    facts.update(backend_facts(crash))
    facts.update(stated_facts(crash))
    facts.update(course_facts(crash))
    facts.update(left_facts(crash))
    return facts


def _figures(crash: Crash) -> dict[str, Fact]:
    """Knobs that lines of engines and libraries show to be in force; also where no dialect says what is."""
    because = say("a line of the log shows it")
    facts = {
        f"knob.{name}": Fact(
            float(value) if value.replace(".", "", 1).isdigit() else _SWITCHES.get(value, value), "log", because
        )
        for name, value in crash.engine_figures.items()
    }
    stage = value_of(facts, "knob.actor.zero_stage")
    return {**facts, "zero3": Fact(stage == 3, "log", because)} if stage is not None else facts


def _shared_memory(evidence: Sequence[Evidence]) -> dict[str, Fact]:
    """Whether `df` shows so large a /dev/shm, and so little of it in use, that it cannot have been full."""
    for number, one in enumerate(evidence):
        size, percent = one.fields.get("size"), one.fields.get("percent")
        if one.signature == "df-shm" and isinstance(size, (int, float)) and isinstance(percent, (int, float)):
            large = one.fields.get("unit") in ("T", "P") or (one.fields.get("unit") == "G" and size >= LARGE_SHM_GB)
            whole = f"{size:g}{one.fields.get('unit')}"
            because = say(
                "df: {percent:g}% of {size} in use ({line})", percent=percent, size=whole, line=line_words(one)
            )
            return {"shm.roomy": Fact(large and percent < ROOMY_PERCENT, "log", because, (number,))}
    return {}


def _full_disk(crash: Crash) -> dict[str, Fact]:
    """What was being written to the disk that was full: by the path in the line, the frames, or the phase."""
    for number, one in enumerate(crash.evidence):
        if one.signature not in DISKS:
            continue
        path = str(one.fields.get("path") or one.fields.get("path_") or one.text).lower()
        frames = " ".join(f"{frame.file}:{frame.function}" for frame in crash.frames) if number == 0 else ""
        for holds, by_path, by_frame in WRITTEN:
            if by_path.search(path) or by_frame.search(frames):
                return {"disk.holds": Fact(holds, "log", line_words(one), (number,))}
        if crash.phase == "checkpoint":
            return {"disk.holds": Fact("checkpoint", "log", crash.phase_because, (number,))}
    return {}


def _machine_facts(known: DiagnosisInputs, sharded: bool) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    machine = known.machine
    for library, version in {**known.crash.libraries, **machine.libraries}.items():
        source: AnsweredBy = "machine" if library in machine.libraries else "log"
        facts[f"library.{library}"] = Fact(version, source, f"{library} {version}")
    if machine.environment and machine.sources.get("gpus") == "measured":  # else nothing says that the run was here
        because = say("the packages of {environment}", environment=machine.environment)
        facts["flash_attn"] = Fact(any(name.startswith(FLASH) for name in machine.libraries), "machine", because)
    if machine.gpus:
        facts["gpu.name"] = Fact(card_name(machine.usable[0]), "machine", say("the machine"))
    if machine.gpu_bytes is not None:
        facts["gpu.total_bytes"] = Fact(machine.gpu_bytes, "machine", say("the machine"))
    seen = tells_of_training(known.run) or bool(known.crash.settings)  # a bare log does not say that all is trained
    replicated = any(DATA_PARALLEL.search(frame.file) for frame in known.crash.frames)
    replicated = replicated or bool(flat_buffer(known.run, known.crash))
    facts.update(state_facts(known.run, machine, known.unread, seen=seen, replicated=replicated, sharded=sharded))
    facts.update(least_logits(known.run, machine) if seen else {})
    facts.update(copies_fill(known.run, machine))
    facts.update(host_states(known.run, machine))
    if machine.gpu_bytes and known.run.model is not None:
        facts.update(least_weights(known.run, machine))
        bits = known.run.number("actor.quantized_bits") or 8 * BF16
        gathered = int(bits / 8 * known.run.model.parameters)
        share, whole = gathered / machine.gpu_bytes, show_bytes(gathered)
        card = show_bytes(machine.gpu_bytes)
        told = {"bits": f"{bits:g}", "weights": whole, "card": card}
        because = say("all weights in {bits} bits are {weights}, the card has {card}", **told)
        facts["gathered_weights.share"] = Fact(round(share, 3), "script", because)
        cards = max(len(machine.usable) * (machine.nodes or 1), known.run.topology.actor_gpus or 1)  # a log shows one
        of_each = ADAM * known.run.model.parameters / max(1, cards)
        told = {"optimizer": show_bytes(round(of_each)), "card": card}
        because = say("shared over all cards the optimizer state is {optimizer}, a card has {card}", **told)
        facts["optimizer.card_share"] = Fact(round(of_each / machine.gpu_bytes, 3), "script", because)
    facts.update(peak_facts(known.crash, machine.gpu_bytes))
    facts.update(_by_reading(known.crash))
    if (threshold := printed_threshold(known.crash)) is not None:
        facts["host.threshold"] = Fact(threshold, "log", say("Ray's message names it"))
    return {**facts, **_limit_fact(known.crash, machine, facts)}


def _limit_fact(crash: Crash, machine: Machine, facts: Facts) -> dict[str, Fact]:
    """Whether a limit of container or job lies below the RAM: by its size, else by who ended the run."""
    host = machine.host
    if host.limit_bytes is not None and host.total_bytes:
        below = host.limit_bytes < host.total_bytes * BELOW_RAM
        sizes = {"limit": show_bytes(host.limit_bytes), "total": show_bytes(host.total_bytes)}
        because = say("{source}: {limit} of {total}", source=host.limit_source or say("a limit"), **sizes)
        source: AnsweredBy = "script" if machine.sources.get("host.limit") == "script" else "machine"
        return {"host.limit_below_ram": Fact(below, source, because)}
    ended = next((one for one in load_knowledge().signatures.signatures if one.id == crash.signature), None)
    if "host.limit_below_ram" in facts or ended is None or ended.limit != "job" or not crash.evidence:
        return {}
    because = say("its own limit ended the job (line {line})", line=grouped(crash.evidence[0].line))
    return {"host.limit_below_ram": Fact(True, "log", because, (0,))}


def _by_reading(crash: Crash) -> dict[str, Fact]:
    """How full the machine's RAM was; nearly all of it in use shows that no limit lay far below it.

    Readings of the whole machine know no container; the last one of a log stands nearest to its end.
    """
    if crash.host_filled is None:
        return {}
    percent, line = crash.host_filled
    because = say("{percent:.1f}% of the machine's RAM were in use (line {line})", percent=percent, line=grouped(line))
    full = {"host.limit_below_ram": Fact(False, "log", because)} if percent >= NEARLY_ALL else {}
    return {"host.roomy": Fact(percent < ROOMY, "log", because), **full}
