"""Explains an ID: what the knowledge says of a knob, setting, cause, remedy, signature, question, advisory or case."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from advisor.diagnosis.cases import GRADES, situation_words
from advisor.knowledge import schema
from advisor.language import Sayings, clauses, listed, say
from advisor.plan.situation import costs_of
from advisor.report.layout import join, wrap, wrap_each
from advisor.words import MEMORY_TITLES, PHASE_TITLES, PHASES

CLOSE_MATCHES = 5
KINDS: Sayings[str] = Sayings(
    {
        "setting": "setting",
        "environment": "environment",
        "version": "version",
        "machine": "machine",
        "data": "data",
        "manual": "manual",
    }
)
"""What a remedy changes."""
_EFFECTS: Sayings[str] = Sayings(
    {
        "none": "does not move memory in {phases}",
        "decides gpu": "its value decides GPU memory in {phases}",
        "decides host": "its value decides host RAM in {phases}",
        "on gpu-": "turning it on lowers GPU memory in {phases}",
        "on gpu": "turning it on raises GPU memory in {phases}",
        "on host-": "turning it on lowers host RAM in {phases}",
        "on host": "turning it on raises host RAM in {phases}",
        "more gpu-": "raising it lowers GPU memory in {phases}",
        "more gpu": "raising it raises GPU memory in {phases}",
        "more host-": "raising it lowers host RAM in {phases}",
        "more host": "raising it raises host RAM in {phases}",
    }
)
"""How a setting moves memory, by how it is changed and what that does."""
RESULTS: Sayings[str] = Sayings({"unchanged": "unchanged", "changed": "changed"})
_REPORTED: Sayings[str] = Sayings(
    {
        "advised": "reported, advised: {what}",
        "also_advised": "reported, also advised: {what}",
        "confirmed_by": "reported, confirmed by: {what}",
        "environment": "reported, environment: {what}",
        "failed": "reported, failed: {what}",
        "tried": "reported, tried: {what}",
        "worked": "reported, worked: {what}",
    }
)


class UnknownIdError(Exception):
    """Nothing in the knowledge has this id. `close` are ids that look like it."""

    def __init__(self, wanted: str, close: tuple[str, ...]) -> None:
        super().__init__(wanted)
        self.wanted, self.close = wanted, close


def explain_report(knowledge: schema.Knowledge, wanted: str) -> str:
    """Everything that goes by this id, in words, with sources. Raises UnknownIdError."""
    name = wanted.strip().lstrip("-+~")
    found = [line for lines in _told_of(knowledge, name) for line in ("", *lines)]
    if not found:  # the last part of a longer key
        longer = [one for one in all_ids(knowledge) if one.endswith(f".{name}")][:CLOSE_MATCHES]
        found = [line for one in longer for lines in _told_of(knowledge, one) for line in ("", *lines)]
    if not found:
        raise UnknownIdError(wanted, _close(knowledge, name))
    return join(found[1:])


def all_ids(knowledge: schema.Knowledge) -> list[str]:
    tree, signatures = knowledge.tree, knowledge.signatures.signatures
    groups: list[Sequence[Any]] = [knowledge.knobs, knowledge.remedies, knowledge.advisories, knowledge.cases]
    ids = {entry.id for group in (*groups, signatures, tree.questions, tree.causes) for entry in group}
    for framework in knowledge.frameworks:
        ids |= {framework.framework, *framework.settings, *framework.environment, *framework.renamed}
    return sorted(ids)


def _close(knowledge: schema.Knowledge, name: str) -> tuple[str, ...]:
    """Ids of which it is a word, those spelled alike, then those that contain it (`batch` finds every key of it)."""
    ids = all_ids(knowledge)
    folded = {identifier.lower(): identifier for identifier in ids}
    alike = [folded[match] for match in difflib.get_close_matches(name.lower(), folded, CLOSE_MATCHES, 0.6)]
    holding = [identifier for identifier in ids if len(name) > 2 and name.lower() in identifier.lower()]
    words = [identifier for identifier in holding if name.lower() in re.split(r"[-._:]", identifier.lower())]
    return tuple(dict.fromkeys([*words, *alike, *holding]))[:CLOSE_MATCHES]


TextBlock = list[str]


def _told_of(knowledge: schema.Knowledge, name: str) -> Iterator[TextBlock]:
    """A block of lines for each thing of this name."""
    tree = knowledge.tree
    yield from (_knob(knowledge, one) for one in knowledge.knobs if one.id == name)
    yield from _settings(knowledge, name)
    yield from _renamed(knowledge, name)
    yield from (_cause(knowledge, one) for one in tree.causes if one.id == name)
    yield from (_remedy(one) for one in knowledge.remedies if one.id == name)
    yield from (_signature(one) for one in knowledge.signatures.signatures if one.id == name)
    yield from (_question(one) for one in tree.questions if one.id == name)
    yield from (_advisory(one) for one in knowledge.advisories if one.id == name)
    yield from (_case(one) for one in knowledge.cases if one.id == name)
    yield from (_framework(one) for one in knowledge.frameworks if one.framework == name)


def _knob(knowledge: schema.Knowledge, knob: schema.KnobFact) -> TextBlock:
    title = say("{title} ({unit})", title=knob.title, unit=knob.unit)
    lines = [*_named(say("{id}: a knob", id=knob.id), title), *wrap(knob.says, 2)]
    carriers = [
        f"{framework.framework}: {key}"
        for framework in knowledge.frameworks
        for key, fact in {**framework.settings, **framework.environment}.items()
        if knob.id in (fact.knob, fact.before.knob if fact.before is not None else None) or knob.id in fact.also
    ]
    remedies = [remedy.id for remedy in knowledge.remedies if remedy.knob == knob.id]
    lines += ["  " + say("carried by"), *wrap_each(carriers, 4, 6)] if carriers else []
    told = say("changed by the remedies {remedies}", remedies=listed(remedies)) if remedies else ""
    return lines + wrap(told, 2, 4)


def _named(head: str, title: str) -> TextBlock:
    return [*wrap(head), *wrap(title, 2)]


def _settings(knowledge: schema.Knowledge, name: str) -> Iterator[TextBlock]:
    for framework in knowledge.frameworks:
        told = {"id": name, "framework": framework.title}
        if name in framework.settings:
            yield _setting(framework, say("{id}: a setting of {framework}", **told), framework.settings[name])
        if name in framework.environment:
            head = say("{id}: an environment variable of {framework}", **told)
            yield _setting(framework, head, framework.environment[name])


def _renamed(knowledge: schema.Knowledge, name: str) -> Iterator[TextBlock]:
    for framework in knowledge.frameworks:
        older = {new: old for old, new in framework.renamed.items()}
        told = {"id": name, "framework": framework.title}
        if name in framework.renamed:
            now = framework.renamed[name]
            yield wrap(say("{id}: in other versions of {framework} it is called {name}", **told, name=now))
        if name in older:
            then = older[name]
            yield wrap(say("{id}: in other versions of {framework} it was called {name}", **told, name=then))


def _setting(framework: schema.Framework, head: str, fact: schema.SettingFact) -> TextBlock:
    lines = wrap(head)
    lever = say("known, but not a lever against memory shortage")
    if any(moved != "none" for moved in fact.moves.values()):
        lever = say("known, but no remedy changes it")
    lines += wrap(_carries(fact.knob) if fact.knob else lever, 2)
    lines += wrap(say("unit: {unit}", unit=fact.unit) if fact.unit else "", 2) + wrap(_default(fact), 2)
    lines += wrap(say("exists in {eras}", eras=listed(fact.eras)) if fact.eras else "", 2)
    lines += wrap(say("since {version}", version=fact.since) if fact.since else "", 2)
    if fact.before is not None:
        lever = _carries(fact.before.knob) if fact.before.knob else say("no lever")
        lines += wrap(say("in {eras} another switch: {lever}", eras=listed(fact.before.eras), lever=lever), 2, 4)
    lines += wrap_each(_effects(fact), 2, 4)
    lines += wrap(say("training results: {results} when it changes", results=RESULTS[fact.results]), 2)
    lines += wrap_each((say("must: {rule}", rule=rule.says) if rule.says else "" for rule in fact.must), 2, 4)
    return lines + wrap(fact.caveat, 2) + _source(fact.source or framework.source)


def _effects(fact: schema.SettingFact) -> list[str]:
    """One clause an effect, with the phases that have it: "raising it lowers GPU memory in the actor update, …"."""
    phases: dict[str, list[str]] = {}
    for phase, moved in fact.moves.items():
        phases.setdefault(_effect(moved, fact.type), []).append(phase)
    still = phases.pop("none", [])
    said = [_EFFECTS[effect].format(phases=_phases(named)) for effect, named in phases.items()]
    if not phases:
        return [say("does not move memory")] if still else []
    named = [phase for phase in still if phase != "all"]
    return [*said, *([_EFFECTS["none"].format(phases=_phases(named))] if named else [])]


def _phases(named: Iterable[str]) -> str:
    return listed(say("every phase") if phase == "all" else PHASE_TITLES.get(phase, phase) for phase in named)  # type: ignore[arg-type]


def _effect(moved: str, kind: str) -> str:
    """The key of what is said of it."""
    if moved == "none":
        return moved
    if kind in ("str", "list"):
        return f"decides {moved.removesuffix('-')}"
    return f"on {moved}" if kind in ("bool", "flag") else f"more {moved}"


def _carries(knob: str) -> str:
    return say("carries the knob {knob}", knob=knob)


def _default(fact: schema.SettingFact) -> str:
    """One value, or each value with the eras that have it: "false (v0.14, v0.15), true (otherwise)"."""
    if fact.default is None:
        return ""
    if not isinstance(fact.default, dict):
        return say("default: {value}", value=_value(fact, fact.default))
    eras: dict[str, list[str]] = {}
    for era, value in fact.default.items():
        eras.setdefault(_value(fact, value), []).append(say("otherwise") if era == "*" else era)
    told = listed(say("{value} ({eras})", value=value, eras=listed(named)) for value, named in eras.items())
    return say("default: {value}", value=told)


def _value(fact: schema.SettingFact, value: object) -> str:
    if value is None:
        return say("none")
    return str(value).lower() if fact.type in ("bool", "flag") else str(value)


def _cause(knowledge: schema.Knowledge, cause: schema.Cause) -> TextBlock:
    title = say("{title} ({memory})", title=cause.title, memory=MEMORY_TITLES[cause.memory])
    lines = [*_named(say("{id}: a cause", id=cause.id), title), *wrap(cause.explains, 2)]
    lines += wrap(say("proved by: {proof}", proof=cause.proof) if cause.proof else "", 2, 4)
    lines += wrap(say("ruled out by: {proof}", proof=cause.counter) if cause.counter else "", 2, 4)
    lines += wrap_each(_relieved(knowledge, cause), 2, 4)
    folklore, later = listed(cause.folklore), cause.record_next_time
    lines += wrap(say("told, but no help here: {remedies}", remedies=folklore) if folklore else "", 2, 4)
    return lines + wrap(say("to record next time: {what}", what=later) if later else "", 2, 4)


def _relieved(knowledge: schema.Knowledge, cause: schema.Cause) -> Iterator[str]:
    """Its remedies in its own order, by the phases that they relieve: those for every phase last."""
    phases = {remedy.id: remedy.phases for remedy in knowledge.remedies}
    for phase in PHASES:
        here = [name for name in cause.remedies if phase in phases.get(name, ())]
        if here:
            yield say("relieved in {phase} by {remedies}", phase=PHASE_TITLES[phase], remedies=listed(here))
    always = [name for name in cause.remedies if not phases.get(name)]
    if always:
        yield say("relieved in every phase by {remedies}", remedies=listed(always))


def _remedy(remedy: schema.Remedy) -> TextBlock:
    phases = listed(PHASE_TITLES[phase] for phase in remedy.phases) or say("every phase")
    lines = _named(say("{id}: a remedy ({kind})", id=remedy.id, kind=KINDS[remedy.kind]), remedy.title)
    lines += wrap(say("changes the knob {knob}", knob=remedy.knob) if remedy.knob else "", 2)
    lines += wrap(say("relieves {memory} in {phases}", memory=MEMORY_TITLES[remedy.memory], phases=phases), 2, 4)
    lines += wrap(say("training results: {results}", results=RESULTS[remedy.results]), 2)
    lines += wrap(say("costs: {costs}", costs=costs_of(remedy, None)), 2, 4)
    lines += wrap_each(remedy.caveats, 2, 4)
    lines += wrap(say("never for {what}", what=listed(remedy.never_for)) if remedy.never_for else "", 2, 4)
    for evidence in remedy.evidence:
        told = {"case": evidence.case, "grade": GRADES[evidence.grade], "because": evidence.because}
        why = say("case {case}: {grade}: {because}", **told)
        lines += wrap(why if evidence.because else say("case {case}: {grade}", **told), 2, 4)
    return lines + _source(remedy.source)


def _signature(signature: schema.Signature) -> TextBlock:
    lines = [*_named(say("{id}: a crash line", id=signature.id), signature.title), *wrap(signature.says, 2)]
    verdict, memory = signature.verdict or say("nothing by itself"), MEMORY_TITLES[signature.memory]
    lines += wrap(say("proves: {verdict}, {memory}", verdict=verdict, memory=memory), 2, 4)
    if signature.phase != "unknown":
        lines += wrap(say("in {phase}", phase=PHASE_TITLES[signature.phase]), 2)
    lines += wrap(say("looks like: {line}", line=signature.sample) if signature.sample else "", 2, 4)
    lines += wrap(say("versions: {versions}", versions=signature.versions) if signature.versions else "", 2, 4)
    lines += wrap_each((say("not to be mistaken for {line}", line=like) for like in signature.look_alikes), 2, 4)
    return lines + _source(signature.source)


def _question(question: schema.Question) -> TextBlock:
    lines = [*_named(say("{id}: a question", id=question.id), question.asks), *wrap(question.why, 2)]
    for identifier, answer in question.answers.items():
        told = {"id": identifier, "title": answer.title, "next": answer.next, "cause": answer.leads_to}
        onward = say("{id}: {title}; leads to the question {next}", **told)
        lines += wrap(onward if answer.next else say("{id}: {title}; leads to the cause {cause}", **told), 4, 6)
    return lines + wrap(say("to find out: {how}", how=question.if_unknown), 2, 4)


def _advisory(advisory: schema.Advisory) -> TextBlock:
    told = {"id": advisory.id, "library": advisory.library, "versions": advisory.versions}
    grade = GRADES[advisory.grade]
    lines = wrap(say("{id}: an advisory for {library} {versions} ({grade})", **told, grade=grade))
    lines += [*wrap(advisory.title, 2), *wrap(advisory.says, 2)]
    lines += wrap(say("safe: {versions}", versions=listed(advisory.safe)) if advisory.safe else "", 2, 4)
    lines += wrap(say("explains {cause}", cause=advisory.cause) if advisory.cause else "", 2)
    return lines + _source(advisory.source)


def _case(case: schema.Case) -> TextBlock:
    lines = _named(say("{id}: a documented case ({grade})", id=case.id, grade=GRADES[case.grade]), case.title)
    facts = listed(situation_words(key, value) for key, value in case.situation.items())
    lines += wrap(say("situation: {facts}", facts=facts), 2, 4)
    for key, value in case.reported.items():  # a user's own case may have other keys
        text = _REPORTED[key] if key in _REPORTED else f"reported, {key.replace('_', ' ')}: {{what}}"
        lines += wrap(text.format(what=_told(value)), 2, 4)
    lines += wrap(case.mechanism, 2)
    lines += wrap_each((say("told there, but not supported: {what}", what=told) for told in case.folklore), 2, 4)
    lines += wrap(say("remedies: {remedies}", remedies=listed(case.remedies)) if case.remedies else "", 2, 4)
    return lines + _source(case.source)


def _told(value: object) -> str:
    """Lists and mappings as a sentence names them: `bf16, small batches`, `torch 2.5.1, vllm 0.7.2`."""
    if isinstance(value, Mapping):
        return listed(f"{name} {of}" for name, of in value.items())
    if not isinstance(value, list):
        return str(value)
    items = [str(item) for item in value]
    return clauses(items) if any("，" in item for item in items) else listed(items)


def _framework(framework: schema.Framework) -> TextBlock:
    lines = _named(say("{id}: a framework", id=framework.framework), framework.title)
    eras = listed(dict.fromkeys(era.id for era in framework.eras))
    lines += wrap(say("eras: {eras}", eras=eras) if eras else "", 2, 4)
    if (read := framework.newest_read) is not None:
        lines += wrap(say("read up to {version} ({date})", version=read.name, date=read.date), 2, 4)
    lines += wrap(say("{count} settings known", count=len(framework.settings)), 2)
    lines += wrap_each(framework.notes, 2, 4)
    return lines + _source(framework.source)


def _source(source: str) -> TextBlock:
    return wrap(say("source: {source}", source=source) if source else "", 2, 4)
