"""Writes remedies that no file carries as steps: machines, work by hand, settings of a launch without a dialect, and
the memory limit of a job with the number that the run needs by the count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from msgspec.structs import replace

from advisor.diagnosis.fact import all_hold
from advisor.knowledge.schema import Framework, KnownAs, Remedy
from advisor.language import ENGLISH, listed, mark, say, sentences, spoken
from advisor.machine.inventory import BatchMemory
from advisor.memory.fit import counted
from advisor.memory.predict import Prediction, Predictor
from advisor.plan.applicable import in_a_later_version, keys_of, needs_engine, next_value
from advisor.plan.candidates import least
from advisor.plan.common_names import MOST_NAMES, names_of, stated_by_name, word_of
from advisor.plan.options import unseen_number
from advisor.plan.patch import not_written
from advisor.plan.plan import Change, PlanStep, in_words_of
from advisor.plan.situation import Situation
from advisor.plan.steps import change_of, example_of, since
from advisor.plan.trial import trial_of
from advisor.run.natives import Native
from advisor.run.resume import keys_to_resume
from advisor.run.run import KnobValue
from advisor.run.values import spell
from advisor.units import GIB, show_bytes
from advisor.words import BETWEEN_SENTENCES

BATCH, PASSES = "actor.micro_batch", "actor.accumulation"
ANY_EXCEPTION = "read-the-exception"
"""Where nothing more is known of a failure that is no shortage."""


def elsewhere(situation: Situation) -> tuple[PlanStep, ...]:
    """What helps where log or answers say that no memory was short, best first: against the failure, then the cause.

    Of a list those lead whose own condition (`leads_when`) holds; what the facts contradict is left out.
    """
    known, facts = situation.knowledge, situation.facts
    of_cause = (name for one in known.tree.causes if one.id == situation.cause for name in one.remedies)
    by_cause = [*situation.led, *of_cause]
    useful = of_the_line(situation, by_cause)
    useful = [remedy for remedy in useful if remedy.id != ANY_EXCEPTION or len(useful) == 1]
    useful.sort(key=lambda remedy: not remedy.leads_when or all_hold(remedy.leads_when, facts) is None)
    steps = (in_words_of(situation.vendor, advice_step(remedy, situation)) for remedy in useful)
    return tuple(replace(step, rank=number) for number, step in enumerate(steps, 1))


def of_the_line(situation: Situation, more: Sequence[str] = ()) -> list[Remedy]:
    """What helps against the failure that the log shows, then `more`, without what the facts contradict."""
    failed, known = situation.predictor.crash.signature, situation.knowledge
    by_line = (name for one in known.signatures.signatures if one.id == failed for name in one.remedies)
    by_id = {remedy.id: remedy for remedy in situation.remedies}
    named = [by_id[name] for name in dict.fromkeys((*by_line, *more)) if name in by_id]
    return [remedy for remedy in named if all_hold(remedy.applies_when, situation.facts) is not None]


def advice_step(remedy: Remedy, situation: Situation, named: str = "") -> PlanStep:
    """A machine or manual remedy: said, never written into a script. `named`: what the message calls the setting."""
    known = _known_as(remedy, situation)
    changes, typed = _as_named(remedy, named, situation), None
    changes = changes or _below_the_framework(remedy, known, situation)
    key_told = remedy.knob is not None and situation.now.built.natives.carrier(remedy.knob) is not None
    if not changes and not (key_told and (remedy.kind == "manual" or unseen_number(remedy, situation))):
        typed = example_of(remedy, situation)
    in_files = remedy.kind == "setting" and bool(changes) and not any(change.how for change in changes)
    step = PlanStep(
        id=remedy.id,
        title=remedy.title if named else _title(remedy, situation, changes),
        kind="setting" if in_files else remedy.kind if remedy.kind in ("machine", "data") else "manual",
        tier=remedy.tier,
        changes=changes,
        results=remedy.results,
        basis="documented" if any(e.grade != "failed" for e in remedy.evidence) else "estimated",
        place="host" if remedy.memory == "host" else "gpu" if remedy.memory == "gpu" else "none",
        why=_by_hand(remedy, known, situation),
        costs=remedy.costs,
        caveats=remedy.caveats,
        typed=typed,
        then=_then(remedy, changes),
        sources=(remedy.source,) if remedy.source else (),
        group=remedy.id,
    )
    return with_number(step, situation) if remedy.raises_limit else step


def _as_named(remedy: Remedy, name: str, situation: Situation) -> tuple[Change, ...]:
    """The setting under the name that the message gives it, from the value that log or launch shows, else from the
    default of the library that speaks."""
    known = next((one for one in remedy.known_as if name and all_hold(one.when, situation.facts) is not None), None)
    if not name or remedy.value is None:
        return ()
    carrier = situation.now.built.natives.carrier(remedy.knob or "")
    own = carrier is not None and situation.now.run.topology.colocated  # an engine of another command has its own
    name = change_of(carrier, None, situation).key if own and carrier is not None else name
    knob, printed = situation.now.run.knobs.get(remedy.knob or ""), situation.value(f"knob.{remedy.knob}")
    default = known.default if known is not None else None
    seen = printed is not None and (knob is None or knob.source in ("script", "log"))
    value = printed if printed is not None and seen else default
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    present = Native(name, None if value is None else str(value), value, "log" if seen else "assumed")
    by_steps = replace(remedy, value=replace(remedy.value, low=None))  # an engine that starts needs most of its share
    found = next_value(by_steps, present, situation)
    return () if found is None else (_change(found[0], str(found[1])),)


def _then(remedy: Remedy, changes: tuple[Change, ...]) -> str:
    """The least size of a pass, where the first change is only a step towards it."""
    batch = remedy.relieves == "pass" and not remedy.lever and len(changes) == 1
    floor = least(remedy.value) if remedy.value is not None and batch else None
    return str(floor) if floor is not None and changes[0].new != str(floor) else ""


def _title(remedy: Remedy, situation: Situation, changes: tuple[Change, ...]) -> str:
    title = _with_names(remedy, situation, changes)
    return where_shared(title) if needs_engine(remedy, situation) == "unseen" else title


def where_shared(title: str) -> str:
    """The title of a step for a rollout engine that nobody saw."""
    return say("Where a rollout engine shares the card: {title}", title=title)


def _known_as(remedy: Remedy, situation: Situation) -> KnownAs | None:
    """What a library that speaks in the log calls the setting, where no dialect names it."""
    if situation.now.built.natives.framework is not None:
        return None
    return next((name for name in remedy.known_as if all_hold(name.when, situation.facts) is not None), None)


def _with_names(remedy: Remedy, situation: Situation, changes: tuple[Change, ...]) -> str:
    """The title with the key that `changes` do not name: what this framework's other versions, or others, call it.
    What is told by an example needs none.
    """
    framework, title = situation.now.built.natives.framework, remedy.title
    found = None if framework is None else _of_other_versions(remedy, framework, situation)
    if changes:
        return title if found is None else say("{title} ({since})", title=title, since=found[1])
    if remedy.knob is None:
        return title
    carrier = situation.now.built.natives.carrier(remedy.knob)
    if unseen_number(remedy, situation):
        key = change_of(carrier, None, situation).key if carrier is not None else remedy.knob
        return say("{title}: lower {key}", title=title, key=key)
    if remedy.kind == "manual" and carrier is not None:
        return say("{title} ({key})", title=title, key=carrier.key)
    if example_of(remedy, situation):
        return title
    if framework is not None and remedy.kind != "manual":
        return title if found is None else say("{title} ({key}, {since})", title=title, key=found[0], since=found[1])
    names = names_of(remedy.knob, situation)[:MOST_NAMES]
    return say("{title} (often {names})", title=title, names=listed(names)) if names else title


def _below_the_framework(remedy: Remedy, known: KnownAs | None, situation: Situation) -> tuple[Change, ...]:
    """What changes by hand: the setting of a newer version, or of a launch without a dialect the one that bears a name
    of the knob, else a library's own.
    """
    framework = situation.now.built.natives.framework
    if framework is not None:
        return _of_a_newer_version(remedy, framework, situation)
    present = stated_by_name(remedy, situation)
    if present is None and known is not None:
        text = None if known.default is None else str(known.default)
        present = Native(known.key, text, known.default, "assumed")
    found = None if present is None else next_value(remedy, present, situation)
    if present is None or found is None:
        return ()
    native, new = found
    text = word_of(native, remedy.knob or "", new, situation) if isinstance(new, bool) else str(new)
    if text is None:
        return ()
    return (_change(native, text), *_kept_whole(remedy, native, new, situation))


def _change(native: Native, new: str) -> Change:
    """The change of a setting by its own name; written only where a literal of the user's files decides it."""
    in_file = native.setting is not None and native.setting.span is not None
    return Change(native.key, native.text, new, how="" if in_file else not_written(), old_source=native.source)


def _kept_whole(remedy: Remedy, native: Native, new: KnobValue, situation: Situation) -> tuple[Change, ...]:
    """The passes of a step, where the launch sets them: as many more as the batch of one falls."""
    stated = stated_by_name(replace(remedy, knob=PASSES), situation) if remedy.knob == BATCH else None
    numbers = (stated.value if stated is not None else None, native.value, new)
    whole = [one for one in numbers if isinstance(one, int) and not isinstance(one, bool) and one > 0]
    if stated is None or len(whole) < len(numbers) or whole[0] * whole[1] % whole[2]:
        return ()
    return (_change(stated, str(whole[0] * whole[1] // whole[2])),)


def _of_a_newer_version(remedy: Remedy, framework: Framework, situation: Situation) -> tuple[Change, ...]:
    """The switch as a newer version has it, where the version that is counted has none."""
    found = _of_other_versions(remedy, framework, situation) if in_a_later_version(remedy, situation) else None
    fact = framework.settings.get(found[0].removeprefix("--")) if found is not None else None
    if found is None or fact is None or fact.to_knob is not None:
        return ()
    same = (one for one in situation.remedies if one.title == remedy.title and one.knob == fact.knob)
    to = next((one.value.to for one in same if one.value is not None), None)  # the key may carry another knob of it
    return () if to is None else (Change(found[0], None, spell(to, fact, None), how=found[1]),)


def _of_other_versions(remedy: Remedy, framework: Framework, situation: Situation) -> tuple[str, str] | None:
    """The key that carries the remedy in other versions, and in which, in words; None where no version has one."""
    known = {key: fact for key, fact in keys_of(remedy, framework, situation).items() if fact.eras}
    if not known:
        return None
    newest, assumed = framework.eras[0].id, situation.now.built.natives.era
    by_era = (key for era in (assumed, newest) for key, fact in known.items() if era in fact.eras)
    key = next(by_era, next(iter(known)))
    return f"--{key}" if framework.takes_options else key, since(known[key].eras, newest)


def _without_numbers(remedy: Remedy) -> str:
    """What the remedy says, less the sentences whose numbers nobody has."""
    return sentences(one for one in BETWEEN_SENTENCES.split(" ".join(remedy.says.split())) if "{" not in one)


def _by_hand(remedy: Remedy, known: KnownAs | None, situation: Situation) -> str:
    """The remedy's sentences; where it means a setting that no dialect names, which setting to look for."""
    trial = trial_of(situation.now.built, situation.predictor.inputs.launch) if remedy.by_trial else None
    if trial is not None:
        return sentences((" ".join(remedy.says.split()), trial.sentence))
    if remedy.knob is None or remedy.kind in ("data", "manual"):
        keys = keys_to_resume(situation.now.built) if remedy.tells_resume else ""
        return sentences([" ".join(remedy.says.split()), say("Here: {keys}.", keys=keys) if keys else ""])
    if (named := stated_by_name(remedy, situation)) is not None:
        return say(
            "The framework of this launch is not known here; by its name this is {key}. {says}",
            key=named.key,
            says=_without_numbers(remedy),
        ).strip()
    if known is not None:
        return say(
            "The framework of this launch is not known here; {library} itself calls it {key}. The framework around it "
            "may have another name and another default: start from the value that is in force.",
            library=known.title,
            key=known.key,
        )
    if (framework := situation.now.built.natives.framework) is not None:
        elsewhere_called = _of_other_versions(remedy, framework, situation)
        key, when = elsewhere_called or ("", "")
        told = {"framework": framework.title, "key": key, "since": when}
        if example_of(remedy, situation):
            return _without_numbers(remedy)
        if key:
            return sentences((_without_numbers(remedy), say("{framework} has {key} for it {since}.", **told)))
        return sentences(
            (_without_numbers(remedy), say("No setting of {framework} that is known here carries it.", **told))
        )
    if example_of(remedy, situation):
        return _without_numbers(remedy)
    knob = next((k for k in situation.knowledge.knobs if k.id == remedy.knob), None)
    carries = remedy.knob
    if knob is not None:
        title = knob.title.lower() if spoken() == ENGLISH else knob.title
        carries = say("{knob} ({unit})", knob=title, unit=knob.unit)
    return say(
        "The framework of this launch is not known here, so no key can be named: look for the setting that carries "
        "{knob}. With `set` it can then be changed in the script.",
        knob=carries,
    )


def needed_on_host(now: Prediction, predictor: Predictor) -> float:
    """Bytes of RAM that each node has to give by the count, the margin kept free; 0 where none is counted.

    Also of a phase that the run passed: a limit is raised once, and for all of it.
    """
    peak = max((counted(each, predictor.walls) for each in now.ledger.sums("host")), default=0)
    return peak / (1 - predictor.margin)


def with_number(step: PlanStep, situation: Situation) -> PlanStep:
    """The step with the limit that the run needs; as it is where no count is above the limit, or the node has less.

    A run that was killed at its limit needs more than that: where most of it is explained by nothing, nobody knows how
    much more, and no number is given.
    """
    predictor, host = situation.predictor, situation.predictor.machine.host
    asked = predictor.machine.asked_memory
    step = replace(step, why=_why_raised(asked, situation) or step.why)
    if any(one.place == "host" and one.unexplained and not one.is_level for one in predictor.measured.corrections):
        if asked is None:
            return step
        place = f"{asked.file}:{asked.line}"
        title = say("Raise {option}={old} ({place})", option=asked.option, old=asked.text, place=place)
        told = say("It was killed at this limit, so it needs more; how much more, the count does not say.")
        return replace(step, title=title, caveats=(*step.caveats, told))
    each = ceil(needed_on_host(situation.now, predictor) / GIB)
    if situation.uncounted or host.limit_bytes is None or each * GIB <= host.limit_bytes:
        return step
    if host.total_bytes is not None and each * GIB > host.total_bytes:
        told = say("by the count the run needs {size} GiB on each node, and a node has less", size=each)
        return replace(step, caveats=(*step.caveats, told))
    if asked is None:
        title = say("{title}: to at least {size} GiB by the count", title=step.title, size=each)
        return replace(step, title=title, host_limit=each * GIB)
    new = ceil(each / asked.times)
    title = say(
        "Raise {option}={old} to at least {new}G by the count ({place})",
        option=asked.option,
        old=asked.text,
        new=new,
        place=f"{asked.file}:{asked.line}",
    )
    launch = predictor.inputs.launch
    written = asked.is_editable and launch is not None and bool(launch.argv)  # a Python file is started under no limit
    change = Change(asked.option, asked.text, f"{new}G", asked.file, asked.line, not_written())
    step = replace(step, title=title, changes=(change,), host_limit=new * asked.times * GIB)
    return replace(step, kind="job") if written else step


def _why_raised(asked: BatchMemory | None, situation: Situation) -> str:
    """Whose limit it is and how it is raised; "" where nobody knows."""
    if asked is not None and not asked.of_slurm:
        told = mark("The kernel kills at {option}, however much more the machine has. Raise it, to no more than that.")
        return say(told, option=asked.option)
    if asked is None and not situation.predictor.crash.signature.startswith("slurm"):
        return ""
    option = asked.option if asked is not None else "--mem"
    told = mark(
        "Slurm ends a job that uses more than it asked for, however much more the node has. Ask for more with "
        "{option}, but for no more than a node has: `sinfo -N -o '%N %m'` lists the MB of each."
    )
    return say(told, option=option)


def at_limit(step: PlanStep, text: str, situation: Situation) -> PlanStep:
    """The step with a limit that the user wrote, in GiB. Raises ValueError, one sentence."""
    asked, change = situation.predictor.machine.asked_memory, step.changes[0]
    if asked is None or not text.isascii() or not text.isdecimal() or int(text) == 0:
        raise ValueError(say("{key} takes a number above 0", key=change.key))
    limit, total = int(text) * asked.times * GIB, situation.predictor.machine.host.total_bytes
    if total is not None and limit > total:
        raise ValueError(say("a node has {size}", size=show_bytes(total)))
    if limit == asked.limit_bytes:
        raise ValueError(say("{value} is what it is now; space switches the change off", value=text))
    return replace(step, changes=(replace(change, new=f"{int(text)}G"),), host_limit=limit, own=text)


def limits_around(step: PlanStep, situation: Situation) -> Iterator[tuple[str, int]]:
    """Limits to be tried around the step's own: the text of each, and the bytes of a node that it stands for."""
    asked, own = situation.predictor.machine.asked_memory, int(step.number)
    if asked is None:
        return
    total = situation.predictor.machine.host.total_bytes
    for text in sorted({own, *(max(1, ceil(own * eighths / 8)) for eighths in range(4, 17))}):
        if total is None or text * asked.times * GIB <= total:
            yield str(text), text * asked.times * GIB
