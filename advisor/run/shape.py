"""Finds a model's shape by its name or path: in a config.json at hand, in models.yaml, by the size in the name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import ModelFact, ModelSizes
from advisor.language import say
from advisor.regex import regex
from advisor.run.config_file import kv_bytes_per_token, local_config, parameters_of, read_config
from advisor.run.run import ModelShape
from advisor.units import show_params
from advisor.words import Basis

_SIZE = regex(r"(?<![a-z0-9.])(\d+(?:[.p]\d+)?)([bm])(?![a-z0-9])")
_MIXTURE = regex(r"(?<![a-z0-9.])(\d+)x(\d+(?:\.\d+)?)b(?![a-z0-9])")
_ACTIVE = regex(r"(?<![a-z0-9.])a(\d+(?:[.p]\d+)?)b(?![a-z0-9])")
"""The active part of a mixture of experts: "48b-a3b"."""
_QUANTISED = regex(
    r"[-.](?P<kind>awq|gptq|bnb|nf4|fp8|autoround|nvfp4|mxfp4|int(?=[48])|w(?=[48]a)|(?=[48]bit))"
    r"(?:-?(?:int|w)?-?(?P<bits>[48])(?:bits?|a(?:8|16))?)?(?![a-z0-9])"
)
"""How published checkpoints are called: "-AWQ", "-GPTQ-Int4", "-bnb-4bit", "-FP8", "-INT4", ".w4a16", "-4bit"."""
_SIXTEEN = regex(r"(?<![a-z0-9])(?:bf16|fp16|float16|bfloat16|dequantized)(?![a-z0-9])")
"""What a copy of a model is called that is published in fewer bits."""
_TOWER = regex(
    r"(?<![a-z])(?:[a-z]*vlm?\d*|(?<!llama-)(?<!mini-)(?<!freeze-)[a-z]*omni|vision|[a-z]*llava|pixtral|idefics\d*|paligemma|molmo|ovis\d*|janus|minicpm-[ov]|glm-4(?:\.\d)?v)(?![a-z])"
)
"""How models that also see are called: "Qwen2-VL", "InternVL3", "MiniCPM-V", "llama-3.2-11b-vision"."""
_VERSION_APART = regex(r"(?<=[a-z]{3})-(?=\d)")
"""Between a family and its version: "qwen-2.5", "llama-3.1"."""
_VERSION_SPLIT = regex(r"(?<=[a-z]{3}\d)[-p](?=\d(?:-|[a-z]{2}))")
"""Within a version: "qwen2-5-7b", "qwen2p5-7b"."""
_SIZE_SPLIT = regex(r"(?<![\d.])(0)-(?=\d[bm](?![a-z0-9]))")
"""Within a size below 1B: "qwen2.5-0-5b" (a one may be of a version: "llama3-1-8b")."""
_KIND_ATTACHED = regex(r"(?<=\d)(?=(?:vl|omni|coder|math|next)(?![a-z]))")
"""Between a version and its kind: "qwen2.5vl-7b"."""
_STORED_AS = regex(r"(?<=.)-(?:bf16|fp16|fp32|bfloat16|float16|float32)\Z")
"""At the end of a name: the type in which the same weights are stored."""
_FAMILY = regex(r"[a-z]+")
_USUAL_FAMILY = "qwen"
SHARED_PART_OF_EXPERTS = 0.84
"""An "8x7B" has fewer than 56B parameters because attention is shared: Mixtral-8x7B 46.7 of 56, 8x22B 141 of 176."""
LEAST_BARE = 7
"""A smaller number by itself is a version's (judgement)."""
_SAME_COUNT, _ROUNDED = 1e-6, 0.002
"""Parts of a parameter count by which a full and a rounded print of it may differ from models.yaml (judgement)."""
_COUSIN = 1.5
"""Times by which a model of the family is another one ("gemma-2-2b" has 2.6B; judgement)."""
MOST_WORDS = 7
"""Words that a model's name has at most (judgement)."""
A_FEW = 3
"""Words with a size among them that are no sentence (judgement)."""
_SENTENCE = regex(r"[,;。，；！？?!\u4e00-\u9fff]|\.(?:\s|$)")
"""Marks of a sentence, and Chinese characters."""
FindConfig = Callable[[str], "Path | None"]


def find_shape(name: str, models: Sequence[ModelFact], lookup: FindConfig = local_config) -> ModelShape | None:
    """The shape of the model a run names; None where neither a config.json, models.yaml nor the name tells it. `lookup`
    finds a config.json for a name or path (default: the folder itself, then the Hugging Face cache)."""
    name = name.strip()
    if not name:
        return None
    file = lookup(name)
    fact = read_config(file) if file is not None else None
    if fact is not None:
        return shape_of(fact, name, f"config.json: {file}")
    known = match_alias(name, models)
    if known is not None:
        return _shape(known, known.name, known.parameters, "computed", f"models.yaml: {known.name}")
    return _estimated(name, models)


def is_name(text: str, models: Sequence[ModelFact]) -> bool:
    """Whether a text is what a model is called, or where it lies: words of a name, and no sentence."""
    words = text.split()
    sentence = _SENTENCE.search(text) is not None or len(words) > MOST_WORDS
    if not sentence and (len(words) < 2 or (size_in_name(_plain(text)) and len(words) <= A_FEW)):
        return True
    known = _words_of_names(tuple(alias for fact in models for alias in (fact.name, *fact.aliases)))
    named = all(any(map(str.isdigit, word)) or word.strip("()").lower() in known for word in words)
    return (not sentence and named) or local_config(text.strip()) is not None


@lru_cache(maxsize=2)
def _words_of_names(names: tuple[str, ...]) -> frozenset[str]:
    """The words that models' names are made of, and those that people put beside them."""
    made = (part for name in names for part in re.split(r"[^a-z]+", name.lower()) if part)
    return frozenset((*made, "instruct", "chat", "base", "it", "hf", "model", "with", "lora", "qlora", "full"))


def shape_of(fact: ModelFact, name: str, note: str) -> ModelShape:
    """The shape that a configuration gives. `note`: where it was read."""
    return _shape(fact, name, parameters_of(fact), "computed", note)


def shape_by_count(parameters: int, models: Sequence[ModelFact]) -> ModelShape | None:
    """The known model that has so many parameters, as a library printed them; else one of that size, estimated."""
    for apart in (_SAME_COUNT, _ROUNDED):
        alike = [fact for fact in models if abs(fact.parameters - parameters) <= parameters * apart]
        if len({(fact.hidden, fact.layers, fact.vocab) for fact in alike}) == 1:
            note = say("by its {count} parameters in the log", count=f"{parameters:,}")
            return _shape(alike[0], alike[0].name, alike[0].parameters, "computed", note)
    return _estimated(f"{parameters / 1e9:.2f}b", models)


def without_head(shape: ModelShape) -> ModelShape:
    """The same model with a score, or nothing, in place of its language head."""
    if shape.tied:
        return shape
    return replace(shape, tied=True, parameters=shape.parameters - shape.vocab * shape.hidden)


def match_alias(name: str, models: Sequence[ModelFact]) -> ModelFact | None:
    """The model whose most literal alias fits a component of `name`, the last component first; none of another size
    than the one that the component tells ("deepseek-v3-16b" is a small cousin of DeepSeek-V3)."""
    known = _aliases(tuple((*fact.aliases, fact.name) for fact in models))
    for part in map(_spelled, _components(name)):
        part = _STORED_AS.sub("", part)
        size = size_in_name(part)
        alike = [(alias, models[at]) for piece, alias, at in known if piece in part and fnmatchcase(part, alias)]
        fitting = [
            (len(alias.strip("*")), fact) for alias, fact in alike if size is None or _is_of_size(fact, alias, size)
        ]
        if fitting:
            return max(fitting, key=lambda pair: pair[0])[1]
    return None


def _is_of_size(fact: ModelFact, alias: str, size: int) -> bool:
    """Whether a name of that size may be the model's: its alias tells a size itself, or is about as large."""
    return size_in_name(alias) is not None or 1 / _COUSIN < fact.parameters / size < _COUSIN


@lru_cache(maxsize=2)
def _aliases(names: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, str, int], ...]:
    """Every alias of every model, in one spelling, with its longest literal piece, which a name that fits it has, and
    the number of its model."""
    spelled = [(_spelled(_plain(alias)), at) for at, given in enumerate(names) for alias in given]
    return tuple((max(re.split(r"[*?]|\[.*?\]", alias), key=len), alias, at) for alias, at in spelled)


def _components(name: str) -> list[str]:
    """Path components from the last, so that a checkpoint below "Qwen2.5-7B/" is still recognised."""
    return [_plain(part) for part in reversed(re.split(r"[/\\]|--", name)) if part]


@lru_cache(maxsize=4096)
def _plain(text: str) -> str:
    dotted = text.strip().lower().replace("___", ".")  # as ModelScope names folders: Qwen2___5-1___5B
    return _SIZE_SPLIT.sub(r"\1.", re.sub(r"[_\s]+", "-", dotted))


@lru_cache(maxsize=4096)
def _spelled(plain: str) -> str:
    """ "qwen-2-5vl-7b" → "qwen2.5-vl-7b": one way of writing a family, its version and its kind."""
    return _KIND_ATTACHED.sub("-", _VERSION_SPLIT.sub(".", _VERSION_APART.sub("", plain)))


def _shape(fact: ModelFact, name: str, parameters: int, basis: Basis, note: str) -> ModelShape:
    alike = {field: getattr(fact, field) for field in ModelSizes.__struct_fields__}
    kv, head_norm = kv_bytes_per_token(fact), fact.head_norm != "none"
    made = {"name": name, "parameters": parameters, "kv_bytes_per_token": kv, "head_norm": head_norm}
    return ModelShape(**{**alike, **made}, basis=basis, note=note)


def _estimated(name: str, models: Sequence[ModelFact]) -> ModelShape | None:
    """The shape of the model nearest in size, of the same family if there is one, at the size in the name. It is one
    with experts where the name tells an active part, else a dense one; without a family one of Qwen's, from which most
    of what people post-train is made."""
    for part in _components(name):
        size = size_in_name(part) or _bare_size(part, models)
        experts, sees = _ACTIVE.search(part) is not None, sees_by_name(part)
        alike = [f for f in models if bool(f.experts) == experts and bool(f.vision_parameters) == sees]
        if size is None or not alike:
            continue
        families = [[f for f in alike if _is_kin(f, part)], [f for f in alike if _family(f) == _USUAL_FAMILY]]
        kin = next(filter(None, families), alike)
        near = min(kin, key=lambda fact: abs(math.log(fact.parameters / size)))
        note = say("estimated from {size} in the name; proportions of {model}", size=show_params(size), model=near.name)
        return _shape(_with_experts_for(near, size), name, size, "estimated", note)
    return None


def _bare_size(part: str, models: Sequence[ModelFact]) -> int | None:
    """ "qwen2.5-vl-32-instruct" → 32e9: the one number by itself, where models of the family have that size."""
    numbers = {int(word) for word in part.split("-") if word.isdecimal() and int(word) >= LEAST_BARE}
    size = numbers.pop() * 10**9 if len(numbers) == 1 else 0
    alike = (size_in_name(_plain(fact.name)) for fact in models if _is_kin(fact, part))
    return size if size and size in alike else None


def _with_experts_for(fact: ModelFact, parameters: int) -> ModelFact:
    """The same with as many experts of its width as make so many parameters: a mixture grows by its experts."""
    per_expert = (fact.layers - fact.dense_layers) * 3 * fact.hidden * fact.expert_intermediate
    if not fact.experts or not per_expert:
        return fact
    rest = max(0, fact.parameters - fact.experts * per_expert)
    return replace(fact, experts=max(fact.experts_per_token, round((parameters - rest) / per_expert)))


def _is_kin(fact: ModelFact, part: str) -> bool:
    """Whether a name speaks of the model's family; the short words of older ones ("opt", "t") only by themselves."""
    family = _family(fact)
    return family in part if fact.gated else re.search(rf"(?<![a-z]){family}(?![a-z])", part) is not None


def _family(fact: ModelFact) -> str:
    """ "Qwen2.5-7B" → "qwen"."""
    word = _FAMILY.match(_plain(fact.name))
    return word.group() if word else _plain(fact.name)


def sees_by_name(name: str) -> bool:
    """Whether a model's name says that it takes pictures, too."""
    return any(_TOWER.search(part) for part in _components(name))


def bits_in_name(name: str) -> int | None:
    """Bits of a weight of a checkpoint that is quantised already: 4 of "Qwen2.5-7B-Instruct-AWQ", 8 of "-GPTQ-Int8"."""
    found = _QUANTISED.search(name.lower().replace("_", "-"))
    return None if found is None else int(found["bits"] or (8 if found["kind"] == "fp8" else 4))


def served_bits(name: str, shape: ModelShape) -> int:
    """Bits of a weight as an engine serves the checkpoint of that name: as it says, else as the model is published."""
    if _SIXTEEN.search(name.lower().replace("_", "-")):
        return 16
    return bits_in_name(name) or shape.served_bits or shape.stored_bits or 16


def packed_by_name(name: str) -> bool:
    """Whether a checkpoint's name says that its weights are packed integers: what shards parameters cannot cut them."""
    found = _QUANTISED.search(name.lower().replace("_", "-"))
    return found is not None and found["kind"] != "fp8"


@lru_cache(maxsize=64)
def parameters_in_name(name: str) -> int | None:
    """Parameters of the model of that name, where it is known; else as the name says; None where neither tells."""
    known = match_alias(name, load_knowledge().models) if name else None
    return known.parameters if known is not None else size_in_name(name.lower())


def size_in_name(part: str) -> int | None:
    """ "qwen-7b-chat" → 7e9, "orz-1p5b" → 1.5e9, "smol-360m" → 3.6e8, "mixtral-8x7b" → 4.7e10; None without a size."""
    mixture = _MIXTURE.search(part)
    if mixture is not None:
        return round(int(mixture.group(1)) * float(mixture.group(2)) * 1e9 * SHARED_PART_OF_EXPERTS) or None
    sizes = [float(n.replace("p", ".")) * (1e9 if unit == "b" else 1e6) for n, unit in _SIZE.findall(part)]
    plausible = [size for size in sizes if 1e7 <= size <= 5e12]
    return round(max(plausible)) if plausible else None
