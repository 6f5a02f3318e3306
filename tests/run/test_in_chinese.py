"""What a run refuses, does not read, or leaves open, in Chinese: the same rules break, told with the same values."""

from __future__ import annotations

import re

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Constraint
from advisor.language import CHINESE, speak
from advisor.rules.expression import Expression
from advisor.run.build import RunInputs, build_run
from advisor.run.constraints import broken, no_effect, violations
from advisor.run.dialect import recognise
from advisor.run.topology import too_few
from tests.loops import each
from tests.run.test_binding import gpus, launch, logic_rl
from tests.run.test_refusals import ROLLOUT_TP, verl

_CHINESE = re.compile("[\u4e00-\u9fff]")
TRAIN, MICRO = "data.train_batch_size", "actor_rollout_ref.actor.ppo_micro_batch_size"


def test_a_refused_size_names_the_heads_that_refuse_it() -> None:
    run = verl(actor_rollout_ref__rollout__tensor_model_parallel_size="8")
    speak(CHINESE)
    (said,) = violations(run, [ROLLOUT_TP])
    assert "有 28 个注意力头和 4 个 KV 头" in said


@each(
    ("rule", "said"),
    [
        (f"{TRAIN} % (nodes * {TRAIN} * gpus) == 0", f"{TRAIN} 必须是 nodes * {TRAIN} * gpus 的整数倍"),
        ("value >= 99", f"{TRAIN} 不得小于 99"),
        ("value <= nodes", f"{TRAIN} 不得大于 nodes（1）"),
        ("value >= 99 + nodes", f"{TRAIN} 不得小于 100"),
        (f"value == {MICRO}", f"必须满足：{TRAIN} == {MICRO}"),
    ],
)
def test_a_rule_without_words_of_its_own_is_said_in_chinese(rule: str, said: str) -> None:
    run = logic_rl(64, 16, 16)
    speak(CHINESE)
    assert broken(TRAIN, Constraint(holds=Expression(rule)), run).startswith(said)


def test_a_setting_without_effect_says_how_many_sequences_it_allows() -> None:
    run = logic_rl(8, 32, 64)
    speak(CHINESE)
    again = logic_rl(8, 32, 64)
    for built in (run, again):
        said = no_effect(built, MICRO)
        assert "单次 512 条序列" in said
        assert "只有 64 条" in said
    assert "个数据并行 rank" in again.run.knobs["actor.micro_batch"].note


def test_the_notes_of_a_run_are_chinese() -> None:
    speak(CHINESE)
    knowledge = load_knowledge()
    made = launch("verl.trainer.main_ppo", trainer__n_gpus_per_node="16")
    recognised = recognise(made, "", (), {}, {}, knowledge.frameworks)
    run = build_run(RunInputs(recognised, made, gpus(8), knowledge.models)).run
    assert run.recognised_by == "程序 verl.trainer.main_ppo"
    assert "16 张 GPU" in too_few(run.topology, gpus(8))
    assert len(run.notes) >= 3
    assert all(_CHINESE.search(note) for note in run.notes), run.notes
