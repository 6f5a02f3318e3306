"""Decides which model a run trains, by launch, log and the names of files, and which shape is taken for it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from advisor.knowledge.schema import ModelFact
from advisor.language import listed, say, sentences
from advisor.regex import regex
from advisor.run.config_file import shape_in
from advisor.run.natives import Natives
from advisor.run.recipe import method_named, recipe_of
from advisor.run.run import Knob, KnobValue, ModelShape
from advisor.run.shape import (
    bits_in_name,
    find_shape,
    match_alias,
    shape_by_count,
    shape_of,
    size_in_name,
    without_head,
)
from advisor.script.launch import Launch

_OF_MODEL = regex(
    r"(?:^|[._-])(?:model|pretrain|base_model|policy|actor|llm|backbone|(?:checkpoint|ckpt)_(?:dir|path)$)",
    re.IGNORECASE,
)
_OF_ANOTHER = regex(
    r"critic|reward|\b(?:rm|ref)_|reference|teacher|draft|judge|value|tokenizer|save|out(?:put)?_|resume",
    re.IGNORECASE,
)

_CACHED = regex(r"models--([\w.-]+?)--([\w.-]+)")
"""The folder of a model in the Hugging Face cache."""


def model_name(natives: Natives, named: Callable[[], str], printed: str, hinted: str) -> str:
    """The model's name or path: of the launch, of a line of the log, of the names of files; "" where none tells.
    `named`: by `named_model`; `printed`: as a library names it in the log; `hinted`: what names of files say."""
    path = natives.carrier("model.path")
    stated = "" if path is None or path.value is None else str(path.value)
    ending = stated or _path_ending(natives, "model.path")
    ending = ending or named()
    cached = _CACHED.search(printed)  # "…/hub/models--Qwen--Qwen3-8B/snapshots/…"
    return ending or (f"{cached[1]}/{cached[2]}" if cached is not None else printed) or hinted


def fuller_name(said: str, stated: str, models: Sequence[ModelFact]) -> str:
    """The model's name as it is known best: what the user calls it, but for the launch's own words where they go on
    from that ("Qwen2.5-coder", in "/models/Qwen2.5-Coder-32B-Instruct") and only they tell its size or its bits."""
    if not said or said == stated or letters(said) not in letters(stated):
        return said or stated
    fuller = (not find_shape(said, models) or bits_in_name(stated)) and find_shape(stated, models)
    return stated if fuller else said


def letters(name: str) -> str:
    """A name by which it is found, however it is joined and written."""
    return "".join(filter(str.isalnum, name.casefold()))


def model_shape(name: str, models: Sequence[ModelFact], config: str, parameters: int | None) -> ModelShape | None:
    """The shape by a name that is known, else by what the log prints of the model, else by the size in its name.
    `config`: the model's configuration, JSON, as the log has it. `parameters`: as the log counts them."""
    named = find_shape(name, models)
    if named is not None and named.basis == "computed":
        return named
    fact, note = shape_in(json.loads(config), name) if config else None, say("the configuration that the log prints")
    printed = None if fact is None else shape_of(fact, name or fact.name, note)
    counted = shape_by_count(parameters, models) if parameters is not None else None
    sure = (one for one in (printed, counted) if one is not None and one.basis == "computed")
    return next(sure, named or counted)


def another_model(knob: str, knobs: Mapping[str, Knob], name: str | None) -> str:
    """What a launch names for a role beside the actor, where that is another model than the actor's; "" elsewhere."""
    found = knobs.get(knob)
    stated = found is not None and found.source not in ("default", "assumed") and isinstance(found.value, str)
    return str(found.value) if found is not None and stated and found.value != name else ""


def critic_shape(name: str, models: Sequence[ModelFact], actor: ModelShape | None) -> ModelShape | None:
    """The shape of the critic's model, its own or the actor's, which has a score in place of the language head."""
    found = find_shape(name, models) if name else actor
    return None if found is None else without_head(found)


def named_model(launch: Launch | None, models: Sequence[ModelFact]) -> str:
    """What a launch trains whose dialect has no key for it: a known model, under a key that speaks of one."""
    settings = launch.effective().values() if launch is not None else ()
    named = (s for s in settings if s.resolved and _OF_MODEL.search(s.key.lstrip("-")))
    texts = [s.text for s in named if not _OF_ANOTHER.search(s.key)]
    return next((text for text in texts if len(text) < 300 and match_alias(text, models) is not None), "")


def _path_ending(natives: Natives, knob: str) -> str:
    """The last component of a path of which only the beginning is unknown: "$HOME/models/Qwen2.5-7B" names a model."""
    for carrier in natives.carriers(knob):
        _, slash, last = (carrier.setting.ending if carrier.setting else "").rstrip("/").rpartition("/")
        if carrier.text is None and slash and last:
            return last
    return ""


_SUFFIX = regex(r"\.(?:sh|bash|ya?ml|json|toml|py)$")
_SIZE = regex(r"\d[bB](?![a-zA-Z0-9])")
"""What the name of one model has, and that of a family has not."""
_ADAPTERS = frozenset({"lora", "qlora", "dora"})
_IS_METHOD = regex(r"^[A-Za-z]{2,6}$|(?:Trainer|Config)$|_(?:loss|step|update)_*$")
"""A method named by its letters alone, a class of one, or what computes it ("compute_grpo_loss")."""
_MOST_PARTS = 5
"""Parts of a name that a model's takes at most: "qwen2_5_vl_7b_instruct"."""


class Hints(Struct, frozen=True):
    """What names say; "" and False where they do not."""

    model: str = ""
    method: str = ""
    adapters: str = ""
    """The name, or the word, that speaks of adapters."""
    said: str = ""
    """All of it in a sentence."""

    def knobs(self) -> dict[str, Knob]:
        told: dict[str, KnobValue] = {"actor.full_finetuning": False} if self.adapters else {}
        told |= {"actor.quantized_bits": 4} if "qlora" in self.adapters.lower() else {}
        word = self.adapters.lower() in _ADAPTERS  # a name is the run's own, a word may be of another run
        note = say("by a name alone") if word else self.adapters
        return {key: Knob(key, value, "assumed" if word else "log", note=note) for key, value in told.items()}


def hints_of(
    launch: Launch | None, shipped: Collection[str], models: Sequence[ModelFact], prose: Sequence[str] = ()
) -> Hints:
    """The hints of what a launch runs or names and that was not found, else of a person's words (`prose`). `shipped`:
    files that are known all the same."""
    named = () if launch is None else (*launch.hints, *launch.missing)
    words = [word for word in dict.fromkeys(named) if word not in shipped]
    if not words:
        return _hints_in_prose(prose, models) if prose else Hints()
    names = [_SUFFIX.sub("", word.rpartition("/")[2]) for word in words]
    method = next((told for name in names if (told := method_named(name))), "")
    parts = (part for name in names for part in _parts(name) if _SIZE.search(part))
    model = next((part for part in parts if match_alias(part, models) is not None), "")
    adapters = of_adapters(names)
    found = (
        *([recipe_of(method).title] if method else []),
        *(["LoRA"] if adapters else []),
        *([model] if model else []),
    )
    return Hints(model, method, adapters, _said(words, found, launch))


def _hints_in_prose(words: Sequence[str], models: Sequence[ModelFact]) -> Hints:
    """What a person names: the one method, the one model, adapters where nobody says that all is trained."""
    methods = {told for word in words if _IS_METHOD.search(word) and (told := method_named(word))}
    method, model = methods.pop() if len(methods) == 1 else "", model_in_words(words, models)
    adapters = "" if "full" in {word.lower() for word in words} else of_adapters(words)
    found = [*filter(None, (recipe_of(method).title if method else "", "LoRA" if adapters else "", model))]
    said = say("By the words of the text alone: {what}; that is a hint.", what=listed(found)) if found else ""
    return Hints(model, method, adapters, said)


def of_adapters(names: Iterable[str]) -> str:
    """The longest name with a word for adapters in it; "" where none has."""
    return max((one for one in names if _ADAPTERS & set(re.split(r"[^a-z]+", one.lower()))), key=len, default="")


def model_in_words(words: Sequence[str], models: Sequence[ModelFact]) -> str:
    """The one model that words name, "Qwen2.5-7B", "llama 7B", "7B llama", "starcoder"; else the one size, "1.9B"; ""
    where they name several or none."""
    words = [re.sub(r" ?billion\Z", "B", word) for word in words]
    runs = (words[at : at + count] for count in (2, 3) for at in range(len(words)))
    sized = (run for run in runs if any(map(_SIZE.search, run)))
    phrases = ("-".join(one) for run in sized for one in (run, run[::-1]))
    named: dict[str, str] = {}
    for word in (*words, *phrases):  # the shorter first
        if re.search(r"\d|[A-Z]|[a-z]{6}", word) and (fact := match_alias(word, models)) is not None:
            named.setdefault(fact.name, word)
    sizes = {size for word in words if (size := size_in_name(word.lower()))}
    if len(named) == 1:
        return next(iter(named.values()))
    return f"{sizes.pop() / 1e9:g}B" if not named and len(sizes) == 1 else ""


def _said(words: Sequence[str], found: Iterable[str], launch: Launch | None) -> str:
    told = listed(found)
    given = [word for word in launch.hints[1:] if "/" not in word] if launch is not None else []
    config = say("{word} may name its config: give that file, too.", word=given[0]) if given else ""
    if not told:
        return config
    hint = say("{file} was not found. By its name and words alone: {what}; that is a hint.", file=words[0], what=told)
    return sentences([hint, config])


def _parts(name: str) -> Iterator[str]:
    """Parts of a name that may be a model's, shorter ones first: "internvl2-8b" of "internvl2_8b_finetune_lora"."""
    parts = [part for part in re.split(r"[_\s-]+", name) if part]
    for count in range(1, min(_MOST_PARTS, len(parts)) + 1):
        for start in range(len(parts) - count + 1):
            yield "-".join(parts[start : start + count])
