"""The names that the files may use for what the code computes. Tests hold these lists against the code's tables."""

from __future__ import annotations

CONDITION_KEYS = frozenset({"fact", "is", "is_not", "at_least", "below", "version", "any", "none_of", "absent", "all"})
"""Comparisons of `when`, `shown_by`, `applies_when`, `proved_by`, `ruled_out_by`."""

BECOMES_RULES = frozenset(
    {
        "as_is",
        "by_era",
        "divide_by_dp",
        "divide_then_times_n",
        "negated",
        "reset",
        "times",
        "times_n_then_divide",
        "when_on",
        "words",
    }
)
MUST_RULES = frozenset(
    {
        "at_least",
        "at_least_key",
        "at_most_key",
        "divides",
        "equal",
        "excludes_key",
        "fixed",
        "fixed_while",
        "heads_divide",
        "must_not_hold",
        "normalised_divides",
        "normalised_equal",
        "not_together",
        "text_only",
    }
)
NO_EFFECT_RULES = frozenset(
    {"always", "any_of", "at_least_batch_per_gpu", "key_is", "key_is_not", "not_zero3", "zero3"}
)
WITH_IT_RULES = frozenset({"keeps_product", "needs", "same_difference"})
TOPOLOGY_RULES = frozenset(
    {"allocations", "device_lists", "nodes_times_gpus", "processes", "role_groups", "role_groups_of_gpus"}
)
VALUE_RULES = frozenset({"library_version", "lower", "no_higher", "raise", "sequence_tokens", "set"})

FACTS = frozenset(
    {
        "advisory.checked",
        "algorithm",
        "attribution",
        "batch.binds",
        "colocated",
        "cpu_adam",
        "era",
        "frame.gather",
        "frame.engine",
        "frame.logits",
        "framework",
        "gathered_weights.share",
        "first_step",
        "gpu.fragmented",
        "gpu.free_exceeds_request",
        "gpu.grows",
        "gpu.missing_share",
        "gpu.name",
        "engine.free_share",
        "engine.share",
        "frame.logits_cast",
        "gpu.others_bytes",
        "gpu.others_dominate",
        "gpu.others_engine",
        "gpu.others_share",
        "gpu.total_bytes",
        "gpu.tried_bytes",
        "gpus",
        "gradient_checkpointing",
        "host.driver_large",
        "host.grows",
        "host.largest",
        "host.limit_below_ram",
        "host.top_user",
        "host.victim",
        "ledger.batch_share",
        "ledger.engine_share",
        "ledger.gpu_fits",
        "ledger.largest",
        "ledger.logits_larger",
        "ledger.states_share",
        "images",
        "lora",
        "memory",
        "model",
        "model.parameters",
        "nothing_given",
        "phase",
        "samples.bind",
        "shm.roomy",
        "signature",
        "sleep",
        "sleep_copies",
        "sleeping_engine_in_process",
        "states.least_share",
        "steps_done",
        "trainer",
        "verdict",
        "failed",
        "zero3",
    }
)
"""Facts that a condition may ask; besides them knob.KNOB, library.NAME, line.SIGNATURE, advisory.cause.CAUSE and
advisory.clear.CAUSE."""
NAMING_FACTS = frozenset(
    {
        "algorithm",
        "attribution",
        "era",
        "frame.engine",
        "framework",
        "gpu.name",
        "host.largest",
        "host.top_user",
        "ledger.largest",
        "memory",
        "model",
        "phase",
        "signature",
        "trainer",
        "verdict",
    }
)
"""Facts that are a name, never true or false: a condition says what they are to be."""
SITUATION_WORDS = frozenset({"model", "gpu"})
"""What a case's situation may name beside facts, knobs and `version LIBRARY`."""
