"""Pictures are made smaller only where the model may see them."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.request import SessionRequest
from advisor.session import open_session

RECIPE = (
    "model_name_or_path: {model}\nstage: sft\ndo_train: true\nfinetuning_type: lora\ndataset: alpaca_en\n"
    "template: default\ncutoff_len: 8192\noutput_dir: out\nper_device_train_batch_size: 2\n"
)
LOG = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.00 GiB. GPU 0 has a total capacity of 39.39 GiB\n"
)


@pytest.mark.parametrize(
    ("model", "offered"), [("meta-llama/Meta-Llama-3-8B-Instruct", False), ("Qwen/Qwen2.5-VL-7B-Instruct", True)]
)
def test_a_default_limit_of_pixels_is_no_sign_of_pictures(tmp_path: Path, model: str, offered: bool) -> None:
    (tmp_path / "a.yaml").write_text(RECIPE.format(model=model))
    (tmp_path / "a.log").write_text(LOG)
    state = open_session(SessionRequest(tmp_path / "a.yaml", (tmp_path / "a.log",), gpus="1xA100-40GB"))
    assert ("fewer-pixels" in [step.id for step in state.plan.steps]) is offered
