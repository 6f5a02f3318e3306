"""settings and set: reading and editing launch scripts by their own keys, without a diagnosis."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from advisor.commands.asking import launch_index
from advisor.commands.saving import only_rewrite, refuse_existing
from advisor.commands.streams import emit, tell, unreadable, usable
from advisor.exits import Exit, Refusal
from advisor.hostile import clean, clean_line
from advisor.knowledge import Knowledge, load_knowledge
from advisor.plan.patch import fits_name
from advisor.report.json_report import encode
from advisor.report.settings_report import Read, error_json, run_file, script_json, settings_json, settings_text
from advisor.run.dialect import recognise
from advisor.script.document import Edit, EditRefused, Rewrite, ScriptError, Setting, Value, Wanted, apply_edits
from advisor.script.launch import Launch, Script

RECOGNISED_IN = 200_000
"""Characters of a script that are searched for a framework's hints."""


def settings(parsed: argparse.Namespace) -> int:
    """`jsonl` goes on at a script that cannot be read; the other formats stop there."""
    knowledge = usable(load_knowledge)
    if parsed.format == "jsonl":
        for name in parsed.scripts:
            emit(encode(_one(name, knowledge), indent=None) + "\n")
        return Exit.DONE
    read = [usable(lambda name=name: _read(name, knowledge)) for name in parsed.scripts]  # type: ignore[misc]
    if parsed.format == "json":
        emit(encode(settings_json(read)) + "\n")
    elif parsed.format == "yaml":
        emit("---\n".join(run_file(each) for each in read))
    else:
        emit(settings_text(read), parsed.ascii)
    return Exit.DONE


def _one(name: str, knowledge: Knowledge) -> dict[str, object]:
    try:
        return script_json(_read(name, knowledge))
    except OSError as error:
        return error_json(name, unreadable(error))
    except (ScriptError, ValueError, RecursionError) as error:
        return error_json(name, str(error) or type(error).__name__)


def _read(name: str, knowledge: Knowledge) -> Read:
    from advisor.script.reader import read_script

    script = read_script(Path(name))
    text = clean(script.documents[0].data.decode(errors="replace"), RECOGNISED_IN)
    found = [recognise(launch, text, (), {}, {}, knowledge.frameworks).framework for launch in script.launches]
    models = [
        next((key for key, fact in dialect.settings.items() if fact.knob == "model.path"), "") if dialect else ""
        for dialect in found
    ]
    words = [dialect.framework if dialect else "unknown" for dialect in found]
    return Read(clean_line(name), script, tuple(words), tuple(models))


# --- set ----------------------------------------------------------------------------------------------------------


def set_values(parsed: argparse.Namespace) -> int:
    """Write the script with these values; nothing is written where one of them cannot be set exactly."""
    from advisor.script.edit import check
    from advisor.script.reader import read_script
    from advisor.script.write import write_file

    given = [_pair(text) for text in parsed.changes]
    script = usable(lambda: read_script(Path(parsed.script)))
    done = usable(lambda: only_rewrite(rewritten(script, given, launch_index(parsed.launch), parsed.script)))
    usable(lambda: check(done))
    if parsed.output == "-":
        emit(done.new.decode("utf-8", "surrogateescape"))
        return Exit.DONE
    destination = Path(parsed.output) if parsed.output else fits_name(done.document.path)
    usable(lambda: refuse_existing(destination, parsed.force))
    usable(lambda: write_file(destination, done.new, done.document.mode, force=parsed.force))
    tell(f"written {clean_line(str(destination))}")
    return Exit.DONE


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise Refusal(f"{clean_line(text, 80)}: write it as KEY=VALUE")
    return key.strip(), value


def rewritten(script: Script, given: Sequence[tuple[str, str]], launch: int | None, name: str) -> tuple[Rewrite, ...]:
    """The edits of all launches concerned, joined by file. Raises Refusal, EditRefused."""
    from advisor.script.edit import rewrite

    if not script.launches:
        raise Refusal(f"{clean_line(name)}: no training command was found in it")
    if launch is not None and launch >= len(script.launches):
        raise Refusal(f"--launch {launch + 1}: {clean_line(name)} has {len(script.launches)}")
    chosen = script.launches if launch is None else (script.launches[launch],)
    wanted: dict[int, list[Wanted]] = {}
    for key, value in given:
        for one in _with_key(chosen, key) or chosen[:1]:
            wanted.setdefault(one.index, []).append(_wanted(one, key, value))
    return _joined([done for index, each in wanted.items() for done in rewrite(script, index, each)])


def _with_key(launches: Sequence[Launch], key: str) -> list[Launch]:
    return [launch for launch in launches if _found(launch, key) is not None or key in launch.environment]


def _found(launch: Launch, key: str) -> Setting | None:
    """The setting in force that goes by this key, with or without its dashes."""
    name = key.lstrip("-")
    return next((setting for own, setting in launch.effective().items() if own.lstrip("-") == name), None)


def _wanted(launch: Launch, key: str, value: str) -> Wanted:
    """What to write: under the launch's own spelling of the key where it has it."""
    setting = _found(launch, key)
    if setting is None:
        named_like_a_variable = key in launch.environment or (
            key.isupper() and "." not in key and not key.startswith("-")
        )
        return Wanted(key, value, kind="environment" if named_like_a_variable else "setting")
    return Wanted(setting.key, _as_before(setting, value))


def _as_before(setting: Setting, value: str) -> Value | None:
    """Several words stay several words; a bare flag stays bare, and false takes it away."""
    if isinstance(setting.value, tuple):
        if not setting.value and value.lower() in ("true", "false"):
            return () if value.lower() == "true" else None
        if len(setting.value) > 1:
            return tuple(value.split())
    return value


def _joined(rewrites: Iterable[Rewrite]) -> tuple[Rewrite, ...]:
    """One rewrite a file; the same edit asked for by two launches is made once."""
    by_file: dict[Path, list[Rewrite]] = {}
    for done in rewrites:
        by_file.setdefault(done.document.path, []).append(done)
    return tuple(each[0] if len(each) == 1 else _merged(each) for each in by_file.values())


def _merged(rewrites: Sequence[Rewrite]) -> Rewrite:
    edits: list[Edit] = []
    for done in rewrites:
        edits += [edit for edit in done.edits if edit not in edits]
    document = rewrites[0].document
    try:
        new = apply_edits(document.data, tuple(edits))
    except EditRefused as refusal:
        raise EditRefused(f"{clean_line(str(document.path))}: {refusal}") from refusal
    return Rewrite(document, new, tuple(sorted(edits, key=lambda edit: edit.start)))
