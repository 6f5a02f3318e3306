"""LoRA under autocast with a sleeping engine, against peaks measured by AgileRL (pull request 635, commit 0151c660)."""

from __future__ import annotations

from tests.loops import each

from .agilerl import A100, GENERATION, L4, TRAINING, fullest, ledger_of

ATTENTION = "q_proj,k_proj,v_proj,o_proj"
QWEN_05, QWEN_15, SMOL, OLMOE = (
    "Qwen/Qwen2.5-0.5B-Instruct",
    "Qwen/Qwen2.5-1.5B-Instruct",
    "HuggingFaceTB/SmolLM2-1.7B-Instruct",
    "allenai/OLMoE-1B-7B-0924-Instruct",
)
# model, card, tokens, rows a pass, samples, rank, share, targets, bytes in training, bytes in generation
ROWS = [
    (QWEN_05, L4, 512, 1, 4, 8, 0.2, "all-linear", 2_517_499_904, 5_543_690_240),
    (QWEN_05, L4, 4096, 8, 4, 64, 0.2, "all-linear", 4_994_236_416, 5_084_413_952),
    (QWEN_15, A100, 512, 8, 16, 64, 0.2, "all-linear", 7_299_727_360, 9_159_901_184),
    (QWEN_15, A100, 2048, 2, 8, 32, 0.2, "all-linear", 6_448_283_648, 8_662_876_160),
    (SMOL, L4, 1024, 4, 8, 16, 0.45, "all-linear", 6_080_561_152, 11_264_720_896),
    (SMOL, L4, 4096, 8, 16, 8, 0.45, "all-linear", 15_008_137_216, 8_999_796_736),
    (OLMOE, A100, 512, 1, 4, 8, 0.4281036, ATTENTION, 15_747_055_616, 19_167_510_528),
    (OLMOE, A100, 4096, 8, 4, 64, 0.5217822, ATTENTION, 22_715_891_712, 22_877_372_416),
]


@each("row", ROWS, ids=lambda row: f"{row[0].split('/')[1]} {row[2:6]}")
def test_measured_peaks_of_both_phases_are_predicted_and_lie_in_the_interval(row: tuple[object, ...]) -> None:
    model, card, tokens, rows, samples, rank, share, targets, training, generation = row
    ledger = ledger_of(
        str(model),
        card,  # type: ignore[arg-type]
        seq_len=tokens,
        micro_batch=rows,
        group_size=samples,
        lora_rank=rank,
        gpu_memory_utilization=share,
        lora_target_modules=targets,
    )
    for phases, measured in ((TRAINING, training), (GENERATION, generation)):
        low, expected, high = fullest(ledger, phases)
        assert isinstance(measured, int)
        assert abs(expected / measured - 1) < 0.08, f"{phases}: {expected / measured - 1:+.1%}"
        assert low <= measured <= high
        assert low > 0.84 * expected
        assert high < 1.31 * expected
