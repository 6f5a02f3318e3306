"""Lists the names that expressions may use: facts of a diagnosis, and what a run knows beside its own settings."""

from __future__ import annotations

COUNTS = {
    "gpus": "actor_gpus",
    "actor_gpus": "actor_gpus",
    "processes": "actor_gpus",
    "dp": "data_parallel",
    "nodes": "nodes",
    "gpus_per_node": "gpus_per_node",
    "tensor_parallel": "tensor_parallel",
    "sequence_parallel": "sequence_parallel",
}
"""Name → the count of the topology."""
RUN_NAMES = frozenset({
    *COUNTS, "algorithm", "config_alone", "era", "machine.gpus", "machine.nodes", "model.heads", "model.kv_heads",
    "model.experts", "model.layers", "model.table_bytes",
    "model.vision", "program", "rolls_out", "samples",
})  # fmt: skip
"""What every expression of a dialect knows beside the dialect's keys, $VARIABLES, --options and the knobs."""
FACTS = frozenset({
    "advisory.checked", "algorithm", "attention.eager", "attention.unsure", "attribution", "attribution.likely",
    "batch.binds", "colocated", "cpu_adam", "dated", "disk.holds", "ended", "engine.apart", "engine.free_share",
    "engine.pool_counted", "engine.pool_sleeps", "engine.share", "earlier.model", "engine.weights_share", "era",
    "eval.due", "eval.first", "eval.metrics", "events", "experts", "failed", "finished", "first_step", "flash_attn",
    "frame.attention", "frame.bucket", "frame.cause", "frame.collects", "frame.data_parallel", "frame.engine",
    "frame.engine_weights", "frame.gather", "frame.gathers_all", "frame.loads", "frame.logits", "frame.logits_cast",
    "frame.makes_states", "frame.matmul", "frame.packs", "frame.pass", "frame.pins", "gpu.idle_bytes",
    "gpu.idle_covers", "frame.resumes", "frame.to_card", "frame.torch_asks", "frame.torch_load", "frame.trains",
    "frame.wakes", "framework", "gathered_weights.share", "fsdp2", "gpu.absurd_request", "gpu.allocated_share",
    "gpu.beyond_card", "gpu.empty", "gpu.fragmented", "gpu.free_exceeds_request", "gpu.grows", "gpu.missing_share",
    "gpu.name", "gpu.others_alike", "gpu.others_aside", "gpu.others_bytes", "gpu.others_dominate", "gpu.others_engine",
    "gpu.others_minor", "gpu.others_most", "gpu.others_share", "gpu.peak_of_pass", "gpu.scattered", "gpu.total_bytes",
    "gpu.tried_bytes", "gpus", "gradient_checkpointing", "has_critic", "has_engine", "host.beyond_states",
    "host.cpu_adam", "host.driver_large", "host.grows", "host.held_by", "host.largest", "host.limit_below_ram",
    "host.off_card", "host.offload_share", "host.one_holds_states", "host.outside_list", "host.roomy",
    "host.states_large", "host.threshold", "host.top_user", "host.victim", "idle_cards", "images", "in_vain",
    "laid_over", "ledger.batch_share", "ledger.engine_share", "ledger.gathered_share", "ledger.gpu_fits",
    "ledger.gpu_room", "ledger.gpu_tight", "ledger.host_fits", "ledger.host_share", "ledger.largest",
    "ledger.left_to_pass", "ledger.logits_larger", "ledger.states_of_phase", "ledger.states_share",
    "ledger.unexplained_share", "log_prob_pass", "logits.least_share", "lora", "memory", "merges", "merges.converts",
    "merges.unsloth", "model", "model.parameters", "model.tied", "modules.saved", "nothing_given", "numa.bound",
    "one_process", "optimizer.card_share", "other.full", "own_launcher", "own_loop", "pass.small", "periodic", "phase",
    "phase.guessed", "pictures.unlimited", "platform", "project", "predicts_words", "prequantised", "helped.allocator",
    "ran", "ran.older", "ran_before", "ran_with", "runs_tools", "ray", "resumed", "resumes", "resumes.only",
    "right_after", "rolls_out", "rows.equal", "rows.short", "rows_of_text", "samples.bind", "saves.sharded",
    "second_step", "sharded", "samples.in_pass", "save.due", "save.first", "scores.logits", "shm.roomy", "signature",
    "sleep", "sleep.left", "served", "sleep.left_grows", "sleep_copies", "sleeping_engine_in_process", "stated.card",
    "stated.holder", "stated.host_holder", "killed.likely", "host.copies_fill", "raised.cut", "updated",
    "states.if_full_share", "states.if_unshared_share", "host.states_share", "states.least_share", "states.unshared",
    "steps_done", "trainer", "trains", "trigger", "vendor", "verdict", "weights.flat", "weights.fp32",
    "weights.least_share", "weights.whole", "wsl", "zero3",
})  # fmt: skip
"""Facts that a condition may ask; besides them answer.QUESTION, knob.KNOB, library.NAME, line.SIGNATURE,
advisory.cause.CAUSE and advisory.clear.CAUSE."""
NAMING_FACTS = frozenset({
    "algorithm", "attribution", "attribution.likely", "disk.holds", "ended", "era", "frame.cause", "frame.engine",
    "framework", "gpu.name", "host.held_by", "host.largest", "host.top_user", "in_vain", "ledger.largest", "memory",
    "model", "other.full", "phase", "platform", "project", "right_after", "signature", "stated.holder",
    "stated.host_holder", "trainer", "trigger", "updated", "vendor", "verdict",
})  # fmt: skip
"""Facts that are a name, never true or false: a condition says what they are to be."""
SITUATION_WORDS = frozenset({"model", "gpu"})
"""What a case's situation may name beside facts, knobs and `version LIBRARY`."""
