"""Says what would make a run fit that no set of changes brings onto its machine: each way is computed before it is
named.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from math import ceil

from advisor.language import clauses, listed, mark, say, sentences
from advisor.memory.cells import Place
from advisor.memory.fit import worst_of_each_place
from advisor.memory.ledger import implausible, peak_rises
from advisor.memory.predict import Overrides, Prediction
from advisor.memory.squeeze import finding_clause, squeeze_clause, with_switches
from advisor.plan.by_hand import needed_on_host
from advisor.plan.situation import Situation
from advisor.plan.sizes import smallest_card
from advisor.run.run import Knob
from advisor.units import GIB, show_bytes
from advisor.words import sentence

TIMES_NODES = (2, 4, 8, 16)
"""Batches and groups divide by the nodes: they are doubled."""
LARGER = 1.1
"""Times the card there is: less is the same card, counted with and without what its driver keeps."""
ASSUMPTIONS = 3
"""Of what a count assumes, so much is named."""
NODE_KNOBS = ("topology.nodes", "topology.actor_nodes", "topology.reference_nodes", "topology.critic_nodes")
LORA = {
    "actor.lora_rank": Knob("actor.lora_rank", 32, "assumed"),
    "actor.full_finetuning": Knob("actor.full_finetuning", False, "assumed"),
}
_BF16 = Knob("actor.load_precision", "bf16", "assumed")
_ADAPTERS = (LORA["actor.lora_rank"], _BF16, Knob("actor.quantized_bits", 4, "assumed"))
_WITH_ADAPTERS = (
    mark("LoRA in place of training all weights (results change)"),
    mark("LoRA on a base that is loaded in bf16, in place of training all weights (results change)"),
    mark("QLoRA, adapters on a base in 4 bits, in place of training all weights (results change)"),
)
"""Knobs that the framework has to have, set beside LoRA's, and the words of that; the mildest first."""

_OFFLOAD = ("actor.param_offload", "actor.full_cpu_offload")


def ways_out(situation: Situation, chosen: Overrides, all_of_them: Overrides) -> str:
    """What would do beside the chosen changes, else beside all of them; that nothing tried does, where that is so."""
    now = situation.now
    guessed = [*now.ledger.assumed, *now.run.doubts, *now.ledger.doubts]
    assumed = clauses(one.rstrip(".。") for one in guessed[:ASSUMPTIONS])
    if _fits(situation.predictor.predict(all_of_them)):
        each = [(key.lstrip("-"), say("removed") if new is None else new) for key, new in all_of_them.items()]
        return say("By this count these are enough, together: {every}.", every=listed(map(" ".join, each)))
    for beside in (chosen, all_of_them):
        if found := list(_ways(situation, beside)):
            told = {"ways": listed(found), "assumed": assumed}
            if guessed:
                return say(
                    "By this count the changes below are not enough; with one of these beside them the run would fit: "
                    "{ways}. The count may be wrong, for it assumes: {assumed}.",
                    **told,
                )
            left = _uncounted(situation, all_of_them)
            return sentences(
                (
                    say("None of those listed is enough by this count."),
                    say("Not counted here, and to be tried before other hardware: {levers}.", levers=left)
                    if left
                    else "",
                    _adapters_are_little(situation, beside),
                    say("Beside them, any of these would be, by the same arithmetic: {ways}.", **told),
                )
            )
    if guessed:
        return say("What is enough hangs on what the count assumes: {assumed}.", assumed=assumed)
    return say(
        "None of those listed is enough by this count, nor beside them LoRA, the largest card or {times} times the "
        "nodes.",
        times=TIMES_NODES[-1],
    )


def _uncounted(situation: Situation, counted: Overrides) -> str:
    """The way to smaller states that no setting here carries and none of the changes brings: no count has it."""
    carriers = (one.key for knob in _OFFLOAD for one in situation.now.built.natives.carriers(knob))
    if (
        situation.place != "gpu"
        or situation.now.run.mechanics.trainer == "megatron"
        or any(key in counted for key in carriers)
        or any(map(situation.now.run.is_on, _OFFLOAD))
    ):
        return ""
    return say("weights and optimizer in host RAM (offload_param of DeepSpeed's ZeRO-3, cpu_offload of FSDP)")


def _ways(situation: Situation, chosen: Overrides) -> Iterator[str]:
    """What costs no machine first."""
    predictor = situation.predictor
    now = predictor.predict(chosen)
    yield from (say(words) for words, after in _with_adapters(situation, chosen)[:1] if _fits(after))
    if now.built.natives.carriers(_BF16.name) and _fits(predictor.predict(chosen, knobs={_BF16.name: _BF16})):
        yield say("weights and moments in bf16 (results change)")
    if now.unfit("gpu") == [] and now.unfit("host"):
        yield say("{size} GiB of RAM on each node", size=ceil(needed_on_host(now, predictor) / GIB))
    elif now.unfit("gpu") and now.squeeze is not None and now.ledger.host_limit is not None:
        more = say("{size} GiB of RAM on each node", size=ceil(now.squeeze.host_needs / GIB))
        yield with_switches(more, now.squeeze.host_with)
    nodes = _nodes(situation, chosen)
    if nodes is not None:
        yield with_switches(say("{nodes} such nodes", nodes=nodes[0]), nodes[1])
    own = {gpu.name for gpu in predictor.machine.usable}
    least = (predictor.machine.gpu_bytes or 0) * LARGER
    other = (card for card in situation.knowledge.gpus if not own & {card.name, *card.aliases})
    several = now.run.topology.actor_gpus > 1
    larger = [card for card in other if card.total_bytes > least and not (card.unified and several)]
    card = smallest_card(predictor, larger, chosen) if not now.unfit("host") else None
    if card is not None:
        yield say("cards like the {card}", card=card.name)
    model = _smaller_model(situation, chosen)
    if model:
        yield say("a smaller model, such as {model}", model=model)


def _with_adapters(situation: Situation, chosen: Overrides) -> list[tuple[str, Prediction]]:
    """The ways with adapters that the framework has, and what each comes to: the mildest that fits first, else the one
    that goes farthest; [] where adapters are trained already."""
    predictor, natives = situation.predictor, situation.now.built.natives
    if predictor.predict(chosen).run.trains_adapters:
        return []
    had = [each for each in zip(_ADAPTERS, _WITH_ADAPTERS, strict=True) if natives.carriers(each[0].name)]
    made = [(words, predictor.predict(chosen, knobs={**LORA, one.name: one})) for one, words in had]
    return [each for each in made if _fits(each[1])] or made[::-1]


def _adapters_are_little(situation: Situation, chosen: Overrides) -> str:
    """What is too much with adapters, where every way with them is; "" elsewhere."""
    for words, after in _with_adapters(situation, chosen)[:1]:
        over = next((one for one in after.fit.findings if one.reason == "over"), None)
        if over is not None:
            return say("{way} is not enough by itself: {over}.", way=say(words), over=finding_clause(over))
    return ""


def _fits(prediction: Prediction) -> bool:
    """Nothing is too full, and the card's size is known."""
    return prediction.unfit("gpu") == [] and not prediction.unfit("host")


def _nodes(situation: Situation, chosen: Overrides) -> tuple[int, str] | None:
    """The fewest nodes tried on which the run fits, with the chosen changes or with another offload, and which; None
    where it fits on none of them."""
    predictor = situation.predictor
    built, squeeze = predictor.built(chosen), predictor.predict(chosen).squeeze
    present, forms = built.run.topology.nodes, [("", {}), *(squeeze.forms if squeeze is not None else ())]
    carriers = [n for knob in NODE_KNOBS if (n := built.natives.carrier(knob)) is not None]
    for times in TIMES_NODES:
        wider = predictor.on(dataclasses.replace(predictor.machine, nodes=present * times))
        sizes = {n.key: str(n.value * times) for n in carriers if type(n.value) is int}
        for words, knobs in forms:
            if _fits(wider.predict({**chosen, **sizes}, knobs=knobs)):
                return present * times, words
    return None


def _smaller_model(situation: Situation, chosen: Overrides) -> str:
    """The largest model of the same family on which the run fits; "" where none does or the family is not known."""
    shape = situation.now.run.model
    if shape is None:
        return ""
    family = _family(shape.name)
    sees = bool(shape.vision_parameters)
    alike = (m for m in situation.knowledge.models if _family(m.name) == family and bool(m.vision_parameters) == sees)
    models = [m for m in alike if m.parameters < shape.parameters]
    for model in sorted(models, key=lambda one: -one.parameters):
        if _fits(situation.predictor.of_model(model.name).predict(chosen)):
            return model.name
    return ""


def _family(name: str) -> str:
    """ "qwen2.5" of "Qwen/Qwen2.5-7B-Instruct"."""
    return name.rpartition("/")[2].partition("-")[0].lower()


def shortfall(situation: Situation, after: Prediction, chosen: Overrides, told: bool) -> str:
    """What is too much after the selected steps, place by place; else what still stands in doubt. `told`: that it fits
    neither with offload nor without, where that is so.
    """
    if not after.ledger.gpu:
        return ""  # what is missing is told where the sums would be
    worst = worst_of_each_place(after.fit.findings)
    # the size of the place that did not run out decides nothing where no change moves anything there
    other: Place = "host" if situation.place == "gpu" else "gpu"
    moved = bool(chosen) and peak_rises(situation.now.ledger, after.ledger, other)
    against = [
        finding_clause(one)
        for one in worst
        if one.reason != "capacity"
        or ((moved or one.place == situation.place) and not (one.place == "gpu" and situation.rows_unknown))
    ]
    against = [] if after.run.quoted else against  # nor a sum of settings that nobody saw
    peak = after.ledger.peak("gpu")
    if against and peak is not None and not after.fit.of_defaults and implausible(after.run, after.ledger):
        return say(
            "Counted with defaults for what was not seen, lengths above all, a card of {room} would hold {size}: these "
            "are not the run's",
            size=show_bytes(peak.expected),
            room=show_bytes(after.ledger.gpu_capacity or 0),
        )
    if after.fit.verdict != "does_not_fit":
        said = after.run.doubts  # each face tells these at the head of its plan
        doubts = [doubt for doubt in after.ledger.doubts if after.fit.fits is not None and doubt not in said]
        return sentences([*doubts, sentence(clauses(against))]) if doubts else clauses(against)
    if after.squeeze is None:
        return clauses(against)
    ways = listed(_ways(situation, chosen)) if not told else ""
    return clauses([squeeze_clause(after.squeeze), say("what would fit: {ways}", ways=ways)]) if ways else ""
