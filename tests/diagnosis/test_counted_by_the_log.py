"""A log without a script tells model, cards, RAM and method by what its libraries count."""

import pytest

from advisor.session import SessionRequest, open_session
from advisor.units import GIB

COUNTED = """CPU Virtual Memory:  used = 200.0 GB, percent = 40.0%
world size: 4
llamafactory.model.loader - trainable params: {trained:,} || all params: {whole:,} || trainable%: 0.1
Traceback (most recent call last):
  File "/x/llamafactory/src/train.py", line 28, in main
    run_exp()
  File "/x/lib/python3.10/site-packages/transformers/trainer.py", line 3000, in training_step
    loss = self.compute_loss(model, inputs)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.28 GiB. GPU 0 has a total capacity of 39.39 GiB of which
 3.2 GiB is free.
"""


@pytest.mark.parametrize(("trained", "lora"), [(20_971_520, True), (7_615_616_512, False)])
def test_model_cards_ram_and_method_are_those_that_the_log_counts(tmp_path, trained, lora):
    whole = 7_615_616_512 + (trained if lora else 0)
    log = tmp_path / "run.log"
    log.write_text(COUNTED.format(trained=trained, whole=whole))
    state = open_session(SessionRequest(logs=(log,)))
    assert state.run.model is not None
    assert state.run.model.parameters == 7_615_616_512
    assert state.run.trains_adapters is lora
    assert state.situation is not None
    assert state.situation.facts["lora"].value is lora
    assert state.situation.facts["lora"].source == "log"
    assert [len(state.machine.gpus), state.machine.gpu_bytes] == [4, round(39.39 * GIB)]
    assert state.machine.host.total_bytes == 500 * GIB


def test_a_pass_that_the_trainer_prints_and_a_counted_model_name_what_was_asked_for(tmp_path):
    whole, trained = 7_615_616_512 + 20_971_520, 20_971_520
    pass_of_four = "***** Running training *****\n  Instantaneous batch size per device = 4\n"
    log = tmp_path / "run.log"
    log.write_text(pass_of_four + COUNTED.format(trained=trained, whole=whole))
    state = open_session(SessionRequest(logs=(log,)))
    assert state.diagnosis.cause == "logits-too-big"
    changes = {change.key.lstrip("-"): (change.old, change.new) for step in state.plan.steps for change in step.changes}
    assert changes["per_device_train_batch_size"] == ("4", "1")
