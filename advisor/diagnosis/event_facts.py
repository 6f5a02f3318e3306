"""Tells what came beside the steps of a run: whether a checkpoint or an evaluation was due, whether a checkpoint or
another model had been loaded, and whether a model is merged or exported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from advisor.crash.evidence import Crash, Frame
from advisor.crash.phase import frame_words
from advisor.diagnosis.card_facts import grouped
from advisor.diagnosis.fact import Fact
from advisor.diagnosis.frame_facts import PASS
from advisor.hostile import clean_line
from advisor.language import listed, say, say_count
from advisor.regex import regex
from advisor.run.run import Knob, Run

LEAST = 4
"""Steps of an interval: what comes with every step or two is due anywhere, and tells something at its first time alone
(judgement)."""
_EVENTS = (
    ("save.due", "save.first", "checkpoint.every", "checkpoint.when"),
    ("eval.due", "eval.first", "eval.every", "eval.on"),
)
"""What comes now and then: its facts, the knobs of its interval, and of what counts it or switches it off."""
_NAMES = {
    "checkpoint.every": re.compile(
        r"(?:^|[./_-])(?:save|ckpt|checkpoint(?:ing)?)[_-](?:steps|interval|freq|every)(?:[_-]steps)?$"
    )
}
"""What a launch that no dialect describes mostly calls an interval."""
_OTHERWISE = ("epoch", "best")
"""Intervals that are no number of steps."""
_NEVER = ("no", "false", "none")


def due_facts(run: Run, done: int | None) -> dict[str, Fact]:
    """save.due, eval.due: whether it came with the step that failed; .first: no earlier one had. `done`: steps.

    Some trainers print a step before what comes with it and some behind it: a step beside the interval counts as due.
    """
    facts: dict[str, Fact] = {}
    for due, first, interval, counted_by in _EVENTS:
        knob, when = run.knobs.get(interval) or _by_name(run, _NAMES.get(interval)), run.knobs.get(counted_by)
        switch = str(when.value).lower() if when is not None else ""
        if switch in _NEVER and when is not None and when.source != "default":
            facts[due] = Fact(False, "script", f"{when.key} = {when.value}")
        elif knob is not None and switch not in _OTHERWISE and _is_known(knob, run):
            facts.update(_due(due, first, knob, done))
    return facts


def event_facts(run: Run) -> dict[str, Fact]:
    """events: the saves and evaluations that the launch itself makes due now and then."""
    stated: list[str] = []
    for _, _, interval, counted_by in _EVENTS:
        every, when = (_stated(run.knobs.get(name)) for name in (interval, counted_by))
        if when is not None and str(when.value).lower() in (*_OTHERWISE, *_NEVER):
            every = None
        told = when if every is None else every
        if told is not None and str(told.value).lower() not in _NEVER:
            stated.append(f"{told.key} {told.value:g}" if isinstance(told.value, float) else f"{told.key} {told.value}")
    return {"events": Fact(True, "script", listed(stated))} if stated else {}


def _stated(knob: Knob | None) -> Knob | None:
    return None if knob is None or not knob.key or knob.source in ("default", "assumed") else knob


def _by_name(run: Run, names: re.Pattern[str] | None) -> Knob | None:
    """The interval by its usual name, where no dialect says what its settings mean."""
    if names is None or run.framework != "unknown":
        return None
    other = (*_OTHERWISE, *_NEVER)
    if any(one.key.endswith("save_strategy") and str(one.value).lower() in other for one in run.settings):
        return None
    found = [(one.key, one.value) for one in run.settings if names.search(one.key)]
    key, text = found[-1] if found else ("", None)
    value = int(text) if isinstance(text, str) and text.isdecimal() else text
    return Knob("checkpoint.every", value, key=key, source="script") if isinstance(value, (int, float)) else None


def _is_known(knob: Knob, run: Run) -> bool:
    """A default counts where the whole launch was seen."""
    return isinstance(knob.value, (int, float)) and (knob.source != "default" or run.seen_whole)


def _due(due: str, first: str, knob: Knob, done: int | None) -> dict[str, Fact]:
    every = float(knob.value) if isinstance(knob.value, (int, float)) else 0.0
    told = {"key": knob.key, "every": f"{every:g}"}
    if every <= 0:
        return {due: Fact(False, "script", f"{knob.key} = {knob.value}")}
    if done is None or every != int(every) or (due == "eval.due" and not done):  # some evaluate before the first step
        return {}
    if (done and done % every == 0) or (done + 1) % every == 0:
        because = _told(done, told)
        none_before = done <= every
        certain = every >= LEAST or done == every
        return {due: Fact(True, "log", because), first: Fact(none_before, "log", because)} if certain else {}
    return {due: Fact(False, "log", _told(done, told))}


def _told(done: int, told: Mapping[str, object]) -> str:
    return say_count(
        "{number} step was done, and {key} = {every}", "{number} steps were done, and {key} = {every}", done, **told
    )


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
RESUME_KEYS = regex(r"(?:^|[./_-])(?:resume(?:[._-]?(?:from|path|dir|mode|training|checkpoint)\w*)*|load_checkpoint)$")
RESUMES = regex(r"""resume_from_checkpoint ?= ?(?:True\b|f?["']|/)|resume_mode=resume_path""")
"""A call that makes a run go on from a checkpoint (transformers, verl); a variable's name tells nothing."""
RESUMES_NOT = regex(r"(?i)^(?:|none|null|false|no|0|auto|disable|never)$")
"""Settings that name what a run resumes from, and what they say where it does not, or only may."""


ROUNDS = regex(r"(?m)^(?P<in>[ \t]*)(?P<head>for\b.*:)[ \t]*(?P<body>(?:\n(?:(?P=in)[ \t]+.*|[ \t]*))+)")
LOADS, TRAINS = regex(r"\.from_pretrained\("), regex(r"\.(?:train|fit)\(")


def earlier_facts(crash: Crash, text: str, ran: bool) -> dict[str, Fact]:
    """earlier.model: another model was trained before, by the log, or by a loop of the launch that loads and trains in
    each round, where steps were done before a model was loaded. `text`: of the launch."""
    if crash.trained_before is not None:
        because = say("line {line} sums up a training, and a model is loaded after it", line=crash.trained_before)
        return {"earlier.model": Fact(True, "log", because)}
    for loop in ROUNDS.finditer(text) if ran and crash.phase == "model_load" else ():
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
    named = (one for one in run.settings if RESUME_KEYS.search(one.key) and one.value is not None)
    asked = next((one for one in named if not RESUMES_NOT.match(str(one.value))), None)
    called = next((frame for frame in crash.frames if RESUMES.search(frame.text)), None)
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


_CALLS = (
    r"(?:unsloth_(?:save|push)\w*|(?:save_pretrained|push_to_hub)_(?:merged|gguf|torchao)"
    r"|merge_and_unload|_unload_and_optionally_merge|merge_lora)"
)
MERGES = regex(rf"^(?:{_CALLS}|_merge_lora|export_model|merge_lora_\w+)$")
"""Functions that merge or export: unsloth's save.py, peft, LLaMA-Factory's tuner.py, ms-swift and axolotl."""
UNSLOTH_FILE = regex(r"(?:^|/)(?:unsloth\w*/save|saving_utils)\.py$")
MERGE_STATED = regex(
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
        if own or MERGES.match(frame.function):
            because = frame_words(frame)
            return _merging(own or UNSLOTH_CALL.match(frame.function) is not None, Fact(True, "log", because))
    found = MERGE_STATED.search(text)
    if found is None:
        made = CONVERTS.search(text)
        fact = Fact(True, "script", made[1]) if made is not None else None
        return {} if fact is None else {"merges": fact, "merges.converts": fact}
    stated = " ".join(found[1].split()).rstrip("(").strip()
    return _merging(UNSLOTH_CALL.match(stated) is not None, Fact(True, "script", stated))


def _merging(unsloth: bool, fact: Fact) -> dict[str, Fact]:
    return {"merges": fact, "merges.unsloth": fact} if unsloth else {"merges": fact}
