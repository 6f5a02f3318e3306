"""Opens the session that a command works on: what its arguments ask for, or one that was kept."""

from __future__ import annotations

import argparse
from pathlib import Path

from msgspec.structs import replace

from advisor import session
from advisor.commands.inputs import sort_files, take_newest
from advisor.commands.requests import asked_from
from advisor.commands.streams import tell, usable
from advisor.exits import Refusal
from advisor.hostile import clean_line
from advisor.language import listed, say
from advisor.session_store import SavedSession, latest, load, with_switches
from advisor.state import State
from advisor.words import os_words


def kept_session(name: str) -> SavedSession:
    """The session kept in the file `name`, "" the last one. Raises Refusal where there is none."""
    path = Path(name) if name else latest()
    if path is None:
        raise Refusal(say("no session was kept yet: there is nothing to resume"))
    try:
        return load(path)
    except ValueError as error:
        raise Refusal(str(error)) from error
    except OSError as error:
        raise Refusal(f"{path}: {os_words(error)}") from error


def open_state(parsed: argparse.Namespace, needs_script: bool = False, planned: bool = True) -> State:
    """The session on what was given, or the app's with the answers and switches made there. Raises Refusal."""
    if getattr(parsed, "replay", None) is not None:
        kept = kept_session(parsed.replay)
        return usable(lambda: with_switches(session.open_session(kept.asked), kept.switched, kept.numbers))
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
    return usable(lambda: session.open_session(replace(asked, planned=planned), needs_script=needs_script))
