"""Writes docs/ten-crashes.md from the documented cases: what died, why, and what its people changed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema.advice import Case
from advisor.words import MEMORY_TITLES, PHASE_TITLES, sentence, when

FILE = Path(__file__).resolve().parents[2] / "docs" / "ten-crashes.md"
MOST = 10
HEAD = f"""# Ten crashes that people had

Each was reported in public, with what failed and what then worked, confirmed by those who tried it. They are ten of the
cases in `knowledge/cases/`, one for each framework and memory in turn; a new crash is compared with all of them.
`rl-oom-advisor explain ID` shows one; [adding a case](adding-a-case.md) tells how yours becomes one.

<!-- written by: python -m tests.knowledge.{Path(__file__).stem} --write -->
"""


def chosen() -> list[Case]:
    """Confirmed cases with what worked: one of every framework, then of every further memory, while there is room."""
    confirmed = [case for case in load_knowledge().cases if case.grade == "confirmed" and case.reported.get("worked")]
    kinds: dict[tuple[object, object], Case] = {}
    for case in sorted(confirmed, key=lambda one: (-len(_texts(one, "failed") + _texts(one, "worked")), one.id)):
        kinds.setdefault((case.situation.get("framework"), case.situation.get("memory")), case)
    frameworks = dict.fromkeys(framework for framework, _ in kinds)
    first = {next(case for (name, _), case in kinds.items() if name == framework).id for framework in frameworks}
    return sorted(kinds.values(), key=lambda one: one.id not in first)[:MOST]


def text() -> str:
    """The page."""
    titles = {one.framework: one.title for one in load_knowledge().frameworks}
    remedies = {one.id: one.title for one in load_knowledge().remedies}
    told = [line for number, case in enumerate(chosen(), 1) for line in _case(number, case, titles, remedies)]
    return "\n".join([HEAD, *told]).rstrip() + "\n"


def _case(number: int, case: Case, titles: dict[str, str], remedies: dict[str, str]) -> Iterator[str]:
    yield f"## {number}. {case.title}"
    yield ""
    framework = str(case.situation.get("framework", ""))
    yield f"{titles.get(framework, framework)} · {_verdict(case)} · `{case.id}` · [reported here]({case.source})"
    yield ""
    for key, heading in (("failed", "Died"), ("worked", "Worked")):
        yield from (f"- **{heading}:** {said}" for said in _texts(case, key))
    yield ""
    yield f"**Why.** {' '.join(case.mechanism.split())}"
    yield ""
    proposed = [remedies[one] for one in case.remedies if one in remedies]
    if proposed:
        yield f"**What the program proposes for its like:** {'; '.join(proposed)}."
        yield ""


def _verdict(case: Case) -> str:
    memory, phase = case.situation.get("memory"), case.situation.get("phase")
    kind = next((title for name, title in MEMORY_TITLES.items() if name == memory), "memory")
    place = next((name for name in PHASE_TITLES if name == phase and name != "unknown"), None)
    return sentence(f"{kind} ran out {when(place)}" if place is not None else f"{kind} ran out").rstrip(".")


def _texts(case: Case, key: str) -> list[str]:
    said = case.reported.get(key, ())
    return [str(one) for one in ([said] if isinstance(said, str) else said)]


def main(arguments: list[str]) -> None:
    """Print the page, or write it."""
    if "--write" in arguments:
        FILE.write_text(text(), encoding="utf-8")
    else:
        print(text(), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
