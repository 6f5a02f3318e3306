"""Keys of a backend are proposed only where the launch, the frames or the default choose it."""

from __future__ import annotations

import json

import pytest

from tests.stories.told import tell

FRAMES = {
    "fsdp": '  File "/w/verl/verl/workers/actor/dp_actor.py", line 301, in update_policy\n    loss.backward()\n',
    "megatron": (
        '  File "/w/verl/verl/workers/actor/megatron_actor.py", line 450, in update_policy\n'
        "    metric_micro_batch = self.forward_backward_batch(\n"
    ),
}
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.00 GiB. GPU 0 has a total capacity of 79.11 GiB "
    "of which 5.10 GiB is free. Process 9 has 74.00 GiB memory in use. Of the allocated memory 72.00 GiB is allocated "
    "by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.\n"
)


@pytest.mark.parametrize(("backend", "other"), [("fsdp", ".megatron."), ("megatron", ".fsdp_config.")])
def test_a_log_alone_shows_by_its_frames_whose_keys_count(tmp_path, monkeypatch, capsys, backend, other):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.log").write_text("Traceback (most recent call last):\n" + FRAMES[backend] + OOM)
    words = ["diagnose", "--log", "train.log", "--format", "json", "--gpus", "8xH100-80GB", "--model", "Qwen2.5-32B"]
    code, out, err = tell(words, capsys)
    assert code == 0, err
    keys = [change["key"] for step in json.loads(out)["plan"] for change in step["changes"]]
    assert keys
    assert not [key for key in keys if other in key]
