"""The least launch of a dialect's era that says what a run is: written from the dialect itself, in its own syntax."""

from __future__ import annotations

import re
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from advisor.knowledge.schema import Framework, SettingFact
from advisor.run.conversion import speaks_in_words
from advisor.run.natives import in_era

PROGRAMS = {
    "verl": "python3 -m verl.trainer.main_ppo",
    "verl-sft": "torchrun --nproc_per_node 8 -m verl.trainer.sft_trainer",
    "logic-rl": "python3 -m verl.trainer.main_ppo data.train_files=data/kk/instruct/5ppl/train.parquet",
    "easyr1": "python3 -m verl.trainer.main",
    "openrlhf": "python3 -m openrlhf.cli.train_ppo_ray",
    "ms-swift": "NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo",
    "trl": "accelerate launch --num_processes 8 -m trl.scripts.grpo",
    "slime": "python3 train.py",
    "nemo-rl": "python3 examples/run_grpo_math.py",
    "areal": "python3 -m areal.launcher.local examples/math/gsm8k_grpo.py",
    "deepspeed-chat": "deepspeed --num_gpus 8 main.py",
    "llamafactory": "llamafactory-cli train",
    "axolotl": "axolotl train",
    "skyrl": "python3 -m skyrl.train.entrypoints.main_base",
    "skyrl-sft": "python3 -m skyrl.train.main_sft",
    "unsloth": "",
    "torchtune": "tune run --nproc_per_node 8 full_finetune_distributed",
    "prime-rl": "uv run rl @ rl.toml",
    "prime-rl-sft": "uv run sft @ sft.toml",
    "transformers": "torchrun --nproc_per_node 8 train.py",
    "agilerl": "",
    "roll": "",
    "open-reasoner-zero": "",
}
WANTED: dict[str, object] = {
    "model.path": "Qwen/Qwen2.5-7B-Instruct",
    "topology.nodes": 1,
    "topology.gpus_per_node": 8,
    "topology.actor_nodes": 1,
    "topology.actor_gpus_per_node": 8,
    "rollout.engines": 4,
    "rollout.tensor_parallel": 2,
    "data.train_batch": 128,
    "rollout.samples_per_prompt": 8,
    "data.prompt_tokens": 1024,
    "data.response_tokens": 2048,
    "data.total_tokens": 3072,
    "actor.mini_batch": 64,
    "actor.micro_batch": 8,
    "actor.accumulation": 4,
    "logprob.micro_batch": 16,
    "reference.micro_batch": 16,
    "critic.micro_batch": 8,
    "rollout.memory_share": 0.6,
    "rollout.max_batched_tokens": 8192,
    "rollout.max_sequences": 256,
    "data.pack_tokens": 12288,
    "data.loader_workers": 8,
}
"""What the launch sets, by knob: its first key of the era that takes a plain number or name."""
OWN: dict[str, dict[str, object]] = {
    "verl": {"algorithm.adv_estimator": "grpo", "actor_rollout_ref.actor.use_kl_loss": "True"},
    "openrlhf": {},
    "areal": {"allocation_mode": "sglang:d4+fsdp:d4", "actor.mb_spec.max_tokens_per_mb": 16384},
    "slime": {"rollout-num-gpus-per-engine": 2, "global-batch-size": 512, "colocate": ""},
    "nemo-rl": {"policy.train_global_batch_size": 512},
    "roll": {"actor_train.device_mapping": "list(range(0,8))", "actor_infer.device_mapping": "list(range(0,8))"},
    "trl": {"use_vllm": "true"},
    "ms-swift": {"use_vllm": "true", "deepspeed": "zero2"},
    "torchtune": {"model._component_": "torchtune.models.qwen2_5.qwen2_5_7b_base"},
    "deepspeed-chat": {"actor_zero_stage": 3, "enable_hybrid_engine": ""},
    "open-reasoner-zero": {
        "colocate_all": "True",
        "total_num_nodes": 8,
        "actor_num_nodes": 8,
        "actor_num_gpus_per_node": 1,
        "critic_num_nodes": 8,
        "ref_num_nodes": 8,
        "vllm_num_engines": 8,
        "vllm_tensor_parallel_size": 1,
        "micro_train_batch_size": 1,
        "micro_forward_batch_size": 1,
    },
    "unsloth": {"from_pretrained.fast_inference": "True"},
    "transformers": {"output_dir": "out", "num_train_epochs": 3, "per_device_train_batch_size": 8},
    "prime-rl-sft": {"deployment.num_train_gpus": 8, "data.seq_len": 3072},
    "prime-rl": {"deployment.num_train_gpus": 4, "deployment.num_infer_gpus": 4, "orchestrator.batch_size": 128},
    "agilerl": {
        "offload_trainer_during_rollout": "true",
        "use_memory_efficient_params": "true",
        "reduce_memory_peak": "false",
        "micro_batch_size_per_gpu": 8,
    },
}
"""What a dialect needs beside it, where the era has the key."""


@dataclass(frozen=True)
class MinimalLaunch:
    """A file and its text, and the version that its era is told by."""

    name: str
    text: str
    version: str
    keys: tuple[str, ...]


def a_version_of(specifier: str) -> str:
    """Some version that the specifier of an era holds."""
    held = SpecifierSet(specifier, prereleases=True)
    named = [Version(found) for found in re.findall(r"[\d][\w.]*", specifier)]
    tried = [*named, *(Version(f"{v.major}.{v.minor}.{max(0, v.micro - 1)}") for v in named), Version("0.0.1")]
    tried += [Version(f"{v.major}.{max(0, v.minor - 1)}.0") for v in named]
    return str(next(version for version in tried if version in held))


def minimal_launch(dialect: Framework, era: str, versions: str) -> MinimalLaunch:
    """The launch of one era; `versions` is the era's specifier."""
    living = {key: fact for key, fact in dialect.settings.items() if in_era(fact, era)}
    values: dict[str, object] = {k: v for k, v in OWN.get(dialect.framework, {}).items() if k in living}
    for knob, value in WANTED.items():
        key = next((k for k, fact in living.items() if _takes(fact, knob, era)), None)
        if key is not None and key not in values:
            values[key] = value
    text, name = _written(dialect, values)
    return MinimalLaunch(name, text, a_version_of(versions) if versions else "", tuple(values))


def _takes(fact: SettingFact, knob: str, era: str) -> bool:
    """Whether the key carries the knob as it is."""
    dead = any(idle.when is None and (not idle.eras or era in idle.eras) for idle in fact.no_effect_when)
    return fact.knob == knob and not dead and not speaks_in_words(fact.to_knob)


def _written(dialect: Framework, values: dict[str, object]) -> tuple[str, str]:
    program = PROGRAMS[dialect.framework]
    if dialect.syntax == "dataclass":
        fields = "".join(f"    {key}: object = {_python(value)}\n" for key, value in values.items())
        base = next(base for mark in dialect.recognised_by for base in mark.python_bases)
        return f"from x import {base}\n\n\n@dataclass\nclass Run({base}):\n{fields}", "run.py"
    if dialect.syntax == "yaml":
        return "".join(_yaml_lines(values)), "run.yaml"
    if not program:
        return _python_file(values), "run.py"
    join = " --{} {}".format if dialect.syntax == "argparse" else " {}={}".format
    return program + "".join(join(key, value) for key, value in values.items()).replace("  ", " ") + "\n", "run.sh"


def _python_file(values: dict[str, object]) -> str:
    """The calls of a notebook: what loads the model, its adapter, and the trainer with its config."""

    def keywords(part: str) -> str:
        own = {k.rpartition(".")[2]: v for k, v in values.items() if k.rpartition(".")[0] == part}
        return ", ".join(f"{key}={_python(value)}" for key, value in own.items() if key.isidentifier())

    return (
        "from unsloth import FastLanguageModel\n"
        f"model = FastLanguageModel.from_pretrained({keywords('from_pretrained')})\n"
        f"model = FastLanguageModel.get_peft_model(model, {keywords('get_peft_model')})\n"
        f"trainer = GRPOTrainer(model=model, args=GRPOConfig({keywords('')}))\n"
    )


def _python(value: object) -> str:
    return repr(value) if not (isinstance(value, str) and value in ("True", "False")) else value


def _yaml_lines(values: dict[str, object], depth: int = 0) -> list[str]:
    """Dotted keys as nested YAML."""
    lines: list[str] = []
    for head in dict.fromkeys(key.split(".")[0] for key in values):
        inner = {key.partition(".")[2]: value for key, value in values.items() if key.startswith(f"{head}.")}
        pad = "  " * depth
        lines += [f"{pad}{head}:\n", *_yaml_lines(inner, depth + 1)] if inner else [f"{pad}{head}: {values[head]}\n"]
    return lines
