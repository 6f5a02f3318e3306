"""What-ifs of one launch share tables: each is the run that it would be without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.run.bound import Tables
from advisor.run.build import build_run
from advisor.run.constraints import violations
from advisor.run.topology import decided_by
from tests.knowledge.test_every_remedy import ERAS, folder, opened
from tests.replacing import replace

__all__ = ["folder"]
NEWEST = {framework.framework: (framework, era, versions) for framework, era, versions in ERAS}
OTHERS = 6
"""Keys beside those that the topology depends on."""


@pytest.mark.parametrize("dialect", NEWEST)
def test_a_what_if_is_the_run_that_it_would_be_alone(dialect: str, folder: Path) -> None:
    framework, era, versions = NEWEST[dialect]
    predictor = opened(framework.framework, era, versions, folder).situation.predictor
    natives = predictor.built().natives
    deciding = [key for key in decided_by(natives, predictor.inputs.tables) if key in natives.values]
    others = [key for key in natives.values if key not in deciding]
    keys = list(natives.values)
    for key in (*deciding, *others[:: len(others) // OTHERS + 1]):
        for text in ("4", None):
            inputs = replace(predictor.inputs, overrides={key: text})
            what_if, alone = build_run(inputs), build_run(replace(inputs, tables=Tables()))
            assert what_if.run == alone.run, (key, text)
            assert violations(what_if, keys, like=predictor.built()) == violations(alone, keys), (key, text)
