# ruff: noqa: E501  (log lines as they are printed)
"""What torch printed is read whatever stands before it and wherever it was broken."""

from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.units import GIB, parse_size
from tests.heavy import examples

from .known import judge

PREFIXES = [
    "",
    "(WorkerDict pid=123, ip=10.0.0.1) ",
    "[rank3]: ",
    "\x1b[36m(main_task pid=9)\x1b[0m ",
    "[default1]:[rank1]: ",
]
sizes = st.builds(lambda n, unit: f"{n / 100:.2f} {unit}", st.integers(1, 99_999), st.sampled_from(["MiB", "GiB"]))
small = st.builds(lambda n: f"{n} bytes", st.integers(0, 1023))


@st.composite
def messages(draw):
    """(message, printed fields) in the wording of torch 2.2 and later."""
    tried, total, free, mine, other, held, spare = (draw(sizes | small) for _ in range(7))
    gpu = draw(st.integers(0, 15))
    text = f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU {gpu} has a total capacity of {total} "
    text += f"of which {free} is free. Process 42 has {other} memory in use. Including non-PyTorch memory, this process has "
    text += f"{mine} memory in use. Of the allocated memory {held} is allocated by PyTorch, and {spare} is reserved by "
    text += "PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF"
    names = ("tried_bytes", "total_bytes", "free_bytes", "process_bytes", "other_process_bytes", "allocated_bytes")
    fields = dict(zip(names, map(parse_size, (tried, total, free, mine, other, held)), strict=True))
    return text, {**fields, "reserved_unallocated_bytes": parse_size(spare), "gpu": gpu}


def wrapped(text, column):
    return [text[i : i + column] for i in range(0, len(text), column)]


def assert_read(log, fields):
    crash = judge(log)
    assert (crash.verdict, crash.memory) == ("oom", "gpu")
    read = crash.evidence[0].fields
    assert {name: read.get(name) for name in fields} == fields


@settings(max_examples=examples(60), deadline=None)
@given(messages(), st.sampled_from(PREFIXES))
def test_fields_survive_any_prefix(message, prefix):
    text, fields = message
    assert_read(f"start\n{prefix}{text}\nend\n", fields)


@settings(max_examples=examples(80), deadline=None)
@given(messages(), st.sampled_from(PREFIXES), st.integers(24, 240), st.booleans())
def test_fields_survive_wrapping_at_any_column(message, prefix, column, prefix_each):
    text, fields = message
    first, *rest = wrapped(text, column)
    lines = [prefix + first, *((prefix if prefix_each else "") + piece for piece in rest)]
    assert_read("start\n" + "\n".join(lines) + "\nend\n", fields)


@settings(max_examples=examples(40), deadline=None)
@given(messages(), st.integers(60, 240), st.data())
def test_fields_survive_other_ranks_in_between(message, column, data):
    text, fields = message
    lines = []
    for piece in wrapped(text, column):
        lines.append(f"[rank1]: {piece}")
        lines += [f"[rank{data.draw(st.integers(2, 7))}]: step went on"] * data.draw(st.integers(0, 2))
    assert_read("\n".join(lines), fields)


def test_the_old_wording_is_read():
    crash = judge(
        "RuntimeError: CUDA out of memory. Tried to allocate 256.00 MiB (GPU 0; 14.56 GiB total capacity; 13.30 GiB already "
        "allocated; 230.50 MiB free; 13.65 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory"
    )
    fields = crash.evidence[0].fields
    assert fields["tried_bytes"] == 256 * 2**20
    assert fields["total_bytes"] == round(14.56 * GIB)
    assert crash.gpu_total_bytes == round(14.56 * GIB)


def test_a_message_cut_short_keeps_what_it_has():
    fields = (
        judge(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 98.00 MiB. GPU 0 has a total capacity of 21.99 GiB "
            "of which 33.44 MiB is free. Includin"
        )
        .evidence[0]
        .fields
    )
    assert fields["free_bytes"] == parse_size("33.44 MiB")
    assert "process_bytes" not in fields


def test_in_a_container_the_process_that_holds_what_was_allocated_is_this_one():
    fields = (
        judge(
            "CUDA out of memory. Tried to allocate 13.91 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.85 GiB is free. "
            "Process 23444 has 70.25 GiB memory in use. Process 7 has 6.00 GiB memory in use. Of the allocated memory 60.49 GiB "
            "is allocated by PyTorch, and 6.77 GiB is reserved by PyTorch but unallocated."
        )
        .evidence[0]
        .fields
    )
    assert fields["process_bytes"] == parse_size("70.25 GiB")
    assert fields["other_process_bytes"] == 6 * GIB


def test_more_free_than_asked_for_is_still_out_of_memory_and_the_contradiction_is_named():
    crash = judge(
        "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 7 has a total capacity of 79.11 GiB of which 66.43 GiB is free."
    )
    assert crash.verdict == "oom"
    assert crash.evidence[0].fields["contradiction"] == "free exceeds request"


def test_after_the_driver_refused_the_pool_such_a_message_is_not_believed():
    crash = judge(
        "CUDA Error: invalid argument at /workspace/csrc/cumem_allocator.cpp:119\ntorch.OutOfMemoryError: CUDA out of memory. "
        "Tried to allocate 20.00 MiB. GPU 7 has a total capacity of 79.11 GiB of which 66.43 GiB is free."
    )
    assert (crash.verdict, crash.memory, crash.signature) == ("not_oom", "none", "cumem-invalid")
    assert crash.evidence[1].fields["free_bytes"] == parse_size("66.43 GiB")


@settings(max_examples=examples(80), deadline=None)
@given(messages(), st.sampled_from(["\x1b[31m", "\x1b[1;36m", "\x1b[0m"]), st.data())
def test_fields_survive_colours_between_any_two_words(message, colour, data):
    text, fields = message
    words = text.split(" ")
    place = data.draw(st.integers(0, len(words)))
    crash = judge(" ".join([*words[:place], ""]) + colour + " ".join(words[place:]) + "\x1b[0m\n")
    assert crash.evidence[0].fields.items() >= fields.items()
