"""The innermost frames name what was being made; its lever leads the plan, and its size is told."""

from __future__ import annotations

import pytest

from tests.plan.planned import Planned, Step

PACKAGES = "/usr/lib/python3.10/site-packages/"
BARE = "python train.py\n"
MODULE = ("torch/nn/modules/module.py", "_call_impl", "return forward_call(*args, **kwargs)")
LINEAR = ("torch/nn/modules/linear.py", "forward", "return F.linear(input, self.weight, self.bias)")
LOSS = ("transformers/trainer.py", "compute_loss", "outputs = model(**inputs)")
STEP = ("transformers/trainer.py", "_inner_training_loop", "self.optimizer.step()")
VISION = (
    "transformers/models/qwen2_5_vl/modeling_qwen2_5_vl.py",
    "get_image_features",
    "image_embeds = self.visual(pixel_values, grid_thw=image_grid_thw)",
)
GENERATE = ("transformers/generation/utils.py", "_sample", "outputs = self(**model_inputs, return_dict=True)")
Frame = tuple[str, str, str]

LEADS: dict[str, tuple[list[Frame], str]] = {
    "the vision encoder's layers": ([LOSS, VISION, MODULE, LINEAR], "fewer-pixels"),
    "its attention": (
        [LOSS, VISION, ("transformers/integrations/sdpa_attention.py", "sdpa_attention_forward", "attn_output = f(")],
        "fewer-pixels",
    ),
    "scores of eager attention": (
        [
            LOSS,
            ("transformers/models/qwen2/modeling_qwen2.py", "eager_attention_forward", "attn_weights = nn.functional"),
            ("torch/nn/functional.py", "softmax", "ret = input.softmax(dim, dtype=dtype)"),
        ],
        "flash-attention",
    ),
    "a mask of every token": (
        [LOSS, ("transformers/masking_utils.py", "sdpa_mask_recent_torch", "causal_mask = _vmap_for_bhqkv(mask)")],
        "flash-attention",
    ),
    "outputs of the evaluation": (
        [
            ("transformers/trainer.py", "evaluation_loop", "all_preds.add(logits)"),
            ("transformers/trainer_pt_utils.py", "torch_pad_and_concatenate", "return torch.cat((tensor1, tensor2))"),
        ],
        "evaluation-in-pieces",
    ),
    "tokens of experts": (
        [
            ("megatron/training/training.py", "train_step", "losses_reduced = forward_backward_func("),
            ("megatron/core/transformer/moe/moe_utils.py", "permute", "permuted_input = tokens.index_select(0, i)"),
        ],
        "full-recompute",
    ),
    "activations of a layer": (
        [LOSS, ("transformers/models/llama/modeling_llama.py", "forward", "self.down_proj(self.act_fn(x))"),
         MODULE, LINEAR],
        "gradient-checkpointing",
    ),
    "gradients, all of them there": (
        [STEP, ("torch/nn/utils/clip_grad.py", "clip_grad_norm_", "norms.extend(torch._foreach_norm(grads, 2))")],
        "cpu-optimizer",
    ),
    "a copy of all moments": (
        [STEP, ("torch/optim/adamw.py", "_multi_tensor_adamw", "exp_avg_sq_sqrt = torch._foreach_sqrt(device_exp)")],
        "step-in-place",
    ),
    "an adapter, multiplied out": (
        [("peft/tuners/lora/layer.py", "merge", "delta_weight = self.get_delta_weight(active_adapter)")],
        "merge-apart",
    ),
    "graphs": (
        [("vllm/v1/worker/gpu_model_runner.py", "capture_model", "self._capture_cudagraphs("),
         ("vllm/compilation/cuda_piecewise_backend.py", "__call__", "with torch.cuda.graph(cudagraph):")],
        "eager-rollout",
    ),
    "a cache that was measured before": (
        [("vllm/v1/worker/gpu_model_runner.py", "_allocate_kv_cache_tensors", "tensor = torch.zeros(size)")],
        "lower-rollout-share",
    ),
    "answers without an engine": (
        [
            ("trl/trainer/grpo_trainer.py", "_generate_and_score_completions", "ids = unwrapped_model.generate("),
            GENERATE,
            ("transformers/cache_utils.py", "update", "self.keys = torch.cat([self.keys, key_states], dim=-2)"),
        ],
        "engine-generates",
    ),
}  # fmt: skip


def crashed(frames: list[Frame], tried: float = 6.0, above: str = "") -> str:
    lines = [above + "Traceback (most recent call last):"]
    for number, (file, function, text) in enumerate(frames, 100):
        lines += [f'  File "{PACKAGES}{file}", line {number}, in {function}', f"    {text}"]
    said = (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried:.2f} GiB. GPU 0 has a total capacity of"
    )
    used = (
        "79.25 GiB of which 1.20 GiB is free. Including non-PyTorch memory, this process has 78.05 GiB memory in use."
    )
    rest = "Of the allocated memory 76.85 GiB is allocated by PyTorch, and 300.00 MiB is reserved but unallocated."
    return "\n".join([*lines, f"{said} {used} {rest}"]) + "\n"


def first(steps: dict[str, Step]) -> str:
    return next(name for name in steps if not name.startswith("not:"))


@pytest.mark.parametrize("name", LEADS)
def test_the_lever_of_the_failing_line_leads(planned: Planned, name: str) -> None:
    frames, lever = LEADS[name]
    assert first(planned(BARE, crashed(frames))) == lever


def test_a_caller_further_out_names_nothing(planned: Planned) -> None:
    """The head of the language model runs after the pictures were encoded."""
    head: Frame = ("transformers/models/qwen2_5_vl/modeling_qwen2_5_vl.py", "forward", "logits = self.lm_head(hidden)")
    assert first(planned(BARE, crashed([LOSS, head, MODULE, LINEAR]))) != "fewer-pixels"


def test_no_file_of_torch_is_taken_for_a_vision_encoder(planned: Planned) -> None:
    clip: Frame = ("torch/nn/utils/clip_grad.py", "clip_grad_norm_", "total_norm = torch.linalg.vector_norm(norms)")
    assert "fewer-pixels" not in planned(BARE, crashed([STEP, clip]))
