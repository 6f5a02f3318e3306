"""Counts what full training holds for each parameter, by its sharding alone: on a card, in host RAM, and while it loads
or saves. It needs no dialect: a stage, a count of cards and the parameters are enough."""

from __future__ import annotations

import re

from msgspec import Struct

from advisor.crash.evidence import Crash
from advisor.diagnosis.card_facts import largest_card
from advisor.diagnosis.fact import Fact
from advisor.diagnosis.model_facts import may_train_all, names_adapters, trains_adapters
from advisor.diagnosis.sharing_facts import stage_in_words
from advisor.language import say
from advisor.machine.inventory import Machine
from advisor.memory.attribution import flat_width, tried_bytes
from advisor.memory.constants import BF16, FP32
from advisor.memory.parameters import bytes_of
from advisor.memory.trainer import trainer_of
from advisor.regex import regex
from advisor.run.natives import default_bits
from advisor.run.run import Run, Unread, evaluates_only
from advisor.run.shape import bits_in_name, served_bits
from advisor.units import GIB, show_bytes, show_params

MASTERS_AND_MOMENTS = 3 * FP32
"""Bytes a parameter of mixed precision's fp32 weights and Adam's two moments."""
STATES_IN_FULL = MASTERS_AND_MOMENTS + BF16 + BF16
"""Bytes a parameter of training in full with Adam in mixed precision."""
MOSTLY, LARGE_NODE = 0.8, 512 * GIB
"""Part of a node's RAM, and bytes of one whose size nobody says, that copies of the weights may take (judgement)."""
LARGE_STATES = 64 * GIB
"""Bytes of states in a node's RAM beside which loader processes and arenas are small (judgement)."""
LEFT_ON_CARD = 0.1
"""Part of a card's share of the weights: less is what stays of offloaded ones (judgement)."""
_OFFLOADS = ("actor.optimizer_offload", "actor.param_offload", "actor.full_cpu_offload")
_FULL = regex(r"(?:^|[^a-z])full(?:[^a-z]|$|fine|param|sft)", re.IGNORECASE)
"""In a value, a file's name or a program's: all weights are trained ("finetuning_type full", "config_full.yaml")."""
_OFF = frozenset(("", "0", "false", "no", "none", "null"))


class Shared(Struct, frozen=True):
    """How the states of a run are shared out. `stage` as of ZeRO: 1 the optimizer's, 2 gradients too, 3 weights too."""

    stage: int
    optimizer_on_host: bool = False
    weights_on_host: bool = False
    named: str = ""
    """What says so: a file's name; "" where a setting or the framework itself does."""


def sharing_of(run: Run, unread: Unread | None) -> Shared | None:
    """By a setting, by the name of a file that nobody read, else by the trainer; None where nothing tells."""
    by_name = dict(unread.knobs) if unread is not None and run.framework == "unknown" else {}
    stage = run.number("actor.zero_stage")
    told = by_name.get("actor.zero_stage")
    if stage is None and told is not None:
        file = unread.file if unread is not None else ""
        optimizer, weights = (bool(by_name.get(f"actor.{name}_offload")) for name in ("optimizer", "param"))
        return Shared(int(told), optimizer, weights, file)
    moved = [run.is_on(name) for name in _OFFLOADS]
    if run.unsharded:
        return Shared(0)
    if stage is None and (worded := stage_in_words(run)) is not None:
        return Shared(worded[0], worded[1], worded[1] and worded[0] > 2)
    if stage is not None:
        return Shared(int(stage), moved[0] or moved[2], moved[1] or moved[2])
    sharded = run.framework != "unknown" and run.mechanics.trainer in ("fsdp", "megatron")
    return Shared(3, moved[0] or moved[2], moved[1] or moved[2]) if sharded else None


def trains_all(run: Run, shared: Shared | None) -> bool:
    """Whether all weights are trained as far as anybody can see. A program without a dialect may make adapters or pack
    its weights by itself: something has to say that it is full training, as a word, a launcher that shards nothing
    though it starts a process a card, or a sharding of its states do."""
    if run.trains_adapters or evaluates_only(run):
        return False
    if run.framework != "unknown":
        return True
    if names_adapters(run):
        return False
    words = (*(one.text for one in run.settings if one.text.lower() not in _OFF), *run.missing_files)
    told = any(_FULL.search(word.replace("_shard", "")) for word in words)
    return told or bool(run.unsharded) or (shared is not None and shared.stage > 0)


def state_facts(
    run: Run,
    machine: Machine,
    unread: Unread | None = None,
    *,
    seen: bool = True,
    replicated: bool = False,
    sharded: bool = False,
) -> dict[str, Fact]:
    """states.least_share and .unshared of a card, host.offload_share of a node's RAM; {} where they are not known.

    Where nothing says that all weights are trained, nor that they are not, states.if_full_share. `seen`: settings of
    the run are; `replicated`: the failing code keeps a whole copy on every card (torch's DataParallel), or asks for
    one; `sharded`: the log says that the cards share the states.
    """
    shared = Shared(0) if replicated else sharing_of(run, unread) or (Shared(3) if sharded else None)
    if run.model is None:
        return {}
    whole = seen and trains_all(run, shared)
    on_card = _on_card(run, machine, shared, whole, replicated) if whole or may_train_all(run) else {}
    return {**on_card, **(_on_host(run, machine, shared) if whole else {})}


def _on_card(run: Run, machine: Machine, shared: Shared | None, whole: bool, replicated: bool) -> dict[str, Fact]:
    """The part of a card that full training takes at the very least: where nothing says how its states are shared out,
    evenly over all GPUs."""
    card = machine.gpu_bytes or (largest_card() if run.unsharded else 0)
    ways = 1 if replicated else sharing_gpus(run, machine)
    if run.model is None or not card:
        return {}
    assumed = any(gpu.problem for gpu in machine.usable)
    untold = not whole and shared is None and ways != 1 and not (assumed or run.recipe.answers == "generated")
    alone = _unshared(run, card, ways) if untold else {}
    if not ways:
        return alone
    if shared is not None and (shared.optimizer_on_host or shared.weights_on_host):
        return {}
    each = bytes_of(run, trainer_of(run))  # by the optimizer and the precision that the settings name
    weights, gradients, optimizer = each.weights, each.gradients, each.optimizer
    if shared is not None and run.framework == "unknown" and (shared.named or 0 < shared.stage < 3):
        weights, gradients, optimizer = BF16, BF16, MASTERS_AND_MOMENTS  # DeepSpeed's, whatever trains
    reference = _reference_bytes(run)
    weights += reference
    stage = 3 if shared is None else shared.stage
    per = weights / (ways if stage >= 3 else 1) + gradients / (ways if stage >= 2 else 1)
    least = int((per + optimizer / (ways if stage >= 1 else 1)) * run.model.parameters)
    of = _summed(run.model.parameters, weights + gradients + optimizer, reference)
    told = {"size": show_bytes(least), "count": ways, "stage": stage, "card": show_bytes(card), "of": of}
    if ways == 1 or shared is None:
        because = _evenly(least, ways, card, of)
    elif 0 < stage < 3:
        because = say(
            "ZeRO stage {stage}: the states alone are at least {size} on each of {count} GPUs; a card has {card}",
            **told,
        )
    else:
        because = say("the states alone ({of}) are at least {size} on each of {count} GPUs; a card has {card}", **told)
    fact = Fact(round(least / card, 3), "script", because)
    if not whole:
        larger = 2 * card if assumed else 0  # the other card of that name has no more
        return {**({"states.if_full_share": fact} if least >= larger else {}), **alone}
    return {"states.least_share": fact, "states.unshared": Fact(shared is not None and stage < 3, "script", because)}


def _evenly(least: int, ways: int, card: int, of: str) -> str:
    told = {"size": show_bytes(least), "count": ways, "card": show_bytes(card), "of": of}
    if ways == 1:
        return say("the states alone ({of}) are {size}; a card has {card}", **told)
    return say(
        "even shared over all {count} GPUs, the states alone ({of}) are {size} on each; a card has {card}", **told
    )


def _summed(parameters: float, each: float, reference: int = 0) -> str:
    """Parameters times bytes, and how many of these are the frozen reference's."""
    of = say("{parameters} parameters × {bytes:g} bytes", parameters=show_params(parameters), bytes=each)
    return say("{of}, of which {few} are the reference's", of=of, few=reference) if reference else of


def _reference_bytes(run: Run) -> int:
    """Bytes per parameter of the frozen copy that a method on given answers compares with, where it is known to have
    one on the card."""
    named = run.recipe.answers == "given" and run.algorithm != "preference" and run.has_reference
    return BF16 if named and not run.is_on("reference.offload") else 0


def _unshared(run: Run, card: int, ways: int) -> dict[str, Fact]:
    """states.if_unshared_share: what full training takes of each card where every card holds all of it, as in plain
    data parallelism. `ways`: cards that may share it; 0 where nobody knows."""
    if run.model is None:
        return {}
    reference = _reference_bytes(run)
    size = (STATES_IN_FULL + reference) * run.model.parameters
    told = {"size": show_bytes(size), "part": show_bytes(size // max(1, ways)), "count": ways, "card": show_bytes(card)}
    told["of"] = _summed(run.model.parameters, STATES_IN_FULL + reference, reference)
    because = (
        say(
            "{of} are {size} on each card unless something shares them out (plain DDP does not), and {part} shared "
            "over {count}; a card has {card}",
            **told,
        )
        if ways
        else say(
            "{of} are {size} on each card unless something shares them out (plain DDP does not); a card has {card}",
            **told,
        )
    )
    return {"states.if_unshared_share": Fact(round(size / card, 3), "script", because)}


def sharing_gpus(run: Run, machine: Machine) -> int:
    """Cards that share the states at the most: those of the launch; where nothing shows one, all that are told. 0 where
    nobody knows."""
    if run.topology.known:
        return max(1, run.topology.actor_gpus * run.topology.process_gpus)
    return 0 if machine.more_gpus else len(machine.usable) * (machine.nodes or 1)


def most_in_full(run: Run, machine: Machine) -> int:
    """Parameters whose states all cards together hold, where these and their size are told; else 0."""
    told = machine.gpu_bytes and not any(gpu.problem for gpu in machine.usable)
    return (machine.gpu_bytes or 0) * sharing_gpus(run, machine) // STATES_IN_FULL if told else 0


def least_weights(run: Run, machine: Machine) -> dict[str, Fact]:
    """The part of a card that the engine's weights take, and the trainer's at the least, shared evenly over all cards
    that are known; not of weights that may be packed into fewer bits, or lie in host RAM."""
    model, card, ways = run.model, machine.gpu_bytes, max(1, len(machine.usable) * (machine.nodes or 1))
    if model is None or not card:
        return {}
    facts: dict[str, Fact] = {}
    each, stated = engine_weights(run)
    if each and (stated or each < card):  # no engine starts with more: what spreads it was not seen
        told = {"size": show_bytes(each), "card": show_bytes(card), "count": run.topology.tensor_parallel}
        because = (
            say("the engine's weights are {size} of each of its cards; a card has {card}", **told)
            if stated
            else say(
                "the engine's weights are {size} of each of its cards at the default tensor-parallel size of {count}; "
                "a card has {card}",
                **told,
            )
        )
        facts["engine.weights_share"] = Fact(round(each / card, 3), "script", because)
    if any(run.is_on(name) for name in _OFFLOADS[1:]):
        return facts
    packed = run.number("actor.quantized_bits") or bits_in_name(run.model_name) or model.stored_bits
    width = (packed or default_bits(run) or 8 * BF16) / 8
    least = int(width * model.parameters) // ways
    told = {"parameters": show_params(model.parameters), "size": show_bytes(least), "card": show_bytes(card)}
    told |= {"bytes": f"{width:g}"}
    because = (
        say("the weights alone ({parameters} parameters × {bytes} bytes) are {size}; a card has {card}", **told)
        if ways == 1
        else say(
            "even shared over all {count} GPUs, the weights alone ({parameters} parameters × {bytes} bytes) are {size} "
            "on each; a card has {card}",
            count=ways,
            **told,
        )
    )
    return {**facts, "weights.least_share": Fact(round(least / card, 3), "script", because)}


def engine_weights(run: Run) -> tuple[int, bool]:
    """Bytes of a card that the rollout engine's weights take, 0 where none is known, and whether the launch says over
    how many cards they are spread."""
    if run.model is None or run.recipe.answers != "generated" or not run.topology.known:
        return 0, False
    size = run.knobs.get("rollout.tensor_parallel")
    stated = run.seen_whole or (size is not None and size.source not in ("default", "assumed"))
    each = served_bits(run.model_name, run.model) * run.model.parameters // 8 // run.topology.tensor_parallel
    return each, stated


def full_by_words(run: Run, machine: Machine) -> dict[str, Fact]:
    """states.least_share of a run of which a report says that all weights are trained, shared evenly over all cards
    that are known: Adam in mixed precision, whatever trains."""
    card, ways = machine.gpu_bytes, len(machine.usable) * (machine.nodes or 1)
    if run.model is None or not card or not ways or run.trains_adapters:
        return {}
    least = STATES_IN_FULL * run.model.parameters // ways
    of = _summed(run.model.parameters, STATES_IN_FULL)
    because = _evenly(least, ways, card, of)
    return {"states.least_share": Fact(round(least / card, 3), "log", because)}


def host_states(run: Run, machine: Machine) -> dict[str, Fact]:
    """host.states_large and, where a node's RAM is told, host.states_share: what all states take of a node, should all
    weights be trained and lie there."""
    ram = machine.host.ceiling_bytes
    if run.model is None or not may_train_all(run):
        return {}
    size = STATES_IN_FULL * run.model.parameters // (machine.nodes or run.topology.nodes or 1)
    told = {"parameters": show_params(run.model.parameters), "bytes": STATES_IN_FULL, "size": show_bytes(size)}
    because = say("the states of {parameters} parameters × {bytes} bytes are {size} on a node", **told)
    least = min(LARGE_STATES, MOSTLY * ram) if ram else LARGE_STATES
    large = {"host.states_large": Fact(size >= least, "script", because)}
    if not ram:
        return large
    because = say(
        "the states of {parameters} parameters × {bytes} bytes are {size} on a node; it has {ram}",
        ram=show_bytes(ram),
        **told,
    )
    return {**large, "host.states_share": Fact(round(size / ram, 3), "script", because)}


def flat_buffer(run: Run, crash: Crash) -> dict[str, Fact]:
    """weights.flat: that what was asked for is as much as all parameters take. No pass asks for that, but gradients, or
    the copy that an optimizer keeps, in one flat buffer that nothing shards; of adapters neither has any."""
    tried, width = tried_bytes(crash), flat_width(run, crash, 1)
    if tried is None or not width or run.model is None:
        return {}
    told = {"size": show_bytes(tried), "parameters": show_params(run.model.parameters), "bytes": width}
    because = say("{size} at once is all of the {parameters} parameters × {bytes} bytes, in one piece", **told)
    return {"attribution": Fact("weights", "log", because, (0,)), "weights.flat": Fact(True, "log", because, (0,))}


def copies_fill(run: Run, machine: Machine) -> dict[str, Fact]:
    """host.copies_fill: whether a copy of the weights in each rank of a node is more than most of its RAM, or than
    nodes of an unknown size mostly have."""
    ranks, ram = len(machine.usable), machine.host.ceiling_bytes
    if run.model is None or ranks <= 1:
        return {}
    size = BF16 * run.model.parameters * ranks
    told = {"count": ranks, "size": show_bytes(size), "ram": show_bytes(ram or 0)}
    because = (
        say("{count} ranks that each load a copy hold {size}; the node has {ram}", **told)
        if ram
        else say("{count} ranks that each load a copy hold {size}", **told)
    )
    return {"host.copies_fill": Fact(size > (MOSTLY * ram if ram else LARGE_NODE), "script", because)}


def _on_host(run: Run, machine: Machine, shared: Shared | None) -> dict[str, Fact]:
    """The part of a node's RAM that offloaded states take, and that they are offloaded, where no dialect says so."""
    if run.model is None or shared is None or not (shared.optimizer_on_host or shared.weights_on_host):
        return {}
    facts: dict[str, Fact] = {}
    if shared.named:
        because = say("by the name of {file}", file=shared.named)
        facts["knob.actor.optimizer_offload"] = Fact(shared.optimizer_on_host, "script", because)
        facts["knob.actor.param_offload"] = Fact(shared.weights_on_host, "script", because)
    ram, size = machine.host.ceiling_bytes, offloaded_bytes(run, shared)
    if ram:
        told = {"size": show_bytes(size), "ram": show_bytes(ram), "parameters": show_params(run.model.parameters)}
        because = say("offloaded states of {parameters} parameters: {size} of the {ram} of a node", **told)
        facts["host.offload_share"] = Fact(round(size / ram, 3), "script", because)
    return facts


def cpu_adam_facts(run: Run, machine: Machine, line: Fact | None) -> dict[str, Fact]:
    """host.cpu_adam: the log makes an optimizer on the CPU, and what its states take. `line`: which says so."""
    if line is None:
        return {}
    model, ram = run.model, machine.host.ceiling_bytes
    if model is None or trains_adapters(run):  # their states are small
        because = say("{line} makes an optimizer on the CPU, whose states lie in host RAM", line=line.because)
        return {"host.cpu_adam": Fact(True, "log", because, line.evidence)}
    told: dict[str, object] = {
        "line": line.because,
        "parameters": show_params(model.parameters),
        "bytes": MASTERS_AND_MOMENTS,
    }
    told["size"] = show_bytes(int(MASTERS_AND_MOMENTS * model.parameters))
    because = say(
        "{line} makes an optimizer on the CPU: its fp32 weights and two moments ({parameters} parameters × {bytes} "
        "bytes) are {size} of host RAM, all nodes together, and gradients come beside them",
        **told,
    )
    if ram:
        because = say("{because}; a node has {ram}", because=because, ram=show_bytes(ram))
    return {"host.cpu_adam": Fact(True, "log", because, line.evidence)}


def off_card(run: Run, crash: Crash, machine: Machine) -> dict[str, Fact]:
    """host.off_card: while the states are made the card holds next to nothing of the weights, so they lie in RAM."""
    reading = next((one for one in reversed(crash.readings) if one.kind == "allocated"), None)
    if reading is None or run.model is None or trains_adapters(run):
        return {}
    count, ram = run.model.parameters, machine.host.ceiling_bytes
    if reading.bytes > LEFT_ON_CARD * BF16 * count / max(1, len(machine.usable)):
        return {}
    because = say(
        "With {held} on the card (line {line}) the states of {parameters} parameters × {bytes} bytes, {size} over all "
        "nodes, are made in host RAM",
        held=show_bytes(reading.bytes),
        line=reading.line,
        parameters=show_params(count),
        bytes=STATES_IN_FULL,
        size=show_bytes(STATES_IN_FULL * count),
    )
    because = say("{because}; a node has {ram}", because=because, ram=show_bytes(ram)) if ram else because
    return {"host.off_card": Fact(True, "log", because)}


def offloaded_bytes(run: Run, shared: Shared) -> int:
    """Bytes of a node that offloaded states take at the least: masters, moments and gradients where the optimizer steps
    on the CPU, and weights."""
    if run.model is None:
        return 0
    per = (MASTERS_AND_MOMENTS + BF16) * shared.optimizer_on_host + BF16 * shared.weights_on_host
    return int(per * run.model.parameters / max(1, run.topology.nodes))
