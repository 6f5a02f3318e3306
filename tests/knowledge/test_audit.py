"""What an audit of November 2026 found wrong and is shown nowhere else.

The rest: test_verl_engines.py (H1, H2, H5, H6), test_newest_releases.py (H8 to H10), tests/run/test_newer_than_read.py
(H3) and test_near_frameworks.py (H4), tests/memory/test_megatron.py (H5), tests/script/test_inherited_configs.py (H7).
"""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, open_session

SLIME = (
    "python3 train.py --hf-checkpoint Qwen/Qwen2.5-7B-Instruct --actor-num-nodes 1 --actor-num-gpus-per-node 8 "
    "--colocate --tensor-model-parallel-size 2 --rollout-batch-size 32 --n-samples-per-prompt 8 "
    "--global-batch-size 256 --use-dynamic-batch-size --max-tokens-per-gpu 9216 --rollout-max-response-len 8192 "
    "--rollout-num-gpus-per-engine 2\n"
)


def test_slime_scores_with_the_whole_trainer_awake(tmp_path: Path) -> None:
    """H5: train() wakes weights, gradients and optimizer before compute_log_prob (slime@v0.3.1 actor.py:369-373)."""
    script = tmp_path / "run.sh"
    script.write_text(SLIME)
    state = open_session(SessionRequest(script, gpus="8xH100-80GB", host_ram="1000GB", planned=False))
    held = {cell.owner: cell.expected for one in state.ledger.gpu if one.phase == "log_prob" for cell in one.cells}
    parameters = 7.6e9 / 2
    assert held["gradients"] + held["optimizer"] > (4 + 12 / 4) * parameters * 0.9


def test_areals_own_readme_launch_is_known(tmp_path: Path) -> None:
    """H7: an example's program with --config, the file beside it."""
    config = tmp_path / "examples" / "math" / "gsm8k_grpo.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(
        'cluster: {n_nodes: 1, n_gpus_per_node: 8}\nrollout: {backend: "sglang:d4"}\n'
        'actor: {backend: "fsdp:d4", path: Qwen/Qwen2.5-1.5B-Instruct, mb_spec: {max_tokens_per_mb: 10240}}\n'
        "gconfig: {n_samples: 4, max_new_tokens: 1024}\n"
    )
    script = tmp_path / "run.sh"
    script.write_text("python3 examples/math/gsm8k_rl.py --config examples/math/gsm8k_grpo.yaml scheduler.type=local\n")
    run = open_session(SessionRequest(script, gpus="8xH100-80GB", planned=False)).run
    assert (run.framework, run.number("actor.tokens_per_gpu")) == ("areal", 10240)


def test_a_last_piece_that_just_fits_contradicts_nothing(tmp_path: Path) -> None:
    """H10: 21.50 MiB free and 20.00 MiB asked for, with most of the card in private pools."""
    log = tmp_path / "train.log"
    log.write_text(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 3 has a total capacity of 184.31 "
        "GiB of which 21.50 MiB is free. Including non-PyTorch memory, this process has 184.20 GiB memory in use. Of "
        "the allocated memory 181.80 GiB is allocated by PyTorch, with 71.20 GiB allocated in private pools (e.g., "
        "CUDA Graphs), and 13.63 MiB is reserved by PyTorch but unallocated.\n"
    )
    crash = open_session(SessionRequest(logs=(log,), planned=False)).crash
    assert (crash.verdict, crash.memory) == ("oom", "gpu")
    assert not any("contradicts" in doubt for doubt in map(str, crash.doubts))
