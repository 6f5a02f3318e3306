"""The model that only a log tells: by the lines of libraries, by its configuration, by its parameters."""

from __future__ import annotations

import json
from pathlib import Path

from advisor.session import SessionRequest, open_session
from tests.crash.known import judge

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.53 GiB. GPU 0 has a total capacity of 15.89 GiB.\n"
)
CONFIG = {
    "hidden_size": 2048,
    "intermediate_size": 11008,
    "model_type": "qwen2",
    "num_attention_heads": 16,
    "num_hidden_layers": 30,
    "num_key_value_heads": 2,
    "tie_word_embeddings": True,
    "vocab_size": 151936,
}
CACHE = "/root/.cache/huggingface/hub/models--acme--Own-3B/snapshots/abc"
PRINTED = f"[INFO|x.py:839] 2025-01-01 10:00:00 >> Model config Qwen2Config {json.dumps(CONFIG, indent=2)}\n"
NAMED = [
    ("INFO core.py] Initializing a V1 LLM engine (v0.8.5) with config: model='Qwen/Qwen3-8B', x=1", "Qwen/Qwen3-8B"),
    ("(pid=3) Starting to load model /data/Qwen2.5-7B-Instruct...", "/data/Qwen2.5-7B-Instruct"),
    ("server_args=ServerArgs(model_path='meta-llama/Llama-3.1-8B', tp_size=1)", "meta-llama/Llama-3.1-8B"),
    ("loading configuration file /models/gpt2-large/config.json", "/models/gpt2-large"),
    ("[INFO:swift] Loading the model using local model_dir: /m/Qwen3-4B", "/m/Qwen3-4B"),
    ("loading configuration file /models/gpt2-large/generation_config.json", None),
    ("Downloading gpt2-large for the judge", None),
]


def model_in(folder: Path, log: str, script: str = "") -> tuple[str, float, str] | None:
    (folder / "train.log").write_text(log + OOM)
    (folder / "run.sh").write_text(script)
    asked = SessionRequest(folder / "run.sh" if script else None, logs=(folder / "train.log",), planned=False)
    found = open_session(asked).run.model
    return None if found is None else (found.name, round(found.parameters / 1e9, 2), found.basis)


def test_a_model_is_read_where_a_library_names_it(tmp_path: Path) -> None:
    for line, name in NAMED:
        assert judge(line + "\n").engine_figures.get("model.path") == name, line
    assert model_in(tmp_path, NAMED[0][0] + "\n") == ("Qwen3-8B", 8.19, "computed")


def test_a_printed_configuration_comes_before_the_size_in_a_name(tmp_path: Path) -> None:
    launch = "trl sft --model_name_or_path /m/own-3b --dataset_name d --output_dir o\n"
    loads = f"loading configuration file config.json from cache at {CACHE}/config.json\n"
    assert model_in(tmp_path, "", launch) == ("/m/own-3b", 3.0, "estimated")
    assert model_in(tmp_path, PRINTED, launch) == ("/m/own-3b", 2.62, "computed")
    assert model_in(tmp_path, loads + PRINTED) == ("acme/Own-3B", 2.62, "computed")
    of_another = PRINTED.replace("Model config", "Critic model config")
    assert model_in(tmp_path, of_another, launch) == ("/m/own-3b", 3.0, "estimated")


def test_counted_parameters_come_before_the_size_in_a_name(tmp_path: Path) -> None:
    launch = "trl sft --model_name_or_path /m/own-8b --dataset_name d --output_dir o\n"
    counted = "trainable params: 4,194,304 || all params: 8,034,455,552 || trainable%: 0.05\n"
    assert model_in(tmp_path, counted, launch) == ("Llama-3.1-8B", 8.03, "computed")


def test_what_the_launch_names_stands(tmp_path: Path) -> None:
    launch = "trl sft --model_name_or_path Qwen/Qwen2.5-7B --dataset_name d --output_dir o\n"
    assert model_in(tmp_path, NAMED[0][0] + "\n" + PRINTED, launch) == ("Qwen2.5-7B", 7.62, "computed")
