"""Roles that ask for more GPUs than the launch itself reserves are named."""

from __future__ import annotations

from tests.run.test_incomplete_launches import gpus, run_of

AREAL = (
    "python3 -m areal.launcher.local examples/math/gsm8k_rl.py --config g.yaml cluster.n_nodes=1 "
    "cluster.n_gpus_per_node="
)


def test_an_allocation_of_eight_does_not_fit_a_cluster_of_four(tmp_path):
    run = run_of(tmp_path, f"{AREAL}4 allocation_mode=sglang.d4p1t1+d4p1t1", gpus(8))
    assert run.framework == "areal"
    assert any("ask for 8 GPUs" in note and "give 4" in note for note in run.notes)


def test_one_that_fits_is_passed_over(tmp_path):
    run = run_of(tmp_path, f"{AREAL}8 allocation_mode=sglang.d4p1t1+d4p1t1", gpus(8))
    assert not any("ask for" in note for note in run.notes)
