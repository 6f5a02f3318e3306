"""Writes a patched script and the report that explains it; `fix` and the app save through here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from advisor.demo import is_bundled
from advisor.plan.patch import Patch, fits_name, report_name, same_file
from advisor.regex import regex
from advisor.report.markdown_report import markdown_report
from advisor.script.document import EditRefused, Rewrite, ScriptError
from advisor.script.reader import read_again, read_script
from advisor.script.renamed import Renamed, name_all, name_itself
from advisor.script.write import refuse_changed, refuse_existing, write_all, write_file
from advisor.state import State

NewName = Callable[[Path], Path]


def destination_of(patch: Patch, output: str | None, here: bool) -> Path:
    """Where the patched file goes, the launch script where that is one of several: as asked, else NAME.fits.EXT beside
    the file that changes, or `here`.

    Never into the program's own folder, where the demo lies.
    """
    if output:
        return Path(output)
    changed = patch.rewrites[0].document.path
    beside = fits_name(changed)
    return Path(beside.name) if here or is_bundled(changed) else beside


class Starter(Struct, frozen=True):
    """The launch script that starts or reads other files which change: it has to name the new ones."""

    path: Path
    """Where the script goes that names them."""
    made: Renamed | None = None
    by_hand: str = ""
    """What to change in the launch script by hand first, where no word of it can be changed exactly."""

    def beside(self, destination: Path) -> Path | None:
        """Where it goes, if that is a file of its own."""
        return self.path if self.made is not None and self.path != destination else None


def starter_of(state: State, patch: Patch, destination: Path, named: NewName = fits_name) -> Starter | None:
    """The launch script with the names of the new files, `destination` and those that `named` makes; with its own
    changes, where it has any. None where what changes is what is started, alone."""
    started = state.asked.script
    own = next((one for one in patch.rewrites if started and same_file(started, one.document.path)), None)
    new_of = {one.document.path: new for new, one in new_files(patch, destination, None, named).items() if one != own}
    if started is None or state.script is None or not new_of:
        return None
    launch = state.script.starter.index if state.script.starter is not None else state.launch_index
    path = named(started) if own is None else destination
    try:
        first = read_script(started)
        made = name_all(read_again(first, (own,)) if own is not None else first, [launch], new_of)
    except (EditRefused, ScriptError) as refusal:
        return Starter(path, by_hand=str(refusal))
    return Starter(path, replace(made, rewrite=replace(made.rewrite, document=first.documents[0])))


class Written(Struct, frozen=True):
    """A patched script's report, and what is worth a word about the files."""

    report: Path
    notes: tuple[str, ...] = ()


def save(
    state: State,
    patch: Patch,
    destination: Path,
    force: bool,
    starter: Starter | None = None,
    named: NewName = fits_name,
) -> Written:
    """Write what changes, the launch script that names it (`starter`) last, and the Markdown report beside it: all of
    them or none.

    Raises FileExistsError before anything is written where one of them is there and `force` is False, and EditRefused
    where a file has changed since it was read, or starts itself by a name that cannot be changed.
    """
    new, report = new_files(patch, destination, starter, named), report_name(destination)
    for path, rewrite in new.items():
        refuse_changed(rewrite.document)
        refuse_existing(path, force)
    refuse_existing(report, force)
    last = starter.path if starter is not None else destination  # nothing names a file that is not there yet
    written = sorted(new, key=lambda path: path == last)
    named_as = {path: name_itself(new[path], path) for path in written}
    files = [(path, named_as[path][0], new[path].document.path) for path in written]
    notes = write_all([(report, markdown_report(state, destination.name).encode(), None), *files], force=force)
    return Written(report, (*notes, *(told for _, all_told in named_as.values() for told in all_told)))


def new_files(
    patch: Patch, destination: Path, starter: Starter | None = None, named: NewName = fits_name
) -> dict[Path, Rewrite]:
    """All that is written of a patch but the report, and what goes into each file; a launch script of its own last."""
    new = {named(one.document.path) if number else destination: one for number, one in enumerate(patch.rewrites)}
    return {**new, starter.path: starter.made.rewrite} if starter is not None and starter.made is not None else new


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
    return (
        "" if starter is not None and starter.made is None else next_command(starter.path if starter else destination)
    )
