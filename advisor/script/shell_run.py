"""Runs the commands of a script in the mind: assignments, functions, nested shells, and the commands we look for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from advisor.script import shell_builtins, shell_output
from advisor.script.program import Found, find
from advisor.script.shell_command import Assignment, Simple
from advisor.script.shell_expand import Expander
from advisor.script.shell_flow import MAX_DEPTH, ControlFlow
from advisor.script.shell_state import Exhausted, Field, State, Variable
from advisor.script.shell_text import Pieces, Text, document_text, joined, known, nested_text, sources, unknown
from advisor.script.shell_trace import Command, Flow, Use, heredoc, split_assignment
from advisor.script.shell_tree import parse
from advisor.script.shell_words import Unterminated, Word

_LONGEST_VALUE = 300_000
_MOST_PIECES = 5_000
_COMMENT_LINE = re.compile(rb"^[ \t]*#.*$", re.MULTILINE)
_ASSIGNED = re.compile(
    rb"(?:^|[\s;(])(?:(?:export|local|declare|readonly)\s+(?:-\w+\s+)?)?([A-Za-z_]\w*)\+?=", re.MULTILINE
)


@dataclass(slots=True)
class Shell(ControlFlow):
    """Follows a script from its first line to its last."""

    def script(self, doc: int, data: bytes, state: State) -> None:
        """Follow a whole document."""
        state.assigned |= set(_ASSIGNED.findall(_COMMENT_LINE.sub(b"", data)))
        self.budget += len(data) // 2
        text = document_text(doc, data)
        try:
            self.block(parse(data, strict=doc == 0), text, state)
        except Exhausted as stop:
            self.notes.append(str(stop))

    def simple(self, command: Simple, text: Text, state: State) -> tuple[Flow, bool | None]:
        self.words += 1 + len(command.words)
        if self.words > self.budget:
            raise Exhausted("The script does too much to be followed to its end.")
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
        if assignment.index is not None:
            held = dict(old.elements or {}) if old is not None else {}
            held[assignment.index.strip(b"'\"")] = Field(value)
            state.variables[assignment.name] = Variable(None, held, exported)
            return
        if assignment.append:
            value = (*self.so_far(old, assignment.name), *value)
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
            Command(number, fields, environment, own, command, expander.text, found, expander.state.files)
        )
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
            self.nested(fields[found.arguments].pieces, inside)
        else:
            self.follow(fields[found.arguments].pieces, inside)

    def nested(self, pieces: Pieces, state: State) -> Flow:
        """Run a string as shell text."""
        if self.depth > MAX_DEPTH:
            return Flow.NEXT
        text = nested_text(pieces)
        self.depth += 4
        try:
            return self.block(parse(text.data), text, state)
        finally:
            self.depth -= 4

    def follow(self, path: Pieces, state: State) -> Flow:
        """Run another script in `state`: one on disk, or one that this script wrote from a heredoc."""
        written = state.files.get(joined(path))
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
        state.assigned |= set(_ASSIGNED.findall(_COMMENT_LINE.sub(b"", data)))
        self.depth += 4
        try:
            return self.block(parse(data), document_text(doc, data), state)
        finally:
            self.depth -= 4

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
        body = heredoc(command, expander)
        target = next((r.target for r in command.redirects if r.operator in (b">", b">>")), None)
        if body is not None and target is not None:
            path = expander.value(target)
            if known(path):
                expander.state.files[joined(path)] = body

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


def bounded(value: Pieces) -> Pieces:
    """A value, or that it is too long to be followed (`A=$A$A` forty times)."""
    if len(value) > _MOST_PIECES or sum(len(piece.text) for piece in value) > _LONGEST_VALUE:
        return (unknown("a value too long to follow"),)
    return value
