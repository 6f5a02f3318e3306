"""Decides which model a run trains, by launch, log and names, and which shape is taken for it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from advisor.knowledge.schema import ModelFact
from advisor.language import say
from advisor.regex import regex
from advisor.run.config_file import shape_in
from advisor.run.natives import Natives
from advisor.run.run import Knob, ModelShape
from advisor.run.shape import find_shape, match_alias, shape_by_count, shape_of, without_head
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


def model_name(natives: Natives, launch: Launch | None, models: Sequence[ModelFact], printed: str, hinted: str) -> str:
    """The model's name or path: of the launch, of a line of the log, of the names of files; "" where none tells.

    `printed`: as a library names it in the log; `hinted`: what names of files say.
    """
    path = natives.carrier("model.path")
    stated = "" if path is None or path.value is None else str(path.value)
    ending = stated or _path_ending(natives, "model.path")
    if not ending and launch is not None:
        ending = _named_model(launch, models)
    return ending or _from_cache(printed) or hinted


def fuller_name(said: str, stated: str, models: Sequence[ModelFact]) -> str:
    """The model's name as it is known best: what the user calls it, but for the launch's own words where they go on
    from that ("Qwen2.5-coder", in "/models/Qwen2.5-Coder-32B-Instruct") and only they tell its size."""
    goes_on = said != stated and letters(said) in letters(stated)
    return (
        stated if said and goes_on and not find_shape(said, models) and find_shape(stated, models) else said or stated
    )


def letters(name: str) -> str:
    """A name by which it is found, however it is joined and written."""
    return "".join(filter(str.isalnum, name.casefold()))


def _from_cache(path: str) -> str:
    """ "…/hub/models--Qwen--Qwen3-8B/snapshots/…" → "Qwen/Qwen3-8B"; any other path as it is."""
    cached = _CACHED.search(path)
    return f"{cached[1]}/{cached[2]}" if cached is not None else path


def model_shape(name: str, models: Sequence[ModelFact], config: str, parameters: int | None) -> ModelShape | None:
    """The shape by a name that is known, else by what the log prints of the model, else by the size in its name.

    `config`: the model's configuration, JSON, as the log has it. `parameters`: as the log counts them.
    """
    named = find_shape(name, models)
    if named is not None and named.basis == "computed":
        return named
    printed = _shape_printed(config, name)
    counted = shape_by_count(parameters, models) if parameters is not None else None
    sure = (one for one in (printed, counted) if one is not None and one.basis == "computed")
    return next(sure, named or counted)


def another_model(knob: str, knobs: Mapping[str, Knob], name: str | None) -> str:
    """What a launch names for a role beside the actor, where that is another model than the actor's; "" elsewhere."""
    found = knobs.get(knob)
    stated = found is not None and found.source not in ("default", "assumed") and isinstance(found.value, str)
    return str(found.value) if found is not None and stated and found.value != name else ""


def critic_shape(name: str, models: Sequence[ModelFact]) -> ModelShape | None:
    """The shape of a critic's own model, which has a score in place of the language head."""
    found = find_shape(name, models) if name else None
    return None if found is None else without_head(found)


def _shape_printed(config: str, name: str) -> ModelShape | None:
    fact = shape_in(json.loads(config), name) if config else None
    return None if fact is None else shape_of(fact, name or fact.name, say("the configuration that the log prints"))


def _named_model(launch: Launch, models: Sequence[ModelFact]) -> str:
    """What a launch trains whose dialect has no key for it: a known model, under a key that speaks of one."""
    named = (s for s in launch.effective().values() if s.resolved and _OF_MODEL.search(s.key.lstrip("-")))
    texts = [s.text for s in named if not _OF_ANOTHER.search(s.key)]
    return next((text for text in texts if len(text) < 300 and match_alias(text, models) is not None), "")


def _path_ending(natives: Natives, knob: str) -> str:
    """The last component of a path of which only the beginning is unknown: "$HOME/models/Qwen2.5-7B" names a model."""
    for carrier in natives.carriers(knob):
        _, slash, last = (carrier.setting.ending if carrier.setting else "").rstrip("/").rpartition("/")
        if carrier.text is None and slash and last:
            return last
    return ""
