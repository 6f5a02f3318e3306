"""A frame that names the allocation, or a card that was not full, decides the cause before any sum."""

import pytest

from advisor.crash.evidence import Frame
from advisor.diagnosis.facts import Fact
from advisor.diagnosis.frame_facts import frame_facts
from advisor.diagnosis.tree import walk
from advisor.knowledge import load_knowledge
from tests.loops import each

TREE = load_knowledge().tree
ZERO = "/opt/site-packages/deepspeed/runtime/zero/"
VLLM = "/opt/site-packages/vllm/"


def fact(value: str | float | bool) -> Fact:
    return Fact(value, "log", "line 7 of train.log", (0,))


def cause(*frames: Frame, phase: str = "", **facts: float | bool) -> str:
    known = {"verdict": fact("oom"), "memory": fact("gpu"), **({"phase": fact(phase)} if phase else {})}
    known.update({name.replace("__", "."): fact(value) for name, value in facts.items()})
    return walk(TREE, {**known, **(frame_facts(frames) if frames else {})}, {}).cause.id


@pytest.mark.parametrize(
    "frame",
    [
        Frame(ZERO + "stage_1_and_2.py", 2021, "backward", 3, "buf_0 = torch.empty(int(self.reduce_bucket_size),"),
        Frame(ZERO + "stage3.py", 1310, "__add_grad_to_ipg_bucket", 3, "new_grad_tensor = bucket.narrow("),
        Frame("/w/lib/optim.py", 9, "gather", 3, "buffer = torch.zeros(self.allgather_bucket_size, dtype=dtype)"),
    ],
)
def test_a_bucket_is_the_cause_whatever_the_phase(frame: Frame) -> None:
    outer = Frame("/w/train.py", 1, "training_step", 1)
    assert cause(outer, frame, phase="actor_update") == "communication-buckets"


def test_a_bucket_that_is_only_a_word_of_an_outer_frame_is_not() -> None:
    outer = Frame("/w/train.py", 1, "step", 1, "size = cfg.reduce_bucket_size")
    inner = [Frame("/w/model.py", n, name, n) for n, name in ((2, "forward"), (3, "mlp"), (4, "gelu"))]
    assert cause(outer, *inner, phase="actor_update") != "communication-buckets"


def test_all_weights_gathered_to_generate_are_the_cause_and_in_a_weight_sync_they_are_the_syncs() -> None:
    frames = (
        Frame("/w/ppo.py", 301, "generate", 1, "with unwrap_model_for_generation(self.model, accelerator) as model:"),
        Frame(ZERO + "partition_parameters.py", 2230, "__enter__", 2, "self.params[0].all_gather(self.params)"),
        Frame(ZERO + "partition_parameters.py", 1190, "all_gather", 3, "return self._all_gather(param_list)"),
    )
    assert cause(*frames) == cause(*frames, phase="rollout_generate") == "gather-for-generation"
    assert cause(*frames, phase="weight_sync") == "weight-gather"


def test_a_layers_own_gather_in_the_update_is_no_gather_of_all_weights() -> None:
    layer = Frame(
        ZERO + "partitioned_param_coordinator.py", 444, "__all_gather_params", 2, "handle = all_gather_coalesced("
    )
    assert "frame.gathers_all" not in frame_facts([Frame("/w/t.py", 1, "compute_loss", 1), layer])


def test_an_engine_that_lays_down_its_weights_lacks_cards_not_limits() -> None:
    frames = (
        Frame(VLLM + "v1/worker/gpu_worker.py", 180, "load_model", 1, "self.model_runner.load_model()"),
        Frame(VLLM + "model_executor/layers/linear.py", 100, "create_weights", 2, "weight = Parameter(torch.empty("),
    )
    assert cause(*frames, phase="rollout_init") == "engine-weights-too-big"
    first = next(one for one in TREE.causes if one.id == "engine-weights-too-big").remedies[0]
    assert first == "higher-rollout-tp"
    assert cause(*frames, phase="rollout_init", gpu__others_share=0.5) != "engine-weights-too-big"


def test_a_card_that_was_not_full_gets_no_advice_to_save() -> None:
    assert cause(gpu__empty=True, phase="actor_update") == "card-not-full"
    remedies = next(one for one in TREE.causes if one.id == "card-not-full").remedies
    assert remedies == ("look-for-limit",)


def test_others_on_the_card_are_named_without_saying_whose_they_are() -> None:
    assert cause(gpu__others_share=0.38, phase="log_prob") == "card-shared"
    assert cause(gpu__others_share=0.38, phase="log_prob", gpu__others_engine=True) == "engine-beside-trainer"


def test_the_innermost_frame_of_any_library_does_not_wake_the_engine() -> None:
    innermost = Frame("/opt/torch/nn/modules/module.py", 900, "cuda", 7)
    facts = {"verdict": fact("oom"), "memory": fact("gpu"), "phase": fact("weight_sync"), **frame_facts([innermost])}
    step = next(one for one in walk(TREE, facts, {}).steps if one.question == "sync")
    assert (step.answer, step.source) == ("unknown", "unknown")
    woken = {**facts, **frame_facts([Frame(VLLM + "worker.py", 5, "wake_up", 6), innermost])}
    assert next(one for one in walk(TREE, woken, {}).steps if one.question == "sync").answer == "wake"


@each(
    ("frame", "shows"),
    [
        (
            Frame("/w/torch/nn/modules/module.py", 987, "convert", 1, "return t.to(device, dtype, non_blocking)"),
            "to_card",
        ),
        (Frame("/w/main.py", 9, "main", 1, "model = model.to(args.local_rank)"), "to_card"),
        (Frame("/w/main.py", 9, "main", 1, "critic.cuda()"), "to_card"),
        (Frame("/w/torch/serialization.py", 265, "_cuda_deserialize", 1, "return obj.cuda(device)"), "torch_load"),
        (Frame("/w/main.py", 9, "main", 1, "batch = batch.to(torch.long)"), ""),
    ],
)
def test_a_whole_model_on_its_way_to_the_card_is_seen(frame: Frame, shows: str) -> None:
    found = frame_facts([frame])
    named = [name for name in ("to_card", "torch_load") if f"frame.{name}" in found]
    assert named[-1:] == ([shows] if shows else [])
