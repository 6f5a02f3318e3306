"""Changes settings in launch scripts by their own keys, byte-exact and without a diagnosis."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.arguments import add_knowledge, add_output
from advisor.commands.settings import recognised_in
from advisor.exits import Exit, Refusal
from advisor.hostile import clean_line
from advisor.language import listed, say, sentences
from advisor.regex import regex

_DEFAULT = regex(rb"\$\{(\w+):?[-=][\"']?\Z")
_ELEMENT = regex(r"\[(\d+)\]")

if TYPE_CHECKING:
    from advisor.knowledge.schema import Knowledge
    from advisor.run.dialect import Recognised
    from advisor.script.document import Document, DocumentKind, EditRequest, Setting, Span, Value
    from advisor.script.launch import Launch, Script


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", metavar="SCRIPT", help=say("launch script or config file"))
    parser.add_argument(
        "changes", nargs="+", metavar="KEY=VALUE", help=say("a setting by its own name, and its new value")
    )
    add_output(parser)
    parser.add_argument("--launch", type=int, metavar="N", help=say("change only this launch, counted from 1"))
    add_knowledge(parser)


def run(parsed: argparse.Namespace) -> int:
    """Write the script with these values; nothing is written where one of them cannot be set exactly."""
    from advisor.commands.requests import launch_index
    from advisor.commands.streams import emit_file, knowledge_of, tell, usable
    from advisor.saving import NewFiles, new_files, write_new
    from advisor.script.document import Rewrite
    from advisor.script.kept_changes import remember_changes
    from advisor.script.reader import of_trainer, read_script

    given = [_pair(text) for text in parsed.changes]
    index = launch_index(parsed.launch)
    script = usable(lambda: read_script(Path(parsed.script)))
    if index is not None and (read := usable(partial(of_trainer, script, index, given[0][0]))) is not script:
        script, index = read, 0
    knowledge = knowledge_of(parsed)
    recognised = recognised_in(script, knowledge)
    after = usable(lambda: rewritten(script, given, index, recognised, knowledge))
    changed = usable(lambda: _changed(script, after, parsed.output))
    document, notes = changed[0][0], list[str]()
    if parsed.output == "-":
        emit_file(changed[0][1])
    else:
        rewrites, started = [Rewrite(one, new, (), {}) for one, new in changed], script.documents[0].path
        if parsed.output:
            made = NewFiles({Path(parsed.output): rewrites[0]})
        else:
            own = range(len(script.launches)) if index is None else [index]
            made = usable(partial(new_files, started, script, index or 0, rewrites, launches=own))
        document = script.documents[0] if made.launch else document
        linked = usable(partial(write_new, made, parsed.force))
        chosen = script.launches if index is None else [script.launches[index]]
        texts = [(_texts(script, one.index), _texts(after, one.index)) for one in chosen]
        before = {k: old.get(k) for old, new in texts for k in {**old, **new} if old.get(k) != new.get(k)}
        remember_changes(before, [one.path for one in script.documents], made.files)
        written = sorted(made.files, key=lambda one: one == made.launch)
        notes = [*(say("written {file}", file=clean_line(str(copy))) for copy in written), *linked]
        notes += [made.by_hand] if made.by_hand and len(rewrites) > 1 else []
    if all(new == one.data for one, new in changed):
        notes += [say("nothing is other in it: the launch has it already")]
    chosen = script.launches if index is None else [script.launches[index]]
    assumed = [note for launch in chosen for note in launch.notes]  # which trainer, which files could not be read
    also = _also(script, after, given, index, document)
    for told in dict.fromkeys((*notes, *also, *assumed, *script.notes, *after.notes)):
        tell(told)
    return Exit.DONE


def _also(
    script: Script, after: Script, given: Sequence[tuple[str, str]], index: int | None, written: Document
) -> Iterator[str]:
    """What else comes with the change: settings that follow, other rounds, a command made whole, another file."""
    from advisor.run.own_config import values_of
    from advisor.script.edit import together
    from advisor.script.launch import one_training

    asked, moved, others = {_name(key) for key, _ in given}, set[int](), dict[str, str]()
    chosen = script.launches if index is None else [script.launches[index]]
    for launch, now in zip(script.launches, after.launches, strict=True):
        gone = say("unknown") if now.not_found else say("not set")
        old, new = (values_of(each, launch.index) for each in (script, after))
        changed = {key: new.get(key, gone) for key in {**old, **new} if old.get(key) != new.get(key)}
        moved |= {launch.index} if changed else set()
        others |= {k: text for k, text in changed.items() if asked.isdisjoint((_name(k), _name(k.partition(":")[2])))}
    if told := [f"{clean_line(key, 80)}={clean_line(text, 40)}" for key, text in others.items()]:
        yield say("what follows from it: {keys}", keys=listed(told))
    for launch in script.launches if index is not None else ():
        same, line = one_training(chosen[0], launch), launch.span.line if launch.span is not None else 0
        rounds = {one.index for one in together(script, launch.index)} & moved if launch is chosen[0] else ()
        if len(rounds) > 1:
            yield say("line {line} starts {count} launches that get it", line=line, count=len(rounds))
        if same:
            yield say("line {line} is the same training on another machine, and gets it, too", line=line)
        if same is None and launch.index not in moved:
            yield say("line {line} may be the same training on another machine, and is as it was: see to it", line=line)
    for launch in chosen:
        now = after.launches[launch.index]
        there = now.effective()
        for own, one in [(own, one) for own, one in launch.effective().items() if _name(own) in asked and own in there]:
            stood, stands = one.span, there[own].span
            data = next((each.data for each in after.documents if stands and str(each.path) == stands.path), b"")
            if default := _DEFAULT.search(data[: stands.start] if stands else b""):
                names = {"key": clean_line(own), "name": default[1].decode()}
                yield say("{key} is the default of ${name}: a value given to the script wins over it", **names)
            if not one.resolved and one.reason and there[own].resolved:
                yield say("{key} no longer follows what it was given ({why}).", key=clean_line(own), why=one.reason)
            if one.resolved and stood and stands and _place_of(stood, launch) != _place_of(stands, now):
                names = {"key": clean_line(own), "line": stood.line, "others": listed(map(clean_line, one.shared_with))}
                if one.shared_with:
                    yield say("{key} is added where it wins: what stands in line {line} also decides {others}", **names)
                elif one.origin == "command" and launch.argv and stood.path == stands.path:
                    yield say("{key} is added where it wins: words behind line {line} may hold it, too", **names)
    still = {cut for launch in after.launches for cut in launch.cuts}
    mended = [cut for launch in chosen for cut in launch.cuts if cut not in still.union(launch.lost)]
    if mended and written is script.documents[0]:
        yield from dict.fromkeys(mended)
        yield say("the change makes the command whole: what stands below comes into force")
    if written is not script.documents[0]:
        names = {"file": clean_line(str(written.path)), "script": clean_line(str(script.documents[0].path))}
        yield say("{script} reads {file}: put the new file in its place; all that reads {file} then gets it", **names)


def _place_of(span: Span, launch: Launch) -> tuple[str, int]:
    """Its file, and how many settings stand before it there: whatever other edits did to the bytes between."""
    before = (one.span for one in launch.settings if one.span is not None)
    return Path(span.path).name, sum(one.path == span.path and one.start < span.start for one in before)


def _texts(script: Script, index: int) -> dict[str, str]:
    """Key ("$NAME" of a variable) → text."""
    from advisor.run.own_config import values_of

    return {**values_of(script, index), **{f"${k}": text for k, text in script.launches[index].environment.items()}}


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise Refusal(say("{given}: write it as KEY=VALUE", given=clean_line(text, 80)))
    return key.strip(), value


def rewritten(
    script: Script,
    given: Sequence[tuple[str, str]],
    index: int | None,
    recognised: Sequence[Recognised],
    knowledge: Knowledge,
) -> Script:
    """The script as it is read with the changes, in the launch asked for or in all that have the keys.

    `recognised`: the framework of each launch, which knows what the command takes. One launch after the other; every
    result is read again before the next. Raises Refusal, EditRefused.
    """
    from msgspec.structs import replace

    from advisor.run.arrival import arriving, in_its_file, refuse_idle, refuse_unread
    from advisor.run.program_options import as_its_program_spells, as_switch

    name = clean_line(str(script.documents[0].path))
    if not script.launches:
        why = say("{file}: no training command was found in it", file=name)
        raise Refusal(sentences([f"{why}.", *script.notes]) if script.notes else why)
    if index is not None and index >= len(script.launches):
        raise Refusal(
            say("--launch {number}: {file} has {count}", number=index + 1, file=name, count=len(script.launches))
        )
    chosen, everywhere = range(len(script.launches)) if index is None else [index], index is None
    if why := next((script.launches[each].never_run for each in chosen if script.launches[each].never_run), ""):
        raise Refusal(f"{why} {say('Mend that first: no change here reaches a run.')}")
    now, notes = script, list[str]()
    for each, pairs in _by_launch(script, given, chosen).items():
        wanted = []
        for given_key, value in [(part, value) for key, value in pairs for part in _parts(now.launches[each], key)]:
            key = (
                given_key
                if _has(now.launches[each], given_key)
                else as_its_program_spells(now, each, given_key, recognised[each].framework)
            )
            switched, all_done = as_switch(now, each, (given_key, key), value, recognised[each].framework)
            wanted += switched
            if all_done:
                continue
            one, found = _wanted(now.launches[each], key, value, recognised[each], everywhere=everywhere), None
            if one.kind == "setting" and (found := _found(now.launches[each], key)) is None:
                refuse_unread(now, each, key, recognised[each], knowledge.config_files)
            wanted.append(in_its_file(now, each, one, found, recognised[each].framework))
        new = [one for one in wanted if not _is_so(now.launches[each], one)]
        now = replace(now, documents=(*now.documents, *_named(now, each, new)))
        before, files = now, knowledge.config_files
        _, asked, now = arriving(each, recognised[each], files, before, new, alone=not everywhere)
        notes += [one.note for one in now.launches[each].not_found if one not in script.launches[each].not_found]
        keys = [one.key for one in asked if one.kind == "setting"]
        notes += refuse_idle(before, now, each, keys, recognised[each], knowledge.models)
    return replace(now, notes=(*now.notes, *notes))


def _by_launch(
    script: Script, given: Sequence[tuple[str, str]], chosen: Sequence[int]
) -> dict[int, list[tuple[str, str]]]:
    """Launch index → what to set there: where the key is known, else in the first launch chosen."""
    found: dict[int, list[tuple[str, str]]] = {}
    for key, value in given:
        having = [index for index in chosen if _has(script.launches[index], key)]
        for index in having or chosen[:1]:
            found.setdefault(index, []).append((key, value))
    return found


def _changed(before: Script, after: Script, output: str | None) -> list[tuple[Document, bytes]]:
    """The files whose bytes differ, the script first. Raises Refusal where one file is asked for and several are."""
    new = {document.path: document.data for document in after.documents}
    found = [(document, new.get(document.path, document.data)) for document in before.documents]
    changed = [(document, data) for document, data in found if data != document.data]
    if len(changed) > 1 and output:
        names = listed(clean_line(str(document.path), 200) for document, _ in changed)
        raise Refusal(
            say("these settings are decided in several files ({files}); only one can be written", files=names)
        )
    return changed or found[:1]


def _has(launch: Launch, key: str) -> bool:
    return _found(launch, key) is not None or key in launch.environment


def _is_so(launch: Launch, wanted: EditRequest) -> bool:
    """Already in force: two launches of one loop share their literals, so the first edit may have done both."""
    if wanted.kind != "setting":
        given = launch.environment if wanted.kind == "environment" else launch.launcher
        return given.get(wanted.key) == wanted.value
    setting = _found(launch, wanted.key)
    return setting is not None and setting.resolved and setting.value == wanted.value


def _found(launch: Launch, key: str) -> Setting | None:
    """The setting in force that goes by this key."""
    there, heads = launch.effective(), ("accelerate:", "deepspeed:", "fsdp:") if "." in key else ("accelerate:",)
    found = [one for own, one in there.items() if _name(own) == _name(key)]
    found = found or [there[head + key] for head in heads if head + key in there]  # of a file that the launch names
    return found[-1] if found else None


def _name(key: str) -> str:
    """A key in one spelling: without the dashes of an option or within, and `a[0].b` as `a.0.b`."""
    return _ELEMENT.sub(r".\1", key.lstrip("-").replace("-", "_"))


def _named(script: Script, index: int, wanted: Sequence[EditRequest]) -> list[Document]:
    """The files that new values name, which the launch would follow."""
    from advisor.script.files import Files

    files = Files()
    for name in [str(one.value) for one in wanted if str(one.value).endswith((".json", ".yaml", ".yml"))]:
        kind: DocumentKind = "json" if name.endswith("n") else "yaml"
        files.find(name, script.documents[0].path.parent, kind, script.launches[index].folder)
    return [one for one in files.documents if one.path not in {each.path for each in script.documents}]


def _parts(launch: Launch, key: str) -> list[str]:
    """The keys that are meant, where none is in force under the key itself: those of several calls of a Python file
    that take what one literal says, else that of the one section which a word of the command names."""
    found = {own: one.span for own, one in launch.effective().items() if own.endswith(f".{key}")}
    if _has(launch, key):
        return [key]
    if not found:  # a new key of a table that a followed file has, and nothing else
        head = key.partition(".")[0] + "." * ("." in key)
        having = {own.rpartition(":")[0] for own in launch.effective() if own.rpartition(":")[2].startswith(head)}
        return [f"{having.pop()}:{key}"] if head.endswith(".") and len(having) == 1 and having != {""} else [key]
    one = next(iter(found.values()))
    if one is not None and one.path.endswith(".py"):
        return list(found) if len(found) > 1 and {*found.values()} == {one} else [key]
    words = {*launch.loose, *(each.text for each in launch.settings if each.origin == "command")}
    named = [own for own in found if own.removesuffix(f".{key}") in words]
    return named if len(named) == 1 else [key]


def _wanted(launch: Launch, key: str, value: str, recognised: Recognised, *, everywhere: bool) -> EditRequest:
    """What to write: under the launch's own spelling of the key where it has it."""
    from advisor.run.dialect import beside_file
    from advisor.script.document import EditRequest

    setting, (in_file, form) = _found(launch, key), beside_file(recognised, launch, key)
    given_there = setting is not None and setting.origin == "command"
    in_file = in_file and not given_there
    if setting is not None:
        return EditRequest(setting.key, _as_before(setting, value), form=form, in_file=in_file)
    named_like_a_variable = key in launch.environment or (key.isupper() and "." not in key and not key.startswith("-"))
    if named_like_a_variable:
        return EditRequest(key, value, kind="environment", everywhere=everywhere)
    before = {key, f"--{key.lstrip('-')}", f"--{key.lstrip('-').replace('_', '-')}"} & launch.launcher.keys()
    if before:
        return EditRequest(before.pop(), value, kind="launcher")
    return EditRequest(key, value, form=form, in_file=in_file)


def _as_before(setting: Setting, value: str) -> Value | None:
    """Several words stay several words; a bare flag stays bare, and false takes it away."""
    if isinstance(setting.value, tuple):
        if not setting.value and value.lower() in ("true", "false"):
            return () if value.lower() == "true" else None
        if len(setting.value) > 1 and not value.startswith("["):
            return tuple(value.split())
    return value
