"""verl from 0.7.1 on: which backend a run has, what its critic and reward model are called, what its updates hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.session import SessionRequest, State, open_session

Read = Callable[..., State]

BASE = (
    "python3 -m verl.trainer.main_ppo data.train_batch_size=256 data.max_prompt_length=1024 "
    "data.max_response_length=2048 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct "
    "actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 "
    "actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=4 "
    "trainer.n_gpus_per_node=8 trainer.nnodes=1"
)
GRPO = f"{BASE} algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=8"
CRITIC = "critic.model.path=Qwen/Qwen2.5-7B-Instruct critic.ppo_micro_batch_size_per_gpu=2"
PPO = f"{BASE} algorithm.adv_estimator=gae {CRITIC}"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.27 GiB. GPU 0 has a total capacity of 79.14 GiB "
    "of which 3.1 GiB is free. Of the allocated memory 74.23 GiB is allocated by PyTorch.\n"
)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """(command, verl's version, the phase in which it died, other versions) → that launch's session on eight H100."""

    def opened(command: str, version: str, phase: str = "", *others: str) -> State:
        script, log = tmp_path / "run.sh", tmp_path / "train.log"
        script.write_text(command + "\n")
        log.write_text(OOM)
        told = {"answers": {"phase": phase}, "logs": (log,)} if phase else {"planned": False}
        machine = {"gpus": "8xH100-80GB", "host_ram": "1000GB"}
        return open_session(SessionRequest(script=script, libraries=(f"verl={version}", *others), **machine, **told))  # type: ignore[arg-type]

    return opened


def gpu(state: State, phase: str, owner: str) -> float:
    """GiB of an owner on the card in a phase."""
    found = next(each for each in state.ledger.gpu if each.phase == phase)
    return sum(cell.expected for cell in found.cells if cell.owner == owner) / 2**30


@pytest.mark.parametrize(
    ("words", "version"),
    [
        ("model_engine=megatron", "0.9.0"),
        ("model_engine=megatron", "0.8.0"),
        ("--config-name=ppo_megatron_trainer", "0.7.1"),
        ("--config-name=ppo_megatron_trainer.yaml", "0.9.1"),
        ("actor_rollout_ref.actor.strategy=megatron", "0.7.0"),
    ],
)
def test_megatron_is_told_by_the_group_the_config_or_the_strategy(words: str, version: str, read: Read) -> None:
    state = read(f"{GRPO} {words} actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4", version)
    assert state.run.mechanics.trainer == "megatron"
    assert state.run.topology.model_parallel == 4


@pytest.mark.parametrize("chosen", ["veomni", "mindspeed", "torchtitan", "automodel", "mlite"])
def test_a_backend_that_nobody_has_read_is_not_predicted(chosen: str, read: Read) -> None:
    state = read(f"{GRPO} model_engine={chosen}", "0.9.0", "actor_update")
    assert any("which is not known here" in one for one in state.ledger.missing)
    assert not any("fsdp_config" in change.key for step in state.plan.steps for change in step.changes)


def test_the_backend_of_a_plain_launch_is_fsdp(read: Read) -> None:
    assert read(f"{GRPO} model_engine=dp", "0.9.0").run.mechanics.trainer == "fsdp"


@pytest.mark.parametrize(
    ("version", "key"), [("0.7.1", "critic.model.fsdp_config"), ("0.8.0", "critic.fsdp"), ("0.9.1", "critic.fsdp")]
)
def test_the_critics_offload_is_read_and_written_by_its_name_in_that_version(
    version: str, key: str, read: Read
) -> None:
    bare = read(PPO, version, "critic_update")
    off = read(f"{PPO} {key}.param_offload=True {key}.optimizer_offload=True", version)
    assert (off.run.is_on("critic.optimizer_offload"), bare.run.is_on("critic.optimizer_offload")) == (True, False)
    assert gpu(off, "rollout_generate", "critic") == 0 < gpu(bare, "rollout_generate", "critic")
    keys = {change.key for step in bare.plan.steps for change in step.changes}
    assert not any(other in one for one in keys for other in {"critic.model.fsdp_config", "critic.fsdp"} - {key})


def test_the_critic_of_a_new_verl_needs_no_padding_taken_out(read: Read) -> None:
    state = read(PPO, "0.9.0", "critic_update")
    assert state.run.is_on("critic.remove_padding")
    assert not any(
        change.key == "critic.model.use_remove_padding" for step in state.plan.steps for change in step.changes
    )


def test_the_critics_sequence_parallel_size_has_moved_with_it(read: Read) -> None:
    old, new = "critic.ulysses_sequence_parallel_size=2", "critic.fsdp.ulysses_sequence_parallel_size=2"
    assert read(f"{PPO} {old} critic.model.use_remove_padding=True", "0.7.1").run.value("critic.sequence_parallel") == 2
    assert read(f"{PPO} {old}", "0.8.0").run.value("critic.sequence_parallel") == 1
    assert read(f"{PPO} {new}", "0.8.0").run.value("critic.sequence_parallel") == 2


@pytest.mark.parametrize(
    ("version", "sequences"), [("0.7.0", 1024), ("0.7.1", 1024), ("0.8.0", 1024), ("0.9.0", 256), ("0.9.1", 256)]
)
def test_sequences_of_the_engine_by_default(version: str, sequences: int, read: Read) -> None:
    assert read(GRPO, version).run.value("rollout.max_sequences") == sequences


@pytest.mark.parametrize(("version", "on"), [("0.7.1", True), ("0.8.0", False), ("0.9.0", True)])
def test_entropy_in_chunks_where_the_actors_key_is_read(version: str, on: bool, read: Read) -> None:
    state = read(f"{GRPO} actor_rollout_ref.actor.entropy_from_logits_with_chunking=True", version)
    assert state.run.is_on("logprob.entropy_in_chunks") is on


def test_a_sleeping_reward_model_lies_in_host_ram(read: Read) -> None:
    key = "reward.reward_model"
    model = f"{key}.enable=True {key}.model_path=Skywork/Skywork-Reward-V2-Llama-3.1-8B"
    beside, apart = read(f"{GRPO} {model}", "0.9.0"), read(f"{GRPO} {model} {key}.enable_resource_pool=True", "0.9.0")
    assert (beside.run.topology.reward_on, apart.run.topology.reward_on) == ("host", "own")
    assert read(f"{GRPO} reward_model.enable=True", "0.6.1").run.topology.reward_on == "host"
    assert read(GRPO, "0.9.0").run.topology.reward_on == "none"


def test_an_engine_on_cards_of_its_own_leaves_the_trainers_alone(read: Read) -> None:
    apart = read(f"{GRPO} trainer.v1.trainer_mode=separate_async actor_rollout_ref.rollout.nnodes=1", "0.9.0")
    assert (apart.run.topology.colocated, apart.run.topology.rollout_gpus, apart.run.topology.asked) == (False, 8, 16)
    off = GRPO.replace("trainer.main_ppo", "experimental.one_step_off_policy.main_ppo").replace(
        "gpus_per_node=8", "gpus_per_node=6"
    )
    split = read(f"{off} rollout.nnodes=1 rollout.n_gpus_per_node=2", "0.9.0")
    assert (split.run.topology.colocated, split.run.topology.actor_gpus, split.run.topology.rollout_gpus) == (
        False,
        6,
        2,
    )
    assert read(GRPO, "0.9.0").run.topology.colocated


def test_the_sequence_parallel_size_may_stand_with_the_engines_keys(read: Read) -> None:
    key = "actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size"
    assert read(f"{GRPO} {key}=4", "0.9.0").run.topology.sequence_parallel == 4
    both = read(f"{GRPO} {key}=4 actor_rollout_ref.actor.ulysses_sequence_parallel_size=2", "0.9.0")
    assert both.run.topology.sequence_parallel >= 2
    assert read(GRPO, "0.9.0").run.topology.sequence_parallel == 1


def test_adapters_of_megatron_have_keys_of_their_own(read: Read) -> None:
    whole = f"{GRPO} model_engine=megatron actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4"
    few = read(f"{whole} actor_rollout_ref.model.lora.rank=32", "0.9.0")
    assert few.run.value("actor.lora_rank") == 32
    assert gpu(few, "actor_update", "optimizer") < gpu(read(whole, "0.9.0"), "actor_update", "optimizer") / 10


def test_teachers_count_among_the_cards_that_a_run_asks_for(read: Read) -> None:
    told = "distillation.enabled=True distillation.nnodes=1 distillation.n_gpus_per_node=4"
    assert read(f"{GRPO} {told}", "0.9.0").run.topology.asked == 12


def advisories(state: State) -> set[str]:
    return {advice.id for advice in state.diagnosis.advisories}


@pytest.mark.parametrize(("engine", "warned"), [("vllm", True), ("sglang", False)])
def test_a_fault_of_an_engine_that_is_installed_is_told_of_runs_with_that_engine(
    read: Read, engine: str, warned: bool
) -> None:
    command = GRPO.replace("rollout.name=vllm", f"rollout.name={engine}")
    assert ("vllm-sleep-keeps-weights" in advisories(read(command, "0.6.1", "actor_update", "vllm=0.15.0"))) is warned


@pytest.mark.parametrize(
    ("version", "words", "warned"),
    [
        ("0.7.0", "", False),
        ("0.7.1", "trainer.use_legacy_worker_impl=disable", True),
        ("0.8.0", "", True),
        ("0.9.0", "", False),
        ("0.9.1", "", False),
    ],
)
def test_outputs_that_are_kept_are_told_of_where_the_new_workers_run(
    version: str, words: str, warned: bool, read: Read
) -> None:
    assert ("verl-engine-keeps-outputs" in advisories(read(f"{GRPO} {words}", version, "actor_update"))) is warned


@pytest.mark.parametrize(("strategy", "gradients"), [("fsdp", 2 * 7.6e9), ("fsdp2", 4 * 7.6e9)])
def test_verl_090_holds_whole_gradients_until_the_last_pass(strategy: str, gradients: float, read: Read) -> None:
    command = f"{GRPO} actor_rollout_ref.actor.strategy={strategy}"
    state = read(command, "0.9.0", "actor_update")
    assert gpu(state, "actor_update", "gradients") == pytest.approx(gradients / 2**30, rel=0.02)
    assert "verl-090-whole-gradients" in advisories(state)
    for version in ("0.8.0", "0.9.1"):
        assert gpu(read(command, version, "actor_update"), "actor_update", "gradients") <= 4 * 7.6e9 / 8 / 2**30 * 1.05
    assert any(step.id.startswith("use-verl-0.9.1") for step in state.plan.steps)


def test_one_pass_a_mini_batch_piles_up_no_gradients(read: Read) -> None:
    one = GRPO.replace("ppo_micro_batch_size_per_gpu=2 actor", "ppo_micro_batch_size_per_gpu=64 actor")
    assert gpu(read(one, "0.9.0", "actor_update"), "actor_update", "gradients") < 4


def test_verl_091_reduces_gradients_every_pass_unless_told_otherwise(read: Read) -> None:
    key = "actor_rollout_ref.actor.fsdp_config.use_no_sync_for_gradient_accumulation"
    state = read(f"{GRPO} {key}=True", "0.9.1", "actor_update")
    assert gpu(state, "actor_update", "gradients") == pytest.approx(2 * 7.6e9 / 2**30, rel=0.02)
    step = next(step for step in state.plan.steps if step.id == "reduce-gradients-each-pass")
    assert [(change.key, change.new) for change in step.changes] == [(key, "False")]


def test_grad_offload_of_megatron_is_told_to_do_nothing(read: Read) -> None:
    state = read(f"{GRPO} model_engine=megatron", "0.9.0", "rollout_generate")
    assert not any("grad_offload" in change.key for step in state.plan.steps for change in step.changes)


def traceback(*frames: str, task: str = "") -> str:
    """A log with these frames ("file:function"), innermost last, of a Ray task."""
    shown = "".join(
        f'  File "/opt/verl/verl/workers/{file}", line 1, in {function}\n    x()\n'
        for file, function in (frame.split(":") for frame in frames)
    )
    said = f"ray.exceptions.RayTaskError(OutOfMemoryError): ray::{task}() (pid=1, ip=10.0.0.1)\n" if task else ""
    return f"Traceback (most recent call last):\n{said}{shown}{OOM}"


ENGINE = ("engine/fsdp/transformer_impl.py:forward_backward_batch", "engine/fsdp/transformer_impl.py:forward_step")
UPDATE = ("engine_workers.py:train_mini_batch", "engine_workers.py:train_batch", "engine/base.py:train_batch", *ENGINE)
SCORE = ("engine_workers.py:infer_batch", "engine/base.py:infer_batch", *ENGINE)


@pytest.mark.parametrize(
    ("frames", "phase"),
    [
        (("engine_workers.py:update_actor", *UPDATE), "actor_update"),
        (UPDATE, "critic_update"),
        (("engine_workers.py:compute_log_prob", *SCORE), "log_prob"),
        (SCORE, "log_prob"),
    ],
)
def test_the_engines_own_calls_tell_the_critic_from_the_actor(
    frames: tuple[str, ...], phase: str, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    log.write_text(traceback(*frames))
    assert open_session(SessionRequest(logs=(log,))).crash.phase == phase


@pytest.mark.parametrize(
    ("task", "phase"),
    [
        ("WorkerDict.critic_train_mini_batch", "critic_update"),
        ("WorkerDict.critic_infer_batch", "log_prob"),
        ("WorkerDict.actor_rollout_ref_update_actor", "actor_update"),
    ],
)
def test_rays_task_tells_the_phase_of_a_bare_line(task: str, phase: str, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(traceback("../single_controller/ray/base.py:func", task=task))
    assert open_session(SessionRequest(logs=(log,))).crash.phase == phase


@pytest.mark.parametrize(("version", "follows"), [("0.6.1", False), ("0.7.0", True), ("0.9.1", True)])
def test_megatrons_reference_is_offloaded_with_the_actor_from_0_7_on(version: str, follows: bool, read: Read) -> None:
    words = "actor_rollout_ref.actor.megatron.param_offload=True actor_rollout_ref.actor.use_kl_loss=True"
    engine = "actor_rollout_ref.actor.strategy=megatron" if version.startswith("0.6") else "model_engine=megatron"
    engine = "--config-name=ppo_megatron_trainer" if version == "0.7.0" else engine
    state = read(f"{GRPO} {engine} {words}", version)
    assert state.run.mechanics.trainer == "megatron"
    assert state.run.is_on("reference.offload") is follows
