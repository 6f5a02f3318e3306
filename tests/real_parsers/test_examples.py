"""Upstream's examples, where a folder of checkouts is named (CHECKOUTS); and how a label is found, always."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from tests.loops import each
from tests.real_parsers.examples import EXAMPLES, Read, read_examples, right_share
from tests.real_parsers.labels import LABELS, file_words, words_of
from tests.real_parsers.sandbox import started

CHECKOUTS = os.environ.get("CHECKOUTS", "")
ABOUT = yaml.safe_load(EXAMPLES.read_text())


@pytest.mark.skipif(not CHECKOUTS, reason="CHECKOUTS names no folder of checkouts (MIRROR@REVISION)")
@pytest.mark.parametrize("name", ABOUT)
def test_the_examples_of_a_release_are_what_upstream_says(name: str) -> None:
    for tree in sorted(Path(CHECKOUTS).glob(f"{ABOUT[name]['mirror']}@*")):
        read = [one for one in read_examples(name, ABOUT[name], tree) if isinstance(one, Read)]
        assert not [one.failed for one in read if one.failed]
        assert right_share(read) >= 0.98, [(one.file, one.wrong()) for one in read if one.wrong()]


@each(
    ("name", "program", "words", "method", "backend"),
    [
        ("verl", "verl.trainer.main_ppo", "model_engine=megatron algorithm.adv_estimator=grpo", "grpo", "megatron"),
        ("verl", "verl.trainer.main_ppo", "actor_rollout_ref.actor.strategy=fsdp2", "ppo", "fsdp"),
        ("verl", "verl.trainer.sft_trainer", "engine=automodel", "sft", "unread"),
        (
            "openrlhf",
            "openrlhf.cli.train_ppo_ray",
            "--algo.advantage.estimator reinforce",
            "reinforce_plus_plus",
            "deepspeed",
        ),
        ("ms-swift", "megatron rlhf", "--rlhf_type gkd --lmbda 0", "gkd_on_given_answers", "megatron"),
        ("slime", "train.py", "--loss-type sft_loss", "sft", "megatron"),
        ("roll", "examples/start_sft_pipeline.py", "--config_name x", "sft", "unread"),
    ],
)
def test_a_label_is_read_from_upstreams_own_words(
    name: str, program: str, words: str, method: str, backend: str
) -> None:
    label = LABELS[name](words_of(program, words.split()), "")
    assert (method in label.methods, label.backend) == (True, backend)


def test_what_a_config_inherits_is_overridden_by_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("ppo: {steps: 1}\npolicy: {megatron_cfg: {enabled: false}, model_name: a}\n")
    file = tmp_path / "mine.yaml"
    file.write_text("defaults: base.yaml\npolicy: {megatron_cfg: {enabled: true}}\n")
    words = {"": "", **file_words(file)}
    assert words["policy.model_name"] == "a"
    assert LABELS["nemo-rl"](words, "") == LABELS["nemo-rl"]({**words, "x": ""}, "")
    assert (LABELS["nemo-rl"](words, "").methods, LABELS["nemo-rl"](words, "").backend) == (("ppo",), "megatron")


def test_a_script_that_asks_for_arguments_and_variables_is_given_some(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(
        "set -u\n[ $# -lt 1 ] && { echo 'Usage: run.sh <gpus>'; exit 1; }\n"
        'python3 -m verl.trainer.main_ppo trainer.n_gpus_per_node=$1 actor_rollout_ref.model.path="$MODEL_ROOT/m"\n'
    )
    (command,) = started(script, tmp_path)
    assert command.argv[-2:] == ("trainer.n_gpus_per_node=8", "actor_rollout_ref.model.path=/data/model_root/m")
