"""Finds whether a run merges adapters into their base, or exports a model: by its frames, its program or its text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from advisor.crash.evidence import Frame
from advisor.crash.phase import frame_words
from advisor.diagnosis.fact import Fact
from advisor.regex import regex

_CALLS = (
    r"(?:unsloth_(?:save|push)\w*|(?:save_pretrained|push_to_hub)_(?:merged|gguf|torchao)"
    r"|merge_and_unload|_unload_and_optionally_merge|merge_lora)"
)
FUNCTION = regex(rf"^(?:{_CALLS}|_merge_lora|export_model|merge_lora_\w+)$")
"""Functions that merge or export: unsloth's save.py, peft, LLaMA-Factory's tuner.py, ms-swift and axolotl."""
UNSLOTH_FILE = regex(r"(?:^|/)(?:unsloth\w*/save|saving_utils)\.py$")
STATED = regex(
    rf"^[^#\n]*?(\b{_CALLS}\s*\(|\b(?:llamafactory-cli|swift) export\b|\bexport_model\.py\b|\baxolotl merge[-_]lora\b"
    r"|\b\w*merge_(?:\w+_)?(?:adapters?|lora|peft|model)\w*\.py\b|(?:--|\b)merge_lora[ =:]+[Tt]rue\b|\bexport_dir\b)",
    re.MULTILINE,
)
"""A call or a command of a launch that merges or exports, outside comments."""
CONVERTS = regex(
    r"^[^#\n]*?(\S*tools/checkpoint/(?:convert|util)\.py|zero_to_fp32(?:\.py)?\b|\bscripts/converters?/\S*\.py"
    r"|\b(?:convert|export)_\w*(?:checkpoint|ckpt|hf|megatron|mcore|dcp)\w*\.py|\w+(?:2|_to_)(?:hf|mcore|megatron)\w*\.py)",
    re.MULTILINE,
)
"""A program that writes a checkpoint in another form (Megatron-LM, DeepSpeed, NeMo, verl)."""
UNSLOTH_CALL = regex(r"unsloth_|(?:save_pretrained|push_to_hub)_(?:merged|gguf|torchao)")


def merge_facts(frames: Sequence[Frame], text: str) -> dict[str, Fact]:
    """merges, with merges.unsloth or merges.converts where it is unsloth's own, or writes a checkpoint in another form.
    `text`: of the launch; "" where there is none."""
    for frame in reversed(frames):
        own = UNSLOTH_FILE.search(frame.file.replace("\\", "/")) is not None
        if own or FUNCTION.match(frame.function):
            because = frame_words(frame)
            return _facts(own or UNSLOTH_CALL.match(frame.function) is not None, Fact(True, "log", because))
    found = STATED.search(text)
    if found is None:
        made = CONVERTS.search(text)
        fact = Fact(True, "script", made[1]) if made is not None else None
        return {} if fact is None else {"merges": fact, "merges.converts": fact}
    stated = " ".join(found[1].split()).rstrip("(").strip()
    return _facts(UNSLOTH_CALL.match(stated) is not None, Fact(True, "script", stated))


def _facts(unsloth: bool, fact: Fact) -> dict[str, Fact]:
    return {"merges": fact, "merges.unsloth": fact} if unsloth else {"merges": fact}
