"""Writes a patched script and the report that explains it; `fix` and the app save through here."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from advisor.demo import is_bundled
from advisor.exits import Refusal
from advisor.hostile import clean_line
from advisor.language import listed, say
from advisor.plan.patch import Patch, fits_name, report_name, same_file
from advisor.regex import regex
from advisor.report.markdown_report import markdown_report
from advisor.script.document import EditRefused, Rewrite, ScriptError
from advisor.script.reader import read_script
from advisor.script.renamed import Renamed, name_instead
from advisor.script.write import refuse_changed, refuse_existing, write_file
from advisor.state import State


def destination_of(patch: Patch, output: str | None, here: bool) -> Path:
    """Where the patched file goes: as asked, else NAME.fits.EXT beside the file that changes, or `here`.

    Never into the program's own folder, where the demo lies.
    """
    if output:
        return Path(output)
    changed = only_rewrite(patch.rewrites).document.path
    beside = fits_name(changed)
    return Path(beside.name) if here or is_bundled(changed) else beside


def only_rewrite(rewrites: tuple[Rewrite, ...]) -> Rewrite:
    """The one file that changes. Raises Refusal where several would: a copy of one would not load the others."""
    first, *others = rewrites
    if others:
        names = listed(clean_line(str(rewrite.document.path), 200) for rewrite in rewrites)
        raise Refusal(say("the changes are decided in several files ({files}); only one can be written", files=names))
    return first


class Starter(Struct, frozen=True):
    """The launch script that starts another file, which is the one that changes: it has to name the new one."""

    path: Path
    """Where the script goes that names it."""
    made: Renamed | None = None
    by_hand: str = ""
    """What to change in the launch script by hand first, where no word of it can be changed exactly."""

    @property
    def written(self) -> Path | None:
        return self.path if self.made is not None else None


def starter_of(state: State, patch: Patch, destination: Path, beside: Path | None = None) -> Starter | None:
    """The launch script with the name of the new file, to be written as `beside` (else NAME.fits.EXT); None where what
    changes is what is started."""
    started, changed = state.asked.script, only_rewrite(patch.rewrites).document.path
    if started is None or state.script is None or same_file(started, changed):
        return None
    launch = state.script.starter.index if state.script.starter is not None else state.launch_index
    names = {"script": clean_line(started.name), "file": clean_line(changed.name), "new": clean_line(destination.name)}
    path = beside or fits_name(started)
    try:
        return Starter(path, name_instead(read_script(started), launch, changed, destination))
    except (EditRefused, ScriptError) as refusal:
        told = say("{script} still reads {file}: name {new} there ({why})", why=str(refusal), **names)
        return Starter(path, by_hand=told)


class Written(Struct, frozen=True):
    """A patched script's report, and what is worth a word about the files."""

    report: Path
    notes: tuple[str, ...] = ()


def save(state: State, patch: Patch, destination: Path, force: bool, starter: Starter | None = None) -> Written:
    """Write the script, the launch script that names it (`starter`), and the Markdown report beside it.

    Raises FileExistsError before anything is written where one of them is there and `force` is False, and EditRefused
    where a file has changed since it was read.
    """
    new = [(destination, only_rewrite(patch.rewrites))]
    if starter is not None and starter.made is not None:
        new.append((starter.path, starter.made.rewrite))
    report = report_name(destination)
    for path, rewrite in new:
        refuse_changed(rewrite.document)
        refuse_existing(path, force)
    refuse_existing(report, force)
    notes: list[str] = []
    for path, rewrite in new:
        notes += write_file(path, rewrite.new, force=force, like=rewrite.document.path)
    write_file(report, markdown_report(state, destination.name).encode(), force=force)
    return Written(report, tuple(notes))


def save_report(state: State, destination: Path, force: bool) -> Path:
    """Write the Markdown report and nothing else; returns its path. Raises FileExistsError as `save` does."""
    refuse_existing(destination, force)
    name = state.asked.script.name if state.asked.script is not None else destination.name
    write_file(destination, markdown_report(state, name).encode(), force=force)
    return destination


_RUNNERS = {".sh": "bash", ".bash": "bash", ".slurm": "sbatch", ".sbatch": "sbatch", ".py": "python"}


_ASKS_SLURM = regex(rb"^#SBATCH\s", re.MULTILINE)


def next_command(script: Path | None) -> str:
    """The command that starts a run; "" where there is no script."""
    if script is None:
        return ""
    with suppress(OSError):
        if _ASKS_SLURM.search(script.read_bytes()):
            return f"sbatch {shlex.quote(str(script))}"
    return f"{_RUNNERS.get(script.suffix, '')} {shlex.quote(str(script))}".strip()


def command_for(destination: Path, starter: Starter | None) -> str:
    """The command that starts the patched run; "" where the launch script has to be changed by hand first."""
    return next_command(destination if starter is None else starter.written)
