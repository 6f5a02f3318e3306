"""Counts parameters from a model's geometry: Llama-like decoders, mixture of experts, MLA, Qwen's vision towers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.knowledge.schema import ModelFact

_GEMMA4_VISION, _GEMMA4_AUDIO = 167_364_608, 304_824_608
"""Parameters of Gemma 4's towers, which E2B and E4B share (counted on transformers v5.11.0 models/gemma4)."""
_CONVOLUTION = 4
"""Tokens that the convolution of linear attention sees (linear_conv_kernel_dim of all published models)."""


def parameters_of(fact: ModelFact) -> int:
    """Parameters of text and vision together. Checked against the published count of every model in models.yaml."""
    embeddings = fact.vocab * fact.hidden * (1 if fact.tied else 2)
    norm = fact.hidden * (2 if fact.biases else 1)
    norms = fact.norms_per_layer * norm
    dense = fact.dense_layers if fact.experts else fact.layers
    if fact.per_layer_input:
        return _per_layer_parameters(fact) + fact.vision_parameters
    layers = (
        fact.layers * norms
        + (fact.layers - fact.linear_layers) * attention_parameters(fact)
        + fact.linear_layers * _linear_attention(fact)
        + dense * mlp_parameters(fact)
        + (fact.layers - dense) * _experts_parameters(fact)
        + fact.cross_layers * (attention_parameters(fact) + norm)
    )
    return embeddings + layers + norm + fact.vision_parameters + fact.beside


def attention_parameters(fact: ModelFact) -> int:
    """One layer's attention: projections, biases of q, k and v, norms on queries and keys."""
    if fact.latent_rank:
        return _latent_attention(fact)
    queries, keys = fact.heads * fact.head_dim, fact.kv_heads * fact.head_dim
    weights = fact.hidden * ((3 if fact.gated_attention else 2) * queries + 2 * keys)
    bias = queries + 2 * keys if fact.qkv_bias or fact.biases else 0
    bias += fact.hidden if fact.biases else 0
    norm = {"none": 0, "head": 2 * fact.head_dim, "full": queries + keys}[fact.head_norm]
    return weights + bias + norm


def _linear_attention(fact: ModelFact) -> int:
    """One layer of the gated delta rule (transformers' Qwen3NextGatedDeltaNet): queries, keys, values and gate, decay
    and step, a convolution over four tokens, the norm of a head, the output."""
    if not fact.linear_layers:
        return 0
    keys, values, heads = fact.linear_key_width, fact.linear_value_width, fact.linear_heads
    projections = fact.hidden * (2 * keys + 2 * values + 2 * heads) + values * fact.hidden
    return projections + _CONVOLUTION * (2 * keys + values) + 2 * heads + values // heads


def mlp_parameters(fact: ModelFact) -> int:
    """One dense MLP: gate, where it has one, up and down."""
    bias = fact.intermediate + fact.hidden if fact.biases else 0
    return (3 if fact.gated else 2) * fact.hidden * fact.intermediate + bias


def _per_layer_parameters(fact: ModelFact) -> int:
    """Gemma 4 E2B and E4B, text: two kinds of heads, the last layers share keys and values, per-layer embeddings."""
    hidden, width, layers = fact.hidden, fact.per_layer_input, fact.layers
    sliding = layers - fact.global_layers
    queries = fact.heads * (sliding * fact.head_dim + fact.global_layers * fact.global_head_dim)
    own = _own_keys(fact)
    head_norms = own + sliding * fact.head_dim + fact.global_layers * fact.global_head_dim
    attention = 2 * hidden * queries + 2 * hidden * fact.kv_heads * own + head_norms
    mlp = (layers + fact.wide_layers) * mlp_parameters(fact)
    gates = layers * (2 * hidden * width + (fact.norms_per_layer + 1) * hidden)
    tables = fact.vocab * (hidden + layers * width) + hidden * layers * width + width
    return tables + attention + mlp + gates + hidden


def _own_keys(fact: ModelFact) -> int:
    """Key dimensions over all layers that have keys of their own, for one head."""
    own_globals = fact.global_layers - fact.shared_kv_globals
    own_others = fact.layers - fact.linear_layers - fact.shared_kv_layers - own_globals
    return own_globals * (fact.global_head_dim or fact.head_dim) + own_others * fact.head_dim


def kv_bytes_per_token(fact: ModelFact) -> int:
    """Bytes of bf16 cache a token needs over all layers at TP 1; MLA caches the latent and the rope part."""
    if fact.kv_bytes_per_token is not None:
        return fact.kv_bytes_per_token
    if fact.latent_rank:
        return 2 * fact.layers * (fact.latent_rank + fact.rope_dim)
    return 2 * 2 * fact.kv_heads * (fact.cross_layers * fact.head_dim or _own_keys(fact))


def _latent_attention(fact: ModelFact) -> int:
    """MLA: compressed queries (or direct ones), compressed keys and values, their norms, and the output projection."""
    queries = fact.heads * fact.head_dim
    down = fact.hidden * fact.query_rank + fact.query_rank + fact.query_rank * queries
    query = down if fact.query_rank else fact.hidden * queries
    latent = fact.hidden * (fact.latent_rank + fact.rope_dim) + fact.latent_rank
    up = fact.latent_rank * fact.heads * (fact.head_dim - fact.rope_dim + fact.value_dim)
    return query + latent + up + fact.heads * fact.value_dim * fact.hidden


def _experts_parameters(fact: ModelFact) -> int:
    """One mixture-of-experts MLP: the experts, the router, and the shared part with its gate."""
    routed = fact.experts * 3 * fact.hidden * fact.expert_intermediate
    shared = 3 * fact.hidden * fact.shared_intermediate + (fact.hidden if fact.shared_gate else 0)
    router = fact.experts * (fact.hidden + (1 if fact.router_bias else 0))
    return routed + router + shared


def vision_parameters(config: Mapping[str, Any], text_hidden: int) -> int:
    """Parameters of a vision tower from its `vision_config`; 0 where its form is not one of Qwen's.

    Qwen2-VL, Qwen2.5-VL (gated MLP, RMS norms), Qwen3-VL (learned positions, deepstack mergers) and Qwen3.5 (without
    the latter).
    """
    kind = str(config.get("model_type", ""))
    depth, patch = int(config.get("depth", 0)), int(config.get("patch_size", 14))
    merge, temporal = int(config.get("spatial_merge_size", 2)) ** 2, int(config.get("temporal_patch_size", 2))
    pixels = int(config.get("in_channels", config.get("in_chans", 3))) * temporal * patch * patch
    if kind.startswith("qwen2_5_vl"):
        hidden, wide = int(config.get("hidden_size", 1280)), int(config.get("intermediate_size", 3420))
        block = _vision_attention(hidden) + 3 * hidden * wide + 2 * wide + hidden + 2 * hidden
        return pixels * hidden + depth * block + _merger(hidden, merge, text_hidden, norm=hidden)
    if kind.startswith(("qwen3_vl", "qwen3_5")):
        hidden, wide = int(config.get("hidden_size", 1152)), int(config.get("intermediate_size", 4304))
        block = _vision_attention(hidden) + 2 * hidden * wide + wide + hidden + 4 * hidden
        stem = pixels * hidden + hidden + int(config.get("num_position_embeddings", 2304)) * hidden
        deep = len(config.get("deepstack_visual_indexes", () if kind.startswith("qwen3_5") else (0, 0, 0)))
        merger = _merger(hidden, merge, text_hidden, norm=2 * hidden)
        stacked = _merger(hidden, merge, text_hidden, norm=2 * hidden * merge)
        return stem + depth * block + merger + deep * stacked
    if kind.startswith("gemma4"):
        return _GEMMA4_VISION + int(config.get("hidden_size", 768)) * text_hidden
    if kind.startswith("qwen2_vl"):
        hidden = int(config.get("embed_dim", 1280))
        wide = int(hidden * float(config.get("mlp_ratio", 4)))
        block = _vision_attention(hidden) + 2 * hidden * wide + wide + hidden + 4 * hidden
        return pixels * hidden + depth * block + _merger(hidden, merge, text_hidden, norm=2 * hidden)
    return 0


def audio_parameters(config: Mapping[str, Any], text_hidden: int) -> int:
    """Parameters of an audio tower from its `audio_config`; 0 where its form is not Gemma 4's."""
    if not str(config.get("model_type", "")).startswith("gemma4"):
        return 0
    return _GEMMA4_AUDIO + int(config.get("output_proj_dims", 1536)) * text_hidden


def _vision_attention(hidden: int) -> int:
    """Fused q, k, v and the output projection, with biases."""
    return 4 * hidden * hidden + 4 * hidden


def _merger(hidden: int, merge: int, out: int, norm: int) -> int:
    """Norm, and two linear layers over merged patches, into the text model's width."""
    wide = hidden * merge
    return norm + wide * wide + wide + wide * out + out
