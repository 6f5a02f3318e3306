"""Cards before compute capability 8.0 have no bf16 and no FlashAttention 2: neither is advised there."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session

SCRIPT = "llamafactory-cli train run.yaml\n"
CONFIG = """model_name_or_path: Qwen/Qwen2.5-0.5B-Instruct
stage: dpo
finetuning_type: full
cutoff_len: 4096
per_device_train_batch_size: 1
gradient_accumulation_steps: 1
deepspeed: examples/deepspeed/ds_z3_offload_config.json
"""


@pytest.mark.parametrize(("gpus", "advised"), [("8xV100-16GB", False), ("8xA10-24GB", True)])
def test_what_the_card_cannot_do_is_not_advised(tmp_path: Path, gpus: str, advised: bool) -> None:
    (tmp_path / "run.sh").write_text(SCRIPT)
    (tmp_path / "run.yaml").write_text(CONFIG)
    asked = SessionRequest(tmp_path / "run.sh", gpus=gpus, answers={"memory": "gpu"})
    plan = open_session(asked).plan
    told = {step.id for step in plan.steps} | {one.id for one in plan.not_proposed}
    assert ("bf16-compute" in told) is advised
