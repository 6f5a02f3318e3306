"""Reads what any launch says of its cards, and whether it names anything that shards, without a dialect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from msgspec import Struct

from advisor.regex import regex
from advisor.run.natives import native
from advisor.run.values import LARGEST
from advisor.script.launch import Launch

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
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES")
_STARTERS = ("torchrun", "deepspeed", "torch.distributed.run", "torch.distributed.launch")
"""What starts one process per card and shards nothing by itself. Accelerate may have a file of its own at home."""
_SHARDS = regex(r"deepspeed|zero|fsdp|ds_|megatron|shard|offload|gemini|colossal|strategy|parallel|plugin|device_map")


class Cards(Struct, frozen=True):
    """Cards that a launch counts: nodes, and cards of each."""

    nodes: int
    per_node: int


def cards_of(launch: Launch, started: int | None) -> Cards | None:
    """The cards that a launch counts: by its launcher, else its own keys, parallel sizes or the visible devices.

    `started`: processes of a node that its launcher starts though nothing says how many; they take a card each.
    """
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
    ids = next((launch.environment[name] for name in _VISIBLE if name in launch.environment), "")
    return len(ids.split(",")) if _IDS.fullmatch(ids) else None


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
