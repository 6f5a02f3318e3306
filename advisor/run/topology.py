"""Reads which GPUs do what, by the expressions of a dialect's `topology`, else by what any launch counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.bash.visible_devices import visible_ids
from advisor.knowledge.schema import TopologyFact
from advisor.language import mark, say, say_count
from advisor.machine.inventory import Machine
from advisor.regex import regex
from advisor.rules.expression import Expression
from advisor.rules.tree import Name, RuleValue, as_number, walk
from advisor.run.bound import Tables
from advisor.run.natives import (
    SAMPLES,
    EnvironmentPrefix,
    LauncherPrefix,
    Natives,
    RunScope,
    gpus_of,
    keys_by_knob,
    native,
)
from advisor.run.run import RewardPlace, Topology
from advisor.run.values import LARGEST
from advisor.script.launch import Launch

_FIELDS = frozenset(TopologyFact.__struct_fields__) - {"let", "counted_by", "unread_is_all"}
_ONE_AT_LEAST = frozenset({"nodes", "gpus_per_node", "actor_gpus", "tensor_parallel", "sequence_parallel"})
_REWARD: dict[object, RewardPlace] = {place: place for place in ("actor", "critic", "own", "host")}


class _TopologyScope:
    """The run's names, and each field of the topology by its own; a field that speaks of itself means the setting."""

    def __init__(self, fact: TopologyFact, below: RunScope, known: dict[str, RuleValue | None]) -> None:
        self.fact, self.below, self.known = fact, below, known
        self.asking: set[str] = set()

    def value(self, name: str) -> RuleValue | None:
        if name in self.known:
            return self.known[name]
        own = self.expression(name)
        if own is None or name in self.asking:
            return self.below.value(name)
        self.asking.add(name)
        made = own.of(self)
        if name in _ONE_AT_LEAST:
            made = self.whole(made) or 1
        self.asking.discard(name)
        self.known[name] = made
        return made

    def given(self, name: str) -> RuleValue | None:
        return self.below.given(name)

    def expression(self, name: str) -> Expression | None:
        """The expression of a field, what it is by default, or what `let` says of the name."""
        if name not in _FIELDS:
            return self.fact.let.get(name)
        stated: Expression | None = getattr(self.fact, name)
        return _DEFAULTS.get(name) if stated is None else stated

    def count(self, name: str, default: int = 1) -> int:
        """A number of GPUs or nodes, at least 1; `default` where it is unknown or 0."""
        return self.count_or_none(name) or default

    def count_or_none(self, name: str) -> int | None:
        return self.whole(self.value(name))

    @staticmethod
    def whole(value: RuleValue | None) -> int | None:
        number = as_number(value)
        return int(number) if number is not None and 1 <= number < LARGEST else None

    def on(self, name: str, default: bool = False) -> bool:
        held = self.value(name)
        return held if isinstance(held, bool) else default


_DEFAULTS = {
    "actor_gpus": Expression("nodes * gpus_per_node"),
    "rollout_gpus": Expression("actor_gpus"),
    "colocated": Expression("true"),
    "roles_share_cards": Expression("true"),
}


STAGE = "actor.zero_stage"
_OF_ALL_NODES = "num_processes"
"""Where accelerate counts the processes of all machines (accelerate@1.12.0 utils/launch.py:219, 445)."""


def read_topology(
    natives: Natives, machine: Machine, everyone: bool = False, spreads: str = "", by_launch: Cards | None = None
) -> Topology:
    """The topology by the dialect's expressions; without a dialect all GPUs of the machine train together.

    `everyone`: so they do, too, where the dialect's places count none (a run file that says only which GPUs there are).
    `spreads`: what starts a process on every card where nothing says how many. `by_launch`: the cards of a launch
    without a dialect, as it counts them.
    """
    fact = natives.framework.topology if natives.framework is not None else None
    nodes, cards = machine.nodes or 1, gpus_of(machine)
    if fact is None and by_launch is not None:
        count = by_launch.nodes * by_launch.per_node
        return Topology(by_launch.nodes, max(cards, by_launch.per_node), count, count, asked=count)
    if fact is None:
        count = max(1, cards) * nodes
        return Topology(nodes, max(1, cards), count, count, known=cards > 0)
    of_all = everyone and cards > 0 and not any(_is_given(place, natives) for place in fact.counted_by)
    counted: dict[str, Any] = {"nodes": nodes, "gpus_per_node": cards, "actor_gpus": nodes * cards} if of_all else {}
    below = RunScope(natives, machine=machine)
    each = fact.each_card is not None and fact.each_card.holds(below) is True
    many = "" if fact.unread_is_all or each else _spread_by(spreads, natives)
    unread = {} if of_all else _unread(fact, below, many)
    stated: dict[str, RuleValue | None] = {}
    training = cards
    if not fact.unread_is_all:
        told = below.with_own(**_stated(unread, machine.nodes, 0))
        machines = _TopologyScope(fact, told, dict(counted)).count("nodes")
        stated = _stated(unread, machine.nodes, cards, machines)
        alone, full = (_TopologyScope(fact, scope, dict(counted)) for scope in (below, below.with_own(**stated)))
        if many and full.on("colocated", True) and not alone.on("colocated", True):  # an engine has cards of its own
            training = max(1, cards - alone.count("rollout_gpus"))
            stated = _stated(unread, machine.nodes, training, machines)
    scope = _TopologyScope(fact, below.with_own(**stated), counted)
    actor = scope.count("actor_gpus")
    counts_here = (
        actor != _TopologyScope(fact, below, dict(counted)).count("actor_gpus") or training * (machine.nodes or 1) == 1
    )
    topology = Topology(
        nodes=scope.count("nodes"),
        gpus_per_node=scope.count("gpus_per_node"),
        actor_gpus=actor,
        rollout_gpus=scope.count("rollout_gpus", actor),
        tensor_parallel=scope.count("tensor_parallel"),
        sequence_parallel=scope.count("sequence_parallel"),
        colocated=scope.on("colocated", True),
        roles_share_cards=scope.on("roles_share_cards", True),
        reference_beside_actor=scope.on("reference_beside_actor"),
        reward_on=_REWARD.get(scope.value("reward_on"), "none"),
        known=of_all
        or (scope.on("known") and not (unread and fact.unread_is_all))
        or (0 < len(stated) == len(unread) and counts_here),
        assumed=_all_cards(unread, machine)
        if fact.unread_is_all
        else _as_stated(unread, natives, machine, training, many),
        asked=None if unread else scope.count_or_none("asked"),
        reserved=None if unread else scope.count_or_none("reserved"),
        asked_per_node=None if "gpus" in unread.values() else scope.count_or_none("asked_per_node"),
        model_parallel=scope.count("model_parallel"),
        actor_tensor_parallel=scope.count("actor_tensor_parallel"),
        engine_elsewhere=scope.on("engine_elsewhere"),
        process_gpus=scope.count("process_gpus"),
        critic_gpus=scope.count_or_none("critic_gpus"),
        reference_gpus=scope.count_or_none("reference_gpus"),
    )
    return replace(topology, rollout_gpus=actor) if of_all and topology.colocated else topology


def _stated(unread: Mapping[str, str], nodes: int | None, cards: int, machines: int = 1) -> dict[str, RuleValue | None]:
    """Counts of the machine for places that cannot be read, as far as it has them. `machines`: that the launch has."""
    told = {"nodes": nodes, "gpus": cards}
    every = {place: machines if place.lstrip("-").replace("-", "_") == _OF_ALL_NODES else 1 for place in unread}
    return {place: count * every[place] for place, of in unread.items() if (count := told[of])}


def decided_by(natives: Natives, tables: Tables) -> tuple[str, ...]:
    """Every key of the table that `read_topology` may look at: those that its expressions and places name, those that
    share states among processes, and what chooses between several of those."""
    fact = natives.framework.topology if natives.framework is not None else None
    return () if fact is None else tables.once(("topology's keys", natives.era), lambda: _keys(fact, natives))


def _keys(fact: TopologyFact, natives: Natives) -> tuple[str, ...]:
    own = [getattr(fact, name) for name in _FIELDS]
    named = {name for one in (*own, *fact.let.values()) if isinstance(one, Expression) for name in one.names()}
    carried = natives.carried or keys_by_knob(natives.values)
    named |= {key for knob in (STAGE, SAMPLES) for key in carried.get(knob, ())}
    facts = [one.fact for key in named if (one := natives.values.get(key)) is not None]
    named |= {name for one in facts if one is not None and one.only_with is not None for name in one.only_with.names()}
    named |= {prefix + place for place in fact.counted_by for prefix in ("", EnvironmentPrefix)}
    return tuple(sorted(named))


def _is_given(place: str, natives: Natives) -> bool:
    """Whether the user's files, the log or the launcher set it, readable or not."""
    if place.startswith(LauncherPrefix):
        return place in natives.launcher
    found = natives.values.get(place) or natives.values.get(EnvironmentPrefix + place)
    return (found is not None and found.given) or place.removeprefix(EnvironmentPrefix) in natives.launcher


def _spread_by(launcher: str, natives: Natives) -> str:
    """Why there are several processes though nothing counts them: by the launcher, or by a setting that shares the
    states among them; "" where nothing says so."""
    if launcher:
        return say("{launcher} is told no number of processes", launcher=launcher)
    sharing = (n for n in natives.carriers(STAGE) if n.given and n.text is not None and n.value not in (0, False))
    key = next((n.key for n in sharing), "")
    return say("{key} shares the states among processes, and nothing says how many", key=key) if key else ""


def _unread(fact: TopologyFact, scope: RunScope, many: str) -> dict[str, Literal["nodes", "gpus"]]:
    """Places that are set to something unreadable (`$N_GPUS`, set elsewhere), and what they count: GPUs are a node's. A
    launcher with options of which nothing is known (`torchrun $ARGS`) may count anything that nothing else counts;
    where the run spreads over processes and nothing counts them, its launcher would."""
    natives = scope.natives
    of_nodes = _names(fact.nodes, fact)
    found: dict[str, Literal["nodes", "gpus"]] = {}
    for kind in _COUNTED:
        places = [place for place in fact.counted_by if (place in of_nodes) == (kind == "nodes")]
        given = [place for place in places if _is_given(place, natives)]
        if not given and ("" in natives.launcher or (many and kind == "gpus")):
            given = [place for place in places if place.startswith(LauncherPrefix)][:1]
        facts = natives.framework.settings if natives.framework is not None else {}
        counts = [place for place in given if place not in facts or facts[place].type == "int"]  # no list, no word
        found |= {place: kind for place in counts if scope.value(place) is None}
    return found


_COUNTED: tuple[Literal["gpus", "nodes"], ...] = ("gpus", "nodes")


def _names(expression: Expression | None, fact: TopologyFact) -> set[str]:
    """Every name an expression speaks of, through those that `let` defines."""
    names = {node.name for node in walk(expression.tree) if isinstance(node, Name)} if expression is not None else set()
    return names.union(*(_names(fact.let[name], fact) for name in names & fact.let.keys()))


def _as_stated(unread: Mapping[str, str], natives: Natives, machine: Machine, cards: int, many: str) -> str:
    """What of the machine is taken for counts that cannot be read, in words; "" where it tells none of the cards."""
    clauses: list[str] = []
    unsaid = {*unread.values()} == {"gpus", "nodes"} and not any(_is_given(place, natives) for place in unread)
    if unsaid and cards and not many:
        return say_count(
            "nothing readable says how many GPUs it uses: the machine's one is counted",
            "nothing readable says how many GPUs it uses: all {number} of the machine are counted",
            cards * (machine.nodes or 1),
        )
    if "gpus" in unread.values() and not cards:
        return ""
    for place, of in unread.items():
        given = _is_given(place, natives)
        name = place if given else say("the number of GPUs") if of == "gpus" else say("the number of nodes")
        if of == "gpus" and cards and not given and many:
            told = mark("{why}: one is counted on each of {count} GPUs of a node")
            clauses.append(say(told, why=many, count=cards))
        elif of == "gpus" and cards:
            clauses.append(
                say_count(
                    "{place} could not be resolved: taken as the one GPU of a node",
                    "{place} could not be resolved: taken as the {number} GPUs of a node",
                    cards,
                    place=name,
                )
            )
        elif of == "nodes" and machine.nodes:
            told = mark("{place} could not be resolved: taken as the machine's nodes, {count}")
            clauses.append(say(told, place=name, count=machine.nodes))
        elif of == "nodes":
            told = mark("{place} could not be resolved: one node is assumed (--nodes says how many)")
            clauses.append(say(told, place=name))
    return "; ".join(clauses)


def _all_cards(unread: Iterable[str], machine: Machine) -> str:
    """What is assumed where the launch's own count cannot be read, in words; "" where nothing is."""
    count = gpus_of(machine) * (machine.nodes or 1)
    if not unread or not count:
        return ""
    return say(
        "{place} could not be resolved: taken as all {count} GPUs of the machine", place=next(iter(unread)), count=count
    )


def gpus_missing(topology: Topology, machine: Machine) -> tuple[int, int] | None:
    """GPUs the launch asks for and those the machine has (of all nodes where those are described, else of each), where
    the launch asks for more; None where it does not, or nobody counted them but in words."""
    cards = gpus_of(machine)
    counted = _nodes_counted(machine)
    have, asked = (cards * counted, topology.asked) if counted is not None else (cards, topology.asked_per_node)
    return (asked, have) if cards and not machine.worded and asked is not None and asked > have else None


def _nodes_counted(machine: Machine) -> int | None:
    """Nodes as described; None where they are not: a box counts only itself."""
    return machine.nodes if machine.sources.get("nodes") == "described" else None


def too_few(topology: Topology, machine: Machine) -> str:
    """That the launch asks for more GPUs than it reserves, or the machine has, in words; "" where it does not."""
    if topology.asked is not None and topology.reserved is not None and topology.asked > topology.reserved:
        return say(
            "The roles of this launch ask for {asked} GPUs, and its own settings give {reserved}: it cannot run so.",
            asked=topology.asked,
            reserved=topology.reserved,
        )
    found = gpus_missing(topology, machine)
    if found is None:
        return ""
    return say(
        "The launch asks for {asked} GPUs on each node, the machine has {have}: one of the two is not what runs."
        if _nodes_counted(machine) is None
        else "The launch asks for {asked} GPUs, the machine has {have}: one of the two is not what runs.",
        asked=found[0],
        have=found[1],
    )


_NODES = regex(r"(?:n|num_|number_of_)(?:nodes|machines)")
_PER_NODE = regex(
    r"(?:n_?|num_|number_of_)?(?:gpus?|devices|cards)(?:_per_node)?|ngpus|nproc(?:_per_node)?|procs_per_node"
)
_IN_ALL = regex(r"(?:num_|n_)?(?:processes|procs)|world_size")
_WAYS = regex(
    r"(?:\w+_)?(?:tensor|pipeline|context|data|sequence)_?(?:model_)?(?:parallel|parallelism)(?:_size|_degree)?|[tpd]p(?:_size)?"
)
"""Sizes whose product is the fewest cards that a launch can run on."""
_IDS = regex(r"\[?\d{1,3}(?:, ?\d{1,3})*\]?")
_INCLUDED = regex(r"([\w.-]+)(?::([\d,]+))?")
_STARTERS = ("torchrun", "deepspeed", "torch.distributed.run", "torch.distributed.launch")
"""What starts one process per card and shards nothing by itself. Accelerate may have a file of its own at home."""
_SHARDS = regex(r"deepspeed|zero|fsdp|ds_|megatron|shard|offload|gemini|colossal|strategy|parallel|plugin|device_map")


class Cards(Struct, frozen=True):
    """Cards that a launch counts: nodes, and cards of each."""

    nodes: int
    per_node: int


def cards_of(launch: Launch, started: int | None) -> Cards | None:
    """The cards that a launch counts: by its launcher, else its own keys, parallel sizes or the visible devices.
    `started`: processes of a node that its launcher starts though nothing says how many; they take a card each."""
    stated = [*launch.launcher.items(), *((key, setting.text) for key, setting in launch.effective().items())]
    named = [(native(key).lower().replace("-", "_").rpartition(".")[2], text) for key, text in stated]
    nodes = next(_counts(named, _NODES), 1)
    if included := next((text for name, text in named if name == "include"), ""):
        hosts = [ids for _, ids in _INCLUDED.findall(included)]
        counts = [len(ids.split(",")) for ids in hosts if ids]
        return Cards(len(hosts), max(counts)) if counts else None
    if per_node := next(_counts(named, _PER_NODE), None):
        return Cards(nodes, per_node)
    if started is not None:
        return Cards(nodes, started)
    if whole := next(_counts(named, _IN_ALL), None):
        return Cards(nodes, -(-whole // nodes))
    ways = [size for size in _counts(named, _WAYS) if size > 1]
    if ways:
        return Cards(nodes, prod(ways))
    visible = visible_cards(launch)
    return Cards(1, visible) if visible is not None else None


def visible_cards(launch: Launch) -> int | None:
    """How many cards of a node the environment of a launch lets its processes see; None where it does not say."""
    return len(visible_ids(launch.environment) or ()) or None


def _counts(named: list[tuple[str, str]], names: re.Pattern[str]) -> Iterator[int]:
    """Counts under such names: a number from 1, or how many a list of ids has."""
    for name, text in named:
        if not names.fullmatch(name) or not _IDS.fullmatch(text.strip()):
            continue
        if "," in text or text.strip().startswith("["):
            yield len(text.split(","))
        elif 1 <= int(text) < LARGEST:
            yield int(text)


def unsharded_by(launch: Launch) -> str:
    """What starts a process per card with nothing in sight that shards; "" where something may."""
    words = [word for word in launch.argv if word is not None]
    starter = next((one for one in _STARTERS for word in words[:4] if word.rpartition("/")[2] == one), "")
    if not starter or launch.leaves_open or launch.partial or launch.missing or None in launch.argv:
        return ""
    own = [word for word in words if word.rpartition("/")[2] != starter and not word.startswith(("/", "~", "./"))]
    return "" if any(_SHARDS.search(word.lower()) for word in (*own, *launch.environment)) else starter
