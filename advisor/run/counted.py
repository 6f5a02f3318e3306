"""Tells of a run what its log counts: the parameters of the model, and whether all of them are trained."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.knowledge.schema import CountName
from advisor.language import say
from advisor.run.run import Knob, ModelShape

ADAPTERS_AT_MOST = 0.3
"""Part of a model's parameters below which those that are trained are adapters, not the model (judgement)."""


def base_parameters(counts: Mapping[CountName, int]) -> int | None:
    """Parameters of the model without its adapters, as a log counts them; None where it does not tell."""
    whole, trained = counts.get("parameters"), counts.get("trainable")
    if whole is None:
        return trained
    return whole - trained if trained is not None and trained < whole * ADAPTERS_AT_MOST else whole


def trained_part(counts: Mapping[CountName, int], shape: ModelShape | None) -> dict[str, Knob]:
    """Whether all of the model is trained, by what the log counts."""
    whole = counts.get("parameters") or (shape.parameters if shape is not None else None)
    trained, key = counts.get("trainable"), "actor.full_finetuning"
    if whole is None or trained is None:
        return {}
    note = say("the log counts {trained} of {whole} parameters as trained", trained=f"{trained:,}", whole=f"{whole:,}")
    return {key: Knob(key, trained >= whole * ADAPTERS_AT_MOST, "log", note=note)}
