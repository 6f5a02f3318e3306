"""Lines that only talk of memory are counted, not looked at one by one; what happens among them is not missed."""

from advisor.crash.match import Throttle
from advisor.crash.scan import scan
from advisor.crash.sources import text_source

from .known import judge
from .test_signatures import CATALOGUE

OOM = "(WorkerDict pid=7) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB."
RESPONSE = "(WorkerDict pid={pid}, ip=10.0.0.{node}) [response] {words} the program ran out of memory at line {i}"
WORDS = ("so", "hence", "we see that", "an error says", "note:")


def responses(count: int) -> str:
    return "".join(
        RESPONSE.format(pid=10_000 + i % 7, node=i % 9, words=" ".join(WORDS[: i % 5 + 1]) * (i % 3 + 1), i=i) + "\n"
        for i in range(count)
    )


def test_every_quoted_line_is_counted_whatever_its_words_are():
    found = scan(text_source(responses(700), "x"), CATALOGUE)
    assert found.counts["quoted-text"] == 700


def test_a_crash_among_quoted_lines_is_found_on_its_line():
    crash = judge(responses(500) + OOM + "\n" + responses(300))
    first = crash.evidence[0]
    assert (crash.verdict, first.signature, first.line) == ("oom", "torch-oom", 501)


def test_a_process_that_only_begins_like_the_others_is_looked_at():
    own = OOM.replace("pid=7", "pid=10001, ip=10.0.0.3")
    assert judge(responses(500) + own).evidence[0].fields["tried_bytes"] == 2.5 * 2**30


def test_a_key_is_exhausted_after_its_share_and_others_are_not():
    throttle = Throttle(allowed=2, most=10)
    throttle.note("a")
    assert not throttle.exhausted("a")
    throttle.note("a")
    assert throttle.exhausted("a")
    assert not throttle.exhausted("b")


def test_a_full_throttle_lets_unknown_keys_through_unless_it_is_sparing():
    generous, sparing = Throttle(1, most=1), Throttle(1, most=1, sparing=True)
    for throttle in (generous, sparing):
        throttle.note("a")
        throttle.note("b")
    assert not generous.exhausted("b", offset=10)
    assert sparing.exhausted("b", offset=10)


def test_a_full_sparing_throttle_allows_one_look_a_stretch_of_the_log():
    throttle = Throttle(1, most=0, sparing=True)
    looks = [offset for offset in range(0, 1 << 20, 1 << 12) if not throttle.exhausted(offset, offset)]
    assert looks == list(range(1 << 16, 1 << 20, 1 << 16))
