"""A job that the batch system ended at its own limit: which wall it was, what it held, to what the limit is raised."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor.cli import main
from advisor.report.markdown_report import markdown_report
from advisor.request import SessionRequest
from advisor.session import accept, give_number, numbers_of, open_session, patch, toggle
from advisor.state import State
from advisor.tui.facts import host_words
from advisor.tui.memory_bars import pair
from advisor.tui.ui_text import plain

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


def test_a_phase_that_the_run_passed_is_not_the_one_that_was_too_much(asked: SessionRequest) -> None:
    state = open_session(asked)
    over = [one.phase for one in state.plan.fit.findings if one.place == "host"]
    assert over
    assert "model_load" not in over
    assert state.situation is not None
    assert state.situation.fullest != "model_load"
    asked.logs[0].write_text(READING + KILL)
    died_early = open_session(asked)
    assert "model_load" in [one.phase for one in died_early.plan.fit.findings]


def test_the_step_names_the_number_and_switched_on_it_moves_the_promise(asked: SessionRequest) -> None:
    state = open_session(asked)
    step = next(one for one in state.plan.steps if one.id == "raise-host-limit")
    (change,) = step.changes
    assert (change.key, change.old, Path(change.file).name, change.line) == ("--mem", "160G", "dpo.sbatch", 3)
    assert "Slurm" in step.why
    assert "Docker" not in step.why
    assert change.new is not None
    size = int(change.new.removesuffix("G"))
    assert f"--mem=160G to at least {size}G" in step.title
    assert "No set" not in state.plan.beyond
    assert "no set" not in state.plan.beyond
    assert step.title in state.plan.beyond
    raised = toggle(state, step.id, True)
    assert raised.plan.after is not None
    assert raised.plan.after.host_limit == size * GIB
    assert [one for one in raised.plan.fit.findings if one.place == "host" and one.reason == "over"] == []
    assert [one for one in state.plan.fit.findings if one.place == "host" and one.reason == "over"]


def test_the_limit_is_written_and_takes_a_number(asked: SessionRequest, tmp_path: Path) -> None:
    step_id = "raise-host-limit"
    state = give_number(open_session(asked), step_id, "300")
    step = next(one for one in state.plan.steps if one.id == step_id)
    assert (step.own, step.changes[0].new, step.host_limit) == ("300", "300G", 300 * GIB)
    assert state.plan.after is not None
    assert state.plan.after.host_limit == 300 * GIB
    for text in ("160", "0", "x"):
        with pytest.raises(ValueError, match=r"--mem|is what it is now"):
            give_number(state, step_id, text)
    tried = {one.text: one.fits for one in numbers_of(state, step_id).tried}
    assert tried["300"] is not False
    assert tried["150"] is False
    made = patch(toggle(accept(state, ""), step_id, True))
    (done,) = made.rewrites
    assert (
        done.new.decode()
        .replace("#SBATCH --mem=300G", "#SBATCH --mem=160G")
        .replace("# rl-oom-advisor: mem 160G -> 300G\n", "")
        == SCRIPT
    )
    fullest = max(state.plan.after.host, key=lambda each: each.expected)
    bars = pair(state.plan, "host", fullest.phase, 78)
    assert "of  300 G" in plain(bars[1].line) or "of 300 G" in plain(bars[1].line)
    assert "of 160 G" in plain(bars[0].line)
    assert "160.0 → 300.0" in markdown_report(state, "dpo.fits.sbatch")


@pytest.mark.parametrize(
    ("started", "option"),
    [
        ("srun --mem=160G accelerate", "--mem"),
        ("docker run --gpus all \\\n  -m 160g img accelerate", "-m"),
        ("systemd-run --scope -p MemoryMax=160G accelerate", "MemoryMax"),
    ],
)
def test_the_limit_of_the_command_that_starts_the_run_is_written(
    started: str, option: str, asked: SessionRequest
) -> None:
    assert asked.script is not None
    before = SCRIPT.replace("#SBATCH --mem=160G\n", "").replace("srun accelerate", started)
    asked.script.write_text(before)
    state = open_session(asked)
    step = next(one for one in state.plan.steps if one.id == "raise-host-limit")
    assert (step.kind, step.changes[0].key) == ("job", option)
    made = patch(toggle(accept(give_number(state, step.id, "300"), ""), step.id, True))
    assert made.refused == ""
    new = made.rewrites[0].new.decode()
    assert "300G" in new
    comment = f"# rl-oom-advisor: {option.lstrip('-')} {step.changes[0].old} -> 300G\n"
    assert new.replace(comment, "").replace("300G", step.changes[0].old or "") == before
    asked.script.write_text(before.replace("-m 160g", "-m 160g --memory-swap 160g"))
    tied = next(one for one in open_session(asked).plan.steps if one.id == step.id)
    assert (tied.kind == "job") == ("docker" not in started), "docker refuses less swap than memory"


def test_a_limit_per_gpu_is_raised_per_gpu_and_no_further_than_the_node(asked: SessionRequest) -> None:
    assert asked.script is not None
    asked.script.write_text(SCRIPT.replace("--mem=160G", "--mem-per-gpu=40G"))
    (step,) = [one for one in open_session(asked).plan.steps if one.id == "raise-host-limit"]
    assert step.host_limit % (4 * GIB) == 0
    assert step.changes[0].key == "--mem-per-gpu"
    (step,) = [one for one in open_session(replace(asked, host_ram="170GB")).plan.steps if one.id == step.id]
    assert (step.host_limit, step.changes) == (0, ())


def test_before_a_run_the_step_that_raises_the_limit_leads(asked: SessionRequest) -> None:
    state = open_session(replace(asked, logs=()))
    assert state.plan.steps[0].id == "raise-host-limit"


def test_no_card_is_called_too_small_where_none_is_known(
    asked: SessionRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["estimate", str(asked.script)])
    told = capsys.readouterr().out
    assert "more than any known card has" not in told
    assert "--gpus" in told


def test_a_script_that_was_written_after_the_log_may_have_asked_for_less(asked: SessionRequest) -> None:
    assert asked.script is not None
    asked.logs[0].write_text(KILL)
    assert unexplained(open_session(replace(asked, model="meta-llama/Llama-3.2-1B"))) > 0
    later = asked.logs[0].stat().st_mtime + 60
    os.utime(asked.script, (later, later))
    state = open_session(replace(asked, model="meta-llama/Llama-3.2-1B"))
    assert any("written after the log" in doubt for doubt in state.ledger.doubts)
    assert unexplained(state) == 0


def test_the_limit_that_the_log_prints_is_the_jobs_of_then(asked: SessionRequest) -> None:
    line = "slurmstepd: error: StepId=7.batch exceeded memory limit ({} > {}), being killed\n"
    asked.logs[0].write_text(line.format(129 * GIB, 128 * GIB))
    state = open_session(asked)
    assert state.ledger.host_limit == 160 * GIB
    assert any("its job was ended at 128.00 GiB" in doubt for doubt in state.ledger.doubts)
    asked.logs[0].write_text(line.format(161 * GIB, 160 * GIB))
    assert not any("its job was ended" in doubt for doubt in open_session(asked).ledger.doubts)
    alone = open_session(replace(asked, script=None)).machine.host
    assert (alone.total_bytes, alone.limit_bytes) == (None, 160 * GIB)


def test_a_job_that_its_limit_ended_while_loading_has_a_holder_and_no_made_up_number(
    asked: SessionRequest, tmp_path: Path
) -> None:
    """The limit is the wall; what filled it is each process's copy, and nobody knows how much more it needs."""
    (tmp_path / "job.out").write_text(
        "Loading checkpoint shards:  77%|███████▋  | 23/30 [03:11<00:58,  8.36s/it]\n" + KILL
    )
    (tmp_path / "zero3.yaml").unlink()
    state = open_session(asked)
    assert state.diagnosis.cause == "loading-per-rank"
    steps = {step.id: step for step in state.plan.steps}
    assert steps["raise-host-limit"].title == "Raise --mem=160G (dpo.sbatch:3)"
    assert not steps["raise-host-limit"].host_limit
    assert "load-once" in steps
    assert "load-once-switch" not in steps
    assert any("in each of the 4 processes" in remark for remark in state.diagnosis.remarks)
