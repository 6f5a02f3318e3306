"""Every constant of the ledger: unit, reason, source. None belongs to one framework (that is `Mechanics`) or model.

Sources named "torch", "deepspeed", "vllm", "verl", "OpenRLHF" are those projects' own code; "judgement" says that no
source gives the number and names what it rests on.
"""

from __future__ import annotations

from advisor.units import GIB, MIB

# --- bytes of an element ------------------------------------------------------------------------------------------
BF16 = 2
FP32 = 4

# --- what every CUDA process holds --------------------------------------------------------------------------------
CONTEXT_LOW, CONTEXT_HIGH = 0.7, 1.5
"""Factors on Mechanics.context_bytes: a context is 0.2-0.8 GiB by card and driver (226 MiB L4, 501 MiB A100)."""
NCCL_LOW, NCCL, NCCL_HIGH = 256 * MIB, 512 * MIB, GIB
"""Bytes per GPU of communicators in a job of several GPUs: 0.2-0.6 GiB each (NCCL's default buffers)."""
FRAGMENTATION_LOW, FRAGMENTATION, FRAGMENTATION_HIGH = 0.0, 0.04, 0.10
"""Part of what torch allocated that its allocator holds beside it: 3-6 % usual, 10-15 % with variable lengths and no
expandable segments (judgement over torch's reserved-minus-allocated readings)."""

# --- activations (bytes per token and layer; HF Llama and Qwen layers in bf16 with FlashAttention) -------------------
HIDDEN_COPIES, HEAD_COPIES, KV_COPIES, MLP_COPIES = 18, 4, 4, 8
"""Bytes per element kept for backward: two RMSNorms in fp32 (16) and the layer's input (2); q and the attention's
output; k and v; gate, up, silu and product in bf16 (8). transformers, modeling_llama.py and modeling_qwen2.py."""
EXPERT_COPY_FACTOR = 3
"""Copies of [tokens * experts per token, hidden] in bf16 for dispatch and return (2-4; judgement, low confidence)."""
RECOMPUTE_FACTOR = 1.4
"""Working set of one checkpointed layer in backward, relative to what it keeps: kept tensors and their gradients
(judgement)."""
FORWARD_FACTOR = 0.6
"""The same without gradients: norms and MLP temporaries die one after the other (judgement)."""
ACTIVATION_LOW, ACTIVATION_HIGH = 0.7, 1.3
"""Fused norms and MLPs (Liger, torch.compile) keep about half of the eager ones; dropouts and LoRA inputs add."""
VISION_LAYERS, VISION_HIDDEN = 32, 1280
VISION_KEPT_BYTES = 26 * 1280 + 8 * 3420
"""A Qwen2.5-VL tower: layers, width, and bytes per patch and layer that a recomputed layer keeps."""
PATCH_PIXELS = 14 * 14
PATCH_BYTES = 1176 * FP32
"""A patch of 14 x 14 pixels, and its pixel values: 1176 floats in fp32 (Qwen2-VL's image processor)."""
TYPICAL_IMAGE_PIXELS = 512 * 512
"""An image of the usual vision data sets (geo3k, clevr): below half a megapixel; EasyR1's min_pixels (judgement)."""

# --- tokens in a pass --------------------------------------------------------------------------------------------
FILL, FILL_LOW = 0.3, 0.2
"""Part of the longest length that a sequence without padding has on average, and where they are short. One sequence of
a pass is taken to reach the cap (judgement: mean response lengths of RL runs are a quarter to a third of their cap
before training lengthens them; the cap itself is the cell's high)."""
SHORTEST_PADDED = 0.4
"""Part of the cap that rows have where a batch is padded to its own longest row only (transformers' collators)."""
BALANCE_SLACK = 1.05
"""A balanced partition may exceed the token budget a little (verl, seqlen_balancing.py)."""
ASSUMED_LENGTH = 4096
"""Tokens of prompt and response where the script and the log say nothing (judgement)."""

# --- logits -------------------------------------------------------------------------------------------------------
EAGER_ENTROPY_UPDATE, EAGER_ENTROPY_FORWARD = 28, 14
"""Bytes per token x vocabulary entry where entropy is computed from full logits without compilation: the padded path of
verl (dp_actor.py) and OpenRLHF's eager entropy, counted by autograd's own allocations."""
LOGITS_LOW, LOGITS_HIGH = 0.75, 1.34
"""One copy fewer or more than Mechanics says (12 against 16 bytes)."""
FUSED_CHUNK_TOKENS, FUSED_CHUNK_BYTES = 2048, 10
"""A loss without full logits holds one chunk: tokens, and bytes per token x vocabulary entry (verl's fused kernels:
512 to 2048 tokens, 2 + 4 + 4 bytes)."""

# --- DeepSpeed -----------------------------------------------------------------------------------------------------
LIVE_PARAMETERS = 1_000_000_000
"""Elements: stage3_max_live_parameters (deepspeed/runtime/zero/config.py)."""
PREFETCH_PARAMETERS = 50_000_000
"""Elements: stage3_prefetch_bucket_size (same file)."""
SUB_GROUP = 1_000_000_000
"""Elements: sub_group_size (same file); the optimizer step upcasts the gradients of one group at a time."""
CPU_ADAM_LOW, CPU_ADAM, CPU_ADAM_MARGIN = 16, 18, 1.5
"""Bytes per parameter of CPU Adam: 4 master + 8 moments + 4 gradients (+ 2 bf16 gradients, pinned); DeepSpeed's
estimator multiplies by 1.5 for buffers (stage3.py, additional_buffer_factor)."""
SHARD_FILE = 5_000_000_000
"""Bytes: the usual size of one safetensors file, read by every rank under zero.Init (transformers max_shard_size)."""

ASSUMED_STAGE = 2
"""ZeRO stage where a DeepSpeed file is named but could not be read: between 0 and 3, which are the interval's ends
(judgement)."""

# --- LoRA, quantised weights, optimizers ------------------------------------------------------------------------------
ADAPTER_STATE_BYTES = 16
"""Bytes per adapter parameter: fp32 weight, gradient and two moments (PEFT keeps adapters in fp32)."""
ASSUMED_RANK = 8
"""PEFT's default rank."""
NF4_BYTES = 0.55
"""Bytes per 4-bit parameter with its block constants (bitsandbytes nf4, double quantisation off)."""
MOMENT_BYTES_8BIT = 2
"""Two moments of one byte each (bitsandbytes)."""
KAHAN_MOMENT_BYTES = 6
"""adamw_bf16: two moments and a compensation buffer in bf16 (EasyR1, AnyPrecisionAdamW)."""

# --- rollout engine ----------------------------------------------------------------------------------------------
ASSUMED_SHARE = 0.9
"""vLLM's own gpu_memory_utilization."""
BATCHED_TOKENS, SEQUENCES = 8192, 256
"""Tokens and sequences of the engine's profiling pass where nothing sets them (vLLM)."""
GRAPHS_LOW, GRAPHS, GRAPHS_HIGH = 300 * MIB, 700 * MIB, 3 * GIB // 2
"""Bytes of CUDA graphs outside the engine's share: 0.36-0.64 GiB in vLLM logs, 1-3 GiB with many capture sizes."""
RESIDUE_HIGH = 1.6
"""Factor on Mechanics.sleep_residue_bytes: 1.1-1.2 GiB (4B), up to 3 GiB with graphs of large models (vLLM issues)."""
SYNC_BUCKET = 512 * MIB
"""Bytes of the transfer buffer between separate trainer and engine (NCCL broadcast of one tensor or bucket)."""

# --- host --------------------------------------------------------------------------------------------------------
PROCESS_LOW, PROCESS_HIGH = 0.6, 1.5
"""Factors on Mechanics.host_process_bytes: a worker with CUDA, torch and an engine holds 2-6 GB."""
DRIVER_BYTES = 4_000_000_000
"""Bytes of the driver (trainer loop, tokenizer, data set): one more process of that kind (judgement)."""
TOKEN_BYTES, RESPONSE_TOKEN_BYTES = 24, 48
"""Bytes per token and per response token of a sample in the driver's batch: ids, mask, positions (int64); log-probs,
advantages, returns, scores (verl, DataProto)."""
BATCH_COPIES_LOW, BATCH_COPIES, BATCH_COPIES_HIGH = 1, 2, 4
"""Copies of the batch in the driver and in Ray's object store while it is put and got."""
STORE_PART = 0.30
"""Part of the RAM that Ray's object store may grow to by default: a ceiling, not a use (docs.ray.io)."""
SWAP_BYTES_PER_GPU = 4 * GIB
"""vLLM's swap_space of the V0 engine (vllm/config.py)."""
WORKER_PROCESS_BYTES = 1_000_000_000
"""Bytes of a data loader, agent or reward worker: python, tokenizer, its share of pages it wrote (judgement)."""

# --- what the crash measured ----------------------------------------------------------------------------------------
DOUBTFUL_SHARE = 0.25
"""Part of the card from which an unexplained rest says that script and log do not go together: the ledger's own error
over measured peaks is below 15 %, and what it leaves out (fragmentation, contexts) below 10 % (judgement)."""
SAME_CARD = 0.1
"""Relative difference up to which two sizes mean the same card: drivers differ by a few hundred MiB."""

# --- torch's CUDA allocator (c10/cuda/CUDACachingAllocator) -------------------------------------------------------
SMALL_SIZE, SMALL_SEGMENT = MIB, 2 * MIB
LARGE_FROM, LARGE_SEGMENT, LARGE_ROUND = 10 * MIB, 20 * MIB, 2 * MIB
"""Up to 1 MiB a 2 MiB segment is asked for; below 10 MiB one of 20 MiB; above, the size rounded up to 2 MiB."""
PRINT_STEP_GIB, PRINT_STEP_MIB = GIB * 0.005, MIB * 0.005
"""Half a unit in the last printed place of "13.91 GiB" and of "594.00 MiB"."""
