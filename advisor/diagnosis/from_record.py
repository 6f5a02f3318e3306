"""Draws facts and peaks from a record of `watch`, which knows more of memory over time than a log."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.crash.evidence import Crash
from advisor.diagnosis.fact import Fact
from advisor.language import say
from advisor.memory.cells import Ledger, PhaseSum
from advisor.memory.constants import GPU_CONTEXT
from advisor.memory.readings import Peak, proven_by
from advisor.regex import regex
from advisor.run.run import Run
from advisor.units import show_bytes
from advisor.watch.measured import Forecast, Grown, Measured, PhasePeak
from advisor.words import PHASE_TITLES, Phase, when

_ONCE: tuple[Phase, ...] = ("model_load", "rollout_init", "checkpoint", "validation")
"""Phases of which one passage shows the peak; of the others the first step is not yet like those that follow."""
_LEAST_STEPS = 2
"""Done steps after which each phase of one was passed at its full size."""
_ENGINES = regex(r"EngineCore|VLLM::|LLMRayActor|vLLM|sglang|SGLang|scheduler_TP")
"""Names of processes that hold an engine and nothing of a trainer."""
_OF_ENGINE: tuple[Phase, ...] = ("rollout_init", "rollout_generate")


def record_facts(measured: Measured | None) -> dict[str, Fact]:
    """steps_done, first_step, host.grows, gpu.grows; each only where the record tells."""
    if measured is None:
        return {}
    facts: dict[str, Fact] = {}
    if measured.steps:
        because = say("the record saw {count} done steps", count=measured.steps)
        facts["steps_done"] = Fact(measured.steps, "log", because)
        facts["first_step"] = Fact(False, "log", because)
    for name, place in (("host.grows", "host"), ("gpu.grows", "gpu")):
        gauges = {one.gauge for one in measured.peaks if one.place == place}
        grown = next((one for one in measured.grown if one.gauge in gauges), None)
        if grown is not None:
            facts[name] = Fact(True, "log", say("the record: {grown}", grown=growth_clause(grown)))
        elif gauges & set(measured.level):
            facts[name] = Fact(False, "log", say("the record: it does not grow from step to step"))
    return facts


def peaks_in(measured: Measured, ledger: Ledger, run: Run, crash: Crash) -> tuple[Peak, ...]:
    """Peaks of the record that replace what the ledger predicts of the same phase and place.

    Where an engine has cards of its own, the fullest card is the engine's, and nothing is said of the trainer's.
    """
    apart = run.topology.rollout_gpus > 0 and not run.topology.colocated
    found = []
    for one in measured.peaks:
        if one.place == "gpu" and apart and one.phase not in _OF_ENGINE:
            continue
        died = crash.verdict == "oom" and crash.phase == one.phase
        whole = not died and one.visits >= (1 if one.phase in _ONCE else 2)
        source = say("the record, {gauge} at {at:.0f} s", gauge=one.gauge, at=one.at)
        found.append(Peak(one.place, one.phase, one.bytes, source, whole, engine=_engine_of(one)))
    return (*proven_by(ledger, found), *_of_no_phase(measured, ledger))


def _of_no_phase(measured: Measured, ledger: Ledger) -> list[Peak]:
    """Where the output shows no phases: no phase of a step took more of the host than the most that was in use.

    So much is then counted of each that is predicted larger. A phase that holds more beside the processes than every
    phase of a step is left out: nothing shows that the run came to it.
    """
    shown = [one for one in measured.peaks if one.place == "host"]
    if measured.steps < _LEAST_STEPS or not shown or any(one.phase != "unknown" for one in shown):
        return []
    most = max(shown, key=lambda one: one.bytes)
    passed = [_beside_processes(each) for each in ledger.host if each.phase not in _ONCE]
    source = say("the record, {gauge} at {at:.0f} s, in whichever phase", gauge=most.gauge, at=most.at)
    return [
        Peak("host", each.phase, most.bytes, source, predicted=each.expected)
        for each in ledger.host
        if each.expected > most.bytes and _beside_processes(each) <= max(passed, default=0)
    ]


def _beside_processes(phase: PhaseSum) -> int:
    return phase.expected - phase.of("processes")


def _engine_of(peak: PhasePeak) -> int | None:
    """Bytes that an engine's own processes held of the fullest card, less their CUDA contexts; None without any."""
    held = [one for one in peak.owners if peak.place == "gpu" and _ENGINES.search(one.owner)]
    return sum(one.bytes - one.processes * GPU_CONTEXT for one in held) or None


def growth_clause(grown: Grown) -> str:
    """ "host RAM grows by 2.49 GiB a step (± 0.03) over 60 steps during the actor update"."""
    growth = grown.growth
    told = {
        "gauge": grown.gauge,
        "size": show_bytes(growth.per_step),
        "uncertainty": show_bytes(growth.uncertainty),
        "steps": growth.steps,
    }
    if grown.phase == "unknown":
        return say("{gauge} grows by {size} a step (± {uncertainty}) over {steps} steps", **told)
    at = when(grown.phase)
    return say("{gauge} grows by {size} a step (± {uncertainty}) over {steps} steps {when}", **told, when=at)


def record_sentences(measured: Measured) -> Iterator[str]:
    """Growth, forecast, alerts and the kernel's counters, in sentences."""
    for grown in {one.gauge: one for one in reversed(measured.grown)}.values():  # of several phases, the fastest
        yield say("{grown}.", grown=growth_clause(grown))
    if measured.first is not None:
        yield forecast_sentence(measured.first)
    if measured.level and not measured.grown:
        yield say("Nothing grows from step to step, as far as {steps} steps tell.", steps=measured.steps)
    elif measured.steps < 8 and not measured.grown:
        yield say("Whether anything grows cannot be told from {steps} steps.", steps=measured.steps)
    if measured.oom_kills:
        yield say(
            "The kernel killed {count} of its processes for want of memory (the group's own counter).",
            count=measured.oom_kills,
        )
    for alert in measured.alerts[:4]:
        yield say("The alert level was passed by {gauge}.", gauge=alert)


def forecast_sentence(first: Forecast) -> str:
    """What is full first, and when."""
    soon, late = first.steps
    minutes = first.seconds_per_step * soon / 60
    where = PHASE_TITLES[first.phase] if first.phase != "unknown" else say("no phase in particular")
    told = {"gauge": first.gauge, "phase": where, "soon": f"{soon:.0f}", "late": f"{late:.0f}"}
    if late >= 1 and minutes < 1:
        return say(
            "At this rate {gauge} is full first in {phase}: after {soon} to {late} more steps, in less than a minute.",
            **told,
        )
    if late < 1:
        return say("{gauge} was full at the end, and first in {phase}.", gauge=first.gauge, phase=where)
    return say(
        "At this rate {gauge} is full first in {phase}: after {soon:.0f} to {late:.0f} more steps, in about "
        "{minutes:.0f} minutes.",
        gauge=first.gauge,
        phase=where,
        soon=soon,
        late=late,
        minutes=minutes,
    )
