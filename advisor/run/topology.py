"""Which GPUs do what: the named rules by which dialects say nodes, GPUs per node and roles."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from advisor.knowledge.schema import Rule
from advisor.language import say
from advisor.machine.inventory import Machine
from advisor.run.bound import EnvironmentPrefix, Natives
from advisor.run.placement import device_ids, parallel_sizes, ranks
from advisor.run.run import RewardPlace, Topology
from advisor.run.values import LARGEST


class Counts(Struct, frozen=True):
    """Reads counts from the places a rule names; remembers which had to be assumed."""

    natives: Natives
    launcher: Mapping[str, str]
    rule: Rule

    def of(self, name: str) -> int | None:
        """The count that the rule's `name` points at: a native key, a variable, a launcher option, or several."""
        places = self.rule.get(name)
        if places is None:
            return None
        if isinstance(places, int):
            return places
        for place in [places] if isinstance(places, str) else places:
            found = self._at(str(place))
            if found is not None or self._set(str(place)):
                return found
        return None

    def _at(self, place: str) -> int | None:
        if place.startswith("--"):
            return _whole(self.launcher.get(place))
        for key in (place, EnvironmentPrefix + place):
            known = self.natives.values.get(key)
            if known is not None and known.value is not None and not isinstance(known.value, bool):
                return _whole(str(known.value))
        return None

    def given(self, name: str) -> bool:
        """Whether the user's files or the log set the place of `name`."""
        return self._place(name) is not None

    def _place(self, name: str) -> str | None:
        """The place of `name` that is set; "" where the launcher has options of which nothing is known."""
        places = self.rule.get(name)
        listed = [places] if isinstance(places, str) else places if isinstance(places, list) else []
        for p in listed:
            if self._set(str(p)):
                return str(p)
        return "" if "" in self.launcher and any(p.startswith("--") for p in listed) else None

    def _set(self, place: str) -> bool:
        return self.natives.given(place) or self.natives.given(EnvironmentPrefix + place) or place in self.launcher

    def told(self, name: str) -> bool:
        """Whether the place of `name` is set to a count that can be read: `$N_GPUS`, set elsewhere, tells nothing."""
        return self.given(name) and self.of(name) is not None

    def unread(self, *names: str) -> str:
        """The first place of `names` that is set to something unreadable; "" where there is none."""
        for name in names:
            if self.given(name) and not self.told(name):
                return self._place(name) or say("what the launcher is given")
        return ""

    def names(self, name: str) -> bool:
        """Whether one of the places of `name` has a value that is not empty."""
        places = self.rule.get(name)
        listed = [places] if isinstance(places, str) else places if isinstance(places, list) else []
        return any(self.natives.value(place) not in (None, "", "None") for place in listed)

    def text(self, name: str) -> str | None:
        """The text in force at the first place of `name` that is set; None where none is."""
        places = self.rule.get(name)
        listed = [places] if isinstance(places, str) else places if isinstance(places, list) else []
        known = (self.natives.values.get(place) for place in listed)
        return next((found.text for found in known if found is not None and found.text), None)

    def is_on(self, name: str) -> bool:
        """Whether one of the boolean places is on."""
        places = self.rule.get(name)
        listed = [places] if isinstance(places, str) else places if isinstance(places, list) else []
        return any(self.natives.value(place) is True for place in listed)


def _cards(machine: Machine) -> int:
    """Cards of one node, 0 where they were never counted: a log names one card, not how many there are."""
    return 0 if machine.sources.get("gpus") == "log" else len(machine.usable)


def _all_cards(unread: str, machine: Machine) -> str:
    """What is assumed where the launch's own count cannot be read, in words; "" where nothing is."""
    count = _cards(machine) * (machine.nodes or 1)
    if not unread or not count:
        return ""
    return say("{place} could not be resolved: taken as all {count} GPUs of the machine", place=unread, count=count)


def _stated(counts: Counts, machine: Machine, per_node: str) -> str:
    """What of the machine is taken for counts that cannot be read, in words: `per_node` is the rule's name of GPUs or
    processes of a node; "" where nothing is, or the machine tells neither.
    """
    clauses: list[str] = []
    if (place := counts.unread(per_node)) and (cards := _cards(machine)):
        clauses.append(
            say("{place} could not be resolved: taken as the {count} GPUs of a node", place=place, count=cards)
        )
    if place := counts.unread("nodes"):
        told = {"place": place, "count": machine.nodes or 1}
        clauses.append(
            say("{place} could not be resolved: taken as the machine's nodes, {count}", **told)
            if machine.nodes
            else say("{place} could not be resolved: one node is assumed (--nodes says how many)", place=place)
        )
    return "; ".join(clauses)


def _whole(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if abs(value) < LARGEST else None


def _list_length(text: str | None) -> int | None:
    return len([part for part in text.split(",") if part.strip()]) if text else None


def _nodes_times_gpus(counts: Counts, machine: Machine) -> Topology:
    """verl family: trainer.nnodes x trainer.n_gpus_per_node; every role on all of them."""
    per_node = counts.of("gpus_per_node")
    if not counts.told("gpus_per_node") and _cards(machine):
        per_node = _cards(machine)
    nodes = counts.of("nodes")
    if not counts.told("nodes") and machine.nodes is not None:
        nodes = machine.nodes
    unread = counts.unread("nodes", "gpus_per_node")
    total = (nodes or 1) * (per_node or 1)
    return Topology(
        nodes=nodes or 1,
        gpus_per_node=per_node or 1,
        actor_gpus=total,
        rollout_gpus=total,
        tensor_parallel=counts.of("tensor_parallel") or 1,
        sequence_parallel=counts.of("sequence_parallel") or 1,
        known=(counts.told("gpus_per_node") or _cards(machine) > 0) and not unread,
        assumed=_all_cards(unread, machine),
        asked=total if counts.told("gpus_per_node") else None,
        asked_per_node=per_node if counts.told("gpus_per_node") else None,
    )


def _role_groups(counts: Counts, machine: Machine) -> Topology:
    """OpenRLHF: every role its own group of nodes x GPUs unless colocated."""
    nodes = counts.of("nodes") or (counts.unread("nodes") and machine.nodes) or 1
    per_node = counts.of("gpus_per_node") or (counts.unread("gpus_per_node") and _cards(machine)) or 1
    engines, tensor_parallel = counts.of("engines"), counts.of("tensor_parallel") or 1
    together = counts.is_on("colocate_all") or counts.is_on("colocate_all_dotted")
    apart = counts.is_on("engines_apart_when")
    own_engines = 0 if together and not apart else (engines or 0) * tensor_parallel
    return Topology(
        nodes=max(nodes, machine.nodes or 1),
        gpus_per_node=_cards(machine) or per_node,
        actor_gpus=nodes * per_node,
        rollout_gpus=(engines or 0) * tensor_parallel or counts.of("rollout_gpus") or nodes * per_node,
        tensor_parallel=tensor_parallel,
        sequence_parallel=counts.of("sequence_parallel") or 1,
        colocated=together and not apart,
        roles_share_cards=together,
        reference_beside_actor=counts.is_on("reference_beside_actor"),
        reward_on=_reward_place(counts, together),
        known=counts.told("nodes") or bool(counts.unread("nodes") and machine.nodes and _cards(machine)),
        assumed=_stated(counts, machine, "gpus_per_node"),
        critic_gpus=None if together else _group(counts, "critic"),
        reference_gpus=None if together or counts.is_on("reference_beside_actor") else _group(counts, "reference"),
        asked=_asked_by_roles(counts, nodes * per_node, own_engines),
        asked_per_node=per_node if counts.told("gpus_per_node") else None,
    )


def _group(counts: Counts, role: str) -> int | None:
    """GPUs of a role's own group; None where the rule names no places of it."""
    nodes, per_node = counts.of(f"{role}_nodes"), counts.of(f"{role}_gpus_per_node")
    return nodes * per_node if nodes and per_node else None


def _asked_by_roles(counts: Counts, actor: int, engines: int) -> int | None:
    """Cards of the actor and of engines apart from it; other roles may share theirs, so it is the least."""
    return actor + engines if counts.told("nodes") or counts.told("gpus_per_node") else None


def too_few(topology: Topology, machine: Machine) -> str:
    """That the launch asks for more GPUs than the machine has, in words; "" where it does not, or nobody knows."""
    cards = _cards(machine)
    if not cards:
        return ""
    counted = machine.nodes if machine.sources.get("nodes") == "described" else None  # a box counts only itself
    if counted is not None:
        have, asked = cards * counted, topology.asked
    else:
        have, asked = cards, topology.asked_per_node
    if asked is None or asked <= have:
        return ""
    return say(
        "The launch asks for {asked} GPUs on each node, the machine has {have}: one of the two is not what runs."
        if counted is None
        else "The launch asks for {asked} GPUs, the machine has {have}: one of the two is not what runs.",
        asked=asked,
        have=have,
    )


def _reward_place(counts: Counts, together: bool) -> RewardPlace:
    """Whose cards the reward model shares; none where the job loads none or asks one by its address."""
    if not counts.names("reward_model") or counts.names("reward_address"):
        return "none"
    if counts.is_on("reward_offload"):
        return "host"
    if together:
        return "actor"
    return "critic" if counts.is_on("reward_beside_critic") else "own"


def _role_groups_of_gpus(counts: Counts, machine: Machine) -> Topology:
    """Open-Reasoner-Zero: its "nodes" count GPUs, one a group."""
    gpus = (counts.of("gpus") or 1) * (counts.of("per") or 1)
    if counts.unread("gpus") and _cards(machine):
        gpus = _cards(machine) * (machine.nodes or 1)
    per_node = _cards(machine) or min(gpus, 8)
    colocated = counts.is_on("colocate_all")
    return Topology(
        nodes=max(1, -(-gpus // per_node)),
        gpus_per_node=per_node,
        actor_gpus=gpus,
        rollout_gpus=(counts.of("engines") or gpus) * (counts.of("tensor_parallel") or 1),
        tensor_parallel=counts.of("tensor_parallel") or 1,
        colocated=colocated,
        roles_share_cards=colocated,
        known=counts.told("gpus") or (_cards(machine) > 0 and not counts.given("gpus")),
        assumed=_all_cards(counts.unread("gpus"), machine),
        asked=gpus if counts.told("gpus") else None,
    )


def _processes(counts: Counts, machine: Machine) -> Topology:
    """ms-swift, TRL: one training process a GPU; the engine in it, on the card after the last, or elsewhere."""
    visible = counts.natives.values.get(EnvironmentPrefix + "CUDA_VISIBLE_DEVICES")
    seen = _list_length(visible.text if visible is not None else None)
    processes = counts.of("processes")
    per_node = seen or _cards(machine) or processes or 1
    nodes = counts.of("nodes") or machine.nodes or 1
    trainers = min(processes, per_node) if processes is not None else 1 if seen is None else seen
    if processes is None and counts.rule.get("processes_default") == "all_gpus":
        trainers = per_node
    if processes is None and counts.rule.get("processes_default") == "one":
        trainers = 1
    if counts.unread("processes") and not seen and _cards(machine):
        trainers = per_node
    total = trainers * nodes
    return Topology(
        nodes=nodes,
        gpus_per_node=per_node,
        actor_gpus=total,
        rollout_gpus=total,
        tensor_parallel=counts.of("tensor_parallel") or 1,
        sequence_parallel=counts.of("sequence_parallel") or 1,
        colocated=True,
        known=processes is not None or seen is not None or _cards(machine) > 0,
        assumed=_stated(counts, machine, "processes"),
        asked=None if processes is None or counts.unread("nodes") else processes * nodes,
        asked_per_node=processes,
    )


def _device_lists(counts: Counts, machine: Machine) -> Topology:
    """ROLL: each role has a list of device ids; roles whose lists meet share cards."""
    actor = device_ids(counts.text("actor"))
    engine = device_ids(counts.text("rollout"))
    per_node = _cards(machine) or counts.of("gpus_per_node") or 8
    count = len(actor) if actor else _cards(machine) * (machine.nodes or 1) or per_node
    return Topology(
        nodes=max(1, -(-count // per_node)),
        gpus_per_node=min(per_node, count),
        actor_gpus=count,
        rollout_gpus=len(engine) if engine else count,
        tensor_parallel=counts.of("tensor_parallel") or 1,
        sequence_parallel=counts.of("sequence_parallel") or 1,
        colocated=not (actor and engine) or bool(actor & engine),
        known=actor is not None or _cards(machine) > 0,
        asked=len(actor | (engine or frozenset())) if actor else None,
    )


def _allocations(counts: Counts, machine: Machine) -> Topology:
    """AReaL: "sglang:d4t2" and "fsdp:d4", or both joined in one word; engine and trainer never share cards there."""
    joined = (counts.text("joined") or "").split("+")
    engine = parallel_sizes(counts.text("rollout") or joined[0]) or {}
    actor = parallel_sizes(counts.text("actor") or joined[-1]) or {}
    per_node = _cards(machine) or counts.of("gpus_per_node") or 8
    nodes = counts.of("nodes") or machine.nodes or 1
    backend = (counts.text("actor") or joined[-1]).strip().partition(":")[0]
    return Topology(
        nodes=nodes,
        gpus_per_node=per_node,
        actor_gpus=ranks(actor) if actor else max(1, nodes * per_node // 2),
        rollout_gpus=ranks(engine) if engine else max(1, nodes * per_node // 2),
        tensor_parallel=engine.get("t", 1),
        sequence_parallel=actor.get("c", 1),
        colocated=False,
        known=bool(actor),
        asked=ranks(actor) + ranks(engine) if actor and engine else None,
        model_parallel=actor.get("t", 1) * actor.get("p", 1),
        actor_tensor_parallel=1 if backend == "megatron" else actor.get("t", 1),
    )


_RULES: dict[str, Callable[[Counts, Machine], Topology]] = {
    "nodes_times_gpus": _nodes_times_gpus,
    "role_groups": _role_groups,
    "role_groups_of_gpus": _role_groups_of_gpus,
    "processes": _processes,
    "device_lists": _device_lists,
    "allocations": _allocations,
}
TOPOLOGY_RULES = frozenset(_RULES)


_COUNTING = ("nodes", "gpus_per_node", "processes", "gpus", "actor", "joined")
"""Names under which the rules say where trainers are counted."""


def read_topology(natives: Natives, launcher: Mapping[str, str], machine: Machine, everyone: bool = False) -> Topology:
    """The topology by the dialect's rule; without a dialect all GPUs of the machine train together.

    `everyone`: so they do, too, where the dialect's places count none (a run file that says only which GPUs there are).
    """
    framework = natives.framework
    if framework is None or not framework.topology:
        count = max(1, _cards(machine)) * (machine.nodes or 1)
        return Topology(
            nodes=machine.nodes or 1,
            gpus_per_node=max(1, _cards(machine)),
            actor_gpus=count,
            rollout_gpus=count,
            known=_cards(machine) > 0,
        )
    rule = framework.topology
    counts = Counts(natives, launcher, rule)
    topology = _RULES[str(rule["rule"])](counts, machine)
    if everyone and _cards(machine) and not any(counts.given(name) for name in _COUNTING):
        topology = _on_all(topology, machine)
    return _engine_place(topology, rule, natives)


def _on_all(topology: Topology, machine: Machine) -> Topology:
    """The same roles on every GPU of the machine; engines that have cards of their own keep their number."""
    nodes, per_node = machine.nodes or 1, _cards(machine)
    engines = nodes * per_node if topology.colocated else topology.rollout_gpus
    return replace(
        topology,
        nodes=nodes,
        gpus_per_node=per_node,
        actor_gpus=nodes * per_node,
        rollout_gpus=engines,
        known=True,
        assumed="",
    )


def _engine_place(topology: Topology, rule: Rule, natives: Natives) -> Topology:
    """Whether the rollout engine sits on the training cards, as the rule's `engine` part says."""
    engine = rule.get("engine")
    if not isinstance(engine, dict):
        return topology
    if "off_when_false" in engine and natives.value(str(engine["off_when_false"])) is not True:
        return replace(topology, colocated=False, rollout_gpus=topology.actor_gpus)
    spare = topology.gpus_per_node - topology.actor_gpus // max(1, topology.nodes)
    if natives.era in engine.get("separate_card_eras", []) and spare > 0:
        workers = int(natives.number(str(engine.get("workers", ""))) or 1) * topology.tensor_parallel
        return replace(topology, colocated=False, rollout_gpus=min(spare, workers) * topology.nodes)
    mode = natives.value(str(engine.get("mode", "")))
    if mode is not None and str(mode) in engine.get("separate_modes", []):
        return replace(topology, colocated=False)
    return topology
