"""A model's name or path becomes a shape: config.json first, then models.yaml, then the size in the name."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.knowledge.schema import ModelFact
from advisor.run.config_file import (
    CONFIG_LIMIT,
    kv_bytes_per_token,
    local_config,
    parameters_of,
    read_config,
    shape_in,
    vision_parameters,
)
from advisor.run.model_read import fuller_name
from advisor.run.shape import find_shape, match_alias, size_in_name
from tests.loops import each
from tests.measured.published import ledger_of
from tests.plain_yaml import plain_yaml
from tests.run.model_configs import decoder

MODELS = msgspec.convert(plain_yaml(Path(__file__).parents[2] / "knowledge" / "models.yaml"), list[ModelFact])
INEXACT = {"Moonlight-16B-A3B": 2e-7}
"""Relative error allowed where the published total holds 1 728 more parameters than the shape explains."""
QWEN_7B = decoder("qwen2", 3584, 28, 28, 4, 18944, 152064, tie_word_embeddings=False)


def nowhere(_: str) -> None:
    return None


@each("fact", MODELS, ids=lambda fact: fact.name)
def test_the_published_count_follows_from_the_shape(fact: ModelFact) -> None:
    allowed = INEXACT.get(fact.name, 0) * fact.parameters
    assert abs(parameters_of(fact) - fact.parameters) <= allowed


def test_every_model_has_a_source_and_an_alias_of_its_own() -> None:
    assert all(fact.source and fact.aliases for fact in MODELS)
    aliases = [alias for fact in MODELS for alias in fact.aliases]
    assert len(aliases) == len(set(aliases))
    assert all(match_alias(alias.replace("*", ""), MODELS) == fact for fact in MODELS for alias in fact.aliases)


@each(
    ("name", "model"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-7B"),
        ("Qwen2.5-7B-Instruct-1M", "Qwen2.5-7B"),
        ("/data/models/Qwen2.5-Math-7B/", "Qwen2.5-7B"),
        ("Qwen2.5-Coder-32B-Instruct", "Qwen2.5-32B"),
        ("deepseek-ai/DeepSeek-V3-0324", "DeepSeek-V3"),
        ("deepseek-v3-671b-bf16", "DeepSeek-V3"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "Qwen2.5-7B"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "DeepSeek-R1-Distill-Qwen-1.5B"),
        ("DeepSeek-R1-Distill-Llama-70B", "Llama-3.1-70B"),
        ("deepseek-ai/DeepSeek-R1", "DeepSeek-V3"),
        ("llama3_70b", "Llama-3.1-70B"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "Llama-3.1-8B"),
        ("Llama 3.2 1B", "Llama-3.2-1B"),
        ("QwQ-32B", "Qwen2.5-32B"),
        ("Qwen3-30B-A3B-Instruct-2507", "Qwen3-30B-A3B"),
        ("microsoft/Phi-4-mini-instruct", "Phi-4-mini"),
        ("microsoft/phi-4", "Phi-4"),
        ("hf-Qwen2_5_7B_Instruct", "Qwen2.5-7B"),
        ("qwen-2.5-7b-instruct", "Qwen2.5-7B"),
        ("pixel-reasoner-Qwen2-5VL-3B-sft", "Qwen2.5-VL-3B"),
        ("Qwen2_5-0_5B-Instruct", "Qwen2.5-0.5B"),
        ("internlm/internlm2_5-1_8b-chat", "InternLM2.5-1.8B"),
        ("openbmb/MiniCPM-o-2_6", "MiniCPM-o-2.6"),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "Qwen3-Coder-480B-A35B"),
        ("Qwen/QVQ-72B-Preview", "Qwen2-VL-72B"),
        ("google/gemma-4-26B-A4B-it", "Gemma-4-26B-A4B (text)"),
        ("Qwen/Qwen2-57B-A14B-Instruct", "Qwen2-57B-A14B"),
        ("lvwerra/gpt2-imdb", "GPT-2"),
        ("distilbert/distilgpt2", "DistilGPT-2"),
        ("EleutherAI/pythia-1b-deduped", "Pythia-1B"),
        ("google/flan-t5-xl", "Flan-T5-xl"),
        ("google/mt5-base", "mT5-base"),
        ("FacebookAI/xlm-roberta-large", "XLM-RoBERTa-large"),
        ("facebook/opt-1.3b", "OPT-1.3B"),
        ("openai/whisper-large-v3", "Whisper-large-v3"),
        ("meta-llama/Llama-3-8B-Instruct", "Llama-3.1-8B"),
        ("checkpoints/Qwen2.5-3B/global_step_40/actor/huggingface", "Qwen2.5-3B"),
        (
            "/home/user/.cache/hub/models--Qwen--Qwen2.5-0.5B/snapshots/060db6499f32faf8b98477b0a26969ef7d8b9987",
            "Qwen2.5-0.5B",
        ),
    ],
)
def test_a_name_finds_the_most_literal_model(name: str, model: str) -> None:
    found = find_shape(name, MODELS, nowhere)
    assert (found.name, found.basis, found.note) == (model, "computed", f"models.yaml: {model}")


@each("fact", [f for f in MODELS if size_in_name(f.name.lower())], ids=lambda fact: fact.name)
def test_the_count_is_of_the_size_that_the_name_tells(fact: ModelFact) -> None:
    said = size_in_name(fact.name.lower()) or 0
    assert 0.75 * said < fact.parameters
    assert fact.parameters - fact.vision_parameters < 1.5 * said


def test_qwen_sizes_do_not_run_into_each_other() -> None:
    sizes = {
        size: find_shape(f"Qwen2.5-{size}-Instruct", MODELS, nowhere) for size in ("3B", "7B", "14B", "32B", "72B")
    }
    assert {size: found and found.name for size, found in sizes.items()} == {s: f"Qwen2.5-{s}" for s in sizes}


def test_an_unknown_name_with_a_size_gives_an_estimate_that_says_so() -> None:
    found = find_shape("acme/SuperReasoner-9B-Chat", MODELS, nowhere)
    assert (found.basis, found.parameters) == ("estimated", 9_000_000_000)
    assert "9.00B" in found.note


def test_a_cousin_of_another_size_is_not_the_model_that_has_its_name() -> None:
    stored = match_alias("me/DeepSeek-R1-0528-BF16", MODELS)  # the type of the file is no other model
    assert stored.name == "DeepSeek-V3"
    found = find_shape("deepseek-v3-16b", MODELS, nowhere)
    assert (found.basis, found.parameters) == ("estimated", 16_000_000_000)


def test_an_estimated_mixture_has_as_many_experts_as_its_size_needs() -> None:
    found = find_shape("some/New-80B-A3B", MODELS, nowhere)
    assert found.basis == "estimated"
    routed = found.layers * found.experts * 3 * found.hidden * found.expert_intermediate
    assert 0.93 < routed / found.parameters < 1


def test_an_estimate_takes_the_proportions_of_its_own_family() -> None:
    qwen, llama = (find_shape(f"my-{family}-8b-sft", MODELS, nowhere) for family in ("qwen", "llama"))
    assert (qwen.vocab, llama.vocab) == (151936, 128256)


@each("name", ["", "   ", "policy", "actor/huggingface", "gpt-4", "distilbert-base", "byt5-base"])
def test_a_name_without_a_size_stays_unknown(name: str) -> None:
    assert find_shape(name, MODELS, nowhere) is None


@each(
    ("name", "size"),
    [
        ("qwen-7b-chat", 7e9),
        ("orz-1p5b", 1.5e9),
        ("glm-4-9b", 9e9),
        ("smol-360m", 3.6e8),
        ("mixtral-8x7b", 47.04e9),
        ("a3b", None),
        ("30b-a3b", 30e9),
        ("v2-4bit", None),
    ],
)
def test_the_size_is_read_from_the_name(name: str, size: float | None) -> None:
    assert size_in_name(name) == (None if size is None else round(size))


def test_a_local_config_wins_over_the_name(tmp_path: Path) -> None:
    folder = tmp_path / "Qwen2.5-0.5B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(QWEN_7B))
    found = find_shape(str(folder), MODELS)
    assert (found.parameters, found.head_dim) == (7_615_616_512, 128)
    assert found.note.startswith("config.json: ")


def test_a_hub_name_is_found_in_the_cache_that_hf_home_names(tmp_path: Path) -> None:
    snapshot = tmp_path / "hub" / "models--acme--odd" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps(QWEN_7B))
    assert local_config("acme/odd", {"HF_HOME": str(tmp_path)}) == snapshot / "config.json"
    assert local_config("acme/odd", {"HF_HUB_CACHE": str(tmp_path / "hub")}) == snapshot / "config.json"
    assert local_config("acme/odd", {"HF_HOME": str(tmp_path / "other")}) is None
    assert local_config("../odd", {"HF_HOME": str(tmp_path)}) is None


def test_vision_models_count_their_tower() -> None:
    kind = {"model_type": "qwen2_5_vl"}
    tower = {**kind, "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "spatial_patch_size": 14}
    assert parameters_of(shape_in({**QWEN_7B, **kind, "vision_config": tower}, "x")) == 8_292_166_656


@each("model", [m for m in MODELS if m.name.startswith("Qwen3-VL")], ids=lambda m: m.name)
def test_the_towers_of_qwen3_vl_follow_from_their_config(model: ModelFact) -> None:
    small = {"depth": 24, "hidden_size": 1024, "intermediate_size": 4096}
    large = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304}
    config = {"model_type": "qwen3_vl", "patch_size": 16, **(small if model.vision_parameters < 5e8 else large)}
    assert vision_parameters(config, model.hidden) == model.vision_parameters


def test_mla_caches_only_the_latent() -> None:
    deepseek = next(fact for fact in MODELS if fact.name == "DeepSeek-V3")
    assert kv_bytes_per_token(deepseek) == 61 * (512 + 64) * 2


@pytest.mark.parametrize("text", ["", "[]", "{", '{"hidden_size": 0}', '{"hidden_size": "x"}', "null", "[" * 100_000])
def test_a_broken_config_falls_back_to_the_name(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "Qwen2.5-7B"
    folder.mkdir()
    (folder / "config.json").write_text(text)
    found = find_shape(str(folder), MODELS)
    assert found.note == "models.yaml: Qwen2.5-7B"


def test_a_huge_config_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(QWEN_7B) + " " * CONFIG_LIMIT)
    assert read_config(file) is None


@given(st.text(max_size=80))
def test_no_name_raises(name: str) -> None:
    found = find_shape(name, MODELS)
    assert found is None or found.parameters > 0


@given(
    st.fixed_dictionaries(
        {key: st.one_of(st.integers(-5, 10**6), st.text(max_size=3), st.none(), st.floats()) for key in QWEN_7B}
    )
)
def test_no_config_raises(config: dict[str, object]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.json"
        file.write_text(json.dumps(config))
        fact = read_config(file)
        assert fact is None or parameters_of(fact) > 0


def test_a_config_with_two_kinds_of_layers_and_towers_has_the_count_of_its_modules() -> None:
    """Gemma 4 E2B: full attention every fifth layer, 20 layers without keys of their own and twice as wide."""
    heads = {"head_dim": 256, "global_head_dim": 512, "num_kv_shared_layers": 20}
    wide = {"use_double_wide_mlp": True, "hidden_size_per_layer_input": 256}
    layers = ["full_attention" if i % 5 == 4 else "sliding_attention" for i in range(35)]
    text = decoder("gemma4_text", 1536, 35, 8, 1, 6144, 262144, layer_types=layers, **heads, **wide)
    config = {
        "model_type": "gemma4",
        "tie_word_embeddings": True,
        "text_config": text,
        "vision_config": {"model_type": "gemma4_vision", "hidden_size": 768},
        "audio_config": {"model_type": "gemma4_audio"},
    }
    fact = shape_in(config, "x")
    assert parameters_of(fact) == 5_104_297_504
    assert kv_bytes_per_token(fact) == 2 * 2 * (12 * 256 + 3 * 512)


def test_a_mixture_with_norms_over_the_whole_width_has_the_published_count() -> None:
    experts = {"num_experts": 64, "num_experts_per_tok": 8}
    config = decoder("olmoe", 2048, 16, 16, 16, 1024, 50304, tie_word_embeddings=False, **experts)
    assert parameters_of(shape_in(config, "x")) == 6_919_161_856


OLDER = {
    "GPT-2-medium": {"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16, "n_inner": None,
                     "n_positions": 1024, "vocab_size": 50257},
    "Pythia-410M": {"model_type": "gpt_neox", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
                    "intermediate_size": 4096, "max_position_embeddings": 2048, "vocab_size": 50304},
    "Falcon-7B": {"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
                  "multi_query": True, "new_decoder_architecture": False, "vocab_size": 65024},
    "T5-3B": {"model_type": "t5", "d_model": 1024, "d_ff": 16384, "d_kv": 128, "num_heads": 32, "num_layers": 24,
              "vocab_size": 32128},
    "Flan-T5-xl": {"model_type": "t5", "d_model": 2048, "d_ff": 5120, "d_kv": 64, "num_heads": 32, "num_layers": 24,
                   "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "vocab_size": 32128},
    "Whisper-small": {"model_type": "whisper", "d_model": 768, "encoder_layers": 12, "decoder_layers": 12,
                      "encoder_attention_heads": 12, "encoder_ffn_dim": 3072, "vocab_size": 51865},
}  # fmt: skip


def test_configs_of_older_kinds_give_the_shapes_that_are_known() -> None:
    by_name, fields = {fact.name: fact for fact in MODELS}, ("hidden", "layers", "cross_layers", "gated", "kv_heads")
    for name, config in OLDER.items():
        found = shape_in(config, "config.json")
        assert found is not None, name
        assert [getattr(found, f) for f in fields] == [getattr(by_name[name], f) for f in fields], name
        assert parameters_of(found) == pytest.approx(by_name[name].parameters, rel=0.03), name


def test_a_token_passes_the_encoder_or_the_decoder() -> None:
    flan, gpt = (find_shape(name, MODELS, nowhere) for name in ("google/flan-t5-large", "openai-community/gpt2-xl"))
    assert (flan.layers, flan.passed, flan.mlp_matrices) == (48, 24, 3)
    assert (gpt.layers, gpt.passed, gpt.mlp_matrices, gpt.context) == (48, 48, 2, 1024)


def test_a_shape_that_nobody_read_is_marked_and_every_other_names_what_was_read() -> None:
    for model in MODELS:
        assert model.remembered == ("as remembered" in model.source), model.name
        assert model.source, model.name


@pytest.mark.parametrize(("model", "told"), [("ByteDance-Seed/Seed-Coder-8B-Instruct", True), ("Qwen/Qwen3-8B", False)])
def test_the_ledger_says_that_a_shape_was_not_read(model: str, told: bool) -> None:
    run = {"framework": "ms-swift", "program": "swift sft", "model": model, "gpus": "8xA100-80GB"}
    ledger = ledger_of({**run, "settings": {"max_length": 2048}})
    assert any("config.json" in each for each in ledger.assumed) == told


@each(
    ("said", "stated", "kept"),
    [
        ("Qwen2.5-coder", "/m/Qwen2.5-Coder-32B-Instruct", "/m/Qwen2.5-Coder-32B-Instruct"),
        ("Qwen2.5-7B", "/m/Qwen2.5-7B-Instruct", "Qwen2.5-7B"),
        ("mine", "/m/Qwen2.5-7B", "mine"),
        ("", "/m/x", "/m/x"),
    ],
)
def test_a_name_without_a_size_is_taken_as_the_launch_goes_on_from_it(said: str, stated: str, kept: str) -> None:
    assert fuller_name(said, stated, MODELS) == kept
