"""Where the log shows no phase, a size that one tensor of this model has is named: it says what was being made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.told import tell

LAUNCH = (
    "deepspeed --include localhost:0,1,2,3 src/train.py --stage sft --do_train --template baichuan2 --dataset x"
    " --model_name_or_path baichuan-inc/Baichuan2-13B-Chat --finetuning_type full --output_dir out --bf16\n"
)


@pytest.mark.parametrize(("tried", "named"), [("12.94", True), ("11.07", False)])
def test_one_ranks_share_of_the_model_is_named_by_its_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tried: str, named: bool
) -> None:
    (tmp_path / "run.sh").write_text(LAUNCH)
    (tmp_path / "train.log").write_text(
        f"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} GiB (GPU 1; 79.35 GiB total "
        "capacity; 77.65 GiB already allocated; 316.12 MiB free; 77.66 GiB reserved in total by PyTorch)\n"
    )
    words = ["diagnose", str(tmp_path / "run.sh"), "--log", str(tmp_path / "train.log"), "--gpus", "4xA800-80GB"]
    text = " ".join(tell(words, capsys)[1].split())
    assert ("what one of 4 ranks has of 13.90B parameters" in text) is named
