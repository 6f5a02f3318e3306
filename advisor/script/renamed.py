"""Names a new file in the shell script that starts it: the one word that names the old one, and nothing else."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from advisor.bash.state import TracedCommand
from advisor.bash.text import ShellValue, cut, joined, sources
from advisor.bash.words import Exhausted, Unterminated
from advisor.bash.writing import within
from advisor.hostile import clean_line
from advisor.language import clauses, listed, say
from advisor.regex import regex
from advisor.script.document import Changes, Document, EditRefused, EditRequest, Rewrite, ScriptError, encoded, refused
from advisor.script.launch import Script
from advisor.script.literal import target
from advisor.script.proof import sound
from advisor.script.reader import in_memory, read_again
from advisor.script.shell import ShellReading, read_shell
from advisor.script.shell_edit import ShellEditor


class Renamed(Struct, frozen=True):
    """The launch script with the new name in it, and what was proven of it."""

    rewrite: Rewrite
    proof: tuple[str, ...]


def name_all(script: Script, launches: Sequence[int], new_of: Mapping[Path, Path]) -> Renamed:
    """The launch script with the names of several new files, one after the other; raises as `name_instead` does."""
    made, names = None, {"script": clean_line(script.documents[0].path.name)}
    try:
        for old, new in new_of.items():
            names |= {"file": clean_line(old.name), "new": clean_line(new.name)}
            made = name_instead(script, launches, old, new)
            script = read_again(script, (made.rewrite,))
    except (EditRefused, ScriptError) as refusal:
        told = say("{script} still reads {file}: name {new} there ({why})", why=str(refusal), **names)
        raise EditRefused(told) from refusal
    if made is None:
        raise refused("no command in it names the file")
    return made


def name_instead(script: Script, launches: Sequence[int], old: Path, new: Path) -> Renamed:
    """The launch script with `new` where these launches name `old`, or the one command that runs a script of that name.
    Writes nothing.

    Raises EditRefused, in one sentence, where not exactly one word names it, where that word decides something else
    too, and where the script, read again, does anything else than before.
    """
    reading = _read(script)
    own = [reading.launches[index] for index in launches if index < len(reading.launches)]
    if script.documents[0].kind != "shell" or not own:
        raise refused("no command in it names the file")
    group = [number for one in own for number in one.group]
    scripts = [one for one in reading.trace.commands if one.found is not None and one.found.kind == "file"]
    naming = _naming([one.command for one in own], old)
    if not naming and (naming := _naming(scripts, old)):
        group = [command.number for command, _ in naming]
    launch = replace(own[0], group=tuple(group))
    homes = {command.fields[number].home for command, number in naming}
    if len(homes) != 1:
        raise refused("{count} words of its command name the file", count=len(homes))
    command, number = naming[0]
    pieces = command.fields[number].pieces
    if os.path.realpath(new.parent) != os.path.realpath(old.parent):
        raise refused("the new file lies in another folder")
    found = target(cut(pieces, len(joined(pieces)) - len(encoded(old.name))), reading.data)
    if found is None or found.place.doc != 0:
        raise refused("its name is put together there")
    if others := reading.shared(found.place, launch, (number,)):
        raise refused("its name there also decides {others}", others=clean_line(listed(others), 200))
    written = within(new.name, "plain" if found.quotes else found.place.context, own_word=True, alone=False)
    if written is None:
        raise refused("the new name cannot stand there")
    changes = Changes(script.documents)
    ShellEditor(reading, launch, changes).write(
        found.place, encoded(written), EditRequest("", None, f"{old.name} -> {new.name}")
    )
    changes.as_bash_reads_it(0)
    (done,) = changes.rewrites()
    return Renamed(done, _proven(script, reading, launch.group, number, done, (old, new)))


def name_itself(script: Script, new: Path) -> bytes:
    """The bytes of a shell script that becomes another file, `new`, with that name where it starts itself by its own:
    the copy would start the old one. `$0` follows by itself. Raises EditRefused where such a word cannot be changed."""
    own = script.documents[0]
    old, data = own.path, own.data
    if own.kind != "shell" or old.suffix in (".yaml", ".yml") or new == old:
        return data
    try:
        reading, changes = _read(script), Changes(script.documents)
    except EditRefused:
        if encoded(old.name) in data:
            raise
        return data
    named = [field for one in reading.trace.commands for field in one.fields if _names(field.pieces, old)]
    for pieces in (field.pieces for field in named):
        word = cut(pieces, len(joined(pieces)) - len(encoded(old.name)))
        found, stands = target(word, reading.data), [place for place in sources(word) if place is not None]
        if not stands:
            continue  # `$0`, `${BASH_SOURCE[0]}`
        written = found and within(new.name, "plain" if found.quotes else found.place.context, own_word=True, alone=False)
        if found is None or found.place.doc or written is None or new.parent.resolve() != old.parent.resolve():
            raise _starts_itself(own, stands[-1].start)
        changes.replace(0, found.place.start, found.place.end, encoded(written))
    done = changes.rewrites()
    data = done[0].new if done else data
    again = replace(own, data=data)
    for found_at in re.finditer(rb"(?<![\w.-])" + re.escape(encoded(old.name)) + rb"(?![\w.-])", data):
        line = data[data.rfind(b"\n", 0, found_at.start()) + 1 : found_at.start()]
        if _RUNS.search(line) and not _TELLS.match(line):
            raise _starts_itself(again, found_at.start())
    if done:
        copies = (again, *script.documents[1:], replace(again, path=new))
        if _unnamed(_read(replace(script, documents=copies)), new, old) != _unnamed(reading, new, old):
            raise _starts_itself(own, done[0].edits[0].start)
    return data


_RUNS = regex(rb"(?:\b(?:bash|sh|zsh|source|exec|nohup|setsid|sbatch|qsub|srun|no-python)|(?:\A|[;&|(])[ \t]*\.)[ \t][^#;&|]*\Z")
_TELLS = regex(rb"[ \t]*(?:#|echo\b|printf\b)|.*\b[Uu](?:sage|SAGE)\b")


def _starts_itself(script: Document, at: int) -> EditRefused:
    told = {"line": script.line_of(at), "file": clean_line(script.path.name)}
    return refused("Line {line} starts {file} by its name, which a copy would start instead of itself: write $0.", **told)


def _unnamed(reading: ShellReading, new: Path, old: Path) -> str:
    """Every command, as if the new file still had the old name."""
    return repr(_commands(reading)).replace(new.name, old.name)


def _naming(commands: Sequence[TracedCommand], file: Path) -> list[tuple[TracedCommand, int]]:
    """The words of commands that name the file."""
    fields = ((command, number) for command in commands for number in range(len(command.fields)))
    return [(command, number) for command, number in fields if _names(command.fields[number].pieces, file)]


def _read(script: Script) -> ShellReading:
    try:
        reading = read_shell(in_memory(script.documents, {}), script.documents[0].path, script.positional)
    except (ScriptError, Unterminated, Exhausted) as error:
        raise refused("it cannot be read to its end") from error
    if not reading.trace.whole:
        raise refused("it cannot be read to its end")
    return reading


def _names(pieces: ShellValue, file: Path) -> bool:
    """Whether a word names the file: "train.py", "./train.py", "--config=conf/a.yaml", "$CODE/train.py"."""
    word = joined(pieces).decode("utf-8", "surrogateescape")
    own, guessed = Path(os.path.abspath(file)).parts, any(piece.reason for piece in pieces)
    for named in {word, word.partition("=")[2]} - {""}:
        parts = [part for part in Path(os.path.normpath(named)).parts if part != ".."]
        if parts[-1:] == [file.name] and (guessed or list(own[-len(parts) :]) == parts):
            return True
    return False


def _proven(
    script: Script, before: ShellReading, group: Sequence[int], word: int, done: Rewrite, files: tuple[Path, Path]
) -> tuple[str, ...]:
    """Read the new bytes again: every command is what it was, but for the one word."""
    old, new = files
    own, *others = script.documents
    copies = [replace(one, path=new) for one in others if os.path.realpath(one.path) == os.path.realpath(old)]
    after = _read(replace(script, documents=(replace(own, data=done.new), *others, *copies)))
    expected, found = _commands(before), _commands(after, new.name, old.name)
    for number in group:
        fields, environment = expected[number]
        changed = fields[word].removesuffix(encoded(old.name)) + encoded(new.name)
        expected[number] = ((*fields[:word], changed, *fields[word + 1 :]), environment)
    if expected != found:
        raise refused("the change cannot be made without side effects")
    checks = sound([done])
    if failed := [check.what for check in checks if check.held is False]:
        raise refused("the patch was not proven: {failed}", failed=clauses(failed))
    return (say("nothing else moved"), *(check.what for check in checks if check.held))


_Command = tuple[tuple[bytes, ...], tuple[tuple[bytes, bytes], ...]]


def _commands(reading: ShellReading, new: str = "", old: str = "") -> list[_Command]:
    """Every command that the script runs: its words, and its environment, but the variables that hold a command's own
    text; what runs a text (`bash -c`), with its old name instead of the `new` one that the text's own command has."""
    commands = reading.trace.commands
    spoken, renamed = {name for one in commands for name in one.spoken}, (encoded(new), encoded(old))
    out: list[_Command] = []
    for one in commands:
        words = tuple(joined(word.pieces) for word in one.fields)
        if new and one.found is not None and one.found.kind == "text":
            words = tuple(word.replace(*renamed) for word in words)
        environment = ((name, joined(value)) for name, value in one.environment.items() if name not in spoken)
        out.append((words, tuple(sorted(environment))))
    return out
