"""Each knob moves its owner in the direction and by the size that a calculation by hand gives."""

from __future__ import annotations

import pytest

from tests.loops import each

from .one_knob import Move, gained, moves


@each("move", list(moves()), ids=lambda move: f"{move.run} {move.knob}={move.value} {move.owner}")
def test_a_knob_moves_its_owner_as_computed_by_hand(move: Move) -> None:
    assert move.by_hand
    assert gained(move) == pytest.approx(move.by_hand, rel=0.005)
