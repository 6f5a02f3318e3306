"""What may be said of settings where only a log speaks of the run, and of keys that another program's file holds."""

from __future__ import annotations

import pytest

from advisor.plan.plan import Change
from advisor.report.phrases import change_line
from tests.plan.planned import Planned, changes, out_of_memory, selected

WAKE = """\
(WorkerDict pid=9668)   File "/home/env/verl/workers/sharding_manager/fsdp_vllm.py", line 98, in __enter__
(WorkerDict pid=9668)     self.inference_engine.wake_up()
(WorkerDict pid=9668)   File "/x/vllm/device_allocator/cumem.py", line 75, in create_and_map
(WorkerDict pid=9668) RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62
"""
UPDATE = """\
(WorkerDict pid=9668)   File "{folder}verl/workers/actor/dp_actor.py", line 280, in update_policy
(WorkerDict pid=9668)     loss.backward()
(WorkerDict pid=9668) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.12 GiB. GPU 0 has a total \
capacity of 79.15 GiB of which 6.10 GiB is free. Including non-PyTorch memory, this process has 73.00 GiB memory in \
use. Of the allocated memory {held} GiB is allocated by PyTorch, and {idle} GiB is reserved by PyTorch but unallocated.
"""
OOM = out_of_memory("trl/trainer/grpo_trainer.py")
BARE = "RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62\n"
TRL = (
    "python train_grpo.py --model_name_or_path Qwen/Qwen3-4B --per_device_train_batch_size 4 --num_generations 4 "
    "--max_prompt_length 2048 --max_completion_length 1024 --bf16 True\n"
)
ACCELERATE = """\
compute_environment: LOCAL_MACHINE
distributed_type: {kind}
deepspeed_config: {{zero_stage: 2}}
num_processes: 8
"""


def test_a_default_stands_for_a_value_that_no_launch_shows_and_says_so(planned: Planned) -> None:
    step = planned("echo nothing\n", WAKE)["lower-rollout-share"]
    assert changes(step) == {"actor_rollout_ref.rollout.gpu_memory_utilization": ("0.5", "0.45")}
    assert step["basis"] == "documented"
    assert any("0.5 is verl's default; where yours differs" in caveat for caveat in step["caveats"])


def test_a_launch_that_is_there_is_not_overruled_by_a_default(planned: Planned) -> None:
    script = "python3 -m verl.trainer.main_ppo --config-name=mine trainer.n_gpus_per_node=8\n"
    steps = planned(script, WAKE)
    shares = [changes(step) for name, step in steps.items() if name == "lower-rollout-share"]
    assert all(old is not None for change in shares for old, _ in change.values()) or not shares


def test_where_no_default_exists_the_least_is_named_and_of_what_changes_results_only_the_direction(
    planned: Planned,
) -> None:
    steps = planned("echo nothing\n", UPDATE.format(folder="/root/", held="72.10", idle="0.30"))
    key = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"
    assert changes(steps["lower-actor-micro-batch"]) == {key: (None, "1")}
    assert any("anything below it helps" in caveat for caveat in steps["lower-actor-micro-batch"]["caveats"])
    assert changes(steps["shorten-responses"]) == {}
    assert steps["shorten-responses"]["title"] == "Shorter responses: lower data.max_response_length"


def test_without_a_launch_no_sum_of_defaults_counts_and_the_causes_own_order_holds(planned: Planned) -> None:
    steps = planned("echo nothing\n", WAKE, "--model", "Qwen3-32B")
    assert not [step["id"] for step in steps.values() if step.get("saves_bytes") or step.get("selected")]
    assert next(iter(steps)) == "lower-rollout-share"


def test_a_length_that_runs_keep_is_halved_from_its_default_and_what_is_on_by_default_is_no_step(
    planned: Planned,
) -> None:
    log = "[INFO|2024-06-01] llamafactory.train.sft.workflow: start\n" + out_of_memory("llamafactory/train/trainer.py")
    steps = planned("echo nothing\n", log, "--answer", "framework=llamafactory")
    assert changes(steps["shorten-sequences"]) == {"cutoff_len": ("2048", "1024")}
    assert not {"gradient-checkpointing", "lora"} & {*steps}


def test_a_lever_of_a_newer_version_is_named_with_it(planned: Planned) -> None:
    answers = [f"--answer={a}" for a in ("framework=trl", "phase=rollout_generate", "ever_ran=gather")]
    steps = planned("echo nothing\n", OOM, "--lib", "trl=0.9.6", "--model", "Qwen3-32B", *answers)
    step = steps["no-gather-to-generate"]
    assert step["title"].endswith("(from v0.15 on)")
    assert changes(step) == {"ds3_gather_for_generation": (None, "false")}


def test_a_forks_folder_in_the_traceback_tells_its_keys_and_that_its_engine_has_no_pool(planned: Planned) -> None:
    log = UPDATE.format(folder="/home/u/Search-R1/", held="55.10", idle="16.90")
    steps = planned("echo nothing\n", log)
    assert next(iter(steps)) == "expandable-segments"
    assert "actor_rollout_ref.actor.ppo_micro_batch_size" in changes(steps["lower-actor-micro-batch"])


def test_without_a_dialect_the_engine_that_speaks_names_its_own_setting(planned: Planned) -> None:
    step = planned("echo nothing\n", BARE)["lower-rollout-share"]
    assert changes(step) == {"gpu_memory_utilization": ("0.9", "0.5")}
    assert (step["kind"], step["selected"]) == ("manual", False)
    assert "vLLM itself calls it gpu_memory_utilization" in step["why"]


def test_a_key_of_accelerates_file_is_never_written_as_an_option(planned: Planned) -> None:
    steps = planned(TRL, OOM, "--lib", "trl=0.18.0")
    step = steps["cpu-optimizer"]
    offload = "deepspeed_config.offload_optimizer_device"
    assert changes(step) == {offload: ("none", "cpu"), "distributed_type": (None, "DEEPSPEED")}
    assert not step["selected"]
    assert all(change["file"] is None or change["file"] == "" for change in step["changes"])
    assert any("accelerate's config file" in caveat for caveat in step["caveats"])
    assert "full-cpu-offload" not in selected(steps)


@pytest.mark.parametrize(("kind", "offered"), [("DEEPSPEED", True), ("FSDP", False)])
def test_accelerates_deepspeed_keys_are_read_only_where_it_runs_deepspeed(
    planned: Planned, tmp_path_factory: pytest.TempPathFactory, kind: str, offered: bool
) -> None:
    file = tmp_path_factory.mktemp("accelerate") / "acc.yaml"
    file.write_text(ACCELERATE.format(kind=kind))
    script = f"accelerate launch --config_file {file} -m trl.scripts.grpo " + TRL.split("train_grpo.py ")[1]
    steps = planned(script, OOM, "--lib", "trl=0.18.0")
    assert ("higher-zero-stage" in steps) is offered


def test_an_engine_that_does_not_run_has_no_share_to_lower(planned: Planned) -> None:
    steps = planned(TRL, OOM, "--lib", "trl=0.25.0")
    assert "lower-rollout-share" not in steps


def test_one_card_has_nobody_to_share_its_states_with(planned: Planned) -> None:
    assert "higher-zero-stage" not in planned(TRL, OOM, "--lib", "trl=0.18.0", "--gpus", "1xA100-80GB")


ENGINE_CODE = (
    '  File "/usr/lib/python3.12/site-packages/vllm/worker/model_runner.py", line 1800, in capture\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB. GPU 6 has a total capacity of "
    "44.53 GiB of which 448.00 KiB is free.\n"
)


def test_an_engines_own_names_are_told_where_its_code_failed(planned: Planned) -> None:
    steps = planned("echo nothing\n", ENGINE_CODE)
    assert changes(steps["lower-engine-sequences"]) == {"max_num_seqs": ("256", "128")}
    assert changes(steps["eager-rollout"]) == {"enforce_eager": ("False", "True")}


OPENRLHF = """\
{first}--pretrain Qwen/Qwen2.5-7B-Instruct \\
--actor_num_nodes 1 \\
--actor_num_gpus_per_node 8 \\
--zero_stage 3 \\
{more}--bf16
"""
WHOLE = "python3 -m openrlhf.cli.train_ppo_ray "
DIED = out_of_memory("openrlhf/trainer/ppo_trainer.py")
BATCH = "lower-actor-micro-batch"


@pytest.mark.parametrize(
    ("first", "more", "source", "shown"),
    [
        (WHOLE, "--micro_train_batch_size 8 \\\n", "script", "8"),
        (WHOLE, "", "default", "4 (default)"),
        ("", "--micro_train_batch_size 8 \\\n", "script", "8"),
        ("", "", "assumed", "4 (default, not seen in your launch)"),
    ],
    ids=["whole, set", "whole, not set", "fragment, set", "fragment, not set"],
)
def test_what_gave_the_old_value_is_said(planned: Planned, first: str, more: str, source: str, shown: str) -> None:
    (change,) = planned(OPENRLHF.format(first=first, more=more), DIED, "--answer", "framework=openrlhf")[BATCH][
        "changes"
    ]
    assert change["old_source"] == source
    now = Change(change["key"], change["old"], change["new"], old_source=change["old_source"])
    assert now.old_words == shown
    half = f"{change['key']}: half of what yours is (the default is {change['old']})"
    assert change_line(now) == (half if source == "assumed" else f"{change['key']} {shown} → {change['new']}")


def test_a_number_that_nobody_saw_is_not_selected(planned: Planned) -> None:
    step = planned(OPENRLHF.format(first="", more=""), DIED, "--answer", "framework=openrlhf")[BATCH]
    assert not step["selected"]
    assert any("4 is OpenRLHF's default; where yours differs" in caveat for caveat in step["caveats"])
