# ruff: noqa: E501  (log lines as they are printed)
"""What libraries count of a run (parameters, trained ones, ranks, RAM) is read, whatever the framework."""

import pytest

from advisor.knowledge import load_knowledge
from advisor.run.shape import shape_by_count
from advisor.units import GIB
from tests.loops import each

from .known import judge


@each(
    ("line", "counts"),
    [
        (
            "trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.0622",
            {"trainable": 4_194_304, "parameters": 6_742_609_920},
        ),
        (
            "07/01/2024 - INFO - llamafactory.model.loader - trainable params: 20971520 || all params: 7262703616 || trainable%: 0.2887",
            {"trainable": 20_971_520, "parameters": 7_262_703_616},
        ),
        (
            "[INFO|trainer.py:2134] 2024-01-01 >>   Number of trainable parameters = 3,407,872",
            {"trainable": 3_407_872},
        ),
        (
            "Trainable parameters = 41,943,040 of 8,072,204,288 (0.52% trained)",
            {"trainable": 41_943_040, "parameters": 8_072_204_288},
        ),
        (
            "[INFO:swift] model_parameter_info: PeftModelForCausalLM: 7635.8016M Params (20.1851M Trainable [0.2643%]), 0.0001M Buffers.",
            {"trainable": 20_185_100, "parameters": 7_635_801_600},
        ),
        ("(WorkerDict pid=77) Qwen2ForCausalLM contains 1.54B parameters", {"parameters": 1_540_000_000}),
        ("Process rank: 7, world size: 8, device: cuda:7, distributed training: True", {"gpus": 8, "cards": 8}),
        ("[2024-01-01] [INFO] [launch.py:163:main] dist_world_size=4", {"gpus": 4}),
        ("Rank: 0 partition count [8, 8] and sizes[(163840000, 1), (33280, 1)]", {"gpus": 8}),
        ("Num processes: 4", {"gpus": 4}),
        ("All distributed processes registered. Starting with 1 processes", {"gpus": 1}),
        ("INFO parallel_state.py:1004] rank 0 in world size 1 is assigned as DP rank 0", {}),
    ],
)
def test_a_count_is_read_from_the_line_of_the_library_that_prints_it(line, counts):
    assert judge(line + "\n").counts == counts


@each(
    ("log", "counts"),
    [
        ("Tried to allocate 2.00 GiB (GPU 1; 39.59 GiB total capacity; 35.54 GiB already allocated)", {"cards": 2}),
        ("Tried to allocate 2.00 GiB (NPU 3; 60.97 GiB total capacity)\n(NPU 0; 60.97 GiB total capacity)", {"cards": 4}),
        ("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity of 79.15 GiB", {"cards": 6}),
        ("[rank3]: Traceback (most recent call last):\n[rank12]: torch.OutOfMemoryError", {"ranks": 13}),
        ("[Rank 6] Watchdog caught collective operation timeout", {"ranks": 7}),
        ("  rank      : 9 (local_rank: 1)\n  exitcode  : -9 (pid: 71)", {"ranks": 10, "cards": 2}),
        ("['python', '-u', 'train.py', '--local_rank=4', '--lr', '1']", {"cards": 5}),
        ("[rank0]: torch.OutOfMemoryError: CUDA out of memory. GPU 0 has a total capacity of 79.15 GiB", {}),
        ("LoRA rank: 64, lora_rank=16, rank = 8", {}),
        ("we train on 8xH100, model Mixtral-8x7B", {"cards": 8}),
        ("4 x A100 80GB, CUDA out of memory. GPU 1 has a total capacity of 79.15 GiB", {"cards": 4}),
    ],
)  # fmt: skip
def test_the_highest_index_in_a_log_tells_how_many_there_are_at_least(log, counts):
    assert judge(log + "\n").counts == counts


def test_the_ram_of_a_node_follows_from_what_is_used_and_its_part():
    log = (
        "CPU Virtual Memory:  used = 30.13 GB, percent = 8.3%\nCPU Virtual Memory:  used = 201.4 GB, percent = 40.0%\n"
    )
    assert judge(log).host_total_bytes == pytest.approx(201.4 * GIB / 0.4)
    assert judge("nothing\n").host_total_bytes is None


def test_a_full_count_names_the_model_and_a_rounded_one_only_where_no_other_is_near():
    models = load_knowledge().models
    for name in ("Llama-2-7B", "Qwen3-32B", "Qwen2.5-32B"):
        fact = next(one for one in models if one.name == name)
        found = shape_by_count(fact.parameters, models)
        assert found is not None
        assert (found.name, found.basis) == (name, "computed")
    rounded = shape_by_count(7_620_000_000, models)  # Qwen2.5-7B and MiMo-7B lie this near to each other
    assert rounded is not None
    assert rounded.basis == "estimated"


def test_bars_of_the_data_set_are_no_steps_of_the_training() -> None:
    bars = "".join(
        f"{name}: 100%|██████████| 61135/61135 [02:02<00:00, 498.31 examples/s]\n"
        for name in ("Tokenizing train dataset", "Map", "Applying chat template to train dataset")
    )
    assert not judge(bars + "  0%|          | 0/3820 [00:00<?, ?it/s]\nCUDA out of memory.\n").steps_done
    assert judge(bars + "Train:   1%|          | 12/4999 [03:10<22:15:01, 16.1s/it]\n").steps_done == 12
    glued = "partition count [2] and sizes[(7411, False)] 1%| | 12/7721\nCUDA out of memory.\n"
    assert judge(bars + glued).steps_done == 12  # pasted without its line breaks


def test_a_bar_without_a_title_counts_inside_the_trainers_loop_alone() -> None:
    """tqdm ends its bar without a line break, so that the traceback is glued to it."""
    bar = "  0%|          | 6/60 [00:22<35:01]\n  2%|▏         | 12/60 [00:44<35:01,  3.57s/it]"
    trace = (
        'Traceback (most recent call last):\n  File "/x/{file}", line 9, in train\n    return inner_training_loop(\n'
    )
    died = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert judge(bar + trace.format(file="transformers/trainer.py") + died).steps_done == 12
    assert judge(bar + trace.format(file="mine/loop.py") + died).steps_done is None


@each(
    ("before", "done"),
    [
        ("{'loss': 1.02, 'learning_rate': 1e-05}\n  3%|3  | 37/1200 [12:33<6:20:11, 19.6s/it]\n", 37),
        ("  3%|3  | 37/1200 [12:33<6:20:11, 19.6s/it]\n{'loss': 1.02}\n100%|##| 63/63 [00:40<00:00, 1.6it/s]\n", 37),
        ("  Total optimization steps = 250\n100%|##| 63/63 [00:40<00:00]\n  1%|1 | 3/250 [00:09<10:00, 2.4s/it]\n", 3),
        ("[INFO] [axolotl.train.train:83] Starting trainer...\n  0%|   | 0/250 [00:00<?, ?it/s]\n", 0),
        ("  1%|1 | 3/250 [00:09<10:00, 2.4s/it]\n", None),  # anybody's
        (" 17%|#7 | 1000/6060 [6:44:48<34:21:44, 24.45s/it]\n", 1000),  # hours of the only one
    ],
)
def test_lines_around_a_bar_without_a_title_prove_that_it_is_the_trainings(before, done):
    assert judge(before + "Killed\n").steps_done == done
