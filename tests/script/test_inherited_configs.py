"""Config files that name others by `defaults`, found where the framework itself looks for them."""

from __future__ import annotations

from advisor.script.document import EditRequest
from tests.script.conftest import Edited, Read, values

BASE = "policy:\n  model_name: Qwen/Qwen2.5-1.5B\n  train_micro_batch_size: 4\n  dtensor_cfg: {enabled: true}\n"
RECIPE = "defaults: ../../base.yaml\npolicy:\n  train_micro_batch_size: 1\n"
TOLD = {
    "policy.model_name": "Qwen/Qwen2.5-1.5B",
    "policy.train_micro_batch_size": "1",
    "policy.dtensor_cfg.enabled": "true",
}


def test_a_config_has_what_the_file_that_it_names_says(read: Read) -> None:
    read(BASE, "configs/base.yaml")
    assert values(read(RECIPE, "configs/recipes/llm/small.yaml").launches[0]) == TOLD
    launch = read("uv run run_grpo.py --config configs/recipes/llm/small.yaml\n").launches[0]
    assert {key: value for key, value in values(launch).items() if key != "--config"} == TOLD


def test_files_of_files_are_followed_and_the_nearest_wins(read: Read) -> None:
    read(BASE, "configs/base.yaml")
    read(RECIPE, "configs/recipes/llm/small.yaml")
    nearest = read("defaults: [small.yaml]\npolicy: {model_name: mine}\n", "configs/recipes/llm/mine.yaml").launches[0]
    assert values(nearest) == {**TOLD, "policy.model_name": "mine"}


def test_a_named_file_that_is_not_there_is_said(read: Read) -> None:
    launch = read(RECIPE, "small.yaml").launches[0]
    assert values(launch) == {"policy.train_micro_batch_size": "1"}
    assert any("../../base" in note for note in launch.notes)


def test_a_setting_called_defaults_stays_a_setting(read: Read) -> None:
    launch = read("defaults: fast\nlr: 1\n", "run.yaml").launches[0]
    assert values(launch) == {"defaults": "fast", "lr": "1"}


def test_a_change_is_written_into_the_file_given_not_into_the_one_that_it_names(read: Read, edited: Edited) -> None:
    read(BASE, "base.yaml")
    asked = EditRequest("policy.model_name", "Qwen/Qwen3-4B")
    after = edited("defaults: base.yaml\npolicy:\n  train_micro_batch_size: 1\n", asked, name="mine.yaml")
    assert after == "defaults: base.yaml\npolicy:\n  train_micro_batch_size: 1\n  model_name: Qwen/Qwen3-4B\n"


def test_hydras_names_as_options_of_a_program_are_looked_for_beside_it(read: Read) -> None:
    read("defaults: [../config/zero@_here_]\npretrain: Qwen/Qwen3-8B\n", "examples/qwen3/rlvr.yaml")
    read("zero_stage: 3\n", "examples/config/zero.yaml")
    command = "python examples/start_rlvr_pipeline.py --config_path $CONFIG_PATH --config_name rlvr\n"
    text = f"CONFIG_PATH=$(basename $(dirname $0))\n{command}"
    told = values(read(text, "examples/qwen3/run.sh").launches[0])
    assert (told["pretrain"], told["zero_stage"]) == ("Qwen/Qwen3-8B", "3")


def test_a_program_of_any_name_that_is_given_a_config_is_a_launch(read: Read) -> None:
    read("actor: {path: Qwen/Qwen3-8B}\n", "math/grpo.yaml")
    for program in ("math/solve.py", "math/gsm8k_rl.py"):
        (launch,) = read(f"python3 {program} --config math/grpo.yaml scheduler.type=local\n").launches
        assert values(launch)["actor.path"] == "Qwen/Qwen3-8B"
    assert read("python3 math/evaluate.py --config math/grpo.yaml\n").launches == ()


def test_a_config_beside_the_script_is_found_though_its_folder_is_computed(read: Read) -> None:
    read("rlhf_type: grpo\n", "ray/grpo.yaml")
    head = 'HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\n'
    launch = read(f'{head}megatron rlhf --use_ray true --config "$HERE/grpo.yaml"\n', "ray/run.sh").launches[0]
    assert values(launch)["rlhf_type"] == "grpo"
    elsewhere = read(f'{head}megatron rlhf --use_ray true --config "$HERE/other.yaml"\n', "ray/run.sh").launches[0]
    assert "rlhf_type" not in values(elsewhere)
