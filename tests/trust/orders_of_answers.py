"""Answers the questions of every story at random, in several orders and with answers taken back, and compares the ends.

    python -m tests.trust.orders_of_answers [WALKS]    (3 a story by default, two minutes)

Whatever was answered last must be all that counts: one set of answers, one diagnosis, to the byte of its JSON.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

from advisor import session
from advisor.commands import app_parser
from advisor.commands.requests import asked_from
from advisor.diagnosis.open_questions import FRAMEWORKS
from advisor.report.json_report import diagnose_json
from advisor.session import State
from tests.stories.told import RUNS, STORIES

ORDERS = 3


def walk(state: State, chance: random.Random, most: int = 8) -> dict[str, str]:
    """Answers as a user gives them: to what is asked now, one after the other."""
    given: dict[str, str] = {}
    for _ in range(most):
        asked = [step for step in state.diagnosis.path if len(step.choices) > 1 and step.question not in given]
        if not asked:
            break
        step = chance.choice(asked)
        given[step.question] = chance.choice(step.choices).id
        state = session.answer(state, step.question, given[step.question])
    return given


def end_of(state: State, answers: dict[str, str], chance: random.Random) -> str:
    """The JSON after the answers in some order, one of them given otherwise first and one taken back on the way.

    A framework goes before its version, which can only be told of it.
    """
    names = list(answers)
    chance.shuffle(names)
    names.sort(key=lambda name: name not in FRAMEWORKS)
    choices = {step.question: [choice.id for choice in step.choices] for step in state.diagnosis.path}
    for name in names:
        if name in choices and chance.random() < 0.5:
            state = session.answer(state, name, chance.choice(choices[name]))
            state = session.answer(state, name, None)
        state = session.answer(state, name, answers[name])
    return json.dumps(diagnose_json(state), sort_keys=True)


def main(walks: int) -> int:
    """Go through the stories; how often two orders ended apart."""
    chance, apart, ends = random.Random(21), 0, 0
    for name, story in STORIES.items():
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(RUNS / story.folder, Path(folder), dirs_exist_ok=True)
            os.chdir(folder)
            begun = session.open_session(asked_from(app_parser().parse_args(story.words("")[1:])))
            for number in range(walks):
                answers = walk(begun, chance)
                told = {end_of(begun, answers, chance) for _ in range(ORDERS)}
                ends += ORDERS
                if len(told) > 1:
                    apart += 1
                    print(f"  {name}, walk {number}: {len(told)} ends of {answers}", flush=True)
            os.chdir("/")
    print(f"{len(STORIES)} stories, {ends} ends: {apart} walks ended apart")
    return apart


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3) > 0)
