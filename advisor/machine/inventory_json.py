"""A machine as JSON and back: `machine --format json`, `--machine FILE`, and the `machine` block of a diagnosis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.machine.inventory import Gpu, GpuProcess, Host, Machine
from advisor.machine.libraries import normalised
from advisor.words import Source

SCHEMA = 1
_MOST = 2**63
_TEXT_LIMIT = 400
_MOST_ENTRIES = 4096


def to_json(machine: Machine) -> dict[str, Any]:
    """The contract's `machine` block with details; every value is plain JSON, unknown is null."""
    return {
        "nodes": machine.nodes,
        "gpus": [_gpu_to_json(gpu) for gpu in machine.gpus],
        "host": {name: getattr(machine.host, name) for name in _names(Host)},
        "libraries": dict(sorted(machine.libraries.items())),
        "environment": machine.environment,
        "driver": machine.driver,
        "sources": dict(sorted(machine.sources.items())),
        "problems": list(machine.problems),
        **({"name": machine.name} if machine.name else {}),
        **({"members": [to_json(member) for member in machine.members]} if machine.members else {}),
    }


def _gpu_to_json(gpu: Gpu) -> dict[str, Any]:
    shown = {name: getattr(gpu, name) for name in _names(Gpu)}
    shown["usable_bytes"] = gpu.usable_bytes
    shown["throttle"] = list(gpu.throttle)
    if gpu.processes is not None:
        shown["processes"] = [_process_to_json(process) for process in gpu.processes]
    return shown


def _process_to_json(process: GpuProcess) -> dict[str, Any]:
    return {name: getattr(process, name) for name in _names(GpuProcess)}


def _names(noun: type[Host] | type[Gpu] | type[GpuProcess]) -> list[str]:
    return [field.name for field in fields(noun)]


def from_json(stated: object) -> Machine:
    """The machine that `to_json` wrote; only what the contract names need be there, unknown keys are ignored.

    Also takes {"machine": {…}} as a diagnosis has it. Raises ValueError naming the field that is wrong.
    """
    block = _mapping(stated, say("a machine file"))
    if isinstance(block.get("machine"), Mapping):
        block = _mapping(block["machine"], "machine")
    if not {"nodes", "gpus", "host", "libraries"} & set(block):
        raise ValueError(say("names neither nodes, gpus, host nor libraries: not a machine description"))
    return Machine(
        nodes=_count(block.get("nodes"), "nodes"),
        gpus=tuple(_gpu(entry, place) for place, entry in enumerate(_list(block.get("gpus"), "gpus"))),
        host=_host(_mapping(block.get("host") or {}, "host")),
        libraries=_libraries(_mapping(block.get("libraries") or {}, "libraries")),
        environment=_text(block.get("environment"), "environment"),
        driver=_text(block.get("driver"), "driver"),
        sources=_sources(_mapping(block.get("sources") or {}, "sources")),
        problems=tuple(_text(entry, "problems") for entry in _list(block.get("problems"), "problems")),
        members=tuple(from_json(entry) for entry in _list(block.get("members"), "members")),
        name=_text(block.get("name"), "name"),
    )


def _gpu(entry: object, place: int) -> Gpu:
    where = f"gpus[{place}]"
    stated = _mapping(entry, where)
    index = _bytes(stated.get("index"), f"{where}.index")
    processes = stated.get("processes")
    return Gpu(
        index=place if index is None else index,
        name=_text(stated.get("name"), f"{where}.name") or f"GPU {place}",
        total_bytes=_bytes(stated.get("total_bytes"), f"{where}.total_bytes"),
        used_bytes=_bytes(stated.get("used_bytes"), f"{where}.used_bytes"),
        uuid=_text(stated.get("uuid"), f"{where}.uuid"),
        utilisation=_bytes(stated.get("utilisation"), f"{where}.utilisation"),
        temperature=_bytes(stated.get("temperature"), f"{where}.temperature"),
        power_watts=_number(stated.get("power_watts"), f"{where}.power_watts"),
        power_limit_watts=_number(stated.get("power_limit_watts"), f"{where}.power_limit_watts"),
        processes=None if processes is None else tuple(_process(p, where) for p in _list(processes, where)),
        problem=_text(stated.get("problem"), f"{where}.problem"),
        reserved_bytes=_bytes(stated.get("reserved_bytes"), f"{where}.reserved_bytes"),
        mig=_text(stated.get("mig"), f"{where}.mig"),
        parent=_bytes(stated.get("parent"), f"{where}.parent"),
        ecc_errors=_bytes(stated.get("ecc_errors"), f"{where}.ecc_errors"),
        throttle=tuple(_text(entry, f"{where}.throttle") for entry in _list(stated.get("throttle"), where)),
    )


def _process(entry: object, where: str) -> GpuProcess:
    stated = _mapping(entry, f"{where}.processes")
    user = stated.get("user")
    return GpuProcess(
        pid=_bytes(stated.get("pid"), f"{where}.processes.pid") or 0,
        used_bytes=_bytes(stated.get("used_bytes"), f"{where}.processes.used_bytes"),
        user=None if user is None else _text(user, f"{where}.processes.user"),
        started=_number(stated.get("started"), f"{where}.processes.started"),
        host_rss_bytes=_bytes(stated.get("host_rss_bytes"), f"{where}.processes.host_rss_bytes"),
        command=_text(stated.get("command"), f"{where}.processes.command"),
    )


def _host(stated: Mapping[str, object]) -> Host:
    sizes = {name: _bytes(stated.get(name), f"host.{name}") for name in _names(Host) if name != "limit_source"}
    return Host(**sizes, limit_source=_text(stated.get("limit_source"), "host.limit_source"))


def _libraries(stated: Mapping[str, object]) -> dict[str, str]:
    return {normalised(name): _text(version, f"libraries.{name}") for name, version in stated.items()}


def _sources(stated: Mapping[str, object]) -> dict[str, Source]:
    allowed: tuple[Source, ...] = get_args(Source)
    return {name: word for name, said in stated.items() for word in allowed if said == word}


# --- checked values ------------------------------------------------------------------------------------------------


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise _wrong(mark("{where} must be an object, not {value!r}"), where, value)
    return value


def _list(value: object, where: str) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > _MOST_ENTRIES:
        raise _wrong(mark("{where} must be a list, not {value!r}"), where, value)
    return value


def _bytes(value: object, where: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise _wrong(mark("{where} must be a whole number, not {value!r}"), where, value)
    return value


def _count(value: object, where: str) -> int | None:
    count = _bytes(value, where)
    if count == 0:
        raise ValueError(say("{where} must be at least 1", where=where))
    return count


def _number(value: object, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -_MOST < value < _MOST:
        raise _wrong(mark("{where} must be a number, not {value!r}"), where, value)
    return float(value)


def _text(value: object, where: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong(mark("{where} must be text, not {value!r}"), where, value)
    return clean_line(value, _TEXT_LIMIT)


def _wrong(sentence: str, where: str, value: object) -> ValueError:
    """The one kind of error for input."""
    return ValueError(say(sentence, where=where, value=clean_line(str(value), 40)))
