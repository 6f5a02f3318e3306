"""Handles config files that a launch names and that were not found: what they decide, what is taken for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from advisor.knowledge.schema import Framework, Mechanics, Sharding
from advisor.language import mark, say
from advisor.run.natives import Natives, native
from advisor.run.run import Knob, Unread
from advisor.script.launch import Launch, NotFound

STAGE = "actor.zero_stage"
TRAINERS = ("deepspeed", "ddp")
"""Trainers (see Mechanics) whose sharding a launcher's file may choose; the others have settings for it."""
_LAUNCHERS = ("accelerate", "deepspeed", "fsdp")
_SAYS_IT = (
    *("--config_file", "--config-file", "--deepspeed_config_file", "--use_deepspeed", "--use_fsdp"),
    *("--zero_stage", "--multi_gpu"),
)
"""Options of accelerate that say how it shards."""
_WHY: dict[str, str] = {
    "user": mark("{choice}, as you said"),
    "option": mark("{choice}, by {key}"),
    "sums": mark("{choice}, by the sizes of the log"),
    "name": mark("{choice}, by the name of {file}"),
    "nothing": mark("{choice}, by the name of {file}"),
}
_DOUBTS: dict[str, str] = {
    "user": mark("The file {file} ({key}) {absent}; as you said, memory is counted for {choice}."),
    "option": mark("The file {file} ({key}) {absent}; memory is counted for {choice}, without what else it may set."),
    "nothing": mark(
        "The file {file} ({key}) {absent}, so how the states are sharded is not known: answer the question on it, the "
        "sums may be far off."
    ),
    "name": mark("The file {file} ({key}) {absent}; by its name, memory is counted for {choice}, a guess."),
    "against": mark(
        "The file {file} ({key}) {absent}; by its name, memory is counted for {choice}, though the log speaks against "
        "it. The frame {frame} is never there with it: answer the question on the file."
    ),
}
_STAGE_KEY = "zero_optimization.stage"
_DEVICES = ("zero_optimization.offload_optimizer.device", "zero_optimization.offload_param.device")
_DEEPSPEED = "deepspeed"
"""The option that names the file, of every framework that has keys of one (transformers' training_args.py)."""
_PRINTED = "the log"
_OWN_FILE = "~/.cache/huggingface/accelerate/default_config.yaml"


def unread_sharding(
    launch: Launch | None, known: Sequence[Sharding], answer: str | None, frames: Sequence[str] = ()
) -> Unread | None:
    """The missing file that would say it; `answer`: the user's choice, "unknown", or None where nobody was asked.
    `frames` of the log's traceback, "path/file.py:function", may speak against a name. None: no such file is
    missing."""
    files = [one for one in launch.not_found if one.holds in _LAUNCHERS] if launch is not None else []
    if not files:
        own = accelerates_own(launch, known)
        told = next((one for one in known if one.id == answer), None)
        return None if own is None or told is None else _as_told(own, told)
    named = [(one, found) for one in files if (found := suggested_by(one, known)) is not None]
    file, by_name = named[0] if named else (files[0], None)
    open_to = tuple(one.id for one in _possible(file, known))
    told = next((one for one in known if one.id == answer), None)
    if told is not None:
        return _as_told(Unread(file.file, file.key, file.absent, choices=open_to), told)
    if by_name is not None and (answer is None or len(open_to) == 1):
        by: Literal["option", "name"] = "option" if len(open_to) == 1 else "name"
        taken_for = Unread(file.file, file.key, file.absent, by_name.id, by_name.title, by, by_name.knobs, open_to)
        return replace(taken_for, against=_against(by_name, frames), settings=by_name.settings)
    return Unread(file.file, file.key, file.absent, choices=open_to)


def accelerates_own(launch: Launch | None, known: Sequence[Sharding]) -> Unread | None:
    """The file that `accelerate config` writes, which a launch without one of its own reads from the user's cache
    (huggingface/accelerate@v1.15.0 src/accelerate/commands/config/config_args.py); None where another says it."""
    if launch is None or launch.spreads != "accelerate" or set(launch.launcher) & set(_SAYS_IT):
        return None
    file = NotFound("accelerate launch without --config_file", _OWN_FILE, "accelerate", sought=False)
    return Unread(file.file, file.key, file.absent, choices=tuple(one.id for one in _possible(file, known)))


def _as_told(unread: Unread, told: Sharding) -> Unread:
    return replace(unread, choice=told.id, title=told.title, told_by="user", knobs=told.knobs, settings=told.settings)


def suggested_by(missing: NotFound, known: Sequence[Sharding]) -> Sharding | None:
    """What a file's name suggests ("ds_z3_offload_config.json" → zero3_offload), or the only thing it can say."""
    possible = _possible(missing, known)
    if len(possible) == 1:
        return possible[0]
    name = missing.file.replace("\\", "/").rsplit("/", 1)[-1].lower()
    return next((one for one in possible if any(re.search(pattern, name) for pattern in one.named)), None)


def _against(choice: Sharding, frames: Sequence[str]) -> str:
    """The innermost frame that is never there with this choice, without its folders; "" where there is none."""
    against = [frame for frame in frames if choice.never_in and re.search(choice.never_in, frame)]
    return against[-1].rsplit("/", 1)[-1].replace(":", " ") if against else ""


def _possible(missing: NotFound, known: Sequence[Sharding]) -> list[Sharding]:
    return [one for one in known if not one.files or missing.holds in one.files]


def taken(
    unread: Unread | None, knobs: Mapping[str, Knob], natives: Natives, mechanics: Mechanics
) -> tuple[Unread | None, dict[str, Knob]]:
    """The missing file where nothing else says how the states are sharded, and the knobs that are taken for it. (None,
    {}) where a setting says it, or the framework does not leave it to a launcher's file."""
    if unread is None or natives.framework is None or mechanics.trainer not in TRAINERS:
        return None, {}
    if _told(STAGE, knobs, natives, unread):
        return None, {}
    source: Literal["user", "assumed"] = "user" if unread.told_by == "user" else "assumed"
    note = say(_WHY[unread.told_by], choice=unread.title, file=unread.file, key=unread.key)
    return unread, {
        name: Knob(name, value, source, note=note)
        for name, value in unread.knobs.items()
        if value is not None and not _told(name, knobs, natives, unread)
    }


def with_settings(natives: Natives, unread: Unread | None) -> Natives:
    """The settings with what marks what is taken for the missing file: without FSDP's mark DeepSpeed's keys would act
    there, and its own would not."""
    marks = unread.settings if unread is not None else {}
    unset = {key: natives.values[key] for key in marks if key in natives.values and not natives.values[key].given}
    told = {key: replace(one, text=marks[key], value=marks[key], source="assumed") for key, one in unset.items()}
    return replace(natives, values={**natives.values, **told}) if told else natives


def _told(name: str, knobs: Mapping[str, Knob], natives: Natives, unread: Unread) -> bool:
    """Whether a setting decides the knob. The option that names the missing file does not: nobody read it."""
    known = knobs.get(name)
    if known is None or known.value is None or known.source in ("default", "assumed"):
        return False
    carrier = natives.values.get(known.key)
    return not (carrier is not None and known.key == native(unread.key) and carrier.text == unread.file)


def doubts_of(missing: Sequence[NotFound], unread: Unread | None) -> tuple[str, ...]:
    """What missing files leave in doubt, a sentence each."""
    own = [one for one in missing if not one.holds and one.key != "--config-name"]
    whole = [
        say(
            "The file {file} {absent}; what it sets is not known, so memory cannot be counted.",
            file=one.file,
            absent=one.absent,
        )
        for one in own
    ]
    return (*([_doubt(unread)] if unread is not None and unread.told_by != "sums" else []), *whole)


def _doubt(unread: Unread) -> str:
    told = {"choice": unread.title, "frame": unread.against}
    against = unread.told_by == "name" and unread.against
    said = _DOUBTS["against" if against else unread.told_by]
    return say(said, file=unread.file, key=unread.key, absent=unread.absent, **told)


def printed_sharing(
    framework: Framework | None, settings: Mapping[str, str], figures: Mapping[str, str]
) -> dict[str, str]:
    """DeepSpeed's stage and offload as its configuration in the log has them, under the framework's own keys.
    `figures`: knobs that single lines show. {} where the log shows no stage, or the framework reads no such file."""
    if framework is None or not {_DEEPSPEED, f"{_DEEPSPEED}:{_STAGE_KEY}"} <= framework.settings.keys():
        return {}
    stage = settings.get(_STAGE_KEY, settings.get("zero_optimization_stage", figures.get("actor.zero_stage", "")))
    if stage not in ("0", "1", "2", "3"):
        return {}
    told = {f"{_DEEPSPEED}:{key}": settings[key] for key in _DEVICES if key in settings}
    if figures.get("actor.optimizer_offload") == "true":
        told.setdefault(f"{_DEEPSPEED}:{_DEVICES[0]}", "cpu")
    return {_DEEPSPEED: _PRINTED, f"{_DEEPSPEED}:{_STAGE_KEY}": stage, **told}
