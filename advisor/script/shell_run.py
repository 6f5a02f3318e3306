"""Runs the commands of a script in the mind: assignments, functions, nested shells, and the commands we look for."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from advisor.script import shell_builtins, shell_output
from advisor.script.literal import line_at, line_starts
from advisor.script.program import Found, find
from advisor.script.shell_command import Assignment, Simple
from advisor.script.shell_expand import Expander
from advisor.script.shell_flow import MAX_DEPTH, MOST_WORDS, ControlFlow
from advisor.script.shell_state import Field, State, Variable
from advisor.script.shell_text import Pieces, Place, Text, document_text, joined, known, nested_text, sources, unknown
from advisor.script.shell_trace import Command, Flow, Use, heredoc, split_assignment
from advisor.script.shell_tree import parse, read_statements
from advisor.script.shell_words import Exhausted, Parameter, Unterminated, Word

_LONGEST_VALUE = 300_000
_MOST_PIECES = 5_000
_LONGEST_PATH = 1_000
_PIECES_A_WORD = 16
"""Pieces of a value that are as much work as a word: `A+=$A` in a loop has thousands."""
_LAUNCH_COST = 3
"""How much more work a word of a launch is than another: it becomes a setting."""
_COMMENT_LINE = re.compile(rb"^[ \t]*#.*$", re.MULTILINE)
_ASSIGNED = re.compile(
    rb"(?:^|[\s;(])(?:(?:export|local|declare|readonly)\s+(?:-\w+\s+)?)?([A-Za-z_]\w*)\+?=", re.MULTILINE
)


@dataclass(slots=True)
class Shell(ControlFlow):
    """Follows a script from its first line to its last."""

    def script(self, doc: int, data: bytes, state: State) -> None:
        """Follow a whole document."""
        state.assigned |= _assigned_names(data)
        self.budget = min(self.budget + len(data) // 2, MOST_WORDS)
        text = document_text(doc, data)
        at = 0
        try:
            for statement in read_statements(data):
                at = statement.start
                if self.statement(statement, text, state)[0] is not Flow.NEXT:
                    break
        except Exhausted:
            self.whole = False
            line = line_at(line_starts(data), at)
            self.notes.append(f"The script is too long to be followed to its end: nothing below line {line} was read.")

    def simple(self, command: Simple, text: Text, state: State) -> tuple[Flow, bool | None]:
        self.words += 1 + len(command.words) + len(command.assignments)
        if self.words > self.budget:
            raise Exhausted
        expander = self.expander(text, state)
        try:
            if not command.words:
                for assignment in command.assignments:
                    self.assign(assignment, expander)
                return Flow.NEXT, True
            fields = [item for word in command.words if isinstance(word, Word) for item in expander.fields(word)]
        except Unterminated:
            return Flow.NEXT, None
        name = joined(fields[0].pieces) if fields else b""
        if not fields:
            return Flow.NEXT, True
        builtin = shell_builtins.BUILTINS.get(name)
        if builtin is not None:
            return builtin(self, command, fields, expander)
        if name in state.functions:
            return self.call(name, command, fields, expander), None
        return self.external(command, tuple(fields), expander)

    def assign(self, assignment: Assignment, expander: Expander, exported: bool = False) -> None:
        """Carry out one assignment."""
        state = expander.state
        old = state.variables.get(assignment.name)
        exported = exported or (old is not None and old.exported)
        if assignment.elements is not None:
            start = (
                list(old.elements.values())
                if assignment.append and old is not None and old.elements is not None
                else []
            )
            elements = shell_builtins.elements(assignment.elements, start, expander)
            state.variables[assignment.name] = Variable(None, elements, exported)
            return
        value = expander.value(assignment.value)
        if not joined(value) and is_empty_default(assignment.value, state):
            state.may_be_given.add(assignment.name)
        if assignment.index is not None:
            if old is None and any("was not found" in note for note in self.notes):
                return  # its other elements may come from a file that was not found
            held = dict(old.elements or {}) if old is not None else {}
            held[assignment.index.strip(b"'\"")] = Field(value)
            state.variables[assignment.name] = Variable(None, held, exported)
            return
        if assignment.append:
            value = (*self.so_far(old, assignment.name), *value)
        self.words += len(value) // _PIECES_A_WORD
        value = bounded(value)
        if exported:
            self.used(sources(value), "$" + assignment.name.decode("utf-8", "replace"))
        state.variables[assignment.name] = Variable(value, None, exported)

    def so_far(self, old: Variable | None, name: bytes) -> Pieces:
        if old is not None:
            return old.scalar() or ()
        return (
            ()
            if name not in (b"PATH", b"LD_LIBRARY_PATH", b"PYTHONPATH")
            else (unknown(f"${name.decode()} is set by the machine"),)
        )

    def environment(self, command: Simple, expander: Expander) -> tuple[dict[bytes, Pieces], frozenset[bytes]]:
        """What a command finds in its environment, and which of it comes from its own prefix."""
        inherited = {
            n: v.scalar() or () for n, v in expander.state.variables.items() if v.exported and v.elements is None
        }
        own: dict[bytes, Pieces] = {}
        for assignment in command.assignments:
            own[assignment.name] = expander.value(assignment.value)
        return {**inherited, **own}, frozenset(own)

    def external(self, command: Simple, fields: tuple[Field, ...], expander: Expander) -> tuple[Flow, bool | None]:
        """A command that is no builtin: a launch, a wrapper around shell text, or something else."""
        if self.capture is not None:
            output = shell_output.output(fields, command, expander)
            if output is not None:
                self.capture.extend(output)
                return Flow.NEXT, True
            self.capture.append(unknown(f"the output of {joined(fields[0].pieces).decode('utf-8', 'replace')[:40]}"))
        self.heredoc_file(command, fields, expander)
        found = find([joined(item.pieces).decode("utf-8", "replace") for item in fields])
        environment, own = self.environment(command, expander)
        if found is not None:
            for index in found.environment:
                name, value = split_assignment(fields[index])
                environment[name] = value
            own |= {split_assignment(fields[index])[0] for index in found.environment}
        number = len(self.commands)
        self.commands.append(
            Command(
                number,
                fields,
                environment,
                own,
                command,
                expander.text,
                found,
                expander.state.files,
                expander.state.folder,
            )
        )
        self.words += _LAUNCH_COST * len(fields) if found is not None else 0
        for index, item in enumerate(fields if found is None or found.kind == "program" else ()):
            self.uses += [Use(place, number, index) for place in sources(item.pieces)]
        for name in own:
            self.uses += [Use(p, number, -1, "$" + name.decode("utf-8", "replace")) for p in sources(environment[name])]
        if found is not None and found.kind != "program":
            self.inner(found, fields, environment, expander.state)
        return Flow.NEXT, None

    def inner(self, found: Found, fields: tuple[Field, ...], environment: Mapping[bytes, Pieces], state: State) -> None:
        """Shell text or a script file that a command runs in a shell of its own."""
        variables = {name: Variable(value, None, True) for name, value in environment.items()}
        inside = State(variables, {}, tuple(fields[found.arguments + 1 :]), dict(state.files), state.script)
        inside.assigned = set(state.assigned)
        if found.kind == "text":
            inside.positional = tuple(fields[found.arguments + 2 :]) or None
            self.nested(fields[found.arguments].pieces, inside, fields[found.arguments].home)
        else:
            self.follow(fields[found.arguments].pieces, inside)

    def nested(self, pieces: Pieces, state: State, home: Place | None = None) -> Flow:
        """Run a string as shell text; `home` is the word that it comes from."""
        if self.depth > MAX_DEPTH:
            return Flow.NEXT
        text = nested_text(pieces, home)
        self.depth += 4
        try:
            return self.block(parse(text.data), text, state)
        finally:
            self.depth -= 4

    def follow(self, path: Pieces, state: State) -> Flow:
        """Run another script in `state`: one on disk, or one that this script wrote from a heredoc."""
        written = state.files.get(posixpath.normpath(joined(path)))
        if written is not None:
            return self.nested(written, state)
        loaded = self.load(joined(path), state.script) if self.depth < MAX_DEPTH else None
        if loaded is None:
            shown = joined(path).decode("utf-8", "replace")
            self.notes.append(
                f"{shown or 'a script'} is run by this script and was not found; what it sets is not known."
            )
            return Flow.NEXT
        doc, data = loaded
        state.assigned |= _assigned_names(data)
        self.depth += 4
        outer, state.source = state.source, joined(path)
        try:
            return self.block(parse(data), document_text(doc, data), state)
        finally:
            self.depth -= 4
            state.source = outer

    def call(self, name: bytes, command: Simple, fields: list[Field], expander: Expander) -> Flow:
        """Call a function of the script."""
        state = expander.state
        body, text = state.functions[name]
        if self.depth > MAX_DEPTH:
            return Flow.NEXT
        saved, positional, inside = dict(state.variables), state.positional, state.inside_function
        for assignment in command.assignments:
            self.assign(assignment, expander, exported=True)
        state.positional, state.inside_function, state.local_names = tuple(fields[1:]), True, set()
        self.depth += 2
        try:
            flow = self.block(body, text, state)
        finally:
            self.depth -= 2
        for local in state.local_names | {a.name for a in command.assignments}:
            state.variables.pop(local, None)
            if local in saved:
                state.variables[local] = saved[local]
        state.positional, state.inside_function = positional, inside
        return Flow.EXIT if flow is Flow.EXIT else Flow.NEXT

    def heredoc_file(self, command: Simple, fields: tuple[Field, ...], expander: Expander) -> None:
        """`cat > file <<EOF`: remember what the script writes, for when it runs or reads it."""
        if joined(fields[0].pieces) not in (b"cat", b"tee"):
            return
        paths = [expander.value(r.target) for r in command.redirects if r.operator in (b">", b">>", b">|")]
        if joined(fields[0].pieces) == b"tee":
            paths = [item.pieces for item in fields[1:] if not joined(item.pieces).startswith(b"-")]
        body = heredoc(command, expander) if paths else None
        if body is not None:
            append = any(r.operator == b">>" for r in command.redirects) or b"-a" in [joined(f.pieces) for f in fields]
            for path in paths:
                self.write(path, body, append, expander.state)

    def write(self, path: Pieces, body: Pieces, append: bool, state: State) -> None:
        """What a file of the script holds from here on."""
        if known(path) and len(joined(path)) < _LONGEST_PATH:
            name = posixpath.normpath(joined(path))
            before = state.files.pop(name, ()) if append else ()
            state.files.pop(name, None)
            state.files[name] = bounded((*before, *body))

    def substitute(self, text: Text, state: State) -> Pieces:
        """What `$( … )` would print, as far as it can be known."""
        if self.depth > MAX_DEPTH:
            return (unknown("a command nested too deeply"),)
        outer, self.capture = self.capture, []
        kept = len(self.commands), len(self.uses)
        self.depth += 4
        try:
            self.block(parse(text.data), text, state.copy())
            out = self.capture
        finally:
            self.capture = outer
            self.depth -= 4
        del self.commands[kept[0] :]
        del self.uses[kept[1] :]
        return shell_builtins.trimmed_end(tuple(out))


@lru_cache(maxsize=16)
def _assigned_names(data: bytes) -> frozenset[bytes]:
    """Every name that a text sets anywhere."""
    return frozenset(_ASSIGNED.findall(_COMMENT_LINE.sub(b"", data)))


def is_empty_default(word: Word, state: State) -> bool:
    """`${A:-}`, where nothing in the script sets A: empty unless it is given from outside."""
    only = word.parts[0] if len(word.parts) == 1 else None
    if not isinstance(only, Parameter) or only.operator not in (b":-", b"-", b":="):
        return False
    return only.argument[0] == only.argument[1] and (
        only.name not in state.variables or only.name in state.may_be_given
    )


def bounded(value: Pieces) -> Pieces:
    """A value, or that it is too long to be followed (`A=$A$A` forty times)."""
    if len(value) > _MOST_PIECES or sum(len(piece.text) for piece in value) > _LONGEST_VALUE:
        return (unknown("a value too long to follow"),)
    return value
