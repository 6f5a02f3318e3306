"""Follows a script statement by statement, as bash would run it, without running anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from advisor.script import shell_builtins, shell_test
from advisor.script.program import Found, find
from advisor.script.shell_command import Assignment, Simple
from advisor.script.shell_expand import Expander
from advisor.script.shell_state import Exhausted, Field, State, Variable, merge
from advisor.script.shell_text import Piece, Pieces, Place, Text, document_text, joined, known, nested_text, sources, unknown
from advisor.script.shell_tree import (
    Block,
    Case,
    Chain,
    For,
    Function,
    Group,
    If,
    Negation,
    Pipeline,
    Statement,
    Test,
    While,
    parse,
)
from advisor.script.shell_words import Unterminated, Word, scan_quoted

_MAX_WORDS = 200_000
_MAX_DEPTH = 25
_MAX_ROUNDS = 200
_COMMENT_LINE = re.compile(rb"^[ \t]*#.*$", re.M)
_ARGUMENTS = re.compile(rb"\$\{?[1-9#@*]")
_ASSIGNED = re.compile(rb"(?:^|[\s;(])(?:(?:export|local|declare|readonly)\s+(?:-\w+\s+)?)?([A-Za-z_]\w*)\+?=", re.M)

Load = Callable[[bytes, bytes], "tuple[int, bytes] | None"]
"""(path, directory of the script) → number and bytes of a document, or None where it is not found."""


class Flow(Enum):
    """How a statement ended."""

    NEXT = auto()
    EXIT = auto()
    RETURN = auto()
    BREAK = auto()
    CONTINUE = auto()


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it would be run. `simple` and `text` are where it is written."""

    number: int
    fields: tuple[Field, ...]
    environment: Mapping[bytes, Pieces]
    prefixes: frozenset[bytes]
    simple: Simple
    text: Text
    found: Found | None
    files: Mapping[bytes, Pieces]


@dataclass(frozen=True, slots=True)
class Use:
    """A literal and what it has a part in: argument `field` of command `number`, or `label` where that is no command."""

    place: Place
    number: int
    field: int
    label: str = ""


@dataclass(slots=True)
class Shell:
    """The run of one script: what it came across."""

    load: Load
    commands: list[Command] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    words: int = 0
    depth: int = 0
    capture: list[Piece] | None = None

    def script(self, doc: int, data: bytes, state: State) -> None:
        """Follow a whole document."""
        state.assigned |= set(_ASSIGNED.findall(_COMMENT_LINE.sub(b"", data)))
        text = document_text(doc, data)
        try:
            self.block(parse(data, strict=doc == 0), text, state)
        except Exhausted as stop:
            self.notes.append(str(stop))

    # -- statements

    def block(self, statements: Block, text: Text, state: State) -> Flow:
        """Statements in order, until one ends the block."""
        for statement in statements:
            flow, _ = self.statement(statement, text, state)
            if flow is not Flow.NEXT:
                return flow
        return Flow.NEXT

    def statement(self, statement: Statement, text: Text, state: State) -> tuple[Flow, bool | None]:
        """Run one statement. The second value is its exit status: success, failure or None for not known."""
        self.depth += 1
        if self.depth > _MAX_DEPTH * 4:
            raise Exhausted("The script nests too deeply to be followed to its end.")
        try:
            return self.dispatch(statement, text, state)
        finally:
            self.depth -= 1

    def dispatch(self, statement: Statement, text: Text, state: State) -> tuple[Flow, bool | None]:
        match statement:
            case Simple():
                return self.simple(statement, text, state)
            case If():
                return self.branches(list(statement.branches), statement.otherwise, text, state), None
            case For():
                return self.loop(statement, text, state), None
            case While():
                return self.repeat(statement, text, state), None
            case Case():
                return self.case(statement, text, state), None
            case Function():
                state.functions[statement.name] = (statement.body, text)
                return Flow.NEXT, True
            case Group():
                inner = state.copy() if statement.subshell else state
                flow = self.block(statement.body, text, inner)
                return (Flow.NEXT if statement.subshell else flow), None
            case Pipeline():
                return self.pipeline(statement, text, state), None
            case Chain():
                return self.chain(statement, text, state)
            case Negation():
                flow, status = self.statement(statement.body, text, state)
                return flow, None if status is None else not status
            case Test():
                return Flow.NEXT, self.test(statement, text, state)
        return Flow.NEXT, None

    def pipeline(self, statement: Pipeline, text: Text, state: State) -> Flow:
        """Every element runs in its own subshell; the output of the first filters through the rest."""
        outer, self.capture = self.capture, None
        output: list[Piece] = []
        for element in statement.elements:
            if outer is not None:
                fed = tuple(output)
                filtered = shell_builtins.filtered(element, fed, self.expander(text, state)) if output else None
                output = [] if filtered is None else list(filtered)
                if filtered is not None:
                    continue
                self.capture = output
            self.statement(element, text, state.copy())
        self.capture = outer
        if outer is not None:
            outer.extend(output)
        return Flow.NEXT

    def chain(self, statement: Chain, text: Text, state: State) -> tuple[Flow, bool | None]:
        flow, status = self.statement(statement.left, text, state)
        if flow is not Flow.NEXT:
            return flow, status
        runs = status is not False if statement.operator == b"&&" else status is not True
        if not runs:
            return flow, status
        if status is not None:
            inside = state.copy()
            ending = self.statement(statement.right, text, inside)
            if ending[0] is Flow.EXIT and self.asks_for_arguments((statement.left,), (statement.right,), text, state):
                return flow, False
            state.become(inside)
            return ending
        if not isinstance(statement.left, Test) and not _is_test(statement.left):
            # a command we cannot run is taken to succeed
            return self.statement(statement.right, text, state) if statement.operator == b"&&" else (flow, None)
        inside = state.copy()
        flow, _ = self.statement(statement.right, text, inside)
        if flow is Flow.NEXT:
            state.become(merge(state, inside, self.undecided(statement.start, text)))
        return Flow.NEXT, None

    def undecided(self, start: int, text: Text) -> str:
        line = text.data.count(b"\n", 0, start) + 1
        return "it depends on a condition in a nested command" if text.nested else f"it depends on the condition in line {line}"

    def branches(self, left: list[tuple[Block, Block]], otherwise: Block, text: Text, state: State) -> Flow:
        """`if` and `elif` in order; both ways where a condition cannot be decided."""
        if not left:
            return self.block(otherwise, text, state)
        condition, body = left[0]
        status = self.condition(condition, text, state)
        if status is True:
            inside = state.copy()
            flow = self.block(body, text, inside)
            if flow is not Flow.EXIT or not self.asks_for_arguments(condition, body, text, state):
                state.become(inside)
                return flow
            status = False  # it stops because no arguments were given; with them it goes on
        if status is False:
            return self.branches(left[1:], otherwise, text, state)
        start = condition[0].start if condition else 0
        taken, skipped = state.copy(), state.copy()
        first = self.block(body, text, taken)
        second = self.branches(left[1:], otherwise, text, skipped)
        return self.join(state, (taken, first), (skipped, second), self.undecided(start, text))

    def join(self, state: State, left: tuple[State, Flow], right: tuple[State, Flow], reason: str) -> Flow:
        """Go on behind an undecided condition: a way that leaves the script is not the one that trains."""
        if left[1] in (Flow.EXIT, Flow.RETURN) and right[1] is Flow.NEXT:
            state.become(right[0])
        elif right[1] in (Flow.EXIT, Flow.RETURN) and left[1] is Flow.NEXT:
            state.become(left[0])
        else:
            state.become(merge(left[0], right[0], reason))
            return left[1] if left[1] is right[1] else Flow.NEXT
        return Flow.NEXT

    def asks_for_arguments(self, condition: Block, body: Block, text: Text, state: State) -> bool:
        """Whether a condition looks at arguments of the script, and none were given to us."""
        if state.positional is not None or not condition:
            return False
        end = body[0].start if body else condition[0].start + 200
        return _ARGUMENTS.search(text.data, condition[0].start, end) is not None

    def condition(self, condition: Block, text: Text, state: State) -> bool | None:
        status: bool | None = None
        for statement in condition:
            _, status = self.statement(statement, text, state)
        return status

    def case(self, statement: Case, text: Text, state: State) -> Flow:
        expander = self.expander(text, self.as_given(state))
        subject = expander.value(statement.subject)
        self.used(sources(subject), "a condition")
        if known(subject):
            for patterns, body in statement.items:
                answers = [self.matches(expander, pattern, subject) for pattern in patterns]
                if any(answers):
                    return self.block(body, text, state)
            return Flow.NEXT
        reason = self.undecided(statement.start, text)
        ends: list[tuple[State, Flow]] = []
        for _, body in statement.items:
            inside = state.copy()
            ends.append((inside, self.block(body, text, inside)))
        going_on = [inside for inside, flow in ends if flow not in (Flow.EXIT, Flow.RETURN)] or [state]
        result = going_on[0]
        for other in going_on[1:]:
            result = merge(result, other, reason)
        state.become(result)
        return Flow.NEXT

    def matches(self, expander: Expander, pattern: Word, subject: Pieces) -> bool:
        value, marks = expander.marked(expander.value(pattern))
        return value is not None and shell_builtins.pattern_matches(joined(subject), value, marks)

    def loop(self, statement: For, text: Text, state: State) -> Flow:
        if statement.header is not None:
            return self.counted(statement, text, state)
        if statement.words is None:
            items = list(state.positional or ())
        else:
            expander = self.expander(text, state)
            items = [item for word in statement.words for item in expander.fields(word)]
        for item in items[:_MAX_ROUNDS]:
            state.assign(statement.name, item.pieces)
            flow = self.block(statement.body, text, state)
            if flow in (Flow.EXIT, Flow.RETURN):
                return flow
            if flow is Flow.BREAK:
                break
        return Flow.NEXT

    def counted(self, statement: For, text: Text, state: State) -> Flow:
        """`for ((first; condition; step))`."""
        start, end = statement.header or (0, 0)
        spans, at = [], start
        for part in text.data[start:end].split(b";"):
            spans.append((at, at + len(part)))
            at += len(part) + 1
        if len(spans) != 3:
            return Flow.NEXT
        expander = self.expander(text, state)
        expander.arithmetic(spans[0])
        for _ in range(_MAX_ROUNDS):
            going = expander.arithmetic(spans[1])
            if not going.reason and going.text == b"0":
                break
            flow = self.block(statement.body, text, state)
            if flow in (Flow.EXIT, Flow.RETURN):
                return flow
            if flow is Flow.BREAK or going.reason:
                break
            expander.arithmetic(spans[2])
        return Flow.NEXT

    def repeat(self, statement: While, text: Text, state: State) -> Flow:
        """`while` and `until`: rounds while the condition is decided, one round where it is not."""
        for _ in range(_MAX_ROUNDS):
            status = self.condition(statement.condition, text, state)
            if statement.until and status is not None:
                status = not status
            if status is False:
                return Flow.NEXT
            before = state.copy()
            commands = len(self.commands)
            flow = self.block(statement.body, text, state)
            if flow in (Flow.EXIT, Flow.RETURN) and status is True:
                return flow
            if flow is Flow.BREAK:
                return Flow.NEXT
            if status is None:
                state.become(merge(before, state, self.undecided(statement.start, text)))
                return Flow.NEXT
            if len(self.commands) > commands and before.variables == state.variables:
                return Flow.NEXT  # the same again, for ever
        return Flow.NEXT

    def test(self, statement: Test, text: Text, state: State) -> bool | None:
        expander = self.expander(text, self.as_given(state))
        if not statement.double:
            result = expander.arithmetic(statement.body)
            self.used(result.sources(), "a condition")
            return None if result.reason else result.text != b"0"
        operands = shell_test.read_double(expander, *statement.body)
        return self.decide(shell_test.Condition(operands, expander, True))

    def decide(self, condition: shell_test.Condition) -> bool | None:
        self.used(condition.deps, "a condition")
        return condition.answer()

    def as_given(self, state: State) -> State:
        """For conditions: arguments that were not given are empty."""
        return state if state.positional is not None else replace(state, positional=())

    def used(self, places: tuple[Place, ...], label: str) -> None:
        """Note that literals have a part in something that is no command."""
        self.uses += [Use(place, -1, -1, label) for place in places]

    # -- commands

    def expander(self, text: Text, state: State) -> Expander:
        return Expander(text, state, self.substitute)

    def simple(self, command: Simple, text: Text, state: State) -> tuple[Flow, bool | None]:
        self.words += 1 + len(command.words)
        if self.words > _MAX_WORDS:
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
            start = list(old.elements.values()) if assignment.append and old is not None and old.elements is not None else []
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
        if exported:
            self.used(sources(value), "$" + assignment.name.decode("utf-8", "replace"))
        state.variables[assignment.name] = Variable(value, None, exported)

    def so_far(self, old: Variable | None, name: bytes) -> Pieces:
        if old is not None:
            return old.scalar() or ()
        return () if name not in (b"PATH", b"LD_LIBRARY_PATH", b"PYTHONPATH") else (unknown(f"${name.decode()} is set by the machine"),)

    def environment(self, command: Simple, expander: Expander) -> tuple[dict[bytes, Pieces], frozenset[bytes]]:
        """What a command finds in its environment, and which of it comes from its own prefix."""
        inherited = {n: v.scalar() or () for n, v in expander.state.variables.items() if v.exported and v.elements is None}
        own: dict[bytes, Pieces] = {}
        for assignment in command.assignments:
            own[assignment.name] = expander.value(assignment.value)
        return {**inherited, **own}, frozenset(own)

    def external(self, command: Simple, fields: tuple[Field, ...], expander: Expander) -> tuple[Flow, bool | None]:
        """A command that is no builtin: a launch, a wrapper around shell text, or something else."""
        if self.capture is not None:
            output = shell_builtins.output(fields, command, expander)
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
        self.commands.append(Command(number, fields, environment, own, command, expander.text, found, expander.state.files))
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
        if self.depth > _MAX_DEPTH:
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
        loaded = self.load(joined(path), state.script) if self.depth < _MAX_DEPTH else None
        if loaded is None:
            shown = joined(path).decode("utf-8", "replace")
            self.notes.append(f"{shown or 'a script'} is run by this script and was not found; what it sets is not known.")
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
        if self.depth > _MAX_DEPTH:
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
        if self.depth > _MAX_DEPTH:
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


def _is_test(statement: Statement) -> bool:
    if not isinstance(statement, Simple) or not statement.words:
        return False
    head = statement.words[0]
    return isinstance(head, Word) and head.literal() in (b"[", b"test")


def heredoc(command: Simple, expander: Expander) -> Pieces | None:
    """The text of a command's heredoc or here-string; None where it has none."""
    for redirect in reversed(command.redirects):
        if redirect.operator == b"<<<":
            return (*expander.value(redirect.target), Piece(b"\n"))
        if redirect.body is not None:
            start, end = redirect.body
            if redirect.expands:
                return tuple(expander.pieces(scan_quoted(expander.text.data, start, end, "heredoc")))
            return (Piece(expander.text.data[start:end], expander.text.place(start, end, "heredoc")),)
    return None


def split_assignment(item: Field) -> tuple[bytes, Pieces]:
    """`NAME=value` as a name and the pieces of the value."""
    from advisor.script.shell_text import cut  # noqa: PLC0415

    text = joined(item.pieces)
    at = text.find(b"=")
    return text[:at], cut(item.pieces, at + 1)
