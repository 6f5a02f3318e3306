"""Lists the records of `watch` with how they ended, and writes one as CSV for other programs, as SVG for a page."""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.arguments import add_ascii, add_format
from advisor.exits import Exit, Refusal
from advisor.hostile import clean_line
from advisor.language import listed, say

if TYPE_CHECKING:
    from advisor.watch.listing import ListedRecord


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR", help=say("folder of the records (default: .)"))
    add_ascii(parser)
    add_format(parser, "text", "json")


def run(parsed: argparse.Namespace) -> int:
    """Print a line a record, the oldest first, and below it what was changed. Exit 4 where there are none."""
    from advisor.commands.streams import emit, usable
    from advisor.report.json_report import encode
    from advisor.watch.listing import list_records

    found = usable(lambda: list_records(Path(parsed.folder)))
    if not found:
        told = say("there is no record of `watch` in {folder}", folder=clean_line(parsed.folder))
        raise Refusal(told, Exit.NOTHING_FOUND)
    if parsed.format == "json":
        emit(encode({"records": [_as_json(record) for record in found]}) + "\n", parsed.ascii)
        return Exit.DONE
    emit("".join(f"{line}\n" for record in found for line in _lines(record)), parsed.ascii)
    return Exit.DONE


def _lines(record: ListedRecord) -> Iterator[str]:
    import time

    from advisor.units import show_clock

    begun = time.strftime("%Y-%m-%d %H:%M", time.localtime(record.began))
    step = say(", step {step}", step=record.step) if record.step is not None else ""
    yield f"{clean_line(record.folder.name)}  {begun}  {show_clock(int(record.length))}  {record.ended}{step}"
    if record.after:
        told = {"number": record.attempt, "after": record.after, "changes": listed(record.changed)}
        yield "  " + say("attempt {number}, after {after}: {changes}", **told)


def _as_json(record: ListedRecord) -> dict[str, Any]:
    from advisor.report.layout import fields_of

    return {
        "folder": str(record.folder),
        "began": record.began,
        "seconds": record.length,
        "command": list(record.command),
        "end": record.end,
        **fields_of(record, "runs attempt"),
        "after": record.after or None,
        **fields_of(record, "changed from_step step verdict memory phase"),
    }


# --- one record, for other programs ----------------------------------------------------------------------------------


def export(parsed: argparse.Namespace) -> int:
    """Write what was asked for; "-" is standard output. Raises Refusal."""
    from advisor.commands.streams import usable
    from advisor.report.record_plot import svg, write_csv
    from advisor.watch.recording import read_record

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
    from advisor.commands.streams import emit, tell, usable
    from advisor.script.write import write_file

    if name == "-":
        emit(text)
        return
    path = Path(name)
    if path.exists() or path.is_symlink():
        raise Refusal(say("{file}: it is there already; give another name", file=clean_line(name)))
    usable(lambda: write_file(path, text.encode("utf-8", "replace"), force=False))
    tell(say("written {file}", file=clean_line(name)))
