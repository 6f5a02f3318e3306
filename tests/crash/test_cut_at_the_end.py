"""A log that breaks off inside a message is read by what is left of it, and never as something else."""

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Signature
from tests.loops import each

from .known import judge

STEPS = "{'loss': 0.71, 'epoch': 0.2}\n  1%|▏         | 24/1752 [01:08<1:22:56,  2.88s/it]"
ONE_LINE = [
    one
    for one in load_knowledge().signatures.signatures
    if one.role == "cause" and one.verdict and "\n" not in one.sample and len(one.sample) >= 60
    if one.id != "torch-1eb"  # the number that tells it from a true shortage is what is cut off
]


def test_a_message_cut_inside_a_word_is_known_by_its_beginning() -> None:
    crash = judge(
        STEPS + "[rank5]:[E602 11:17:52 ProcessGroupNCCL.cpp:632] [Rank 5] Watchdog caught collective operati"
    )
    assert (crash.verdict, crash.memory) == ("not_oom", "none")


def test_a_source_line_among_those_of_other_ranks_names_the_phase() -> None:
    crash = judge(
        '  File "/r/utils/train_utils.py", line 144, in train\n'
        "model_checkpointing.save_model_and_optimizer_sharded(model, rank, train_config)\n"
        '  File "/r/utils/train_utils.py", line 144, in train\n'
    )
    assert (crash.verdict, crash.phase) == ("unclear", "checkpoint")


@each(("end", "phase"), [("", "actor_update"), ("KeyError: 'labels'\n", "unknown")])
def test_a_cut_traceback_below_its_message_is_that_of_the_message(end: str, phase: str) -> None:
    frame = '  File "{}", line 9, in {}\n    {}\n'.format
    below = frame("finetune/own.py", "main", "train(model)") + frame("finetune/own.py", "train", "logits = model(ids)")
    below += '  File "/v/site-packages/torch/nn/modules/module.py", line 1501, in _call_impl\n'
    message = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 12.00 MiB\n"
    crash = judge(f"{message}\nGlobal seed set to 1337\nTraceback (most recent call last):\n{below}{end}")
    assert (crash.memory, crash.phase) == ("gpu", phase)


def test_a_few_words_that_many_messages_have_tell_nothing() -> None:
    assert judge(STEPS + "\nRuntimeError: CUDA").verdict == "unclear"


@each("signature", ONE_LINE, ids=lambda one: one.id)
def test_a_message_cut_in_the_middle_is_never_taken_for_another_verdict(signature: Signature) -> None:
    crash = judge(f"{STEPS}\n{signature.sample[: len(signature.sample) * 2 // 3]}")
    assert crash.verdict in (signature.verdict, "unclear")
