"""A short run of the fuzzer: whatever the input, an answer or a refusal, and in time."""

from .fuzz import fuzz


def test_damaged_input_is_read_or_refused_by_every_reader():
    outcome = fuzz(2, seed=3)
    assert [(name, data[:80], why) for name, data, why in outcome.faults] == []
    assert outcome.executions.total() > 150


def test_damaged_launch_files_are_read_or_refused_and_edited_exactly():
    outcome = fuzz(60, names=("shell", "python", "yaml", "json"))
    assert [(name, data[:80], why) for name, data, why in outcome.faults] == []
    assert 0 < outcome.refused.total() < 0.9 * outcome.executions.total()
