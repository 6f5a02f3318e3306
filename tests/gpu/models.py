"""A model with its optimizer, in one of the ways frameworks keep training states."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from tests.gpu.configurations import LORA_RANK, Configuration

LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
ZERO_BYTES = 12
"""DeepSpeed's fp32 master and two moments, a parameter."""


@dataclass(slots=True)
class Trained:
    """A model and what trains it. `held` are states that are only there (DeepSpeed's)."""

    model: Any
    optimizer: torch.optim.Optimizer | None
    autocast: bool
    device: str
    held: torch.Tensor | None = None

    def computing(self) -> AbstractContextManager[Any]:
        """The context in which forward runs."""
        return torch.autocast(self.device, dtype=torch.bfloat16) if self.autocast else nullcontext()


def build(configuration: Configuration, device: str, attention: str) -> Trained:
    """Random weights on `device`."""
    fp32 = configuration.states in ("autocast", "fsdp")
    settings = dict(configuration.shape.config)
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(
            config, dtype=torch.float32 if fp32 else torch.bfloat16, attn_implementation=attention
        )
    model.train()
    if configuration.checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if configuration.states == "lora":
        model = _with_adapters(model, configuration.checkpointing)
    elif configuration.states == "fsdp":
        model = _shard(model, device, configuration.ranks)
    autocast = configuration.states in ("autocast", "lora", "fsdp")
    if configuration.states == "zero":
        count = sum(p.numel() for p in model.parameters())
        return Trained(model, None, False, device, torch.empty(ZERO_BYTES * count, dtype=torch.uint8, device=device))
    trained = [p for p in model.parameters() if p.requires_grad]
    kind = {"foreach": configuration.optimizer == "foreach", "fused": configuration.optimizer == "fused"}
    return Trained(model, torch.optim.AdamW(trained, **kind), autocast, device)


def _with_adapters(model: Any, checkpointing: bool) -> Any:
    """LoRA on all linear layers; PEFT keeps the adapters in fp32."""
    from peft import LoraConfig, get_peft_model

    if checkpointing:
        model.enable_input_require_grads()
    config = LoraConfig(
        r=LORA_RANK, lora_alpha=16, lora_dropout=0.0, target_modules=list(LINEAR), task_type="CAUSAL_LM"
    )
    return get_peft_model(model, config)


def _shard(model: Any, device: str, ranks: int) -> Any:
    """FSDP as verl and EasyR1 set it up: every layer a unit; embedding, last norm and head together the root."""
    from functools import partial

    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

    _join(device, ranks)
    layers = {type(model.model.layers[0])}
    return FullyShardedDataParallel(
        model,
        auto_wrap_policy=partial(transformer_auto_wrap_policy, transformer_layer_cls=layers),
        mixed_precision=MixedPrecision(torch.bfloat16, reduce_dtype=torch.float32, buffer_dtype=torch.float32),
        device_id=torch.device(device, 0) if device == "cuda" else torch.device(device),
        use_orig_params=False,
        forward_prefetch=False,
    )


def _join(device: str, ranks: int) -> None:
    """A process group of one real rank, or of several of which this one alone exists."""
    import torch.distributed as dist

    if dist.is_initialized():
        if dist.get_world_size() == ranks:
            return
        dist.destroy_process_group()
    if device == "cuda" and ranks == 1:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29531")
        dist.init_process_group("nccl", rank=0, world_size=1)
        return
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
