# ruff: noqa: E501  (sentences as people write them)
"""Sizes of a message that somebody shortened, reworded or translated are read by the words beside them."""

from __future__ import annotations

from advisor.crash.holders import worded_sizes
from advisor.units import GIB
from tests.loops import each

from .known import judge


@each(
    ("text", "told"),
    [
        ("CUDA OOM tried allocate 20gb on 24gb card", {"tried": 20, "total": 24}),
        (
            "Tried to allocate 2.5 GiB but only 1.25 GiB is free on the 80 GiB card",
            {"tried": 2.5, "free": 1.25, "total": 80},
        ),
        (
            "1.25 GiB free of 79 GiB, process 4242 has 61.5 GiB in use, needs 3 GiB more",
            {"free": 1.25, "total": 79, "tried": 3},
        ),
        (
            "OutOfMemoryError: Tried to allocate 15.5 GiB (GPU 3; 79.25 GiB total capacity; 60 GiB already allocated)",
            {"tried": 15.5, "total": 79.25, "allocated": 60},
        ),
        (
            "CUDA 显存不足。尝试分配 3.5 GiB。GPU 0 总容量为 23.5 GiB，其中 1.25 GiB 空闲。",
            {"tried": 3.5, "total": 23.5, "free": 1.25},
        ),
        ("需要 2.5 GB，剩余 0.5 GB，总共 24GB 显存", {"tried": 2.5, "free": 0.5, "total": 24}),
        ("tentative d'allocation de 2,25 Gio", {"tried": 2.25}),
        ("dies at 78.5 of 80 GB used on every A100", {"process": 78.5, "total": 80}),
        ("23.5GB/24GB in use, requested 1.25 GB", {"process": 23.5, "total": 24, "tried": 1.25}),
        ("only 512MB / 24GB left", {"free": 0.5, "total": 24}),
        ("78 GiB of the 80 GiB are already allocated", {"allocated": 78, "total": 80}),
        (
            "trying to allocate 9.5G, 79G total, 70G allocated by pytorch, 6G reserved but unallocated",
            {"tried": 9.5, "total": 79, "allocated": 70, "reserved_unallocated": 6},
        ),
        (
            "on an H20 with 96 GB: 85 GB were allocated and it wanted another 14 GB",
            {"total": 96, "allocated": 85, "tried": 14},
        ),
        ("the 4 GB of 2 GB used", {}),  # more than the whole: the words were understood wrongly
        ("loaded in 3 s, version 2.5, 16 samples, 8 GPUs", {}),
    ],
)
def test_each_size_goes_to_the_field_that_its_words_name(text: str, told: dict[str, float]) -> None:
    assert {name.removesuffix("_bytes"): size / GIB for name, size in worded_sizes(text).items()} == told  # type: ignore[operator]


@each(
    ("text", "phase"),
    [
        ("training dies with out of memory: 78.9 of 80 GB used on every A100 when it reaches the optimizer step", "optimizer_step"),
        ("I keep getting CUDA out of memory in my trainer, in the backward pass. 24GB card", "actor_update"),
        ("my RTX 4090 goes out of memory during evaluation, 23.5 GB used", "validation"),
        ("GPU OOM, trying to allocate 9.3G, 79G total", "unknown"),
        ("... of which 1.05 GiB is free. Including non-PyTorch memory, this process has 78.0 GiB memory in use.", "unknown"),
        ("I am trying to run it on 8 A6000 but I'm consistently hitting CUDA out-of-memory (OOM) errors.", "unknown"),
        ("I have encountered CUDA Out of Memory. The first 2 epochs can be trained, but later it does not.", "unknown"),
        ("显存单调上涨，直至OOM，降低seq len只会减慢", "unknown"),
        ("mémoire saturée. CUDA out of memory, tentative d'allocation de 2,34 Gio", "unknown"),
    ],
)  # fmt: skip
def test_a_persons_sentence_is_a_card_that_ran_full(text: str, phase: str) -> None:
    crash = judge(text + "\n")
    assert (crash.verdict, crash.memory, crash.phase) == ("oom", "gpu", phase)


@each(
    "text",
    [
        "crash: out of memory, host RAM 1TB, 8 GPUs",
        "Colab crashed with out of memory after using all available RAM on the T4 runtime",
        "did you get a CUDA OOM?",
        "Warning: you might run into GPU out-of-memory",
        "If you hit CUDA out of memory, lower the batch",
        "If the GPU runs out of memory, reduce the batch size to 3 GB used",
    ],
)
def test_words_of_the_host_or_of_advice_prove_no_card(text: str) -> None:
    assert judge(text + "\n").memory != "gpu"


def test_a_message_broken_behind_its_first_sentence_keeps_its_sizes() -> None:
    torch = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB.\n"
    fields = (
        judge(torch + "GPU has 79.25 GiB total, 6.5 GiB free, 72.5 GiB in use by this process.\n").evidence[0].fields
    )
    told = {name: fields[f"{name}_bytes"] / GIB for name in ("tried", "total", "free")}  # type: ignore[operator]
    assert told == {"tried": 8, "total": 79.25, "free": 6.5}
    assert "total_bytes" not in judge(torch + "| 0  A100  71680MiB / 81920MiB |\n").evidence[0].fields
