"""Settings that the framework's version does not have, and versions that nobody told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from advisor.knowledge import load_knowledge
from advisor.run.bound import bind_natives
from advisor.run.dialect import Recognised, absent, recognise, told_era
from advisor.run.version_notes import other_name, version_notes
from advisor.script.launch import Launch
from advisor.script.reader import read_script
from tests.loops import each

KNOWLEDGE = load_knowledge()
BY_NAME = {framework.framework: framework for framework in KNOWLEDGE.frameworks}
Recognise = Callable[..., tuple[Launch, Recognised]]
FLAT = (
    "python3 -m openrlhf.cli.train_ppo_ray --pretrain Qwen/Qwen2.5-7B --micro_train_batch_size 4 "
    "--train_batch_size 128 --rollout_batch_size 128 --vllm_gpu_memory_utilization 0.5\n"
)
DOTTED = (
    "python3 -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path Qwen/Qwen2.5-7B --train.micro_batch_size 4 "
    "--vllm.gpu_memory_utilization 0.5\n"
)
VERL = "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B trainer.n_gpus_per_node=8"


@pytest.fixture
def recognised(tmp_path: Path) -> Recognise:
    def read(text: str, libraries: Mapping[str, str] | None = None) -> tuple[Launch, Recognised]:
        file = tmp_path / "run.sh"
        file.write_text(text)
        launch = read_script(file).launches[0]
        return launch, recognise(launch, text, (), {}, libraries or {}, KNOWLEDGE.frameworks)

    return read


def test_flat_options_under_a_version_of_groups_are_told_by_their_new_names(recognised: Recognise) -> None:
    launch, found = recognised(FLAT, {"openrlhf": "0.10.3"})
    assert found.era == "v0.10.2"
    said = "\n".join(version_notes(found, launch))
    assert (
        "micro_train_batch_size is not a setting of OpenRLHF v0.10.2: there it is called train.micro_batch_size."
        in said
    )
    assert "pretrain is not a setting of OpenRLHF v0.10.2: there it is called actor.model_name_or_path." in said


def test_groups_under_an_older_version_are_told_by_their_old_names(recognised: Recognise) -> None:
    launch, found = recognised(DOTTED, {"openrlhf": "0.9.9"})
    said = "\n".join(version_notes(found, launch))
    assert (
        "train.micro_batch_size is not a setting of OpenRLHF v0.9.8: there it is called micro_train_batch_size." in said
    )


def test_without_a_version_the_names_themselves_tell_the_era(recognised: Recognise) -> None:
    for text, era in ((DOTTED, "v0.10.2"), (FLAT + " --flash_attn", None)):
        launch, found = recognised(text)
        assert era is None or found.era == era
        assert not [note for note in version_notes(found, launch) if "is not a setting of" in note]


@pytest.mark.parametrize(
    ("settings", "era"),
    [
        ("actor_rollout_ref.actor.entropy_from_logits_with_chunking=True", "v0.4.1"),
        ("actor_rollout_ref.actor.fsdp_config.grad_offload=True trainer.remove_previous_ckpt_in_save=True", "v0.2"),
        ("actor_rollout_ref.rollout.quantization=fp8", "v0.7"),
        ("ray_kwargs.ray_init.num_cpus=8", "v0.6"),
    ],
)
def test_keys_tell_the_era_and_no_note_is_made(recognised: Recognise, settings: str, era: str) -> None:
    launch, found = recognised(f"{VERL} {settings}\n")
    assert (found.era, found.era_told_by) == (era, "keys")
    assert version_notes(found, launch) == ()


def test_an_era_that_nothing_tells_is_said_to_be_assumed(recognised: Recognise) -> None:
    launch, found = recognised(f"{VERL} actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4\n")
    assert (found.era, found.era_told_by) == ("v0.4", "nothing")
    (note,) = version_notes(found, launch)
    assert "--lib verl=VERSION" in note
    assert "v0.4 is assumed" in note


def test_an_engine_that_only_a_newer_version_runs_with_tells_that_version(recognised: Recognise) -> None:
    _, found = recognised(f"{VERL}\n", {"vllm": "0.12.0"})
    assert (found.era, found.era_told_by) == ("v0.7", "libraries")
    _, old = recognised(f"{VERL}\n", {"vllm": "0.8.5"})
    assert old.era == "v0.4"


def test_eras_with_fewer_strange_keys_come_first() -> None:
    verl = BY_NAME["verl"]
    keys = {"actor_rollout_ref.actor.calculate_entropy", "data.val_batch_size"}
    assert not absent(verl, told_era(verl, None, keys, {})[0], keys)


@each(
    ("framework", "libraries", "era"),
    [
        ("llamafactory", {"transformers": "4.40.0"}, "v0.7"),
        ("llamafactory", {"transformers": "4.44.0", "peft": "0.12.0", "accelerate": "0.30.1"}, "v0.9.0"),
        ("llamafactory", {"transformers": "4.99.0"}, "v0.9.3"),
        ("trl", {"transformers": "4.52.1"}, "v0.19"),
        ("openrlhf", {"transformers": "4.43.3", "vllm": "0.6.0"}, "v0.4"),
        ("axolotl", {"transformers": "4.53.1"}, "v0.11"),
    ],
)
def test_versions_of_what_a_release_requires_bound_the_era(framework: str, libraries: dict[str, str], era: str) -> None:
    assert told_era(BY_NAME[framework], None, set(), libraries)[0] == era


def test_the_flags_of_an_older_trainer_tell_its_time() -> None:
    assert told_era(BY_NAME["trl"], None, {"rloo_k", "sft_model_path"}, {})[0] not in ("v0.22", "v0.23", "v0.28")


def test_a_setting_without_another_name_is_told_by_its_eras(recognised: Recognise) -> None:
    launch, found = recognised(f"{VERL} +actor_rollout_ref.actor.fsdp_config.grad_offload=True\n", {"verl": "0.6.0"})
    (note,) = version_notes(found, launch)
    assert note.endswith("grad_offload is not a setting of verl v0.6: it exists in v0.1-fork to v0.2 only.")


def test_names_are_read_both_ways_and_only_to_settings_of_the_era() -> None:
    trl = BY_NAME["trl"]
    assert other_name(trl, "use_liger_kernel", "v0.19") == "use_liger_loss"
    assert other_name(trl, "use_liger_loss", "v1.0") == "use_liger_kernel"
    assert other_name(trl, "vllm_device", "v1.0") == ""


def test_a_switch_of_the_same_name_tells_no_era_and_is_explained(recognised: Recognise) -> None:
    text = "accelerate launch -m trl.scripts.grpo --vllm_device auto --use_liger_kernel true --max_prompt_length 512\n"
    launch, found = recognised(text)
    assert found.era in ("v0.14", "v0.15", "v0.16", "v0.17")
    assert any("leaves the logits whole" in note for note in version_notes(found, launch))


@pytest.mark.parametrize(
    ("command", "key"), [("swift", "per_device_train_batch_size"), ("megatron", "micro_batch_size")]
)
def test_a_command_reads_its_own_settings_only(recognised: Recognise, command: str, key: str) -> None:
    launch, found = recognised(f"{command} rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B\n", {"ms-swift": "4.0.0"})
    natives = bind_natives(found.framework, found.era, launch.settings, {}, {}, {}, program=launch.program)
    carrier = natives.carrier("actor.micro_batch")
    assert carrier.key == key


def test_files_of_the_traceback_leave_out_the_versions_that_lack_them() -> None:
    def era(*files: str) -> tuple[str, str]:
        paths = [f"/usr/lib/python3.12/dist-packages/verl/{file}" for file in files]
        return told_era(BY_NAME["verl"], None, set(), {}, paths)

    assert era("workers/engine_workers.py") in {(one, "frames") for one in ("v0.7", "v0.7.1", "v0.8", "v0.9", "v0.9.1")}
    assert era("workers/sharding_manager/fsdp_vllm.py")[0] not in ("v0.7", "v0.7.1", "v0.8", "v0.9", "v0.9.1")
    assert era("my/own/file.py") == told_era(BY_NAME["verl"], None, set(), {})
