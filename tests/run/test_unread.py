"""What the name of a missing file suggests, and what settings leave of it."""

from __future__ import annotations

from advisor.knowledge import load_knowledge
from advisor.run.unread import doubts_of, suggested_by, unread_sharding
from advisor.script.launch import Launch, NotFound
from tests.loops import each

KNOWN = load_knowledge().tree.sharding

NAMES = [
    ("zero2.yaml", "zero2"),
    ("recipes/accelerate_configs/zero3.yaml", "zero3"),
    ("deepspeed_zero1.yaml", "zero1"),
    ("examples/deepspeed/ds_z3_config.json", "zero3"),
    ("ds_z3_offload_config.json", "zero3_offload"),
    ("ds_z2_offload_config.json", "zero2_offload"),
    ("ds_z0_config.json", "zero0"),
    ("zero_stage3_offload.json", "zero3_offload"),
    ("deepspeed_offload_zero3.json", "zero3_offload"),
    ("stage2.json", "zero2"),
    ("ZeRO-3.yaml", "zero3"),
    ("fsdp1.yaml", "fsdp"),
    ("fsdp2_config_qwen35_moe.yaml", "fsdp"),
    ("multi_gpu.yaml", "none"),
    ("ddp.yaml", "none"),
    ("accelerate.yaml", ""),
    ("default_config.yaml", ""),
    ("qwen3_8b.yaml", ""),
    ("zero2hero/config.yaml", ""),
    ("baz3.yaml", ""),
    ("zero_30b.yaml", ""),
    ("deepspeed.json", ""),
]


@each(("file", "choice"), NAMES)
def test_a_name_suggests_a_sharding_or_nothing(file: str, choice: str) -> None:
    found = suggested_by(NotFound("--config_file", file, "accelerate"), KNOWN)
    assert (found.id if found is not None else "") == choice


def test_a_deepspeed_file_cannot_choose_fsdp_and_an_fsdp_file_nothing_else() -> None:
    deepspeed = unread_sharding(launch(NotFound("--deepspeed", "fsdp.json", "deepspeed")), KNOWN, None)
    assert deepspeed.choice == ""
    assert {"fsdp", "none"} & set(deepspeed.choices) == set()
    fsdp = unread_sharding(launch(NotFound("--fsdp_config", "zero3.json", "fsdp")), KNOWN, "unknown")
    assert (fsdp.choice, fsdp.told_by, fsdp.choices) == ("fsdp", "option", ("fsdp",))


def test_of_several_missing_files_the_telling_one_is_taken() -> None:
    files = NotFound("--config_file", "acc.yaml", "accelerate"), NotFound("--deepspeed", "z3.json", "deepspeed")
    found = unread_sharding(launch(*files), KNOWN, None)
    assert (found.file, found.choice, found.told_by) == ("z3.json", "zero3", "name")


def test_a_users_answer_counts_more_than_the_name() -> None:
    file = NotFound("--config_file", "zero2.yaml", "accelerate")
    told = unread_sharding(launch(file), KNOWN, "none")
    assert (told.choice, told.told_by) == ("none", "user")
    unsure = unread_sharding(launch(file), KNOWN, "unknown")
    assert (unsure.choice, unsure.told_by) == ("", "nothing")


def test_a_launch_that_misses_nothing_leaves_no_doubt() -> None:
    assert unread_sharding(launch(), KNOWN, None) is None
    assert unread_sharding(None, KNOWN, None) is None
    assert unread_sharding(launch(NotFound("--config", "run.yaml")), KNOWN, None) is None
    assert doubts_of((), None) == ()
    assert len(doubts_of((NotFound("--config", "run.yaml"),), None)) == 1


def launch(*missing: NotFound) -> Launch:
    return Launch(0, "grpo.py", (), {}, (), not_found=missing)
