"""Reads a launch as its dialect does: what is missing, what backend and log add, what may be added to it."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from advisor.bash.visible_devices import visible_ids
from advisor.knowledge.schema import CountName, Framework
from advisor.language import mark, say
from advisor.machine.inventory import Machine
from advisor.run.bound import shipped_files
from advisor.run.dialect import Recognised, beside_file, elsewhere, knows_keys
from advisor.run.implied import backend_by_keys
from advisor.run.natives import gpus_of, native
from advisor.run.run import Knob, ModelShape, Topology
from advisor.run.topology import cards_of, visible_cards
from advisor.script.document import Setting
from advisor.script.launch import Launch, NotFound
from advisor.script.reader import FOLLOWED

_COUNTING = frozenset(
    f"--{name.replace('_', dash)}"
    for name in ("nproc_per_node", "num_processes", "num_gpus", "include", "gpu_ids")
    for dash in "_-"
)
"""Options with which launchers are told how many processes a node has."""


_HIDDEN = mark("CUDA_VISIBLE_DEVICES begins with no device: the run sees no GPU, whatever this box has.")


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
    every = str(visible_cards(launch) or gpus_of(machine) or cards_counted(counts) or "")  # torchrun's "gpu" and "auto"
    given = {
        key: every if key in _COUNTING and text in ("gpu", "auto") else text for key, text in launch.launcher.items()
    }
    return {**usual, **dict.fromkeys((*launch.launcher_unread, *outside), ""), **given}


def started(launch: Launch, counts: Mapping[CountName, int]) -> int | None:
    """Processes of a node that start though nothing says how many, unless the log shows more of them."""
    ranks = launch.processes
    seen = max(counts.get("gpus", 0), counts.get("ranks", 0))
    return None if ranks is not None and seen > ranks else ranks


def idle_cards(
    launch: Launch | None, topology: Topology, counts: Mapping[CountName, int], machine: Machine
) -> tuple[str, ...]:
    """That no card is visible to the launch, or that the launcher starts fewer processes than a node has cards, where
    it does so for want of an option."""
    if launch is not None and visible_ids(launch.environment) == ():
        return (say(_HIDDEN),)
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
    facts = ((group, framework.settings.get(group[0])) for group in framework.always_set)
    groups = [group for group, fact in facts if fact is None or not fact.eras or era in fact.eras]
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


A_NODE = 8
"""Cards that a node has at most, where nobody says how many: more ranks than these are on several nodes."""
ADAPTERS_AT_MOST = 0.3
"""Part of a model's parameters below which those that are trained are adapters, not the model (judgement)."""
MORE_THAN_ADAPTERS = 1_000_000_000
"""Trained parameters from which on they are a model: fewer may be adapters, and tell no size (judgement)."""


def cards_counted(counts: Mapping[CountName, int]) -> int | None:
    """Cards of one node, where the log counts the ranks of a run that may be on one; None where it does not."""
    ranks = counts.get("gpus")
    return ranks if ranks is not None and ranks <= A_NODE else None


def cards_seen(counts: Mapping[CountName, int]) -> int:
    """Cards that a node has at least, by the indices that the log names."""
    ranks = counts.get("ranks", 1)
    return max(counts.get("cards", 1), ranks if ranks <= A_NODE else 1)


def base_parameters(counts: Mapping[CountName, int]) -> int | None:
    """Parameters of the model without its adapters, as a log counts them; None where it does not tell."""
    whole, trained = counts.get("parameters"), counts.get("trainable")
    if whole is None:
        return trained if trained is not None and trained >= MORE_THAN_ADAPTERS else None
    return whole - trained if trained is not None and trained < whole * ADAPTERS_AT_MOST else whole


def trained_part(counts: Mapping[CountName, int], shape: ModelShape | None) -> dict[str, Knob]:
    """Whether all of the model is trained, by what the log counts."""
    whole = counts.get("parameters") or (shape.parameters if shape is not None else None)
    trained, key = counts.get("trainable"), "actor.full_finetuning"
    if whole is None or trained is None:
        return {}
    note = say("the log counts {trained} of {whole} parameters as trained", trained=f"{trained:,}", whole=f"{whole:,}")
    return {key: Knob(key, trained >= whole * ADAPTERS_AT_MOST, "log", note=note)}


_CHOOSES_A_FILE = frozenset({"--config-path", "-cp", "--config-name", "-cn", "--config-dir", "-cd", "--config"})
"""Options that only name a file; what is set beside them is key=value all the same."""


def no_place(recognised: Recognised, launch: Launch | None) -> str:
    """Why a setting that the command does not have may not be added to it, in words; "" where it may. Nobody knows
    whether a program of which only the log, or only the name, tells would read it."""
    framework = recognised.framework
    if framework is None or launch is None:
        return ""
    told = {"framework": framework.title}
    if file := elsewhere(framework, launch):
        told["file"] = file
        return say(
            "{framework} reads its settings from a Python file, not the command line: give {file} instead", **told
        )
    if recognised.told_by == "log":
        return say("only the log speaks of {framework}; whether this command reads its settings is not known", **told)
    typed = [one for one in launch.settings if one.origin == "command" and not one.key.startswith(FOLLOWED)]
    own = [one for one in typed if one.key not in _CHOOSES_A_FILE]  # those of the launcher are not the program's
    if beside_file(recognised, launch)[1] == "nothing":
        if any(one.origin != "command" and one.span is not None for one in launch.settings):
            return ""  # it is written into that file
        return say("beside a config file this version of {framework} reads nothing: change it there", **told)
    options = [setting.key.startswith("-") for setting in own]
    if own and framework.syntax in ("hydra", "dotlist") and all(options):
        return say("this command takes --options, {framework} takes key=value", **told)
    if own and framework.syntax == "argparse" and not any(options):
        return say("this command takes key=value, {framework} takes --options", **told)
    if own and framework.syntax == "argparse" and not recognised.own_program and not knows_keys(framework, launch):
        return say("the program has options of its own; whether it takes those of {framework} is not known", **told)
    return ""
