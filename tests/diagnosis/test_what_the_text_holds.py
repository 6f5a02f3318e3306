# ruff: noqa: E501  (log lines as they are printed)
"""What a post holds becomes phase, holder, method and framework: calls that a wrapper names, where the log ends, a
person's words, codes of signals, and two runs of one post."""

from __future__ import annotations

from pathlib import Path

from advisor.report.short_report import short_report
from advisor.session import SessionRequest, State, open_session

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
BAR = "{'loss': 1.2, 'epoch': 1.0}\n100%|██████████| 375/375 [10:00<00:00, 1.6s/it]\n"
STEPS = "torchrun --nproc_per_node 8 mine.py --learning_rate 1e-5 --save_steps %d\n"
KILLED = "{'loss': 1.2, 'epoch': 0.1}\n  0%|▎ | 1/531 [00:56<8:16:19, 56.19s/it]\nexitcode  : -9 (pid: 1234)\n"
TORCH_ASKS = """Traceback (most recent call last):
  File "/srv/mine/train.py", line 4, in build
    table = torch.zeros(10, 20, device="cuda")
RuntimeError: CUDA driver error: out of memory
"""
LOSS = """Traceback (most recent call last):
  File "/srv/slime/backends/megatron_utils/loss.py", line 741, in sft_loss_function
    log_prob = compute(logits)
"""


def seen(folder: Path, log: str, script: str = "", **answers: str) -> State:
    (folder / "log").write_text(log)
    (folder / "run.sh").write_text(script)
    asked = SessionRequest(script=folder / "run.sh" if script else None, logs=(folder / "log",), answers=answers)
    return open_session(asked)


PHASES = {
    OOM
    + "Exception occurred while running TrainGroup's function sync_model_to_rollout: exception is x\n": "weight_sync",
    OOM + "Exception occurred while running TrainGroup's function run_training: exception is x\n": "actor_update",
    "I run into OOM in `update_actor` after 10 steps.\n": "actor_update",
    "CUDA OOM in the training forward, even with batch 1.\n": "actor_update",
    "训练时在计算 old log_prob 的时候显存爆了，求助\n": "log_prob",
    BAR + "{'eval_loss': 1.1, 'epoch': 1.0}\n" + OOM: "checkpoint",
}


def test_the_phase_that_a_text_names(tmp_path: Path) -> None:
    assert {log: seen(tmp_path, log).crash.phase for log in PHASES} == PHASES


def test_what_can_come_at_the_end_of_the_training(tmp_path: Path) -> None:
    assert seen(tmp_path, BAR + OOM).crash.phase_among == ("checkpoint", "validation")
    assert not seen(tmp_path, BAR.replace("375/375", "370/375").replace("100%", "98%") + OOM).crash.phase_among


def test_a_kill_right_at_the_first_save_is_of_the_save(tmp_path: Path) -> None:
    told = {"framework": "ms-swift"}
    assert seen(tmp_path, KILLED, STEPS % 1, **told).diagnosis.cause == "checkpoint-in-ram"
    assert seen(tmp_path, KILLED, STEPS % 200, **told).diagnosis.cause != "checkpoint-in-ram"


def test_what_a_post_says_of_the_holder_is_the_cause_and_said_so(tmp_path: Path) -> None:
    state = seen(tmp_path, "We get CUDA OOM in the backward pass: the logits alone take 18 GB.\n")
    assert state.diagnosis.cause == "logits-too-big"
    assert "so the post says" in short_report(state)
    asks = "We get CUDA OOM in the backward pass. Maybe the logits take 18 GB?\n"
    assert seen(tmp_path, asks).diagnosis.cause != "logits-too-big"


def test_an_option_that_one_framework_alone_has_names_it(tmp_path: Path) -> None:
    assert seen(tmp_path, "I use --log-probs-chunk-size and get CUDA OOM in training\n").run.framework == "slime"
    assert seen(tmp_path, "I use --max-seq-length and get CUDA OOM in training\n").run.framework == "unknown"


def test_a_loss_of_given_answers_names_the_method(tmp_path: Path) -> None:
    assert (
        seen(tmp_path, LOSS, "python train.py --rollout-max-context-len 8192\n", framework="slime").run.algorithm
        == "sft"
    )


def test_what_torch_itself_asked_for_is_no_page_locked_memory(tmp_path: Path) -> None:
    state = seen(tmp_path, TORCH_ASKS)
    assert state.diagnosis.cause == "driver-refused"
    assert "another part asked" not in short_report(state)
    assert not {"unpinned-loaders", "raise-lock-limit"} & {step.id for step in state.plan.steps}


def test_codes_of_signals_in_a_persons_words(tmp_path: Path) -> None:
    rows = {"does error code -11 mean too little RAM?\n": "not-memory", "it returns code -7, why?\n": "shm-too-small",
            "训练退出，错误码：-11\n": "not-memory", "it ends with error code -9\n": "host-too-small"}  # fmt: skip
    assert {log: seen(tmp_path, log).diagnosis.cause for log in rows} == rows


def test_a_log_that_ends_before_any_error_says_where(tmp_path: Path) -> None:
    log = "Rollout generation: 100%|████| 256/256 [29:15<00:00]\nsglang_rollout.py:311 - Abort request for http://1.2.3.4\n"
    assert "ends before any error" in seen(tmp_path, log, memory="gpu").crash.unclear_because


def test_two_runs_of_one_post_are_not_one(tmp_path: Path) -> None:
    log = "With N_GPUS=4 it ends in CUDA out of memory.\nWith N_GPUS=8 the system RAM is full after a while.\n"
    script = "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-3B trainer.n_gpus_per_node=$N_GPUS\n"
    state = seen(tmp_path, log, script)
    assert (state.crash.memory, state.run.topology.gpus_per_node) == ("gpu", 4)
    assert "another on 8 GPUs" in " ".join(short_report(state).split())
    assert not [step.id for step in state.plan.steps if step.selected and min(step.host_saves.values(), default=0) < 0]


def test_memory_that_no_listed_process_holds_is_looked_for_outside(tmp_path: Path) -> None:
    node = "Memory on the node (IP: 1.2.3.4, ID: ab) where the task (task ID: cd, name=main_task, pid=7, memory used=2.80GB) was running was 479.24GB / 503.75GB (0.951345), which exceeds the memory usage threshold of 0.95. Ray killed this worker (ID: ef) because it was the most recently scheduled task"
    table = (
        "PID\tMEM(GB)\tCOMMAND\n8\t28.07\tray::WorkerDict.actor_rollout_generate_sequences\n7\t2.80\tray::main_task\n"
    )
    assert seen(tmp_path, f"{node}\n{table}").diagnosis.cause == "outside-the-list"
    full = table.replace("28.07", "428.07")
    assert seen(tmp_path, f"{node}\n{full}").diagnosis.cause != "outside-the-list"


def test_a_notebooks_commands_are_no_python(tmp_path: Path) -> None:
    script = "%%writefile train.py\nimport trl\nfrom trl import SFTConfig, SFTTrainer\nconfig = SFTConfig(per_device_train_batch_size=3)\nSFTTrainer(model, args=config)\n"
    assert seen(tmp_path, OOM, script).run.number("actor.micro_batch") == 3


def test_a_command_that_binds_memory_to_one_node_is_a_limit(tmp_path: Path) -> None:
    log = "run.sh: line 7: 3297567 Killed                  bash -c 'numactl --cpunodebind=1 --membind=1 python train.py'\n"
    state = seen(tmp_path, log, memory="host")
    assert state.diagnosis.cause == "numa-bound"
    assert "numa-preferred" in {step.id for step in state.plan.steps[:2]}
    assert seen(tmp_path, log.replace("--membind=1 ", ""), memory="host").diagnosis.cause != "numa-bound"


def test_a_kill_and_a_person_who_saw_the_ram_full_are_a_shortage_of_it(tmp_path: Path) -> None:
    rows = {"exitcode -9\n看了 dmesg 显示有 OOM\n": "oom", "exits with return code = -9\n主机内存（128G）打满\n": "oom",
            "exitcode -9, and the host RAM was full\n": "oom", "exitcode -9\nis the RAM full?\n": "unclear"}  # fmt: skip
    assert {log: seen(tmp_path, log).crash.verdict for log in rows} == rows
    assert "So somebody wrote" in short_report(seen(tmp_path, next(iter(rows))))
