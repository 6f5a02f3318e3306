"""Runs the commands of a script in memory: assignments, functions, nested shells, and the commands looked for."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.bash import dash
from advisor.bash.conditions import Condition
from advisor.bash.expand import Expander
from advisor.bash.output import WRITES, asks_for_ascend, command_output, may_write, write
from advisor.bash.parameters import change_case, is_empty_default
from advisor.bash.state import (
    CommandWord,
    FindCommand,
    Flow,
    FlowStatus,
    LauncherMatch,
    Load,
    ShellState,
    TracedCommand,
    Use,
    Variable,
)
from advisor.bash.syntax import LONGEST_READ, Assignment, Simple, Statement, assigned_names, known_end
from advisor.bash.text import (
    ByteRange,
    OneWord,
    Piece,
    ShellValue,
    Text,
    bounded,
    cut,
    document_text,
    joined,
    known,
    nested_text,
    sources,
    trimmed_end,
    unknown,
)
from advisor.bash.tree import parse, read_statements
from advisor.bash.words import Exhausted, Word
from advisor.bash.wrapped import batch_variables, filled_later, of_the_job, wrapped_environment
from advisor.language import mark, say
from advisor.regex import regex

_MAX_WORDS = 20_000
"""Words that may be run beyond what the script has bytes for."""
_MOST_WORDS = 40_000
"""Words that are run at most; a launch script has a few hundred."""
MAX_DEPTH = 25
"""Statements within statements."""
_NO_KEY = mark("an array with a key that is not known")
_PIECES_A_WORD = 16
"""Pieces of a value that are as much work as a word: `A+=$A` in a loop has thousands."""
_LAUNCH_COST = 3
"""How much more work a word of a launch is than another: it becomes a setting."""
_VARIABLES = {b"--env-file", b"--runtime-env"}
"""Options of wrappers (docker, apptainer, uv; ray) that name a file of variables for the command."""
_READ_COMMANDS = {b"bash", b"sh", b"sbatch", b"ssh", b"docker", b"sudo", b"srun"}
"""Commands that take shell text on their standard input where they are given none otherwise."""
_SET_UP_SHELLS = frozenset(
    b"activate deactivate .bashrc .bash_profile .profile bashrc profile conda.sh mamba.sh modules.sh init.sh "
    b"setvars.sh set_env.sh nvm.sh bash_completion".split()
)
"""Files that set up a shell or a toolkit, and none of a run's own variables."""
_ONE_WORD = frozenset(b"date hostname nproc whoami id mktemp realpath readlink uuidgen uname wc".split())
"""Commands that print one word where they are asked for something to put into a command."""
_EXPORT = regex(rb"^#SBATCH[ \t]+--export[= ](\S+)", re.MULTILINE)
"""What a job is given as its environment, beside what it is submitted from."""
_BATCH = regex(rb"^#SBATCH\s", re.MULTILINE)
_DATA = (b".json", b".yaml", b".yml", b".toml")
"""How a file is called that programs read."""


class Shell(Struct):
    """The run of one script: what it came across, and the commands that it runs."""

    load: Load
    find_command: FindCommand
    dash: bool = False
    """Whether `sh` is taken to be dash, and not bash by another name."""
    by_sh: bool = False
    """Whether `sh` runs some of it."""
    ended: str = ""
    """Why dash ends before the end."""
    commands: list[TracedCommand] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    file_missing: bool = False
    """Whether it runs another script that was not found."""
    words: int = 0
    budget: int = _MAX_WORDS
    whole: bool = True
    """Whether the script was followed to its end."""
    depth: int = 0
    last: bool | None = True
    """How the last statement ended: success, failure, or not known."""
    unsure: bool = False
    """Whether the function that runs may have returned earlier than it was followed."""
    lastpipe: bool = False
    """Whether the last command of a pipeline runs in the shell itself (`shopt -s lastpipe`)."""
    anew: Mapping[bytes, ByteRange | None] = field(default_factory=dict)
    calls: tuple[int, ...] = ()
    """Names that the loops around the command may set in every round, and where the loop stands."""
    handlers: tuple[bytes, ...] = ()
    """What traps run while the script does, but for the one at its end."""
    trapped: frozenset[bytes] = frozenset()
    """Names that a trap sets, before or behind any command."""
    aliases: set[bytes] = field(default_factory=set)
    expands_aliases: bool = False
    """Whether the script follows its aliases (`shopt -s expand_aliases`)."""
    levels: int = 1
    """Loops that the last `break` or `continue` is about."""
    at_exit: ShellValue = ()
    """What the script runs when it ends (`trap … EXIT`)."""
    leaning: bool | None = None
    """The answer to the last test if nothing is given from outside; None where it does not ask for that."""
    capture: list[Piece] | None = None
    """What a command substitution has printed so far; None outside of one."""

    def block(self, statements: Iterable[Statement], text: Text, state: ShellState) -> Flow:
        """Follow statements in order, until one ends the block."""
        raise NotImplementedError

    def statement(self, statement: Statement, text: Text, state: ShellState) -> FlowStatus:
        """Follow one statement."""
        raise NotImplementedError

    def run_by(self, shell: bytes, data: bytes, state: ShellState) -> None:
        """Note which shell runs a text: `shell`, or the one that its first line names."""
        named = bool(dash.SHEBANG.match(data)) or (state.dash and not data.startswith(b"#!"))
        sh = shell in dash.SH if shell else named
        self.by_sh = self.by_sh or sh
        state.dash = sh and self.dash

    def expander(self, text: Text, state: ShellState) -> Expander:
        return Expander(text, state, self.substitute)

    def decide(self, condition: Condition) -> bool | None:
        self.used(condition.deps, say("a condition"))
        answer = condition.answer()
        self.leaning = condition.leaning() if answer is None else None
        return answer

    def as_given(self, state: ShellState) -> ShellState:
        """For conditions: arguments that were not given are empty."""
        return state if state.positional is not None else replace(state, positional=())

    def spring(self, state: ShellState) -> None:
        """Forget what the traps set: they may run before or behind any command."""
        names = frozenset(name for text in self.handlers for name in self.set_by(text, state))
        for name in names - self.trapped:
            state.assign(name, (unknown(say("a trap sets it while the script runs")),))
        self.trapped |= names

    def set_by(self, text: bytes, state: ShellState, depth: int = 0) -> frozenset[bytes]:
        """Every name that a text sets, or a function that it names."""
        names = assigned_names(text)
        called = [] if depth > 3 else [name for name in re.findall(rb"[\w:.-]+", text) if name in state.functions]
        for name in dict.fromkeys(called):
            body, function = state.functions[name]
            start = body[0].start if body else 0
            end = function.data.find(b"\n}", start)
            names |= self.set_by(function.data[start : end if end >= 0 else None][:LONGEST_READ], state, depth + 1)
        return names

    def overwritten(self, state: ShellState, by: str, told: str = "") -> None:
        """Note that something ran of which nobody knows what it set: what the literals of variables decide is not
        certain from here on, so that no change can rest on them."""
        told = told or say("What {by} sets is not known: variables may have other values from there on.", by=by)
        if told not in self.notes:
            self.notes.append(told)
        label = say("a variable that {by} may set, too", by=by)
        for variable in state.variables.values():
            held = [variable.value or (), *(item.pieces for item in (variable.elements or {}).values())]
            self.used(sources(piece for value in held for piece in value), label)
        self.words += len(state.variables)
        state.doubted = True

    def used(self, places: tuple[ByteRange, ...], label: str) -> None:
        """Note that literals have a part in something that is no command."""
        self.uses += [Use(place, -1, -1, label) for place in places]

    def script(self, doc: int, data: bytes, state: ShellState) -> None:
        self.run_by(b"", data, state)
        state.assigned |= assigned_names(data)
        state.batch = _BATCH.search(data) is not None
        state.slurm = batch_variables(data.decode(errors="replace"))
        for given in _EXPORT.findall(data) if state.batch else ():
            state.exports |= {one.partition(b"=")[0] for one in given.split(b",")}
        state.known_end = b"" if state.batch else known_end(state.script, data)
        self.budget = min(self.budget + len(data) // 2, _MOST_WORDS)
        text = document_text(doc, data)
        at = 0
        try:
            for statement in dash.accepted(read_statements(data), data, state):
                at = statement.start
                if self.statement(statement, text, state)[0] is not Flow.NEXT:
                    break
            if self.at_exit:
                self.nested(self.at_exit, state)
        except Exhausted:
            self.whole = False
            line = data.count(b"\n", 0, at) + 1
            self.notes.append(
                say("The script is too long to be followed to its end: nothing below line {line} was read.", line=line)
            )

    def assign(
        self, assignment: Assignment, expander: Expander, exported: bool = False, value: ShellValue | None = None
    ) -> None:
        """Carry out one assignment; `value` where it has been expanded already."""
        state = expander.state
        old = state.variables.get(assignment.name)
        if old is not None and old.readonly:
            return
        exported = exported or state.is_exported(assignment.name)
        kept = replace(old, exported=exported) if old is not None else Variable(None, None, exported)
        if assignment.elements is not None:
            start = kept if assignment.append and kept.elements is not None else kept.with_elements({})
            elements = expander.array(assignment.elements, start)
            self.words += len(elements or ()) // _PIECES_A_WORD
            lost = Variable((unknown(say(_NO_KEY)),), None, exported)
            state.variables[assignment.name] = lost if elements is None else start.with_elements(elements)
            return
        value = expander.value(assignment.value) if value is None else value
        if not joined(value) and is_empty_default(assignment.value, state):
            state.may_be_given.add(assignment.name)
        if assignment.index is not None:
            if old is None and self.file_missing:
                return  # its other elements may come from a file that was not found
            self.assign_element(assignment, kept, value, expander)
            return
        if assignment.append and old is not None and old.elements:
            first = old.elements.get(b"0", CommandWord(()))
            longer = {**old.elements, b"0": CommandWord((*first.pieces, *value))}
            state.variables[assignment.name] = kept.with_elements(longer)
            return
        if kept.integer:
            value = (expander.computed(value, self.so_far(old, assignment.name) if assignment.append else ()),)
        elif assignment.append:
            value = (*self.so_far(old, assignment.name), *value)
        self.words += len(value) // _PIECES_A_WORD
        value = self.changed_by_shell(assignment.name, kept, bounded(value))
        if exported:
            self.used(sources(value), "$" + assignment.name.decode("utf-8", "replace"))
        state.variables[assignment.name] = replace(kept, value=value, elements=None, associative=False)

    def changed_by_shell(self, name: bytes, variable: Variable, value: ShellValue) -> ShellValue:
        """What a variable holds once a value is assigned to it: traps and `declare -l` may make another of it."""
        if name in self.trapped:
            return (unknown(say("a trap sets it while the script runs")),)
        text = joined(value)
        if variable.case and (not known(value) or text != change_case(text, variable.case)):
            return (unknown(say("the letters of it are changed (declare -l, -u)")),)
        return value

    def assign_element(self, assignment: Assignment, array: Variable, value: ShellValue, expander: Expander) -> None:
        """`name[key]=value`."""
        start = assignment.start + len(assignment.name) + 1
        key = expander.subscript((start, start + len(assignment.index or b"")), array)
        held = dict(array.elements or {})
        if array.elements is None and array.value is not None:
            held[b"0"] = CommandWord(array.value)
        if key is None:
            expander.state.variables[assignment.name] = Variable((unknown(say(_NO_KEY)),), None, array.exported)
            return
        before = held[key].pieces if assignment.append and key in held else ()
        held[key] = CommandWord((*before, *value))
        expander.state.variables[assignment.name] = array.with_elements(held)

    def so_far(self, old: Variable | None, name: bytes) -> ShellValue:
        if old is None and name in (b"PATH", b"LD_LIBRARY_PATH", b"PYTHONPATH"):
            return (unknown(say("${name} is set by the machine", name=name.decode())),)
        return () if old is None else old.scalar() or ()

    def environment(self, command: Simple, expander: Expander) -> tuple[dict[bytes, ShellValue], frozenset[bytes]]:
        """What a command finds in its environment, and which of it comes from its own prefix."""
        own = {assignment.name: tuple(expander.value(assignment.value)) for assignment in command.assignments}
        return {**expander.state.exported(), **own}, frozenset(own)

    def external(self, command: Simple, fields: tuple[CommandWord, ...], expander: Expander) -> FlowStatus:
        """A command that is no builtin: a launch, a wrapper around shell text, or something else."""
        if asks_for_ascend(fields):
            return Flow.NEXT, False
        if self.capture is not None:
            output = command_output(fields, command, expander)
            if output is not None:
                self.capture.extend(output)
                return Flow.NEXT, True
            shown = fields[0].text.decode("utf-8", "replace")[:40]
            why = say("the output of {name}", name=shown)
            self.capture.append(unknown(OneWord(why) if fields[0].text in _ONE_WORD else why))
        wrote = self.heredoc_file(command, fields, expander)
        fields = filled_later(fields)
        found = self.find_command([item.text.decode("utf-8", "replace") for item in fields])
        if not wrote and (found is None or (found.kind == "program" and not found.trains)):
            may_write(command, fields, expander)
        environment, own = self.environment(command, expander)
        if found is not None:
            environment, own = wrapped_environment(found.wrapped, fields, environment, own)
        spoken = _of_its_text(environment, expander.text) if found is not None else frozenset()
        seen = {name: value for name, value in environment.items() if name not in spoken}
        number, state = len(self.commands), expander.state
        if found is not None and found.wrapped.folder is not None:
            word, start = found.wrapped.folder
            state = state.copy()
            state.go(cut(fields[word].pieces, start))
        stands = (command, expander.text, found, state.files, state.folder, state.changed, state.copies)
        self.commands.append(TracedCommand(number, fields, seen, own, *stands, self.anew, spoken, self.calls))
        self.words += _LAUNCH_COST * len(fields) if found is not None else 0
        for index, item in enumerate(fields if found is None or found.kind == "program" else ()):
            self.uses += [Use(place, number, index) for place in sources(item.pieces)]
        for name in own:
            self.uses += [Use(p, number, -1, "$" + name.decode("utf-8", "replace")) for p in sources(environment[name])]
        if found is not None and found.kind != "program":
            inside = self.shell_of_its_own({**environment, **of_the_job(found.wrapped, fields)}, state)
            for option in {item.text.partition(b"=")[0] for item in fields[: found.arguments]} & _VARIABLES:
                self.overwritten(inside, option.decode())
            if b"BASH_ENV" in environment:
                self.follow(environment[b"BASH_ENV"], inside)
            self.inner(found, fields, inside)
        elif found is None and fields[0].text in _READ_COMMANDS:
            self.fed(command, fields, environment, expander)
        return Flow.NEXT, None

    def fed(
        self,
        command: Simple,
        fields: tuple[CommandWord, ...],
        environment: Mapping[bytes, ShellValue],
        expander: Expander,
    ) -> None:
        """`bash <<EOF`, `bash < file`: shell text on the standard input of a shell of its own."""
        body = expander.heredoc(command)
        for redirect in command.redirects if body is None else ():
            if redirect.operator == b"<":
                inside = self.shell_of_its_own(environment, expander.state, dash.shell_of(fields))
                self.follow(expander.value(redirect.target), inside)
        if body is not None:
            inside = self.shell_of_its_own(environment, expander.state, dash.shell_of(fields))
            words = [word.literal() if isinstance(word, Word) else None for word in command.words]
            if b"-s" in words:
                given = [word for word in command.words[words.index(b"-s") + 1 :] if isinstance(word, Word)]
                given = given[given[:1] != [] and given[0].literal() in (b"--", b"-") :]
                inside.positional = tuple(item for word in given for item in expander.fields(word))
            self.nested(body, inside)

    def inner(self, found: LauncherMatch, fields: tuple[CommandWord, ...], inside: ShellState) -> None:
        """Shell text or a script file that a command runs in a shell of its own."""
        inside.positional = tuple(fields[found.arguments + 1 :])
        runner = dash.shell_of(fields[: found.arguments])
        if runner:
            self.run_by(runner, b"", inside)
        if found.kind == "text":
            inside.name = fields[found.arguments + 1].pieces if len(fields) > found.arguments + 1 else (Piece(b"bash"),)
            inside.positional = tuple(fields[found.arguments + 2 :]) or None
            item = fields[found.arguments]
            self.nested(cut(item.pieces, found.cut), inside, None if found.cut else item.home)
        else:
            inside.name = fields[found.arguments].pieces
            self.follow(inside.name, inside, executed=not runner)

    def shell_of_its_own(
        self, environment: Mapping[bytes, ShellValue], state: ShellState, shell: bytes | None = None
    ) -> ShellState:
        """What a shell that a command starts knows: the environment, and files that were written. `shell`: its name."""
        variables = {name: Variable(value, None, True) for name, value in environment.items()}
        inside = ShellState(variables, files=dict(state.files), script=state.script, folder=state.folder)
        inside.dash, inside.given_on = state.dash, state.given_on
        inside.functions = {name: body for name, body in state.functions.items() if name in state.given_on}
        inside.lost, inside.changed, inside.doubted = state.lost, state.changed, state.doubted
        inside.assigned, inside.batch, inside.known_end = set(state.assigned), state.batch, state.known_end
        inside.slurm, inside.copies = state.slurm, state.copies
        if shell is not None:
            self.run_by(shell, b"", inside)
        return inside

    def nested(self, pieces: ShellValue, state: ShellState, home: ByteRange | None = None) -> Flow:
        """Run a string as shell text; `home` is the word that it comes from."""
        if self.depth > MAX_DEPTH:
            return Flow.NEXT
        return self.inside(nested_text(pieces, home), state)

    def inside(self, text: Text, state: ShellState) -> Flow:
        """Follow a text that another one runs."""
        self.depth += 4
        if _BATCH.search(text.data):  # a job that is submitted
            state.slurm = {**batch_variables(text.data.decode(errors="replace")), **state.slurm}
        try:
            return self.block(dash.accepted(parse(text.data), text.data, state), text, state)
        finally:
            self.depth -= 4

    def follow(self, path: ShellValue, state: ShellState, *, executed: bool = False) -> Flow:
        """Run another script in `state`: one on disk, or one that this script wrote from a heredoc. `executed`: by the
        shell that its own first line names."""
        name = joined(path)
        written = state.files.get(state.path(name))
        if written is not None:
            if executed:
                self.run_by(b"", joined(written), state)
            return self.nested(written, state)
        loaded = self.load(name, state.folder) if self.depth < MAX_DEPTH else None
        shown = name.decode("utf-8", "replace")
        if loaded is None:
            written = state.files.get(posixpath.normpath(name))  # the folder may be a guess
            if written is not None:
                return self.nested(written, state)
            self.file_missing = True
            nameless = say("a script is run by this script and was not found; what it sets is not known.")
            named = say("{file} is run by this script and was not found; what it sets is not known.", file=shown)
            if posixpath.basename(name) in _SET_UP_SHELLS:
                self.notes.append(named)
            else:
                self.overwritten(state, shown or say("a script"), named if shown else nameless)
            return Flow.NEXT
        doc, data = loaded
        if executed:
            self.run_by(b"", data, state)
        certain = name.startswith(b"/") or not state.lost  # else it may be another file of that name
        if b"/" not in name and b"PATH" in state.variables:  # where `source` looks first
            certain = False
        if not certain or state.path(name) in state.changed:
            self.overwritten(state, shown, say("What {file} holds when the script runs it is not certain.", file=shown))
        state.assigned |= assigned_names(data)
        outer, state.source = state.source, joined(path)
        try:
            return self.inside(document_text(doc, data), state)
        finally:
            state.source = outer

    def call(self, name: bytes, command: Simple, fields: list[CommandWord], expander: Expander) -> Flow:
        state = expander.state
        body, text = state.functions[name]
        if self.depth > MAX_DEPTH:
            return Flow.NEXT
        saved, positional, inside = dict(state.variables), state.positional, state.inside_function
        outer, unsure, self.unsure = state.local_names, self.unsure, False
        for assignment in command.assignments:
            self.assign(assignment, expander, exported=True)
        state.positional, state.inside_function, state.local_names = tuple(fields[1:]), True, set()
        self.depth, self.calls = self.depth + 2, (*self.calls, command.start)
        self.last = True
        try:
            flow = self.block(body, text, state)
        finally:
            self.depth, self.calls = self.depth - 2, self.calls[:-1]
        self.last, self.unsure = None if self.unsure else self.last, unsure
        for local in state.local_names | {a.name for a in command.assignments}:
            state.variables.pop(local, None)
            if local in saved:
                state.variables[local] = saved[local]
        state.positional, state.inside_function, state.local_names = positional, inside, outer
        return Flow.EXIT if flow is Flow.EXIT else Flow.NEXT

    def heredoc_file(self, command: Simple, fields: tuple[CommandWord, ...], expander: Expander) -> bool:
        """`cat > file <<EOF`: remember what the script writes, for when it runs or reads it; whether it does so."""
        paths = [expander.value(r.target) for r in command.redirects if r.operator in WRITES]
        if fields[0].text == b"tee":
            paths = [item.pieces for item in fields[1:] if not item.text.startswith(b"-")]
        body = expander.heredoc(command) if paths and fields[0].text in (b"cat", b"tee") else None
        if body is not None:
            append = any(r.operator == b">>" for r in command.redirects) or b"-a" in [f.text for f in fields]
            from_outside = [place for place in sources(body) if place.context != "heredoc"]
            for path in paths:
                write(path, body, append, expander.state)
                if joined(path).endswith(_DATA):  # a script is followed where it runs
                    label = say("{file}, which the script writes", file=joined(path).decode("utf-8", "replace")[:80])
                    self.uses += [Use(place, -1, -1, label) for place in from_outside]
        return body is not None

    def substitute(self, text: Text, state: ShellState) -> ShellValue:
        """What `$( … )` would print, as far as it can be known."""
        if self.depth > MAX_DEPTH:
            return (unknown(say("a command nested too deeply")),)
        outer, self.capture = self.capture, []
        kept = len(self.commands), len(self.uses)
        try:
            self.inside(text, state.copy())
            out = self.capture
        finally:
            self.capture = outer
        if not any(c.found and c.found.trains for c in self.commands[kept[0] :]):
            del self.commands[kept[0] :]
            del self.uses[kept[1] :]
        return trimmed_end(tuple(out))


def _of_its_text(environment: Mapping[bytes, ShellValue], text: Text) -> frozenset[bytes]:
    """The variables of several words that a string which is run as shell text is made of."""
    told = ((name, joined(value).strip()) for name, value in environment.items() if text.nested and known(value))
    return frozenset(name for name, value in told if b" " in value and value in text.data)
