"""Decides in which phase of the training step a failure happened, and says by what.

Proofs first: traceback frames, then Ray's task and source lines, then the message itself. Where none of them shows it,
hints: weak frames, the largest process, the last progress line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import get_args

import ahocorasick_rs
from msgspec import Struct

from advisor.crash.evidence import TOLD, Frame, TopUser
from advisor.crash.finds import LogFind
from advisor.crash.lines import LogLine
from advisor.crash.tracebacks import NO_TRACE, Trace
from advisor.hostile import clean_line
from advisor.knowledge.schema import FrameRule, FrameTier, Progress
from advisor.language import say
from advisor.regex import compiled, regex
from advisor.words import Phase, both

_TIERS = {tier: rank for rank, tier in enumerate(get_args(FrameTier))}
ENGINE = regex(r"LLM(?:Ray)?Actor|RolloutRayActor|vllm|sglang|EngineCore", re.IGNORECASE)
"""Ray classes of OpenRLHF and Open-Reasoner-Zero; verl's, slime's and NeMo-RL's servers; vLLM's own processes."""
_OF_TRAINER: tuple[Phase, ...] = ("log_prob", "actor_update", "critic_update", "optimizer_step")
"""Phases that no process of an engine is in, whatever the trainer printed last."""
_CRITIC = regex(r"\bCritic(?:Model|Ray|Worker)\w*")
_LOOKED_BACK = 4_000
"""Lines before a failure in which its last progress line is looked for."""
_QUOTED = 120
"""Characters of a text that are quoted as proof."""
_DONE = " 100%|"
"""A bar at its end: its phase is over, and nothing says which came next."""
_BAR = regex(r"(?:^|\r)\s*\d{1,3}%\|[^|]*\| *(\d+)/(\d+) \[")
"""A bar without words in front: transformers' Trainer draws one for training and one for each evaluation."""
_LOOP = regex(r"^_?inner_training_loop$|^train(?:ing)?_step$")
"""Functions of a training loop (transformers): the model is loaded by then, whatever was printed last."""
_LOGGED = "{'loss': "
_TRAINS = regex(r"(?:^|\r)\W*(?:[Tt]rain(?:ing)?|Epoch|Episode)\b[^|]{0,80}?\b(?P<percent>\d{1,3})%\|")
_EVALUATES = regex(r"(?i)(?:^|\r)\W*(?:eval|val(?:id)?|test)\w*\b[^|]{0,60}?\b(?P<percent>\d{1,3})%\||\{'eval_\w+': ")
_SUMMED_UP = "{'train_runtime': "
"""Bars with a title, of training and of evaluation; what transformers' Trainer prints when all steps are over."""
_METRICS = regex(r"\*{3,} ?(?:train|test|predict)\w* metrics ?\*{3,}|\btrain_runtime['\"]?\s*[:=]")
"""What transformers prints when a training, or a test behind it, is over (trainer_pt_utils.py log_metrics)."""
_GO_ON: tuple[Phase, ...] = ("model_load", "rollout_init")
"""Phases of which a bar shows only a part: sharding follows the shards, and the engine's start its graphs."""
LEAVES_BEHIND: tuple[Phase, ...] = ("checkpoint", "validation")
"""Phases that come now and then, and may leave behind what the step after them has no room for."""
PhaseProof = tuple[Phase, str]
"""(phase, one clause that says by what)"""
_UNKNOWN: PhaseProof = ("unknown", "")
ProgressLine = tuple[LogLine, Phase]
"""A progress line and its phase ("unknown": between two steps)."""


class PhaseRules(Struct, frozen=True):
    """What the knowledge says of frames and progress."""

    frames: Sequence[FrameRule]
    progress: Sequence[Progress]

    def of(self, frameworks: Sequence[str]) -> PhaseRules:
        """Those that concern one of these frameworks; all, where no framework is known."""
        return PhaseRules(
            [rule for rule in self.frames if _concerns(rule, frameworks)],
            [rule for rule in self.progress if _concerns(rule, frameworks)],
        )


def phase_of(
    cause: LogFind | None,
    trace: Trace,
    last: ProgressLine | None,
    users: Sequence[TopUser],
    rules: PhaseRules,
    driver: Trace = NO_TRACE,
) -> PhaseProof:
    """The phase of a failure and what shows it. `last`: the last progress line of its run before it; `driver`: where
    the process stood that waited for the one that failed."""
    strong = _by_frames(cause, trace, [rule for rule in rules.frames if rule.tier != "fallback"])
    strong = _by_source_line(strong, trace, rules)
    message = _UNKNOWN
    if cause is not None and (signature := cause.find.signature).phase != "unknown":
        message = signature.phase, say("the message itself ({title})", title=signature.title)
    if strong[0] == "model_load" and message != _UNKNOWN:
        return message  # under the frame that sets up everything, a message of one phase only says which part it was
    if strong[0] == "unknown":
        strong = _by_texts(cause, trace, rules)
    if strong[0] != "unknown" or message != _UNKNOWN:
        return strong if strong[0] != "unknown" else message
    among, _ = open_phases(cause, trace, rules)  # a hint may choose among these phases, not overrule them
    hints = [] if among else [_by_frames(cause, trace, rules.frames), _by_driver(driver, rules)]
    hints.append(_by_largest(users, rules))
    engine = cause is not None and ENGINE.search(cause.find.first.process) is not None
    last = None if last is not None and engine and last[1] in _OF_TRAINER else last
    looped = any(_LOOP.search(one.function) for one in trace.frames)
    if last is not None and not (last[1] == "model_load" and (looped or _pasted_on(cause, last[0]))):
        hints.append((last[1], mark_words(last)))
    return next((hint for hint in hints if (hint[0] in among if among else hint[0] != "unknown")), _UNKNOWN)


def _pasted_on(cause: LogFind | None, mark: LogLine) -> bool:
    """Whether a bar of loading stands at its end below a post's title: what was pasted of the run ends there."""
    return cause is not None and mark.number > cause.number and _DONE in mark.printed


def mark_words(last: ProgressLine) -> str:
    """What shows the phase, where only the last mark of progress does."""
    return say("last progress mark, line {line}", line=last[0].number)


def _by_source_line(found: PhaseProof, trace: Trace, rules: PhaseRules) -> PhaseProof:
    """The phase that the source line of the innermost frame names, where only its function told one: a function may
    generate first and score then."""
    inner = trace.frames[-1] if trace.frames else None
    if inner is None or found[0] in ("unknown", *LEAVES_BEHIND) or found[1] != frame_words(inner):
        return found
    phase, line = phase_of_texts([inner.text] if inner.text else [], rules.frames, "text")
    # a loss and its backward pass are of whatever model the worker trains
    return (phase, say("the log's text {quoted}", quoted=line)) if phase not in ("unknown", "actor_update") else found


def open_phases(cause: LogFind | None, trace: Trace, rules: PhaseRules) -> tuple[tuple[Phase, ...], str]:
    """The phases among which a frame without its caller leaves the choice, the likeliest first, and the frame."""
    chosen = [rule for rule in rules.frames if rule.or_ and rule.in_ == "frame"]
    for frame in reversed(trace.frames):
        name = _name(frame)
        for rule in chosen:
            if _match(rule, name, name.lower()) is not None:
                among = (rule.phase, *rule.or_)
                if _is_critic(cause, trace):
                    among = tuple(dict.fromkeys("critic_update" if one == "actor_update" else one for one in among))
                return among, frame_words(frame)
    return (), ""


def phase_of_frames(frames: Sequence[Frame], rules: Iterable[FrameRule]) -> PhaseProof:
    """The phase by the rule of the highest tier; among equals by the innermost frame, then by a rule with `under`."""
    best = (-1, -1, False)
    answer = _UNKNOWN
    names = [_name(frame) for frame in frames]
    lower = [name.lower() for name in names]
    for rule in rules:
        if rule.in_ != "frame" or rule.or_:
            continue
        for depth in range(len(names) - 1, -1, -1):
            place = (_TIERS[rule.tier], depth, bool(rule.under))
            if place <= best:
                break
            if _match(rule, names[depth], lower[depth]) is not None and (
                not rule.under or any(compiled(rule.under).search(name) for name in names[:depth])
            ):
                best, answer = place, (rule.phase, frame_words(frames[depth]))
                break
    return answer


def phase_of_function(name: str, rules: Iterable[FrameRule]) -> Phase:
    """The phase that a function means by its name alone, whatever calls it; "unknown" where no rule is sure."""
    alone = (rule for rule in rules if not rule.under and rule.tier != "fallback")
    return phase_of_frames([Frame("", 0, name, 0)], alone)[0]


def phase_of_texts(texts: Iterable[str], rules: Iterable[FrameRule], where: str) -> PhaseProof:
    """The phase that a Ray task (`where` "task") or a line of text ("text") means, and the first text a rule knows."""
    chosen = sorted((rule for rule in rules if rule.in_ == where), key=lambda rule: -_TIERS[rule.tier])
    for text in texts:
        lower = text.lower()
        for rule in chosen:
            found = _match(rule, text, lower)
            if found is not None:
                line = text.strip()
                quoted = line if len(line) <= _QUOTED else text[found.start() :].strip()
                return rule.phase, clean_line(quoted, _QUOTED)
    return _UNKNOWN


def last_progress(lines: Sequence[LogLine], rules: PhaseRules) -> ProgressLine | None:
    """The last of `lines`, some thousands back at most, that a progress rule knows."""
    near = lines[-_LOOKED_BACK:]
    evaluates = _evaluation_bar(near)
    behind = next((at + 1 for at, line in enumerate(near) if line is evaluates), 0)
    for line, rule in _known(reversed(near[behind:]), rules.progress):
        over = _DONE in line.printed and rule.phase not in _GO_ON and not rule.after
        return line, "unknown" if over else rule.phase
    return (evaluates, "validation") if evaluates is not None else None


def _known(lines: Iterable[LogLine], rules: Sequence[Progress]) -> Iterator[tuple[LogLine, Progress]]:
    """Every line with the rules that know it, in their order; a rule is tried where one of its literals stands."""
    search, owners, anywhere = _literals(tuple(rule.needs for rule in rules))
    for line in lines:
        found = search.find_matches_as_indexes(line.printed.lower(), overlapping=True)
        for place in sorted({*anywhere, *(place for literal, _, _ in found for place in owners[literal])}):
            if compiled(rules[place].pattern).search(line.printed):
                yield line, rules[place]


@lru_cache(maxsize=16)
def _literals(needs: tuple[tuple[str, ...], ...]) -> tuple[ahocorasick_rs.AhoCorasick, list[list[int]], list[int]]:
    """What finds the literals of rules, for each literal the places of the rules, and of those without any."""
    every = {literal: [at for at, own in enumerate(needs) if literal in own] for own in needs for literal in own}
    return ahocorasick_rs.AhoCorasick([*every]), [*every.values()], [at for at, own in enumerate(needs) if not own]


def at_the_end(lines: Sequence[LogLine]) -> tuple[tuple[Phase, ...], str]:
    """What can still come where the last bar of the training, or of an epoch, stands at its end: a save or an
    evaluation, or the save alone where the evaluation was seen to end; and the clause that says so."""
    ended, logged, evaluated = 0, False, False
    for line in lines[-_LOOKED_BACK:]:
        logged = logged or _LOGGED in line.printed
        bare = _BAR.findall(line.printed) if logged else []
        if (titled := _TRAINS.search(line.printed)) is not None:
            ended, evaluated = (line.number if titled["percent"] == "100" else 0), False
        elif bare or _SUMMED_UP in line.printed:
            ended = line.number if all(done == total for done, total in bare) else 0
        elif (scored := _EVALUATES.search(line.printed)) is not None:
            evaluated = scored["percent"] in (None, "100")
    among: tuple[Phase, ...] = ("checkpoint",) if evaluated else LEAVES_BEHIND
    told = {"line": ended, "phases": both(among)}
    return (
        (among, say("in line {line} the training is at its end, and what can come then: {phases}", **told))
        if ended
        else ((), "")
    )


def over_at(last: ProgressLine | None, rules: PhaseRules) -> Phase:
    """The phase of a step whose bar is the last mark and stands at its end; what came next is not shown."""
    if last is None or _DONE not in last[0].printed:
        return "unknown"
    known = (rule for rule in rules.progress if rule.phase not in _GO_ON)
    return next((rule.phase for _, rule in _known([last[0]], [*known])), "unknown")


def trained_before(lines: Sequence[LogLine], last: ProgressLine | None) -> int | None:
    """The line on which a training or its evaluation was summed up, where a model is loaded after that: in the same
    process another one was trained."""
    if last is None or last[1] != "model_load":
        return None
    until = last[0].number
    return next((one.number for one in lines if one.number < until and _METRICS.search(one.printed)), None)


def _evaluation_bar(lines: Sequence[LogLine]) -> LogLine | None:
    """The last bar, where after a logged loss it counts to another number than the training's and is not at its end."""
    training, logged, found = "", False, None
    for line in lines:
        logged = logged or _LOGGED in line.printed
        for bar in _BAR.finditer(line.printed):
            done, total = bar.groups()
            training = total if not logged or not training else training
            found = line if logged and total not in (training, done) else None
    return found


def preceding(lines: Sequence[LogLine], rules: PhaseRules) -> list[ProgressLine]:
    """The marks of saves and validations among the last of `lines`, in order, and which of them each was."""
    chosen = [rule for rule in rules.progress if _ended(rule) in LEAVES_BEHIND]
    return [(line, _ended(rule)) for line, rule in _known(lines[-_LOOKED_BACK:], chosen)]


def _ended(rule: Progress) -> Phase:
    return rule.phase if rule.ended == "unknown" else rule.ended


def resumed_at(lines: Sequence[LogLine], rules: PhaseRules) -> int | None:
    """The last of `lines` on which the run takes up a checkpoint; None where none does."""
    chosen = [rule for rule in rules.progress if rule.resumes]
    return next((line.number for line, _ in _known(reversed(lines[-_LOOKED_BACK:]), chosen)), None)


def _by_frames(cause: LogFind | None, trace: Trace, rules: Iterable[FrameRule]) -> PhaseProof:
    phase, because = phase_of_frames(trace.frames, rules)
    if phase == "actor_update" and _is_critic(cause, trace):
        return "critic_update", say("{because}, in a critic's process", because=because)
    return phase, because


def _by_texts(cause: LogFind | None, trace: Trace, rules: PhaseRules) -> PhaseProof:
    task = str(cause.find.fields.get("task", "")) if cause is not None else ""
    own = cause.find.text.split("\n") if cause is not None and cause.id not in TOLD else []  # no log's own words
    phase, found = phase_of_texts([name for name in (task, *trace.tasks) if name], rules.frames, "task")
    if phase != "unknown":
        return phase, say("Ray task {name}", name=found)
    for call in trace.calls:
        phase, _ = phase_of_texts([call], rules.frames, "task")
        if phase == "unknown":
            phase, _ = phase_of_frames([Frame("", 0, call.rpartition(".")[2], 0)], rules.frames)
        if phase != "unknown":
            return phase, say("the log names the call {name}", name=clean_line(call, _QUOTED))
    told = cause.find.text if cause is not None and cause.id in TOLD else ""
    texts = [*own, *(text for text in trace.texts if not told or (text.strip() not in told and told not in text))]
    phase, found = phase_of_texts([text for text in texts if text], rules.frames, "text")
    return (phase, say("the log's text {quoted}", quoted=found)) if phase != "unknown" else _UNKNOWN


def _by_driver(driver: Trace, rules: PhaseRules) -> PhaseProof:
    phase, because = _by_frames(None, driver, [rule for rule in rules.frames if rule.tier != "fallback"])
    if phase == "unknown":
        phase, because = _by_texts(None, driver, rules)
    return (phase, say("the driver waited there: {because}", because=because)) if phase != "unknown" else _UNKNOWN


def _by_largest(users: Sequence[TopUser], rules: PhaseRules) -> PhaseProof:
    commands = [user.command.removeprefix("ray::") for user in users[:1]]
    phase, found = phase_of_texts(commands, rules.frames, "task")
    return (phase, say("the largest process, {name}", name=found)) if phase != "unknown" else _UNKNOWN


def _is_critic(cause: LogFind | None, trace: Trace) -> bool:
    """Whether a critic's own Ray actor failed: the trainers' classes for it share the actor's training frames."""
    process = cause.find.first.process if cause else ""
    return any(_CRITIC.search(name) for name in (process, *trace.tasks))


def _concerns(rule: FrameRule | Progress, frameworks: Sequence[str]) -> bool:
    return not rule.frameworks or not frameworks or any(name in rule.frameworks for name in frameworks)


def _match(rule: FrameRule, text: str, lower: str) -> re.Match[str] | None:
    """Where a rule knows the text; its regex is compiled only where the text holds what it needs."""
    possible = not rule.needs or any(literal in lower for literal in rule.needs)
    return compiled(rule.frame).search(text) if possible else None


def _name(frame: Frame) -> str:
    function = frame.function if "<" in frame.function else frame.function.split(".")[-1]
    return f"{frame.file}:{function}"


def frame_words(frame: Frame) -> str:
    """A frame in words: its file and function, and where the log prints it."""
    if not frame.file:
        return say("source line {text}, log line {line}", text=frame.text, line=frame.log_line)
    file = frame.file.replace("\\", "/").rsplit("/", 1)[-1]
    return say("frame {file} {function}, log line {line}", file=file, function=frame.function, line=frame.log_line)
