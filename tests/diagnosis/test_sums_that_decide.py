"""A sum that is printed decides: the cause, what is never proposed, and which step stands first."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.crash.evidence import TopUser
from advisor.diagnosis.card_facts import host_user_facts
from advisor.diagnosis.size_remarks import largest_model
from advisor.report.short_report import short_report
from advisor.session import State
from advisor.units import GIB
from tests.diagnosis.test_what_arithmetic_says import GPU, diagnosed

HOST = {"memory": "host"}
FULL = (
    "CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of {total} GiB of which {free} is free. "
)
POOL = "Of the allocated memory {} GiB is allocated by PyTorch, and 90.00 MiB is reserved by PyTorch but unallocated."
CHAT = (
    "deepspeed --num_gpus 1 main.py --model_name_or_path facebook/opt-1.3b --data_split 2,4,4 --zero_stage 0 "
    "--lora_dim 64 --per_device_train_batch_size 2 --max_seq_len 512 --num_padding_at_beginning 1 {more}\n"
)


def out_of(tried: str, total: float, free: str, rest: str = "") -> str:
    return "torch.OutOfMemoryError: " + FULL.format(tried=tried, total=total, free=free) + rest + "\n"


def steps(state: State) -> list[str]:
    return [step.id for step in state.plan.steps]


@pytest.mark.parametrize(
    ("listed", "used", "outside"), [((30, 30, 0.4), 400, True), ((90, 90, 0.4), 200, False), ((30, 30), 130, False)]
)
def test_memory_users_are_added_up_against_what_is_in_use(listed: tuple[float, ...], used: int, outside: bool) -> None:
    users = [TopUser(number, int(size * GIB), "ray::WorkerDict.update") for number, size in enumerate(listed)]
    fact = host_user_facts(users, 1.5e9, in_use=used * GIB)["host.outside_list"]
    assert fact.value is outside
    assert "host.outside_list" not in host_user_facts(users, 1.5e9, cut=True, in_use=used * GIB)


def test_what_no_listed_process_holds_is_looked_for_before_any_setting(tmp_path: Path) -> None:
    rows = "".join(f"  {4711 + n}\t25.00\tray::WorkerDict.actor_rollout_generate_sequences\n" for n in range(4))
    log = (
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
        "Memory on the node (IP: 10.0.0.7, ID: ab12) where the task (task ID: 05f2, name=main_task, pid=26, memory "
        "used=2.80GB) was running was 480.00GB / 500.00GB (0.96), which exceeds the memory usage threshold of 0.95. "
        f"Ray killed this worker (ID: 05c1). Top 10 memory users:\n  PID\tMEM(GB)\tCOMMAND\n{rows}"
        "  26\t0.40\tray::main_task\n"
    )
    state = diagnosed(tmp_path, "", log, gpus="4xA100-80GB", model="Qwen2.5-3B", answers={"framework": "verl"})
    assert (state.diagnosis.cause, steps(state)[0]) == ("outside-the-list", "look-outside-the-list")


def test_adapters_of_deepspeed_chat_train_alone_only_where_that_is_said(tmp_path: Path) -> None:
    trained = {
        more: diagnosed(tmp_path, CHAT.format(more=more)).run.trains_adapters for more in ("", "--only_optimize_lora")
    }
    assert trained == {"": False, "--only_optimize_lora": True}


def test_a_request_of_all_parameters_is_no_pass(tmp_path: Path) -> None:
    log = out_of("4.90 GiB", 15.90, "2.20 GiB", POOL.format("13.10"))
    for more in ("", "--only_optimize_lora"):
        state = diagnosed(tmp_path, CHAT.format(more=more), log, gpus="1xP100-16GB", answers={"first_step": "yes"})
        assert state.diagnosis.cause in ("states-too-big", "lazy-optimizer"), more
    assert "LoRA may not be in force" in state.diagnosis.explains


def engine_start(folder: Path, gpus: str, model: str) -> State:
    log = (
        'Traceback (most recent call last):\n  File "/x/trl/trainer/grpo_trainer.py", line 432, in __init__\n'
        '    self.llm = LLM(\n  File "/x/vllm/entrypoints/llm.py", line 243, in __init__\n    self.llm_engine = self\n'
    )
    return diagnosed(folder, "", log, gpus=gpus, model=model, answers={**GPU, "framework": "trl"})


def test_an_engine_without_room_for_its_weights_gets_no_smaller_share(tmp_path: Path) -> None:
    state = engine_start(tmp_path, "8 A100", "Qwen2.5-32B-Instruct")
    assert state.machine.usable[0].name == "A100-80GB"  # the other card of that name holds no such weights
    assert "lower-rollout-share" not in steps(state)
    raised = next(step for step in state.plan.steps if step.id == "raise-rollout-share")
    weights = state.situation.facts["engine.weights_share"].value if state.situation is not None else 1
    assert float(raised.changes[0].new or 0) > float(str(weights))
    assert engine_start(tmp_path, "8 A100", "Qwen2.5-7B-Instruct").machine.usable[0].name == "A100-40GB"


OPENRLHF = (
    "deepspeed --module openrlhf.cli.train_ppo --pretrain meta-llama/Llama-2-13b-hf --zero_stage {stage} --bf16 "
    "--micro_train_batch_size 2 --train_batch_size 64 --micro_rollout_batch_size 2 --rollout_batch_size 64\n"
)


RAY = (
    "python3 -m openrlhf.cli.train_ppo_ray --pretrain meta-llama/Llama-2-13b-hf --actor_num_nodes 1 "
    "--actor_num_gpus_per_node 4 --critic_num_nodes 1 --critic_num_gpus_per_node 2 --zero_stage 3 "
    "--micro_train_batch_size 4 --bf16\n"
)


@pytest.mark.parametrize("gpus", [None, "8xA40-48GB"])
def test_steps_stand_by_what_they_free_where_states_fill_the_card(tmp_path: Path, gpus: str | None) -> None:
    state = diagnosed(tmp_path, RAY, gpus=gpus, answers={**GPU, "first_step": "yes"})
    saved = [max(one.saves.values(), default=0) for one in state.plan.steps if one.saves and one.results == "unchanged"]
    assert saved
    assert saved[0] >= max(saved) / 5


def test_beside_changes_that_suffice_stands_nothing_that_does_not(tmp_path: Path) -> None:
    state = diagnosed(tmp_path, OPENRLHF.format(stage=2), gpus="8xA40-48GB", host_ram="1000GB", answers=GPU)
    assert state.plan.fit.fits
    told = short_report(state)
    assert "more-gpus" not in told
    assert "smaller-zero-buckets" not in told


def test_processes_without_sizes_share_a_card_where_together_they_fill_it(tmp_path: Path) -> None:
    others = "".join(f"Process {pid} has 0 bytes memory in use. " for pid in range(3001, 3008))
    own = "Including non-PyTorch memory, this process has 0 bytes memory in use. " + POOL
    frame = '  File "/x/torch/nn/modules/module.py", line 1326, in convert\n    return t.to(\n'

    def cause(held: float) -> str:
        log = frame + out_of("130.00 MiB", 79.1, "12.81 MiB", others + own.format(held))
        return diagnosed(tmp_path, "", log, gpus="8xH100", model="Qwen2.5-7B", answers=GPU).diagnosis.cause

    assert cause(9.8) == "wrong-device"
    assert cause(78.2) != "wrong-device"


def test_more_allocated_than_the_card_has_is_a_sleeping_engine(tmp_path: Path) -> None:
    script = "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B trainer.n_gpus_per_node=4\n"
    log = out_of("260.00 MiB", 79.14, "49.75 MiB", POOL.format("94.21"))
    state = diagnosed(tmp_path, script, log, gpus="4xA100-80GB", answers=GPU)
    assert state.diagnosis.cause == "engine-beside-trainer"


def test_offloaded_states_are_held_against_the_ram_of_the_node(tmp_path: Path) -> None:
    words = "Full fine-tuning of a 13B model with zero3 offload to the CPU is killed: exit code -9, dmesg shows oom.\n"

    def told(ram: str) -> State:
        asked = {"gpus": "1xA100-80GB", "host_ram": ram, "model": "Llama-2-13b-hf"}
        return diagnosed(tmp_path, "", words, answers={**HOST, "first_step": "yes"}, **asked)

    state = told("128GB")
    assert "more than the node's RAM" in state.diagnosis.title
    assert not {"malloc-arenas", "fewer-loader-workers"} & {*steps(state)}
    assert "more than the node's RAM" not in told("1000GB").diagnosis.title


def test_without_a_launch_the_states_are_counted_unshared_too(tmp_path: Path) -> None:
    log = out_of("172.00 MiB", 79.1, "90.00 MiB")
    state = diagnosed(tmp_path, "", log, gpus="4xH100-80GB", model="Qwen2.5-7B", answers={**GPU, "first_step": "yes"})
    assert (state.diagnosis.cause, "113" in state.diagnosis.explains) == ("states-too-big", True)
    assert steps(state)[0] == "higher-zero-stage"
    ran = diagnosed(tmp_path, "", log, gpus="4xH100-80GB", model="Qwen2.5-7B", answers={**GPU, "first_step": "no"})
    assert ran.diagnosis.cause != "states-too-big"


def test_the_largest_model_of_the_launch_is_the_one_that_is_told(tmp_path: Path) -> None:
    launch = (
        "swift rlhf --rlhf_type gkd --model Qwen/Qwen2.5-7B --train_type full --teacher_model {} --deepspeed zero2\n"
    )
    named = {"Qwen/Qwen2.5-72B-Instruct": "Qwen/Qwen2.5-72B-Instruct", "Qwen/Qwen2.5-3B": ""}
    assert {name: largest_model(diagnosed(tmp_path, launch.format(name)).run)[0] for name in named} == named
