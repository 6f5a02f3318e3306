"""Reads from a log how DeepSpeed shares the states, where its file is not there."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.knowledge.schema import Framework

_STAGE = "zero_optimization.stage"
_DEVICES = ("zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device")
_FILE = "deepspeed"
"""The option that names the file, of every framework that has keys of one (transformers' training_args.py)."""
_PRINTED = "the log"


def printed_sharing(
    framework: Framework | None, settings: Mapping[str, str], figures: Mapping[str, str]
) -> dict[str, str]:
    """DeepSpeed's stage and offload as its configuration in the log has them, under the framework's own keys.

    `figures`: knobs that single lines show. {} where the log shows no stage, or the framework reads no such file.
    """
    if framework is None or not {_FILE, f"{_FILE}:{_STAGE}"} <= framework.settings.keys():
        return {}
    stage = settings.get(_STAGE, settings.get("zero_optimization_stage", figures.get("actor.zero_stage", "")))
    if stage not in ("0", "1", "2", "3"):
        return {}
    told = {f"{_FILE}:{key}": settings[key] for key in _DEVICES if key in settings}
    if figures.get("actor.optimizer_offload") == "true":
        told.setdefault(f"{_FILE}:{_DEVICES[0]}", "cpu")
    return {_FILE: _PRINTED, f"{_FILE}:{_STAGE}": stage, **told}
