"""verl's log-probabilities come with the entropy: of padded rows it is not compiled, whatever the loss asks for.

volcengine/verl@v0.6.1 verl/workers/fsdp_workers.py:978, verl/workers/actor/dp_actor.py:80-83, 231.
"""

from __future__ import annotations

import pytest

from tests.loops import each
from tests.measured.published import ledger_of

V, PROMPT, RESPONSE, ROWS = 152064, 512, 1024, 16
ACTOR = "actor_rollout_ref.actor."
SETTINGS = {
    "data.max_prompt_length": PROMPT,
    "data.max_response_length": RESPONSE,
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": ROWS,
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": ROWS,
}


def logits(version: str, phase: str = "log_prob", **more: object) -> float:
    settings = {**SETTINGS, **{ACTOR + name: value for name, value in more.items() if "__" not in name}}
    settings["actor_rollout_ref.model.use_remove_padding"] = more.pop("__unpadded", False)
    run = {"framework": "verl", "model": "Qwen/Qwen2.5-7B", "gpus": "8xA100-80GB", "libraries": {"verl": version}}
    found = ledger_of({**run, "settings": settings}).phase("gpu", phase)  # type: ignore[arg-type]
    assert found is not None
    return found.of("logits") / V


@each(
    ("version", "eager"),
    [("0.3.0", False), ("0.4.0", True), ("0.6.1", True), ("0.7.0", True), ("0.7.1", True), ("0.9.0", True)],
)
def test_scoring_padded_rows_takes_their_entropy_from_0_4_on(version: str, eager: bool) -> None:
    whole, response = ROWS * (PROMPT + RESPONSE), ROWS * (RESPONSE + 1)
    found = logits(version, entropy_coeff=0)
    assert (found == pytest.approx(2 * whole + 14 * response, rel=0.01)) is eager
    assert eager or found < 7 * whole


def test_where_compiling_is_off_the_entropy_of_unpadded_rows_is_eager_too() -> None:
    compiled, eager = (logits("0.6.1", __unpadded=True, use_torch_compile=on) for on in (True, False))
    assert eager > 1.5 * compiled
