"""prime-rl is read from its TOML file, from the command that names it, and by the names of its versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.run.run import Run
from advisor.script.document import EditRequest
from advisor.script.edit import rewrite
from advisor.script.reader import read_script
from advisor.session import SessionRequest, open_session

CONFIG = """\
seq_len = 4096

[deployment]
num_train_gpus = 2
num_infer_gpus = 6

[model]
name = "Qwen/Qwen3-4B-Instruct-2507"

[orchestrator]
batch_size = 512
"""
NAMES = {
    "v0.9": "group_size = 16\n\n[inference.vllm]\ntensor_parallel_size = 2\ngpu_memory_utilization = 0.8\n",
    "v0.7": "group_size = 16\n\n[inference]\ngpu_memory_utilization = 0.8\n\n[inference.parallel]\ntp = 2\n",
    "v0.5": "rollouts_per_example = 16\n\n[inference]\ngpu_memory_utilization = 0.8\n\n[inference.parallel]\ntp = 2\n",
}


def run_of(file: Path) -> Run:
    return open_session(SessionRequest(file, planned=False)).run


@pytest.mark.parametrize("era", NAMES)
def test_a_file_of_each_era_comes_to_the_same_run(tmp_path: Path, era: str) -> None:
    file = tmp_path / "rl.toml"
    file.write_text(CONFIG + NAMES[era])
    run = run_of(file)
    assert (run.framework, run.era, run.algorithm, run.unknown_keys) == ("prime-rl", era, "grpo", ())
    assert (run.topology.actor_gpus, run.topology.rollout_gpus, run.topology.colocated) == (2, 6, False)
    knobs = {name: knob.value for name, knob in run.knobs.items()}
    assert (knobs["actor.tokens_per_gpu"], knobs["rollout.samples_per_prompt"]) == (4096, 16)
    assert (knobs["rollout.memory_share"], knobs["rollout.tensor_parallel"]) == (0.8, 2)
    assert knobs["actor.optimizer_offload"] is (era != "v0.5")


def test_a_command_names_the_file_and_its_kebab_options_win(tmp_path: Path) -> None:
    (tmp_path / "rl.toml").write_text(CONFIG + NAMES["v0.9"])
    script = tmp_path / "run.sh"
    script.write_text("uv run rl @ rl.toml --trainer.model.seq-len 8192\n")
    run = run_of(script)
    assert (run.framework, run.knobs["actor.tokens_per_gpu"].value) == ("prime-rl", 8192)
    (done,) = rewrite(read_script(script), 0, [EditRequest("trainer.model.seq_len", "2048")])
    assert done.new == b"uv run rl @ rl.toml --trainer.model.seq-len 2048\n"


def test_the_file_of_a_part_is_read_below_its_name(tmp_path: Path) -> None:
    (tmp_path / "train.toml").write_text('[model]\nname = "Qwen/Qwen3-8B"\nseq_len = 16384\n')
    script = tmp_path / "run.sh"
    script.write_text("uv run rl --trainer @ train.toml --orchestrator.group-size 8\n")
    run = run_of(script)
    assert run.framework == "prime-rl"
    assert run.model is not None
    assert (run.model.name, run.knobs["actor.tokens_per_gpu"].value) == ("Qwen3-8B", 16384)


@pytest.mark.parametrize(
    ("engines", "cards"),
    [
        ("num_infer_nodes = 1\nnum_infer_replicas = 3\n", 24),
        ("num_infer_replicas = 2\n\n[inference.deployment]\nprefill_nodes_per_replica = 4\n", 80),
        ("", 8),
    ],
)
def test_engine_nodes_count_replicas_and_parts(tmp_path: Path, engines: str, cards: int) -> None:
    file = tmp_path / "rl.toml"
    file.write_text("[orchestrator]\nbatch_size = 8\n\n[deployment]\nnum_train_nodes = 2\n" + engines)
    run = run_of(file)
    assert (run.topology.actor_gpus, run.topology.rollout_gpus) == (16, cards)


@pytest.mark.parametrize(("count", "era"), [("num_gpus", "v0.8"), ("num_train_gpus", "v0.9")])
def test_the_cards_of_given_answers_are_counted_by_the_name_of_each_version(
    tmp_path: Path, count: str, era: str
) -> None:
    file = tmp_path / "sft.toml"
    file.write_text(
        f'[model]\nname = "Qwen/Qwen3-8B"\n\n[data]\nseq_len = 4096\nbatch_size = 64\n\n[deployment]\n{count} = 4\n'
    )
    run = run_of(file)
    assert (run.framework, run.era, run.topology.actor_gpus, run.unknown_keys) == ("prime-rl-sft", era, 4, ())
