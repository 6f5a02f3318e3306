"""Optimizers by their names (transformers' `optim`, torch, bitsandbytes): their states, where these live, when they
step."""

from __future__ import annotations

from advisor.memory.constants import KAHAN_MOMENT_BYTES, MOMENT_BYTES_8BIT

_KAHAN = ("adamw_bf16", "anyprecision_adamw")
_NO_MOMENTS = ("sgd", "adafactor", "lomo", "adalomo")
"""Plain SGD and LOMO have none; Adafactor's and AdaLOMO's are a row and a column of each matrix."""
_IN_BACKWARD = ("lomo", "adalomo")


def states_of(name: str, moments: float, extra: float) -> tuple[float, float]:
    """Bytes per parameter of moments, and of temporaries at the step, where AdamW has `moments` and `extra`.

    8-bit states are a byte each (bitsandbytes); Lion has one moment where Adam has two.
    """
    lion = "lion" in name
    if "8bit" in name:
        return MOMENT_BYTES_8BIT / (2 if lion else 1), 0.0
    if name in _KAHAN:
        return KAHAN_MOMENT_BYTES, extra
    if name in _NO_MOMENTS:
        return 0.0, extra if name == "sgd" else 0.0
    return moments / (2 if lion else 1), 0.0 if "fused" in name or lion else extra


def is_paged(name: str) -> bool:
    """Moments in unified memory, which leave a full card by themselves (bitsandbytes, optim/optimizer.py, is_paged)."""
    return name.startswith("paged")


def steps_in_backward(name: str) -> bool:
    """Each weight is stepped, and its gradient freed, as soon as backward has made it (transformers' LOMO and
    layer-wise optimizers, src/transformers/trainer.py)."""
    return name in _IN_BACKWARD or name.endswith("_layerwise")


def is_low_rank(name: str) -> bool:
    """GaLore and APOLLO keep moments of projections, whose rank no setting read here tells."""
    return name.startswith(("galore", "apollo"))
