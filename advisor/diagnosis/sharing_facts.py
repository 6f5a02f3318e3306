"""Tells by names and words of a log that several GPUs share the states, where no launch says it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.crash.statements import ON, SHARED
from advisor.diagnosis.fact import Fact, Facts
from advisor.diagnosis.frame_facts import backend_facts
from advisor.language import mark, say
from advisor.regex import regex
from advisor.run.natives import last_part
from advisor.run.run import Knob, Run
from advisor.script.document import Setting

_FSDP = regex(r"\b_fsdp_wrapped_module\b|\bFlatParameter\b|torch/distributed/(?:fsdp|_composable/fsdp)/")
"""Names that only torch's FSDP puts into a line (pytorch/pytorch torch/distributed/fsdp/_common_utils.py)."""
FSDP = f"{SHARED}fsdp"
IN_FULL = (
    *("states.least_share", "states.if_full_share", "states.if_unshared_share", "states.unshared"),
    *("host.states_share", "host.states_large"),
)
OF_16_BITS = ("weights.least_share", "gathered_weights.share", "weights.whole", "weights.fp32")
OF_WORDS: tuple[tuple[str, str, bool | float, tuple[str, ...]], ...] = (
    (f"{SHARED}adapters", "lora", True, IN_FULL),
    (f"{SHARED}packed", "knob.actor.quantized_bits", 4.0, OF_16_BITS),
    (f"{SHARED}packed8", "knob.actor.quantized_bits", 8.0, OF_16_BITS),
)
"""Statement → the fact that it is, with its value, and the facts of whole weights in 16 bits that it refutes."""


def sharing_facts(crash: Crash, run: Run) -> dict[str, Fact]:
    """`sharded`, and `trainer` where FSDP's own names are there or somebody says that it trains; `saves.sharded` and
    `fsdp2` as accelerate's file has them.

    A setting that says how the states are shared decides instead; so does DeepSpeed's or Megatron's own code.
    """
    moved = _offloaded(crash)
    if run.unsharded or run.number("actor.zero_stage") is not None:
        return moved
    if of_file := _in_file(run):
        return {**moved, **of_file}
    shown = backend_facts(crash)
    if (stage := shown.get("zero3")) is not None:  # ZeRO steps where its states lie
        return {**moved, **shown, "cpu_adam": replace(stage, value=True)}
    number = next((at for at, one in enumerate(crash.evidence) if _FSDP.search(one.text)), None)
    if number is not None:
        named = say("line {line} bears FSDP's own names", line=crash.evidence[number].line)
        return {**moved, **{name: Fact(value, "log", named, (number,)) for name, value in _OF_FSDP.items()}}
    told = say("by the words of the text")
    if FSDP in crash.statements:
        return {**moved, **{name: Fact(value, "log", told) for name, value in _OF_FSDP.items()}}
    return {**moved, "sharded": Fact(True, "log", told)} if f"{SHARED}states" in crash.statements else moved


def with_words(facts: dict[str, Fact], crash: Crash, run: Run) -> dict[str, Fact]:
    """The facts with what the report says of adapters, packed weights and what is on, where no dialect reads the
    launch."""
    if run.framework != "unknown":
        return facts
    told = dict(facts)
    for statement, name, value, refuted in OF_WORDS:
        if statement in crash.statements and name not in told:
            told[name] = Fact(value, "log", say("by the words of the report"))
            told = {one: fact for one, fact in told.items() if one not in refuted}
    return {f"knob.{one.name}": Fact(True, "log", one.note) for one in states_told(crash).values()} | told


def unrefuted(facts: Facts) -> dict[str, Fact]:
    """The facts without the sums of whole weights in 16 bits that adapters, or a packed base, shown by the log
    refute."""
    shown = [sums for _, name, _, sums in OF_WORDS if (one := facts.get(name)) and one.source == "log" and one.value]
    refuted = set(chain.from_iterable(shown))
    return {name: fact for name, fact in facts.items() if name not in refuted}


_TOLD = {
    "actor.optimizer_offload": ("offload", mark("by the words of the report states are offloaded")),
    "actor.full_finetuning": ("full", mark("by the words of the report all weights are trained")),
}
"""Knob → the statement that it is on, which a setting's name may hold too, and how that is said."""


def states_told(crash: Crash, settings: Sequence[Setting] = ()) -> dict[str, Knob]:
    """What the words of the report say of the states; a setting of the launch says it better, by whatever name."""
    named = " ".join(one.key for one in settings)
    told = {
        name: note for name, (how, note) in _TOLD.items() if f"{SHARED}{how}" in crash.statements and how not in named
    }
    if f"{SHARED}adapters" in crash.statements:
        told.pop("actor.full_finetuning", None)
    told |= {name.removeprefix(ON): mark("by the words of the report") for name in crash.statements if name[:3] == ON}
    return {name: Knob(name, True, "log", note=say(note)) for name, note in sorted(told.items())}


def _offloaded(crash: Crash) -> dict[str, Fact]:
    found = states_told(crash).get("actor.optimizer_offload")
    return {f"knob.{found.name}": Fact(True, "log", found.note)} if found is not None else {}


_FSDP_ON = regex(r"(?:enable|use)_fsdp2?")
_STAGE = regex(r"(?:zero_optimization\.stage|deepspeed_config\.zero_stage)$")
_STAGE_WORDS = regex(
    r"(?i)(?:(?:deepspeed|ds)[ _-]?)?zero(?:[ _-]?(?:optimization|stage|level))*"
    r": ?\W*(?:(?:zero|stage)[ _-]*){0,2}([0-3])(?![.\d])"
    r"|\w*strategy: ?\w*?zero[_-]?([123])(?!\d)"
    r"|(?:deepspeed|ds)(?:[ _-]config)?: ?\W*(?:(?:deepspeed|zero|stage)[ _-]*){1,3}([0-3])(?![.\d])"
)
"""Key and value of a line: of DeepSpeed alone the value has to speak of a stage, or it is a version."""
_OFFLOADED = regex(r"(?i)(?<!no )(?<!without )(?:cpu[ _-]?)?\boffload|_cpu$")
_OFFLOADS = regex(r"zero_optimization\.offload_optimizer\.device$")
_TO_HOST = ("cpu", "nvme")
_OF_FSDP: dict[str, str | bool] = {"trainer": "fsdp", "sharded": True}


def stage_in_words(run: Run) -> tuple[int, bool, Setting] | None:
    """ZeRO's stage, whether something is offloaded, and the line that says so, of a list that a person wrote of the run
    ("ZeRO stage: 2 (with CPU offload)"); None where none does."""
    for one in run.settings if run.framework == "unknown" else ():
        stage = _STAGE_WORDS.match(f"{one.key}: {one.text}") if one.resolved else None
        if stage is not None:
            return int(stage[1] or stage[2] or stage[3]), _OFFLOADED.search(one.text) is not None, one
    return None


def _in_file(run: Run) -> dict[str, Fact]:
    """What accelerate's file says of FSDP (huggingface/accelerate@v1.7.0 docs, FSDP), or DeepSpeed's of its stage
    and of where its optimizer lies (deepspeedai/DeepSpeed@v0.16.4 deepspeed/runtime/zero/config.py), where no dialect
    reads it."""
    if run.framework != "unknown":
        return {}

    def fact(value: bool | str, of: Setting) -> Fact:
        return Fact(value, "script", f"{of.key} = {of.text}")

    def by_zero(third: bool, stage: Setting, offload: Setting | None) -> dict[str, Fact]:
        held = {"knob.actor.optimizer_offload": fact(True, offload)} if offload is not None else {}
        return {"trainer": fact("deepspeed", stage), "zero3": fact(third, stage), "cpu_adam": fact(True, stage), **held}

    stated = {last_part(one.key): one for one in run.settings if one.resolved}
    stage = next((one for one in run.settings if one.resolved and _STAGE.search(one.key)), None)
    if stage is not None:
        moved = next((one for one in run.settings if one.resolved and _OFFLOADS.search(one.key)), None)
        return by_zero(stage.text == "3", stage, moved if moved is not None and moved.text in _TO_HOST else None)
    if worded := stage_in_words(run):
        number, offloaded, line = worded
        return by_zero(number == 3, line, line if offloaded else None)
    if own := next(
        (one for name, one in stated.items() if _FSDP_ON.fullmatch(name) and one.text.lower() == "true"), None
    ):
        return {name: fact(value, own) for name, value in _OF_FSDP.items()}
    kind = stated.get("distributed_type")
    if kind is None or kind.text.upper() != "FSDP":
        return {}
    facts = {name: fact(value, kind) for name, value in _OF_FSDP.items()}
    version, saved = stated.get("fsdp_version"), stated.get("fsdp_state_dict_type")
    if version is not None:
        facts["fsdp2"] = fact(version.text == "2", version)
    if saved is not None:
        facts["saves.sharded"] = fact(saved.text.upper() == "SHARDED_STATE_DICT", saved)
    return facts
