"""Config files that a script writes itself are read and edited where they stand in the script."""

from __future__ import annotations

import pytest

from advisor.script.document import EditRefused, EditRequest
from advisor.script.edit import rewrite
from tests.script.conftest import Edited, Read, values

SCRIPT = """#!/bin/bash
MICRO=4
cat > ./ds.json <<'EOF'
{
  "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "none"}},
  "bf16": {"enabled": true}
}
EOF
cat > conf/grpo.yaml <<EOF
learning_rate: 1.0e-6  # kept
per_device_train_batch_size: $MICRO
EOF
echo "num_generations: 8" >> conf/grpo.yaml
accelerate launch train_grpo.py --config conf/grpo.yaml --deepspeed ds.json
"""


def test_settings_of_a_written_file_are_those_of_the_launch(read: Read) -> None:
    (launch,) = read(SCRIPT).launches
    assert values(launch) == {
        "learning_rate": "1.0e-6",
        "per_device_train_batch_size": "4",
        "num_generations": "8",
        "deepspeed:zero_optimization.stage": "2",
        "deepspeed:zero_optimization.offload_optimizer.device": "none",
        "deepspeed:bf16.enabled": "true",
        "--config": "conf/grpo.yaml",
        "--deepspeed": "ds.json",
    }
    lines = {key: s.span.line for key, s in launch.effective().items() if s.span}
    assert lines["deepspeed:zero_optimization.stage"] == 5
    assert lines["per_device_train_batch_size"] == 2
    assert lines["num_generations"] == 13


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("deepspeed:zero_optimization.stage", "3", '"stage": 2', '"stage": 3'),
        ("deepspeed:zero_optimization.offload_optimizer.device", "cpu", '"none"', '"cpu"'),
        ("deepspeed:zero_optimization.offload_optimizer", None, "", ""),
        ("deepspeed:zero_optimization.stage", None, '"stage": 2, ', ""),
        ("num_generations", "4", "--deepspeed ds.json", "--deepspeed ds.json --num_generations 4"),
    ],
)
def test_a_written_file_is_edited_in_the_script(
    edited: Edited, key: str, value: str | None, old: str, new: str
) -> None:
    assert edited(SCRIPT, EditRequest(key, value)) == SCRIPT.replace(old, new)


def test_a_heredoc_that_expands_takes_no_value_that_would_be_expanded(read: Read) -> None:
    script = read(SCRIPT.replace("<<'EOF'", "<<EOF"))
    with pytest.raises(EditRefused, match="quotes"):
        rewrite(script, 0, [EditRequest("deepspeed:zero_optimization.offload_optimizer.device", "$HOME")])


def test_a_file_written_from_what_is_not_known_is_not_followed(read: Read) -> None:
    (launch,) = read("cat > a.yaml <<E\nlr: $(date)\nE\npython train.py --config a.yaml\n").launches
    assert values(launch) == {"--config": "a.yaml"}
    assert any("writes a.yaml itself" in note for note in launch.notes)


def test_a_later_file_of_the_same_name_counts(read: Read) -> None:
    script = "echo 'lr: 1' > a.yaml\necho 'lr: 2' > ./a.yaml\npython train.py --config a.yaml\n"
    assert values(read(script).launches[0])["lr"] == "2"
