"""Finds the fewest cards that hold a run without a script yet, by a starting script that its framework documents."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from advisor.hostile import clean_line
from advisor.knowledge import Knowledge, open_knowledge
from advisor.knowledge.schema import Start
from advisor.language import listed, say
from advisor.machine.gpu_spec import parse_gpus
from advisor.memory.fit import Fit
from advisor.plan.plan import PlanStep
from advisor.regex import regex
from advisor.request import SessionRequest
from advisor.session import open_session, patch
from advisor.state import State

A_NODE = 8
"""Cards of a node where nobody says how many."""
NODES = (1, 2, 4, 8, 16, 32)
"""Nodes that are tried: batches and groups divide by them."""
_MODEL = regex(r"[\w./@+-]{1,200}")
"""Names and paths of models, which are written into the script."""


class Layout(Struct, frozen=True):
    """The starting script on so many cards."""

    nodes: int
    gpus_per_node: int
    state: State
    """The run as the script has it, and the plan that would make it fit."""
    as_written: Fit
    """Of the script without a change."""
    changes: tuple[PlanStep, ...]
    """What the plan changes of it; none of it changes training results."""
    fits: bool
    """With those changes; where the size of host RAM is not known, on the cards."""
    files: Mapping[str, str]
    """File name → text with those changes; the first is the launch."""

    @property
    def gpus(self) -> int:
        """Of all nodes."""
        return self.nodes * self.gpus_per_node


class Layouts(Struct, frozen=True):
    """The layouts that were tried, the smallest first."""

    start: Start
    tried: tuple[Layout, ...]
    card: str

    @property
    def smallest(self) -> Layout | None:
        """The fewest cards on which it fits, with changes or without."""
        return next((one for one in self.tried if one.fits), None)

    @property
    def smallest_as_written(self) -> Layout | None:
        """The fewest on which it fits as the script stands."""
        return next((one for one in self.tried if suffices(one.as_written)), None)


def find_layouts(framework: str, method: str | None, asked: SessionRequest) -> Layouts:
    """Try a documented script on ever more cards until it fits as it stands. Raises ValueError with one sentence."""
    knowledge = open_knowledge(asked.knowledge)
    start = _start(framework, method, knowledge)
    if not asked.model or not _MODEL.fullmatch(asked.model):
        raise ValueError(say("name the model, like --model Qwen3-32B"))
    if not asked.gpus:
        raise ValueError(say("name the card, like --gpus H100-80GB"))
    cards = parse_gpus(asked.gpus, knowledge.gpus)
    per_node = len(cards) if len(cards) > 1 else A_NODE
    tried: list[Layout] = []
    for nodes, gpus in _sizes(per_node, asked.nodes):
        tried.append(_tried(start, nodes, gpus, cards[0].name, asked, knowledge))
        if suffices(tried[-1].as_written):
            break
    return Layouts(start, tuple(tried), cards[0].name)


def _start(framework: str, method: str | None, knowledge: Knowledge) -> Start:
    """The script of a framework and a method, the framework's first where no method is said."""
    known = {
        start.framework: [one for one in knowledge.starts if one.framework == start.framework]
        for start in knowledge.starts
    }
    names = {dialect.framework: dialect for dialect in knowledge.frameworks}
    if framework not in known:
        there = listed(sorted(known))
        if framework in names:
            raise ValueError(
                say("no starting script of {name} is known here; of {names} there is", name=framework, names=there)
            )
        raise ValueError(
            say(
                "no framework {name!r} is known; there are scripts of {names}",
                name=clean_line(framework, 40),
                names=there,
            )
        )
    words = {word: recipe.id for recipe in knowledge.recipes for word in (recipe.id, *recipe.words)}
    wanted = None if method is None else words.get(method.lower().replace("-", " "), method)
    found = next((one for one in known[framework] if wanted in (None, one.method)), None)
    if found is None:
        methods = listed(one.method for one in known[framework])
        told = {"name": framework, "method": clean_line(str(method), 40), "methods": methods}
        raise ValueError(say("no starting script of {name} for {method} is known here; there is {methods}", **told))
    return found


def _sizes(per_node: int, most_nodes: int | None) -> Iterator[tuple[int, int]]:
    """(nodes, cards of each), rising: within a node by doubling, then whole nodes."""
    within = 1
    while within < per_node:
        yield 1, within
        within *= 2
    yield from ((nodes, per_node) for nodes in NODES if most_nodes is None or nodes <= most_nodes)


def _tried(start: Start, nodes: int, gpus: int, card: str, asked: SessionRequest, knowledge: Knowledge) -> Layout:
    given = str(asked.model)
    model = next((one.repository for one in knowledge.models if one.name.lower() == given.lower()), "") or given
    with tempfile.TemporaryDirectory(prefix="rl-oom-advisor-start-") as folder:
        files = [Path(folder, name) for name in start.files]
        for file, text in zip(files, start.files.values(), strict=True):
            file.write_text(filled(text, start, model, nodes, gpus), encoding="utf-8")
        package = next(one.package for one in knowledge.frameworks if one.framework == start.framework)
        request = replace(
            asked,
            script=files[0],
            logs=(),
            gpus=f"{gpus}x{card}",
            nodes=nodes,
            libraries=(f"{package}={start.version}", *asked.libraries),
        )
        state = open_session(replace(request, accept="same-results"))
        assert state.situation is not None
        as_written = state.situation.now.fit
        changes = () if suffices(as_written) else state.plan.selected()
        written = {file.name: file.read_text(encoding="utf-8") for file in files}
        if changes:
            rewrites = patch(state).rewrites
            changed = {one.document.path.name: one.new.decode() for one in rewrites}
            written |= {name: text for name, text in changed.items() if name in written}
    fits = suffices(as_written) or suffices(state.plan.fit)
    return Layout(nodes, gpus, state, as_written, changes, fits, written)


def filled(text: str, start: Start, model: str, nodes: int, gpus: int) -> str:
    """A file of a starting script for so many cards."""
    tensor = min(start.tensor, gpus)
    counts = {"nodes": nodes, "gpus": gpus, "all": nodes * gpus, "half": max(1, nodes * gpus // 2), "tensor": tensor}
    words = {"model": model, **{name: str(count) for name, count in counts.items()}}
    words["engines"] = str(max(1, nodes * gpus // tensor))
    return re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), text)


def suffices(fit: Fit) -> bool:
    """It fits by what is expected, or fits the cards while nobody says how much RAM a node has."""
    return fit.verdict == "fits" or fit.fits_beside == "host" or (fit.doubted and fit.findings == fit.perhaps)
