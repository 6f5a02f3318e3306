"""Writes a record of `watch` as CSV for other programs, as SVG for a page."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

from advisor.commands.streams import emit, tell, usable
from advisor.exits import Exit, Refusal
from advisor.hostile import clean_line
from advisor.language import say
from advisor.report.record_plot import svg, write_csv
from advisor.script.write import write_file
from advisor.watch.recording import read_record


def export(parsed: argparse.Namespace) -> int:
    """Write what was asked for; "-" is standard output. Raises Refusal."""
    if not parsed.record:
        raise Refusal(say("--csv and --svg write what a --record DIR holds: give one"))
    recording = usable(lambda: read_record(Path(parsed.record)))
    if parsed.csv:
        text = io.StringIO(newline="")
        write_csv(recording, text)
        _write(parsed.csv, text.getvalue())
    if parsed.svg:
        _write(parsed.svg, svg(recording))
    return Exit.DONE


def _write(name: str, text: str) -> None:
    if name == "-":
        emit(text)
        return
    path = Path(name)
    if path.exists() or path.is_symlink():
        raise Refusal(say("{file}: it is there already; give another name", file=clean_line(name)))
    usable(lambda: write_file(path, text.encode("utf-8", "replace"), 0o644, force=False))
    tell(say("written {file}", file=clean_line(name)))
