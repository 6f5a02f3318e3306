"""What the crash measured becomes a cell of its own, and stays when settings change."""

from __future__ import annotations

from pathlib import Path

from advisor.crash.evidence import Crash, Evidence
from advisor.memory.amount import in_bytes
from advisor.memory.calibrate import corrected, corrections
from advisor.memory.cells import Cell, Ledger, PhaseSum
from advisor.session import SessionRequest, open_session
from advisor.units import GIB


def ledger(expected: int) -> Ledger:
    def phase(name: str, place: str) -> PhaseSum:
        cell = Cell("weights", in_bytes("made up", expected))  # type: ignore[arg-type]
        return PhaseSum(name, place, (cell,))  # type: ignore[arg-type]

    return Ledger(
        80 * GIB,
        760 * GIB,
        (phase("log_prob", "gpu"), phase("actor_update", "gpu")),
        (phase("log_prob", "host"), phase("actor_update", "host")),
    )


def crash(memory: str, **fields: int | str) -> Crash:
    evidence = Evidence("x", "cause", "train.log", 3, "…", fields=fields)
    return Crash("oom", memory, "actor_update", "x", (evidence,))  # type: ignore[arg-type]


def test_in_use_and_asked_for_minus_the_prediction_is_unexplained_in_the_phase_that_died() -> None:
    before = ledger(50 * GIB)
    found = corrections(before, crash("gpu", total_bytes=80 * GIB, free_bytes=GIB, tried_bytes=4 * GIB))
    after = corrected(before, found)
    assert after.phase("gpu", "actor_update").expected == 83 * GIB  # type: ignore[union-attr]
    assert after.phase("gpu", "log_prob").expected == 50 * GIB  # type: ignore[union-attr]
    assert after.phase("gpu", "actor_update").cells[-1].owner == "unexplained"  # type: ignore[union-attr]


def test_a_crash_without_figures_still_needed_the_whole_card() -> None:
    found = corrections(ledger(50 * GIB), crash("gpu"))
    assert found[0].measured == 80 * GIB


def test_a_message_that_prints_more_free_than_asked_is_not_taken_as_a_measure() -> None:
    found = corrections(ledger(50 * GIB), crash("gpu", total_bytes=80 * GIB, free_bytes=60 * GIB, tried_bytes=GIB))
    assert found[0].measured == 80 * GIB


def test_a_prediction_above_what_was_needed_is_left_alone() -> None:
    assert corrections(ledger(90 * GIB), crash("gpu", total_bytes=80 * GIB, free_bytes=GIB, tried_bytes=GIB)) == ()


def test_what_the_node_held_beyond_the_prediction_is_unexplained_in_every_phase() -> None:
    before = ledger(300 * GIB)
    after = corrected(before, corrections(before, crash("host", node_used_bytes=726 * GIB)))
    assert {s.expected for s in after.host} == {726 * GIB}
    assert {s.expected for s in after.gpu} == {300 * GIB}


def test_nothing_is_corrected_where_nothing_died_of_memory() -> None:
    assert corrections(ledger(GIB), Crash("not_oom", "none", "unknown")) == ()


def test_a_rest_larger_than_a_quarter_of_the_card_makes_the_ledger_an_estimate_and_says_why() -> None:
    before = ledger(17 * GIB)
    after = corrected(before, corrections(before, crash("gpu", total_bytes=80 * GIB, free_bytes=GIB, tried_bytes=GIB)))
    assert (before.basis, after.basis) == ("computed", "estimated")
    assert "63.00 GiB" in after.doubts[0]
    assert "script and log may not be of the same run" in after.doubts[0]


def test_what_other_processes_hold_by_the_message_is_theirs_where_the_run_has_one_process_a_card() -> None:
    fields = {"total_bytes": 80 * GIB, "free_bytes": GIB, "tried_bytes": GIB, "other_process_bytes": 33 * GIB}
    before = ledger(17 * GIB)
    died = corrected(before, corrections(before, crash("gpu", **fields), alone=True)).phase("gpu", "actor_update")
    assert died is not None
    assert (died.of("others"), died.of("unexplained")) == (33 * GIB, 30 * GIB)


def test_the_runs_own_engine_is_said_to_have_kept_its_memory_and_not_doubted_as_well() -> None:
    fields = {"total_bytes": 80 * GIB, "free_bytes": GIB, "tried_bytes": GIB, "other_process_bytes": 40 * GIB}
    engine = {"engine_process_bytes": 40 * GIB, "engine_process": "LLMRayActor pid=7"}
    before = ledger(30 * GIB)
    (doubt,) = corrected(before, corrections(before, crash("gpu", **fields, **engine))).doubts
    assert "rollout engine (LLMRayActor pid=7) still held 40.00 GiB" in doubt
    assert "may not be of the same run" not in doubt
    assert doubt.count("40.00 GiB") == 2  # held, and all of it more than its due: the ledger has no engine here


def test_what_even_the_engine_does_not_explain_is_doubted_less_what_is_of_others() -> None:
    fields = {"total_bytes": 80 * GIB, "free_bytes": GIB, "tried_bytes": GIB, "other_process_bytes": 30 * GIB}
    engine = {"engine_process_bytes": 20 * GIB, "engine_process": "LLMRayActor pid=7"}
    before = ledger(17 * GIB)
    (doubt,) = corrected(before, corrections(before, crash("gpu", **fields, **engine))).doubts
    assert "33.00 GiB of the 80.00 GiB" in doubt


def test_an_ordinary_rest_leaves_the_basis_alone() -> None:
    before = ledger(70 * GIB)
    after = corrected(before, corrections(before, crash("gpu", total_bytes=80 * GIB, free_bytes=GIB, tried_bytes=GIB)))
    assert (after.basis, after.doubts) == ("computed", ())


def test_a_model_that_ran_out_while_it_loaded_is_not_seen_too_large(tmp_path: Path) -> None:
    script, log = tmp_path / "run.yaml", tmp_path / "train.log"
    keys = {"model_name_or_path": "Qwen/Qwen2.5-72B-Instruct", "stage": "sft", "finetuning_type": "lora"}
    keys |= {"template": "qwen", "dataset": "mine", "output_dir": "out", "per_device_train_batch_size": "1"}
    script.write_text("".join(f"{key}: {value}\n" for key, value in keys.items()))
    log.write_text(
        "    new_value = value.to(device)\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 130.00 MiB. GPU 0 has a total "
        "capacity of 79.15 GiB of which 31.40 MiB is free. Of the allocated memory 78.45 GiB is allocated by PyTorch\n"
    )
    state = open_session(SessionRequest(script, (log,), gpus="2xA100-80GB"))
    assert state.diagnosis.cause == "states-too-big"
    assert not any("seen too large" in one for one in (*state.diagnosis.remarks, *state.ledger.doubts))
