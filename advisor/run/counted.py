"""Tells of a run what its log counts: the model's parameters, those that are trained, and the cards of a node."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.knowledge.schema import CountName
from advisor.language import say
from advisor.run.run import Knob, ModelShape

A_NODE = 8
"""Cards that a node has at most, where nobody says how many: more ranks than these are on several nodes."""
ADAPTERS_AT_MOST = 0.3
"""Part of a model's parameters below which those that are trained are adapters, not the model (judgement)."""
MORE_THAN_ADAPTERS = 1_000_000_000
"""Trained parameters from which on they are a model: fewer may be adapters, and tell no size (judgement)."""


def cards_counted(counts: Mapping[CountName, int]) -> int | None:
    """Cards of one node, where the log counts the ranks of a run that may be on one; None where it does not."""
    ranks = counts.get("gpus")
    return ranks if ranks is not None and ranks <= A_NODE else None


def cards_seen(counts: Mapping[CountName, int]) -> int:
    """Cards that a node has at least, by the indices that the log names."""
    ranks = counts.get("ranks", 1)
    return max(counts.get("cards", 1), ranks if ranks <= A_NODE else 1)


def base_parameters(counts: Mapping[CountName, int]) -> int | None:
    """Parameters of the model without its adapters, as a log counts them; None where it does not tell."""
    whole, trained = counts.get("parameters"), counts.get("trainable")
    if whole is None:
        return trained if trained is not None and trained >= MORE_THAN_ADAPTERS else None
    return whole - trained if trained is not None and trained < whole * ADAPTERS_AT_MOST else whole


def trained_part(counts: Mapping[CountName, int], shape: ModelShape | None) -> dict[str, Knob]:
    """Whether all of the model is trained, by what the log counts."""
    whole = counts.get("parameters") or (shape.parameters if shape is not None else None)
    trained, key = counts.get("trainable"), "actor.full_finetuning"
    if whole is None or trained is None:
        return {}
    note = say("the log counts {trained} of {whole} parameters as trained", trained=f"{trained:,}", whole=f"{whole:,}")
    return {key: Knob(key, trained >= whole * ADAPTERS_AT_MOST, "log", note=note)}
