"""How each framework meets its worst batch in the first steps: real keys of real versions, in the launch's words."""

from __future__ import annotations

from advisor.knowledge import load_knowledge
from advisor.knowledge.key_space import key_space
from advisor.knowledge.schema import Framework
from advisor.run.natives import any_key
from tests.loops import each
from tests.plan.planned import Planned, out_of_memory
from tests.plan.planned import planned as planned

DIALECTS = [one for one in load_knowledge().frameworks if one.worst_first]
TAKES_MORE = {"nemo-rl"}
"""Frameworks whose overrides add a key with hydra's `+`, which the written trial has."""
OF_THE_TRAINER = {"max_steps", "group_by_length", "train_sampling_strategy"}
"""transformers' TrainingArguments, which the dialects on its Trainer inherit."""


@each("dialect", DIALECTS, ids=lambda one: one.framework)
def test_every_key_of_a_trial_exists_in_the_versions_that_it_speaks_of(dialect: Framework) -> None:
    eras = [era.id for era in dialect.eras]
    space = key_space(dialect.framework)
    for one in dialect.worst_first:
        assert set(one.eras) <= set(eras)
        if space is None:
            continue
        newest = one.eras[0] if one.eras else eras[0]
        known = space.at(newest) | OF_THE_TRAINER
        strangers = {key for key in one.set if not {key, key.rpartition(".")[0]} & known}
        strangers = {key for key in strangers if any_key(space.open, [key]) is None}
        assert not strangers or dialect.framework in TAKES_MORE


def test_a_run_is_told_its_own_settings_for_the_trial(planned: Planned) -> None:
    launch = (
        "accelerate launch --num_processes 8 -m trl.scripts.sft --model_name_or_path Qwen/Qwen2.5-7B "
        "--dataset_name d --per_device_train_batch_size 8 --max_length 8192\n"
    )
    steps = planned(launch, out_of_memory("trl/trainer/sft_trainer.py"), "--lib", "transformers=4.56.0")
    assert "`--group_by_length true --max_steps 2`" in steps["longest-first"]["why"]
    newer = planned(launch, out_of_memory("trl/trainer/sft_trainer.py"), "--lib", "transformers=5.3.0")
    assert "`--train_sampling_strategy group_by_length --max_steps 2`" in newer["longest-first"]["why"]
