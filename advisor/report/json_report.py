"""Writes the JSON contract. Numbers are raw (bytes, fractions); nothing depends on terminal, width or locale."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import DecodeError
from msgspec.json import format as indented
from msgspec.structs import asdict

from advisor import __version__
from advisor.crash.evidence import Crash
from advisor.diagnosis.diagnosis import Diagnosis, QuestionStep
from advisor.language import say
from advisor.machine.inventory import Machine
from advisor.machine.inventory_json import to_json as machine_json
from advisor.memory.cells import Cell, Ledger, Match, PhaseSum
from advisor.memory.fit import Fit
from advisor.plan.plan import Change, PlanStep
from advisor.redact import redact_value
from advisor.report.layout import fields_of
from advisor.report.record_report import record_json
from advisor.report.sharding_report import sharding_json
from advisor.run.run import Run, UnknownKey
from advisor.script.document import Setting

if TYPE_CHECKING:
    from advisor.plan.sizes import Sizes
    from advisor.run_file import Sizing
    from advisor.state import State

SCHEMA = 1
_DIGITS = 6
_EVIDENCE = "signature file line text fields role memory phase process repeats runs_ago"


def encode(value: Mapping[str, Any], indent: int | None = 2) -> str:
    """ASCII-only JSON, keys in the order given, floats rounded to six digits; NaN and infinities become null."""
    plain = _plain(value)
    if indent is not None:
        with suppress(DecodeError):  # a lone surrogate of a file's name; json indents in Python, four times as slowly
            return indented(json.dumps(plain, allow_nan=False), indent=indent)
    return json.dumps(plain, indent=indent, allow_nan=False)


def _plain(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in (str, int, bool):  # nearly all: 12,000 values of a report
        return value
    if kind is dict:  # before the check by protocol, which takes as long as the copy
        return {key if type(key) is str else str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, float):
        return round(value, _DIGITS) if value - value == 0 else None  # inf - inf and nan - nan are nan
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def diagnose_json(state: State) -> dict[str, Any]:
    """`diagnose --format json`: the whole session."""
    return {
        "schema": SCHEMA,
        "tool": {"version": __version__, "knowledge": state.knowledge.digest},
        "machine": machine_json(state.machine),
        "run": run_json(state.run),
        "crash": crash_json(state.crash),
        "diagnosis": _diagnosis(state.diagnosis),
        "memory": _memory(state.ledger, state.attribution),
        "plan": [step_json(step) for step in state.plan.steps],
        "after": _memory(state.plan.after, ()),
        "outcome": {**fields_of(state.plan, "fits margin shortfall"), "fit": _fit(state.plan.fit)},
        "not_proposed": [asdict(entry) for entry in state.plan.not_proposed],
        **({"record": record_json(state.measured)} if state.measured is not None else {}),
        **({"sharding": spread} if (spread := sharding_json(state.run, state.machine, state.crash)) else {}),
    }


def estimate_json(sizing: Sizing) -> dict[str, Any]:
    """`estimate --format json`: the ledger as it is, and whether it fits with the margin kept free."""
    return {
        "schema": SCHEMA,
        "run": run_json(sizing.run),
        "machine": machine_json(sizing.machine),
        "memory": _memory(sizing.ledger, sizing.attribution),
        "margin": sizing.margin,
        "fits": sizing.fit.fits,
        "fit": _fit(sizing.fit),
        "sizes": _sizes(sizing.sizes),
        "trial": None if sizing.trial is None else fields_of(sizing.trial, "settings written says source"),
        **({"sharding": spread} if (spread := sharding_json(sizing.run, sizing.machine)) else {}),
    }


def _sizes(sizes: Sizes | None) -> dict[str, Any] | None:
    """The largest value of each setting alone, and the smallest machine for the run as it is."""
    if sizes is None:
        return None
    return {
        "largest": [
            {
                **fields_of(reach, "key knob now most"),
                "stopped_by": None
                if reach.stopped_by is None
                else dict(zip(("memory", "phase"), reach.stopped_by, strict=True)),
            }
            for reach in sizes.reaches
        ],
        "smallest_card": None if sizes.card is None else fields_of(sizes.card, "name total_bytes"),
        **fields_of(sizes, "gpu_bytes host_bytes"),
    }


def _fit(fit: Fit) -> dict[str, Any]:
    """The verdict with what decides it; bytes are null where they are not what is short."""
    worst, in_bytes = fit.worst, fit.worst is not None and fit.worst.reason != "gpus"
    return {
        "verdict": fit.verdict,
        "reason": worst.reason if worst else None,
        "place": worst.place if worst else None,
        "phase": worst.phase if worst and worst.phase != "unknown" else None,
        "decides": worst.decides if worst else None,
        "short_bytes": worst.short or None if worst and in_bytes else None,
        "short_gpus": worst.short if worst and not in_bytes else None,
        "lived_through": [{"memory": place, "phase": phase} for place, phase in fit.lived_through],
        "set_aside": [{"memory": place, "phase": phase} for place, phase in fit.set_aside],
    }


def scan_json(crash: Crash) -> dict[str, Any]:
    """`scan --format json`."""
    return {"schema": SCHEMA, "crash": crash_json(crash)}


def machine_file(machine: Machine) -> dict[str, Any]:
    """`machine --format json`, which `--machine FILE` reads."""
    return {"schema": SCHEMA, **machine_json(machine)}


# --- blocks --------------------------------------------------------------------------------------------------------


def run_json(run: Run) -> dict[str, Any]:
    """The contract's `run`, with the knobs the settings carry."""
    return {
        "framework": run.part_of or run.framework,
        "era": run.era,
        "newest_read": {"version": read.name, "date": read.date} if (read := run.newest_read) else None,
        "algorithm": run.algorithm,
        "model": {
            "name": run.model_name or (run.model.name if run.model else None),
            "parameters": run.model.parameters if run.model else None,
        },
        "settings": [setting_json(setting) for setting in run.settings],
        "recognised_by": run.recognised_by,
        "knobs": {name: fields_of(knob, "value source key note") for name, knob in sorted(run.knobs.items())},
        "unknown_keys": [unknown_json(one) for one in run.unknown_keys],
        "notes": list(run.notes),
    }


def unknown_json(unknown: UnknownKey) -> dict[str, Any]:
    """A key that nobody understood, and the one that may be meant."""
    return {"key": unknown.key, "meant": unknown.meant or None}


def setting_json(setting: Setting) -> dict[str, Any]:
    """One place that sets a key; `start` and `end` are byte offsets in `file`."""
    span = setting.span
    return {
        "key": setting.key,
        "value": _shown(setting),
        **fields_of(setting, "resolved effective"),
        "file": span.path if span else None,
        "line": span.line if span else None,
        "start": span.start if span else None,
        "end": span.end if span else None,
        "origin": setting.origin,
        **({"reason": setting.reason} if setting.reason else {}),
    }


def _shown(setting: Setting) -> str | list[str] | None:
    """The value as the program would get it; a secret is not told."""
    if setting.value is None:
        return None
    if isinstance(setting.value, tuple):
        return [redact_value(setting.key, word) for word in setting.value]
    return redact_value(setting.key, setting.value)


def crash_json(crash: Crash) -> dict[str, Any]:
    """The contract's `crash`; `evidence[0]` is the first cause where there is one."""
    return {
        **fields_of(crash, "verdict memory phase signature"),
        "evidence": [fields_of(entry, _EVIDENCE) for entry in crash.evidence],
        "phase_because": crash.phase_because,
        **({"phase_among": list(crash.phase_among)} if crash.phase_among else {}),
        "frames": [fields_of(frame, "file line function log_line") for frame in crash.frames],
        "top_users": [fields_of(user, "pid used_bytes command") for user in crash.top_users],
        "libraries": dict(sorted(crash.libraries.items())),
        **fields_of(crash, "frameworks unclear_because settle_by lines_read"),
        **({"doubts": list(crash.doubts)} if crash.doubts else {}),
    }


def _diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        **fields_of(diagnosis, "cause title basis"),
        "path": [_question(step) for step in diagnosis.path],
        "ruled_out": [fields_of(one, "cause title because") for one in diagnosis.ruled_out],
        "less_likely": [fields_of(one, "cause title because") for one in diagnosis.less_likely],
        "cases": [case.id for case in diagnosis.cases],
        **fields_of(diagnosis, "explains memory phase remarks"),
        "case_matches": [asdict(case) for case in diagnosis.cases],
        "advisories": [asdict(advice) for advice in diagnosis.advisories],
        **fields_of(diagnosis, "record_next_time open_questions"),
    }


def _question(step: QuestionStep) -> dict[str, Any]:
    return {
        **fields_of(step, "question answer source evidence asks because suggested"),
        "choices": [choice.id for choice in step.choices],
        **({"guess": True} if step.guess else {}),
    }


def _memory(ledger: Ledger | None, attribution: Sequence[Match]) -> dict[str, Any]:
    """The contract's `memory`; empty phases where nothing could be computed, and `missing` then says why."""
    return {
        "gpu": {
            "capacity_bytes": ledger.gpu_capacity if ledger else None,
            "phases": [_phase(each) for each in ledger.gpu] if ledger else [],
        },
        "host": {
            "limit_bytes": ledger.host_limit if ledger else None,
            "phases": [_phase(each) for each in ledger.host] if ledger else [],
        },
        "attribution": [fields_of(match, "tensor bytes shape matches phase formula") for match in attribution],
        "basis": ledger.basis if ledger else None,
        "assumed": list(ledger.assumed) if ledger else [],
        "missing": list(ledger.missing) if ledger else [],
    }


def _phase(each: PhaseSum) -> dict[str, Any]:
    return {
        "phase": each.phase,
        "low_bytes": each.low,
        "expected_bytes": each.expected,
        "high_bytes": each.high,
        **({"measured": each.measured, "predicted_bytes": each.predicted} if each.measured else {}),
        "items": [_item(cell) for cell in each.cells],
    }


def _item(cell: Cell) -> dict[str, Any]:
    return {
        "owner": cell.owner,
        "bytes": cell.expected,
        "low_bytes": cell.low,
        "high_bytes": cell.high,
        "formula": cell.formula,
        "tree": cell.amount.as_tree(),
        "basis": cell.basis,
    }


def step_json(step: PlanStep) -> dict[str, Any]:
    return {
        "id": step.id,
        "rank": step.rank,
        "title": say("{title}, for example {example}", title=step.title, example=step.example)
        if step.example
        else step.title,
        "kind": step.kind,
        "changes": [_change(change) for change in step.changes or (step.typed.changes if step.typed else ())],
        **fields_of(step, "results basis"),
        "saves_bytes": dict(step.saves),
        **fields_of(step, "why costs caveats sources selected place"),
        "other_place_saves_bytes": dict(step.host_saves),
        **fields_of(step, "tier documented"),
        **({"worked_here": step.worked_here} if step.worked_here else {}),
        **fields_of(step, "group conflicts"),
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        **fields_of(change, "key old new"),
        "file": change.file or None,
        **fields_of(change, "line how old_source"),
    }
