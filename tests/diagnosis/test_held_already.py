"""What is in force by a frame, a name or a person's list is counted, and proposed no more."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, open_session
from advisor.state import State

OOM = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB (GPU 0; 23.69 GiB total capacity; "
    "22.90 GiB already allocated; 6.06 MiB free; 23.10 GiB reserved in total by PyTorch)\n"
)
BNB = '  File "/lib/bitsandbytes/autograd/_functions.py", line 488, in {call}\n    return {call}(A, B)\n'


def state_of(folder: Path, log: str, launch: str = "", **given: object) -> State:
    (folder / "train.log").write_text(log)
    (folder / "run.sh").write_text(launch)
    script = folder / "run.sh" if launch else None
    return open_session(SessionRequest(script, (folder / "train.log",), **given))  # type: ignore[arg-type]


def steps_of(state: State) -> set[str]:
    return {one.id for one in state.plan.steps}


PACKED = (
    (BNB.format(call="matmul_4bit"), "python own.py --model llama-13b\n", 4),
    (BNB.format(call="matmul"), "python own.py --model llama-13b\n", 8),
    ("", "python sft_qlora.py --model llama-13b\n", 4),
    ("", "torchrun --nproc_per_node 2 own.py --model Qwen2.5-72B-Instruct-AWQ\n", 4),
)
"""Frames, launch, and the bits that they show."""


def test_a_packed_base_is_counted_at_its_bits_and_trains_adapters(tmp_path: Path) -> None:
    for frames, launch, bits in PACKED:
        state = state_of(tmp_path, frames + OOM, launch)
        assert state.run.number("actor.quantized_bits") == bits, (frames, launch)
        wrong = {"lora", "qlora", "higher-zero-stage", "full-cpu-offload", "load-in-parts"}
        assert not steps_of(state) & (wrong | ({"quantize-base"} if bits == 4 else set())), (frames, launch)
        assert "states.if_full_share" not in state.situation.facts


def test_the_launch_names_the_bits_of_the_model_that_the_user_calls_by_its_family(tmp_path: Path) -> None:
    launch = (
        "torchrun --nproc_per_node 4 own.py --model_name_or_path acme/Meta-Llama-3-70B-Instruct-GPTQ --use_lora 1\n"
    )
    assert state_of(tmp_path, OOM, launch, model="Llama 3 70B").run.number("actor.quantized_bits") == 4


def test_the_drivers_message_at_the_first_copy_speaks_of_a_card_that_was_full(tmp_path: Path) -> None:
    moved = '  File "/lib/torch/nn/modules/module.py", line 688, in <lambda>\n    return self._apply(t.cuda(device))\n'
    own = 'Traceback (most recent call last):\n  File "own.py", line 32, in main\n    actor = Net().cuda()\n'
    state = state_of(tmp_path, own + moved + "RuntimeError: CUDA error: out of memory\n")
    assert state.diagnosis.cause == "leftover-processes"
    assert state.plan.steps[0].id == "look-at-card"


def test_items_of_a_list_of_what_was_tried_are_no_steps(tmp_path: Path) -> None:
    page = "OOM when the engine wakes up in slime\nI have already tried:\n- `--sglang-mem-fraction-static` to `0.5`\n"
    state = state_of(tmp_path, page, answers={"memory": "gpu", "framework": "slime"})
    assert "lower-rollout-share" not in steps_of(state)


def test_a_known_exit_code_is_not_asked_for(tmp_path: Path) -> None:
    state = state_of(tmp_path, "Step 3 exits with return code = -6\n")
    assert state.plan.steps[0].id == "ask-what-failed"
    assert "ask-how-it-ended" not in steps_of(state)
