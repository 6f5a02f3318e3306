"""Defines a launch, one training command as bash would run it. `read_script` of script/reader.py builds it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from advisor.hostile import clean
from advisor.language import say
from advisor.script.document import Document, Setting, Span

MOST_TEXT = 200_000
"""Characters of a launch file in which words are looked for."""


class NotFound(Struct, frozen=True):
    """A config file that a launch names and that is not there."""

    key: str
    """The option that names it, as written; "" for a bare word."""
    file: str
    holds: str = ""
    """Whose settings it has: "accelerate", "deepspeed", "fsdp"; "": the run's own."""
    sought: bool = True
    """False: a log alone names it, and no file that a log names is opened."""

    @property
    def absent(self) -> str:
        """What goes with its name in a sentence."""
        return say("was not found") if self.sought else say("was not given")

    @property
    def note(self) -> str:
        """Who names it, as a sentence."""
        if self.key:
            return say("{key} names {file}, which {absent}.", key=self.key, file=self.file, absent=self.absent)
        return say("The launch names {file}, which {absent}.", file=self.file, absent=self.absent)


class Launch(Struct, frozen=True):
    """argv and environment of one command, its settings in order of precedence (file before command line).

    `program` is what runs: a module ("verl.trainer.main_ppo"), a file ("train.py") or "swift rlhf"; for a config file
    given instead of a script it is "" and `settings` are the file's own.
    `argv` holds None where a word could not be resolved.
    `interpreter` is the python the command names, when it names one by path ("/opt/env/bin/python3").
    """

    index: int
    program: str
    argv: tuple[str | None, ...]
    environment: Mapping[str, str]
    settings: tuple[Setting, ...]
    span: Span | None = None
    launcher: Mapping[str, str] = field(default_factory=dict)
    """Options of torchrun, accelerate or deepspeed before the program, keys with their dashes."""
    interpreter: str | None = None
    files: tuple[str, ...] = ()
    """Paths of config files that the settings come from."""
    bases: tuple[str, ...] = ()
    """Base classes of the config dataclass, where the launch is a Python file."""
    notes: tuple[str, ...] = ()
    """Warnings about the launch itself: "line 14: NCCL_DEBUG is set but not exported …"."""
    exports: tuple[Setting, ...] = ()
    """The environment as settings, each with the literal that decides it."""
    missing: tuple[str, ...] = ()
    """Config files that decide settings of the run and were not found: what they set is not at its default."""
    leaves_open: bool = False
    """There may be settings that are not listed: arguments from outside, or a file that was not found."""
    cuts: tuple[str, ...] = ()
    """Sentences on what the text of the command loses, or would lose in bash: a missing `\\`, a comment, its end."""
    lost: tuple[str, ...] = ()
    """Those of them that tell what the program was not given, although the text holds it."""
    maybe_lost: tuple[str, ...] = ()
    """That of them on the only line that ends the command too early: the file that ran may be so, too."""
    partial: bool = False
    """Only a part of the launch was given: what stands above or below that part is not known."""
    never_run: str = ""
    """Why bash runs no such command, in a sentence: it cannot parse the script."""
    folder: str = ""
    """Where the script has gone with `cd` before the command, as far as that can be guessed."""

    launcher_unread: tuple[str, ...] = ()
    """Options of the launcher whose value is not known: "--nproc_per_node" of `$WORKERS`; "" for words of which nothing
    is known, which may be any options."""
    spreads: str = ""
    """What starts a process on every card unless it is told a number: "accelerate"."""
    processes: int | None = None
    """Processes of a node that start because nothing says how many: torchrun's one; None elsewhere."""
    hints: tuple[str, ...] = ()
    """Name of a script that was not found, and the bare words it is given: all that is known of this launch."""
    prose: tuple[str, ...] = ()
    """Words of the text, each once, where it is what a person wrote and no file that anything runs."""
    not_found: tuple[NotFound, ...] = ()
    """Every config file that the launch names and that is not there."""
    loose: tuple[str | None, ...] = ()
    """Arguments that belong to no setting; None where one is not known."""

    def effective(self) -> dict[str, Setting]:
        """key → the setting in force."""
        return {setting.key: setting for setting in self.settings if setting.effective}


_RANKS = ("node_rank", "machine_rank", "group_rank")
_MACHINES = ("nnodes", "num_machines", "num_nodes")


def one_training(launch: Launch, other: Launch) -> bool | None:
    """Whether two launches are one training, each on a machine of its own: they differ in the rank alone. None: they
    may be, for they differ in other words, too, or in none where several machines train."""
    if launch.program != other.program or not launch.argv or launch.span == other.span:
        return False
    told = [{**one.environment, **one.launcher, **{s.key: s.text for s in one.settings}} for one in (launch, other)]
    mine, its = ({key.lstrip("-").replace("-", "_").lower(): text for key, text in one.items()} for one in told)
    keys = {one.key for each in (launch, other) for one in each.settings}
    alike = all(told[0].get(key) == told[1].get(key) for key in keys if key.lstrip("-").replace("-", "_") not in _RANKS)
    if any(mine.get(key) != its.get(key) for key in _RANKS):
        return True if alike else None
    several = any(mine.get(key, "1").rpartition(":")[2] != "1" for key in _MACHINES)
    return None if several and alike and launch.launcher == other.launcher else False


class Script(Struct, frozen=True):
    """A launch file with every file it was followed into, and the launches found in it."""

    documents: tuple[Document, ...]
    """The given file first."""
    launches: tuple[Launch, ...]
    notes: tuple[str, ...] = ()
    positional: tuple[str, ...] = ()
    """Arguments that the script was read with."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that a Python file was read with: those of the command that runs it."""
    others: tuple[tuple[str | None, ...], ...] = ()
    """The words of the commands that are no launch: what a change leaves as it is, too."""
    hinted: Launch | None = None
    """What is known of a script that this one runs and that was not found, where it starts no launch itself."""
    by_sh: bool = False
    """Whether `sh` runs some of it, which may be dash."""
    ended: str = ""
    """Why that shell ends before the end, where it was read as dash reads it."""
    starter: Launch | None = None
    """The command that runs a Python file, where a shell script was followed into that file."""

    @property
    def text(self) -> str:
        """The given file as text, made harmless."""
        return clean(self.documents[0].data.decode(errors="replace"), MOST_TEXT)
