"""Prefixes come off, what is left is the message."""

import pytest

from advisor.crash.lines import peel, read_line, segments
from tests.loops import each

MESSAGE = "torch.OutOfMemoryError: CUDA out of memory."
PREFIXES = [
    ("(WorkerDict pid=123, ip=10.0.0.1) ", "WorkerDict pid=123"),
    ("(ActorWorker(reference-0) pid=123, ip=10.0.0.1) ", "ActorWorker(reference-0) pid=123"),
    ("(pid=77) ", "pid=77"),
    ("(raylet, ip=10.0.0.2) ", "raylet"),
    ("[rank3]: ", "rank3"),
    ("[default3]:[rank3]: ", "local rank 3 rank3"),
    ("(main_task pid=9) [rank0]: ", "main_task pid=9 rank0"),
    ("3: ", "task 3"),
    ("[1,3]<stderr>:", "task 3"),
    ("worker-1: ", "worker-1"),
    ("(EngineCore_DP0 pid=553) ERROR 09-17 04:55:13 [core.py:842] ", "EngineCore_DP0 pid=553"),
    ("ERROR 01-28 03:21:01 engine.py:387] ", ""),
    ("[2025-06-11 03:12:11 TP3] ", "TP3"),
    ("[2025-06-11 03:12:11,123] [INFO] [logging.py:107:log_dist] [Rank 0] ", "Rank 0"),
    ("W0622 19:47:13.438884 140373504014144 torch/distributed/elastic/api.py:851] ", ""),
    ("2025-11-12T11:25:13.4961658Z ", ""),
    ("2025-04-25 01:08:59,307 - __main__ - ERROR - ", ""),
    ("E   ", ""),
]


@each(("prefix", "process"), PREFIXES)
def test_a_known_prefix_is_peeled_and_names_the_process(prefix, process):
    line = peel(prefix + MESSAGE)
    assert (line.text, line.process) == (MESSAGE, process)
    assert line.printed == prefix + MESSAGE


def test_colours_nul_bytes_and_broken_utf8_do_not_get_in_the_way():
    raw = b"\x1b[36m(WorkerDict pid=1)\x1b[0m CUDA\x00 out of \xff memory"
    assert read_line(raw, 1).text == "CUDA out of � memory"
    assert read_line(b"^[[36m(WorkerDict pid=1)^[[0m text", 1).process == "WorkerDict pid=1"


def test_repeats_across_the_cluster_are_counted_and_cut_off():
    line = peel("(A pid=1) text [repeated 7x across cluster]")
    assert (line.text, line.repeats) == ("text", 7)


def test_times_are_kept_to_order_several_logs():
    assert peel("[2025-06-11 03:12:11,123] [INFO] text").stamp == "06-11 03:12:11"
    assert peel("W0622 19:47:13.438884 14 api.py:851] text").stamp == "06-22 19:47:13"


def test_the_message_of_a_docker_log_line_is_unwrapped():
    assert read_line(b'{"log":"CUDA out of memory.\\n","stream":"stderr","time":"x"}', 4).text == "CUDA out of memory."


def test_redraws_and_literal_line_breaks_are_lines_of_their_own():
    assert segments(b"10%|#\r20%|##\rTraceback") == [b"10%|#", b"20%|##", b"Traceback"]
    assert len(segments(rb"Traceback (most\n  File x\nError")) == 3


@each("text", ["12 apples", "(not a prefix) x", "[INFO", "2025", "torch.Size([3])", ""])
def test_ordinary_text_is_left_alone(text):
    assert peel(text).text == text


@pytest.mark.parametrize(
    "bar", [" 13%|▎  | 53/400 [00:13<01:17,  4.48it/s]", "Train:  8%|x | 3/9 [00:01<00:02, 1.2s/it, loss=2]"]
)
@pytest.mark.parametrize("glued", ["Killed", "x.sh: line 3: 4711 Killed    python train.py"])
def test_what_is_glued_to_a_progress_bar_is_read_as_a_line_of_its_own(bar, glued):
    line = peel(bar + glued)
    assert (line.text, line.printed) == (glued, bar + glued)
    assert peel(bar).text == bar
