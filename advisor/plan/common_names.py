"""Finds a setting of a launch without a dialect by the name that the known dialects give it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

from advisor.knowledge.schema import Framework, NewValue, Remedy
from advisor.plan.situation import Situation
from advisor.run.natives import Native, OneValue, is_spelling, last_part, native
from advisor.run.run import KnobSource, KnobValue
from advisor.run.values import parse_value

AGREED = 2 / 3
"""Of the dialects that have the name, as many must mean the same by it."""
ROLES = {
    "critic": re.compile(r"critic|value_model"),
    "reference": re.compile(r"(?:^|[^a-z])ref(?:erence)?(?![a-z])"),
    "logprob": re.compile(r"log_?probs?(?![a-z])"),
}
"""Models and passes beside the trained one, by what their settings have in their names: the rest is called alike."""
_FRONTS = {**ROLES, "eval": re.compile(r"(?:^|[^a-z])(?:eval|val|valid|test)(?:uation|idation)?(?![a-z])")}
_OFF = frozenset({"eager", "math", "naive", "never", "fp32", "float32", "fp16", "float16", "32", "32-true", "no"})
"""Words by which a setting that is else a way to do a thing says that it is not done."""
_IN_FULL = re.compile(r"^(b?)f(?:p|loat)?(16|32)$")
"""A type by its short name: bf16, fp16, fp32."""
IN_PART, WHOLLY = frozenset({"selective", "selective_op", "partial"}), "full"
"""Words by which recomputing is on for some of it, and the one for all (torchtitan's activation_checkpoint.mode,
Megatron's recompute_granularity)."""
_OF_HF = "per_device_"
"""Front of the names that transformers' Trainer alone has."""
MOST_NAMES = 2
"""Names told where the launch bears none: enough to look for."""


def names_of(knob: str, situation: Situation) -> list[str]:
    """What the dialects call a knob, the commonest first; only names of several words, which are not used for else."""
    names = _called(situation.knowledge.frameworks).get(_trained(knob), [])
    if situation.value("own_loop") is not True:
        return names
    return [name for name in names if not name.startswith(_OF_HF)] or names


def stated_by_name(remedy: Remedy, situation: Situation) -> Native | None:
    """The setting of an unrecognised launch, or that its log prints, which bears a name of the remedy's knob; the most
    usual one of several."""
    inputs = situation.predictor.inputs
    if remedy.knob is None or remedy.value is None:
        return None
    set_here = inputs.launch.effective() if inputs.launch is not None else {}
    own_names = {native(key) for key in set_here}
    stated = [
        *((one.key, one.text, one) for one in set_here.values() if one.resolved),
        *((key, text, None) for key, text in inputs.log_settings.items() if key not in own_names),
    ]
    if not stated:
        return None
    role, names = remedy.knob.partition(".")[0], frozenset(names_of(remedy.knob, situation))
    known = next((one for one in situation.knowledge.knobs if one.id == _trained(remedy.knob)), None)
    pattern = "|".join(filter(None, (known.spelled, known.by_word))) if known is not None else ""
    found: list[tuple[int, Native]] = []
    for key, text, setting in stated:
        of_role = [name for name, spelled in _FRONTS.items() if spelled.search(key.lower())]
        if of_role != ([role] if role in _FRONTS else []):
            continue
        own = last_part(key)
        partly = remedy.lever == "recompute" and text.lower().strip("\"'") in IN_PART
        spelled = is_spelling(key, pattern) or (partly and own == "mode")
        ways = (own in names, own.endswith(tuple(f"_{name}" for name in names)), spelled)
        value = _read(text, remedy.value) if any(ways) else None
        if value is not None and (isinstance(value, bool) or not _means_another(own, value, remedy.knob, situation)):
            source: KnobSource = "log" if setting is None else "script"
            found.append((ways.index(True), Native(key, text, value, source, setting=setting)))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _means_another(name: str, value: KnobValue, knob: str, situation: Situation) -> bool:
    """Whether the dialects turn this number under this name into another: fsdp_version 2 is no ZeRO stage 2."""
    settings = (each for one in situation.knowledge.frameworks for each in one.settings.items())
    facts = [fact for key, fact in settings if fact.knob == knob and last_part(key) == name]
    told = [value if fact.to_knob is None else fact.to_knob.of(OneValue(value)) for fact in facts]
    return bool(told) and all(isinstance(one, (int, float)) and one != value for one in told)


def word_of(native: Native, knob: str, on: bool, situation: Situation) -> str | None:
    """How a switch is set in the file's own spelling; a key that takes words gets the one of the dialects that have it,
    None where none has."""
    text = native.text or ""
    if on and text.lower().strip("\"'") in IN_PART:
        return WHOLLY
    if parse_value(text, "bool") is not None or not text:
        return str(on) if text[:1].isupper() else str(on).lower()
    facts = (
        fact
        for framework in situation.knowledge.frameworks
        for key, fact in framework.settings.items()
        if fact.knob == knob and last_part(key) == last_part(native.key) and fact.from_knob is not None
    )
    words = (fact.from_knob.of(OneValue(on)) for fact in facts if fact.from_knob is not None)
    return next((str(word) for word in words if isinstance(word, str)), None)


def _read(text: str, rule: NewValue) -> KnobValue | None:
    """A switch's position, where it is set by a word, too; or a number; None for anything else."""
    on = parse_value(text, "bool")
    if isinstance(rule.to, bool):
        word = parse_value(text, "str")
        return on if on is not None or word is None else str(word).lower() not in _OFF | IN_PART
    if on is True and rule.to is not None and not text.isdecimal():
        return rule.to  # load_in_4bit
    if isinstance(rule.to, str):
        return _IN_FULL.sub(r"\1float\2", text.strip("\"'").lower().removeprefix("torch."))
    whole = parse_value(text, "int")
    return whole if whole is not None else parse_value(text, "float")


def _trained(knob: str) -> str:
    """The same setting of the trained model: "critic.micro_batch" is "actor.micro_batch" under another front."""
    role, dot, rest = knob.partition(".")
    return f"actor.{rest}" if role in ROLES and dot else knob


_last: list[tuple[tuple[Framework, ...], Mapping[str, list[str]]]] = []
"""The dialects asked for last, and what they call each knob: counting all of them is a fifth of a plan."""


def _called(dialects: tuple[Framework, ...]) -> Mapping[str, list[str]]:
    """Knob → the names of several words by which most of the dialects that have them mean it, the commonest first."""
    if not _last or _last[0][0] is not dialects:
        counted: dict[str, Counter[str]] = defaultdict(Counter)
        for framework in dialects:
            meant = {(last_part(key), _trained(fact.knob)) for key, fact in framework.settings.items() if fact.knob}
            for name, knob in sorted(meant):  # the same names in every run
                counted[name][knob] += 1
        called: dict[str, list[str]] = defaultdict(list)
        for name, by in counted.items():
            knob, count = by.most_common(1)[0]
            if "_" in name and count >= AGREED * by.total():
                called[knob].append(name)
        ordered = {knob: sorted(names, key=lambda name: -counted[name][knob]) for knob, names in called.items()}
        _last[:] = [(dialects, ordered)]
    return _last[0][1]
