"""Small models with the proportions of Llama, Qwen2 and Qwen3; weights are random, nothing is downloaded."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a config.json says of a dense decoder."""

    name: str
    family: str
    hidden: int
    layers: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool

    @property
    def config(self) -> dict[str, Any]:
        """The config.json."""
        return {
            "architectures": [_ARCHITECTURES[self.family]],
            "model_type": self.family,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "intermediate_size": self.intermediate,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "vocab_size": self.vocab,
            "tie_word_embeddings": self.tied,
            "max_position_embeddings": 65536,
        }

    def write(self, folder: Path) -> Path:
        """Lay the config.json into a folder of the shape's name; returns the folder."""
        place = folder / self.name
        place.mkdir(parents=True, exist_ok=True)
        (place / "config.json").write_text(json.dumps(self.config))
        return place


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("qwen2-tied", "qwen2", 448, 4, 2432, 7, 1, 64, 32768, True),
        Shape("qwen3-tied", "qwen3", 512, 4, 1536, 8, 4, 128, 32768, True),
        Shape("llama-tied", "llama", 1024, 2, 4096, 16, 4, 64, 32000, True),
        Shape("qwen2-untied", "qwen2", 512, 4, 1408, 8, 2, 64, 65536, False),
        Shape("llama-untied", "llama", 768, 4, 2048, 12, 12, 64, 32000, False),
        Shape("deep", "llama", 512, 12, 1408, 8, 2, 64, 2048, False),
        Shape("deep-qwen3", "qwen3", 512, 12, 1536, 8, 4, 128, 2048, True),
        Shape("deep-mha", "llama", 512, 12, 1408, 8, 8, 64, 2048, False),
    )
}
"""By name: proportions of Qwen2.5-0.5B, Qwen3-0.6B and Llama-3.2-1B at half their width, and untied and deep ones."""
