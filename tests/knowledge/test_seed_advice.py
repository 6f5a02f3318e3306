"""Every piece of advice of the five seed documents is findable: as a remedy of its case, or as what does not hold."""

from __future__ import annotations

from advisor.knowledge import load_knowledge
from advisor.report.explain_report import explain_report
from tests.loops import each

ADVICE = [
    ("logic-rl-8", ["lower-train-batch", "lower-samples", "ppo_micro_batch_size", "gradient checkpointing and bf16"]),
    ("orz-24", ["lower-rollout-share", "micro_rollout_batch_size", "four nodes"]),
    ("openrlhf-776", ["change-library-version", "accumulation strategy", "bf16 instead of fp16"]),
    ("easyr1-59", ["optimizer-offload-off", "param-offload-off", "ray-threshold", "accumulation", "AMP", "below 1B"]),
    (
        "swift-3359",
        ["lower-actor-micro-batch", "lower-samples", "lower-rollout-share", "length-filter", "bf16-compute"],
    ),
    ("swift-3359", ["gradient_accumulation_steps", "truncation_strategy"]),
]
GENERAL = [
    "shorten-responses",
    "gradient-checkpointing",
    "sequence-parallel",
    "shorten-engine-length",
    "model-parallel",
]
"""What the documents advise for every run; each can be asked for by its name."""


@each(("case", "pieces"), ADVICE)
def test_each_piece_of_advice_is_told_in_its_case(case: str, pieces: list[str]) -> None:
    knowledge = load_knowledge()
    said = " ".join(explain_report(knowledge, case).split())
    assert not [piece for piece in pieces if piece not in said]


@each("remedy", GENERAL)
def test_general_advice_has_a_remedy(remedy: str) -> None:
    assert any(one.id == remedy for one in load_knowledge().remedies)
