"""Who holds the cards, told safely."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.machine.inventory import Gpu, GpuProcess
from advisor.machine.processes import UNKNOWN_PROCESS, leftovers, readable, unseen_bytes, with_details
from tests.loops import each
from tests.replacing import replace

NO_SUCH_PID = 2**22 + 1
"""Above the kernel's largest pid."""


def card(*processes: GpuProcess, used: int | None = 1000) -> Gpu:
    return Gpu(0, "A100", 40_000, used_bytes=used, processes=processes)


def test_a_process_here_is_described():
    (gpu,) = with_details([card(GpuProcess(os.getpid(), 500))])
    assert gpu.processes is not None
    (process,) = gpu.processes
    assert "python" in process.command
    assert process.user
    assert process.host_rss_bytes is not None
    assert process.host_rss_bytes > 1_000_000
    assert process.started is not None
    assert process.started <= time.time()
    assert process.used_bytes == 500


def test_a_pid_of_another_namespace_is_unknown_but_keeps_its_memory():
    (gpu,) = with_details([card(GpuProcess(NO_SUCH_PID, 500))])
    assert gpu.processes == (GpuProcess(NO_SUCH_PID, 500, command=UNKNOWN_PROCESS),)


def test_one_process_on_two_cards_keeps_each_cards_share():
    pid = os.getpid()
    first, second = with_details([card(GpuProcess(pid, 500)), card(GpuProcess(pid, 700))])
    assert first.processes is not None
    assert second.processes is not None
    assert [first.processes[0].used_bytes, second.processes[0].used_bytes] == [500, 700]
    assert replace(first.processes[0], used_bytes=700) == second.processes[0]


def test_cards_without_a_process_list_stay_as_they_are():
    gpus = (Gpu(0, "A100", 1), card())
    assert with_details(gpus) == gpus


@each(
    ("command", "secret"),
    [
        ("train.py --hf_token abcdef123 --lr 1e-6", "abcdef123"),
        ("train.py --token=abcdef123", "abcdef123"),
        ("train.py --api-key abcdef123", "abcdef123"),
        ("WANDB_API_KEY=abcdef123 python x", "abcdef123"),
        ("python x trainer.password=abcdef123 y", "abcdef123"),
        ("python x hf_AbCdEfGhIjKlMn", "hf_AbCdEfGhIjKlMn"),
        ("python x sk-AbCdEfGhIjKlMn", "sk-AbCdEfGhIjKlMn"),
        ("python x 0123456789abcdef0123456789abcdef01234567", "0123456789abcdef"),
    ],
)
def test_secrets_do_not_reach_the_screen(command: str, secret: str):
    assert secret not in readable(command)
    assert readable(command).startswith(command.split()[0].partition("=")[0])


@pytest.mark.parametrize(
    "command",
    [
        "python -m verl.trainer.main_ppo data.train_batch_size=256 rollout.max_num_batched_tokens=8192",
        "python train.py --max_tokens_per_gpu 16384 --tokenizer Qwen/Qwen2.5-7B data.prompt_key=problem",
    ],
)
def test_ordinary_settings_are_not_redacted(command: str):
    assert readable(command) == command


@given(st.text(max_size=400))
def test_any_command_becomes_one_short_clean_line(command: str):
    shown = readable(command)
    assert len(shown) <= 200
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in shown)


def test_memory_nobody_accounts_for_is_counted():
    assert unseen_bytes(card(GpuProcess(1, 300))) == 700
    assert unseen_bytes(card()) == 1000
    assert unseen_bytes(card(GpuProcess(1, None))) == 1000
    assert unseen_bytes(Gpu(0, "A100", 40_000, used_bytes=1)) == 1, "no list"
    assert unseen_bytes(card(GpuProcess(1, 1200))) == 0


def test_leftovers_are_training_like_and_largest_first():
    small = GpuProcess(10, 100, started=50.0, command="ray::WorkerDict.actor_rollout")
    large = GpuProcess(11, 900, started=40.0, command="/usr/bin/python -m vllm.entrypoints")
    desktop = GpuProcess(12, 50, command="/usr/lib/xorg/Xorg :0")
    found = leftovers([card(small, large, desktop)], now=100.0)
    assert [(left.process.pid, left.age_seconds) for left in found] == [(11, 60.0), (10, 50.0)]


def test_an_unknown_process_and_one_of_hidden_size_count_as_leftovers():
    unknown, hidden = GpuProcess(13, 900, command=UNKNOWN_PROCESS), GpuProcess(14, None, command="python train.py")
    assert {left.process.pid for left in leftovers([card(unknown, hidden)], now=1.0)} == {13, 14}


def test_a_process_that_began_after_the_run_is_no_leftover_of_it():
    old, new = GpuProcess(1, 9, started=10.0, command="python"), GpuProcess(2, 9, started=30.0, command="python")
    assert [left.process.pid for left in leftovers([card(old, new)], now=40.0, run_started=20.0)] == [1]


def test_this_very_process_is_no_leftover():
    assert leftovers([card(GpuProcess(os.getpid(), 5, command="python"))], now=1.0) == ()
