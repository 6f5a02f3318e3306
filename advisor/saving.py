"""Writes a patched script and the report that explains it; `fix` and the app save through here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from advisor.demo import is_bundled
from advisor.plan.patch import Patch, fits_name, report_name, same_file
from advisor.plan.solve import overrides_of
from advisor.regex import regex
from advisor.report.markdown_report import markdown_report
from advisor.script.document import EditRefused, Rewrite, ScriptError
from advisor.script.kept_changes import remember_changes
from advisor.script.launch import Script
from advisor.script.reader import read_again, read_script
from advisor.script.renamed import name_all, name_in_configs, name_itself
from advisor.script.write import refuse_changed, refuse_existing, write_all, write_file
from advisor.state import State

NewName = Callable[[Path], Path]


def named_for(patch: Patch, started: Path | None, output: str | None = None, here: Path | None = None) -> NewName:
    """How new files are called: NAME.fits.EXT beside the old ones, or in `here`; `output` for the launch script or the
    first file that changes, by what it ends in. Never into the program's own folder, where the demo lies."""
    own = changed = patch.rewrites[0].document.path
    if started is not None and Path(output or "").suffix == started.suffix != changed.suffix:
        own = started
    folder = Path() if here is None and is_bundled(changed) else here

    def named(path: Path) -> Path:
        beside = fits_name(path) if folder is None else folder / fits_name(path).name
        return Path(output) if output and same_file(path, own) else beside

    return named


class NewFiles(Struct, frozen=True):
    """All that a change writes."""

    files: dict[Path, Rewrite]
    """Where each goes, what was changed first in front; the launch script that names them last."""
    launch: Path | None = None
    """Where the launch script goes, where it names others."""
    proof: tuple[str, ...] = ()
    by_hand: str = ""
    """What to change in the launch script by hand first, where no word of it can be changed exactly."""

    @property
    def first(self) -> Path:
        return next(iter(self.files))

    @property
    def command(self) -> str:
        """The command that starts the run; "" where the launch script has to be changed by hand first."""
        return "" if self.by_hand else next_command(self.launch or self.first)


def new_files(
    started: Path | None,
    script: Script | None,
    index: int,
    rewrites: Sequence[Rewrite],
    named: NewName = fits_name,
    launches: Sequence[int] = (),
) -> NewFiles:
    """What is written of `rewrites`: config files that name others which change name the new ones, and so does the
    launch script (`started`); of its commands these `launches`, else the one with this index."""
    files = {named(one.document.path): one for one in rewrites}
    own = next((one for one in rewrites if started is not None and same_file(started, one.document.path)), None)
    others = {one.document.path: path for path, one in files.items() if one is not own}
    if started is None or script is None or not others:
        return NewFiles(files)
    try:
        first, documents = read_script(started), {one.path: one for one in script.documents}
        naming, left = name_in_configs(read_again(script, rewrites), 0 if script.starter else index, others)
        naming_too = {old: named(old) for old in naming if old not in others and not same_file(started, old)}
        files |= {named(old): Rewrite(documents[old], new, ()) for old, new in naming.items()}
        if not (left := {**left, **naming_too}):
            return NewFiles(files, named(started) if naming else None)
        told = launches or [script.starter.index if script.starter is not None else index]
        made = name_all(read_again(first, (own,)) if own is not None else first, told, left)
    except (EditRefused, ScriptError) as refusal:
        return NewFiles({named(one.document.path): one for one in rewrites}, by_hand=str(refusal))
    files[named(started)] = replace(made.rewrite, document=first.documents[0])
    return NewFiles(files, named(started), made.proof)


def write_new(made: NewFiles, force: bool, *beside: tuple[Path, bytes, None]) -> tuple[str, ...]:
    """Write them all, and others `beside` them, or none; what names others last. Returns what is worth a word.

    Raises FileExistsError before anything is written where one of them is there and `force` is False, and EditRefused
    where a file has changed since it was read, or starts itself by a name that cannot be changed.
    """
    for rewrite in made.files.values():
        refuse_changed(rewrite.document)
    for path in [*made.files, *(one[0] for one in beside)]:
        refuse_existing(path, force)
    ordered = sorted(made.files.items(), key=lambda one: one[0] == (made.launch or made.first))
    named_as = {path: name_itself(rewrite, path) for path, rewrite in ordered}
    files = [(path, named_as[path][0], rewrite.document.path) for path, rewrite in ordered]
    notes = write_all([*beside, *files], force=force)
    return (*notes, *(told for _, all_told in named_as.values() for told in all_told))


def save(state: State, made: NewFiles, force: bool) -> tuple[Path, tuple[str, ...]]:
    """Write what changes, and the Markdown report beside it; returns where that is, and what `write_new` does."""
    report, chosen = report_name(made.first), state.plan.selected()
    before = {
        key: change.old
        for one in chosen
        for change in one.changes
        for key in overrides_of([replace(one, changes=(change,))])
    }
    notes = write_new(made, force, (report, markdown_report(state, made.first.name).encode(), None))
    remember_changes(before, [one.document.path for one in made.files.values()], made.files)
    return report, notes


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
