"""Reads a model's config.json into a shape and counts its parameters. Nothing is downloaded or executed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from advisor.hostile import clean
from advisor.knowledge.schema import ModelFact
from advisor.regex import regex

_OTHER_NAMES = {
    "hidden_size": ("n_embd", "d_model", "n_embed"),
    "num_hidden_layers": ("n_layer", "num_layers", "encoder_layers"),
    "num_attention_heads": ("n_head", "num_heads", "encoder_attention_heads"),
    "intermediate_size": ("n_inner", "ffn_dim", "d_ff", "encoder_ffn_dim"),
    "max_position_embeddings": ("n_positions", "max_target_positions", "n_ctx"),
    "num_decoder_layers": ("decoder_layers",),
    "num_key_value_heads": ("num_kv_heads",),
    "head_dim": ("d_kv",),
}
"""What older kinds call the same (transformers@v4.57.1, `attribute_map` of models/*/configuration_*.py)."""
_LEARNED_POSITIONS = frozenset({"gpt2", "gpt_neo", "gpt_bigcode", "opt", "bert", "roberta", "xlm-roberta"})
_ENCODES = frozenset({"t5", "mt5", "whisper"})
"""Kinds with an encoder and a decoder."""
_UNGATED = _LEARNED_POSITIONS | _ENCODES | {"gptj", "gpt_neox", "bloom", "deberta-v2", "falcon", "phi", "starcoder2"}
"""Kinds whose MLP has no gate; T5's has one where `feed_forward_proj` says so."""
_BIASED = _UNGATED - {"gpt_neo", "gptj", "falcon", "t5", "mt5"}
_UNTIED = frozenset({"gpt_neox", "gptj", "phi", "mt5"})
"""Kinds of these whose head is a matrix of its own where nothing says; of the others it is the table."""
CONFIG_LIMIT = 4_000_000
"""Bytes; a config.json is some kilobytes, a larger file is something else."""
_SANDWICHED = ("gemma2", "gemma3", "gemma4", "glm4")
"""Kinds with norms before and after each block; their mixtures of experts (GLM-4.5) have two like everybody."""
_HUB_NAME = regex(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*\Z")
_SERVED = {"fp8": 8, "fbgemm_fp8": 8, "mxfp4": 4}
"""quant_method of checkpoints that trainers turn into bf16 (transformers, quantizers/auto.py) → bits."""


def local_config(name: str, environment: Mapping[str, str] | None = None) -> Path | None:
    """The config.json of a folder, of a file, or of a name in the Hugging Face cache (HF_HUB_CACHE, HF_HOME)."""
    environment = os.environ if environment is None else environment
    try:
        path = Path(os.path.expanduser(name))
        for candidate in (path / "config.json", path):
            if candidate.name.endswith(".json") and candidate.is_file():
                return candidate
        return _cached(name, environment)
    except (OSError, ValueError):  # a name with a NUL, too long, or in a folder that may not be read
        return None


def _cached(name: str, environment: Mapping[str, str]) -> Path | None:
    if not _HUB_NAME.match(name):
        return None
    home = environment.get("HF_HOME") or os.path.join(environment.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    hub = environment.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    folder = Path(os.path.expanduser(hub)) / ("models--" + name.replace("/", "--")) / "snapshots"
    found = [file for file in folder.glob("*/config.json") if file.is_file()]
    return max(found, key=lambda file: file.stat().st_mtime, default=None)


def read_config(file: Path) -> ModelFact | None:
    """The shape a config.json gives, `parameters` 0; None where it cannot be read or says no Llama-like decoder."""
    try:
        if file.stat().st_size > CONFIG_LIMIT:
            return None
        config = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return shape_in(config, str(file))


def shape_in(config: object, file: str) -> ModelFact | None:
    """The shape that the content of a config.json gives, `parameters` 0; None where it says none that is known."""
    if not isinstance(config, dict):
        return None
    try:
        return _fact(_in_usual_names(config), file)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None


def _in_usual_names(config: dict[str, Any]) -> dict[str, Any]:
    found = {
        usual: next(config[other] for other in others if config.get(other))
        for usual, others in _OTHER_NAMES.items()
        if not config.get(usual) and any(config.get(other) for other in others)
    }
    named = {**config, **found}
    if config.get("model_type") in _UNGATED and not named.get("intermediate_size"):
        named["intermediate_size"] = 4 * int(named["hidden_size"])
    return named


def _fact(config: Mapping[str, Any], file: str) -> ModelFact:
    nested = config.get("text_config")
    text: Mapping[str, Any] = nested if isinstance(nested, dict) and "hidden_size" in nested else config
    hidden, heads = int(text["hidden_size"]), int(text["num_attention_heads"])
    kind = str(text.get("model_type") or config.get("model_type") or "")
    latent = int(text.get("kv_lora_rank") or 0)
    usual_tied = "gemma" in kind or kind in _UNGATED - _UNTIED  # whether the head is the table where nothing says
    usual: dict[str, Any] = dict(
        name=clean(str(config.get("_name_or_path") or Path(file).parent.name), limit=120),
        hidden=hidden,
        layers=int(text["num_hidden_layers"]),
        intermediate=int(text.get("intermediate_size") or text["moe_intermediate_size"]),
        heads=heads,
        kv_heads=int(text.get("num_key_value_heads") or heads),
        head_dim=int(text["qk_nope_head_dim"]) + int(text["qk_rope_head_dim"])
        if latent
        else int(text.get("head_dim") or hidden // heads),
        vocab=int(text["vocab_size"]),
        tied=bool(config.get("tie_word_embeddings", text.get("tie_word_embeddings", usual_tied))),
        parameters=0,
        qkv_bias=bool(text.get("attention_bias", False)) or kind.startswith(("qwen2", "qwen1")),
        head_norm=_head_norm(kind, text),
        norms_per_layer=4 if kind.startswith(_SANDWICHED) and "moe" not in kind else 2,
        query_rank=int(text.get("q_lora_rank") or 0),
        latent_rank=latent,
        rope_dim=int(text.get("qk_rope_head_dim") or 0) if latent else 0,
        value_dim=int(text.get("v_head_dim") or 0) if latent else 0,
        vision_parameters=_towers(config, kind, hidden),
        source=file,
        context=int(text.get("max_position_embeddings") or 0),
        **_experts(text, kind),
        **_two_kinds_of_layers(text),
        **_linear_attention(text),
        **_quantised(config),
    )
    fact = ModelFact(**{**usual, **_older(text, kind, hidden)})
    if min(fact.hidden, fact.layers, fact.intermediate, fact.heads, fact.kv_heads, fact.head_dim, fact.vocab) < 1:
        raise ValueError(file)
    return fact


def _older(text: Mapping[str, Any], kind: str, hidden: int) -> dict[str, Any]:
    """What kinds before the gated MLP have, and those with an encoder; else empty."""
    if kind not in _UNGATED:
        return {}
    made: dict[str, Any] = {"biases": kind in _BIASED}
    made["gated"] = "gated" in str(text.get("feed_forward_proj", ""))
    if kind in _LEARNED_POSITIONS:
        made["beside"] = int(text["max_position_embeddings"]) * hidden
    if text.get("multi_query") and not text.get("new_decoder_architecture"):
        made["kv_heads"] = 1
    if kind in ("phi", "gptj") or (kind == "falcon" and not text.get("new_decoder_architecture")):
        made["norms_per_layer"] = 1
    if kind in _ENCODES:
        layers = int(text["num_hidden_layers"])
        made["cross_layers"] = int(text.get("num_decoder_layers") or layers)
        made["layers"] = layers + made["cross_layers"]
    return made


def _head_norm(kind: str, text: Mapping[str, Any]) -> Literal["none", "head", "full"]:
    if kind.startswith(("olmo2", "olmo3", "olmoe", "minimax_m2")):
        return "full"
    if text.get("use_qk_norm") and not text.get("kv_lora_rank"):
        return "head"
    return "head" if kind.startswith(("qwen3", "gemma3", "gemma4")) else "none"


def _towers(config: Mapping[str, Any], kind: str, hidden: int) -> int:
    """Parameters of vision and audio towers."""
    vision, audio = config.get("vision_config"), {"model_type": kind, **(config.get("audio_config") or {})}
    seeing = vision_parameters({"model_type": kind, **vision}, hidden) if isinstance(vision, dict) else 0
    hears = isinstance(config.get("audio_config"), dict) and str(audio["model_type"]).startswith("gemma4")
    return seeing + (_GEMMA4_AUDIO + int(audio.get("output_proj_dims", 1536)) * hidden if hears else 0)


def _two_kinds_of_layers(text: Mapping[str, Any]) -> dict[str, Any]:
    """Gemma 4: wider heads in layers of full attention, shared keys and values, per-layer embeddings; else empty."""
    if not text.get("hidden_size_per_layer_input"):
        return {}
    kinds = [str(kind) for kind in text.get("layer_types") or ()]
    shared = int(text.get("num_kv_shared_layers") or 0)
    full = [kind == "full_attention" for kind in kinds]
    return {
        "per_layer_input": int(text["hidden_size_per_layer_input"]),
        "global_layers": sum(full),
        "global_head_dim": int(text.get("global_head_dim") or 0),
        "shared_kv_layers": shared,
        "shared_kv_globals": sum(full[len(full) - shared :]),
        "wide_layers": shared if text.get("use_double_wide_mlp") else 0,
        "engine_heads_dropped": 2,
    }


def _linear_attention(text: Mapping[str, Any]) -> dict[str, Any]:
    """Qwen3-Next and Qwen3.5: most layers keep a state instead of keys and values, the others have a gate."""
    heads, layers = int(text.get("linear_num_value_heads") or 0), int(text["num_hidden_layers"])
    if not heads:
        return {}
    kinds = text.get("layer_types")
    every = int(text.get("full_attention_interval") or 4)
    linear = sum(kind == "linear_attention" for kind in kinds) if kinds else layers - layers // every
    return {
        "gated_attention": bool(text.get("attn_output_gate", True)),
        "linear_layers": linear,
        "linear_key_width": int(text["linear_num_key_heads"]) * int(text["linear_key_head_dim"]),
        "linear_value_width": heads * int(text["linear_value_head_dim"]),
        "linear_heads": heads,
    }


def _quantised(config: Mapping[str, Any]) -> dict[str, Any]:
    """Bits of a weight by `quantization_config`: of formats that only engines serve, or of packed ones."""
    said = config.get("quantization_config")
    if not isinstance(said, dict):
        return {}
    method = str(said.get("quant_method") or "").lower()
    if method in _SERVED:
        return {"served_bits": _SERVED[method]}
    named = said.get("bits") or (4 if said.get("load_in_4bit") else 8 if said.get("load_in_8bit") else 0)
    return {"stored_bits": int(named)} if named else {}


def _experts(text: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Mixture-of-experts fields under the names that Qwen, Mixtral and DeepSeek give them; empty for a dense model."""
    experts = int(text.get("num_experts") or text.get("n_routed_experts") or text.get("num_local_experts") or 0)
    if not experts:
        return {}
    width = int(text.get("moe_intermediate_size") or text["intermediate_size"])
    return {
        "experts": experts,
        "experts_per_token": int(text.get("num_experts_per_tok") or 1),
        "expert_intermediate": width,
        "dense_layers": int(text.get("first_k_dense_replace") or 0),
        "shared_intermediate": int(
            text.get("shared_expert_intermediate_size") or int(text.get("n_shared_experts") or 0) * width
        ),
        "shared_gate": kind.startswith(("qwen2_moe", "qwen3_next", "qwen3_5_moe")),
        "router_bias": str(text.get("topk_method", "")) == "noaux_tc",
    }


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
        + fact.linear_layers * _linear_attention_parameters(fact)
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


def _linear_attention_parameters(fact: ModelFact) -> int:
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
    """Parameters of a vision tower from its `vision_config`; 0 where its form is not one of Qwen's. Qwen2-VL,
    Qwen2.5-VL (gated MLP, RMS norms), Qwen3-VL (learned positions, deepstack mergers) and Qwen3.5 (without the
    latter)."""
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


def _vision_attention(hidden: int) -> int:
    """Fused q, k, v and the output projection, with biases."""
    return 4 * hidden * hidden + 4 * hidden


def _merger(hidden: int, merge: int, out: int, norm: int) -> int:
    """Norm, and two linear layers over merged patches, into the text model's width."""
    wide = hidden * merge
    return norm + wide * wide + wide + wide * out + out
