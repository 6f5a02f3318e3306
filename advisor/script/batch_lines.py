"""Finds and changes the limit of a job: an option of the script's #SBATCH lines, or of the command that starts it."""

from __future__ import annotations

import re

from advisor.bash.batch_options import started_under
from advisor.regex import regex
from advisor.script.document import Changes, Document, EditRequest, comment_text, refused

_PLAIN = regex(r"[\w.:-]+")


def job_option(data: bytes, option: str) -> tuple[int, int] | None:
    """Where the value of an option stands that limits the job; None without."""
    place = _of_slurm(data, option)
    if place is None and (found := started_under(data)) is not None and found.option == option and found.is_alone:
        place = found.start, found.start + len(found.text)
    return place


def _of_slurm(data: bytes, option: str) -> tuple[int, int] | None:
    """Where the value stands that Slurm takes for an option: its last one before the first command."""
    named = re.compile(rb"(?<=\s)" + re.escape(option.encode()) + rb"(?:=|[ \t]+)(?P<value>[\w.:-]+)(?=\s|\Z)")
    found: tuple[int, int] | None = None
    at = 0
    for line in data.splitlines(keepends=True):
        if line.strip() and not line.startswith(b"#"):
            break
        if re.match(rb"#SBATCH\s", line):
            for match in named.finditer(line.partition(b" #")[0] + b"\n"):
                found = at + match.start("value"), at + match.end("value")
        at += len(line)
    return found


def edit_job_option(document: Document, wanted: EditRequest, changes: Changes) -> None:
    """Give an option of the #SBATCH lines another value. Raises EditRefused."""
    place = job_option(document.data, wanted.key)
    if place is None or not isinstance(wanted.value, str) or not _PLAIN.fullmatch(wanted.value):
        raise refused("{file} sets no {key} that could be changed.", wanted.key, file=document.path)
    changes.replace(0, *place, wanted.value.encode(), wanted.key)
    found = started_under(document.data)
    begun = found is not None and place[0] == found.start
    line = found.command if found is not None and begun else document.data.rfind(b"\n", 0, place[0]) + 1
    newline = b"\r\n" if document.data[line:].partition(b"\n")[0].endswith(b"\r") else b"\n"
    changes.replace(0, line, line, b"# " + comment_text(wanted.comment) + newline)
