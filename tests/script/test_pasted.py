"""Settings as people write them into a thread: without a head or an end, amid sentences, in any notation."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.script.document import EditRefused, EditRequest
from advisor.script.edit import rewrite
from advisor.script.reader import read_script
from tests.script.conftest import Read, values

NESTED = "policy:\n  max_len: 16384\n  dtensor:\n    # two\n    tensor_parallel_size: 2\n    offload: True\n"
READ = {"policy.max_len": "16384", "policy.dtensor.tensor_parallel_size": "2", "policy.dtensor.offload": "True"}
CONFIG = '{\n  "zero_optimization": {\n    "stage": 3,\n    "offload_optimizer": {"device": "cpu"},\n    "overlap'
CALL = "args = GRPOConfig(\n    #max_len=1,\n    num_generations = 8,\n    max_len=64,\n    loss_type='x',\n"


STAGES = {"zero_optimization.stage": "3", "zero_optimization.offload_optimizer.device": "cpu"}
AROUND: dict[str, tuple[str, str, dict[str, object]]] = {
    "yaml in prose": ("run.sh", f"It doesn't fit, this is my config:\n\n```yaml\n{NESTED}```\nthanks!\n", READ),
    "cut yaml": ("cut.yaml", NESTED + "  sequence_pa", READ),
    "quoted": ("run.sh", "".join(f"> {line}\n" for line in NESTED.splitlines()), READ),
    "json in prose": ("run.sh", "ds config ```\n" + CONFIG, STAGES),
    "cut json": ("cut.json", CONFIG, STAGES),
    "cut call": ("cut.py", CALL, {"num_generations": "8", "max_len": "64", "loss_type": "x"}),
    "a list": (
        "run.sh",
        "I use:\n1. num_generations = 8\n2. `max_len=64`\n- MICRO_BATCH=1\n",
        {"num_generations": "8", "max_len": "64", "micro_batch": "1"},
    ),
    "a sentence": (
        "run.sh",
        "We ran with --max_len=64 and --micro_batch 2, zero_stage=3, on 8 cards.\n",
        {"max_len": "64", "micro_batch": "2", "zero_stage": "3"},
    ),
    "settings in a variable": ("run.sh", 'N=7\nX="a.max_len=64 a.b=$N"\n', {"a.max_len": "64", "a.b": "7"}),
    "an array": ("run.sh", "N=7\nARGS=(\n   --a-b $N\n   --c\n)\n", {"--a-b": "7", "--c": ()}),
}


@pytest.mark.parametrize("form", AROUND)
def test_settings_are_read_whatever_stands_around_them(read: Read, form: str) -> None:
    name, text, expected = AROUND[form]
    (launch,) = read(text, name).launches
    assert values(launch) == expected
    assert launch.partial
    span = next(iter(launch.effective().values())).span
    assert text.encode()[span.start : span.end].decode().strip("'\"") in ("16384", "3", "8", "64", "7", "$N")


@pytest.mark.parametrize(
    ("text", "program", "expected"),
    [
        ("$ torchrun t.py --max_len 64 \\\n> --lr 1\n", "t.py", {"--max_len": "64", "--lr": "1"}),
        ("(a) me@box:~/x$ accelerate launch train.py --max_len 64\n", "train.py", {"--max_len": "64"}),
        ("!torchrun t.py --max_len 64\n", "t.py", {"--max_len": "64"}),
        ("> torchrun t.py \\\n>   --max_len 64\n", "t.py", {"--max_len": "64"}),
        ('N=7\nRUN="uv run python train.py a.len="64" \\\n  a.b=$N"\n', "train.py", {"a.len": "64", "a.b": "7"}),
    ],
)
def test_a_command_is_read_as_it_was_typed_or_kept(
    read: Read, text: str, program: str, expected: dict[str, object]
) -> None:
    (launch,) = read(text, "run.sh").launches
    assert (launch.program, values(launch), launch.partial, launch.argv) == (program, expected, False, ())


@pytest.mark.parametrize(
    "text",
    [
        "Platform: Linux\nPython: 3.10\nGPU: A100\n",
        "Try setting --max_len=64 or micro_batch=2, the default is zero_stage=2.\n",
        "#!/bin/bash\nMAX_LEN=1024\nBATCH_SIZE=4\n",
        "MAX_LEN=1024\nBATCH_SIZE=4\nbash other.sh $MAX_LEN\n",
    ],
)
def test_what_is_no_setting_of_this_run_is_not_read_as_one(read: Read, text: str) -> None:
    assert read(text, "run.sh").launches == ()


@pytest.mark.parametrize(
    "text",
    ["I ran it with EasyR1 on one card. It doesn't fit.\n", "The run of TRL died (always in\nthe first step).\n"],
)
def test_sentences_without_a_setting_are_read_for_their_words(read: Read, text: str) -> None:
    (launch,) = read(text, "run.sh").launches
    assert (values(launch), launch.partial) == ({}, True)
    assert {"EasyR1", "TRL"} & set(launch.prose)


def test_pasted_settings_are_not_written_into(read: Read) -> None:
    with pytest.raises(EditRefused):
        rewrite(read("It is this:\n" + NESTED, "run.sh"), 0, [EditRequest("policy.max_len", "2")])


def test_lines_of_settings_without_a_command_are_not_a_cut_one(tmp_path):
    script = tmp_path / "run.sh"
    keys = ("actor_rollout_ref.actor.ulysses_sequence_parallel_size", "actor_rollout_ref.actor.ppo_mini_batch_size")
    script.write_text("".join(f"{key}=4\n" for key in keys))
    launch = read_script(script).launches[0]
    assert {setting.key for setting in launch.settings} == set(keys)
    assert launch.cuts == ()


YAML = """# the recipe of the run
model_name_or_path: Qwen/Qwen2.5-7B
learning_rate: 2.0e-5
per_device_train_batch_size: 4  # of each card
report_to:
- wandb
"""


@pytest.mark.parametrize("name", ["run.sh", "recipe", "recipe.txt"])
def test_the_text_of_a_config_file_is_one_whatever_its_name(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(YAML)
    script = read_script(file)
    assert script.documents[0].kind == "yaml"
    (launch,) = script.launches
    assert launch.effective()["per_device_train_batch_size"].value == "4"
    assert not launch.partial


@pytest.mark.parametrize("text", ["Platform: Linux\nPython: 3.11\n", "set -x\nmodel_name: x\nbatch_size: 4\n"])
def test_prose_and_commands_are_no_config_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.sh"
    file.write_text(text)
    assert read_script(file).documents[0].kind == "shell"


def test_a_config_pasted_behind_its_command_is_taken_for_the_file_it_names(read: Read) -> None:
    text = "llamafactory-cli train x.yaml\n\n# model\nmodel_name_or_path: a/b\ncutoff_len: 8192\nstage: dpo\n"
    (launch,) = read(text, "run.sh").launches
    assert (values(launch), launch.missing) == (
        {"model_name_or_path": "a/b", "cutoff_len": "8192", "stage": "dpo"},
        (),
    )


def test_a_call_that_was_cut_off_is_read_up_to_there(read: Read) -> None:
    text = (
        "t = DPOTrainer(\n    model = m,\n    args = TrainingArguments(\n        max_steps = 4,\n        fp16 = not f("
    )
    (launch,) = read(text, "run.sh").launches
    assert values(launch)["max_steps"] == "4"
    assert "DPOTrainer" in launch.bases


def test_a_config_behind_a_variable_is_known_by_its_name(read: Read) -> None:
    (launch,) = read("torchrun t.py --deepspeed $ROOT/x/zero3_offload.json --lr 1\n", "run.sh").launches
    assert [(one.file, one.holds) for one in launch.not_found] == [("zero3_offload.json", "deepspeed")]
