"""Settings that a person names in a sentence are read; what is only proposed is not."""

from __future__ import annotations

import time

from advisor.script.pasted import named_in_sentences

READ: dict[str, dict[str, str]] = {
    "I'm at 0.32 gpu_memory_utilization with 4096 max_completion_length on an A6000 (48gb).": {
        "gpu_memory_utilization": "0.32",
        "max_completion_length": "4096",
    },
    "It starts only with minimal values (e.g., `max_seq_length=128`, `num_generations=2`), then OOM.": {
        "max_seq_length": "128",
        "num_generations": "2",
    },
    "我把 rollout.gpu_memory_utilization 设为 0.4, per_device_train_batch_size 为 1,还是OOM": {
        "rollout.gpu_memory_utilization": "0.4",
        "per_device_train_batch_size": "1",
    },
    "My max prompt length is 512, max_length is 1024 ,batch size is 16 ,my card has 40GB": {
        "max prompt length": "512",
        "max_length": "1024",
        "batch size": "16",
    },
    "We train with ZeRO stage 2, a per device batch size of 4 and sequence length 8192.": {
        "zero_stage": "2",
        "per device batch size": "4",
        "sequence length": "8192",
    },
    "使用dpo方式训练全参，deepspeed的zero3  offload": {"zero_stage": "3"},
    "I lowered a.b to 0.3. Should I also set data.max_len=5?": {"a.b": "0.3"},
    "To avoid OOM, set gpu_memory_utilization to 0.4.": {},
    "You can try setting max_split_size_mb=128 to avoid it.": {},
    "I used 3 sample.json files and 2 my_dataset.py, torch_dtype=torch.bfloat16": {},
    "2 batch sizes, batch size 16k, a 7b model of 32 layers": {},
}


def test_what_a_sentence_says_is_in_force_is_read_with_its_place() -> None:
    wrong: dict[str, dict[str, str]] = {}
    for sentence, expected in READ.items():
        data = sentence.encode()
        found = {one.key: data[one.start : one.end].decode() for one in named_in_sentences(data)}
        if found != expected:
            wrong[sentence] = found
    assert wrong == {}


def test_a_long_name_costs_no_time() -> None:
    """Once every underscore doubled it: 26 took minutes."""
    for word in (b"a_" * 20_000, b"hf_aaaa" * 5_000, b"a." * 20_000, b"8 " + b"b_" * 20_000):
        began = time.process_time()
        list(named_in_sentences(b"it ran with " + word))
        assert time.process_time() - began < 1
