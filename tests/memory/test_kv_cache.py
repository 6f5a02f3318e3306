"""A number of the KV cache in one byte instead of two: twice the tokens in the same room."""

from __future__ import annotations

import re
from pathlib import Path

from advisor.session import SessionRequest, open_session

LAUNCH = (
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct trainer.nnodes=1 "
    "trainer.n_gpus_per_node=8 data.train_batch_size=64 actor_rollout_ref.rollout.gpu_memory_utilization=0.5 "
    "actor_rollout_ref.rollout.tensor_model_parallel_size=1"
)


def tokens(folder: Path, more: str = "") -> int:
    (folder / "run.sh").write_text(f"{LAUNCH} {more}\n")
    state = open_session(SessionRequest(folder / "run.sh", gpus="8xA100-80GB", host_ram="1000GB"))
    phase = state.ledger.phase("gpu", "rollout_generate")
    assert phase is not None
    (cache,) = (cell for cell in phase.cells if cell.owner == "kv_cache")
    found = re.search(r"([\d,]+) tokens", cache.formula)
    assert found is not None, cache.formula
    return int(found[1].replace(",", ""))


def test_fp8_holds_twice_the_tokens(tmp_path: Path) -> None:
    fp8 = "+actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_dtype=fp8_e5m2"
    assert abs(tokens(tmp_path, fp8) - 2 * tokens(tmp_path)) <= 1


def test_auto_is_as_the_model_is(tmp_path: Path) -> None:
    auto = "+actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_dtype=auto"
    assert tokens(tmp_path, auto) == tokens(tmp_path)
