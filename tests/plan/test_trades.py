"""What a step takes from the other place is told in its own line; one that overfills it comes last, unless it is what
relieves the host most."""

from __future__ import annotations

from pathlib import Path

from advisor.memory.fit import capacity_of
from advisor.report.phrases import trade_words
from advisor.session import SessionRequest, State, open_session

OFFLOADED = (
    "FORCE_TORCHRUN=1 llamafactory-cli train --stage sft --do_train --finetuning_type full --bf16 true "
    "--model_name_or_path Qwen/Qwen2.5-32B-Instruct --cutoff_len 8192 "
    "--deepspeed examples/deepspeed/ds_z3_offload_config.json --per_device_train_batch_size 1\n"
)
ON_THE_CARD = OFFLOADED.replace("ds_z3_offload_config.json", "ds_z3_config.json")


def opened(folder: Path, script: str, **given: str) -> State:
    (folder / "run.sh").write_text(script)
    answers = {"memory": given.pop("memory")}
    return open_session(SessionRequest(script=folder / "run.sh", answers=answers, **given))  # type: ignore[arg-type]


def test_what_only_moves_the_failure_is_last_and_says_so(tmp_path: Path) -> None:
    state = opened(tmp_path, OFFLOADED, gpus="8xA100-40GB", host_ram="503GB", memory="host")
    spilling = [step for step in state.plan.steps if step.spills and not step.selected]
    assert spilling
    largest = max(state.plan.steps, key=lambda step: max(step.saves.values(), default=0))
    others = [step for step in spilling if step is not largest]
    assert others == list(state.plan.steps[len(state.plan.steps) - len(others) :])
    for step in spilling:
        taken, short = trade_words(step, state.ledger)
        assert taken.startswith("+")
        assert taken.endswith(f" gpu of {(capacity_of(state.ledger, 'gpu') or 0) / 2**30:.0f}")
        assert "too much" in short


def test_offload_to_host_ram_tells_how_much_of_it(tmp_path: Path) -> None:
    state = opened(tmp_path, ON_THE_CARD, gpus="8xA100-80GB", host_ram="2TB", memory="gpu")
    offload = next(step for step in state.plan.steps if min(step.host_saves.values(), default=0) < 0)
    (taken,) = trade_words(offload, state.ledger)
    assert taken.startswith("+")
    assert " host of " in taken


def test_a_trade_nobody_can_sum_up_is_counted_from_the_parameters(tmp_path: Path) -> None:
    script = (
        "uv run examples/run_grpo_math.py --config mine.yaml policy.model_name=Qwen/Qwen3-32B cluster.gpus_per_node=8\n"
    )
    state = opened(tmp_path, script, gpus="8xH100-80GB", memory="gpu")
    assert state.ledger.missing
    costs = {step.id: step.costs for step in state.plan.steps}
    assert "488 to 549 GiB (16 to 18 bytes per parameter) of host RAM over all nodes" in costs["full-cpu-offload"]
