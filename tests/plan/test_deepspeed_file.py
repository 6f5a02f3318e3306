"""The DeepSpeed file that a launch names is edited where it can be read; accelerate's file is then no lever."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from advisor.cli import main
from tests.plan.planned import Planned, Step, changes

BARE = "torch.OutOfMemoryError: CUDA out of memory. \n"
MODEL = "Qwen/Qwen2.5-32B"
LAUNCHES = {
    "trl": f"torchrun --nproc_per_node=8 src/open_r1/grpo.py --model_name_or_path {MODEL} --num_generations 8 "
    "--max_completion_length 512 --dataset_name x --output_dir o --deepspeed zero3.json\n",
    "ms-swift": f"NPROC_PER_NODE=8 swift sft --model {MODEL} --train_type full --dataset x/y --deepspeed zero3.json\n",
    "llamafactory": f"torchrun --nproc_per_node=8 src/train.py --stage sft --finetuning_type full --dataset x "
    f"--model_name_or_path {MODEL} --output_dir o --deepspeed zero3.json\n",
}
OFFLOAD = "deepspeed:zero_optimization.offload_optimizer.device"


def offload(planned: Planned, framework: str) -> Step:
    steps = planned(LAUNCHES[framework], BARE, "--answer", "phase=actor_update", "--answer", "holder=states")
    return steps["cpu-optimizer"]


@pytest.mark.parametrize("framework", LAUNCHES)
@pytest.mark.parametrize("zero", [{"stage": 3}, {"stage": 3, "offload_optimizer": {"device": "none"}}])
def test_offload_is_written_into_the_file_itself(
    planned: Planned, tmp_path: Path, framework: str, zero: dict[str, object]
) -> None:
    (tmp_path / "zero3.json").write_text(json.dumps({"zero_optimization": zero}))
    step = offload(planned, framework)
    assert {key: new for key, (_, new) in changes(step).items()} == {OFFLOAD: "cpu"}


def test_a_file_that_was_not_found_is_named_and_the_launchers_is_not(planned: Planned) -> None:
    step = offload(planned, "trl")
    assert changes(step) == {OFFLOAD: (None, "cpu")}
    assert any("the DeepSpeed file (--deepspeed)" in caveat for caveat in step["caveats"])


def test_what_is_off_in_the_file_is_not_switched_off(planned: Planned, tmp_path: Path) -> None:
    (tmp_path / "zero3.json").write_text(
        json.dumps({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "none"}}})
    )
    steps = planned(LAUNCHES["trl"], "Out of memory: Killed process 7 (python)\n", "--answer", "host_growth=no")
    assert not {"cpu-optimizer-off", "param-offload-off"} & {
        name for name, step in steps.items() if step.get("changes")
    }


@pytest.mark.parametrize("framework", LAUNCHES)
def test_offload_that_fills_the_host_is_switched_off_in_the_file(
    planned: Planned, tmp_path: Path, framework: str
) -> None:
    zero = {"stage": 3, "offload_optimizer": {"device": "cpu"}}
    (tmp_path / "zero3.json").write_text(json.dumps({"zero_optimization": zero}))
    steps = planned(LAUNCHES[framework], "Out of memory: Killed process 7 (python)\n", "--answer", "host_growth=no")
    assert changes(steps["cpu-optimizer-off"]) == {OFFLOAD: ("cpu", "none")}


def test_numbers_that_must_agree_are_written_together_and_the_script_names_the_new_file(tmp_path: Path) -> None:
    script, log, file = tmp_path / "run.sh", tmp_path / "train.log", tmp_path / "ds.json"
    options = "--per_device_train_batch_size 8 --gradient_accumulation_steps 4 --max_length 16384"
    kept = "--bf16 true --output_dir o --gradient_checkpointing True"
    script.write_text(
        f"deepspeed --num_gpus 8 sft.py --model_name_or_path Qwen/Qwen2.5-7B --deepspeed ds.json {options} {kept}\n"
    )
    log.write_text(f'  File "/x/transformers/trainer.py", line 3, in training_step\n{BARE}')
    numbers = {"train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 4}
    file.write_text(json.dumps({**numbers, "zero_optimization": {"stage": 2}}))
    steps = ["--accept", "lower-actor-micro-batch", "--gpus", "8xH100-80GB", "--host-ram", "1000GB"]
    main(["fix", str(script), "--log", str(log), *steps])
    new = json.loads((tmp_path / "ds.fits.json").read_text())
    words = (tmp_path / "run.fits.sh").read_text().split()
    given = dict(pairwise(words))
    micro, steps_of_it = new["train_micro_batch_size_per_gpu"], new["gradient_accumulation_steps"]
    assert micro < 8
    assert given["--deepspeed"] == "ds.fits.json"
    assert (given["--per_device_train_batch_size"], given["--gradient_accumulation_steps"]) == (
        str(micro),
        str(steps_of_it),
    )


NAMED_IN = {
    "ax.yaml": ("base_model: Qwen/Qwen2.5-7B\nmicro_batch_size: 1\ndeepspeed: ds.json\n", "axolotl train ax.yaml"),
    "lf.yaml": ("model_name_or_path: Q/Q\nstage: sft\ndeepspeed: ds.json\n", "llamafactory-cli train lf.yaml"),
    "acc.yaml": (
        "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n",
        "accelerate launch --config_file acc.yaml train_sft.py --per_device_train_batch_size 2",
    ),
    "sft.py": (
        "from trl import SFTConfig, SFTTrainer\n"
        'SFTTrainer(model="Qwen/Qwen2.5-7B", args=SFTConfig(max_length=64, deepspeed="ds.json")).train()\n',
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED_IN)
def test_a_config_names_the_new_file_and_the_launch_script_the_new_config(tmp_path: Path, name: str) -> None:
    text, command = NAMED_IN[name]
    (tmp_path / name).write_text(text)
    (tmp_path / "run.sh").write_text(command + "\n")
    (tmp_path / "ds.json").write_text(json.dumps({"zero_optimization": {"stage": 2}}))
    given = "run.sh" if command else name
    assert main(["set", str(tmp_path / given), "deepspeed:zero_optimization.stage=3"]) == 0
    assert json.loads((tmp_path / "ds.fits.json").read_text()) == {"zero_optimization": {"stage": 3}}
    fits = name.replace(".", ".fits.")
    assert (tmp_path / fits).read_text() == text.replace("ds.json", "ds.fits.json")
    assert not command or command.replace(name, fits) in (tmp_path / "run.fits.sh").read_text()
