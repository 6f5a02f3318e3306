"""One sitting, from files to plan: both faces drive this and nothing below it.

(Interface first; the body is being built.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.crash.evidence import Crash
from advisor.diagnosis.diagnosis import Diagnosis
from advisor.knowledge.schema import Knowledge
from advisor.machine.inventory import Machine
from advisor.memory.cells import Ledger, Match
from advisor.plan.plan import Plan
from advisor.run.run import Run
from advisor.script.launch import Script


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user gave on the command line, or later in the app."""

    script: Path | None = None
    logs: tuple[Path, ...] = ()
    gpus: str | None = None
    """"8xA100-40GB"."""
    nodes: int | None = None
    host_ram: str | None = None
    shm: str | None = None
    libraries: tuple[str, ...] = ()
    """"deepspeed=0.16.3"."""
    machine_files: tuple[Path, ...] = ()
    model: str | None = None
    launch: int | None = None
    margin: float = 0.08
    answers: Mapping[str, str] | None = None
    accept: str = "recommended"


@dataclass(frozen=True, slots=True)
class State:
    """Everything a face shows. Immutable: each change gives a new State."""

    asked: Asked
    knowledge: Knowledge
    machine: Machine
    script: Script | None
    launch_index: int
    run: Run
    crash: Crash
    ledger: Ledger
    attribution: tuple[Match, ...]
    diagnosis: Diagnosis
    plan: Plan
    answers: Mapping[str, str]
    """Question id → the user's own answer."""


Notice = Callable[[str], None]
"""Told what is being read, for progress."""


def open_session(asked: Asked, notice: Notice | None = None) -> State:
    """Read everything that was asked for and diagnose it. Raises ScriptError, LogError or ValueError on unreadable input."""
    raise NotImplementedError


def answer(state: State, question: str, choice: str | None) -> State:
    """The same sitting with one answer given (None: take the user's answer back). Everything downstream follows."""
    raise NotImplementedError


def toggle(state: State, step_id: str, selected: bool | None = None) -> State:
    """The same sitting with one step of the plan switched; the ledger after is computed again."""
    raise NotImplementedError


def with_machine(state: State, machine: Machine) -> State:
    """The same sitting on another machine."""
    return replace(state, machine=machine)
