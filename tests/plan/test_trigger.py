"""The setting with which it began, by the user's words, is named in the cause, and taking it back leads."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, open_session

LONGER = "PPO on 8 A100s with llama-7B: when I increased `max_new_tokens` to 1024 I got CUDA OOM.\n"
SHARE = "Setting actor_rollout_ref.rollout.gpu_memory_utilization to 0.85 would cause OOM on 8 cards of 80 GB.\n"
ROWS = "LoRA trains fine with max_seq_length 2048, but 4096 runs out of memory on the same A100.\n"


def test_what_it_began_with_is_the_cause_and_is_taken_back_first(tmp_path: Path) -> None:
    said = {
        "longer": (LONGER, {"memory": "gpu"}, "max_new_tokens 1024", "shorten-responses"),
        "share": (SHARE, {"memory": "gpu", "framework": "verl"}, "gpu_memory_utilization 0.85", "lower-rollout-share"),
        "rows": (ROWS, {"memory": "gpu"}, "max_seq_length 4096", "shorten-sequences"),
    }
    wrong = {}
    for name, (text, answers, named, step) in said.items():
        (tmp_path / "run.sh").write_text(text)
        state = open_session(SessionRequest(tmp_path / "run.sh", answers=answers))
        first = state.plan.steps[0]
        if named not in state.diagnosis.explains or first.id != step:
            wrong[name] = state.diagnosis.title, state.diagnosis.explains, first.id, first.changes
    assert wrong == {}
