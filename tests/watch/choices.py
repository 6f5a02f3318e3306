"""Tables what `watch --retry` chooses after deaths, documented and made up: `python -m tests.watch.choices [--write]`.

The runs are those of tests/watch/made_deaths/deaths.yaml, with what somebody on call would say of each choice.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import yaml
from msgspec import Struct, convert

from advisor.commands.retry_choice import NoRetry, RetryRules, RunDeath, choose
from advisor.plan.patch import bare
from advisor.run.resume import cost_of_a_death, resumption_of
from advisor.session import SessionRequest, State, open_session

HERE = Path(__file__).parent / "made_deaths"
FILE = Path(__file__).parents[2] / "docs" / "retry.md"
BEGINS, ENDS = "<!-- choices: python -m tests.watch.choices --write -->\n", "<!-- /choices -->\n"


class MadeDeath(Struct, frozen=True):
    """A launch and the log of its death."""

    name: str
    script: str
    log: str
    judged: str
    gpus: str = ""
    host_ram: str = ""

    @property
    def folder(self) -> Path:
        """Where the command was started."""
        return (HERE / self.script).parent


def deaths() -> list[MadeDeath]:
    """All of the table."""
    return convert(yaml.safe_load((HERE / "deaths.yaml").read_text(encoding="utf-8")), list[MadeDeath])


@cache
def opened(death: MadeDeath) -> State:
    """Its session."""
    asked = SessionRequest(script=HERE / death.script, logs=(HERE / death.log,))
    given = {"gpus": death.gpus, "host_ram": death.host_ram} if death.gpus else {}
    return open_session(SessionRequest(script=asked.script, logs=asked.logs, **given))


def choice(death: MadeDeath, from_scratch: bool) -> str:
    """What it does, in words."""
    rules = RetryRules(from_scratch=from_scratch)
    found = choose(opened(death), [RunDeath("actor_update", 1)], rules, death.folder)
    if isinstance(found, NoRetry):
        return "no: " + found.why.value.removeprefix("no retry: ").partition(" (")[0]
    return ", ".join(f"`{bare(key)}` {new or 'removed'}" for key, new in found.changes)


def cost(death: MadeDeath) -> str:
    """What a death costs, as it is said before the start."""
    state = opened(death)
    assert state.situation is not None
    assert state.launch is not None
    built, program = state.situation.predictor.built(), death.folder / state.launch.program
    return cost_of_a_death(resumption_of(built, death.folder, program)).replace(f"{death.folder}/", "")


def table() -> str:
    """As docs/retry.md has it."""
    rows = ["| run | a death costs | choice | with `--from-scratch` | judged |", "|---|---|---|---|---|"]
    for death in deaths():
        plain, scratch = choice(death, False), choice(death, True)
        cells = (death.name, cost(death), plain, "the same" if scratch == plain else scratch, death.judged)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Print the table, or write it."""
    found = table()
    if "--write" not in arguments:
        print(found, end="")
        return 0
    before, _, rest = FILE.read_text(encoding="utf-8").partition(BEGINS)
    _, _, after = rest.partition(ENDS)
    FILE.write_text(f"{before}{BEGINS}{found}{ENDS}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
