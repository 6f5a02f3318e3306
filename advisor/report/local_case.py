"""Makes a case of what helped at this site: only words of the knowledge and numbers, so that it can be shared."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, convert, to_builtins

from advisor.folders import standing_folder
from advisor.knowledge.schema import Case, Scalar
from advisor.knowledge.yaml_file import BadFile, read_yaml, typed
from advisor.language import ENGLISH, listed, speaking
from advisor.memory.cells import Place
from advisor.plan.candidates import WORKED_HERE
from advisor.plan.patch import bare
from advisor.plan.plan import Change, PlanStep
from advisor.redact import redact
from advisor.regex import regex
from advisor.report.sharing import anonymous
from advisor.run.values import parse_value
from advisor.script.write import write_file
from advisor.state import State
from advisor.units import show_bytes
from advisor.words import MEMORY_TITLES, PHASE_TITLES

_WORD = regex(r"[A-Za-z][\w.+-]{0,24}\Z")
"""A setting's value that is no path, no list and no sentence."""
_LOOKED_AT = 200
"""Of the cases that this site kept, the newest, which a new one is compared with."""


class Proof(Struct, frozen=True):
    """How it is known that a change helped."""

    by: str
    """"a retry", "the user"."""
    died_at: int | None = None
    """Step; None where nobody counted."""
    came_to: int | None = None
    when: float = 0.0
    """Epoch seconds."""


def local_case(state: State, steps: Iterable[PlanStep], proof: Proof | None) -> Case:
    """The case of a run that died, with the steps that were taken; without a proof it is only reported.

    In English whatever is spoken: it is made to be read elsewhere. Names of people, hosts, models of one's own, paths
    and secrets are not taken over in the first place.
    """
    with speaking(ENGLISH):
        return _case(state, [*steps], proof)


def _case(state: State, steps: list[PlanStep], proof: Proof | None) -> Case:
    day = time.strftime("%Y-%m-%d", time.localtime(proof.when if proof is not None and proof.when else None))
    changes = [change for step in steps for change in step.changes if _is_known(state, change)]
    memory, phase = state.diagnosis.memory, state.diagnosis.phase
    framework = next((one for one in state.knowledge.frameworks if one.framework == state.run.framework), None)
    title = framework.title.split(" (", 1)[0] if framework is not None else "A run"
    what = f"{title}: {MEMORY_TITLES[memory]} ran out"
    if phase != "unknown":
        what += f" ({PHASE_TITLES[phase]})"
    helped = listed(f"{bare(change.key)} {_shown(change.old)} -> {_shown(change.new)}" for change in changes)
    reported: dict[str, Any] = {}
    if failed := [f"{bare(change.key)} {_shown(change.old)}" for change in changes if change.old is not None]:
        reported["failed"] = failed
    if proof is not None and changes:
        reported["worked"] = [f"{bare(change.key)} {_shown(change.new)}" for change in changes]
        reported["confirmed_by"] = proof.by
        reported[WORKED_HERE] = day
    return Case(
        id=f"local-{state.run.framework}-{time.strftime('%Y%m%d-%H%M%S')}",
        title=f"{what}, {helped} helped" if proof is not None and helped else what,
        source=f"seen on {day} by rl-oom-advisor",
        situation=_situation(state, changes),
        reported=reported,
        mechanism=_mechanism(state, steps, proof),
        grade="confirmed" if proof is not None and changes else "reported",
        remedies=tuple(sorted({s.id for s in steps} & {remedy.id for remedy in state.knowledge.remedies})),
        values={bare(c.key): [_scalar(c.new)] for c in changes if c.new is not None},
    )


def _is_known(state: State, change: Change) -> bool:
    """A setting of the dialect, with a value that is a number or one word: nothing else leaves this machine."""
    if state.situation is None:
        return False
    native = state.situation.now.built.natives.values.get(bare(change.key))
    words = [text for text in (change.old, change.new) if text is not None and isinstance(_scalar(text), str)]
    plain = all(_WORD.match(text) is not None and redact(text) == text for text in words)
    return native is not None and native.fact is not None and plain


def _scalar(text: str | None) -> Scalar:
    for kind in ("int", "float", "bool"):
        found = parse_value(text or "", kind)
        if isinstance(found, (bool, int, float)):
            return found
    return text


def _shown(text: str | None) -> str:
    return "(not set)" if text is None else text


def _situation(state: State, changes: list[Change]) -> dict[str, Scalar]:
    """What tells this run from others: framework, memory, phase, machine, a published model, the settings changed."""
    run, found = state.run, dict[str, Scalar]()
    found["framework"] = run.framework
    found["memory"] = state.diagnosis.memory
    if state.diagnosis.phase != "unknown":
        found["phase"] = state.diagnosis.phase
    if run.model is not None and any(model.name == run.model.name for model in state.knowledge.models):
        found["model"] = run.model.name
    card = state.machine.gpus[0].name if state.machine.gpus else ""
    if any(card in (gpu.name, *gpu.aliases) for gpu in state.knowledge.gpus):
        found["gpu"] = card
    if state.machine.gpus:
        found["gpus"] = run.topology.actor_gpus
    assert state.situation is not None or not changes
    for change in changes:
        native = state.situation.now.built.natives.values[bare(change.key)] if state.situation is not None else None
        knob = native.fact.knob if native is not None and native.fact is not None else None
        value = run.value(knob) if knob else None
        if knob and isinstance(value, (bool, int, float)):
            found[knob] = value
    return found


def _mechanism(state: State, steps: list[PlanStep], proof: Proof | None) -> str:
    """What died and what took less, in numbers."""
    said = []
    place: Place = "host" if state.diagnosis.memory == "host" else "gpu"
    fullest = state.ledger.peak(place)
    capacity = state.ledger.host_limit if place == "host" else state.ledger.gpu_capacity
    if fullest is not None and capacity is not None:
        size, of = show_bytes(fullest.expected), show_bytes(capacity)
        said.append(f"{PHASE_TITLES[fullest.phase]} was counted at {size} of {of} when it died.")
    saved = max((max(step.saves.values(), default=0) for step in steps), default=0)
    if saved > 0:
        said.append(f"The changes were expected to free {show_bytes(saved)}.")
    if proof is not None and proof.died_at is not None and proof.came_to is not None:
        said.append(f"It had died at step {proof.died_at} and came to step {proof.came_to} with them.")
    return " ".join(said) or "Nothing could be counted."


def case_yaml(case: Case) -> str:
    """The case as a file of `knowledge/cases/`."""
    told: dict[str, Any] = to_builtins(case)
    kept = {name: value for name, value in told.items() if value not in ({}, [], ())}
    text: str = yaml.safe_dump(kept, sort_keys=False, allow_unicode=True, width=120)
    return "# yaml-language-server: $schema=../schema/case.json\n" + text


def without_names(case: Case) -> Case:
    """A case that lay in a file, with every text of it made anonymous: somebody may have written into it."""
    told = _anonymous(to_builtins(case))
    found: Case = convert(told, Case)
    return found


def _anonymous(value: Any) -> Any:
    if isinstance(value, dict):
        return {anonymous(str(name)): _anonymous(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_anonymous(each) for each in value]
    return anonymous(value) if isinstance(value, str) else value


def keep_case(case: Case) -> Path | None:
    """Write the case into the user's own knowledge, unless one like it is there; None where nothing was written."""
    folder = standing_folder()
    if folder is None:
        return None
    with suppress(OSError):
        cases = folder / "cases"
        cases.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in sorted(cases.glob("local-*.yaml"))[-_LOOKED_AT:]:
            with suppress(BadFile, OSError):
                there = typed(read_yaml(path), Case)
                if (there.situation, there.values) == (case.situation, case.values):
                    return None
        file = cases / f"{case.id}.yaml"
        write_file(file, case_yaml(case).encode(), force=False, mode=0o600)
        return file
    return None
