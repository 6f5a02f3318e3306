"""Writes the settings of launches as JSON, text, or a run file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from advisor.hostile import clean_line
from advisor.knowledge import load_knowledge
from advisor.language import say
from advisor.line_breaks import cut
from advisor.report.json_report import SCHEMA, setting_json, unknown_json
from advisor.report.layout import fields_of, join, wrap, wrap_each
from advisor.run.run import UnknownKey
from advisor.run.unknown_keys import unknown_note
from advisor.script.document import Setting
from advisor.script.launch import Launch, Script


class Read(Struct, frozen=True):
    """One script as read: a framework word for every launch, and the key that names the model there ("" where none)."""

    name: str
    script: Script
    frameworks: tuple[str, ...]
    model_keys: tuple[str, ...]
    unknown: Mapping[int, tuple[UnknownKey, ...]] = field(default_factory=dict)
    """Launch → the keys of it that nobody understood."""


def settings_json(read: Sequence[Read]) -> dict[str, Any]:
    """`settings --format json`: all launches of all scripts, in order."""
    return {
        "schema": SCHEMA,
        "launches": [launch for each in read for launch in _launches(each)],
        "notes": [note for each in read for note in each.script.notes],
    }


def error_json(name: str, sentence: str) -> dict[str, Any]:
    """A line of `settings --format jsonl` for a script that cannot be read."""
    return {"schema": SCHEMA, "script": clean_line(name), "error": sentence}


def script_json(read: Read) -> dict[str, Any]:
    """A line of `settings --format jsonl`."""
    return {"schema": SCHEMA, "script": read.name, "launches": _launches(read), "notes": list(read.script.notes)}


def _launches(read: Read) -> list[dict[str, Any]]:
    return [
        _launch(read.name, launch, framework, read.unknown.get(launch.index, ()))
        for launch, framework in zip(read.script.launches, read.frameworks, strict=True)
    ]


def _launch(name: str, launch: Launch, framework: str, unknown: tuple[UnknownKey, ...]) -> dict[str, Any]:
    return {
        "argv0": launch.argv[0] if launch.argv else None,
        "framework": framework,
        "environment": dict(launch.environment),
        "settings": [setting_json(setting) for setting in launch.settings],
        "script": name,
        **fields_of(launch, "program launcher interpreter"),
        "line": launch.span.line if launch.span else None,
        "unknown_keys": [unknown_json(one) for one in unknown],
        "notes": [*launch.notes, *unknown_note(unknown)],
    }


def settings_text(read: Sequence[Read]) -> str:
    """Every launch, its settings, and where each is decided."""
    lines: list[str] = []
    for each in read:
        lines += wrap(each.name)
        if not each.script.launches:
            lines += wrap(say("no training command was found"), 2)
        home = each.script.documents[0].path.parent
        if not each.script.launches and (hinted := each.script.hinted) is not None:
            notes = (say("Note: {note}", note=note) for note in hinted.notes)
            lines += [*wrap_each(notes, 2, 4), *wrap_each((_line(setting, home) for setting in hinted.settings), 4, 8)]
        for launch, framework in zip(each.script.launches, each.frameworks, strict=True):
            lines += ["", *_text(launch, framework, each.unknown.get(launch.index, ()), home)]
        lines += wrap_each((say("Note: {note}", note=note) for note in each.script.notes), 2, 4)
        lines.append("")
    return join(lines[:-1])


def _text(launch: Launch, framework: str, unknown: tuple[UnknownKey, ...], home: Path) -> list[str]:
    told = {"number": launch.index + 1, "program": launch.program or say("a config file"), "framework": framework}
    if launch.span:
        head = say("launch {number}: {program} ({framework}, line {line})", **told, line=launch.span.line)
    else:
        head = say("launch {number}: {program} ({framework})", **told)
    lines = wrap(head, 2, 4)
    decided = {setting.key: setting for setting in launch.exports}
    for name, value in sorted(launch.environment.items()):
        lines += wrap(f"{name}={cut(value, 60)}{_where(decided.get(name), home)}", 4, 6)
    lines += wrap_each((_line(setting, home) for setting in launch.settings), 4, 8)
    lines += wrap_each((say("Note: {note}", note=note) for note in (*launch.notes, *unknown_note(unknown))), 4, 6)
    return lines


def _line(setting: Setting, home: Path) -> str:
    value = cut(setting.text, 120) if setting.resolved else say("unresolved ({reason})", reason=setting.reason)
    if setting.origin == "log":
        where = _where(setting, home) if setting.span else ""
        return f"{setting.key} = {value}{where}  {say('(from the log; {reason})', reason=setting.reason)}"
    return f"{setting.key} = {value}{_where(setting, home)}{'' if setting.effective else '  ' + say('(overridden)')}"


def _where(setting: Setting | None, home: Path) -> str:
    """The file and line that decide a setting; a file beside the script goes by its name."""
    if setting is None or not setting.resolved:
        return ""
    if setting.span is None:
        return "  " + say("(composed)")
    path = Path(setting.span.path)
    return f"  {path.name if path.parent == home else setting.span.path}:{setting.span.line}"


def run_file(read: Read) -> str:
    """Run files, one YAML document a launch: what is in force and resolved. The machine is for the user to add."""
    import yaml

    documents = []
    for launch, framework, model_key in zip(read.script.launches, read.frameworks, read.model_keys, strict=True):
        inside = {key.lstrip("-"): _yaml_value(s) for key, s in launch.effective().items() if s.resolved}
        stated: dict[str, Any] = {"framework": framework}
        if launch.program:
            stated["program"] = launch.program
        known = next((set(f.environment) for f in load_knowledge().frameworks if f.framework == framework), set())
        variables = {name: text for name, text in launch.environment.items() if name in known}
        if variables:
            stated["environment"] = variables
        if launch.launcher:
            stated["launcher"] = dict(launch.launcher)
        if model_key in inside:
            stated["model"] = inside[model_key]
        stated["settings"] = inside
        documents.append(stated)
    return yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=120)


def _yaml_value(setting: Setting) -> str | int | float | bool | list[str]:
    """Numbers and switches as such where YAML would print them as the script has them, else the text."""
    if isinstance(setting.value, tuple) and setting.value:
        return list(setting.value)
    text = setting.text
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if repr(value) == text:
            return value
    return text
