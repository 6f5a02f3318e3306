"""Where the command takes nothing beside its config file, new keys go into that file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.told import tell

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.20 GiB.\n"
TOML = '[model]\nname = "Qwen/Qwen3-8B"\n[trainer.model]\nseq_len = 4096\n[orchestrator]\nbatch_size = 8\n'
YAML = (
    "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ndo_train: true\nfinetuning_type: full\ndataset: a\n"
    "template: qwen\ncutoff_len: 4096\noutput_dir: out\nper_device_train_batch_size: 8\nbf16: true\n"
)
AXOLOTL = (
    "base_model: Qwen/Qwen2.5-7B\nsequence_len: 4096\nmicro_batch_size: 8\nadapter: lora\nlora_r: 16\n"
    "plugins:\n  - my.own.Plugin  # kept\nbf16: true\n"
)


@pytest.mark.parametrize(
    ("command", "name", "config", "version", "step", "line"),
    [
        ("uv run rl @ rl.toml", "rl.toml", TOML, "prime-rl=0.5.0", "full-cpu-offload", "fsdp_cpu_offload = true"),
        (
            "llamafactory-cli train c.yaml", "c.yaml", YAML,
            "llamafactory=0.9.2", "activation-offload", "use_unsloth_gc: True",
        ),
        (
            "axolotl train a.yaml", "a.yaml", AXOLOTL,
            "axolotl=0.17.0", "fused-loss", "  - axolotl.integrations.liger.LigerPlugin",
        ),
    ],
)  # fmt: skip
def test_a_new_key_goes_into_the_config_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    command: str, name: str, config: str, version: str, step: str, line: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(config)
    Path("run.sh").write_text(command + "\n")
    Path("train.log").write_text(OOM)
    words = ["fix", "run.sh", "--log", "train.log", "--gpus", "8xH100-80GB", "--lib", version, "--accept", step]
    _, out, err = tell([*words, "--answer", "phase=actor_update", "--diff"], capsys)
    assert f"+{line}" in out, err
    assert f"+{command.replace('.', '.fits.')}" in out, err
