"""Names a new file in the shell script that starts it: the one word that names the old one, and nothing else."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from advisor.bash.state import TracedCommand
from advisor.bash.text import ByteRange, NotSet, OneWord, Piece, ShellValue, cut, joined, sources
from advisor.bash.words import Exhausted, Unterminated
from advisor.bash.writing import is_safe, within
from advisor.hostile import clean_line
from advisor.language import clauses, listed, mark, say
from advisor.regex import regex
from advisor.script.blocks import shell_in
from advisor.script.document import Changes, EditRefused, EditRequest, Rewrite, ScriptError, encoded, refused
from advisor.script.edit import rewritten
from advisor.script.launch import Script
from advisor.script.literal import target
from advisor.script.proof import sound
from advisor.script.reader import in_memory, read_again, read_script
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


def name_in_configs(
    script: Script, launch_index: int, new_of: Mapping[Path, Path]
) -> tuple[dict[Path, bytes], dict[Path, Path]]:
    """Config files that name others which get a new name (DeepSpeed's JSON in the YAML of the trainer), with the new
    names in them, and the names that are still to be told. Raises EditRefused where that would move anything else."""
    now = script
    for old, new in new_of.items():
        own = [one for one in now.documents if one.path == old]
        there = {str(one.path) for one in now.documents if one.kind != "shell" and one.path != old}
        for one in now.launches[launch_index].effective().values():
            if one.span is not None and one.span.path in there and one.text.rpartition("/")[2] == old.name and own:
                now = replace(now, documents=(*now.documents, replace(own[0], path=new)))
                named = EditRequest(one.key, one.text.removesuffix(old.name) + new.name, in_file=True)
                now = rewritten(now, launch_index, [named])[1]
    before, still = {one.path: one.data for one in script.documents}, {one.path for one in now.documents}
    naming = {one.path: one.data for one in now.documents if before.get(one.path, one.data) != one.data}
    return naming, {old: new for old, new in new_of.items() if old in still}


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
    if not homes:
        raise refused("no command in it names the file")
    if len(homes) > 1:
        raise refused("{count} words of its command name the file", count=len(homes))
    command, number = naming[0]
    pieces = command.fields[number].pieces
    place, written = _place(pieces, old, new, reading)
    if others := reading.shared(place, launch, (number,)):
        raise refused("its name there also decides {others}", others=clean_line(listed(others), 200))
    changes = Changes(script.documents)
    ShellEditor(reading, launch, changes).write(place, written, EditRequest("", None, f"{old.name} -> {new.name}"))
    changes.as_bash_reads_it(0)
    (done,) = changes.rewrites()
    return Renamed(done, _proven(script, reading, done, old, new))


def _place(pieces: ShellValue, old: Path, new: Path, reading: ShellReading) -> tuple[ByteRange, bytes]:
    """Where a word has the name of a file, and the new name as it stands there. Raises EditRefused."""
    if os.path.realpath(new.parent) != os.path.realpath(old.parent):
        raise refused("the new file lies in another folder")
    found = target(cut(pieces, len(joined(pieces)) - len(encoded(old.name))), reading.data)
    if found is None or found.place.doc != 0:
        raise refused("its name is put together there")
    written = within(new.name, "plain" if found.quotes else found.place.context, own_word=True, alone=False)
    if written is None:
        raise refused("the new name cannot stand there")
    return found.place, encoded(written)


def name_itself(made: Rewrite, new: Path) -> tuple[bytes, tuple[str, ...]]:
    """The new bytes of a script that becomes another file, `new`, with that name where it starts itself by its own: the
    copy would start the old one. `$0` follows by itself, and stays the old name where words of a launch are made of it;
    what of them cannot stay is said. Raises EditRefused where a word that names the script cannot be changed."""
    old, own = made.document.path, made.new
    if made.document.kind != "shell" or old.suffix in (".yaml", ".yml", ".py") or new == old:
        return own, ()
    script = read_again(read_script(old), (made,))
    reading, changes = _read(script), Changes(script.documents)
    told = refused("{file} starts itself by its name, where a copy would start the old one: write $0.", file=old.name)
    try:
        for command, number in _naming(reading.trace.commands, old):
            pieces = command.fields[number].pieces
            if sources(cut(pieces, len(joined(pieces)) - len(encoded(old.name)))):  # not `$0`, `${BASH_SOURCE[0]}`
                place, written = _place(pieces, old, new, reading)
                changes.replace(0, place.start, place.end, written)
        for done in changes.rewrites():
            _proven(script, reading, done, old, new)
            own = done.new
    except EditRefused as refusal:
        raise told from refusal
    if re.search(
        _STARTS % re.escape(encoded(old.name)), own, re.MULTILINE
    ):  # where nothing is followed: in a trap, say
        raise told
    return _called_as_before(script, own, new)


_OWN_NAME = regex(rb"\$(?:(0|BASH_SOURCE)(?![\w\[])|\{(0|BASH_SOURCE(?:\[0\])?)([%#/^,][^{}\n]*)?\})")
_MADE_OF_IT = regex(
    rb"(?m)^(?![ \t]*(?:#|echo|printf)).*(?<!dirname )(?<!dirname \")(?<!-- )(?<!-- \")(?<!print )\$\{?(?:0\b|BASH_SO)"
)
_JOB_NAMED = regex(rb"(?m)--job-name|^#(?:SBATCH.* -J|PBS.* -N)")
_MADE_OF_JOB = regex(rb"(?m)(?<=^#SBATCH ).*%x\S*|\$\{?(?:SLURM_JOB_NAME|PBS_JOBNAME)\b")


def _called_as_before(script: Script, own: bytes, new: Path) -> tuple[bytes, tuple[str, ...]]:
    """The bytes of the copy with the script's old name where a launch of it has one made of `$0`, as far as that can be
    written, and a sentence on the words that are made of the new one all the same."""
    first, *others = script.documents
    unclear: list[str] = []

    def launched(data: bytes, path: Path) -> Counter[str]:
        """Words and variables of the launches of a script that has this name."""
        read = _read(replace(script, documents=(replace(first, data=data, path=path), *others)))
        commands = [one.command for one in read.launches]
        words = [(Piece(name + b"="), *value) for one in commands for name, value in one.environment.items()]
        for word in (word for one in commands for word in one.fields):
            vague = any(p.reason and not p.text and not isinstance(p.reason, (NotSet, OneWord)) for p in word.pieces)
            unclear.extend([read.raw(word.home)] if vague and word.home is not None else [])
            words.append(word.pieces)
        return Counter(joined(word).decode(errors="replace") for word in words)

    before, at, names = launched(first.data, first.path), 0, (encoded(new.name), encoded(first.path.name))
    left = launched(own, new) - before
    for _ in range(12 if all(map(is_safe, (new.name, first.path.name))) and not _SH.match(own) else 0):
        found = _OWN_NAME.search(own, at) if left else None
        if found is not None:
            kept = b"${%b/%%%b/%b}" % (found[1] or found[2], *names)
            kept = b'$(n=%b; echo "${n%b}")' % (kept, found[3]) if found[3] else kept
            tried, at = own[: found.start()] + kept + own[found.end() :], found.end()
            now = launched(tried, new)
            if len(now - before) < len(left) and len(before - now) <= len(left):
                own, left, at = tried, now - before, found.start() + len(kept)
    named = [] if _JOB_NAMED.search(own) else [one.decode(errors="replace") for one in _MADE_OF_JOB.findall(own)]
    words = [*left, *named] or ([*dict.fromkeys(unclear)] if _MADE_OF_IT.search(own) else [])
    told = {
        "new": clean_line(new.name),
        "file": clean_line(first.path.name),
        "words": listed(clean_line(one, 120) for one in words[:3]),
    }
    note = mark("{new} makes {words} of its own name: put it in the place of {file} where that must not be.")
    return own, (say(note, **told),) * bool(words)


_SH = regex(rb"#!.*\bsh\b")
_STARTS = (
    rb"^(?![ \t]*(?:#|echo|printf)|.*sage).{0,400}(?:\b(?:(?:ba|z)?sh|source|exec|sbatch|srun)|[;&|(][ \t]*\.)[ \t]"
    rb"(?:[^#;&|\n]{0,400}[^\w.-])?%b(?![\w.-])"
)


def _naming(commands: Sequence[TracedCommand], file: Path) -> list[tuple[TracedCommand, int]]:
    """The words of commands that name the file."""
    fields = ((command, number) for command in commands for number in range(len(command.fields)))
    return [(command, number) for command, number in fields if _names(command.fields[number].pieces, file)]


def _read(script: Script) -> ShellReading:
    try:
        first, files = script.documents[0], in_memory(script.documents, {})
        reading = read_shell(files, first.path, script.positional, instead=shell_in(first.path, first.data))
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


def _proven(script: Script, before: ShellReading, done: Rewrite, old: Path, new: Path) -> tuple[str, ...]:
    """Read the new bytes again: every command is what it was, but for the name."""
    own, *others = script.documents
    changed = replace(own, data=done.new), *others
    copies = [replace(one, path=new) for one in changed if os.path.realpath(one.path) == os.path.realpath(old)]
    after = _read(replace(script, documents=(*changed, *copies)))
    if _commands(before, new.name, old.name) != _commands(after, new.name, old.name):
        raise refused("the change cannot be made without side effects")
    checks = sound([done])
    if failed := [check.what for check in checks if check.held is False]:
        raise refused("the patch was not proven: {failed}", failed=clauses(failed))
    return (say("nothing else moved"), *(check.what for check in checks if check.held))


def _commands(reading: ShellReading, new: str, old: str) -> list[object]:
    """Every command that the script runs: its words, and its environment; with `old` where they hold the `new` name."""
    names = encoded(new), encoded(old)
    return [
        (
            [joined(word.pieces).replace(*names) for word in one.fields],
            sorted((name, joined(value).replace(*names)) for name, value in one.environment.items()),
        )
        for one in reading.trace.commands
    ]
