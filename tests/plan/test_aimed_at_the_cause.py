"""What is switched on is aimed at the stated cause, and what ends it stands among the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.knowledge import load_knowledge
from advisor.session import SessionRequest, State, open_session
from tests.loops import each

CAUSES = {cause.id: cause for cause in load_knowledge().tree.causes}
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} GiB. GPU 0 has a total capacity of 79.11 "
    "GiB of which 1.20 GiB is free. Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the "
    "allocated memory {held} GiB is allocated by PyTorch, and {idle} GiB is reserved by PyTorch but unallocated.\n"
)
FULL = OOM.format(tried="3.10", held="76.00", idle="0.30")
IN_PIECES = OOM.format(tried="3.90", held="62.30", idle="12.80")
SLIME = (
    "python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate --hf-checkpoint /root/Qwen3-4B "
    "--rollout-max-response-len 16384 --use-dynamic-batch-size --max-tokens-per-gpu 4096 "
    "--tensor-model-parallel-size 2 --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 "
    "--sglang-mem-fraction-static 0.7\n"
)
DPO = "trl dpo --model_name_or_path Qwen/Qwen2.5-7B-Instruct --per_device_train_batch_size 2 --max_length 2048\n"


def opened(folder: Path, log: str = "", script: str = "", gpus: str = "8xH100-80GB", **answers: str) -> State:
    given: dict[str, Path] = {}
    if script:
        given = {"script": folder / "run.sh"}
        given["script"].write_text(script)
    logs = (folder / "train.log",) if log else ()
    for one in logs:
        one.write_text(log)
    return open_session(SessionRequest(**given, logs=logs, gpus=gpus, answers=answers))


def test_memory_in_pieces_is_not_met_by_what_lowers_a_sum(tmp_path: Path) -> None:
    state = opened(tmp_path, IN_PIECES, SLIME, phase="actor_update")
    assert state.diagnosis.cause == "fragmentation"
    assert {step.id for step in state.plan.selected()} <= set(CAUSES["fragmentation"].remedies)


POOR_PIECES = OOM.format(tried="{tried}", held="71.20", idle="6.70")


def test_pieces_that_joined_would_have_done_are_not_ruled_out_and_lead_where_the_request_is_small(
    tmp_path: Path,
) -> None:
    for tried in ("0.25", "2.50", "9.00"):
        state = opened(tmp_path, POOR_PIECES.format(tried=tried), DPO, phase="actor_update")
        out = {one.cause for one in (*state.diagnosis.ruled_out, *state.diagnosis.less_likely)}
        ids = [step.id for step in state.plan.steps if not step.selected]
        assert ("fragmentation" in out) == (tried == "9.00")
        assert ("join-pieces" in ids[:2]) == (tried == "0.25")


def test_where_memory_lay_in_pieces_no_sum_refuses_to_join_them(tmp_path: Path) -> None:
    state = opened(tmp_path, FULL, DPO, phase="actor_update", message="fragmented")
    assert "expandable-segments" not in {step.id for step in state.plan.steps}  # 0.3 GiB, joined, are too little
    state = opened(tmp_path, POOR_PIECES.format(tried="1.00"), DPO, phase="actor_update", message="fragmented")
    assert [step.id for step in state.plan.selected()][:1] == ["expandable-segments"]


@each("cause", [cause.id for cause in CAUSES.values() if not cause.counted])
def test_what_the_ledger_does_not_sum_is_a_cause_of_the_card_or_grows_or_is_a_limit(cause: str) -> None:
    assert CAUSES[cause].memory == "gpu" or cause in (
        "host-growth",
        "save-grows",
        "locked-memory",
        "outside-the-list",
        "numa-bound",
    )


def test_growth_of_ram_is_met_by_what_ends_it_before_what_buys_steps(tmp_path: Path) -> None:
    state = opened(tmp_path, "", SLIME, memory="host", host_growth="yes")
    order = [step.id for step in state.plan.steps]
    assert order.index("restart-from-checkpoint-host") < order.index("ray-threshold")
    assert "more-host-ram" not in order
    assert not state.plan.selected()


def test_a_run_that_trains_on_given_answers_is_offered_no_engine(tmp_path: Path) -> None:
    state = opened(tmp_path, FULL, DPO, phase="actor_update")
    assert not {"lower-rollout-share", "higher-rollout-tp", "eager-rollout"} & {step.id for step in state.plan.steps}


def test_one_long_batch_is_met_by_a_cap_among_the_first(tmp_path: Path) -> None:
    state = opened(tmp_path, FULL, phase="actor_update", first_step="no")
    assert state.diagnosis.cause == "long-sequence"
    assert {"length-filter", "shorten-sequences", "shorten-responses"} & {step.id for step in state.plan.steps[:4]}


def test_without_a_framework_no_case_of_another_is_a_change(tmp_path: Path) -> None:
    for gpus in ("4xA100-80GB", "8xA100-40GB", "8xH100-80GB"):
        for log in (FULL, IN_PIECES):
            assert not [step.id for step in opened(tmp_path, log, gpus=gpus).plan.steps if step.id.startswith("as-in-")]


def test_a_case_is_called_like_this_one_only_where_framework_and_phase_are_the_same(tmp_path: Path) -> None:
    for phase in ("actor_update", "rollout_init", "checkpoint"):
        for case in opened(tmp_path, FULL, framework="verl", phase=phase).diagnosis.cases:
            wanted = next(one for one in load_knowledge().cases if one.id == case.id)
            assert not case.alike or wanted.situation["framework"] == "verl"
            assert not case.alike or wanted.situation.get("phase", phase) == phase


@pytest.mark.parametrize("model", ["Qwen/Qwen2.5-72B-Instruct", "deepseek-ai/DeepSeek-V3"])
def test_that_nothing_is_enough_is_said_with_what_it_assumes(tmp_path: Path, model: str) -> None:
    script = f"trl dpo --model_name_or_path {model} --per_device_train_batch_size 2\n"
    state = opened(tmp_path, "", script, gpus="2xRTX-3090-24GB", memory="gpu")
    assert "longest row" in " ".join(state.ledger.assumed)
    assert "assumes: lengths of the data" in state.plan.beyond
    assert "longest row" in state.plan.beyond
    assert "largest card" not in state.plan.beyond
