"""Finds facts about the trained model: whether it sees pictures, has experts, is packed or trained through adapters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from advisor.crash.evidence import Frame
from advisor.crash.phase import frame_words
from advisor.diagnosis.card_facts import largest_card
from advisor.diagnosis.fact import Fact, Facts, value_of
from advisor.language import mark, say
from advisor.machine.inventory import Machine
from advisor.memory.constants import BF16, FP32
from advisor.regex import regex
from advisor.rules.functions import version_in
from advisor.run.model_read import of_adapters
from advisor.run.natives import last_part
from advisor.run.run import Knob, Run, evaluates_only, stated
from advisor.run.shape import packed_by_name, sees_by_name
from advisor.script.launch import Launch
from advisor.units import show_bytes, show_params

_PICTURES = regex(r"(?:^|_)(?:images?|pixels?|videos?|vit|mm_projector|vision)(?:_|$)")
"""Words in the names of settings that only runs with pictures have."""
_ADAPTERS = regex(r"q?lora_?(?:r|rank|dim|alpha|enable)?\b|peft_type|use_peft|load_in|quantization_bit|(?:^|_)bits$")
_PEFT = regex(r"(?:^|/)peft/(?:peft_model|tuners/)|\bprepare_model_for_(?:kbit|int8)_training\b")
"""Code that only runs where peft wraps the model (huggingface/peft src/peft/peft_model.py, tuners, utils/other.py)."""
_NAME, _SIZED = regex(r"[\w.-]{8,100}"), regex(r"\d[bB](?![a-zA-Z0-9])")
"""A word that may be a config's name, and the size of a model in it."""
_PACKED = {
    8: regex(r"bitsandbytes/.*\b(?:MatMul8bit\w*|matmul\b|int8_\w+|Linear8bit\w*)|\bprepare_model_for_int8_training\b"),
    4: regex(r"bitsandbytes/.*4bit|(?:dequantize|matmul)_(?:4bit|fp4|nf4)\b|\bprepare_model_for_kbit_training\b"),
}
"""Bits → code that runs over a base of so many, and for no other (bitsandbytes-foundation/bitsandbytes 0.45.0
bitsandbytes/autograd/_functions.py, nn/modules.py; of kbit training the usual 4)."""
_MAKES_ADAPTERS = regex(r"(?m)^(?!\s*#).{0,200}\b(?:get_peft_model|mark_only_lora_as_trainable)\b")
_MAY_MAKE = regex(r"\b(?:use|enable|with|is)_(?:q?lora|peft)\b|\bargs\.(?:q?lora|peft)")
_NAMES_THE_RUN = regex(
    r"(?:adapter|peft|tuner|tuning|output|run|exp|experiment|project|job|save|ckpt|checkpoint|log|config)(?:_|$)"
)
"""Settings by whose value people name a run."""
_OPTION = regex(r"(?<=\s)--?([A-Za-z][\w-]{1,40})[ =](\S{1,200})")
_LOADS = regex(r"\.from_pretrained\((?![^()]*(?:dtype|load_in_|quantization_config|kw\w*\b|args\b))[^()]*\)")
"""A call that names neither a type nor a packing, as a source line shows it whole."""
_KEEPS_TYPE = ">=5"
"""transformers that load in the type of the checkpoint; before, in fp32 (v5 migration guide)."""
BUDGET = "actor.tokens_per_gpu"
LEAST_WORDS = 32_000
"""Words of Llama 2's vocabulary: those of the models since are larger."""


def model_facts(run: Run) -> dict[str, Fact]:
    """Facts by name; what neither the model, its name nor a setting tells is left out."""
    facts: dict[str, Fact] = {}
    named, model = stated(run, _PICTURES), say("the model {name}", name=run.model_name)
    sees = run.model.vision_parameters > 0 if run.model is not None else None
    if sees is False and (named == "" or (run.model is not None and run.model.basis == "computed")):
        facts["images"] = Fact(False, "script", model)
    elif named or sees_by_name(run.model_name):  # many that can see are trained on text alone
        facts["images"] = Fact(True, "script", named or model)
    if run.unlimited_pictures:
        facts["pictures.unlimited"] = Fact(True, "script", say("nothing limits the pixels of a picture"))
    if run.model is not None:
        facts["experts"] = Fact(run.model.experts > 0, "script", model)
        facts["model.tied"] = Fact(run.model.tied, "script", model)
    if packed_by_name(run.model_name):
        facts["prequantised"] = Fact(True, "script", model)
    if evaluates := evaluates_only(run):
        facts["trains"] = Fact(False, "script", evaluates)
    if run.framework == "unknown" and (adapters := names_adapters(run)):
        facts["lora"] = Fact(True, "script", adapters)
    elif (full := run.knobs.get("actor.full_finetuning")) is not None and (
        full.source == "log" or (run.framework == "unknown" and full.value is False)  # a person's words
    ):
        facts["lora"] = Fact(run.trains_adapters, "log", full.note)
    return facts


def adapters_shown(launch: Launch | None, text: str, frames: Sequence[Frame], *, own: bool) -> dict[str, Knob]:
    """That adapters are trained, and over how many bits, as knobs: by peft's or bitsandbytes's own code among the
    frames, whatever a default says; of a program of the user's `own` by the name of it, a file or the run, or where its
    text makes them whatever it is called with."""
    words = [(frame_words(frame), f"{frame.file}:{frame.function} {frame.text}") for frame in frames]
    wrapped = next((said for said, word in words if _PEFT.search(word)), "")
    packed = next(
        ((said, bits) for said, word in words for bits, code in _PACKED.items() if code.search(word)), ("", 0)
    )
    if not wrapped and not packed[0] and own:
        given = [(last_part(one.key), one.text) for one in launch.settings] if launch is not None else []
        given = given or [(one[1], one[2]) for one in _OPTION.finditer(text)]  # of a command that is no known launch
        named = (value for key, value in given if value and _NAMES_THE_RUN.search(key))
        program = (launch.program, *filter(None, launch.loose)) if launch is not None else ()
        made = None if _MAY_MAKE.search(text) else _MAKES_ADAPTERS.search(text)
        own_files = (one.file for one in frames if "site-packages" not in one.file)  # an environment has a name, too
        configs = (name for name in _NAME.findall(text) if _SIZED.search(name))  # llama2_70b_qlora_e1
        wrapped = made[0] if made is not None else of_adapters((*program, *named, *own_files, *configs))
        packed = (wrapped, 4) if "qlora" in wrapped.lower() else packed
    told = {"actor.full_finetuning": (False, wrapped or packed[0]), "actor.quantized_bits": (packed[1], packed[0])}
    return {name: Knob(name, value, "log", note=note) for name, (value, note) in told.items() if note}


def loaded_by(frames: Sequence[Frame], libraries: Mapping[str, str]) -> dict[str, Fact]:
    """That the weights are loaded in fp32, where a frame shows transformers' call without a type."""
    version = libraries.get("transformers")
    found = next((frame for frame in frames if _LOADS.search(frame.text)), None)
    if found is None or (version is not None and version_in(_KEEPS_TYPE, version)):
        return {}
    because = say("{frame}: from_pretrained is given no dtype", frame=frame_words(found))
    return {"knob.actor.load_precision": Fact("float32", "log", because)}


def names_adapters(run: Run) -> str:
    """The setting that speaks of adapters or of a quantised base, as it stands; "" where there is none."""
    return stated(run, _ADAPTERS)


def trains_adapters(run: Run) -> bool:
    """Whether adapters are what is trained, as the framework reads the launch or by a setting that speaks of them."""
    return run.trains_adapters or bool(names_adapters(run))


def may_train_all(run: Run) -> bool:
    """Whether nothing says that less than all weights are trained: no adapters, packed base or mere evaluation."""
    return not (trains_adapters(run) or evaluates_only(run) or packed_by_name(run.model_name))


def pass_tokens(run: Run) -> float | None:
    """Tokens of one pass at most: rows of full length, or the budget that bounds them; None where neither is known."""
    rows, length, budget = (run.number(f"{name}") for name in ("actor.micro_batch", "data.total_tokens", BUDGET))
    return budget or (rows * length if rows and length else None)


def least_logits(run: Run, machine: Machine) -> dict[str, Fact]:
    """The part of a card that the logits of a pass take at the least: bf16 logits, their fp32 copy and its gradient, at
    the smallest vocabulary that models of this kind have where the model is not known, and of the largest card there is
    where the card is not.
    """
    rows, card = run.knobs.get("actor.micro_batch"), machine.gpu_bytes or largest_card()
    one_row = not run.seen_whole and rows is not None and rows.source in ("default", "assumed")
    tokens = run.number("data.total_tokens") if one_row else pass_tokens(run)
    if (run.model is not None and machine.gpu_bytes) or not tokens or run.is_on("actor.fused_loss"):
        return {}
    words = run.model.vocab if run.model is not None else LEAST_WORDS
    least = round((BF16 + 2 * FP32) * words * tokens)
    told = {"tokens": f"{tokens:g}", "size": show_bytes(least), "words": f"{words:,}", "card": show_bytes(card)}
    of_known = mark(
        "{tokens} tokens of a pass × {words} words of this vocabulary: {size}; the largest cards have {card}"
    )
    of_least = mark("{tokens} tokens of a pass × {words} words of the smallest vocabularies: {size} of {card}")
    because = say(of_known if run.model is not None else of_least, **told)
    return {"logits.least_share": Fact(round(least / card, 3), "script", because)}


_KEY = regex(r"(?:lora_)?modules_to_save|additional_trainable_modules?")
"""peft's LoraConfig, LLaMA-Factory's older name, and the options of scripts that pass it on."""
_TABLES = regex(r"embed\w*|wte|lm_head|output_layer", re.IGNORECASE)
WHOLE = 8 * BF16
"""Bytes of a parameter that is trained whole in mixed precision."""


def saved_facts(run: Run) -> dict[str, Fact]:
    """modules.saved: bytes that the tables of the vocabulary take, where a setting names them to be trained whole."""
    shape = run.model
    for one in run.settings:
        tables = len({name.lower() for name in _TABLES.findall(one.text)}) if _KEY.fullmatch(last_part(one.key)) else 0
        if tables and shape is not None:
            count = tables * shape.vocab * shape.hidden
            told = {"key": one.key, "names": one.text, "count": show_params(count), "size": show_bytes(WHOLE * count)}
            because = say("{key} {names} are trained whole: {count} parameters × 16 bytes are {size}", **told)
            return {"modules.saved": Fact(WHOLE * count, "script", because)}
    return {}


def saved_remark(facts: Facts) -> Iterator[str]:
    """What they take of the card, and that a vocabulary that was extended takes more."""
    memory, saved = value_of(facts, "memory"), facts.get("modules.saved")
    if saved is not None and memory == "gpu":
        yield say("{because}, more where the vocabulary was extended.", because=saved.because)
