"""Two training steps of a configuration, their phases read one by one; the second step's peaks are the answer."""

from __future__ import annotations

import gc

import torch

from tests.gpu.configurations import Configuration
from tests.gpu.losses import PATHS, Path, Tokens
from tests.gpu.meters import CpuMeter, CudaMeter, Meter, Reading
from tests.gpu.models import Trained, build

PHASES = ("log_prob", "actor_update", "optimizer_step")


def measure(configuration: Configuration, device: str) -> dict[str, Reading]:
    """Peaks by phase. On "cuda" by its allocator, on "cpu" by allocations counted."""
    meter: Meter = CudaMeter() if device == "cuda" else CpuMeter()
    with meter.whole():
        _run(configuration, device, _attention(device), meter)
    gc.collect()
    return {phase: meter.readings[phase] for phase in PHASES if phase in meter.readings}


def _attention(device: str) -> str:
    """FlashAttention where it is installed, else torch's own kernel of that name; on the CPU a stand-in."""
    from importlib.util import find_spec

    if device == "cuda":
        return "flash_attention_2" if find_spec("flash_attn") else "sdpa"
    from tests.gpu import flash

    return flash.register()


def _run(configuration: Configuration, device: str, attention: str, meter: Meter) -> None:
    trained = build(configuration, device, attention)
    length = configuration.prompt + configuration.response
    tokens = Tokens(torch.zeros((configuration.rows, length), dtype=torch.long, device=device), configuration.response)
    path = PATHS[configuration.path]
    _step(trained, tokens, path, 1)
    with meter.step("log_prob"), torch.no_grad(), trained.computing():
        path(trained.model, tokens, False)
    with meter.step("actor_update"):
        _update(trained, tokens, path, configuration.passes)
    if trained.optimizer is not None:
        with meter.step("optimizer_step"):
            trained.optimizer.step()


def _step(trained: Trained, tokens: Tokens, path: Path, passes: int) -> None:
    """A whole step, which makes the optimizer's moments."""
    _update(trained, tokens, path, passes)
    if trained.optimizer is not None:
        trained.optimizer.step()
    trained.model.zero_grad(set_to_none=True)


def _update(trained: Trained, tokens: Tokens, path: Path, passes: int) -> None:
    for _ in range(passes):
        with trained.computing():
            loss = path(trained.model, tokens, True)
        loss.backward()
        del loss
