"""What the cells of one node say."""

from __future__ import annotations

from advisor.language import mark, say
from advisor.memory import constants as c
from advisor.memory.batches import Role
from advisor.memory.formula import Words
from advisor.memory.inputs import Inputs
from advisor.memory.megatron import Split
from advisor.memory.parts import Part
from advisor.units import show_bytes, show_params

PROCESSES = mark("{count} worker processes x {each:g} GB + the driver {driver:g} GB")
PROCESSES_AND_HELPERS = mark(
    "{count} worker processes x {each:g} GB + the driver {driver:g} GB + {helpers} helper processes x {helper:g} GB"
)
OFF_CARD: dict[tuple[Role, str], str] = {
    ("actor", "weights"): mark("actor weights off the card: {size}"),
    ("actor", "optimizer"): mark("actor optimizer off the card: {size}"),
    ("critic", "weights"): mark("critic weights off the card: {size}"),
    ("critic", "optimizer"): mark("critic optimizer off the card: {size}"),
}
CPU_ADAM: dict[Role, str] = {
    "actor": mark("actor CPU Adam: {size} (4 master, 8 moments, 4 + 2 gradients)"),
    "critic": mark("critic CPU Adam: {size} (4 master, 8 moments, 4 + 2 gradients)"),
}
WEIGHTS: dict[Role, str] = {
    "actor": mark("actor weights: {size}"),
    "critic": mark("critic weights: {size}"),
}
SAMPLES = mark("{count:.0f} samples of {length} tokens")
SAMPLES_AND_IMAGES = mark(
    "{count:.0f} samples of {length} tokens, one image of {image:.1f} MB in pixel values a prompt"
)
ROUNDED = mark("{states}; at most x {most:.2f}: pinned blocks are rounded to powers of two")
ROUNDED_BACK = mark(
    "{states}; on the card now, torch keeps the pinned blocks; at most x {most:.2f}: pinned blocks are rounded to "
    "powers of two"
)


def stepping(inputs: Inputs, split: Split, fraction: float, per: float) -> str:
    """Part of Megatron's optimizer on the CPU."""
    return say(
        "{fraction:.0%} of the optimizer on the CPU: {per:g} B x {count} ranks ({split})",
        fraction=fraction,
        per=per,
        count=inputs.node_gpus,
        split=split.words,
    )


def weights(inputs: Inputs, role: Role) -> str:
    """A role's weights on the host."""
    return say(WEIGHTS[role], size=per_node(inputs, c.BF16))


def per_node(inputs: Inputs, per: float) -> str:
    """Bytes a parameter, times parameters, times what of the copies one node holds."""
    copies, count = inputs.node_part, show_params(inputs.parameters)
    if copies > 1:
        return say("{per:g} B x {count} parameters x {copies:g} copies", per=per, count=count, copies=copies)
    if copies < 1:
        return say(
            "{per:g} B x {count} parameters x {here} of {shards} GPUs",
            per=per,
            count=count,
            here=inputs.node_gpus,
            shards=inputs.shards,
        )
    return say("{per:g} B x {count} parameters", per=per, count=count)


def per_rank(inputs: Inputs, per: float, each: float) -> str:
    """The same of Megatron's ranks."""
    return say("{per:g} B x {count} x {ranks} ranks", per=per, count=show_params(round(each)), ranks=inputs.node_gpus)


def reference(inputs: Inputs, per: float) -> str:
    """A reference model that streams from the host."""
    return say("reference: {size}", size=per_node(inputs, per))


def engine_copies(each: Part, gpus: int) -> str:
    """Weights of sleeping engines."""
    return say("sleeping engines: {weights} x {gpus} GPUs", weights=each.formula, gpus=gpus)


def swap(each: float, gpus: int) -> str:
    """Swap space of engines."""
    return say("swap space of vLLM's V0 engine: {each} x {gpus} GPUs", each=show_bytes(each), gpus=gpus)


def stored(batch: Words, ceiling: float | None) -> str:
    """A batch in the object store; `ceiling`: bytes it may grow to."""
    if not ceiling:
        return say("the batch in Ray's object store: {batch}", batch=batch())
    return say(
        "the batch in Ray's object store: {batch}; it may grow to {ceiling}",
        batch=batch(),
        ceiling=show_bytes(ceiling),
    )


def loaded_by_all(inputs: Inputs, per: int) -> str:
    """Every rank loads the whole model."""
    return say(
        "every rank loads the model (tied embeddings cannot be built on the meta device): {per} B x {count} x {ranks} "
        "ranks"
        if inputs.shape.tied
        else "every rank loads the model (no sharded loading): {per} B x {count} x {ranks} ranks",
        per=per,
        count=show_params(inputs.parameters),
        ranks=inputs.node_gpus,
    )


def loaded_by_first(per: int, size: int) -> str:
    """Rank 0 loads it."""
    return say("rank 0 loads the model: {per} B x {count}", per=per, count=show_params(size))


def loaded_by_file(each: int, ranks: int) -> str:
    """Ranks read file by file."""
    return say("each rank reads one checkpoint file: {size} x {ranks}", size=show_bytes(each), ranks=ranks)


def page_cache(size: int) -> str:
    """Pages of the checkpoint's files."""
    return say("page cache of the checkpoint: 2 B x {count}", count=show_params(size))


def shards_to_disk(inputs: Inputs, per: float) -> str:
    """Shards that a checkpoint copies to the host."""
    return say("shards of weights and optimizer on their way to disk: {size}", size=per_node(inputs, per))


def collected(parameters: int) -> str:
    """A model collected on rank 0."""
    return say("rank 0 collects the model: 2 B x {count}", count=show_params(parameters))


def paged(most: float) -> str:
    """Moments that may leave the cards."""
    return say("moments in unified memory, where the cards are full: at most {size}", size=show_bytes(most))
