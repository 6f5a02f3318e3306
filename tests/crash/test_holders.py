# ruff: noqa: E501  (log lines as they are printed)
"""Who held the card follows from the numbers of one message, also where the driver of a container knows no process."""

import pytest

from advisor.crash.holders import contradicts, held_by_others, is_empty
from advisor.units import GIB

from .known import judge

NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of 80.00 GiB of which {free} is free. "
    "Including non-PyTorch memory, this process has {process} memory in use. Of the allocated memory {allocated} is allocated by PyTorch, "
    "and {idle} is reserved by PyTorch but unallocated."
)
OLD = "{device} out of memory. Tried to allocate 20.00 MiB ({unit} 0; 61.00 GiB total capacity; 4.00 GiB already allocated; 1.00 GiB free; 5.00 GiB reserved in total by PyTorch)"


def fields_of(text):
    return judge(text).evidence[0].fields


def test_of_processes_of_which_none_is_known_to_be_this_one_the_others_hold_all_but_the_largest():
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 742.00 MiB.\nGPU 0 has a total capacity of 32.00 GiB of which 301.06 MiB is free.\nProcess 57 has 20.00 GiB memory in use.\nProcess 91 has 8.00 GiB memory in use.\n"
    fields = fields_of(text)
    assert held_by_others(fields) == 8 * GIB
    assert fields["card_processes"] == "20.00 GiB (pid 57), 8.00 GiB (pid 91)"
    assert "process_bytes" not in fields


@pytest.mark.parametrize(("device", "unit"), [("CUDA", "GPU"), ("NPU", "NPU"), ("HIP", "GPU")])
def test_the_older_wording_leaves_to_others_what_is_neither_free_nor_reserved(device, unit):
    assert held_by_others(fields_of("RuntimeError: " + OLD.format(device=device, unit=unit))) == 55 * GIB


def test_a_process_that_the_driver_does_not_know_holds_what_torch_counts():
    text = NEW.format(tried="5.00 GiB", free="2.00 GiB", process="0 bytes", allocated="48.00 GiB", idle="3.00 GiB")
    assert held_by_others(fields_of(text)) == 27 * GIB


def test_a_process_larger_than_its_pool_is_believed():
    text = NEW.format(tried="5.00 GiB", free="2.00 GiB", process="50.00 GiB", allocated="40.00 GiB", idle="3.00 GiB")
    assert held_by_others(fields_of(text)) == 28 * GIB


def test_without_any_figure_of_this_process_nothing_is_said_of_others():
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 1.00 GiB is free."
    assert held_by_others(fields_of(text)) is None


@pytest.mark.parametrize(
    ("tried", "free", "contradiction", "empty"),
    [
        ("542.00 MiB", "546.94 MiB", False, False),  # the allocator's granularity
        ("2.00 GiB", "4.00 GiB", True, False),
        ("600.00 MiB", "70.00 GiB", True, True),
    ],
)
def test_free_memory_contradicts_only_where_it_is_clearly_more_than_was_asked_for(tried, free, contradiction, empty):
    fields = fields_of(NEW.format(tried=tried, free=free, process="8.00 GiB", allocated="5.00 GiB", idle="1.00 GiB"))
    assert (contradicts(fields), is_empty(fields)) == (contradiction, empty)


def test_what_is_free_beyond_a_limit_of_torch_is_no_contradiction():
    fields = {"tried_bytes": GIB, "free_bytes": 60 * GIB, "total_bytes": 80 * GIB, "allowed_bytes": 16 * GIB}
    assert not contradicts(fields)


def test_what_is_left_by_rounding_is_nobodys():
    text = NEW.format(tried="5.00 GiB", free="2.00 GiB", process="77.99 GiB", allocated="70.00 GiB", idle="3.00 GiB")
    assert held_by_others(fields_of(text)) == 0
