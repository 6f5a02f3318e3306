"""Reads a launch file of any kind, reads it again with new bytes, and the Python file that a launch runs."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from advisor.bash.state import LauncherMatch
from advisor.bash.words import Unterminated
from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.regex import regex
from advisor.script.config_files import Followed, follow_linked, read_config
from advisor.script.document import Document, DocumentKind, Rewrite, ScriptError, effective
from advisor.script.files import Files, load
from advisor.script.interpolation import interpolated
from advisor.script.launch import Launch, Script
from advisor.script.launcher import find_launcher
from advisor.script.python_calls import ADAPTER, LOADER, TRAINER
from advisor.script.shell import read_shell

if TYPE_CHECKING:
    from advisor.script.python_commands import FileTable

_SUFFIXES: dict[str, DocumentKind] = {
    ".sh": "shell", ".bash": "shell", ".slurm": "shell", ".sbatch": "shell",
    ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml", ".py": "python",
}  # fmt: skip
_IMPORTS = regex(
    rb"(?:[ \t]*(?:#(?!!)[^\n]*|%%?(?:writefile|time|env|capture|pip|matplotlib|load_ext)\b[^\n]*|!pip3? [^\n]*)?"
    rb"\r?\n)*"
    rb"(?:from [A-Za-z_][\w.]* import [\w(*]|import [A-Za-z_][\w.]*(?: as \w+)?[ \t]*(?:,|#|\r?\n))"
)
"""Comments, blank lines and magics of a notebook, then an import."""
_SHEBANG = regex(rb"#!\s*\S*?(?:/env\s+(?:-S\s+)?)?(\w+)[\d.]*\s")


_SHELL = regex(rb"#!\s*\S*?(?:/env\s+(?:-S\s+)?)?(?:ba|z|da)?sh\s")
_FILLED = regex(rb"\bpython[\d.]*(?: -)? <<-?[ \t]*\w")
"""Python in a here-document whose end mark stands in no quotes."""
_KEYED = regex(rb"(?:[\w.-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*:(?:\s|\Z)|-\s|---|\.\.\.|#|[ \t]|\r?\n?\Z")
"""What a line of a YAML mapping begins with."""
_NAMED = regex(rb"^[\w.-]*_[\w.-]*[ \t]*:(?:\s|\Z)", re.MULTILINE)
"""A setting by its name; prose has none ("Platform: Linux")."""

_TABLE = regex(rb"[ \t]*\[\[?[ \t]*[\w.\"'-]+[ \t]*\]\]?[ \t]*(?:#|\Z)")
_PAIR = regex(rb"[ \t]*(?:[\w.-]+|\"[^\"\n]*\")[ \t]+=[ \t]*\S")
_OF_TOML = regex(_TABLE.pattern + rb"|" + _PAIR.pattern + rb"|[ \t]*(?:#|[\]\[\"'\d{},]|true\b|false\b)")
"""A line of a TOML file: a table, a key with blanks before its sign, a comment, or the rest of a long value."""


def read_script(
    path: Path, *, positional: tuple[str, ...] = (), environment: Mapping[str, str] | None = None
) -> Script:
    """Read a launch file and everything it is followed into. `positional` are arguments that it is given (a Python
    file: as `--option=value`), `environment` what a Python file is run with. Raises ScriptError, one sentence with file
    and line, where the file is missing, unreadable, empty, binary, too large, or not well-formed."""
    return read_documents(Files(), Path(path), positional, environment)


def read_documents(
    files: Files,
    path: Path,
    positional: tuple[str, ...],
    environment: Mapping[str, str] | None = None,
    by_dash: bool = False,
) -> Script:
    """`read_script` over files that may already be in memory; `by_dash`: `sh` is taken to be dash."""
    kind = _SUFFIXES.get(path.suffix.lower())
    document = files.known(path) if files.given is not None else load(path, kind or "shell")
    if kind in (None, "python", "shell"):
        kind = kind_of(document) if kind is None or _SHELL.match(document.data[:200]) else kind
        kind = "yaml" if kind == "shell" and _is_mapping(document.data) else kind
        kind = "python" if kind == "shell" and _is_python(document.data) else kind
        kind = "toml" if kind == "shell" and _is_toml(document.data) else kind
    if kind == "shell":
        return _shell(files, path, positional, by_dash)
    if kind in ("yaml", "python") and (task := _task(files, path, positional, by_dash)) is not None:
        return task
    number = files.add(path, kind)
    try:
        launch = config_launch(files, number, environment, positional)
    except ScriptError as error:
        from advisor.script.fragment import read_pasted

        pasted = read_pasted(files.documents[number], str(error))
        if pasted is None:
            raise
        launch = pasted
    return Script(tuple(files.documents), (launch,), (), positional, environment or {})


def _task(files: Files, path: Path, positional: tuple[str, ...], by_dash: bool) -> Script | None:
    """What the shell text of a YAML file, or a Python file, starts (see script/blocks.py); None: no training."""
    from advisor.bash.words import Unterminated
    from advisor.script.blocks import shell_in
    from advisor.script.shell import other_commands, read_shell

    document = load(path, "shell") if files.given is None else files.known(path)
    named = path if path.suffix == ".py" else path.with_suffix(".yaml")
    text, own = shell_in(named, document.data), Files(given=files.given)
    try:
        reading = read_shell(own, path, positional, instead=text, by_dash=by_dash) if text is not None else None
    except Unterminated:
        return None
    if reading is None or not any(
        one.found.trains and one.found.program != str(path.absolute()) for one in reading.launches
    ):
        return None
    notes = tuple(map(clean_line, dict.fromkeys((*reading.trace.notes, *own.notes))))
    launches = tuple(one.launch for one in reading.launches)
    return Script(tuple(own.documents), launches, notes, positional, others=other_commands(reading))


def kind_of(document: Document) -> DocumentKind:
    """The kind of a file whose name does not tell: by its shebang, or by its first character."""
    shebang = _SHEBANG.match(document.data[:200])
    if shebang and shebang.group(1).startswith(b"python"):
        return "python"
    return "json" if document.data.lstrip()[:1] == b"{" and document.path.suffix else "shell"


def _is_mapping(data: bytes) -> bool:
    """Whether a text whose name says script is the text of a YAML file."""
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True)
    return len(_NAMED.findall(data)) > 1 and all(map(_KEYED.match, lines))


def _is_toml(data: bytes) -> bool:
    """Whether a text whose name says script is the text of a TOML file: tables, and keys that bash would run."""
    lines = [line for line in data.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    headed = any(map(_TABLE.match, lines))
    return headed and any(map(_PAIR.match, lines)) and all(map(_OF_TOML.match, lines))


def _is_python(data: bytes) -> bool:
    """Whether a text whose name says script, or nothing, begins as a Python file does: with what it imports."""
    return _IMPORTS.match(data.removeprefix(b"\xef\xbb\xbf")) is not None


def _shell(files: Files, path: Path, positional: tuple[str, ...], by_dash: bool) -> Script:
    from advisor.bash.parses import stops_at
    from advisor.bash.words import Unterminated
    from advisor.script.fragment import read_fragment, read_pasted, unread
    from advisor.script.not_found import hinted_launch, left_variables
    from advisor.script.pasted import engine_arguments
    from advisor.script.shell import embedded_python, other_commands, read_shell, shared_cards

    try:
        reading = read_shell(files, path, positional, by_dash=by_dash)
    except Unterminated as error:
        line = files.documents[0].line_of(error.at)
        where = {"file": clean_line(str(path)), "line": line}
        problem = say("{file}, line {line}: {what} opens here and never closes.", **where, what=say(error.what))
        data, at = files.documents[0].data, error.at
        apostrophe = data[at - 1 : at].isalpha() and data[at + 1 : at + 2].isalpha()  # prose: "it doesn't work"
        cut_off = data[at : at + 1] in (b"(", b"`") or b"\n" not in data[at:].strip()  # in an array, code, a line
        pasted = read_fragment(files, path, positional) if apostrophe or cut_off else None
        pasted = pasted or read_pasted(files.documents[0])
        if pasted is None and data[at : at + 1] == b"(":
            return unread(path, problem)
        if pasted is None:
            raise ScriptError(problem) from error
        return Script(tuple(files.documents), (pasted,), () if apostrophe else (problem,), positional)
    notes = [clean_line(note) for note in dict.fromkeys((*reading.trace.notes, *files.notes))]
    for document in [each for each in files.documents if each.kind == "shell"]:
        notes += _odd_bytes(
            document.data, "" if document is files.documents[0] else clean_line(str(document.path.name))
        )
    hinted = None
    launches = tuple(
        replace(item.launch, cuts=(*item.launch.cuts, *shared_cards(reading, item))) for item in reading.launches
    )
    for document in [each for each in files.documents if each.kind == "shell" and launches and files.given is None]:
        if (stop := stops_at(document.data)) is not None:
            where = {"file": clean_line(str(document.path)), "line": stop[0], "at": stop[1]}
            told = mark("bash cannot parse {file} (line {at}: {problem}): from line {line} on it runs nothing.")
            note = say(told, problem=clean_line(stop[2], 120), **where)
            launches = tuple(_never_run(each, str(document.path), stop[0], note) for each in launches)
            notes += [] if any(note in each.notes for each in launches) else [note]
    engine = engine_arguments(files.documents[0].data)
    if len(launches) == 1:
        launches = (replace(launches[0], settings=(*launches[0].settings, *engine)),)
    if not launches and (embedded := embedded_python(reading)) is not None:
        with suppress(ScriptError):
            launches = (_embedded(embedded),)
    elif not launches and (found := _FILLED.search(files.documents[0].data)):
        line = files.documents[0].line_of(found.start())
        notes.append(
            say("The shell fills in the Python of line {line}, which is not read: quote its end mark.", line=line)
        )
    if not by_dash and not launches and reading.trace.whole:
        hinted = hinted_launch(reading, path.parent)
        hinted = replace(hinted, settings=(*hinted.settings, *engine)) if hinted is not None else None
        pasted = read_fragment(files, path, positional)
        pasted = pasted or (read_pasted(files.documents[0]) if hinted is None or not hinted.settings else None)
        launches = (pasted,) if pasted is not None else ()
        if hinted is None and not launches and not any(one.found for one in reading.trace.commands):
            hinted = left_variables(files, path, positional)
        hinted = hinted or (None if launches else _told(files.documents[0]))
    return Script(
        tuple(files.documents),
        launches,
        tuple(notes),
        positional,
        others=other_commands(reading),
        hinted=None if launches else hinted,
        by_sh=reading.trace.by_sh,
        ended=clean_line(reading.trace.ended, 400),
    )


def _never_run(launch: Launch, path: str, line: int, note: str) -> Launch:
    """The launch, with the note where it stands behind the line from which on bash runs nothing."""
    behind = launch.span is not None and launch.span.path == path and launch.span.line >= line
    return replace(launch, never_run=note, notes=(note, *launch.notes)) if behind else launch


def _embedded(document: Document) -> Launch:
    from advisor.script.python_file import python_launch, read_python

    return replace(python_launch(read_python(document)), launcher_unread=("",))


_RETURNS = mark(
    "The file has Windows line endings; bash on Linux takes the carriage returns for text. A change takes them out."
)
_OF_OTHER = mark("{file} has Windows line endings; bash on Linux takes the carriage returns for text.")
_MARK = mark(
    "The file begins with a byte order mark; bash takes it for a part of the first word. A change takes it out."
)
_MARK_OF_OTHER = mark("{file} begins with a byte order mark; bash takes it for a part of the first word.")


def _odd_bytes(data: bytes, other: str) -> Iterator[str]:
    """What bash makes of the bytes that editors of other systems put into a script; `other`: its name, if it is not the
    script itself. A change of the script takes them out."""
    if b"\r\n" in data:
        yield say(_OF_OTHER, file=other) if other else say(_RETURNS)
        if b"\\\r\n" in data and not other:
            yield say("A line that ends in a backslash does not go on there: what follows is no part of its command.")
    if data.startswith(b"\xef\xbb\xbf"):
        yield say(_MARK_OF_OTHER, file=other) if other else say(_MARK)


def config_launch(
    files: Files, number: int, environment: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
) -> Launch:
    """A YAML, JSON, TOML or Python file as one launch. Raises ScriptError where it is not well-formed."""
    document = files.documents[number]
    if document.kind == "python":
        from advisor.script.python_file import python_launch, read_python

        reading = read_python(document, environment, arguments)
        launch = _with_files(python_launch(reading), reading.files.values(), files, document)
        out = Followed([*launch.settings], launch.files, launch.notes)
    else:
        launch, read = Launch(0, "", (), {}, ()), read_config(files, number)
        out = Followed(read.settings, tuple(read.files), tuple(read.notes))
    follow_linked(files, document.path.parent, "", out)
    found = {"files": out.files, "notes": out.notes, "not_found": out.not_found}
    if document.kind == "python":
        return replace(
            launch, settings=tuple(out.settings), launcher_unread=("",), **found
        )  # nobody sees what starts it
    return replace(launch, settings=tuple(interpolated(effective(out.settings), environment or {})), **found)


def of_trainer(script: Script, index: int, key: str) -> Script:
    """A Python file that makes several trainers, read as the launch of one of them; of the last that `key` is told to
    where the first is asked for and has it not."""
    from advisor.script.python_file import read_python

    document = script.documents[0]
    trained = read_python(document).trained if document.kind == "python" else ()
    if len(trained) < 2 or index >= len(trained):
        return script
    files = in_memory([replace(document, trainer=index), *script.documents[1:]], {})
    read = read_documents(files, document.path, script.positional, script.environment)
    return read if index or key in read.launches[0].effective() else script


def _with_files(launch: Launch, tables: Iterable[FileTable], files: Files, document: Document) -> Launch:
    """The launch of a Python file with what it loads of other files and hands to its config."""
    for table in tables:
        number = files.find(table.name, document.path.parent, _SUFFIXES.get(Path(table.name).suffix, "yaml"))
        head = f"{table.table}." if table.table else ""
        found = read_config(files, number).settings if number is not None else []
        own = [replace(one, key=one.key.removeprefix(head)) for one in found if one.key.startswith(head)]
        launch = replace(launch, settings=(*own, *launch.settings))
    return launch


FOLLOWED = ("deepspeed:", "accelerate:", "fsdp:")
"""Keys of followed files that no argument of the launch can override."""


def in_memory(documents: Sequence[Document], new: Mapping[str, bytes]) -> Files:
    """A script's documents, some with new bytes, as the only files there are."""
    given: dict[str, Document] = {}
    for document in documents:
        data = new.get(str(document.path), document.data)
        given[os.path.abspath(document.path)] = replace(document, data=data)
    return Files([], given)


def read_again(script: Script, rewrites: Sequence[Rewrite], *, by_dash: bool = False) -> Script:
    """The script as it would be read with the new bytes. Raises ScriptError where they are not well-formed."""
    files = in_memory(script.documents, {str(item.document.path): item.new for item in rewrites})
    again = read_documents(files, Path(script.documents[0].path), script.positional, script.environment, by_dash)
    if script.starter is not None:
        return _started(again, script.starter)
    if script.documents[0].kind != "shell" or len(again.launches) != len(script.launches):
        return again
    return replace(again, launches=tuple(map(_building, again.launches, script.launches)))


NUL = "\0"
_PART = regex(rf"({TRAINER}|{LOADER}|{ADAPTER}|\w+Config)(\.|$)")
"""What the keys begin with that a launch has of the trainer that its Python file builds."""


def module_file(launch: Launch, script: Path) -> Path | None:
    """The file a launch runs: in the folder the script went to, beside the script, or above it."""
    program = launch.program
    if not launch.argv or not program or " " in program or "\0" in program:
        return None
    name = program if program.endswith(".py") else program.replace(".", "/") + ".py"
    return next(iter(Files().candidates(name, script.parent, launch.folder)), None)


def follow_module(script: Script, index: int, bases: Collection[str]) -> Script | None:
    """The Python file that launch `index` of a shell script runs, read in that launch's environment. None where the
    file is not found, cannot be read, or configures nothing by a class that fits one of `bases` (fnmatch; "": whatever
    it sets), and where the command gives the program settings that are not options of the file's own."""
    if not script.launches or script.documents[0].kind != "shell":
        return None
    launch = script.launches[index]
    launch = replace(launch, settings=tuple(one for one in launch.settings if not _PART.match(one.key)))
    file = module_file(launch, script.documents[0].path)
    given = [one for one in launch.settings if not one.key.startswith(FOLLOWED) and one.effective]
    arguments = _taken_by(file, launch) if file is not None else ()
    if file is None or len(arguments) != len(given):
        return None
    found = _module(file, bases, launch.environment, arguments)
    return _started(found, launch) if found is not None else None


def with_trainers(script: Script, bases: Collection[str]) -> Script:
    """The script, each launch with the trainer that the Python file which it runs takes from a package of `bases`. For
    files of which `follow_module` knows nothing more, because the command gives them settings of that package. A name
    without a package ("Trainer") proves nothing of a command with options of its own."""
    bases = [base for base in bases if "." in base]
    if script.documents[0].kind != "shell" or not bases:
        return script
    launches = []
    for launch in script.launches:
        file = module_file(launch, script.documents[0].path) if launch.program.endswith(".py") else None
        found = _module(file, bases, launch.environment, _taken_by(file, launch)) if file is not None else None
        launches.append(_building(launch, found.launches[0]) if found is not None else launch)
    return replace(script, launches=tuple(launches))


def _taken_by(file: Path, launch: Launch) -> tuple[str, ...]:
    """The arguments of a command that are options of the file's own."""
    from advisor.script.python_file import parsed
    from advisor.script.python_options import takes
    from advisor.script.python_parser import names_of

    try:
        tree = parsed(load(file, "python").data)
    except (ScriptError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    names = names_of(tree)
    own = [one for one in launch.settings if one.effective and not one.key.startswith(FOLLOWED)]
    taken = [one for one in own if one.key.lstrip("-").replace("-", "_") in names or takes(tree, one.key, False)]
    return tuple(one.key if one.value == () else f"{one.key}={one.text if one.resolved else NUL}" for one in taken)


def _module(
    file: Path, bases: Collection[str], environment: Mapping[str, str], arguments: tuple[str, ...] = ()
) -> Script | None:
    """A Python file that configures something by a class that fits one of `bases`."""
    try:
        found = read_script(file, positional=arguments, environment=environment)
    except ScriptError:
        return None
    named = found.launches[0].bases if found.launches else ()
    sets = "" in bases and any(launch.settings and not launch.partial for launch in found.launches)
    return found if sets or any(fnmatchcase(name, base) for name in named for base in bases) else None


def _building(launch: Launch, builder: Launch) -> Launch:
    """The launch with what another one says of the trainer that is built; never edited."""
    parts = [one for one in builder.settings if one.resolved and _PART.match(one.key)]
    made = [one for one in parts if one.key == TRAINER or not one.key.startswith(TRAINER)]
    trainer = [replace(one, span=None) for one in made]
    bases = tuple(base for base in builder.bases if "." in base)
    return replace(launch, bases=bases, settings=(*trainer, *launch.settings)) if bases else launch


_OF_STARTER = (
    "launcher", "launcher_unread", "spreads", "processes", "interpreter", "missing", "leaves_open", "not_found",
)  # fmt: skip


def _started(found: Script, starter: Launch) -> Script:
    """The file with what its command settles: processes, interpreter, and the launcher's own files (never edited)."""
    loop = all(
        one.key != TRAINER for launch in found.launches for one in launch.settings
    )  # its options may be read by name
    told = tuple(replace(one, span=None) for one in starter.settings if loop or one.key.startswith(FOLLOWED))
    kept: dict[str, Any] = {name: getattr(starter, name) for name in _OF_STARTER}
    launches = tuple(replace(launch, settings=(*told, *launch.settings), **kept) for launch in found.launches)
    return replace(found, launches=launches, starter=starter)


_WORLD = regex(r"--world_info=([\w=-]{4,4000})")
_MOST_TOLD = 200_000
"""Bytes in which a command is looked for that nothing runs."""
_PLACE = Path("the-log")
"""The command stands in no file."""


def printed_launch(text: str, spreads: str = "", whole: bool = True) -> Launch | None:
    """The launch that a command's text is; None where it starts no training. `spreads`: what started it on every card,
    where the text is the command of one rank."""
    document = Document(_PLACE, _with_hosts(text).encode("utf-8", "replace"), "shell")
    files = Files([], {os.path.abspath(_PLACE): document})
    try:
        launches = read_shell(files, _PLACE, (), _find).launches
    except (ScriptError, Unterminated):
        return None
    launch = next((one.launch for one in launches if one.launch.program), None)
    if launch is None:
        return None
    unsought = {one.note: replace(one, sought=False) for one in launch.not_found}
    return replace(
        launch,
        index=0,
        notes=tuple(unsought[note].note if note in unsought else note for note in launch.notes),
        not_found=tuple(unsought.values()),
        span=None,
        settings=tuple(replace(setting, span=None) for setting in launch.settings),
        exports=tuple(replace(setting, span=None) for setting in launch.exports),
        spreads=launch.spreads or spreads,
        partial=launch.partial or not whole,
    )


_TOLD = regex(rb"^[ \t]*(?:#+[ \t]*|\$[ \t]+)?((?:[^\\\n]|\\\n[ \t]*#*|\\.)+)", re.MULTILINE)
"""A command, its continuation lines with it, be it a comment's."""


def _told(document: Document) -> Launch | None:
    """The first command of a text that would start a training and is not run from there, as a hint."""
    for line in _TOLD.finditer(document.data[:_MOST_TOLD]):
        words = re.sub(rb"\\\n[ \t]*#*", b" ", line[1]).decode("utf-8", "replace")
        found = find_launcher(words.split())
        launch = printed_launch(words) if found is not None and found.trains else None
        if launch is not None and launch.settings:
            number = document.line_of(line.start(1))
            told = say("Line {line} holds a command that is not run from here: it is read as a hint.", line=number)
            return replace(launch, partial=True, launcher_unread=("",), notes=(told, *launch.notes))
    return None


def _find(words: Sequence[str]) -> LauncherMatch | None:
    """What a command line runs: a log names what trained, whatever its name."""
    found = find_launcher(words)
    return found and replace(found, trains=found.kind == "program")


def _with_hosts(text: str) -> str:
    """The ranks that DeepSpeed packs into one word, as its launcher's --include names them."""
    packed = _WORLD.search(text)
    if packed is None:
        return text
    try:
        hosts = json.loads(base64.urlsafe_b64decode(packed[1]))
        include = "@".join(f"{host}:{','.join(str(int(rank)) for rank in ranks)}" for host, ranks in hosts.items())
    except (ValueError, AttributeError, TypeError):
        return text
    named = re.fullmatch(r"[\w.,:@-]{1,2000}", include)
    return text if named is None else text.replace(packed[0], f"--include={include}", 1)
