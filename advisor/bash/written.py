"""Keeps count of the files that a script writes: what they hold, and which of them nobody knows any more."""

from __future__ import annotations

from advisor.bash.expand import Expander
from advisor.bash.state import CommandWord, ShellState
from advisor.bash.syntax import Simple
from advisor.bash.text import ShellValue, bounded, joined, known
from advisor.regex import regex

_LONGEST_PATH = 1_000
WRITES = (b">", b">>", b">|", b"&>", b"&>>")
"""Redirections into a file."""
_ONLY_READ = frozenset(
    b"cat grep egrep ls head tail wc diff cmp stat file less chmod chown mkdir touch find which realpath readlink "
    b"basename dirname md5sum sha256sum du awk cut sort uniq tr xargs git pip dos2unix".split()
)
"""Commands that leave what is in the files that they are given, so far as bash would read it."""
_WRITES_LAST = {b"cp", b"mv", b"ln", b"install", b"rsync"}
_IN_PLACE = regex(rb"-[a-zA-Z]*i|--in-?place")


def may_write(command: Simple, fields: tuple[CommandWord, ...], expander: Expander) -> None:
    """Files that a command of which we know no more writes, or may write: what was read of them counts no more."""
    state, name, texts = expander.state, fields[0].text, [item.text for item in fields[1:]]
    written = [joined(expander.value(r.target)) for r in command.redirects if r.operator in WRITES]
    if name in _WRITES_LAST or any(_IN_PLACE.match(text) for text in texts if name in (b"sed", b"perl", b"yq")):
        written += texts[-1:]
    for path in map(state.path, written):
        state.files.pop(path, None)
    named = [] if name in _ONLY_READ else [text for text in texts if not text.startswith(b"-") and b"." in text]
    state.changed |= {state.path(text) for text in (*written, *named) if len(text) < _LONGEST_PATH}


def write(path: ShellValue, body: ShellValue, append: bool, state: ShellState) -> None:
    """What a file of the script holds from here on."""
    if known(path) and len(joined(path)) < _LONGEST_PATH:
        name = state.path(joined(path))
        before = state.files.pop(name, ()) if append else ()
        state.files.pop(name, None)
        state.files[name] = bounded((*before, *body))
        state.changed -= {name}
