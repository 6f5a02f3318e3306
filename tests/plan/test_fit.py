"""Whether a run fits: one answer at every place that gives one, and the ways of not fitting that no sum shows."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advisor.exits import Exit
from tests.heavy import sampled
from tests.stories.told import RUNS, tell

DEMO = ("--gpus", "8xA100-40GB", "--host-ram", "760GB")
ROOM = ("--gpus", "8xA100-80GB", "--host-ram", "1000GB")
VERL = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=1024 "
    "data.max_prompt_length=512 data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct "
    "actor_rollout_ref.actor.ppo_mini_batch_size=256 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16 "
    "actor_rollout_ref.model.enable_gradient_checkpointing=True actor_rollout_ref.rollout.name=vllm "
    "actor_rollout_ref.rollout.tensor_model_parallel_size=1 actor_rollout_ref.rollout.n=5 "
    "actor_rollout_ref.rollout.gpu_memory_utilization={share} "
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=32 trainer.n_gpus_per_node={gpus} trainer.nnodes=1\n"
)
SWIFT = (
    "CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=4 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-72B-Instruct "
    "--tuner_type lora --use_vllm true --vllm_mode colocate --vllm_gpu_memory_utilization 0.55 "
    "--vllm_max_model_len 2048 --vllm_tensor_parallel_size 4 --torch_dtype bfloat16 --max_length 2048 "
    "--per_device_train_batch_size 1 --gradient_accumulation_steps 1 --max_completion_length 1024 "
    "--num_generations 4 --deepspeed zero3_offload --move_model_batches 16 --offload_optimizer true "
    "--offload_model true --sleep_level 1\n"
)
BARE = (
    "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.27 GiB. GPU 0 has a total capacity of "
    "79.14 GiB of which 3.1 GiB is free. Process 12345 has 76.04 GiB memory in use. Of the allocated memory 74.23 GiB "
    "is allocated by PyTorch, and 1.31 GiB is reserved by PyTorch but unallocated.\n"
)
Told = Callable[..., tuple[int, str]]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Told:
    """(script, words) → exit code and output of the command on run.sh, beside train.log where `log` is given."""
    monkeypatch.chdir(tmp_path)

    def run(command: str, script: str, *words: str, log: str = "") -> tuple[int, str]:
        Path("run.sh").write_text(script)
        beside = ["--log", "train.log"] if log else []
        if log:
            Path("train.log").write_text(log)
        code, out, _ = tell([command, "run.sh", *beside, *words], capsys)
        return code, " ".join(out.split())

    return run


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Told:
    """(words) → exit code and output, in a copy of the EasyR1 story's folder."""
    folder = tmp_path / "easyr1"
    shutil.copytree(RUNS / "easyr1", folder, ignore=shutil.ignore_patterns("expected*"))
    monkeypatch.chdir(folder)

    def run(*words: str) -> tuple[int, str]:
        code, out, _ = tell([*words, *DEMO], capsys)
        return code, " ".join(out.split())

    return run


def parsed(out: str) -> Any:
    return json.loads(out)


def test_the_headline_of_an_estimate_and_its_sizes_speak_of_the_same_ram(demo: Told) -> None:
    _, out = demo("estimate", "qwen2_5_vl_7b.sh", "--log", "train.log", "--format", "json")
    answer = parsed(out)
    worst = answer["fit"]
    over = next(p for p in answer["memory"]["host"]["phases"] if p["phase"] == worst["phase"])
    assert (worst["verdict"], worst["place"]) == ("does_not_fit", "host")
    assert answer["sizes"]["host_bytes"] >= over["expected_bytes"] / (1 - answer["margin"]) - 1
    assert answer["sizes"]["largest"][0]["most"] is None


def test_before_and_after_stand_against_rays_wall(demo: Told) -> None:
    _, out = demo("diagnose", "qwen2_5_vl_7b.sh", "--log", "train.log", "--format", "json")
    answer = parsed(out)
    assert answer["memory"]["host"]["limit_bytes"] == answer["after"]["host"]["limit_bytes"] < 760 * 2**30 * 0.96


def test_rays_wall_counts_without_a_log_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = str(RUNS / "logic-rl" / "stage1.sh")
    code, out, _ = tell(["estimate", script, "--strict", "--gpus", "4xH200-141GB", "--host-ram", "289.7GB"], capsys)
    assert code == Exit.DOES_NOT_FIT
    assert out.startswith("It may not fit: saving a checkpoint is expected to take 259.89 GiB of the\n275.21 GiB")


def test_what_fix_wrote_passes_estimate_beside_the_old_log_which_is_said_to_be_old(demo: Told) -> None:
    assert demo("fix", "qwen2_5_vl_7b.sh", "--log", "train.log")[0] == Exit.DONE
    code, out = demo("estimate", "qwen2_5_vl_7b.fits.sh", "--log", "train.log")
    assert code == Exit.DONE
    assert "The log is of another run than this script's: it had worker.actor.offload.offload_optimizer = true" in out
    later = Path("train.log").stat().st_mtime + 10**9
    os.utime("train.log", (later, later))  # a log of the changed script is its own
    code, out = demo("estimate", "qwen2_5_vl_7b.fits.sh", "--log", "train.log")
    assert code == Exit.DOES_NOT_FIT
    assert "The log is of another run" not in out


def test_a_log_of_before_counts_for_the_run_as_it_was_wherever_the_change_stands(
    told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a YAML file that the launch names, in JSON, which takes no comments, and by `set`, which writes none."""
    config = "model_name_or_path: Qwen/Qwen2.5-14B-Instruct\nstage: sft\nfinetuning_type: full\ncutoff_len: 8192\n"
    config += "deepspeed: ds.json\nflash_attn: fa2\nbf16: true\ndataset: own\nper_device_train_batch_size: 4\n"
    Path("ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    Path("c.yaml").write_text(config)
    run = "FORCE_TORCHRUN=1 CUDA_VISIBLE_DEVICES=0,1,2,3 llamafactory-cli train c.yaml\n"
    told("estimate", run, *ROOM, log="{'loss': 0.9}\n" + BARE)
    os.utime("train.log", (1e9, 1e9))
    for key in ("per_device_train_batch_size=2", "deepspeed:zero_optimization.stage=3"):
        assert tell(["set", "run.sh", key, "--force"], capsys)[0] == Exit.DONE
        _, out, _ = tell(["estimate", "run.fits.sh", "--log", "train.log", *ROOM], capsys)
        assert f"it had {key.split('=')[0]} = " in " ".join(out.split())


def test_a_log_that_prints_another_value_is_of_another_run(told: Told) -> None:
    printed = "{'actor_rollout_ref': {'rollout': {'n': 16, 'gpu_memory_utilization': 0.5}}}\n"
    log = f"(main_task pid=1) {printed}" + BARE
    _, out = told("estimate", VERL.format(share=0.5, gpus=8), *ROOM, log=log)
    assert "it had actor_rollout_ref.rollout.n = 16, here it is 5" in out


def test_an_engine_whose_share_is_below_its_weights_does_not_fit(told: Told) -> None:
    script = VERL.format(share=0.1, gpus=8)
    code, out = told("estimate", script, *ROOM, "--lib", "verl=0.6.1")
    assert code == Exit.DOES_NOT_FIT
    assert out.startswith("It does not fit: the rollout engine cannot start: its share of each card is 8.52 GiB short.")
    fit = parsed(told("estimate", script, *ROOM, "--lib", "verl=0.6.1", "--format", "json")[1])
    assert fit["fits"] is False
    assert (fit["fit"]["reason"], fit["fit"]["decides"]) == ("engine", "kv_cache")
    assert fit["fit"]["short_bytes"] > 8 * 2**30


def test_more_gpus_than_there_are_do_not_fit(told: Told) -> None:
    code, out = told("estimate", VERL.format(share=0.5, gpus=16), *ROOM)
    assert code == Exit.DOES_NOT_FIT
    assert out.startswith("It does not fit: the launch asks for 16 GPUs, the machine has 8: 8 short.")


def test_what_only_may_not_fit_says_what_decides_and_passes_a_gate(told: Told) -> None:
    unpadded = VERL.format(share=0.5, gpus=8).strip() + " actor_rollout_ref.model.use_remove_padding=True\n"
    code, out = told("estimate", unpadded, "--gpus", "8xA100-80GB", "--host-ram", "170GB")
    assert code == Exit.DONE
    assert out.startswith("It may not fit: ")
    assert "(least certain: " in out


def test_where_the_phase_is_unknown_nothing_of_a_guessed_one_is_switched_on(told: Told) -> None:
    code, out = told("diagnose", SWIFT, *ROOM, log=BARE)
    assert code == Exit.DONE
    assert "that it needed at the least, in whichever" in out
    assert "proves in" not in out
    assert "[x]" not in out
    assert "answer in which" in out


PHASES_OF_A_SHARE = ("rollout_init", "weight_sync", "rollout_generate", "unknown")


@pytest.mark.parametrize(
    ("phase", "version"),
    sampled([(phase, told) for phase in PHASES_OF_A_SHARE for told in ((), ("--lib", "ms-swift=3.8.3"))], (0, 3, 4, 7)),
    ids=str,
)
def test_a_share_never_falls_below_what_the_engine_needs(told: Told, phase: str, version: tuple[str, ...]) -> None:
    _, out = told("diagnose", SWIFT, *ROOM, *version, "--answer", f"phase={phase}", "--format", "json", log=BARE)
    steps = {step["id"]: step for step in parsed(out)["plan"]}
    weights, card = 2 * 72.7e9 / 4, 79.15 * 2**30  # bf16 over TP 4
    for change in steps.get("lower-rollout-share", {"changes": []})["changes"]:
        assert float(change["new"]) * card > weights
        changed = SWIFT.replace("utilization 0.55", f"utilization {change['new']}")
        code, answer = told("estimate", changed, *ROOM, *version)
        assert "cannot start" not in answer
        assert code == Exit.DONE


def test_what_only_may_fit_goes_on_with_the_users_own_number_until_it_fits(told: Told) -> None:
    """A fused loss leaves it open; fewer rows of a pass, which cost time only, do not."""
    script = VERL.format(share=0.4, gpus=8).replace("response_length=1024", "response_length=7168").strip()
    script += " actor_rollout_ref.model.use_remove_padding=True\n"
    frame = 'File "verl/workers/actor/dp_actor.py", line 1, in update_policy\n    loss.backward()\n'
    answer = parsed(told("diagnose", script, *ROOM, "--format", "json", log=frame + BARE)[1])
    assert answer["outcome"]["fit"]["verdict"] == "fits"
    assert all(step["results"] == "unchanged" for step in answer["plan"] if step["selected"])
