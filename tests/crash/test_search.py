"""The literal search: the same hits however the text arrives."""

from hypothesis import given
from hypothesis import strategies as st

from advisor.crash import patterns
from advisor.crash.lines import ByteWindow
from advisor.crash.patterns import Searcher

LITERALS = [b"f memory", b"KV cache", b"exit", b"\n"]


def hits_of(pieces: list[bytes]) -> list[int]:
    window, found = ByteWindow(), []
    searcher = Searcher(LITERALS)
    for piece in pieces:
        begin = window.size
        window.room(len(piece))[:] = piece
        window.extend(len(piece))
        found += searcher.search(window, begin)
    return found


@given(
    st.lists(
        st.sampled_from([b"out of memory", b"KV cac", b"he", b"exi", b"t ", b"\n", b"x", b"f mem", b"ory"]), min_size=1
    )
)
def test_hits_are_the_same_wherever_the_pieces_are_cut(pieces):
    assert hits_of(pieces) == hits_of([b"".join(pieces)])


def test_a_text_full_of_hits_is_searched_in_small_pieces_with_the_same_result(monkeypatch):
    text = b"out of memory, KV cache " * 400
    whole = hits_of([text, text, text])
    monkeypatch.setattr(patterns, "_DENSE", 10)
    monkeypatch.setattr(patterns, "_PIECE", 7)
    assert hits_of([text, text, text]) == whole
    assert len(whole) == 2 * 3 * 400


def test_hits_come_in_the_order_of_the_log():
    pieces = [b"out of memory" + bytes(i) for i in range(30)]
    assert hits_of(pieces) == sorted(hits_of([b"".join(pieces)]))
