"""Messages count wherever they stand: in Chinese sentences, after a launcher's words, without the rest of the line."""

from __future__ import annotations

from advisor.crash.read import read_text
from advisor.knowledge import load_knowledge
from tests.loops import each


@each(
    ("line", "verdict", "memory"),
    [
        ("跑完两个epoch以后就会OOM，大家遇到过吗", "oom", "unknown"),
        ("每次存模型的时候都报OOM错误", "oom", "unknown"),
        ("两张显卡，刚开始训练显存还行，到一半就OOM了", "oom", "gpu"),
        ("预处理数据的时候内存OOM", "oom", "host"),
        ("RAM OOM while loading", "oom", "host"),
        ("VRAM OOM on step 3", "oom", "gpu"),
        ("降低batch以后还是OOM", "oom", "unknown"),
        ("如果再加大batch就会OOM", "unclear", "unknown"),
        ("为了避免OOM，请调小batch", "unclear", "unknown"),
        ("有没有解决OOM的办法", "unclear", "unknown"),
        ("换成LoRA以后没有出现OOM", "unclear", "unknown"),
        ("training exits: return code -9", "unclear", "unknown"),
        ("worker 3 exits with return -7", "unclear", "unknown"),
        ("subprocess exit status -11", "not_oom", "none"),
        ("OutOfResources: out of resource: shared memory", "not_oom", "none"),
        ("it says no available memory for the cache blocks again", "oom", "gpu"),
    ],
)
def test_what_a_line_in_a_sentence_proves(line: str, verdict: str, memory: str) -> None:
    crash = read_text(line, "log", load_knowledge().signatures)
    assert (crash.verdict, crash.memory) == (verdict, memory), crash.signature


@each(
    ("line", "signature"),
    [
        ("exit code -7", "bus-signal"),
        ("exited with return code -9", "killed-9"),
        ("exit code: -11", "segfault"),
        ("return code = -90", ""),
    ],
)
def test_a_negative_code_is_its_signal(line: str, signature: str) -> None:
    assert read_text(line, "log", load_knowledge().signatures).signature == signature


@each(
    ("line", "phase"),
    [
        ("I hit OOM every time the engine wakes up", "weight_sync"),
        ("同步权重到vllm的时候就OOM", "weight_sync"),
        ("OOM occurs during the first evaluation", "validation"),
        ("训练没问题，一到评估显存就爆OOM", "validation"),
        ("CPU OOM while it is saving", "checkpoint"),
        ("保存模型的时候报OOM", "checkpoint"),
        ("got OOM with gradient checkpointing on", "unknown"),
        ("still OOM when I tried to save memory", "unknown"),
        ("OOM, though evaluation runs and saving works", "unknown"),
    ],
)
def test_a_sentence_says_when_it_died(line: str, phase: str) -> None:
    assert read_text(line, "log", load_knowledge().signatures).phase == phase


@each(
    ("text", "verdict", "signature"),
    [
        ("the disk space ran out of memory again", "not_oom", "disk-told"),
        ("硬盘空间不足，训练中断", "not_oom", "disk-told"),
        ("if the disk is full, move the cache", "unclear", ""),
        ("RuntimeError: CUDA driver error: unknown error", "not_oom", "driver-unknown-error"),
        (
            "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
            "not_oom",
            "prompt-too-long",
        ),
    ],
)
def test_what_only_looks_like_a_shortage(text: str, verdict: str, signature: str) -> None:
    crash = read_text(text, "log", load_knowledge().signatures)
    assert (crash.verdict, crash.signature) == (verdict, signature)


def test_a_refused_prompt_does_not_hide_the_shortage_after_it() -> None:
    refused = "The decoder prompt (length 33) is longer than the maximum model length of 32"
    log = f"{refused}\nstep 3\nCUDA out of memory. Tried to allocate 2.00 GiB"
    assert read_text(log, "log", load_knowledge().signatures).verdict == "oom"


@each(
    ("line", "told"),
    [("the job ended with an exception here", "line 1 speaks of a failure"), ("step 3", "neither a crash")],
)
def test_a_failure_in_unknown_words_is_not_called_no_failure(line: str, told: str) -> None:
    assert told in read_text(line, "log", load_knowledge().signatures).unclear_because


def test_a_notebooks_arrow_shows_the_source_of_a_frame() -> None:
    log = """File ~/lib/site-packages/mine/off.py:9, in Off.forward(ctx, x)
      8 def forward(ctx, x):
----> 9     y = x.to("cpu", non_blocking=True)
     10     return y

RuntimeError: CUDA error: out of memory"""
    assert read_text(log, "log", load_knowledge().signatures).frames[-1].text.startswith("y = x.to(")
