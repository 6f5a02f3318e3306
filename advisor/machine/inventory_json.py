"""Writes a machine as JSON and reads it back: `machine --format json`, `--machine FILE`, a diagnosis's `machine`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, get_args

from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.machine.inventory import Gpu, GpuProcess, Host, Machine
from advisor.machine.libraries import normalised
from advisor.words import Source

_MOST = 2**63
_TEXT_LIMIT = 400
_MOST_ENTRIES = 4096


def to_json(machine: Machine) -> dict[str, Any]:
    """The contract's `machine` block with details; every value is plain JSON, unknown is null."""
    return {
        "nodes": machine.nodes,
        "gpus": [
            {**_plain(gpu), "processes": processes, "usable_bytes": gpu.usable_bytes, "throttle": list(gpu.throttle)}
            for gpu in machine.gpus
            for processes in [None if gpu.processes is None else [_plain(process) for process in gpu.processes]]
        ],
        "host": _plain(machine.host),
        "libraries": dict(sorted(machine.libraries.items())),
        "environment": machine.environment,
        "driver": machine.driver,
        "sources": dict(sorted(machine.sources.items())),
        "problems": list(machine.problems),
        **({"name": machine.name} if machine.name else {}),
        **({"members": [to_json(member) for member in machine.members]} if machine.members else {}),
    }


def _plain(noun: Host | Gpu | GpuProcess) -> dict[str, Any]:
    return {field.name: getattr(noun, field.name) for field in fields(noun)}


def from_json(stated: object) -> Machine:
    """The machine that `to_json` wrote; only what the contract names need be there, unknown keys are ignored. Also
    takes {"machine": {…}} as a diagnosis has it. Raises ValueError naming the field that is wrong."""
    block = _mapping(stated, say("a machine file"))
    if isinstance(block.get("machine"), Mapping):
        block = _mapping(block["machine"], "machine")
    if not {"nodes", "gpus", "host", "libraries"} & set(block):
        raise ValueError(say("names neither nodes, gpus, host nor libraries: not a machine description"))
    nodes = _bytes(block.get("nodes"), "nodes")
    if nodes == 0:
        raise ValueError(say("{where} must be at least 1", where="nodes"))
    libraries = _mapping(block.get("libraries") or {}, "libraries")
    sources = _mapping(block.get("sources") or {}, "sources")
    allowed: tuple[Source, ...] = get_args(Source)
    return Machine(
        nodes=nodes,
        gpus=tuple(_gpu(entry, place) for place, entry in enumerate(_list(block.get("gpus"), "gpus"))),
        host=Host(**_stated_fields(Host, _mapping(block.get("host") or {}, "host"), "host.")),
        libraries={normalised(name): _text(version, f"libraries.{name}") for name, version in libraries.items()},
        environment=_text(block.get("environment"), "environment"),
        driver=_text(block.get("driver"), "driver"),
        sources={name: word for name, said in sources.items() for word in allowed if said == word},
        problems=tuple(_text(entry, "problems") for entry in _list(block.get("problems"), "problems")),
        members=tuple(from_json(entry) for entry in _list(block.get("members"), "members")),
        name=_text(block.get("name"), "name"),
    )


def _gpu(entry: object, place: int) -> Gpu:
    where = f"gpus[{place}]"
    stated = _mapping(entry, where)
    read = _stated_fields(Gpu, stated, where + ".")
    processes = stated.get("processes")
    if processes is not None:
        listed = _list(processes, where)
        inside = f"{where}.processes"
        told = [_stated_fields(GpuProcess, _mapping(one, inside), inside + ".") for one in listed]
        read["processes"] = tuple(GpuProcess(**{**one, "pid": one["pid"] or 0}) for one in told)
    throttle = tuple(_text(entry, f"{where}.throttle") for entry in _list(stated.get("throttle"), where))
    index = place if read["index"] is None else read["index"]
    return Gpu(**{**read, "index": index, "name": read["name"] or f"GPU {place}", "throttle": throttle})


def _stated_fields(noun: type, stated: Mapping[str, object], where: str) -> dict[str, Any]:
    """The fields of a struct that are a number or a text, each checked by its annotation."""
    checks = {field.name: _CHECKS[field.type] for field in fields(noun) if field.type in _CHECKS}
    return {name: check(stated.get(name), where + name) for name, check in checks.items()}


# --- checked values ------------------------------------------------------------------------------------------------


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or len(value) > _MOST_ENTRIES:
        raise _wrong(mark("{where} must be an object, not {value!r}"), where, value)
    return {clean_line(str(name), _TEXT_LIMIT): one for name, one in value.items()}


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


_CHECKS: Mapping[Any, Callable[[object, str], Any]] = {
    "int": _bytes,
    "int | None": _bytes,
    "float | None": _number,
    "str": _text,
    "str | None": lambda value, where: None if value is None else _text(value, where),
}
"""Annotation of a field → what reads its value."""
