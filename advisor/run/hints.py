"""Tells what the names of a script or config that was not found say of the run: its model, method, and adapters."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from advisor.knowledge.schema import ModelFact
from advisor.language import listed, say, sentences
from advisor.regex import regex
from advisor.run.recipe import method_named, recipe_of
from advisor.run.run import Knob
from advisor.run.shape import match_alias, size_in_name
from advisor.script.launch import Launch

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
    adapters: bool = False
    said: str = ""
    """All of it in a sentence."""

    def knobs(self) -> dict[str, Knob]:
        key = "actor.full_finetuning"
        return {key: Knob(key, False, "assumed", note=say("by a name alone"))} if self.adapters else {}


def hints_of(
    launch: Launch | None, shipped: Collection[str], models: Sequence[ModelFact], prose: Sequence[str] = ()
) -> Hints:
    """The hints of what a launch runs or names and that was not found, else of a person's words (`prose`).

    `shipped`: files that are known all the same.
    """
    named = () if launch is None else (*launch.hints, *launch.missing)
    words = [word for word in dict.fromkeys(named) if word not in shipped]
    if not words:
        return _hints_in_prose(prose, models) if prose else Hints()
    names = [_SUFFIX.sub("", word.rpartition("/")[2]) for word in words]
    method = next((told for name in names if (told := method_named(name))), "")
    parts = (part for name in names for part in _parts(name) if _SIZE.search(part))
    model = next((part for part in parts if match_alias(part, models) is not None), "")
    adapters = any(_ADAPTERS & set(re.split(r"[^a-z]+", name.lower())) for name in names)
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
    lowered = {word.lower() for word in words}
    adapters = bool(_ADAPTERS & lowered) and "full" not in lowered
    found = [*filter(None, (recipe_of(method).title if method else "", "LoRA" if adapters else "", model))]
    said = say("By the words of the text alone: {what}; that is a hint.", what=listed(found)) if found else ""
    return Hints(model, method, adapters, said)


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
