"""A job that the batch system ended at its own limit: which wall it was, what it held, and to what the limit is raised."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.request import SessionRequest
from advisor.session import open_session
from advisor.state import State
from advisor.tui.facts import host_words

GIB = 2**30
SCRIPT = """#!/bin/bash
#SBATCH --nodes=1 --gres=gpu:4
#SBATCH --mem=160G
srun accelerate launch --config_file zero3.yaml --num_processes 4 train.py \\
    --model_name_or_path meta-llama/Llama-3.1-8B-Instruct --per_device_train_batch_size 2 \\
    --gradient_checkpointing --max_length 4096 --bf16
"""
ZERO3 = """distributed_type: DEEPSPEED
deepspeed_config: {zero_stage: 3, offload_optimizer_device: cpu, offload_param_device: cpu}
mixed_precision: bf16
num_processes: 4
"""
TRAIN = """from trl import DPOConfig, DPOTrainer, ModelConfig, ScriptArguments, TrlParser
script_args, training_args, model_args = TrlParser((ScriptArguments, DPOConfig, ModelConfig)).parse_args_and_config()
DPOTrainer(model_args.model_name_or_path, args=training_args).train()
"""
READING = "CPU Virtual Memory:  used = 118.4 GB, percent = 15.7%\n"
STEPS = "".join(f"{{'loss': 0.69, 'grad_norm': 4.1, 'learning_rate': 5e-08, 'epoch': 0.0{n}}}\n" for n in range(1, 5))
KILL = "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.\n"


@pytest.fixture
def asked(tmp_path: Path) -> SessionRequest:
    """Script and log of one run that died in its fifth step."""
    (tmp_path / "zero3.yaml").write_text(ZERO3)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "dpo.sbatch").write_text(SCRIPT)
    (tmp_path / "job.out").write_text(READING + STEPS + KILL)
    return SessionRequest(tmp_path / "dpo.sbatch", (tmp_path / "job.out",))


def unexplained(state: State) -> int:
    return max(each.of("unexplained") for each in state.ledger.host)


@pytest.mark.parametrize("told", [None, "754GB", "200GB"])
def test_what_is_told_of_the_node_leaves_the_limit_of_the_job(asked: SessionRequest, told: str | None) -> None:
    state = open_session(replace(asked, host_ram=told))
    assert state.ledger.host_limit == 160 * GIB
    assert state.diagnosis.cause == "host-limit"
    assert "limited to 160 GiB by #SBATCH --mem=160G (dpo.sbatch:3)" in host_words(state.machine)
    assert unexplained(state) == 0


def test_what_was_in_use_is_what_the_log_read_and_not_what_was_told(asked: SessionRequest) -> None:
    assert asked.script is not None
    asked.script.write_text(SCRIPT.replace("#SBATCH --mem=160G\n", "").replace("8B", "1B"))
    for told in ("754GB", "300GB"):
        assert unexplained(open_session(replace(asked, host_ram=told))) < 118.4 * GIB


def test_without_a_script_the_limit_is_the_jobs_and_its_size_unknown(asked: SessionRequest) -> None:
    state = open_session(replace(asked, script=None))
    assert state.diagnosis.cause == "host-limit"
    assert state.plan.steps[0].id == "raise-host-limit"
    assert "no container limit" not in host_words(state.machine)
    (holder,) = [one for one in state.knowledge.tree.questions if one.id == "host_holder"]
    (limit,) = [one for one in state.knowledge.tree.questions if one.id == "host_limit"]
    assert "Ray" not in holder.if_unknown
    assert "sacct" in limit.if_unknown


def test_a_node_that_was_full_is_no_limit_of_the_job(asked: SessionRequest) -> None:
    asked.logs[0].write_text(READING.replace("15.7%", "99.1%") + STEPS + KILL)
    assert open_session(replace(asked, script=None)).diagnosis.cause != "host-limit"


def test_before_a_run_the_place_that_is_over_leads(asked: SessionRequest) -> None:
    state = open_session(replace(asked, logs=()))
    assert state.diagnosis.memory == "host"
