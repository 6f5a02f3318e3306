"""What no framework's parser takes is in no step: what tests.real_parsers found, without the frameworks."""

from __future__ import annotations

from pathlib import Path

from advisor.knowledge import load_knowledge
from advisor.run.conversion import conversions, words_of
from advisor.script.document import EditRequest
from advisor.script.edit import rewrite
from advisor.script.reader import read_script
from advisor.session import SessionRequest, open_session
from tests.real_parsers.attempts import LOGS

AXOLOTL = "base_model: Qwen/Qwen2.5-7B\ndatasets:\n  - path: a\nsequence_len: 8192\nsample_packing: true\n"
TUNE = (
    "tokenizer:\n  _component_: torchtune.models.llama3.llama3_tokenizer\n  max_seq_len: 8192\n"
    "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\nbatch_size: 4\ndtype: bf16\n"
)
PRIME = '[model]\nname = "Qwen/Qwen3-4B"\n[orchestrator]\nbatch_size = 64\n[trainer.optim]\nlr = 1e-6\n'
SKYRL = (
    "python -m skyrl.train.entrypoints.main_base trainer.policy.model.path=Qwen/Qwen2.5-7B "
    "trainer.placement.policy_num_gpus_per_node=4 generator.inference_engine.num_engines=4 "
    "trainer.policy_mini_batch_size=32 trainer.train_batch_size=32 trainer.micro_train_batch_size_per_gpu=8\n"
)


def changes(folder: Path, name: str, text: str, phase: str) -> dict[str, dict[str, str | None]]:
    """Step → key → new value, of the plan after a full card."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / "train.log").write_text(LOGS["gpu"])
    asked = SessionRequest(folder / name, (folder / "train.log",), gpus="8xA100-80GB", answers={"phase": phase})
    return {step.id: {change.key: change.new for change in step.changes} for step in open_session(asked).plan.steps}


def test_a_pattern_of_the_knowledge_is_no_value_to_write() -> None:
    wrong = [
        (framework.framework, key, knob)
        for framework in load_knowledge().frameworks
        for key, fact in framework.settings.items()
        for knob, rule in conversions(fact).items()
        if rule is not None and any("*" in word for word in words_of(rule, fact))
    ]
    assert not wrong


def test_axolotl_gets_the_plugin_with_the_loss_and_no_deepspeed_beside_fsdp(tmp_path: Path) -> None:
    steps = changes(tmp_path, "a.yaml", AXOLOTL + "gradient_checkpointing: true\nfsdp_version: 2\n", "actor_update")
    assert steps["fused-loss"] == {
        "liger_fused_linear_cross_entropy": "True",
        "plugins": "[axolotl.integrations.liger.LigerPlugin]",
    }
    written = [str(new) for told in steps.values() for new in told.values()]
    assert not any("deepspeed_configs" in new for new in written)  # axolotl refuses it beside FSDP
    named = changes(tmp_path / "b", "a.yaml", AXOLOTL + "plugins: [a.B]\n", "actor_update")
    assert named["fused-loss"]["plugins"] == "[a.B, axolotl.integrations.liger.LigerPlugin]"


def test_a_recipe_of_one_device_is_told_by_the_name_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "8B_full_single_device.yaml").write_text(TUNE)
    (tmp_path / "8B_full.yaml").write_text(TUNE)
    cards = [
        open_session(SessionRequest(tmp_path / name, gpus="8xA100-80GB", planned=False)).run.topology.actor_gpus
        for name in ("8B_full_single_device.yaml", "8B_full.yaml")
    ]
    assert cards == [1, 8]
    steps = changes(tmp_path, "8B_full_single_device.yaml", TUNE, "actor_update")
    assert not {"tensor_parallel_dim", "fsdp_cpu_offload"} & {key for told in steps.values() for key in told}


def test_prime_rls_engines_are_no_wider_than_their_cards_and_its_optimizers_are_its_own(tmp_path: Path) -> None:
    for phase in ("rollout_init", "actor_update"):
        written = {
            key: new for told in changes(tmp_path, "rl.toml", PRIME, phase).values() for key, new in told.items()
        }
        assert "inference.vllm.tensor_parallel_size" not in written  # one card infers
        assert written.get("trainer.optim.type") != "adamw_8bit"


def test_skyrls_wider_engines_are_fewer_and_a_mini_batch_holds_whole_passes(tmp_path: Path) -> None:
    wider = changes(tmp_path, "run.sh", SKYRL, "rollout_init")["higher-rollout-tp"]
    assert wider["generator.inference_engine.tensor_parallel_size"] == "2"
    assert wider["generator.inference_engine.num_engines"] == "2"
    assert "lower-train-batch" not in changes(tmp_path, "run.sh", SKYRL, "actor_update")  # below its mini-batch


def test_a_list_is_written_as_one_into_a_config(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text('targets:\n  - a\n  - b\nname: "[x]"\n')
    wanted = [EditRequest("plugins", "[a.B, c]"), EditRequest("targets", "[q]"), EditRequest("name", "[y]")]
    (new,) = rewrite(read_script(file), 0, wanted)
    assert new.new.decode() == 'targets:\n  [q]\nname: "[y]"\nplugins: [a.B, c]\n'
