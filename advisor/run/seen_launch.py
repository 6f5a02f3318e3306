"""Reads a launch as its dialect does: what is missing of it, what its backend's keys add, what starts its processes."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from advisor.knowledge.schema import CountName, Framework
from advisor.language import mark, say
from advisor.machine.inventory import Machine
from advisor.run.bound import shipped_files
from advisor.run.counted import cards_counted
from advisor.run.dialect import Recognised, elsewhere
from advisor.run.general import cards_of
from advisor.run.implied import backend_by_keys
from advisor.run.natives import gpus_of, native
from advisor.run.run import Topology
from advisor.script.document import Setting
from advisor.script.launch import Launch, NotFound

_COUNTING = frozenset(
    f"--{name.replace('_', dash)}"
    for name in ("nproc_per_node", "num_processes", "num_gpus", "include", "gpu_ids")
    for dash in "_-"
)
"""Options with which launchers are told how many processes a node has."""


class LaunchSeen(Struct, frozen=True):
    """The launch as its dialect reads it: the same for every what-if."""

    launch: Launch | None
    settings: tuple[Setting, ...]
    """Its own, and the switches of its backend."""
    shipped: tuple[str, ...]
    """Files of the framework's own that it names and that were not found."""
    missing: tuple[str, ...]
    """The others that were not found."""
    shows_all: bool
    """What it leaves out is at its default: not where a file is missing, or only the log speaks."""


def see_launch(recognised: Recognised, launch: Launch | None) -> LaunchSeen:
    """The launch, completed by what its dialect knows of it."""
    framework, era = recognised.framework, recognised.era
    launch = _with_own_config(framework, _as_quoted(framework, era, launch))
    missing = _missing(framework, launch)
    shows_all = launch is not None and recognised.told_by != "log" and not missing
    if launch is None:
        return LaunchSeen(None, (), (), missing, shows_all)
    settings = (*launch.settings, *_of_backend(framework, era, launch))
    return LaunchSeen(launch, settings, shipped_files(framework, launch.missing), missing, shows_all)


def launcher_counts(launch: Launch | None, counts: Mapping[CountName, int], machine: Machine) -> dict[str, str]:
    """Options of the launcher; "" for one, and for a variable of the environment, that is set to nothing known."""
    if launch is None:  # nobody sees what starts it, but the log may count its processes
        processes = cards_counted(counts) if gpus_of(machine) else None
        return {} if processes is None else {"--nproc_per_node": str(processes)}
    outside = (setting.key for setting in launch.exports if not setting.resolved)
    ranks = started(launch, counts)
    if launch.hints and (cards := cards_of(launch, None)) is not None:
        ranks = cards.per_node
    if ranks is None and launch.spreads and _COUNTING.isdisjoint(launch.launcher):
        ranks = cards_counted(counts)
    usual = {} if ranks is None else {"--nproc_per_node": str(ranks)}
    return {**usual, **dict.fromkeys((*launch.launcher_unread, *outside), ""), **launch.launcher}


def started(launch: Launch, counts: Mapping[CountName, int]) -> int | None:
    """Processes of a node that start though nothing says how many, unless the log shows more of them."""
    ranks = launch.processes
    seen = max(counts.get("gpus", 0), counts.get("ranks", 0))
    return None if ranks is not None and seen > ranks else ranks


def idle_cards(
    launch: Launch | None, topology: Topology, counts: Mapping[CountName, int], machine: Machine
) -> tuple[str, ...]:
    """That the launcher starts fewer processes than a node has cards, where it does so for want of an option."""
    cards, ranks = gpus_of(machine), launch and started(launch, counts)
    if launch is None or not ranks or cards <= ranks or topology.actor_gpus > ranks * topology.nodes:
        return ()
    if "torchrun" in " ".join(word or "" for word in launch.argv):
        told = mark(
            "torchrun is given no --nproc_per_node, so it starts one process: {idle} of the {cards} cards stay idle, "
            "and nothing is shared among them."
        )
    else:
        told = mark(
            "python starts one process: {idle} of the {cards} cards stay idle, and nothing is shared among them. "
            "`torchrun --nproc_per_node={cards}`, `deepspeed` and `accelerate launch` start one per card."
        )
    return (say(told, idle=cards - ranks, cards=cards),)


def _of_backend(framework: Framework | None, era: str, launch: Launch) -> tuple[Setting, ...]:
    """The switches of the backend whose keys a launch sets, where the rest of it was not seen."""
    if framework is None or not (launch.partial or launch.missing):
        return ()
    found = backend_by_keys(framework, era, launch.effective())
    return tuple(Setting(key, text, "file") for key, text in found.items())


def _missing(framework: Framework | None, launch: Launch | None) -> tuple[str, ...]:
    """Files that hold the run's settings and were not found."""
    if launch is None:
        return ()
    shipped, file = shipped_files(framework, launch.missing), elsewhere(framework, launch)
    return tuple(name for name in launch.missing if name not in shipped) + ((file,) if file else ())


def _as_quoted(framework: Framework | None, era: str, launch: Launch | None) -> Launch | None:
    """The launch, marked as a part of one where it lacks what the framework does not start without."""
    if framework is None or launch is None or launch.partial or launch.leaves_open:
        return launch
    stated = launch.effective()
    named = {setting.text for setting in stated.values()}
    if not named.issuperset(launch.missing):  # a config file of the whole run, not one that a setting names
        return launch
    own = {native(key).replace("-", "_") for key in stated}
    if stated and not any(native(key) in framework.settings for key in stated):
        note = say(
            "no setting of the launch has a name of {framework}'s: they are read by the last part of theirs",
            framework=framework.title,
        )
        return replace(launch, partial=True, notes=(*launch.notes, note))
    groups = [group for group in framework.always_set if _counts_in(framework, group[0], era)]
    lacking = next((group for group in groups if own.isdisjoint(group)), None)
    if lacking is None:
        return launch
    told = {"framework": framework.title, "key": lacking[0]}
    note = say(
        "{framework} does not start without {key}: this is a part of the launch, and the rest is not known", **told
    )
    return replace(launch, partial=True, notes=(*launch.notes, note))


def _with_own_config(framework: Framework | None, launch: Launch | None) -> Launch | None:
    """The launch with the file that its program reads where the command names none: it is not at hand, either."""
    if framework is None or launch is None or launch.files or launch.missing or launch.partial:
        return launch
    own = next((file for name, file in framework.own_config.items() if fnmatchcase(launch.program, name)), "")
    if not own or any(native(key) in ("config", "config-name") for key in launch.effective()):
        return launch
    if own == "?":
        own = say("the config of {program}", program=launch.program.rpartition("/")[2])
    return replace(launch, missing=(own,), not_found=(*launch.not_found, NotFound("", own)))


def _counts_in(framework: Framework, key: str, era: str) -> bool:
    eras = framework.settings[key].eras if key in framework.settings else ()
    return not eras or era in eras
