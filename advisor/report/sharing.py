"""Removes names of people, hosts and addresses from a report that leaves the machine."""

from __future__ import annotations

import os
import re

from advisor.hostile import clean_line
from advisor.redact import is_hiding, redact
from advisor.regex import regex

_ADDRESS = regex(r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}\b", re.IGNORECASE)
_MAIL = regex(r"[\w.+-]+@(?!v\d+\.\d)[\w-]+(?:\.[\w-]+)+")
"""`name@v0.9.0` is a release of a repository, as sources name it."""
_HOST = regex(r"\b(?:ip=|host(?:name)?[=:]\s*|node[=:]\s*)[^\s,)]+", re.IGNORECASE)
_FOLDERS = regex(r"(?<![\w.:/])[~.]{0,2}/(?:[^\s/,;:()'\"]+/)+")
_LONG_ID = regex(r"\b[0-9a-f]{24,}\b")
_HOMES = regex(r"(?<![\w.])/(?:home|Users)/[^/\s'\"`]+|(?<![\w.])/root(?=/)")


def shareable(text: str) -> str:
    """`text` with homes as "~" and hosts, addresses and mail as "…"; as it stands after `--no-redact`."""
    if not is_hiding():
        return text
    own = os.path.expanduser("~")
    if len(own) > 1 and own != "~":
        text = re.sub(rf"{re.escape(own)}(?![\w.-])", "~", text)
    text = _HOMES.sub("~", text)
    for pattern, instead in ((_HOST, "host=…"), (_MAIL, "…"), (_ADDRESS, "…")):
        text = pattern.sub(instead, text)
    return text


def anonymous(text: str) -> str:
    """Without secrets, addresses, mail, host names, long ids, and with folders cut to the file's name."""
    text = redact(clean_line(text))
    for pattern, instead in ((_HOST, "host=..."), (_MAIL, "..."), (_ADDRESS, "..."), (_LONG_ID, "...")):
        text = pattern.sub(instead, text)
    return _FOLDERS.sub("", text)
