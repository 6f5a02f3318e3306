"""Finds the words by which a text speaks of a part that only some runs have: rollouts, an engine, Ray, tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from advisor.regex import regex

Part = Literal["rollouts", "engine", "ray", "pictures", "sound", "classes", "tools", "wsl", "hf", "lightning"]

_WORDS: Mapping[Part, re.Pattern[str]] = {
    "rollouts": regex(
        r"(?i)vllm|sglang|roll_?out|grpo|rloo|(?<![a-z])ppo(?![a-z])|reinforce|policy|reward|generat(?:e_seq|ion_batch)|sleep_mode"
    ),
    "engine": regex(
        r"(?i)vllm|sglang|lmdeploy|tensorrt_llm|roll_?out|sleep_mode|cumem|gpu_memory_utilization|mem_fraction_static"
    ),
    "ray": regex(r"(?<![-\w])(?:[Rr]ay|RAY)(?![-\w])|\b[Rr]aylet\b|\bRAY_[A-Z]|\bRay(?:Task|Actor)?Error\b|ActorDied"),
    "pictures": regex(
        r"(?i)pixel_values|(?:max|min)_pixels|image_(?:grid|token|processor)|vision_(?:tower|model)|modeling_\w*vl\b"
        r"|mm_projector|<(?:image|video)>"
    ),
    # huggingface/transformers@v4.51.0 src/transformers/models: rows of sound, or pictures of one size: no text to cut
    "sound": regex(
        r"WhisperFor|whisper-(?:tiny|base|small|medium|large)|Wav2Vec2|wav2vec2-|HubertFor|WavLMFor|SpeechT5|ForAudioClassification"
        r"|ForImageClassification|ForObjectDetection|ForSemanticSegmentation|ViTFor|vit-(?:base|large)-patch|UNet2DCondition"
    ),
    # processes that agents start on the node; a default that is printed (sandbox_fusion, tool_config_path None) is none
    "tools": regex(
        r"(?i)(?<![a-z])sandbox(?:es)?(?=[-_:=])(?!_fusion)|code_?interpreter|(?:Kernel|Sandbox|Tool)Actor\b|tool_?server"
        r"|tool_config_path['\"]?\s?[:=]\s?['\"]?(?!['\"]|null|none)\w*[./]|verl[-_]tool|(?<![a-z])swe[-_]?(?:bench|agent|gym|smith|rex)"
        r"|(?<![a-z])terminus(?![a-z])|terminal[-_]?bench|(?<![a-z])(?:math_?tir|torl|retool)(?![a-z])|playwright|browsergym|webarena"
        r"|(?<![a-z])(?:libero|robotwin|robosuite|mujoco|maniskill|simpler_?env|alfworld)(?![a-z])|SimpleVLA"
    ),
    "wsl": regex(r"\bWSL2?\b|microsoft-standard-WSL|(?<![\w/])/mnt/[c-z]/"),
    # transformers' Trainer, and what is built on it
    "hf": regex(
        r"TrainingArguments|HfArgumentParser|transformers/trainer|(?<![A-Za-z])(?:trl|TRL|peft_trainer)(?![A-Za-z])|[a-z]Trainer\b|\bTrainer\("
        r"|per_device_train|llamafactory|LLaMA-Factory|axolotl|unsloth|ms-?swift|run_(?:clm|sft|glue|mlm|seq2seq)"
    ),
    "lightning": regex(r"(?m)^\s*(?:import|from) (?:pytorch_)?lightning\b|lightning[/.](?:fabric|pytorch)\b"),
    "classes": regex(
        r"For(?:Sequence|Token|Image|Audio)Classification|ForQuestionAnswering|ForMultipleChoice|SentenceTransformer\b"
    ),
}
"""A text with none of a part's words is of a run without that part, as far as it shows."""


def parts_in(text: str) -> frozenset[Part]:
    """The parts of which the text speaks."""
    return frozenset(part for part, words in _WORDS.items() if words.search(text))
