"""Code of the user's own that generates is offered fewer rollouts and new tokens among the first steps."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, open_session

SAID = {
    "notebook": "I always run out of CUDA memory when running compute_grpo_loss in the notebook of the book.\n",
    "home-made": "My own rloo_step runs out of memory on my 12 GB card.\n",
}
GIVEN = "My own dpo_loss runs out of CUDA memory on my 12 GB card.\n"


def test_rollouts_and_new_tokens_are_among_the_first_four(tmp_path: Path) -> None:
    first = {}
    for name, text in {**SAID, "given": GIVEN}.items():
        (tmp_path / "page.txt").write_text(text)
        asked = SessionRequest(logs=(tmp_path / "page.txt",), answers={"memory": "gpu", "phase": "actor_update"})
        first[name] = {step.id for step in open_session(asked).plan.steps[:4]}
    levers = {"shorten-responses", "lower-samples"}
    assert [name for name in SAID if not levers <= first[name]] == []
    assert not levers & first["given"]
