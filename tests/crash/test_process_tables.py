"""Pasted tables of processes tell who held the RAM of a node, or a card."""

from __future__ import annotations

import pytest

from advisor.crash.lines import LogLine
from advisor.crash.log_facts import card_users, ram_users
from advisor.units import GIB
from tests.crash.known import judge

PS = """\
USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND
u 4411 99.0 24.1 91234112 62914560 ? Rl 10:10 5:00 python train.py --x 1
u 4412 99.0 24.1 91234112 63963136 ? Rl 10:10 5:00 python train.py --x 1
u 1 0.0 0.0 100 1000 ? S 10:10 0:00 init
"""
TOP = """\
    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
   7001 root      20   0  120.1g  61.5g   1.1g R  99.9  24.0  10:11.12 python
"""
DMESG = """\
[Tue Mar  4 03:12:09 2025] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
[Tue Mar  4 03:12:09 2025] [  81211]  1000 81211 29811231 11211034 92012345        0             0 python
[Tue Mar  4 03:12:09 2025] [  81212]  1000 81212 29811231 11190334 92012345        0             0 python
"""
SMI = """\
|    0   N/A  N/A      1834      C   python                          61234MiB |
|    0   N/A  N/A      9921      C   ...envs/vllm/bin/python         14010MiB |
|    1   N/A  N/A      9922      C   python                             10MiB |
"""


def lines(text: str) -> list[LogLine]:
    return [LogLine(number, line, line) for number, line in enumerate(text.splitlines(), 1)]


@pytest.mark.parametrize(
    ("text", "held"), [(PS, [(4412, 61), (4411, 60)]), (TOP, [(7001, 61)]), (DMESG, [(81211, 42), (81212, 42)])]
)
def test_processes_that_hold_much_are_told_with_their_sizes(text: str, held: list[tuple[int, int]]) -> None:
    users, rows = ram_users(lines(text))
    assert [(user.pid, user.used_bytes // GIB) for user in users] == held
    assert len(rows) == len(held)


def test_the_card_that_failed_is_told_with_its_processes() -> None:
    assert card_users(lines(SMI), 0) == "59.80 GiB python (pid 1834), 13.68 GiB ...envs/vllm/bin/python (pid 9921)"
    assert card_users(lines(SMI), None) == ""


@pytest.mark.parametrize(("used", "verdict"), [("121", "oom"), ("60", "unclear")])
def test_free_before_a_kill_is_its_witness(used: str, verdict: str) -> None:
    table = "              total        used        free      shared  buff/cache   available\n"
    assert (
        judge(
            f"{table}Mem:            125         {used}           1           0           2           2\nKilled\n"
        ).verdict
        == verdict
    )
