"""Holds what bash knows at one point of a script, and what following the script leaves behind."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.bash.syntax import Simple, Statements
from advisor.bash.text import ByteRange, Piece, ShellValue, Text, joined, known, sources, unknown

OUTSIDE = frozenset(
    b"HOME USER LOGNAME HOSTNAME PWD OLDPWD RANDOM SRANDOM SECONDS EPOCHSECONDS EPOCHREALTIME UID EUID PPID BASHPID "
    b"SHELL PATH LANG TERM TMPDIR HOSTTYPE OSTYPE MACHTYPE LINENO LD_LIBRARY_PATH PYTHONPATH SHLVL FUNCNAME PIPESTATUS "
    b"BASH_VERSION IFS".split()
)
"""Variables that the machine or the shell sets: known to exist, never known to us."""


class CommandWord(Struct, frozen=True):
    """One argument that a command gets. `home` is the text that makes exactly this argument, where there is one."""

    pieces: ShellValue
    home: ByteRange | None = None

    @property
    def text(self) -> bytes:
        """Its bytes, guesses included."""
        return joined(self.pieces)


class Variable(Struct, frozen=True):
    """A scalar's `value`, or an array's `elements` by index. Both None: declared but never set."""

    value: ShellValue | None = None
    elements: Mapping[bytes, CommandWord] | None = None
    exported: bool = False
    integer: bool = False
    """Declared with `-i`: what is assigned is an expression."""
    associative: bool = False
    """An array whose keys are names."""
    readonly: bool = False
    """Nothing can be assigned to it any more."""
    case: bytes = b""
    """Declared with `-l`, `-u` or `-c`: the letters of what is assigned are changed."""

    def with_elements(self, elements: Mapping[bytes, CommandWord]) -> Variable:
        """The same array with other elements: by their number where it is indexed, else as they were set."""
        numbered = all(key.isdigit() for key in elements)
        ordered = dict(sorted(elements.items(), key=lambda item: int(item[0]))) if numbered else elements
        return replace(self, value=None, elements=ordered)

    def without_element(self, key: bytes) -> Variable:
        """The same array without one element; a negative key counts from its end."""
        key = key.strip(b"'\"")
        if re.fullmatch(rb"-\d+", key):
            key = b"%d" % (int(key) + self.next_index)
        return self.with_elements({name: item for name, item in (self.elements or {}).items() if name != key})

    @property
    def next_index(self) -> int:
        """One more than the largest index of an array."""
        return max((int(key) for key in self.elements or () if key.isdigit()), default=-1) + 1

    def scalar(self) -> ShellValue | None:
        """What `$name` gives: the value, or element 0 of an array."""
        if self.elements is not None:
            first = self.elements.get(b"0")
            return None if first is None else first.pieces
        return self.value


class ShellState(Struct):
    """Variables, functions and positional arguments. `positional` None: not given, so nothing is known of them."""

    variables: dict[bytes, Variable] = field(default_factory=dict)
    functions: dict[bytes, tuple[Statements, Text]] = field(default_factory=dict)
    positional: tuple[CommandWord, ...] | None = None
    files: dict[bytes, ShellValue] = field(default_factory=dict)
    """Files that the script itself writes from heredocs."""
    script: bytes = b""
    """Path of the script as a guess for `$0`."""
    name: ShellValue | None = None
    """`$0` of a script that this script runs; None in the script itself."""
    known_end: bytes = b""
    """The end of `$0` that is the same however the script is started; empty where Slurm runs a copy of it."""
    batch: bool = False
    """Whether Slurm runs the script: it holds #SBATCH lines."""
    slurm: Mapping[bytes, bytes] = field(default_factory=dict)
    """Variables that Slurm sets by those lines."""
    source: bytes = b""
    """Path of the file that is being sourced as a guess for `$BASH_SOURCE`; empty in the script itself."""
    folder: bytes = b""
    """Where the script has gone with `cd`, as far as that can be guessed; empty: where it was started."""
    left: tuple[bytes, ...] = ()
    """Folders that `pushd` left, for `popd`, the last one last."""
    before: bytes = b""
    """The folder before the last `cd`, for `cd -`."""
    lost: bool = False
    """Whether `folder` is one of several, or only a guess: what it is called in relation to, nobody knows."""
    changed: frozenset[bytes] = frozenset()
    """Files that a command may have written since: what they hold is not what was read."""
    copies: Mapping[bytes, bytes] = field(default_factory=dict)
    """Files that are copies of others: `cp run.yaml /tmp/`."""
    doubted: bool = False
    """Whether something ran that may have set any variable: one that was not set before may have a value."""
    inside_function: bool = False
    dash: bool = False
    """Whether the shell that runs it is taken to be dash, and not bash."""
    ends_on_failure: bool = False
    """`set -e`, in dash: what it does not have ends the script."""
    exports: frozenset[bytes] = frozenset()
    """Names exported before they have a value."""
    given_on: frozenset[bytes] = frozenset()
    """Functions that the bash which a command starts finds, too (`export -f`)."""
    exports_all: bool = False
    """`set -a`: everything that is assigned is exported."""
    local_names: set[bytes] = field(default_factory=set)
    assigned: set[bytes] = field(default_factory=set)
    """Every name that the script sets anywhere: before that it is empty, not somebody else's."""
    may_be_given: set[bytes] = field(default_factory=set)
    """Names that the script leaves empty where they do not come from outside: `A=${A:-}`."""

    def copy(self) -> ShellState:
        """A state that can change on its own."""
        return replace(self, variables=dict(self.variables), functions=dict(self.functions), files=dict(self.files))

    def assign(self, name: bytes, value: ShellValue, exported: bool = False) -> None:
        """Set a scalar; an exported variable stays exported, one that is readonly what it is."""
        if (old := self.variables.get(name)) is not None and old.readonly:
            return
        self.variables[name] = Variable(value, None, exported or self.is_exported(name))

    def path(self, name: bytes) -> bytes:
        """A file as it is named here, from where the script was started."""
        return posixpath.normpath(posixpath.join(self.folder, name))

    def go(self, pieces: ShellValue) -> None:
        """To another folder, as far as its name is known or can be guessed; else where the script was started."""
        guessed = bool(pieces) and all(piece.text or not piece.reason for piece in pieces)
        target = joined(pieces) if guessed else b""
        searched = not target.startswith((b"/", b"./", b"../")) and target and b"CDPATH" in self.variables
        self.lost = bool(searched) or not target or (self.lost and not target.startswith(b"/"))
        self.folder = self.path(target) if target else b""

    def is_exported(self, name: bytes) -> bool:
        """Whether what is assigned to a name goes into the environment."""
        old = self.variables.get(name)
        return self.exports_all or name in self.exports or (old is not None and old.exported)

    def exported(self) -> dict[bytes, ShellValue]:
        """What a command finds in its environment, beside what its own prefix gives it."""
        return {n: v.scalar() or () for n, v in self.variables.items() if v.exported and v.elements is None}

    def become(self, other: ShellState) -> None:
        """Take over another state's content."""
        self.variables, self.functions = other.variables, other.functions
        self.positional, self.files, self.folder = other.positional, other.files, other.folder
        self.left, self.before, self.lost = other.left, other.before, other.lost
        self.changed, self.copies, self.doubted = other.changed, other.copies, other.doubted
        self.exports, self.exports_all, self.given_on = other.exports, other.exports_all, other.given_on


def merge(left: ShellState, right: ShellState, reason: str) -> ShellState:
    """The state after a condition that cannot be decided: what differs is not known."""
    out = left.copy()
    for name in {**left.variables, **right.variables}:
        a, b = left.variables.get(name), right.variables.get(name)
        if _same(a, b):
            continue
        if a is not None and b is not None and a.elements is not None and b.elements is not None:
            out.variables[name] = _either_array(a, a.elements, b.elements, reason)
            continue
        exported = bool(a and a.exported) or bool(b and b.exported)
        out.variables[name] = Variable((_either(a, b, reason),), None, exported)
    out.functions = {**right.functions, **left.functions}
    out.files = {**right.files, **left.files}
    out.folder = left.folder if left.folder == right.folder else b""
    out.lost = left.lost or right.lost or left.folder != right.folder
    out.changed, out.doubted = left.changed | right.changed, left.doubted or right.doubted
    out.copies = dict(left.copies.items() & right.copies.items())
    out.before = left.before if left.before == right.before else b""
    out.left = left.left if left.left == right.left else ()
    for path in left.files.keys() & right.files.keys():
        if _text(left.files[path]) != _text(right.files[path]):
            out.files[path] = (unknown(reason),)
    if left.positional != right.positional:
        out.positional = None
    return out


def _either_array(
    array: Variable, held: Mapping[bytes, CommandWord], other: Mapping[bytes, CommandWord], reason: str
) -> Variable:
    """An array that is one of two: the elements that both have are known, whatever is appended on one side."""
    merged = {}
    for key in {**held, **other}:
        a, b = held.get(key), other.get(key)
        same = a is not None and b is not None and _text(a.pieces) == _text(b.pieces)
        one_of = [Variable(word.pieces) for word in (a, b) if word is not None]
        merged[key] = a if same and a is not None else CommandWord((_either(one_of[0], one_of[-1], reason),))
    return array.with_elements(merged)


def _either(a: Variable | None, b: Variable | None, reason: str) -> Piece:
    """A value that is one of two; the last one known is the guess."""
    values = [v for variable in (a, b) if variable is not None and (v := variable.scalar())]
    deps = tuple(dict.fromkeys(place for value in values for place in sources(value)))
    guesses = [joined(value) for value in values if known(value)]
    return unknown(reason, deps, guesses[-1] if guesses else b"")


def _same(a: Variable | None, b: Variable | None) -> bool:
    if a is None or b is None or a is b:
        return a is b
    held, other = a.elements, b.elements
    if a.exported != b.exported or (held is None) != (other is None):
        return False
    if held is None or other is None:
        return _text(a.value) == _text(b.value)
    return list(held) == list(other) and all(_text(held[key].pieces) == _text(other[key].pieces) for key in held)


def _text(pieces: tuple[Piece, ...] | None) -> object:
    if pieces is None:
        return None
    return tuple((piece.reason, piece.text) for piece in pieces if piece.reason), b"".join(p.text for p in pieces)


Load = Callable[[bytes, bytes], "tuple[int, bytes] | None"]
"""(path, the folder that the script went to) → number and bytes of a document, or None where it is not found."""


Starts = Callable[[Sequence[ShellValue], bytes], "Iterable[ShellValue]"]
"""(a program and its words, the folder that the script went to) → shell text that does what it starts, best first."""


class Flow(Enum):
    """How a statement ended."""

    NEXT = auto()
    EXIT = auto()
    RETURN = auto()
    BREAK = auto()
    CONTINUE = auto()


class GivenVariable(Struct, frozen=True):
    """A variable that a wrapper gives: `NAME=value` in characters `start:end` of word `word`; None: to its end."""

    word: int
    start: int = 0
    end: int | None = None


class Wrapped(Struct):
    """What wrappers do to the environment. `runtime` is the word with Ray's runtime environment."""

    given: list[GivenVariable] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """Names of variables that are handed on all the same (`docker run -e NAME`)."""
    unknown: bool = False
    """`env` is given words of which nothing is known: any variable may be among them."""
    elsewhere: bool = False
    """The command does not inherit the shell's variables."""
    runtime: int | None = None
    folder: tuple[int, int] | None = None
    """Word and character from which on it names the folder that the command runs in (`env -C`)."""


class LauncherMatch(Struct, frozen=True):
    """What a command line runs. Numbers are indices into its words. `kind` "program": its arguments begin at
    `arguments`; "text": shell text stands in that word, from character `cut` on; "file": a shell script. `wrapped` says
    what the commands around it do to its environment."""

    kind: Literal["program", "text", "file"]
    program: str
    arguments: int
    launcher: tuple[int, int] = (0, 0)
    interpreter: str | None = None
    cut: int = 0
    wrapped: Wrapped = field(default_factory=Wrapped)
    trains: bool = False
    """Whether the program has the shape of a training entry point, and is not only asked for its help."""
    processes: int | None = None
    """Processes of a node that the launcher starts unless an option says how many; None: that depends."""


FindCommand = Callable[[Sequence[str]], "LauncherMatch | None"]
"""What the words of a command line run; None where that is nothing with a name."""


FlowStatus = tuple[Flow, "bool | None"]
"""How a statement ended, and its status: success, failure, or None where that is not known."""


class TracedCommand(Struct, frozen=True):
    """A command as it would be run. `simple` and `text` are where it is written."""

    number: int
    fields: tuple[CommandWord, ...]
    environment: Mapping[bytes, ShellValue]
    prefixes: frozenset[bytes]
    simple: Simple
    text: Text
    found: LauncherMatch | None
    files: Mapping[bytes, ShellValue]
    folder: bytes = b""
    """Where the script had gone with `cd` by then."""
    changed: frozenset[bytes] = frozenset()
    """Files that a command before it may have written."""
    copies: Mapping[bytes, bytes] = field(default_factory=dict)
    anew: Mapping[bytes, ByteRange | None] = field(default_factory=dict)
    """Variables that the loops around it may set in every round, and where the loop stands."""
    spoken: frozenset[bytes] = frozenset()
    """Exported variables of which its text is made (`bash -c "$CMD"`): the command itself, none of its settings."""
    calls: tuple[int, ...] = ()
    """Where the functions are called in which it stands, the outermost first."""

    @property
    def directory(self) -> str:
        """`folder`, as the system's calls take it."""
        return self.folder.decode("utf-8", "surrogateescape")


class Use(Struct, frozen=True):
    """A literal and what it has a part in: argument `field` of command `number`, or `label` where it is no command."""

    place: ByteRange
    number: int
    field: int
    label: str = ""


class ShellTrace(Struct, frozen=True):
    """What following a script leaves behind: the commands it would run, and what every literal has a part in."""

    commands: Sequence[TracedCommand]
    uses: Sequence[Use]
    notes: Sequence[str]
    whole: bool
    """Whether the script was followed to its end."""
    by_sh: bool = False
    """Whether `sh` runs some of it."""
    ended: str = ""
    """Why that shell, taken to be dash, ends before the end."""
