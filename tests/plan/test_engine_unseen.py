"""A launch that no dialect knows may be any training: an engine's levers stand last until something shows an engine."""

from __future__ import annotations

from advisor.run.recipe import method_named, method_spelled
from tests.loops import each
from tests.plan.planned import Planned

LINE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.47 GiB. GPU 2 has a total capacity of 79.10 GiB "
    "of which 1.66 GiB is free. Of the allocated memory 75.55 GiB is allocated by PyTorch\n"
)
ENGINES = {"lower-rollout-share", "engine-sleep", "state-sleep", "sync-in-pieces", "layered-sync"}


def test_no_engine_is_spoken_of_in_a_launch_whose_settings_are_of_given_answers(planned: Planned) -> None:
    launch = "python tune.py --per_device_train_batch_size 4 --completion_only_loss true --max_length 2800 --my_own 3\n"
    assert not ENGINES & planned(launch, LINE).keys()


def test_where_nothing_tells_an_engine_s_levers_stand_last_and_say_when(planned: Planned) -> None:
    steps = planned("python tune.py --my_batch 4 --my_model x\n", LINE)
    engines = [number for number, name in enumerate(steps) if name in ENGINES]
    assert engines == list(range(len(steps) - len(engines), len(steps)))
    assert all(str(steps[name]["title"]).startswith("Where a rollout engine") for name in ENGINES & steps.keys())


@each(
    ("keys", "method"),
    [
        (("train.per_device_train_batch_size", "lr"), "given"),
        (("per_device_train_batch_size", "num_generations"), "rl"),
        (("algo.kl_coef", "lr"), "rl"),
        (("batch_size", "lr"), ""),
    ],
)
def test_settings_tell_whether_answers_are_generated(keys: tuple[str, ...], method: str) -> None:
    assert method_spelled(keys) == method


@each(
    ("name", "method"),
    [("DPOTrainer", "dpo"), ("MySFTTrainer", "sft"), ("OnlineDPOTrainer", "online_dpo"), ("Trainer", "")],
)
def test_a_class_tells_the_method_as_a_program_does(name: str, method: str) -> None:
    assert method_named(name) == method
