"""Every setting that says that it moves GPU memory changes what is computed, or an estimate names it as not counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.cli import main
from advisor.knowledge import load_knowledge
from advisor.memory.cells import Ledger
from advisor.memory.ledger import build_ledger
from advisor.run.run import Knob, KnobValue
from tests.memory.made_runs import KNOBS, made_run
from tests.replacing import replace

BY_CONSTRUCTION = {
    "actor.bf16": "what is assumed anyway",
    "actor.bf16_states": "the optimizer that it is told with",
    "algorithm.estimator": "the method",
    "algorithm.kl": "whether a reference is built (run/filled_knobs.py)",
    "actor.gathers_to_generate": "the mechanics of TRL and ms-swift",
    "actor.sequence_parallel": "the topology",
    "critic.path": "the shape of the critic (run/model_read.py)",
    "deepspeed.config": "the file that it names",
    "reward.path": "the topology's reward_on",
    "rollout.colocated": "the topology",
    "rollout.engines": "the topology",
    "rollout.sleep_level": "what a sleeping engine leaves in host RAM",
    "rollout.tensor_parallel": "the topology",
    "teacher.path": "the size of a distilled model's teacher",
    "teacher.offload": "whether that teacher leaves the cards",
    "teacher.zero_stage": "how that teacher is shared out",
}
"""Knobs that act before the ledger is built: by what."""
USUAL: dict[str, tuple[KnobValue, ...]] = {"bool": (True, False), "int": (1, 2, 8), "float": (0.1, 0.9)}
WORDS = ("eager", "adamw_8bit", "bfloat16", "float32", "full", "block", "embed_tokens", "q_proj", "galore_adamw")
SEEDS = 300


def cells(ledger: Ledger) -> list[tuple[str, str, int, int]]:
    return [(phase.phase, cell.owner, cell.expected, cell.high) for phase in ledger.gpu for cell in phase.cells]


def test_every_counted_knob_of_gpu_memory_changes_a_cell_of_some_run() -> None:
    kinds = {knob.id: knob.type for knob in load_knowledge().knobs if knob.counted}
    moving = {
        name
        for framework in load_knowledge().frameworks
        for fact in framework.settings.values()
        if any(what.startswith("gpu") for what in fact.moves.values())
        for name in {fact.knob or "", *fact.also}
    }
    open_ones = {name for name in moving & kinds.keys() if not name.startswith("topology.")} - BY_CONSTRUCTION.keys()
    for seed in range(SEEDS):
        run, machine = made_run(seed)
        if seed % 2:  # no run made up has an optimizer of projections
            run = replace(
                run, knobs={**run.knobs, "actor.optimizer": Knob("actor.optimizer", "galore_adamw", "script")}
            )
        before = cells(build_ledger(run, machine))
        for name in sorted(open_ones):
            for value in KNOBS.get(name) or USUAL.get(kinds[name], WORDS):
                changed = replace(run, knobs={**run.knobs, name: Knob(name, value, "script")})
                if cells(build_ledger(changed, machine)) != before:
                    open_ones.discard(name)
                    break
        if not open_ones:
            break
    assert not open_ones


LAUNCH = "trl sft --model_name_or_path Qwen/Qwen2.5-7B --max_length 2048 --torch_empty_cache_steps {steps}\n"


@pytest.mark.parametrize(("steps", "named"), [("10", True), ("0", False)])
def test_an_estimate_names_what_it_does_not_count(
    steps: str, named: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.sh"
    file.write_text(LAUNCH.format(steps=steps))
    main(["estimate", str(file), "--gpus", "1xA100-80GB", "--format", "json"])
    assumed = json.loads(capsys.readouterr().out)["memory"]["assumed"]
    told = [said for said in assumed if said.startswith("not counted")]
    assert told == (["not counted, though it moves GPU memory: torch_empty_cache_steps"] if named else [])
