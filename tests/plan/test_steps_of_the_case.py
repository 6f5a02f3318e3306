"""The steps follow this case: what the message names, what the place, the process, the version and the launch leave."""

from __future__ import annotations

from pathlib import Path

from advisor.report.short_report import short_report
from advisor.state import State
from tests.plan.test_foreign_steps import opened

WARM_UP = (
    "RuntimeError: CUDA out of memory occurred when warming up sampler with 512 dummy requests. Please try lowering "
    "`max_num_seqs` or `gpu_memory_utilization` when initializing the engine.\n"
)
BARE = "RuntimeError: CUDA error: out of memory\n"
ON_CARD = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. {more}\n"
CONDITION = "If reserved but unallocated memory is large try decreasing max_num_seqs."
KILLED = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
FORK = 'Traceback (most recent call last):\n  File "/x/Some-RL/verl/trainer/main_ppo.py", line 9, in main\n'
OWN = (
    'Traceback (most recent call last):\n  File "/x/loop.py", line 30, in epoch\n    out = model(rows)\n'
    '  File "/x/lib/python3.12/site-packages/torch/nn/modules/module.py", line 1, in _call_impl\n    return f()\n'
)
CELL = (
    "%%writefile train.py\nimport os\nos.environ['UNSLOTH_VLLM_STANDBY'] = '1'\nimport unsloth\n"
    "from unsloth import FastLanguageModel\nmodel, tok = FastLanguageModel.from_pretrained(\n"
    "    model_name='Qwen/Qwen2.5-3B-Instruct', max_seq_length=2048, fast_inference=True, gpu_memory_utilization=0.5)\n"
)
ADAPTERS = (
    "NPROC_PER_NODE=2 swift sft --model Qwen/Qwen2.5-7B-Instruct --train_type lora --dataset a.json --save_steps 1 "
    "--deepspeed zero3_offload --output_dir out\n"
)
FIRST_SAVE = (
    "Train:   0%|          | 1/531 [00:56<8:16:19, 56.19s/it]\n"
    "E0622 19:47:17.56 1 torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: -9) local_rank: 0 "
    "(pid: 17) of binary: python\n"
)


def names(state: State) -> list[str]:
    return [step.id for step in state.plan.steps]


def test_what_the_message_names_comes_first_in_the_frameworks_spelling(tmp_path: Path) -> None:
    own = opened(tmp_path, WARM_UP, answers={"memory": "gpu", "framework": "verl"}).plan.steps
    assert [step.id for step in own[:2]] == ["lower-engine-sequences", "lower-rollout-share"]
    first = own[0].changes[0]
    assert (first.key, first.old, first.new) == ("actor_rollout_ref.rollout.max_num_seqs", "512", "256")
    server = opened(tmp_path, WARM_UP, answers={"memory": "gpu", "framework": "trl"}).plan.steps
    told = [(step.changes[0].key, step.changes[0].old, step.changes[0].new) for step in server[:2]]
    assert told == [("max_num_seqs", "512", "256"), ("gpu_memory_utilization", "0.9", "0.85")]  # another command's


def test_what_holds_on_a_condition_names_nothing(tmp_path: Path) -> None:
    log = ON_CARD.format(more=CONDITION)
    assert "lower-engine-sequences" not in names(opened(tmp_path, log, answers={"memory": "gpu"}))[:1]


def test_where_an_engine_starts_nothing_of_the_trainer_is_moved(tmp_path: Path) -> None:
    server = names(opened(tmp_path, WARM_UP, answers={"memory": "gpu", "framework": "trl"}))
    assert not {"param-offload", "optimizer-offload", "optimizer-8bit", "lower-actor-micro-batch"} & set(server)


def test_pinned_memory_needs_a_sign_of_it_or_nothing_known(tmp_path: Path) -> None:
    wsl = "Linux 5.15.90.1-microsoft-standard-WSL2\n"
    rows = ((BARE, {}, True), (BARE, {"memory": "gpu"}, False), (OWN + BARE, {}, False), (wsl + OWN + BARE, {}, True))
    for log, answers, offered in rows:
        steps = names(opened(tmp_path, log, answers=answers))
        assert ("raise-lock-limit" in steps) is offered, (log, answers)


def test_a_host_is_relieved_by_what_it_holds(tmp_path: Path) -> None:
    answers = {"memory": "host", "framework": "verl"}
    steps = names(opened(tmp_path, KILLED, model="Qwen/Qwen2.5-VL-7B-Instruct", answers=answers))
    assert steps[0] == "look-outside-the-list"  # it costs nothing
    assert {"optimizer-offload-off", "more-host-ram"} <= set(steps[:5])
    assert "higher-rollout-tp-host" not in steps[:5]
    assert not {"smaller-checkpoint", "load-once-tied"} & set(steps)


def test_states_made_beside_an_empty_card_lie_in_ram_that_no_loader_fills(tmp_path: Path) -> None:
    log = (
        "[INFO] [utils.py:831:see_memory_usage] After creating fp32 partitions\n"
        "[INFO] [utils.py:832:see_memory_usage] MA 0.13 GB   Max_MA 0.13 GB   CA 0.63 GB   Max_CA 1 GB\n"
    )
    launch = "deepspeed train.py --model_name_or_path EleutherAI/pythia-2.8b --deepspeed z3.json\n"
    state = opened(tmp_path, log, launch, gpus="1xRTX-3090-24GB", answers={"memory": "host"})
    assert state.diagnosis.cause == "offload-fills-host"
    assert not {"fewer-loader-workers", "fewer-prepare-workers", "load-once"} & set(names(state))


def test_best_model_read_at_the_end_is_not_the_end(tmp_path: Path) -> None:
    log = "{'train_runtime': 1234.5, 'epoch': 1.0}\nLoading best model from out/checkpoint-9 (score: 0.7).\n"
    killed = "[ERROR] [launch.py:321:sigkill_handler] ['python', 'train.py'] exits with return code = -9\n"
    assert names(opened(tmp_path, log + killed))[1] == "no-best-model"


def test_a_fork_gets_no_setting_of_later_versions(tmp_path: Path) -> None:
    answers = {"memory": "host", "framework": "verl"}
    assert "fewer-agent-workers" not in names(opened(tmp_path, FORK + KILLED, answers=answers))


def test_a_variable_that_the_cell_sets_is_no_step(tmp_path: Path) -> None:
    log = ON_CARD.format(more="")
    state = opened(tmp_path, log, CELL, gpus="1xA100-40GB", answers={"memory": "gpu", "framework": "unsloth"})
    assert "engine-sleep" not in names(state)


def test_adapters_need_no_offload_and_a_save_was_due(tmp_path: Path) -> None:
    state = opened(tmp_path, FIRST_SAVE, ADAPTERS, gpus="2xA100-80GB", answers={"framework": "ms-swift"})
    assert {"no-gather-at-save", "stage-for-adapters-host"} <= set(names(state)[:5])
    step = next(one for one in state.plan.steps if one.id == "stage-for-adapters-host")
    assert [(one.old, one.new) for one in step.changes] == [("zero3_offload", "zero2")]


def test_no_words_of_a_trainer_that_is_not_there(tmp_path: Path) -> None:
    own, other = (opened(tmp_path, log + ON_CARD.format(more=""), answers={"memory": "gpu"}) for log in (OWN, ""))
    assert any("TrainingArguments" in step.example for step in other.plan.steps)
    assert not any("TrainingArguments" in step.example for step in own.plan.steps)


def test_what_stands_further_down_is_told_by_its_title(tmp_path: Path) -> None:
    state = opened(tmp_path, KILLED, answers={"memory": "host", "framework": "verl"})
    text = " ".join(short_report(state).split())
    assert "Further: " in text
    assert sum(f"{step.id})" in text or f"({step.id}:" in text for step in state.plan.steps) >= 9
