"""Reads shell scripts: the launches in them, with settings, environment and the literals that decide both."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.bash.state import FindCommand, LauncherMatch, ShellTrace, TracedCommand
from advisor.bash.text import ByteRange, ShellValue, joined, known, line_at, line_starts, why_unknown
from advisor.bash.trace import trace
from advisor.bash.visible_devices import visible_ids
from advisor.bash.wrapped import of_the_job
from advisor.hostile import clean
from advisor.language import mark, say
from advisor.regex import regex
from advisor.script import config_files, cuts
from advisor.script.arguments import Argument, read_arguments, shown
from advisor.script.blocks import starts_commands
from advisor.script.document import Document, Setting, Span, effective
from advisor.script.files import Files
from advisor.script.interpolation import interpolated
from advisor.script.keyed import clean_value
from advisor.script.launch import Launch
from advisor.script.launcher import PYTHON, SPREADS, find_launcher, is_engine, is_other_work, only_asks
from advisor.script.launcher import base as _base
from advisor.script.literal import Target, Uses, target
from advisor.script.pasted import FEWEST

_LONGEST_VALUE = 100_000
_FOR_LIBRARIES = regex(
    rb"^[ \t]*((?:PYTORCH|TORCH|CUDA|NCCL|RAY|VLLM|SGLANG|HF|TRANSFORMERS|OMP|DS|ASCEND|NPROC_PER|NNODES)\w*)="
    rb"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"';&|]*)[ \t]*(?:#[^\n]*)?\r?$",
    re.MULTILINE,
)
"""A line that only sets a variable of a name that libraries look for in their environment."""
_USED = regex(rb"\$\{?(\w+)")
_EXPORTED = regex(rb"^[ \t]*(?:export|declare)\b([^\n]*)", re.MULTILINE)


class ShellLaunch(Struct, frozen=True):
    """A launch as an editor needs it: its command, arguments and files beside the public noun."""

    command: TracedCommand
    found: LauncherMatch
    arguments: tuple[Argument, ...]
    launch: Launch
    group: tuple[int, ...]
    """Numbers of the commands that the same text makes (rounds of a loop)."""


class ShellReading(Struct, dict=True):
    """A shell script followed from end to end."""

    files: Files
    trace: ShellTrace
    launches: list[ShellLaunch] = field(default_factory=list)
    cuts: tuple[cuts.Cut, ...] = ()
    """Places at which what stands below was read as part of the command above."""

    @cached_property
    def data(self) -> list[bytes]:
        return [document.data for document in self.files.documents]

    @cached_property
    def starts(self) -> list[list[int]]:
        return [line_starts(data) for data in self.data]

    @cached_property
    def uses(self) -> Uses:
        out = Uses()
        out.add(self.trace.uses)
        return out

    @cached_property
    def of_ray(self) -> dict[bytes, ShellValue]:
        """Ray's own settings, as `ray start` is given them: they hold for all that runs there."""
        starts = (one for one in self.trace.commands if [shown(word) for word in one.fields[:2]] == ["ray", "start"])
        return {name: value for one in starts for name, value in one.environment.items() if name.startswith(b"RAY_")}

    @cached_property
    def for_libraries(self) -> dict[bytes, int]:
        """Variables of names that libraries look for, set on lines of their own and used nowhere else → the line."""
        data = self.data[0]
        used = {*_USED.findall(data), *(name for line in _EXPORTED.findall(data) for name in re.findall(rb"\w+", line))}
        found = ((item.group(1), item.start(1)) for item in _FOR_LIBRARIES.finditer(data))
        return {name: line_at(self.starts[0], at) for name, at in found if name not in used}

    @cached_property
    def keys(self) -> dict[tuple[int, int], str]:
        """(command, argument) → the key of the setting it belongs to."""
        words = {(one.command.number, i): a.key for one in self.launches for a in one.arguments for i in a.fields}
        before = [
            (one, read_arguments(one.command.fields[: (at := one.found.launcher)[1]], at[0])) for one in self.launches
        ]
        return words | {(one.command.number, i): a.key for one, own in before for a in own for i in a.fields}

    def span(self, place: ByteRange) -> Span:
        path = str(self.files.documents[place.doc].path)
        return Span(path, line_at(self.starts[place.doc], place.start), place.start, place.end)

    def raw(self, place: ByteRange) -> str:
        """What stands at a place, as text."""
        return self.data[place.doc][place.start : place.end].decode(errors="replace")

    def shared(self, place: ByteRange, own: ShellLaunch, indices: tuple[int, ...]) -> tuple[str, ...]:
        """What else the bytes of a place decide, beside arguments `indices` of a launch (and of its other rounds)."""
        out: list[str] = []
        for use in self.uses.of(place):
            spoken = min(use.number, use.field) < 0 and use.label[1:].encode() in own.command.spoken
            if spoken or (use.number in own.group and use.field in indices):
                continue
            out.append(use.label or self.label(use.number, use.field))
        return tuple(dict.fromkeys(out))

    def label(self, number: int, index: int) -> str:
        key = self.keys.get((number, index))
        if key is not None:
            return key
        command = self.trace.commands[number]
        place = command.text.place(command.simple.start, command.simple.start, "plain")
        if place is None:
            return say("another command")
        return say("the command in line {line}", line=line_at(self.starts[place.doc], place.start))

    def literal(self, pieces: ShellValue) -> Target | None:
        """The literal that alone decides a value."""
        return target(pieces, self.data)


def read_shell(
    files: Files,
    path: Path,
    positional: tuple[str, ...],
    find: FindCommand = find_launcher,
    instead: bytes | None = None,
    by_dash: bool = False,
) -> ShellReading:
    """Follow the shell script `path`, `by_dash`: `sh` being dash. Raises ScriptError for the file, Unterminated where
    its quotes do not match. `instead` is followed in place of the file's text, byte for byte as long."""
    doc = files.add(path, "shell")
    data = files.documents[doc].data if instead is None else instead

    def load(name: bytes, folder: bytes) -> tuple[int, bytes] | None:
        named, gone = (text.decode("utf-8", "surrogateescape") for text in (name, folder))
        number = files.find(named, path.parent, "shell", gone, strays=not files.is_folder(gone, path.parent))
        if number is None or files.documents[number].kind != "shell":
            return None
        return number, files.documents[number].data

    def starts(words: Sequence[ShellValue], folder: bytes) -> Iterator[ShellValue]:
        name, gone = (text.decode("utf-8", "surrogateescape") for text in (joined(words[0]), folder))
        named = name if name.endswith(".py") else name.replace(".", "/") + ".py"
        place = next(iter(files.candidates(named, path.parent, gone)), None) if "\0" not in named else None
        if place is None or not starts_commands(files, place):
            return
        from advisor.script.python_starts import shell_of_python

        def load_python(named: str) -> tuple[int, bytes] | None:
            number = files.find(named, place.parent, "python")
            return None if number is None else (number, files.documents[number].data)

        kept = len(files.documents)
        if (own := load_python(str(place.absolute()))) is not None:
            yield from shell_of_python(*own, os.path.relpath(place, path.parent), words[1:], load_python)
        del files.documents[kept:]  # none of it was of use

    arguments = [text.encode("utf-8", "surrogateescape") for text in positional]
    name = str(path).encode("utf-8", "surrogateescape")
    found: list[cuts.Cut] = []
    rounds = 0
    while True:
        reading = ShellReading(files, trace(doc, data, name, arguments, load, find, by_dash, starts), cuts=tuple(found))
        _find_launches(reading, path.parent)
        further = {cut.start: cut for launch in reading.launches for cut in _meant(launch, data, found)}
        rounds += 1
        if not further or rounds > cuts.MOST_ROUNDS:
            return reading
        found += further.values()
        data = cuts.joined(data, further.values())


def _meant(draft: ShellLaunch, data: bytes, found: Sequence[cuts.Cut]) -> Iterator[cuts.Cut]:
    """What a command of the script itself loses and was meant to have. `found` before: where one comment was put in
    afterwards, the others were, too."""
    annotated = any(cut.by_comment for cut in found)
    if draft.command.text.data is not data:
        return
    yield from cuts.glued_lines(draft.command.simple, data)
    keys = [argument.key for argument in draft.arguments]
    for cut in cuts.cuts_below(draft.command.simple, data):
        meant = cuts.is_meant(cut, keys) or annotated
        annotated = annotated or (meant and cut.by_comment)
        if not meant:
            return
        yield cut
        keys += cut.names


def _find_launches(reading: ShellReading, base: Path) -> None:
    seen: dict[object, int] = {}
    rounds: dict[object, list[int]] = {}
    candidates: list[tuple[TracedCommand, LauncherMatch, tuple[Argument, ...]]] = []
    found_in = [(command, command.found) for command in reading.trace.commands if command.found is not None]
    training = [(command, found) for command, found in found_in if found.trains]
    programs = [(command, found) for command, found in found_in if found.kind == "program"]
    engines = [(command, found) for command, found in programs if is_engine(found.program)]
    configured = [
        (command, found) for command, found in programs if config_files.is_given(reading.files, command, found, base)
    ]
    launched = [
        (command, found)
        for command, found in (() if training or engines or configured else programs)
        if (found.program and _starts_ranks(command, found) and not is_other_work(found.program))
        or config_files.is_loop(command, found, base)
    ]
    keyed = [
        (command, found)
        for command, found in (() if launched else programs)
        if sum(map(_is_key, read_arguments(command.fields, found.arguments))) >= FEWEST
        and not is_other_work(found.program)
    ]
    for command, found in training or engines or configured or launched or keyed:
        origin = _origin(reading, command)
        rounds.setdefault(origin, []).append(command.number)
        environment = tuple(sorted((name, joined(value)) for name, value in command.environment.items()))
        identity = (origin, tuple(shown(item) for item in command.fields), environment)
        if identity in seen:
            continue
        seen[identity] = command.number
        candidates.append((command, found, tuple(read_arguments(command.fields, found.arguments))))
    for command, found, arguments in candidates:
        group = tuple(rounds[_origin(reading, command)])
        empty = Launch(len(reading.launches), found.program, (), {}, ())
        reading.launches.append(ShellLaunch(command, found, arguments, empty, group))
    reading.launches[:] = [_complete(reading, launch, base) for launch in reading.launches]


def _is_key(argument: Argument) -> bool:
    """Whether it is a key of a nested config, `a.b.c=1`: a program that takes several is a training, whatever it is."""
    return argument.style == "assignment" and argument.key.count(".") > 1


def _starts_ranks(command: TracedCommand, found: LauncherMatch) -> bool:
    """Whether a launcher of ranks starts the program with settings: what it is called does not matter then."""
    words = [shown(item) for item in command.fields]
    by_launcher = found.processes is not None or any(_base(word) in SPREADS for word in words[: found.arguments])
    return by_launcher and len(words) > found.arguments and not only_asks(words, found)


def _origin(reading: ShellReading, command: TracedCommand) -> object:
    """Where a command is written; of a text that is run, where its parts of several words are."""
    start, text = command.simple.start, command.text
    parts = text.deps(start, command.simple.end) if text.nested else ()
    said = tuple(one for one in parts if b" " in reading.data[one.doc][one.start : one.end])
    place = text.place(start, start, "plain")
    return said or ((place.doc, place.start) if place is not None else (id(text), start))


def _complete(reading: ShellReading, draft: ShellLaunch, base: Path) -> ShellLaunch:
    """The launch with its public noun filled in."""
    command, found, own = draft.command, draft.found, [_setting(reading, draft, each) for each in draft.arguments]
    variables = _environment(reading, draft)
    (launcher, unread), loose = _launcher(draft), _loose(draft)
    positional = [text for text in map(_text, loose) if text is not None]
    given = (launcher, own, positional, command, base, clean(found.program), unread)
    followed = config_files.follow(reading.files, *given)
    # a file's keys in the spelling of the command line, where that has dashes: `--lr` overrides `lr`
    options = {s.key.lstrip("-").replace("-", "_"): s.key for s in own if s.key.startswith("--")}
    settings = effective([*(replace(s, key=options.get(s.key, s.key)) for s in followed.settings), *own])
    settings = interpolated(settings, variables)
    reasons, told = dict.fromkeys(filter(None, map(why_unknown, loose))), _told_of_cuts(reading, draft)
    unlisted = [say("More arguments may follow that are not known: {reason}.", reason=clean(one)) for one in reasons]
    words = [_base(shown(item)) for item in command.fields[: found.arguments]]
    spreads = next((word for word in words if word in SPREADS), "")  # it starts several processes by itself
    counted = spreads or "" in unread or not _COUNTS_PROCESSES.isdisjoint((*launcher, *unread))
    alone = len(words) == 2 and PYTHON.match(words[0]) and any(one.key in _SHARED_BY for one in draft.arguments)
    counted = counted or _COUNTED_OUTSIDE in command.environment
    launch = Launch(
        draft.launch.index,
        clean(found.program),
        tuple(_text(item.pieces) for item in command.fields),
        variables,
        tuple(settings),
        _command_span(reading, command),
        launcher,
        found.interpreter,
        followed.files,
        notes=(*told.cuts, *_of_engine(found), *_not_exported(reading, command), *unlisted, *followed.notes),
        exports=_exports(reading, draft),
        missing=followed.missing,
        leaves_open=bool(unlisted) or bool(followed.not_found),
        not_found=followed.not_found,
        loose=tuple(map(_text, loose)),
        folder=command.directory,
        launcher_unread=unread,
        spreads=spreads,
        processes=None if counted else 1 if alone else found.processes,
        cuts=told.cuts,
        lost=told.lost,
        maybe_lost=told.maybe_lost,
        partial=cuts.ends_open(reading.data[0], command.simple),
    )
    return ShellLaunch(command, found, draft.arguments, launch, draft.group)


_BLANKED = regex(rb"[^\n]")
_FILLED_IN = regex(rb"[$`\\]")


def embedded_python(reading: ShellReading) -> Document | None:
    """The Python of `python - <<'EOF'` that makes a config, every byte where it stands in the script; None without."""
    document = reading.files.documents[0]
    for command in reading.trace.commands:
        simple, words = command.simple, [shown(item) for item in command.fields]
        place = command.text.place(simple.start, simple.start, "plain")
        if not PYTHON.match(_base(words[0])) or words[1:] not in ([], ["-"]) or place is None or place.doc:
            continue
        for body, expands in [(one.body, one.expands) for one in simple.redirects if one.body is not None]:
            start, end = (at + place.start - simple.start for at in body)
            text = document.data[start:end]
            if re.search(rb"\w(?:Config|Arguments|Args)\(", text) and not (expands and _FILLED_IN.search(text)):
                around = (_BLANKED.sub(b" ", one) for one in (document.data[:start], document.data[end:]))
                return replace(document, data=text.join(around), kind="python")
    return None


def _text(pieces: ShellValue) -> str | None:
    return clean(joined(pieces).decode("utf-8", "replace"), _LONGEST_VALUE) if known(pieces) else None


def _setting(reading: ShellReading, draft: ShellLaunch, argument: Argument) -> Setting:
    given, reason = argument.value, str(clean(argument.reason))
    value = None if given is None else clean_value(given)
    if value != given:  # what cannot be shown is part of it, too
        value, reason = None, say("it holds characters that are no text")
    place = setting_place(reading, draft, argument)
    return Setting(
        clean(argument.key),
        value,
        "command",
        value is not None,
        span=None if place is None else reading.span(place),
        reason=reason,
        shared_with=() if place is None else reading.shared(place, draft, argument.fields),
        marker=argument.marker,
        ending="" if value is not None else clean(argument.ending, _LONGEST_VALUE),
    )


def setting_place(reading: ShellReading, draft: ShellLaunch, argument: Argument) -> ByteRange | None:
    """The bytes that decide a setting: its value's literal, all its values together, or the flag itself."""
    if len(argument.values) == 1:
        found = reading.literal(argument.values[0])
        return None if found is None else found.place
    homes = [draft.command.fields[index].home for index in argument.fields[1:] or argument.fields]
    if any(home is None for home in homes):
        return None
    first, last = homes[0], homes[-1]
    if first is None or last is None or first.doc != last.doc or last.end < first.start:
        return None
    return ByteRange(first.doc, first.start, last.end, first.context)


def _command_span(reading: ShellReading, command: TracedCommand) -> Span | None:
    place = command.text.place(command.simple.start, command.simple.end, "plain")
    if place is None:
        sources = command.text.deps(command.simple.start, command.simple.end)
        place = sources[0] if sources else None
    return None if place is None else reading.span(place)


_COUNTS_PROCESSES = {"--nproc_per_node", "--nproc-per-node"}
_SHARED_BY = {"--deepspeed", "--fsdp"}
"""Options of transformers' Trainer that share a model out among processes which something else must have started."""
_COUNTED_OUTSIDE = b"PET_NPROC_PER_NODE"
"""torchrun's own variable for that option. Source: pytorch/pytorch torch/distributed/argparse_util.py (env)."""


def _launcher(draft: ShellLaunch) -> tuple[dict[str, str], tuple[str, ...]]:
    """Options of the launcher, as text, a bare flag "true"; and those that have no known value, "" where whole words
    are not known."""
    start, end = draft.found.launcher
    arguments = read_arguments(draft.command.fields[:end], start)
    values = [(one.key, one.value) for one in arguments if one.values or one.key not in ("-m", "--module")]
    options = {k: v if isinstance(v, str) else " ".join(v) or "true" for k, v in values if v is not None}
    taken = {index for argument in arguments for index in argument.fields}
    loose = any(why_unknown(draft.command.fields[index].pieces) for index in range(start, end) if index not in taken)
    return options, (*(argument.key for argument in arguments if argument.value is None), *([""] * loose))


def _environment(reading: ShellReading, draft: ShellLaunch) -> dict[str, str]:
    """Exported variables, the command's own prefix, and Ray's runtime environment on top."""
    every = {**draft.command.environment, **reading.of_ray, **of_the_job(draft.found.wrapped, draft.command.fields)}
    texts = ((name, _text(pieces)) for name, pieces in every.items())
    return {clean(name.decode("utf-8", "replace")): text for name, text in texts if text is not None}


def _exports(reading: ShellReading, draft: ShellLaunch) -> tuple[Setting, ...]:
    out: list[Setting] = []
    for name, pieces in {**draft.command.environment, **reading.of_ray}.items():
        found = reading.literal(pieces)
        text = _text(pieces)
        key = clean(name.decode("utf-8", "replace"))
        span = None if found is None else reading.span(found.place)
        out.append(Setting(key, text, "environment", text is not None, span=span, reason=str(why_unknown(pieces))))
    return tuple(out)


def _loose(draft: ShellLaunch) -> list[ShellValue]:
    """Arguments that belong to no setting."""
    taken = {index for argument in draft.arguments for index in argument.fields}
    rest = range(draft.found.arguments, len(draft.command.fields))
    return [draft.command.fields[index].pieces for index in rest if index not in taken]


def other_commands(reading: ShellReading) -> tuple[tuple[str | None, ...], ...]:
    """The words of the commands that are no launch and run none."""
    launched = {number for launch in reading.launches for number in launch.group}
    others = (
        command
        for command in reading.trace.commands
        if command.number not in launched and (command.found is None or command.found.kind == "program")
    )
    return tuple(tuple(_text(word.pieces) for word in command.fields) for command in others)


_SERVES = regex(r"roll_?out|serve|serving|vllm|sglang|api_server|deploy|lmdeploy|generat", re.IGNORECASE)
"""Words of a command that starts an engine."""


def shared_cards(reading: ShellReading, draft: ShellLaunch) -> tuple[str, ...]:
    """That an engine which the script starts by another command is given cards of this launch, a sentence each."""
    own, told = _visible(draft.command), []
    for command in reading.trace.commands if own else ():
        words = [text for word in command.fields[:4] if (text := _text(word.pieces))]
        both = sorted(own & (ids := _visible(command)))
        if command.number not in draft.group and both and ids != own and any(map(_SERVES.search, words)):
            cards = ", ".join(map(str, both))
            each = {"cards": cards, "other": " ".join(words[:2])}
            told.append(
                say("GPU {cards} is given to this command and to `{other}`: engine and trainer share it.", **each)
            )
    return tuple(told)


def _visible(command: TracedCommand) -> set[int]:
    text = _text(command.environment.get(b"CUDA_VISIBLE_DEVICES", ()))
    return {int(one) for one in visible_ids({"CUDA_VISIBLE_DEVICES": text or ""}) or () if one.isdecimal()}


def _not_exported(reading: ShellReading, command: TracedCommand) -> list[str]:
    """Variables that libraries read, set on lines of their own, that the command does not get and nothing else uses."""
    missed = {name: line for name, line in reading.for_libraries.items() if name not in command.environment}
    told = mark("line {line}: {name} is set but not exported: the command gets it only from outside.")
    return [say(told, line=line, name=name.decode()) for name, line in missed.items()]


def _of_engine(found: LauncherMatch) -> tuple[str, ...]:
    if found.trains or not is_engine(found.program):
        return ()
    return (
        say("{program} runs the rollout engine alone; the training is another command.", program=clean(found.program)),
    )


class _Told(Struct, frozen=True):
    """Sentences on what the text of a command ends before, loses in bash, or would lose (see Launch)."""

    cuts: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    maybe_lost: tuple[str, ...] = ()


def _told_of_cuts(reading: ShellReading, draft: ShellLaunch) -> _Told:
    simple, text = draft.command.simple, draft.command.text

    def line(at: int) -> int:
        place = text.place(at, at, "plain")
        return 0 if place is None else line_at(reading.starts[place.doc], place.start)

    if not draft.found.program:  # a piece without its command: nobody pastes one line by line with backslashes
        return _Told()
    joins = [(one, line(one.at)) for one in reading.cuts if simple.start <= one.start <= simple.end]
    forgotten: list[str] = []
    lost: list[str] = []
    if (below := next(cuts.cuts_below(simple, text.data), None)) is not None:
        (lost if below.by_comment else forgotten).append(cuts.told_of_loss(below, line(below.at)))
    if (above := cuts.variables_above(text.data, simple.start)) is not None:
        lost.append(cuts.told_of_variables(line(above[0]), above[1], clean(draft.found.program)))
    told = [*cuts.told_of_joins(joins), *forgotten]
    single = told if len(joins) + len(forgotten) == 1 else ()  # several went where the text was pasted
    open_end = [say("The text ends with a `\\`: settings that may follow are not in it.")]
    ending = open_end if cuts.ends_open(reading.data[0], simple) else []
    return _Told((*told, *ending, *lost), tuple(lost), tuple(single))
