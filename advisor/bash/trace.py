"""Follows a bash script as bash would, without running anything: conditions, loops, pipelines. `trace` is the door."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

from advisor.bash import dash, syntax
from advisor.bash.builtins import BUILTINS
from advisor.bash.conditions import Condition, read_double, undecided
from advisor.bash.expand import MOST_FIELDS, Expander
from advisor.bash.output import filtered
from advisor.bash.parameters import matches
from advisor.bash.run import MAX_DEPTH, Shell
from advisor.bash.state import (
    CommandWord,
    FindCommand,
    Flow,
    FlowStatus,
    Load,
    ShellState,
    ShellTrace,
    Starts,
    Variable,
    merge,
)
from advisor.bash.syntax import Simple, Statement, Statements, is_test, set_in_rounds, shell_word
from advisor.bash.text import ByteRange, Piece, ShellValue, Text, joined, known, sources, unknown
from advisor.bash.words import Exhausted, Unterminated, Word
from advisor.bash.wrapped import filled_later, wrapped_environment
from advisor.language import mark, say
from advisor.regex import regex

_CONDITION_COST = 4
"""Words that a condition is as much work as: the state before it is kept."""
_MAX_ROUNDS = 200
"""Rounds of a loop that are followed."""
_TOO_LONG = mark("it is set in a loop that is too long to follow")
_ENDS = regex(rb"(?:&&|\bthen)\s*(?:break|exit)\b")
"""What ends a loop once a command in it has done."""
_LEFT_EMPTY = regex(rb"\$(?:(\w+)|\{(\w+)(:?-)?\})")
_ARGUMENTS = regex(rb"\$\{?[1-9#@*]")


_MOST_WITHIN = 3
"""Programs that start one another and are followed."""


def _nothing(words: Sequence[ShellValue], folder: bytes) -> Iterable[ShellValue]:
    return ()


class _Follower(Shell):
    """The statements that decide what runs."""

    starts: Starts = _nothing
    within: int = 0
    """Programs within programs that start one another."""

    def simple(self, command: Simple, text: Text, state: ShellState) -> FlowStatus:
        self.words += 1 + len(command.words) + len(command.assignments)
        if self.words > self.budget:
            raise Exhausted
        expander = self.expander(text, state)
        try:
            if state.dash and any(one.append or one.index is not None for one in command.assignments):
                return self.fails(command, text, state)
            if not command.words:
                for assignment in command.assignments:
                    self.assign(assignment, expander)
                return Flow.NEXT, True
            words = (word for word in command.words if isinstance(word, Word))
            fields = list(islice((item for word in words for item in expander.fields(word)), MOST_FIELDS + 1))
            if len(fields) > MOST_FIELDS:
                raise Exhausted
        except Unterminated:
            return Flow.NEXT, None
        name = fields[0].text if fields else b""
        if not fields:
            return Flow.NEXT, True
        if state.dash and name not in state.functions:
            failed = dash.answer(name, [item.text for item in fields[1:]])
            if failed is not None:
                return self.fails(command, text, state)
        if name in self.aliases and (self.expands_aliases or state.dash):
            shown = name.decode("utf-8", "replace")
            told = say("The alias {name} is not followed: write its command out.", name=shown)
            self.overwritten(state, say("the alias {name}", name=shown), told)
        if name in state.functions:
            return self.call(name, command, fields, expander), self.last
        builtin = BUILTINS.get(name)
        if builtin is not None:
            return builtin(self, command, fields, expander)
        return self.external(command, tuple(fields), expander)

    def external(self, command: Simple, fields: tuple[CommandWord, ...], expander: Expander) -> FlowStatus:
        """A command that is no builtin, or the one that it starts itself."""
        python = any(item.text.endswith(b".py") or item.text == b"-m" for item in fields)
        if python and self.started(command, fields, expander):
            return Flow.NEXT, None
        return super().external(command, fields, expander)

    def started(self, command: Simple, fields: tuple[CommandWord, ...], expander: Expander) -> bool:
        """Whether a program starts the training by a command of its own, which is followed then."""
        fields = filled_later(fields)
        found = self.find_command([item.text.decode("utf-8", "replace") for item in fields])
        if found is None or found.kind != "program" or self.within >= _MOST_WITHIN:
            return False
        kept, outer = (len(self.commands), len(self.uses), len(self.notes)), (self.capture, self.depth)
        environment, _ = wrapped_environment(found.wrapped, fields, *self.environment(command, expander))
        program: ShellValue = (Piece(found.program.encode("utf-8", "surrogateescape")),)
        words = [program, *(item.pieces for item in fields[found.arguments :])]
        for text in self.starts(words, expander.state.folder):
            self.capture, self.depth, self.within = None, 0, self.within + 1
            try:
                self.nested(text, self.shell_of_its_own(environment, expander.state))
            finally:
                (self.capture, self.depth), self.within = outer, self.within - 1
            if any(one.found is not None and one.found.trains for one in self.commands[kept[0] :]):
                return True
            del self.commands[kept[0] :], self.uses[kept[1] :], self.notes[kept[2] :]
        return False

    def end(self, text: Text, start: int, end: int) -> FlowStatus:
        """Leave the script where dash does."""
        self.ended = self.ended or dash.told(text, start, end)
        return Flow.EXIT, False

    def fails(self, command: Simple, text: Text, state: ShellState) -> FlowStatus:
        """A command that dash does not find: it goes on without, unless `set -e` ends it there."""
        return self.end(text, command.start, command.end) if state.ends_on_failure else (Flow.NEXT, False)

    def block(self, statements: Iterable[Statement], text: Text, state: ShellState) -> Flow:
        """Statements in order, until one ends the block."""
        for statement in statements:
            flow, self.last = self.statement(statement, text, state)
            if flow is not Flow.NEXT:
                return flow
        return Flow.NEXT

    def statement(self, statement: Statement, text: Text, state: ShellState) -> FlowStatus:
        """Run one statement. The second value is its exit status: success, failure or None for not known."""
        self.depth += 1
        if self.depth > MAX_DEPTH * 4 or self.words > self.budget:
            raise Exhausted
        try:
            return self.dispatch(statement, text, state)
        except dash.Ends as ends:
            return self.end(text, ends.start or statement.start, ends.end or statement.start + 40)
        finally:
            self.depth -= 1

    def dispatch(self, statement: Statement, text: Text, state: ShellState) -> FlowStatus:
        match statement:
            case Simple():
                # it runs beside the script, in a shell of its own
                behind = statement.operator == b"&"
                if state.dash:  # `command &> file` is a command in the background, and an empty one that makes the file
                    behind = behind or any(one.operator in (b"&>", b"&>>") for one in statement.redirects)
                return self.simple(statement, text, state.copy() if behind else state)
            case syntax.If():
                self.last = True
                return self.branches(list(statement.branches), statement.otherwise, text, state), self.last
            case syntax.For():
                return self.loop(statement, text, state), None
            case syntax.While():
                return self.repeat(statement, text, state), None
            case syntax.CaseStatement():
                return self.case(statement, text, state), None
            case syntax.Function():
                state.functions[statement.name] = (statement.body, text)
                if self.handlers:
                    self.spring(state)
                return Flow.NEXT, True
            case syntax.CommandGroup():
                inner = state.copy() if statement.subshell else state
                flow = self.block(statement.body, text, inner)
                return (Flow.NEXT if statement.subshell else flow), self.last
            case syntax.Pipeline():
                return self.pipeline(statement, text, state), None
            case syntax.Chain():
                return self.chain(statement, text, state)
            case syntax.Negation():
                flow, status = self.statement(statement.body, text, state)
                return flow, None if status is None else not status
            case syntax.Rejected():
                return self.end(text, statement.start, statement.end)
            case syntax.Test():
                return Flow.NEXT, self.test(statement, text, state)
        return Flow.NEXT, None

    def pipeline(self, statement: syntax.Pipeline, text: Text, state: ShellState) -> Flow:
        """Every element runs in its own subshell; the output of the first filters through the rest."""
        outer, self.capture = self.capture, None
        output: list[Piece] = []
        runs = bool(statement.elements) and bool(shell_word(statement.elements[-1]))
        for element in statement.elements:
            if runs and element is statement.elements[-1]:
                if known(output) or b"\n" in joined(output).strip():
                    shell = shell_word(statement.elements[-1])
                    self.nested(tuple(output), self.shell_of_its_own(state.exported(), state, shell))
                else:
                    self.notes.append(say("what a pipe hands to a shell is not known; it may start and set more."))
            if outer is not None or runs:
                fed = tuple(output)
                made = filtered(element, fed) if output else None
                output = [] if made is None else list(made)
                if made is not None:
                    continue
                self.capture = output
            stays = self.lastpipe and element is statement.elements[-1]
            self.statement(element, text, state if stays else state.copy())
        self.capture = outer
        if outer is not None:
            outer.extend(output)
        return Flow.NEXT

    def chain(self, statement: syntax.Chain, text: Text, state: ShellState) -> FlowStatus:
        if statement.operator == b"||" and isinstance(statement.left, syntax.Chain):
            return self.either(statement, text, state)
        return self.both(statement, text, state)

    def either(self, statement: syntax.Chain, text: Text, state: ShellState) -> FlowStatus:
        """`test && a || b`: what both ways leave where it is only assumed that the test succeeds."""
        before, unsure, self.unsure = state.copy(), self.unsure, False
        flow, status = self.both(statement, text, state)
        assumed, self.unsure = self.unsure, self.unsure or unsure
        going_on = assumed and status is True and flow is Flow.NEXT
        if going_on and self.statement(statement.right, text, before)[0] is Flow.NEXT:
            state.become(merge(before, state, undecided(statement.start, text)))
        return flow, status

    def both(self, statement: syntax.Chain, text: Text, state: ShellState) -> FlowStatus:
        """The left side, and the right one where its turn comes."""
        flow, status = self.statement(statement.left, text, state)
        if flow is not Flow.NEXT:
            return flow, status
        runs = status is not False if statement.operator == b"&&" else status is not True
        if not runs:
            return flow, status
        if status is not None:
            inside = state.copy()
            ending = self.statement(statement.right, text, inside)
            if ending[0] is Flow.EXIT and self.asks_for_input((statement.left,), (statement.right,), text, state):
                return flow, False
            state.become(inside)
            return ending
        if not isinstance(statement.left, syntax.Test) and not is_test(statement.left):
            # a command we cannot run is taken to succeed
            self.unsure = True
            return self.statement(statement.right, text, state) if statement.operator == b"&&" else (flow, None)
        inside, leaning = state.copy(), self.leaning if is_test(statement.left) else None
        flow, _ = self.statement(statement.right, text, inside)
        self.unsure = self.unsure or flow is not Flow.NEXT
        if flow is Flow.NEXT and leaning is not None:
            state.become(inside if leaning is (statement.operator == b"&&") else state)
        elif flow is Flow.NEXT:
            state.become(merge(state, inside, undecided(statement.start, text)))
        return Flow.NEXT, None

    def branches(
        self, left: list[tuple[Statements, Statements]], otherwise: Statements, text: Text, state: ShellState
    ) -> Flow:
        """`if` and `elif` in order; both ways where a condition cannot be decided."""
        if not left:
            return self.block(otherwise, text, state)
        self.words += _CONDITION_COST
        condition, body = left[0]
        status = self.condition(condition, text, state)
        if status is True:
            inside, ran = state.copy(), len(self.commands)
            flow = self.block(body, text, inside)
            trained = any(command.found for command in self.commands[ran:])
            if flow is not Flow.EXIT or trained or not self.asks_for_input(condition, body, text, state):
                state.become(inside)
                return flow
            status = False  # it stops because something was not given; with that it goes on
        if status is False:
            return self.branches(left[1:], otherwise, text, state)
        self.last = None
        leaning = self.leaning if len(condition) == 1 and is_test(condition[0]) else None
        start = condition[0].start if condition else 0
        taken, skipped = state.copy(), state.copy()
        first = self.block(body, text, taken)
        second = self.branches(left[1:], otherwise, text, skipped)
        self.last = None
        if leaning is not None and first is second is Flow.NEXT:
            state.become(taken if leaning else skipped)
            return Flow.NEXT
        return self.join(state, (taken, first), (skipped, second), undecided(start, text))

    def join(
        self, state: ShellState, left: tuple[ShellState, Flow], right: tuple[ShellState, Flow], reason: str
    ) -> Flow:
        """Go on behind an undecided condition: a way that leaves the script is not the one that trains."""
        self.unsure = self.unsure or left[1] is not right[1]
        if left[1] in (Flow.EXIT, Flow.RETURN) and right[1] is Flow.NEXT:
            state.become(right[0])
        elif right[1] in (Flow.EXIT, Flow.RETURN) and left[1] is Flow.NEXT:
            state.become(left[0])
        else:
            self.words += len(state.variables) // 10
            state.become(merge(left[0], right[0], reason))
            return left[1] if left[1] is right[1] else Flow.NEXT
        return Flow.NEXT

    def asks_for_input(self, condition: Statements, body: Statements, text: Text, state: ShellState) -> bool:
        """Whether a condition looks at arguments of the script, and none were given to us, or at variables that are
        empty unless they come from outside. Those are then not known."""
        if not condition:
            return False
        end = body[0].start if body else condition[0].start + 200
        if state.positional is None and _ARGUMENTS.search(text.data, condition[0].start, end):
            return True
        asked = False
        for found in _LEFT_EMPTY.finditer(text.data, condition[0].start, end):
            name = found.group(1) or found.group(2)
            variable = state.variables.get(name)
            if variable is None:
                asked = asked or (found.group(3) is not None and name not in state.assigned)
            elif name in state.may_be_given and not joined(variable.value or ()):
                reason = say("the script stops unless ${name} is given from outside", name=name.decode())
                state.variables[name] = Variable((unknown(reason),), None, variable.exported)
                asked = True
        return asked

    def condition(self, condition: Statements, text: Text, state: ShellState) -> bool | None:
        status: bool | None = None
        for statement in condition:
            _, status = self.statement(statement, text, state)
        self.last = True
        return status

    def case(self, statement: syntax.CaseStatement, text: Text, state: ShellState) -> Flow:
        expander = self.expander(text, self.as_given(state))
        subject = expander.value(statement.subject)
        self.used(sources(subject), say("a condition"))
        if known(subject):
            return self.matching(statement, subject, expander, text, state)
        reason = undecided(statement.start, text)
        ends: list[tuple[ShellState, Flow]] = []
        for _, body, _ in statement.items:
            inside = state.copy()
            ends.append((inside, self.block(body, text, inside)))
        self.last, self.unsure = None, self.unsure or any(flow is not Flow.NEXT for _, flow in ends)
        going_on = [inside for inside, flow in ends if flow not in (Flow.EXIT, Flow.RETURN)] or [state]
        result = going_on[0]
        for other in going_on[1:]:
            result = merge(result, other, reason)
        state.become(result)
        return Flow.NEXT

    def matching(
        self, statement: syntax.CaseStatement, subject: ShellValue, expander: Expander, text: Text, state: ShellState
    ) -> Flow:
        """The items of a `case` whose subject is known; `;&` falls into the next one, `;;&` looks on."""
        falls = False
        for patterns, body, ending in statement.items:
            if falls or any(self.matches(expander, pattern, subject) for pattern in patterns):
                flow = self.block(body, text, state)
                if flow is not Flow.NEXT or ending == b";;":
                    return flow
                falls = ending == b";&"
        return Flow.NEXT

    def matches(self, expander: Expander, pattern: Word, subject: ShellValue) -> bool:
        value, marks = expander.marked(expander.value(pattern))
        return value is not None and matches(joined(subject), value, marks)

    def loop(self, statement: syntax.For, text: Text, state: ShellState) -> Flow:
        if statement.header is not None:
            return self.counted(statement, text, state)
        if statement.words is None:
            items = list(state.positional or ())
        else:
            expander = self.expander(text, state)
            items = [item for word in statement.words for item in expander.fields(word)]
        before = state.copy()
        loose = (piece.reason or (b"*" in piece.text and not piece.quoted) for item in items for piece in item.pieces)
        several: dict[bytes, ByteRange | None] = {statement.name: None} if any(loose) else {}  # in one round
        with self.varying({**several, **self.tried_again(statement, text)}):
            for item in items[:_MAX_ROUNDS]:
                state.assign(statement.name, item.pieces)
                flow = self.block(statement.body, text, state)
                if (ends := self.leaves(flow)) is not None:
                    return ends
        if len(items) > _MAX_ROUNDS:
            state.become(merge(before, state, say(_TOO_LONG)))
        return Flow.NEXT

    @contextmanager
    def varying(self, names: Mapping[bytes, ByteRange | None]) -> Iterator[None]:
        """Follow the body of a loop that sets these names anew, each with where the loop stands."""
        outside, self.anew = self.anew, {**self.anew, **names}
        try:
            yield
        finally:
            self.anew = outside

    def tried_again(self, statement: syntax.For, text: Text) -> dict[bytes, ByteRange | None]:
        """What the rounds of a loop set that ends once its command has done: `for …; do command && break; …; done`."""
        start, end = statement.start, statement.end
        names = set_in_rounds(text.data[start:end]) if _ENDS.search(text.data, start, end) else ()
        return dict.fromkeys(names, text.place(start, end, "plain"))

    def leaves(self, flow: Flow) -> Flow | None:
        """How a loop ends whose body ended so; None where it goes on."""
        if flow in (Flow.BREAK, Flow.CONTINUE) and self.levels > 1:
            self.levels -= 1
            return flow
        return Flow.NEXT if flow is Flow.BREAK else flow if flow in (Flow.EXIT, Flow.RETURN) else None

    def counted(self, statement: syntax.For, text: Text, state: ShellState) -> Flow:
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
        before = state.copy()
        with self.varying(self.tried_again(statement, text)):
            for _ in range(_MAX_ROUNDS):
                going = expander.arithmetic(spans[1])
                if not going.reason and going.text == b"0":
                    return Flow.NEXT
                flow = self.block(statement.body, text, state)
                if (ends := self.leaves(flow)) is not None:
                    return ends
                if going.reason:
                    break
                expander.arithmetic(spans[2])
        state.become(merge(before, state, say(_TOO_LONG)))
        return Flow.NEXT

    def repeat(self, statement: syntax.While, text: Text, state: ShellState) -> Flow:
        """`while` and `until`: rounds while the condition is decided, one round where it is not."""
        start, end = statement.start, statement.end
        with self.varying(dict.fromkeys(set_in_rounds(text.data[start:end]), text.place(start, end, "plain"))):
            return self.rounds(statement, text, state)

    def rounds(self, statement: syntax.While, text: Text, state: ShellState) -> Flow:
        first = state.copy()
        for _ in range(_MAX_ROUNDS):
            status = self.condition(statement.condition, text, state)
            if statement.until and status is not None:
                status = not status
            if status is False:
                return Flow.NEXT
            before = state.copy()
            commands = len(self.commands)
            flow = self.block(statement.body, text, state)
            ends = self.leaves(flow)
            if ends is not None and (status is True or flow not in (Flow.EXIT, Flow.RETURN)):
                return ends
            if status is None:
                self.unsure = True
                state.become(merge(before, state, undecided(statement.start, text)))
                return Flow.NEXT
            if len(self.commands) > commands and before.variables == state.variables:
                return Flow.NEXT  # the same again, for ever
        state.become(merge(first, state, say(_TOO_LONG)))
        return Flow.NEXT

    def test(self, statement: syntax.Test, text: Text, state: ShellState) -> bool | None:
        self.words += _CONDITION_COST
        if state.dash:  # `[[` is not found; `((` opens a subshell in a subshell
            return False if statement.double else None
        expander = self.expander(text, self.as_given(state))
        if not statement.double:
            result = expander.arithmetic(statement.body)
            self.used(result.sources(), say("a condition"))
            return None if result.reason else result.text != b"0"
        operands = read_double(expander, *statement.body)
        return self.decide(Condition(operands, expander, True))


def trace(
    doc: int,
    data: bytes,
    path: bytes,
    arguments: Sequence[bytes],
    load: Load,
    find_command: FindCommand,
    by_dash: bool = False,
    starts: Starts = _nothing,
) -> ShellTrace:
    """Follow the script at `path`, document number `doc`, from its first line to its last. `arguments` are what it is
    given, `load` finds files that it sources and runs, `find_command` says what a command line launches, `by_dash`
    whether `sh` is taken to be dash. Raises Unterminated where a quote never closes."""
    state = ShellState(positional=tuple(CommandWord((Piece(text),)) for text in arguments) or None, script=path)
    shell = _Follower(load, find_command, by_dash, starts=starts)
    shell.script(doc, data, state)
    return ShellTrace(shell.commands, shell.uses, shell.notes, shell.whole, shell.by_sh, shell.ended)
