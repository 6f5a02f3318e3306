"""Tells whether a checkpoint was being loaded to resume a run, or had just been, and whether another model was trained
before it in the same process."""

from __future__ import annotations

import re
from collections.abc import Sequence

from advisor.crash.evidence import Crash, Frame
from advisor.crash.phase import frame_words
from advisor.diagnosis.card_facts import grouped
from advisor.diagnosis.fact import Fact
from advisor.diagnosis.frame_facts import PASS
from advisor.hostile import clean_line
from advisor.language import say
from advisor.regex import regex
from advisor.run.run import Run

RESTORES = regex(
    r"torch/optim/\w+\.py:(?:load_state_dict|_process_value_according_to_param_policy|_cast)$|"
    r"(?:accelerate|torch/distributed)/\S*:(?:load_state|load_fsdp_optimizer|(?:shard_)?optim_state_dict_to_load|"
    r"scatter_full_optim_state_dict|set_optimizer_state_dict|set_state_dict)$|"
    r"deepspeed/\S*:(?:load_checkpoint|_load_zero_checkpoint|_get_all_zero_checkpoint\w*|load_hp_checkpoint_state\w*|"
    r"_load_universal_checkpoint|_load_elastic_checkpoint|_restore_\w+)$|"
    r":(?:_load_optimizer_and_scheduler|_load_from_checkpoint|_load_checkpoint|load_checkpoint|"
    r"(?:_?maybe_)?resume(?:_\w+|d\w*)?|restore(?:_checkpoint|_states?)?)$"
)
"""Functions that bring back what a checkpoint holds (torch, accelerate, DeepSpeed, transformers, verl, Megatron)."""
RESTORED = regex(r"torch\.load\([^)]*(?:resum|ckpt|checkpoint|optim)|optimi[sz]er\w*\.load_state_dict\(")
"""Source lines of a program's own that do so."""
NOT_A_RUN = regex(
    r":(?:from_pretrained|_?load_pretrained_model|train|fit|step|resume_\w*(?:memory|occupation)\w*|wake_up)$"
    r"|(?:torch_memory_saver|vllm|sglang)\w*/"
)
"""Functions that load a model from its files, take an engine's memory back, or train."""
KEYS = regex(r"(?:^|[./_-])(?:resume(?:[._-]?(?:from|path|dir|mode|training|checkpoint)\w*)*|load_checkpoint)$")
GIVEN = regex(r"resume_from_checkpoint\s*=\s*(?:true\b|\w?['\"])|resume_mode=resume_path", re.IGNORECASE)
"""A call that makes a run go on from a checkpoint (transformers, verl); a variable that it hands on may be None."""
OFF = regex(r"(?i)^(?:|none|null|false|no|0|auto|disable|never)$")
"""Settings that name what a run resumes from, and what they say where it does not, or only may."""


LOOP = regex(r"(?m)^(?P<in>[ \t]*)(?P<head>for\b.*:)[ \t]*(?P<body>(?:\n(?:(?P=in)[ \t]+.*|[ \t]*))+)")
LOADS, TRAINS = regex(r"\.from_pretrained\("), regex(r"\.(?:train|fit)\(")


def earlier_facts(crash: Crash, text: str, ran: bool) -> dict[str, Fact]:
    """earlier.model: another model was trained before, by the log, or by a loop of the launch that loads and trains in
    each round, where steps were done before a model was loaded. `text`: of the launch."""
    if crash.trained_before is not None:
        because = say("line {line} sums up a training, and a model is loaded after it", line=crash.trained_before)
        return {"earlier.model": Fact(True, "log", because)}
    for loop in LOOP.finditer(text) if ran and crash.phase == "model_load" else ():
        if LOADS.search(loop["body"]) and TRAINS.search(loop["body"]):
            line = clean_line(loop["head"], 80)
            because = say("each round of a loop loads a model and trains it: {line}", line=line)
            return {"earlier.model": Fact(True, "script", because)}
    return {}


def resume_facts(crash: Crash, run: Run) -> dict[str, Fact]:
    """frame.resumes: a checkpoint was being loaded; resumed: one had been, and no step was done since."""
    facts: dict[str, Fact] = {}
    if (frame := _restoring(crash.failing)) is not None:
        facts["frame.resumes"] = Fact(True, "log", frame_words(frame))
    if crash.resumed is not None:
        because = say("line {line} resumes from a checkpoint, and no step follows", line=grouped(crash.resumed))
        facts["resumed"] = Fact(True, "log", because)
    named = (one for one in run.settings if KEYS.search(one.key) and one.value is not None)
    asked = next((one for one in named if not OFF.match(str(one.value))), None)
    called = next((frame for frame in crash.frames if GIVEN.search(frame.text)), None)
    if asked is not None:
        facts["resumes"] = Fact(True, "script", f"{asked.key} = {asked.value}")
    elif called is not None:
        facts["resumes"] = Fact(True, "log", frame_words(called))
    return facts


def _restoring(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame that brings a checkpoint back, where nothing is trained below it."""
    for frame in reversed(frames):
        name = f"{frame.file}:{frame.function}".replace("\\", "/")
        if PASS.match(frame.function) or NOT_A_RUN.search(name):
            return None
        if RESTORES.search(name) or RESTORED.search(frame.text):
            return frame
    return None
