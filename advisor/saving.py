"""Writes a patched script and the report that explains it; `fix` and the app save through here."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from advisor.exits import Refusal
from advisor.hostile import clean_line
from advisor.language import listed, say
from advisor.plan.patch import Patch, fits_name, report_name
from advisor.report.markdown_report import markdown_report
from advisor.script.document import Rewrite
from advisor.script.write import refuse_changed, refuse_existing, write_file
from advisor.state import State


def destination_of(patch: Patch, output: str | None, here: bool) -> Path:
    """Where the patched file goes: as asked, else NAME.fits.EXT beside the file that changes, or `here`."""
    if output:
        return Path(output)
    beside = fits_name(only_rewrite(patch.rewrites).document.path)
    return Path(beside.name) if here else beside


def only_rewrite(rewrites: tuple[Rewrite, ...]) -> Rewrite:
    """The one file that changes. Raises Refusal where several would: a copy of one would not load the others."""
    first, *others = rewrites
    if others:
        names = listed(clean_line(str(rewrite.document.path), 200) for rewrite in rewrites)
        raise Refusal(say("the changes are decided in several files ({files}); only one can be written", files=names))
    return first


class Written(Struct, frozen=True):
    """A patched script's report, and what is worth a word about the script itself."""

    report: Path
    notes: tuple[str, ...] = ()


def save(state: State, patch: Patch, destination: Path, force: bool) -> Written:
    """Write the script and the Markdown report beside it.

    Raises FileExistsError before anything is written where either is there and `force` is False, and EditRefused where
    a file has changed since it was read.
    """
    rewrite, report = only_rewrite(patch.rewrites), report_name(destination)
    document = rewrite.document
    refuse_changed(document)
    refuse_existing(destination, force)
    refuse_existing(report, force)
    notes = write_file(destination, rewrite.new, force=force, like=document.path)
    write_file(report, markdown_report(state, destination.name).encode(), force=force)
    return Written(report, notes)


def save_report(state: State, destination: Path, force: bool) -> Path:
    """Write the Markdown report and nothing else; returns its path. Raises FileExistsError as `save` does."""
    refuse_existing(destination, force)
    name = state.asked.script.name if state.asked.script is not None else destination.name
    write_file(destination, markdown_report(state, name).encode(), force=force)
    return destination


_RUNNERS = {".sh": "bash", ".bash": "bash", ".slurm": "sbatch", ".sbatch": "sbatch", ".py": "python"}


def next_command(script: Path | None) -> str:
    """The command that starts a run; "" where there is no script."""
    if script is None:
        return ""
    return f"{_RUNNERS.get(script.suffix, '')} {script}".strip()
