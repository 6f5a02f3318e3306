"""An engine that another command serves holds nothing of the cards that this launch trains on."""

from __future__ import annotations

import pytest

from tests.measured.published import ledger_of

RUN = {"framework": "ms-swift", "program": "swift rlhf", "model": "Qwen/Qwen2.5-7B", "gpus": "8xA100-80GB"}
GRPO = {"rlhf_type": "grpo", "tuner_type": "full", "deepspeed": "zero3", "use_vllm": True, "torch_dtype": "bfloat16"}


@pytest.mark.parametrize(("mode", "here"), [("server", False), ("colocate", True)])
def test_a_served_engine_has_no_phases_of_its_own_here(mode: str, here: bool) -> None:
    found = ledger_of({**RUN, "settings": {**GRPO, "vllm_mode": mode}})
    owners = {cell.owner for phase in found.gpu for cell in phase.cells}
    assert ("kv_cache" in owners) is here
    assert (found.phase("gpu", "rollout_generate") is not None) is here
    assert found.phase("gpu", "weight_sync") is not None
