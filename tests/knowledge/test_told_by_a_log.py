"""Lines of real runs: every dialect is told by its own, no neighbour by them. Paths and loggers are upstream's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor.crash.read import read_text
from advisor.knowledge.load import load_knowledge
from advisor.run.run import Run
from advisor.session import SessionRequest, open_session
from tests.loops import each

KNOWN = load_knowledge()
OF_OTHERS: set[str] = set()
"""Its Trainer stands in the tracebacks of five others: a line of it proves none of them, and not it."""
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 79.14 GiB in all"
LINES: dict[str, tuple[str, ...]] = {
    "transformers": (
        "  Instantaneous batch size per device = 4",
        '  File "/opt/transformers/trainer.py", line 2548, in _inner_training_loop',
    ),
    "agilerl": ('  File "/opt/agilerl/algorithms/grpo.py", line 371, in learn',),
    "areal": (
        '  File "/AReaL/areal/engine/fsdp_engine.py", line 612, in train_batch',
        '  File "/AReaL/realhf/impl/model/backend/megatron.py", line 80, in train_batch',
    ),
    "axolotl": (
        '  File "/workspace/axolotl/src/axolotl/cli/train.py", line 118, in do_cli',
        "[2026-02-01 10:00:00,000] [INFO] [axolotl.train.setup_model_and_tokenizer:76] [PID:71] loading tokenizer",
        "[INFO] packing_efficiency_estimate: 0.97 actual packing efficiency: 0.9",
    ),
    "deepspeed-chat": (
        '  File "/w/applications/DeepSpeed-Chat/training/main.py", line 5, in <module>',
        '  File "/w/dschat/rlhf/ppo_trainer.py", line 99, in generate_experience',
        "cd training/step3_rlhf_finetuning",
    ),
    "easyr1": (
        '  File "/root/EasyR1/examples/a.py", line 1, in <module>',
        "(WorkerDict pid=9) Update policy:  12%|#2",
        "(Runner pid=871) start",
        '  File "/w/verl/trainer/main.py", line 30, in <module>',
        "worker.actor.global_batch_size=128",
        "(WorkerDict pid=9) Before vLLM init in sharding manager: 7.10 GB / 79.10 GB.",
        '"micro_batch_size_per_device_for_update": 4,',
        '  File "/w/verl/workers/fsdp_workers.py", line 538, in prepare_rollout_engine',
        '  File "/w/verl/workers/sharding_manager/fsdp_vllm.py", line 150, in load_vllm_and_sync_weights',
    ),
    "llamafactory": (
        '  File "/app/src/llamafactory/train/sft/workflow.py", line 112, in run_sft',
        "[INFO|2026-01-01 00:00:00] llamafactory.model.loader:143 >> trainable params: 1",
        "llamafactory-cli train a.yaml",
        "python src/train_bash.py --stage sft",
        "- `llamafactory` version: 0.9.3",
        '  File "/w/LLaMA-Factory/src/train.py", line 28, in <module>',
    ),
    "logic-rl": (
        "'train_files': 'data/kk/instruct/5ppl/train.parquet'",
        "'project_name': 'GRPO_logic_KK'",
        '  File "/w/Logic-RL/verl/trainer/main_ppo.py", line 5, in <module>',
    ),
    "ms-swift": (
        "[INFO:swift] Setting args.lazy_tokenize: False",
        '  File "/w/swift/rlhf_trainers/grpo_trainer.py", line 7, in compute_loss',
        "swift rlhf --rlhf_type grpo",
        "megatron sft --model Qwen/Qwen3-30B-A3B",
        "Name: ms-swift",
        '  File "/opt/conda/envs/swift/lib/python3.10/runpy.py", line 1, in run',
        "swift.__version__: 3.5.3",
    ),
    "nemo-rl": (
        '  File "/opt/nemo-rl/nemo_rl/algorithms/grpo.py", line 480, in grpo_train',
        "(DTensorPolicyWorker[rank=3] pid=8431) loading",
    ),
    "open-reasoner-zero": (
        "(PolicyRayActorBase pid=71) step",
        "(LLMActor pid=72) generate",
        '  File "/w/orz/ppo/trainer.py", line 40, in train',
        "python -m playground.orz_7b_ppo",
        '  File "/w/Open-Reasoner-Zero/playground/a.py", line 1, in <module>',
    ),
    "openrlhf": (
        "(ActorModelRayActor pid=5) x",
        "(PolicyModelActor pid=5) x",
        "(LLMRayActor pid=6) x",
        "(RolloutRayActor pid=6) x",
        '  File "/w/openrlhf/trainer/ray/ppo_actor.py", line 2, in training_step',
        '  File "/root/OpenRLHF/examples/a.py", line 2, in <module>',
    ),
    "prime-rl": ('  File "/app/src/prime_rl/trainer/rl/train.py", line 353, in train',),
    "prime-rl-sft": (
        '  File "/app/src/prime_rl/trainer/sft/train.py", line 201, in train',
        '  File "/app/src/prime_rl/entrypoints/sft.py", line 20, in main',
    ),
    "roll": (
        "namespace: roll",
        "(actor_train-3 pid=88) x",
        '  File "/w/roll/pipeline/rlvr/rlvr_pipeline.py", line 4, in run',
        "ray::RLVRPipeline.run()",
    ),
    "skyrl": (
        '  File "/w/skyrl/train/trainer.py", line 5, in train',
        '  File "/w/skyrl_train/trainer.py", line 5, in train',
        "cd ~/skyrl-train/examples",
        "(skyrl_entrypoint pid=9) x",
        "(FSDPPolicyWorkerBase pid=10) x",
    ),
    "skyrl-sft": (
        '  File "/w/skyrl/train/sft_trainer.py", line 5, in train',
        "(sft_entrypoint pid=9) x",
    ),
    "slime": (
        '  File "/root/slime/slime/backends/megatron_utils/actor.py", line 7, in train',
        "(MegatronTrainRayActor pid=3) x",
    ),
    "torchtune": (
        "INFO:torchtune.utils._logging:Running with torchtune 0.6.1",
        '  File "/opt/recipes/full_finetune_distributed.py", line 12, in train',
        "tune run lora_dpo_distributed --config llama3_1/8B_lora_dpo",
    ),
    "trl": (
        '  File "/p/site-packages/trl/trainer/grpo_trainer.py", line 900, in compute_loss',
        "trl vllm-serve --model Qwen/Qwen2.5-7B",
        "src/open_r1/grpo.py",
        '  File "/w/open-r1/a.py", line 1, in <module>',
    ),
    "unsloth": (
        '  File "/w/unsloth_compiled_cache/a.py", line 1, in <module>',
        '  File "/w/cache/UnslothGRPOTrainer.py", line 1, in <module>',
        "==((====))==  Unsloth 2025.3.19: Fast Qwen2 patching.",
        "Unsloth: Will smartly offload gradients to save VRAM!",
        '  File "/p/site-packages/unsloth/models/llama.py", line 3, in forward',
        '  File "<string>", line 31, in _unsloth_training_step',
        "Unsloth 2025.3.19 patched 28 layers",
    ),
    "verl": (
        "actor_rollout_ref.rollout.n=8",
        '  File "/w/verl/utils/fsdp_utils.py", line 9, in load_fsdp_model_to_gpu',
        '  File "verl/workers/fsdp_workers.py", line 9, in update_actor',
        "verl.trainer.main_ppo",
        "(WorkerDict pid=4) x",
        "(TaskRunner pid=4) x",
        "(main_task pid=4) x",
        "ray::create_colocated_worker_cls.<locals>.WorkerDict",
        '  File "/p/site-packages/verl/protocol.py", line 9, in chunk',
        '  File "/w/ragen/trainer/agent_trainer.py", line 700, in fit',
    ),
    "verl-sft": ('  File "/w/verl/trainer/fsdp_sft_trainer.py", line 410, in training_step',),
}  # fmt: skip
FORKS_OF_VERL = {
    "Search-R1": '  File "/w/Search-R1/search_r1/llm_agent/generation.py", line 240, in run_llm_loop',
    "RAGEN": '  File "/w/ragen/trainer/agent_trainer.py", line 700, in fit',
    "rLLM": '  File "/w/rllm/rllm/trainer/verl/agent_ppo_trainer.py", line 90, in fit_agent',
    "verl-agent": '  File "/w/agent_system/multi_turn_rollout/rollout_loop.py", line 310, in multi_turn_loop',
    "verl-tool": '  File "/w/verl-tool/verl_tool/trainer/main_ppo.py", line 30, in main',
}
ONLY_NAMED = [
    "data.train_files: OpenRLHF/prompt-collection-v0.1",
    "dataset: Open-Reasoner-Zero/orz_math_57k_collection",
    "Loading unsloth/Qwen2.5-7B-Instruct-bnb-4bit",
    "model: axolotl-ai-co/numina-8b-ep1-exp1",
    "trl-lib/tldr",
    "self.worker.rollout.generate_sequences(prompts)",
    "ray::ActorWorker.compute_log_prob()",
    "git clone https://github.com/volcengine/verl.git",
]  # fmt: skip


def _told(lines: str) -> tuple[str, ...]:
    return read_text(f"{lines}\n{OUT_OF_MEMORY}\n", "train.log", KNOWN.signatures, *KNOWN.phase_marks()).frameworks


def _run(folder: Path, lines: str) -> Run:
    log = folder / "train.log"
    log.write_text(f"{lines}\n{OUT_OF_MEMORY}\n")
    return open_session(SessionRequest(None, (log,), gpus="8xH100-80GB", planned=False)).run


def test_every_dialect_has_lines_here() -> None:
    assert set(LINES) == {dialect.framework for dialect in KNOWN.frameworks} - OF_OTHERS


@each(("framework", "line"), [(name, line) for name, lines in LINES.items() for line in lines])
def test_a_line_of_its_own_tells_a_dialect_before_any_other(framework: str, line: str) -> None:
    assert _told(line)[:1] == (framework,)


@each("mark", KNOWN.signatures.framework_marks, ids=lambda mark: f"{mark.framework} {mark.pattern}")
def test_every_mark_is_one_of_a_line_of_its_dialect_and_of_no_neighbour(mark) -> None:
    matched = {name for name, lines in LINES.items() if any(re.search(mark.pattern, line) for line in lines)}
    assert mark.framework in matched
    parents = {"verl": {"easyr1", "logic-rl", "verl-sft"}, "skyrl": {"skyrl-sft"}, "prime-rl": {"prime-rl-sft"}}
    assert matched - {mark.framework} <= parents.get(mark.framework, set())


@pytest.mark.parametrize("framework", LINES)
def test_a_log_alone_names_its_dialect(tmp_path: Path, framework: str) -> None:
    assert _run(tmp_path, LINES[framework][0]).framework == framework


@pytest.mark.parametrize("fork", FORKS_OF_VERL)
def test_a_fork_of_verl_is_read_as_verl(tmp_path: Path, fork: str) -> None:
    assert _run(tmp_path, FORKS_OF_VERL[fork]).framework == "verl"


@each("line", ONLY_NAMED)
def test_a_model_a_data_set_or_a_common_word_names_no_dialect(line: str) -> None:
    assert _told(line) == ()


@each(
    ("outer", "inner", "framework"),
    [
        ("llamafactory", "trl", "llamafactory"),
        ("llamafactory", "unsloth", "llamafactory"),
        ("axolotl", "trl", "axolotl"),
        ("axolotl", "unsloth", "axolotl"),
        ("ms-swift", "trl", "ms-swift"),
        ("unsloth", "trl", "unsloth"),
        ("torchtune", "torchtune", "torchtune"),
        ("verl-sft", "verl", "verl-sft"),
        ("easyr1", "verl", "easyr1"),
    ],
)
def test_who_builds_on_another_is_told_before_it(outer: str, inner: str, framework: str) -> None:
    assert _told("\n".join((*LINES[inner], *LINES[outer])))[0] == framework
