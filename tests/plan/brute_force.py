"""Every set of the same choices: what the plan is measured against.

`python -m tests.plan.brute_force 200` prints for that many made-up runs whether a cheaper set fits, and how long the
search took. Of the search itself nothing is used here but the list of choices it was given.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from pathlib import Path
from statistics import median

import pytest

from advisor.memory.predict import Overrides
from advisor.plan import select
from advisor.plan.options import Option
from advisor.plan.propose import Proposal
from advisor.plan.situation import Situation
from advisor.run.constraints import violations
from advisor.session import SessionRequest, State, open_session
from tests.plan.generated import made_up

DEAREST = ("changes_results", "host_ram", "slower", "free", "shown")
EFFORTS = (0, 5, 3, 2, 0)
MOST = 3
"""Members of the sets tried: whatever is cheaper than a larger one is found among its tiers first."""
Pair = tuple[Proposal, Option]
Cost = tuple[tuple[int, ...], float]


@dataclass
class Asking:
    """What the plan's search was asked and what it answered."""

    proposals: Sequence[Proposal]
    situation: Situation
    base: Overrides
    answer: list[Proposal] | None
    seconds: float


@dataclass
class Told:
    """A plan with every question its search was asked."""

    state: State
    asked: list[Asking] = field(default_factory=list)


def told(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    """The plan of a made-up run, its search listened to."""
    run = made_up(seed)
    (folder / "run.sh").write_text(run.script)
    (folder / "train.log").write_text(run.log)
    asked: list[Asking] = []
    original = select.cheapest_of

    def listening(proposals, situation, base, only_same_results):  # type: ignore[no-untyped-def]
        start = time.perf_counter()
        found = original(proposals, situation, base, only_same_results)
        took = time.perf_counter() - start
        if not only_same_results:
            answer = None if found is None else [proposal for proposal, _ in found]
            asked.append(Asking(proposals, situation, base, answer, took))
        return found

    monkeypatch.setattr(select, "cheapest_of", listening)
    state = open_session(
        SessionRequest(script=folder / "run.sh", logs=(folder / "train.log",), gpus=run.gpus, host_ram=run.host_ram)
    )
    _ = state.plan  # made while it is listened to
    monkeypatch.undo()
    return Told(state, asked)


def cheaper(asking: Asking) -> list[Pair] | None:
    """A set that fits and costs less than the answer; None where there is none. Without an answer: any that fits."""
    pairs = _pairs(asking)
    limit = None if asking.answer is None else cost([(p, _taken(p, pairs)) for p in asking.answer])
    for size in range(MOST + 1):
        for remedies in combinations(range(len(pairs)), size):
            for options in product(*(pairs[n][1] for n in remedies)):
                tried = [(pairs[n][0], option) for n, option in zip(remedies, options, strict=True)]
                if (limit is None or cost(tried) < limit) and fits(tried, asking):
                    return tried
    return None


def fits(tried: Sequence[Pair], asking: Asking) -> bool:
    """No rule newly broken, and every phase of both places with its margin."""
    keys = [key for _, option in tried for key in option.overrides]
    if len(set(keys)) < len(keys):
        return False
    changed = {**asking.base, **{k: v for _, option in tried for k, v in option.overrides.items()}}
    predictor = asking.situation.predictor
    if set(violations(predictor.built(changed), keys)) - set(violations(predictor.built(asking.base), keys)):
        return False
    found = predictor.predict(changed)
    return not any(found.unfit(place) for place in ("gpu", "host"))


def cost(tried: Sequence[Pair]) -> Cost:
    """How many change results, the effort of all, how many there are of each price, and how far the former move."""
    prices = [price(*pair) for pair in tried]
    counts = [prices.count(name) for name in DEAREST]
    effort = sum(count * each for count, each in zip(counts, EFFORTS, strict=True))
    moved = sum(_moved(option) for (_, option), paid in zip(tried, prices, strict=True) if paid == DEAREST[0])
    return (counts[0], effort, *counts), round(moved, 9)


def price(proposal: Proposal, option: Option) -> str:
    """Its tier; results that change cost most; what a case of this kind did for free costs least."""
    if proposal.remedy.results == "changed" or any(fact.results == "changed" for fact in option.facts):
        return DEAREST[0]
    return "shown" if proposal.cases and proposal.remedy.tier == "free" else proposal.remedy.tier


def _moved(option: Option) -> float:
    return 0.0 if option.documented is not None else option.distance


def _pairs(asking: Asking) -> list[tuple[Proposal, list[Option]]]:
    known = [*asking.proposals, *select.elsewhere(asking.proposals, asking.situation, asking.base)]
    return [(p, own) for p in known if (own := list(_useful(p, asking)))]


def _useful(proposal: Proposal, asking: Asking) -> Iterator[Option]:
    """Values that save anything anywhere, or move a wall."""
    before = asking.situation.predictor.predict(asking.base).ledger
    for option in proposal.options:
        after = asking.situation.predictor.predict({**asking.base, **option.overrides}).ledger
        pairs = [*zip(before.gpu, after.gpu, strict=False), *zip(before.host, after.host, strict=False)]
        if any(now.expected < was.expected for was, now in pairs) or after.host_limit != before.host_limit:
            yield option


def _taken(proposal: Proposal, pairs: Sequence[tuple[Proposal, list[Option]]]) -> Option:
    own = next(options for known, options in pairs if known.remedy.id == proposal.remedy.id)
    return next(option for option in own if option.overrides == proposal.overrides)


def main(count: int) -> None:
    patch = pytest.MonkeyPatch()
    seconds: list[float] = []
    outcomes = {"fits": 0, "nothing fits": 0, "no question": 0, "beaten": 0}
    for seed in range(count):
        with tempfile.TemporaryDirectory() as folder:
            found = told(seed, Path(folder), patch)
        for asking in found.asked[-1:]:
            seconds.append(asking.seconds)
            better = cheaper(asking)
            outcomes["beaten" if better else "nothing fits" if asking.answer is None else "fits"] += 1
            if better:
                mine = None if asking.answer is None else [(p.remedy.id, dict(p.overrides)) for p in asking.answer]
                print(f"seed {seed}: {mine}\n  beaten by {[(p.remedy.id, o.overrides) for p, o in better]}")
        outcomes["no question"] += not found.asked
    print(outcomes, f"median {median(seconds) * 1000:.0f} ms, worst {max(seconds) * 1000:.0f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
