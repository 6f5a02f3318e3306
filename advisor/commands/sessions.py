"""Opens the session that a command works on: what its arguments ask for, or one that was kept."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from msgspec.structs import replace

from advisor import session
from advisor.commands.inputs import sort_files, take_newest
from advisor.commands.requests import asked_from
from advisor.commands.streams import tell, usable
from advisor.exits import Refusal
from advisor.hostile import clean_line
from advisor.language import listed, say
from advisor.session_store import SavedSession, kept, load, with_switches
from advisor.state import State
from advisor.words import os_words


def kept_session(name: str) -> SavedSession:
    """The session kept in the file `name`, "" the last one of this folder. Raises Refusal where there is none."""
    if not name:
        return _last_here()
    path = Path(name)
    try:
        return load(path)
    except ValueError as error:
        raise Refusal(str(error)) from error
    except OSError as error:
        raise Refusal(f"{path}: {os_words(error)}") from error


def _last_here() -> SavedSession:
    """The last session of this folder: another folder's is named, and never opened for it."""
    last: tuple[Path, SavedSession] | None = None
    for path, found in kept():
        if found.belongs_to(Path.cwd()):
            return found
        last = last or (path, found)
    if last is None:
        raise Refusal(say("no session was kept yet: there is nothing to resume"))
    told = {"run": clean_line(last[1].run), "file": shlex.quote(clean_line(str(last[0])))}
    raise Refusal(
        say("no session of this folder was kept; the last one elsewhere is of {run}: --resume {file} opens it", **told)
    )


def open_state(parsed: argparse.Namespace, needs_script: bool = False, planned: bool = True) -> State:
    """The session on what was given, or the app's with the answers and switches made there. Raises Refusal."""
    if getattr(parsed, "replay", None) is not None:
        found = kept_session(parsed.replay)
        return usable(lambda: with_switches(session.open_session(found.asked), found.switched, found.numbers))
    sort_files(parsed)
    if taken := take_newest(parsed):
        tell(taken)
    asked = asked_from(parsed)
    if needs_script and asked.script is None and parsed.files:
        raise Refusal(
            say("{files}: there is no launch script", files=listed(clean_line(one, 80) for one in parsed.files))
        )
    if needs_script and asked.script is None:
        raise Refusal(say("give the SCRIPT that starts the run, or --demo (diagnose takes a log alone)"))
    asked = replace(asked, planned=planned, cards_named=needs_script)
    return usable(lambda: session.open_session(asked, needs_script=needs_script))
