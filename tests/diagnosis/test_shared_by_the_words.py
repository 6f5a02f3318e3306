"""How the states are shared is read from a log's own names, a person's words and accelerate's file."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, open_session

OOM = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 39.39 GiB of which 1.00 GiB is free."
)
CLONE = f"UserWarning: Failed to clone() tensor with name _fsdp_wrapped_module.a on rank 0. Error: {OOM}\n"
DS = f'  "stage3_max_live_parameters": 1.0e+09,\n  "steps_per_print": inf\ntorch.OutOfMemoryError: {OOM}\n'
JSON = '{"zero_optimization": {\n"stage": 2,\n"offload_optimizer": {\n"device": "cpu"\n},\n"overlap_comm": true,\n'
FILE = "distributed_type: FSDP\nfsdp_config:\n  fsdp_state_dict_type: SHARDED_STATE_DICT\n  fsdp_version: 2\n"


def steps(
    folder: Path, log: str, script: str = "", gpus: str = "8 A100-40GB", model: str = "8B", **answers: str
) -> list[str]:
    (folder / "a.log").write_text(log)
    (folder / "run.sh").write_text(script)
    logs = (folder / "a.log",) if log else ()
    asked = SessionRequest(folder / "run.sh" if script else None, logs=logs, gpus=gpus, model=model, answers=answers)
    return [step.id for step in open_session(asked).plan.steps]


def test_what_is_on_is_not_offered(tmp_path: Path) -> None:
    saving = {"memory": "gpu", "phase": "checkpoint"}
    rows = {
        "FSDP's names": steps(tmp_path, CLONE, framework="transformers", **saving),
        "words": steps(tmp_path, f"We train with FSDP on all cards and it dies at the save: {OOM}\n", **saving),
        "stage 3 in a log": steps(tmp_path, DS, "stage: sft\ncutoff_len: 8192\n", framework="llamafactory"),
        "accelerate's file": steps(tmp_path, "", FILE, **saving),
    }
    assert not {name: found for name, found in rows.items() if "higher-zero-stage" in found}
    assert {name: found[0] for name, found in rows.items() if name != "stage 3 in a log"} == {
        "FSDP's names": "save-sharded",
        "words": "save-sharded",
        "accelerate's file": "save-in-parts",
    }


def test_what_a_pasted_json_of_deepspeed_offloads_is_not_offered(tmp_path: Path) -> None:
    assert "cpu-optimizer" not in steps(tmp_path, "", JSON, memory="gpu")


def test_weights_of_a_run_that_was_not_seen_are_packed_as_its_framework_packs_them(tmp_path: Path) -> None:
    assert "qlora" not in steps(
        tmp_path, f"Unsloth 2025.1.6: Fast Qwen2 patching.\n{OOM}\n", gpus="T4", framework="unsloth"
    )


def test_in_the_second_step_the_moments_lie_beside_the_pass(tmp_path: Path) -> None:
    script = "base_model: Qwen/Qwen2.5-7B\nsequence_len: 16384\nsample_packing: true\ngradient_checkpointing: false\n"
    rows = ("It OOMs on the GPU in the second step of training\n", "训练到第2步显存就OOM了\n")
    told = {"framework": "axolotl", "memory": "gpu", "phase": "actor_update", "first_step": "no"}
    found = [steps(tmp_path, row, script, **told) for row in rows]
    assert not [row for row, ids in zip(rows, found, strict=True) if "empty-after-save" in ids]


def test_packed_bases_and_tables_trained_whole_have_a_step_of_their_own(tmp_path: Path) -> None:
    base = "torchrun --nproc_per_node 8 train_lora.py --lora_r 8 --per_device_train_batch_size 1"
    packed = f"{base} --model_name_or_path Qwen2.5-72B-Instruct-AWQ\n"
    tables = f"{base} --modules_to_save embed_tokens,lm_head\n"
    assert "layers-over-cards" in steps(tmp_path, "", packed, model="Qwen2.5-72B-Instruct-AWQ", memory="gpu")[:1]
    assert "fewer-saved-modules" in steps(tmp_path, "", tables, model="Qwen2.5-7B", memory="gpu")[:4]
