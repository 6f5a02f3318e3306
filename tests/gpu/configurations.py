"""What is measured: a model, how it is trained, by which framework's path, on how many tokens; the same as knobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.gpu.shapes import SHAPES, Shape

States = Literal["bf16", "autocast", "fsdp", "lora", "zero"]
"""All in bf16 · fp32 under autocast · FSDP2 with bf16 compute · LoRA on a bf16 base · DeepSpeed's states, held only."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """One run. Tokens and rows are those of one pass; `passes` of them make one optimizer step."""

    shape: Shape
    path: str
    framework: str
    version: str
    states: States = "bf16"
    rows: int = 4
    prompt: int = 96
    response: int = 160
    checkpointing: bool = True
    passes: int = 2
    step: Literal["foreach", "fused", "loop"] | None = None
    ranks: int = 1
    knobs: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """In words that tell it from all others."""
        parts = [self.shape.name, self.path, self.states, f"{self.rows}x({self.prompt}+{self.response})"]
        parts += [] if self.checkpointing else ["no checkpointing"]
        parts += [] if self.passes > 1 else ["one pass"]
        parts += [] if self.step is None else [self.step]
        parts += [] if self.ranks == 1 else [f"{self.ranks} ranks"]
        return " · ".join(parts)

    @property
    def optimizer(self) -> str:
        """How torch's AdamW steps: EasyR1 asks for the fused one, the others leave it to torch (foreach on a GPU)."""
        return self.step or ("fused" if self.framework == "easyr1" else "foreach")

    @property
    def compared(self) -> tuple[str, ...]:
        """Phases in which the run holds what the ledger counts.

        DeepSpeed's step is not run here; a compiled entropy without gradients is what a compiler makes of it.
        """
        if self.states == "zero":
            return ("log_prob", "actor_update")
        if "compiled" in self.path or "scored" in self.path:
            return ("actor_update", "optimizer_step")
        return ("log_prob", "actor_update", "optimizer_step")

    @property
    def run_knobs(self) -> dict[str, Any]:
        """The configuration in the ledger's own words."""
        held = self.rows * self.passes
        knobs: dict[str, Any] = {
            "data.prompt_tokens": self.prompt,
            "data.response_tokens": self.response,
            "data.total_tokens": self.prompt + self.response,
            "actor.micro_batch": self.rows,
            "logprob.micro_batch": self.rows,
            "reference.micro_batch": self.rows,
            "rollout.forward_micro_batch": self.rows,
            "actor.sequences_per_gpu": held,
            "actor.accumulation": self.passes,
            "actor.gradient_checkpointing": self.checkpointing,
            "actor.remove_padding": False,
            "actor.dynamic_batch": False,
            "algorithm.kl": False,
            "critic.present": False,
            "reference.present": False,
            "rollout.engine": "hf",
            "rollout.sleeps": False,
            "actor.param_offload": False,
            "actor.optimizer_offload": False,
            "actor.entropy": "entropy" in self.path and "scored" not in self.path,
            "logprob.entropy_in_chunks": "chunked" in self.path,
            "actor.fused_loss": "fused" in self.path,
            "actor.optimizer": OPTIMIZERS[self.optimizer],
            "actor.lora_rank": LORA_RANK if self.states == "lora" else 0,
            "actor.full_finetuning": self.states != "lora",
        }
        if self.states in ("bf16", "autocast"):
            knobs["actor.load_precision"] = "bfloat16" if self.states == "bf16" else "float32"
        if self.states == "lora":
            knobs["actor.load_precision"] = "bfloat16"
        if self.states == "zero":
            knobs["actor.zero_stage"] = 2
        if self.packed:
            # Rows of equal length: packed they are a budget that is filled exactly.
            knobs |= {
                "data.longest_row": "cap",
                "actor.remove_padding": True,
                "actor.dynamic_batch": True,
                "logprob.dynamic_batch": True,
                "actor.tokens_per_gpu": self.rows * (self.prompt + self.response),
                "logprob.tokens_per_gpu": self.rows * (self.prompt + self.response),
            }
        return knobs | self.knobs

    @property
    def packed(self) -> bool:
        """Whether the rows of a pass lie one after the other in one row."""
        return self.path == "openrlhf" or (self.path.startswith("verl") and "padded" not in self.path)


LORA_RANK = 16
OPTIMIZERS = {"foreach": "adamw_torch", "fused": "adamw_torch_fused", "loop": "adamw_torch"}
"""As transformers names them."""
_TRL = ("trl", "1.0.0")
_TRL_OLD = ("trl", "0.24.0")
_VERL = ("verl", "0.5.0")
_EASYR1 = ("easyr1", "0.3.2")
_OPENRLHF = ("openrlhf", "0.9.0")
_OPENRLHF_OLD = ("openrlhf", "0.5.0")


def configurations() -> Iterator[Configuration]:
    """All of them; none needs more than 2 GB."""
    yield from _logits()
    yield from _activations()
    yield from _states()
    yield from _sharded()


def _logits() -> Iterator[Configuration]:
    """Each path, on models whose vocabulary weighs."""
    qwen, llama, big = SHAPES["qwen2-tied"], SHAPES["llama-tied"], SHAPES["qwen2-untied"]
    for shape in (qwen, llama):
        for states in ("bf16", "autocast"):
            yield Configuration(shape, "trl view", *_TRL, states=states)
            yield Configuration(shape, "trl copy", *_TRL_OLD, states=states)
        yield Configuration(shape, "trl view bf16", *_TRL, states="zero")
        yield Configuration(shape, "trl copy bf16", *_TRL_OLD, states="zero")
        yield Configuration(shape, "verl", *_EASYR1, states="fsdp")
        yield Configuration(shape, "verl entropy compiled", *_VERL, states="fsdp")
        yield Configuration(shape, "verl padded entropy", *_VERL, states="fsdp")
        yield Configuration(shape, "openrlhf", *_OPENRLHF, states="zero")
        yield Configuration(shape, "openrlhf old", *_OPENRLHF_OLD, states="zero")
    yield Configuration(big, "verl fused", *_VERL, states="fsdp", rows=8, response=928)
    yield Configuration(big, "verl entropy scored", *_VERL, states="fsdp")
    yield Configuration(qwen, "verl entropy chunked", *_VERL, states="fsdp", rows=2, response=1440)
    yield Configuration(big, "trl view", *_TRL, rows=1, response=1024)
    yield Configuration(big, "trl view", *_TRL, rows=16, response=64)
    yield Configuration(big, "trl copy", *_TRL_OLD, rows=1, response=1024)
    yield Configuration(big, "trl view bf16", *_TRL, states="zero", rows=1, response=1024)
    yield Configuration(big, "trl copy bf16", *_TRL_OLD, states="zero", rows=1, response=1024)
    yield Configuration(qwen, "trl copy bf16", *_TRL_OLD, states="zero", rows=2, response=1024)
    yield Configuration(qwen, "trl view bf16", *_TRL, states="zero", rows=2, response=1024)
    yield Configuration(qwen, "trl copy", *_TRL_OLD, rows=2, response=1024)
    yield Configuration(qwen, "trl view", *_TRL, states="autocast", rows=2, response=1024)
    yield Configuration(llama, "verl entropy chunked", *_VERL, states="fsdp", rows=4, response=1440)


def _activations() -> Iterator[Configuration]:
    """Few words, long sequences."""
    for name in ("deep", "deep-qwen3", "deep-mha"):
        for checkpointing in (True, False):
            for states in ("bf16", "autocast", "fsdp", "lora"):
                path, era = ("verl", _EASYR1) if states == "fsdp" else ("trl copy", _TRL_OLD)
                tokens = 1952 if checkpointing else 928
                yield Configuration(
                    SHAPES[name], path, *era, states=states, response=tokens, checkpointing=checkpointing
                )


def _states() -> Iterator[Configuration]:
    """Optimizers, one pass or several, adapters."""
    shape, wide = SHAPES["qwen3-tied"], SHAPES["llama-untied"]
    for optimizer in ("foreach", "fused", "loop"):
        yield Configuration(shape, "trl copy", *_TRL_OLD, rows=1, response=64, step=optimizer)
    for passes in (1, 2):
        yield Configuration(wide, "trl copy", *_TRL_OLD, states="autocast", rows=1, response=64, passes=passes)
        yield Configuration(wide, "trl copy", *_TRL_OLD, rows=1, response=64, passes=passes)
    yield Configuration(wide, "verl", *_EASYR1, states="fsdp", rows=1, response=64)
    yield Configuration(wide, "verl", *_EASYR1, states="fsdp", passes=1)
    yield Configuration(shape, "trl view", *_TRL, passes=1)
    yield Configuration(shape, "trl view", *_TRL, states="lora")
    yield Configuration(wide, "trl copy", *_TRL_OLD, states="lora")


def _sharded() -> Iterator[Configuration]:
    """FSDP2 over ranks of which only this one computes."""
    for name in ("llama-tied", "qwen2-untied", "llama-untied", "deep-mha"):
        yield Configuration(SHAPES[name], "verl", *_EASYR1, states="fsdp", ranks=8)
    for name in ("llama-untied", "llama-tied"):
        yield Configuration(SHAPES[name], "verl", *_EASYR1, states="fsdp", ranks=8, rows=1, response=32)
