# ruff: noqa: E501  (log lines as they are printed)
"""The phase by progress is that of the last mark before the death; a mark of what is over, or asleep, names none."""

from tests.loops import each

from .known import judge

DEATH = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
SHARDS = "Loading checkpoint shards: 100%|##########| 3/3 [00:10<00:00]\n"
ASLEEP = "Sleep mode freed 55.12 GiB memory, 20.55 GiB memory is still in use.\n"
TRAINING = "[INFO|trainer.py:2134] >> ***** Running training *****\n"


@each(
    ("log", "phase"),
    [
        (SHARDS, "model_load"),
        (SHARDS + TRAINING, "unknown"),
        (TRAINING + "***** Running Evaluation *****\n  Num examples = 520\n", "validation"),
        (TRAINING + "***** Running Evaluation *****\n{'eval_loss': 1.2, 'epoch': 1.0}\n", "unknown"),
        (ASLEEP, "unknown"),
        (ASLEEP + "It took 1.1 seconds to wake up tags ['weights']\n", "weight_sync"),
        (ASLEEP + "It took 1.1 seconds to wake up tags ['kv_cache']\nFiltered 32 experiences\n", "unknown"),
        (ASLEEP + "wake\nProcessed prompts:  10%|#  | 3/30 [00:01<00:10]\n", "rollout_generate"),
        ("[TP0] Load weight begin. avail mem=78.00 GB\n", "rollout_init"),
        ("[TP0] KV Cache is allocated. #tokens: 400000, K size: 10.68 GB, V size: 10.68 GB\n", "rollout_init"),
        ("Starting to load model Qwen/Qwen2.5-7B...\n", "rollout_init"),
        ("Capturing CUDA graph shapes: 100%|###| 35/35\nINFO core.py:171] init engine (profile, create kv cache, warmup model) took 40.2 seconds\n", "unknown"),
        ("Generating train split: 1200 examples [00:00, 3000 examples/s]\n", "data"),
        ("Configuration saved in out/checkpoint-500/config.json\n", "checkpoint"),
        ("[torch_checkpoint_engine.py:31:load] [Torch] Loading checkpoint from out/global_step500/x.pt...\n", "model_load"),
        ("Adam Optimizer #0 is created with AVX512 arithmetic capability.\n", "model_load"),
    ],
)  # fmt: skip
def test_the_last_mark_decides(log, phase):
    assert judge(log + DEATH).phase == phase


def test_the_trainers_own_words_for_a_pass_are_settings_in_force():
    log = f"{TRAINING}  Instantaneous batch size per device = 4\n  Total train batch size (w. parallel) = 64\n  Gradient Accumulation steps = 8\n"
    assert judge(log).settings == {"per_device_train_batch_size": "4", "gradient_accumulation_steps": "8"}
