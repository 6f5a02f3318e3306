"""Says what an upstream example is, from the words that bash gives its program and the files that these name.

Nothing here asks a dialect: the words are those of the framework's own documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

Words = Mapping[str, str]
"""Key → value of one launch: command line over config file, without dashes, `-` as `_`."""


class Label(Struct, frozen=True):
    """What upstream says. Several methods where upstream has one word for what we tell apart, or none at all."""

    framework: str
    methods: tuple[str, ...]
    backend: str
    """The trainer; "" where the framework has but one; "unread" for one whose memory nobody predicts."""


def words_of(program: str, argv: Sequence[str]) -> dict[str, str]:
    """The words of a command as keys and values; a flag alone is "true"."""
    words: dict[str, str] = {"": program}
    key = ""
    for word in argv:
        name, equals, value = word.partition("=")
        if word.startswith("--"):
            key = _plain(name)
            words[key] = value if equals else "true"
        elif equals and re.fullmatch(r"[+~]*[A-Za-z_][\w./@-]*", name):
            words[_plain(name)], key = value, ""
        elif key:
            words[key], key = word, ""
    return words


def _plain(key: str) -> str:
    return key.lstrip("-+~").replace("-", "_")


def file_words(file: Path, seen: frozenset[Path] = frozenset()) -> dict[str, str]:
    """A config file and what it names as its `defaults`, flat; the file's own words win."""
    file = file.resolve()
    if file in seen or not file.is_file():
        return {}
    read: Any = yaml.safe_load(file.read_text(errors="replace").replace("\t", " "))
    if not isinstance(read, Mapping):
        return {}
    named = read.get("defaults") or ()
    words: dict[str, str] = {}
    for one in [named] if isinstance(named, str) else named:
        path = str(next(iter(one.values())) if isinstance(one, Mapping) else one)
        for there in (file.parent / path, file.parent / f"{path}.yaml"):
            words |= file_words(there, seen | {file})
    return words | dict(_flat(read, ""))


def _flat(tree: Any, prefix: str) -> Iterator[tuple[str, str]]:
    if not isinstance(tree, Mapping):
        yield prefix.rstrip("."), "null" if tree is None else str(tree)
        return
    for key, value in tree.items():
        yield from _flat(value, f"{prefix}{key}.")


def _on(words: Words, key: str) -> bool:
    return words.get(key, "").lower() == "true"


_READ = ("fsdp", "megatron")
_VERL = {"gae": "ppo"}


def verl(words: Words, name: str) -> Label:
    """`engine` of the SFT trainer, `model_engine` or `strategy` of the others; `adv_estimator` is gae by default."""
    if "sft_trainer" in words[""]:
        engine = words.get("engine", "fsdp").replace("fsdp2", "fsdp")
        return Label("verl-sft", ("sft",), engine if engine in _READ else "unread")
    told = words.get("model_engine", "") or words.get("actor_rollout_ref.actor.strategy", "")
    config = "megatron" if "megatron" in words.get("config_name", "") else "fsdp"
    backend = config if told in ("", "dp") else "fsdp" if told.startswith("fsdp") else told
    estimator = words.get("algorithm.adv_estimator", "gae")
    return Label("verl", (_VERL.get(estimator, estimator),), backend if backend in _READ else "unread")


_OPENRLHF = {
    "gae": "ppo",
    "reinforce": "reinforce_plus_plus",
    "reinforce_baseline": "reinforce_plus_plus_baseline",
    "group_norm": "grpo",
}


def openrlhf(words: Words, name: str) -> Label:
    """The program says the method, `advantage.estimator` that of RL."""
    kind = words[""].rpartition("train_")[2]
    estimator = words.get("algo.advantage.estimator", words.get("advantage_estimator", "gae"))
    method = _OPENRLHF.get(estimator, estimator) if kind.startswith("ppo") else kind
    return Label("openrlhf", (method,), "deepspeed")


def swift(words: Words, name: str) -> Label:
    """`swift rlhf --rlhf_type`, `swift sft --task_type`, `swift pt`; `megatron` before them is the other trainer."""
    command = words[""].split()[-1]
    backend = "megatron" if "megatron" in words[""] else "deepspeed"
    kind = words.get("rlhf_type", "dpo") if command == "rlhf" else command
    task = words.get("task_type", "causal_lm")
    if kind == "gkd" and words.get("lmbda") and float(words["lmbda"]) == 0:
        kind = "gkd_on_given_answers"
    return Label("ms-swift", (kind if task == "causal_lm" or command == "rlhf" else task,), backend)


_TRL = {
    "reward": "rm",
    "gold": "gkd",
    "nashmd": "online_dpo",
    "xpo": "online_dpo",
    "onlinedpo": "online_dpo",
    "asyncgrpo": "grpo",
    "distillation": "on_policy_distillation",
    "diffusiongemmasft": "sft",
}


def trl(words: Words, name: str) -> Label:
    """The trainer that the program builds."""
    built = re.findall(r"(\w+)Trainer\(", words.get("source", "")) or [Path(words[""]).stem.partition("_")[0]]
    return Label("trl", (_TRL.get(built[-1].lower(), built[-1].lower()),), "")


def slime(words: Words, name: str) -> Label:
    """`--loss-type sft_loss` is SFT, else `--advantage-estimator`, grpo by default."""
    estimator = words.get("advantage_estimator", "grpo")
    method = "sft" if words.get("loss_type") == "sft_loss" else estimator
    named = {"gspo": ("gspo", "grpo")}.get(method, (method,))
    return Label("slime", named, words.get("train_backend", "megatron"))


def nemo(words: Words, name: str) -> Label:
    """The section of the method that the file has; `policy.megatron_cfg.enabled` is the trainer."""
    sections = {key.partition(".")[0] for key in words}
    kinds = {"distillation": "on_policy_distillation", "ppo": "ppo", "dpo": "dpo", "rm": "rm", "sft": "sft"}
    named = next((kind for section, kind in kinds.items() if section in sections), "grpo")
    named = "on_policy_distillation" if "on_policy_distillation" in sections and "distill" in name else named
    return Label("nemo-rl", (named,), "megatron" if _on(words, "policy.megatron_cfg.enabled") else "fsdp")


def areal(words: Words, name: str) -> Label:
    """`train_dataset.type`; a critic is PPO; a mean over the group is GRPO, one without the sample itself RLOO."""
    backend = words.get("actor.backend") or words.get("allocation_mode", "").partition("+")[2]
    backend = {"mega": "megatron", "arch": "unread"}.get(backend[:4], "fsdp")
    kind = {"sft": "sft", "rw": "rm", "dpo": "dpo"}.get(words.get("train_dataset.type", ""), "")
    if not kind and any(key.startswith("critic.") for key in words):
        kind = "ppo"
    left_out = _on(words, "actor.reward_norm.mean_leave1out") or _on(words, "actor.adv_norm.mean_leave1out")
    grouped = "group" in (words.get("actor.reward_norm.mean_level"), words.get("actor.adv_norm.mean_level"))
    return Label("areal", (kind or ("rloo" if left_out else "grpo" if grouped else "rl"),), backend)


_ROLL = {"gae": "ppo", "gigpo": "grpo", "reinforce": "reinforce_plus_plus", "step_reinforce": "reinforce_plus_plus"}


def roll(words: Words, name: str) -> Label:
    """The pipeline, and `adv_estimator` of RL (gae by default); the strategy of the role that trains."""
    pipelines = {"onpolicy_distill": "on_policy_distillation", "distill": "distillation", "sft": "sft", "dpo": "dpo"}
    method = next((kind for word, kind in pipelines.items() if f"start_{word}_" in words[""]), "")
    if method and method != "dpo":
        return Label("roll", (method,), "unread")  # roles of their own
    estimator = words.get("adv_estimator", "gae")
    strategy = words.get("actor_train.strategy_args.strategy_name", "")
    backend = next((one for one in ("megatron", "deepspeed", "fsdp") if strategy.startswith(one)), "")
    return Label("roll", (method or _ROLL.get(estimator, estimator),), backend)


def easyr1(words: Words, name: str) -> Label:
    """`algorithm.adv_estimator`, grpo by default."""
    estimator = words.get("algorithm.adv_estimator", "grpo")
    return Label("easyr1", (_VERL.get(estimator, estimator),), "fsdp")


LABELS: dict[str, Callable[[Words, str], Label]] = {
    "verl": verl,
    "openrlhf": openrlhf,
    "ms-swift": swift,
    "trl": trl,
    "slime": slime,
    "nemo-rl": nemo,
    "areal": areal,
    "roll": roll,
    "easyr1": easyr1,
}
