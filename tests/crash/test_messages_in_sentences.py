"""Messages count wherever they stand: in sentences of Chinese, after a launcher's words, without the rest of the line."""

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
        ("training ended, return code -9", "unclear", "unknown"),
        ("worker 3 exits with return -7", "unclear", "unknown"),
        ("子进程退出码 -11", "not_oom", "none"),
        ("OutOfResources: out of resource: shared memory", "not_oom", "none"),
        ("it says no available memory for the cache blocks again", "oom", "gpu"),
    ],
)
def test_what_a_line_in_a_sentence_proves(line: str, verdict: str, memory: str) -> None:
    crash = read_text(line, "log", load_knowledge().signatures)
    assert (crash.verdict, crash.memory) == (verdict, memory), crash.signature


@each(
    ("line", "signature"),
    [("exit code -7", "bus-signal"), ("returncode=-9", "killed-9"), ("rc: -11", "segfault"), ("return code = -90", "")],
)
def test_a_negative_code_is_its_signal(line: str, signature: str) -> None:
    assert read_text(line, "log", load_knowledge().signatures).signature == signature
