"""Writes the content of a model's config.json: what every decoder states, and what more a kind does."""

from __future__ import annotations

from typing import Any


def decoder(kind: str, width: int, layers: int, heads: int, kv_heads: int, mlp: int, vocab: int, **more: Any) -> Any:
    """`mlp`: the width between the two halves of an MLP."""
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "intermediate_size": mlp, "vocab_size": vocab}
    counts = {"num_attention_heads": heads, "num_key_value_heads": kv_heads}
    return {"model_type": kind, **sizes, **counts, **more}
