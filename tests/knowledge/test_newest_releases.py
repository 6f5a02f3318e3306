"""What the newest releases changed of memory: defaults, backends, methods, and advisories with their versions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.knowledge import load_knowledge
from advisor.rules.functions import version_in
from advisor.session import SessionRequest, State, open_session
from tests.loops import each

Opened = Callable[..., State]
TRL = (
    "accelerate launch --num_processes 8 -m trl.scripts.grpo --model_name_or_path Qwen/Qwen2.5-7B "
    "--per_device_train_batch_size 16 --use_vllm true --dtype bfloat16\n"
)
AREAL = """cluster: {{n_nodes: 1, n_gpus_per_node: 8}}
gconfig: {{n_samples: 8, max_new_tokens: 4096}}
rollout: {{backend: "sglang:d4", scheduling_strategy: {{type: {strategy}}}}}
actor:
  backend: "{backend}"
  path: Qwen/Qwen2.5-7B
  mb_spec: {{max_tokens_per_mb: 16384}}
train_dataset: {{batch_size: 32, type: {kind}}}
"""
FSDP, MEGATRON = "fsdp:d4", "megatron:d2t2"


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    def read(text: str, *libraries: str, name: str = "run.sh", log: str = "") -> State:
        script = tmp_path / name
        script.write_text(text)
        (tmp_path / "train.log").write_text(log)
        logs = (tmp_path / "train.log",) if log else ()
        return open_session(
            SessionRequest(script, logs, "8xH100-80GB", host_ram="1000GB", libraries=libraries, planned=False)
        )

    return read


def held(state: State, phase: str, owner: str) -> int:
    """Bytes that an owner is expected to hold in a phase of the busiest card."""
    (found,) = (one for one in state.ledger.gpu if one.phase == phase)
    return sum(cell.expected for cell in found.cells if cell.owner == owner)


@pytest.mark.parametrize(("version", "tokens"), [("1.9.0", 256), ("1.10.0", 512), ("1.16.0", 512)])
def test_trl_generates_twice_as_much_from_1_10_on(opened: Opened, version: str, tokens: int) -> None:
    assert opened(TRL, f"trl={version}").run.number("data.response_tokens") == tokens


def test_trl_builds_no_full_logits_from_1_15_on(opened: Opened) -> None:
    before, after = (opened(TRL, f"trl={version}") for version in ("1.14.0", "1.15.0"))
    assert held(after, "actor_update", "logits") < held(before, "actor_update", "logits") / 2
    liger = opened(TRL.replace("--dtype", "--use_liger_kernel true --dtype"), "trl=1.15.0")
    assert held(liger, "actor_update", "logits") == held(after, "actor_update", "logits")


LOADED = """from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B"{dtype})
Trainer(model=model, args=TrainingArguments(output_dir="x", per_device_train_batch_size=1)).train()
"""


def test_transformers_5_loads_in_the_checkpoints_own_type(opened: Opened) -> None:
    def weights(version: str, dtype: str = "") -> int:
        text = LOADED.format(dtype=dtype)
        return held(opened(text, f"transformers={version}", name="train.py"), "actor_update", "weights")

    four, five = weights("4.57.1"), weights("5.0.0")
    assert five == pytest.approx(four / 2, rel=0.01)
    assert weights("4.57.1", ', torch_dtype="auto"') == five
    assert weights("5.0.0", ', torch_dtype="float32"') == four


def areal(backend: str = FSDP, kind: str = "rl", strategy: str = "separation") -> str:
    return AREAL.format(backend=backend, kind=kind, strategy=strategy)


def test_areal_keeps_fp32_masters_from_2_0_on(opened: Opened) -> None:
    states = {
        version: sum(
            held(opened(areal(), f"areal={version}", name="run.yaml"), "actor_update", owner) for owner in OWNERS
        )
        for version in ("1.0.4", "2.0.0")
    }
    assert states["2.0.0"] == pytest.approx(2 * states["1.0.4"], rel=0.05)


OWNERS = ("weights", "gradients", "optimizer")


@pytest.mark.parametrize(("backend", "trainer"), [(FSDP, "fsdp"), (MEGATRON, "megatron")])
def test_areals_backend_says_who_trains(opened: Opened, backend: str, trainer: str) -> None:
    run = opened(areal(backend), "areal=2.0.0", name="run.yaml").run
    assert (run.mechanics.trainer, run.topology.data_parallel) == (trainer, 4 if trainer == "fsdp" else 2)


def test_areals_chunks_of_the_head_leave_no_full_logits(opened: Opened) -> None:
    chunks = "  megatron: {enable_chunked_logits: true, lm_head_loss_chunk_size: 1024}\ntrain_dataset"
    whole, pieces = areal(MEGATRON), areal(MEGATRON).replace("train_dataset", chunks)
    before, after = (opened(text, "areal=2.0.0", name="run.yaml") for text in (whole, pieces))
    assert held(after, "actor_update", "logits") < held(before, "actor_update", "logits") / 8


@pytest.mark.parametrize(("kind", "method"), [("rl", "rl"), ("sft", "sft"), ("dpo", "dpo"), ("rw", "rm")])
def test_areals_dataset_says_the_method(opened: Opened, kind: str, method: str) -> None:
    assert opened(areal(kind=kind), "areal=2.0.0", name="run.yaml").run.algorithm == method


def test_areal_with_a_critic_is_ppo(opened: Opened) -> None:
    assert opened(f"{areal()}critic: {{path: Qwen/Qwen2.5-7B}}\n", name="run.yaml").run.algorithm == "ppo"


@pytest.mark.parametrize(
    ("words", "method"),
    [("mean_level: group", "grpo"), ("mean_level: group, mean_leave1out: true", "rloo"), ("mean_level: batch", "rl")],
)
def test_what_areal_normalises_over_a_group_says_the_method(opened: Opened, words: str, method: str) -> None:
    text = areal().replace("  mb_spec", f"  reward_norm: {{{words}}}\n  mb_spec")
    assert opened(text, "areal=2.0.0", name="run.yaml").run.algorithm == method


NEMO_PPO = """ppo: {num_prompts_per_step: 32, num_generations_per_prompt: 16}
policy:
  model_name: Qwen/Qwen2.5-7B
  train_micro_batch_size: 2
  max_total_sequence_length: 4096
  generation: {backend: vllm, vllm_cfg: {gpu_memory_utilization: 0.6}}
value: {model_name: "${policy.model_name}", train_micro_batch_size: "${policy.train_micro_batch_size}"}
cluster: {gpus_per_node: 8, num_nodes: 1}
"""


def test_nemo_rls_ppo_has_a_value_model_that_waits_in_host_ram(opened: Opened) -> None:
    state = opened(NEMO_PPO, name="ppo.yaml")
    assert (state.run.framework, state.run.algorithm) == ("nemo-rl", "ppo")
    assert held(state, "critic_update", "critic") > 10 * held(state, "rollout_generate", "critic") == 0
    grpo = NEMO_PPO.replace("ppo:", "grpo:").split("value:")[0] + "cluster: {gpus_per_node: 8, num_nodes: 1}\n"
    assert opened(grpo, name="grpo.yaml").run.algorithm == "grpo"
    assert not opened(grpo, name="grpo.yaml").run.is_on("critic.present")


def test_areals_engine_shares_the_cards_where_the_strategy_says_so(opened: Opened) -> None:
    apart, together = (
        opened(areal(strategy=strategy), "areal=2.0.0", name="run.yaml").run
        for strategy in ("separation", "colocation")
    )
    assert not apart.topology.colocated
    assert together.topology.colocated
    assert together.is_on("rollout.sleeps")


@each(("version", "warned"), [("3.11.3", False), ("3.12.0", True), ("4.5.2", True), ("4.5.3", False), ("4.6.0", False)])
def test_swift_loads_per_rank_from_its_first_fsdp2_up_to_4_5_2(version: str, warned: bool) -> None:
    (found,) = (one for one in load_knowledge().advisories if one.id == "swift-fsdp2-loads-per-rank")
    assert version_in(found.versions, version) is warned


VERL_MOE = (
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/{model} trainer.n_gpus_per_node=8 "
    "actor_rollout_ref.rollout.name=vllm actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 "
    "algorithm.adv_estimator=grpo data.train_batch_size=128\n"
)
IN_POOLS = (
    "INFO 07-10 12:00:00 [gpu_model_runner.py:3000] Starting to load model Qwen/{model}...\n"
    "Traceback (most recent call last):\n"
    '  File "/x/vllm/v1/worker/gpu_worker.py", line 300, in load_model\n'
    '  File "/x/vllm/model_executor/layers/quantization/utils/flashinfer_utils.py", line 176, in '
    "convert_moe_weights_to_flashinfer_trtllm_block_layout\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 3 has a total capacity of 79.11 GiB "
    "of which 21.50 MiB is free. Including non-PyTorch memory, this process has 79.00 GiB memory in use. Of the "
    "allocated memory 77.80 GiB is allocated by PyTorch, with 31.20 GiB allocated in private pools (e.g., CUDA "
    "Graphs), and 13.63 MiB is reserved by PyTorch but unallocated.\n"
)


@pytest.mark.parametrize(
    ("model", "version", "told"),
    [
        ("Qwen3-30B-A3B", "0.25.1", True),
        ("Qwen3-30B-A3B", "0.20.2", False),
        ("Qwen2.5-32B", "0.25.1", False),
    ],
)
def test_a_moe_that_vllm_lays_out_anew_while_it_loads_is_told(
    opened: Opened, model: str, version: str, told: bool
) -> None:
    state = opened(VERL_MOE.format(model=model), "verl=0.9.1", f"vllm={version}", log=IN_POOLS.format(model=model))
    titles = [advice.title for advice in state.diagnosis.advisories]
    assert any("strand a second copy" in title for title in titles) is told


ROLL_CONFIG = """pretrain: Qwen/Qwen2.5-7B-Instruct
num_gpus_per_node: 8
rollout_batch_size: 64
num_return_sequences_in_group: 8
prompt_length: 2048
{lengths}
adv_estimator: grpo
actor_train:
  training_args: {{per_device_train_batch_size: 1, gradient_accumulation_steps: 64}}
  strategy_args:
    strategy_name: megatron_train
    strategy_config: {{tensor_model_parallel_size: 1, pipeline_model_parallel_size: 4, context_parallel_size: 2}}
  device_mapping: list(range(0,8))
actor_infer:
  strategy_args: {{strategy_name: vllm, strategy_config: {{gpu_memory_utilization: 0.8}}}}
  device_mapping: list(range(0,8))
"""


@pytest.mark.parametrize("lengths", ["response_length: 4096", "sequence_length: 2560"])
def test_a_plan_for_roll_leaves_answers_and_cards(lengths: str, tmp_path: Path) -> None:
    """A sequence of prompt_length or less has no answer, and the parallel sizes multiply to a divisor of the cards."""
    script, log = tmp_path / "rlvr_config.yaml", tmp_path / "train.log"
    script.write_text(ROLL_CONFIG.format(lengths=lengths))
    log.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.27 GiB.\n")
    answers = {"phase": "actor_update"}
    state = open_session(SessionRequest(script, (log,), "8xH100-80GB", host_ram="1000GB", answers=answers))
    changes = {change.key: change.new for step in state.plan.steps for change in step.changes}
    assert int(changes.get("sequence_length", 4096)) > 2048
    for step in state.plan.steps:
        sizes = {"tensor": 1, "pipeline": 4, "context": 2}
        sizes |= {
            change.key.rpartition(".")[2].split("_")[0]: int(change.new or 0)
            for change in step.changes
            if "_parallel_" in change.key and "train" in change.key
        }
        assert 8 % (sizes["tensor"] * sizes["pipeline"] * sizes["context"]) == 0


NEMO_SFT = """sft: {max_num_steps: 100}
policy:
  model_name: Qwen/Qwen2.5-7B
  train_global_batch_size: 32
  train_micro_batch_size: 4
  max_total_sequence_length: 8192
  dtensor_cfg: {enabled: true}
  dynamic_batching: {enabled: false}
  sequence_packing: {enabled: false}
cluster: {gpus_per_node: 8, num_nodes: 1}
"""


def test_a_section_of_nemo_rl_is_not_switched_on_without_its_other_keys(tmp_path: Path) -> None:
    script, log = tmp_path / "sft.yaml", tmp_path / "train.log"
    script.write_text(NEMO_SFT)
    log.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.27 GiB.\n")
    answers = {"phase": "actor_update"}
    state = open_session(SessionRequest(script, (log,), "8xH100-80GB", host_ram="1000GB", answers=answers))
    keys = {change.key for step in state.plan.steps if not step.no_place for change in step.changes}
    assert not keys & {
        "policy.sequence_packing.enabled",
        "policy.dynamic_batching.enabled",
        "grpo.num_prompts_per_step",
    }


def test_rloo_has_a_reference_and_pairs_of_its_own_from_022_on(tmp_path: Path) -> None:
    """huggingface/trl@v0.22.0 trl/trainer/rloo_config.py:256,422: 2 completions, a KL of 0.05; GRPO: 8 and 0."""
    script = tmp_path / "run.sh"
    for method, asked in (("rloo", (2, True)), ("grpo", (8, False))):
        script.write_text(f"trl {method} --model_name_or_path Qwen/Qwen2.5-7B-Instruct --output_dir o\n")
        run = open_session(SessionRequest(script, libraries=("trl=0.24.0",), planned=False)).run
        assert (run.number("rollout.samples_per_prompt"), run.knobs["algorithm.kl"].value) == asked, method
