"""Edits a launch file: from what is wanted to new bytes, proved by reading them again. Nothing is written here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from advisor.bash.words import Exhausted, Unterminated
from advisor.hostile import clean_line
from advisor.language import mark, say, sentences
from advisor.regex import regex
from advisor.script.document import Changes, Document, EditRefused, EditRequest, Rewrite, ScriptError, Value, refused
from advisor.script.environment_edit import edit_job_option
from advisor.script.keyed import read_keyed
from advisor.script.keyed_edit import KeyedEditor, refuse_unclear
from advisor.script.launch import Launch, Script
from advisor.script.proof import differences, mates
from advisor.script.reader import FOLLOWED, in_memory
from advisor.script.toml_file import TomlEditor

if TYPE_CHECKING:
    from advisor.script.shell import ShellLaunch, ShellReading
    from advisor.script.shell_edit import ShellEditor


_LIST = regex(r"\[\s*([\w./-]+(?:\s*,\s*[\w./-]+)*)\s*\]")
_TEMPLATE = regex(rb"^[ \t]*\{%[-+]?[ \t]*(?:for|if|set|macro|block)\b", re.MULTILINE)
"""A statement of Jinja's on a line of its own: bash has none that begins so."""
_NO_LAUNCH = mark("{file} holds settings without the command they belong to, so there is no launch to write them into.")


def rewrite(
    script: Script, launch_index: int, wanted: Sequence[EditRequest], *, alone: bool = False, override: bool = False
) -> tuple[Rewrite, ...]:
    """The documents with the wanted changes, for one launch of the script; `alone`: for no other call of its function,
    `override`: as overrides at the launch, whatever literal decides now.

    A literal that decides only one setting is edited in place; else an override is added at the launch. Every result
    has been read again: raises EditRefused, in one sentence, where a change would move something else too.
    """
    return rewritten(script, launch_index, wanted, alone=alone, override=override)[0]


def rewritten(
    script: Script, launch_index: int, wanted: Sequence[EditRequest], *, alone: bool = False, override: bool = False
) -> tuple[tuple[Rewrite, ...], Script]:
    """`rewrite`, and the script as it is read with the changes. Raises EditRefused."""
    if not 0 <= launch_index < len(script.launches):
        file = clean_line(str(script.documents[0].path))
        if script.launches:
            raise refused("{file} has no launch {number}.", file=file, number=launch_index + 1)
        starts_none = say("{file} starts no training itself: give the script or the config that does.", file=file)
        raise EditRefused(sentences([starts_none, *script.notes]))  # they name the script that it runs
    for item in wanted:
        values = item.value if isinstance(item.value, tuple) else (item.value or "",)
        if any("\0" in text for text in (item.key, *values)):
            raise refused("A value with a NUL byte cannot be written.")
    document = script.documents[0]
    changes = Changes(script.documents)
    own = {one.key: one.value for one in script.launches[launch_index].settings}
    keyed = document.kind not in ("shell", "python")
    wanted = [as_list(one, own.get(one.key)) if keyed or one.in_file else one for one in wanted]
    try:
        if document.kind == "shell" and not script.launches[launch_index].argv:
            _embedded(script, wanted, changes)
        elif document.kind == "shell":
            _shell(script, launch_index, wanted, changes, override)
            for other in mates(script, launch_index):
                rest = [one for one in wanted if not (one.in_file or one.key.startswith(FOLLOWED))]
                _shell(script, other, [one for one in rest if one.kind == "setting"], changes, override)
        else:
            for prefix in FOLLOWED:
                if linked := [one for one in wanted if one.key.startswith(prefix)]:
                    _keyed(script, _followed(script, launch_index, prefix), linked, changes, prefix)
            mine = [one for one in wanted if not one.key.startswith(FOLLOWED)]
            if document.kind == "python":
                _python(script, document, mine, changes)
            else:
                _keyed(script, 0, mine, changes)
    except EditRefused:  # a file that cannot be changed
        beside = [one for one in map(_beside, wanted) if one is not None]
        if beside == wanted or len(beside) < len(wanted):
            raise
        return rewritten(script, launch_index, beside, alone=alone, override=override)
    except ScriptError as error:
        raise EditRefused(str(error)) from error
    except Exhausted as error:
        raise refused("The script is too long to be changed safely.") from error
    rewrites = changes.rewrites()
    problems, again = differences(script, launch_index, wanted, rewrites, alone)
    if script.by_sh and not override and problems:  # what decides by one shell and another
        return rewritten(script, launch_index, wanted, alone=alone, override=True)
    if alone and document.kind == "shell" and len(together(script, launch_index)) > 1:
        if not problems:
            return rewrites, again
        if done := _in_own_call(script, launch_index, wanted):
            return done
        _refuse_other_calls(script, launch_index)
        rounds = [one.effective() for one in together(script, launch_index)]
        keys = [item.key for item in wanted if item.kind == "setting"]
        if any(len({repr(one[key].value) for one in rounds if key in one}) > 1 for key in keys):
            raise _each_its_own(script, launch_index)
        problems, again = differences(script, launch_index, wanted, rewrites)
    if problems:
        if len(together(script, launch_index)) > 1:
            raise _each_its_own(script, launch_index)
        if problems[0].sentence:
            raise EditRefused(problems[0].says)
        raise refused("The change cannot be made without side effects: {what}", what=problems[0].says)
    return rewrites, again if rewrites else script


def _in_own_call(
    script: Script, launch_index: int, wanted: Sequence[EditRequest]
) -> tuple[tuple[Rewrite, ...], Script] | None:
    """The changes among the words of one call of a function; None where they cannot stand there."""
    from advisor.script.shell_edit import ShellEditor

    if any(item.kind != "setting" or item.value is None for item in wanted):
        return None
    reading, changes = _as_it_stands(script.documents, script.positional), Changes(script.documents)
    editor = ShellEditor(reading, reading.launches[launch_index], changes)
    try:
        done = [editor.in_own_call(item, item.value) for item in wanted if item.value is not None]
        rewrites = changes.rewrites() if all(done) else ()
    except EditRefused:
        return None
    problems, again = differences(script, launch_index, wanted, rewrites, True)
    return (rewrites, again) if rewrites and not problems else None


def _refuse_other_calls(script: Script, launch_index: int) -> None:
    """Raise EditRefused where the words of a launch are those of other calls of a function, too."""
    try:
        reading = _as_it_stands(script.documents, script.positional)
    except Unterminated:
        return
    rounds = [reading.launches[one.index].command.calls for one in together(script, launch_index)]
    if len(set(rounds)) > 1:
        span = script.launches[launch_index].span
        raise refused(
            "Line {line} is the command of {count} calls: without --launch all of them get it.",
            line=span.line if span is not None else 0,
            count=len(rounds),
        )


def together(script: Script, launch_index: int) -> list[Launch]:
    """The launches that the same words start: rounds of a loop, calls of a function."""
    span = script.launches[launch_index].span
    return [one for number, one in enumerate(script.launches) if number == launch_index or one.span == span is not None]


def _each_its_own(script: Script, launch_index: int) -> EditRefused:
    rounds = together(script, launch_index)
    return refused(
        "Line {line} starts {count} launches, each with values of its own: change it by hand.",
        line=span.line if (span := rounds[0].span) is not None else 0,
        count=len(rounds),
    )


def as_list(item: EditRequest, before: Value | None = None) -> EditRequest:
    """A value that is told as a list, `[a, b]`, as the list that it is; what is set as a text stays one."""
    told = _LIST.fullmatch(item.value) if isinstance(item.value, str) and not isinstance(before, str) else None
    return item if told is None else replace(item, value=tuple(told[1].replace(",", " ").split()))


def _embedded(script: Script, wanted: Sequence[EditRequest], changes: Changes) -> None:
    """Python in a here-document, and nothing else that trains."""
    from advisor.script.shell import embedded_python

    found = None
    with suppress(Unterminated):
        found = embedded_python(_as_it_stands(script.documents, script.positional))
    if found is None:  # a part that somebody pasted
        _shell(script, 0, wanted, changes)
    else:
        _python(script, found, wanted, changes)


def _python(script: Script, document: Document, wanted: Sequence[EditRequest], changes: Changes) -> None:
    from advisor.script.python_edit import PythonEditor
    from advisor.script.python_file import read_python

    reading = read_python(document, script.environment, script.positional)
    editor = PythonEditor(reading, changes)
    tables = {os.path.basename(table.name): table.table for table in reading.files.values()}
    for item in wanted:
        _only_settings(item, document)
        own = script.launches[0].effective().get(item.key)
        place = own.span.path if own is not None and own.span is not None else ""
        loaded = next((n for n, one in enumerate(script.documents) if n and str(one.path) == place), None)
        if loaded is None:
            editor.setting(item)
            continue
        editor.refuse_changed(item)
        table = tables.get(script.documents[loaded].path.name)
        _keyed(script, loaded, [replace(item, key=f"{table}.{item.key}" if table else item.key)], changes)


def _keyed(script: Script, number: int, wanted: Sequence[EditRequest], changes: Changes, prefix: str = "") -> None:
    document = script.documents[number]
    made = TomlEditor if document.kind == "toml" else KeyedEditor
    editor = made(read_keyed(document), document, number, changes, prefix)
    for item in wanted:
        _only_settings(item, document)
    editor.settings(wanted)


def _only_settings(wanted: EditRequest, document: Document) -> None:
    if wanted.kind == "job":
        raise refused("{file} is no batch script.", file=document.path)
    if wanted.kind == "environment":
        raise refused("{file} starts no command: no place for the variable {key}.", wanted.key, file=document.path)


def _shell(
    script: Script, launch_index: int, wanted: Sequence[EditRequest], changes: Changes, override: bool = False
) -> None:
    from advisor.script.environment_edit import edit_environment
    from advisor.script.shell_edit import ShellEditor

    file = script.documents[0].path
    if found := _TEMPLATE.search(script.documents[0].data):
        raise refused(
            "{file} is a template (line {line}): set it where that is filled in.",
            file=file,
            line=script.documents[0].line_of(found.start()),
        )
    try:
        reading = _as_it_stands(script.documents, script.positional)
    except Unterminated as error:
        raise refused(_NO_LAUNCH, file=file) from error
    if not reading.trace.whole:
        raise refused("The script is too long to be followed to its end; what else a change would move is not known.")
    if launch_index >= len(reading.launches):
        raise refused(_NO_LAUNCH, file=file)
    for number, prefix in _config_files(script, launch_index):
        keys = [_in_file(item.key).removeprefix(prefix) for item in wanted if item.kind == "setting"]
        refuse_unclear(read_keyed(script.documents[number]), script.documents[number], keys)
    launch = reading.launches[launch_index]
    simple = launch.command.simple
    for cut in (one for one in reading.cuts if simple.start <= one.start <= simple.end):
        changes.replace(0, *cut.mended(reading.data[0]))  # what counts as part of the command is made so
    group = [n for other in mates(script, launch_index) for n in reading.launches[other].group]
    of_group = replace(launch, group=(*launch.group, *group))
    span = launch.launch.span
    paths = [str(one.path) for one in script.documents]
    homes = dict.fromkeys((0, paths.index(span.path) if span is not None and span.path in paths else 0))
    editors = [ShellEditor(reading, of_group, changes, override, wanted, number) for number in homes]
    editor = editors[0]
    for item in wanted:
        if item.kind == "job":
            edit_job_option(script.documents[0], item, changes)
        elif item.kind == "environment":
            edit_environment(editor, item)
        elif item.kind == "launcher":
            editor.launcher_option(item)
        elif not item.key.startswith(FOLLOWED) and not item.in_file:
            _where_it_can(editors, item, changes)
    own = [item for item in wanted if item.kind == "setting" and not item.key.startswith(FOLLOWED)]
    if added := [item for item in own if item.in_file]:
        _config_file(script, launch, added, changes)
    for prefix in FOLLOWED:
        inside = [item for item in wanted if item.kind == "setting" and item.key.startswith(prefix)]
        if inside:
            _followed_file(script, launch, inside, changes, prefix)
    for number in homes:
        changes.as_bash_reads_it(number)


def _beside(wanted: EditRequest) -> EditRequest | None:
    """What goes into the config file as the command takes it beside that; None where it does not."""
    if not wanted.in_file or wanted.kind != "setting":
        return wanted
    truth = not isinstance(wanted.value, str) or wanted.value.lower() in ("true", "false")
    if wanted.form in ("", "nothing") or (wanted.form == "dashes" and truth):
        return None
    kebab = f"--{wanted.key.lstrip('-').replace('_', '-')}"
    return replace(wanted, in_file=False, key=kebab if wanted.form == "dashes" else wanted.key)


def _where_it_can(editors: Sequence[ShellEditor], wanted: EditRequest, changes: Changes) -> None:
    """A setting in the first script that can have it: the one that is started, else the one whose command it is."""
    refusals = []
    for editor in editors:
        before = {doc: [*made] for doc, made in changes.edits.items()}, {**changes.values}
        try:
            return editor.setting(wanted)
        except EditRefused as refusal:
            refusals.append(refusal)
            changes.edits, changes.values = before
    raise refusals[0]


@lru_cache(maxsize=1)
def _as_it_stands(documents: tuple[Document, ...], positional: tuple[str, ...]) -> ShellReading:
    """The script before its edits: a plan tries each of its steps on the same one. Nobody writes into a reading."""
    from advisor.script.blocks import shell_in
    from advisor.script.shell import read_shell

    task = shell_in(documents[0].path, documents[0].data)
    return read_shell(in_memory(documents, {}), documents[0].path, positional, instead=task)


def _config_file(script: Script, launch: ShellLaunch, wanted: Sequence[EditRequest], changes: Changes) -> None:
    """Settings in the config file that has them; new ones in the one that wins, where several are merged."""
    from advisor.script.config_files import WRITTEN_BEFORE, may_be_written

    last = {one.span.path: number for number, one in enumerate(launch.launch.settings) if one.span is not None}
    places: dict[tuple[int, str], list[EditRequest]] = {}
    there = {key: one.span.path for key, one in launch.launch.effective().items() if one.span is not None}
    words = {os.path.basename((word or "").rpartition("=")[2]) for word in launch.launch.argv}
    for item in wanted:
        found = [place for place in _config_files(script, launch.launch.index) if item.key.startswith(place[1])]
        if not found:
            raise refused("The launch names no config file that was found.")
        own = [place for place in found if str(script.documents[place[0]].path) == there.get(item.key)]
        wins = max(found, key=lambda place: last.get(str(script.documents[place[0]].path), -1))
        named = [
            one for one in found if not words.isdisjoint({(file := script.documents[one[0]].path).name, file.stem})
        ]
        if wins in named and own and own[-1] not in named:
            own = []  # other configs may share the parent, and nothing starts a copy of it
        places.setdefault(own[-1] if own else wins, []).append(item)
    for (number, prefix), items in places.items():
        path = script.documents[number].path
        near = os.path.relpath(path, script.documents[0].path.parent)
        if any(may_be_written(launch.command, name, script.documents[0].path.parent) for name in (near, str(path))):
            raise refused(WRITTEN_BEFORE, file=path)
        _keyed(script, number, items, changes, prefix)


def _in_file(key: str) -> str:
    """A key as a config file spells what a command gives as an option."""
    return key[2:].replace("-", "_") if key.startswith("--") else key


def _config_files(script: Script, launch_index: int) -> Iterator[tuple[int, str]]:
    """The config files of a launch, and the prefix under which each one's keys are settings."""
    settings = [one for one in script.launches[launch_index].settings if one.origin == "file" and one.span is not None]
    for number, document in enumerate(script.documents[1:], 1):
        own = [_in_file(one.key) for one in settings if one.span is not None and one.span.path == str(document.path)]
        own = [key for key in own if not key.startswith(FOLLOWED)]
        if not own:
            continue
        keyed, head = read_keyed(document), f"{own[0].partition('.')[0]}."
        prefixes = (prefix for prefix in ("", head) if keyed.find(own[0].removeprefix(prefix)) is not None)
        if (prefix := next(prefixes, None)) is not None:
            yield number, prefix


def _followed_file(
    script: Script, launch: ShellLaunch, wanted: Sequence[EditRequest], changes: Changes, prefix: str
) -> None:
    """Keys of a file that the launch names: on disk, or written by the script itself."""
    from advisor.script.config_files import WRITTEN_BEFORE, edit_written, find_written, may_be_written, named_file

    name = named_file(launch.launch, prefix)
    if name is not None and may_be_written(launch.command, name, script.documents[0].path.parent):
        raise refused(WRITTEN_BEFORE, file=name)
    written = None if name is None else find_written(launch.command.files, name, launch.command.folder)
    if written is None:
        _keyed(script, _followed(script, launch.launch.index, prefix), wanted, changes, prefix)
        return
    for item in wanted:
        edit_written(written, item, prefix, changes)


def _followed(script: Script, launch_index: int, prefix: str) -> int:
    """The number of the followed file whose keys have this prefix."""
    for setting in script.launches[launch_index].settings:
        if setting.key.startswith(prefix) and setting.span is not None:
            for number, document in enumerate(script.documents):
                if str(document.path) == setting.span.path:
                    return number
    raise refused("The launch names no {kind} file that was found.", kind=prefix.rstrip(":"))
